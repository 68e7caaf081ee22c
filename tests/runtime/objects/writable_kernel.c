int tw_test_counter = 3;
int tw_test_next(void) { return ++tw_test_counter; }
