// The file of recorded outputs: for each case its name, its size, its bytes.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace tilewright::device_cases {

using Recording = std::map<std::string, std::vector<uint8_t>>;

inline void write_recording(const std::string& path, const Recording& recording) {
  std::ofstream out(path, std::ios::binary);
  for (const auto& [name, bytes] : recording) {
    out << name << ' ' << bytes.size() << '\n';
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

inline Recording read_recording(const std::string& path) {
  Recording out;
  std::ifstream in(path, std::ios::binary);
  std::string name;
  size_t size = 0;
  while (in >> name >> size) {
    in.get();
    std::vector<uint8_t> bytes(size);
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
    out[name] = std::move(bytes);
  }
  return out;
}

}  // namespace tilewright::device_cases
