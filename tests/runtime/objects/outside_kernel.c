int system(const char* command);
int tw_test_outside(void) { return system("true"); }
