// What tests may ask of and tell the stand-in for the CUDA driver (fake_cuda.cpp), found by dlsym.
#pragma once

#include <cstdint>

struct FakeCuda {
  int version = 13000;
  int devices = 2;
  uint64_t memory = uint64_t{1} << 30;  ///< bytes a device has left
  int sync_result = 0;                  ///< of every wait: 700 is a sticky fault
  int launches = 0;
  int encoded_maps = 0;
  int pointer_queries = 0;
  bool is_capturing = false;
  int forbidden = 0;  ///< calls during a capture that would break it: allocation, waiting, loading
  unsigned grid[3] = {};
  unsigned shared_bytes = 0;
  void* stream = nullptr;
  /// Stands for the kernel: its arguments as cuLaunchKernel gets them.
  void (*kernel)(void** arguments) = nullptr;
};
