#include <stdio.h>
#include <string.h>
#include <tilewright/tilewright.h>

int main(void) {
  tw_device* device = NULL;
  tw_plan* plan = NULL;
  tw_status* status = tw_device_open("cpu", NULL, &device);
  if (status || tw_abi_version() != TW_ABI_VERSION) return 1;
  status = tw_plan_load(device, "nonsense", 8, &plan);
  const int refused = strcmp(tw_status_code_text(status), "E3002") == 0;
  printf("tilewright %s, %d threads: %s\n", tw_version(), (int)tw_device_workers(device), tw_status_message(status));
  tw_status_free(status);
  tw_device_close(device);
  return refused ? 0 : 1;
}
