#include <tilewright/runtime.h>

int main() {
  const auto device = tilewright::Device::open("cpu");
  if (!device) return 1;
  const auto buffer = device->allocate(100);
  const auto plan = device->load_file("/nowhere.twk");
  return buffer && buffer->bytes() == 100 && !plan && plan.error().code() == 3006 ? 0 : 1;
}
