#include "base/tensor_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

namespace tilewright {
namespace {

class TensorFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("tw_tensor_file_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
               std::to_string(reinterpret_cast<uintptr_t>(this)));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

HostTensor counting(DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor = zeros(dtype, std::move(shape));
  for (size_t i = 0; i < tensor.data.size(); ++i) tensor.data[i] = static_cast<std::byte>(i * 7 + 1);
  return tensor;
}

std::vector<std::byte> file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

/// A version-1 .npy file with the given header text.
std::vector<std::byte> npy(std::string header, size_t data_bytes) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += {static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  text += header;
  for (size_t i = 0; i < data_bytes; ++i) text += static_cast<char>(i);
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

TEST_F(TensorFile, NpyRoundTripsEveryDtypeAndRank) {
  for (int d = 0; d <= static_cast<int>(DType::E5M2); ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const auto& shape : std::vector<std::vector<int64_t>>{{}, {5}, {2, 3}, {0, 4}, {2, 1, 3, 2}}) {
      const HostTensor tensor = counting(dtype, shape);
      const auto written = write_npy(path("x.npy"), tensor);
      if (bits(dtype) == 8 && is_float(dtype)) {
        ASSERT_FALSE(written);
        EXPECT_EQ(written.error().code, DiagnosticCode::E3314);
        continue;
      }
      ASSERT_TRUE(written) << render(written.error());
      EXPECT_EQ(file_bytes(path("x.npy")).size() % 64, tensor.data.size() % 64) << "data starts at a multiple of 64";
      const auto back = read_npy(path("x.npy"));
      ASSERT_TRUE(back) << render(back.error());
      EXPECT_EQ(back->dtype, dtype);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->data, tensor.data);
    }
  }
}

TEST_F(TensorFile, NpyInFortranOrderIsTransposed) {
  const auto tensor = parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", 6), "f.npy");
  ASSERT_TRUE(tensor) << render(tensor.error());
  const std::vector<uint8_t> expected = {0, 2, 4, 1, 3, 5};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), tensor->as<uint8_t>()));
}

TEST_F(TensorFile, BadNpyIsNamed) {
  const auto message = [](std::vector<std::byte> bytes) { return parse_npy(bytes, "f.npy").error().message; };
  EXPECT_EQ(message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 20)),
            "'f.npy' is not a valid .npy file: f32[2, 3] needs 24 bytes of data, the file has 20");
  EXPECT_EQ(message(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8)), "'f.npy' holds dtype '|O'");
  EXPECT_EQ(message(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4)), "'f.npy' holds dtype '>f4'");
  EXPECT_EQ(message(npy(
                "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904, 0)}", 0)),
            "'f.npy' is not a valid .npy file: f32[4611686018427387904, 4611686018427387904, 0] needs too many bytes "
            "of data, "
            "the file has 0");
  EXPECT_EQ(message(npy("{'shape': (1,)", 4)),
            "'f.npy' is not a valid .npy file: its header is not a dict of descr, fortran_order and shape");
  EXPECT_EQ(read_npy(path("absent.npy")).error().code, DiagnosticCode::E3310);
}

TEST_F(TensorFile, SafetensorsRoundTrips) {
  std::vector<std::pair<std::string, HostTensor>> tensors;
  for (int d = 0; d <= static_cast<int>(DType::E5M2); ++d) {
    const auto dtype = static_cast<DType>(d);
    tensors.emplace_back("layer." + std::string(name(dtype)), counting(dtype, {3, d}));
  }
  ASSERT_TRUE(write_safetensors(path("w.safetensors"), tensors, {{"format", "pt"}}));
  const auto file = SafetensorsFile::open(path("w.safetensors"));
  ASSERT_TRUE(file) << render(file.error());
  EXPECT_EQ(file->metadata().at("format"), "pt");
  ASSERT_EQ(file->entries().size(), tensors.size());
  for (const auto& [key, tensor] : tensors) {
    const auto back = file->read(key);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->dtype, tensor.dtype);
    EXPECT_EQ(back->shape, tensor.shape);
    EXPECT_EQ(back->data, tensor.data);
  }
  const auto absent = file->read("layer.f31");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, DiagnosticCode::E3313);
  const auto by_spec = read_tensor(path("w.safetensors") + ":layer.f32");
  ASSERT_TRUE(by_spec);
  EXPECT_EQ(by_spec->dtype, DType::F32);
  EXPECT_FALSE(write_safetensors(path("w.safetensors"), {{"a", tensors[1].second}, {"a", tensors[1].second}}));
}

TEST_F(TensorFile, BadSafetensorsIsNamed) {
  const auto message = [](std::string header, size_t data) {
    std::string text(8, '\0');
    text[0] = static_cast<char>(header.size());
    text += header + std::string(data, 'x');
    const auto parsed = SafetensorsFile::parse(std::as_bytes(std::span(text)), "w", nullptr);
    return parsed ? std::string("accepted") : parsed.error().message;
  };
  const std::string bad = "'w' is not a valid safetensors file: ";
  EXPECT_EQ(message(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "accepted");
  EXPECT_EQ(message(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
            bad + "tensor 'a': bytes [0, 8) lie outside the 7 bytes of data");
  EXPECT_EQ(message(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
            bad + "tensor 'a': f32[3] does not fill 8 bytes");
  EXPECT_EQ(message(R"({"a":{"dtype":"F9","shape":[3],"data_offsets":[0,8]}})", 8),
            bad + "tensor 'a': dtype 'F9' is not supported");
  EXPECT_EQ(message(R"({"a":{"dtype":"F32","shape":[-3],"data_offsets":[0,8]}})", 8), bad + "tensor 'a': a bad shape");
  EXPECT_EQ(message("[1]", 0), bad + "its header is not a JSON object");
}

/// Random damage: parsing must return, and whatever it accepts must be consistent (sanitizers watch the reads).
TEST_F(TensorFile, RandomDamageNeverCrashes) {
  const uint32_t seed = 7;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  ASSERT_TRUE(
      write_safetensors(path("w.safetensors"), {{"a", counting(DType::F32, {2, 3})}, {"b", counting(DType::I8, {5})}}));
  ASSERT_TRUE(write_npy(path("x.npy"), counting(DType::F16, {3, 4})));
  const auto safetensors = file_bytes(path("w.safetensors")), array = file_bytes(path("x.npy"));
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto damaged = round % 2 ? safetensors : array;
    for (uint32_t i = 0, n = 1 + random() % 4; i < n; ++i) {
      damaged[random() % std::min<size_t>(damaged.size(), 160)] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    if (round % 2) {
      const auto file = SafetensorsFile::parse(damaged, "w", nullptr);
      if (!file) continue;
      for (const auto& [key, entry] : file->entries()) {
        const HostTensor copy{entry.dtype, entry.shape, {}};
        ASSERT_EQ(static_cast<size_t>(copy.numel()) * static_cast<size_t>(bytes(entry.dtype)), entry.data.size());
        accepted += std::accumulate(entry.data.begin(), entry.data.end(), 0,
                                    [](int sum, std::byte b) { return sum + static_cast<int>(b); }) >= 0;
      }
    } else if (const auto tensor = parse_npy(damaged, "x")) {
      ASSERT_EQ(static_cast<size_t>(tensor->numel()) * static_cast<size_t>(bytes(tensor->dtype)), tensor->data.size());
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 100) << "damage inside names or data is still a valid file; seed " << seed;
}

}  // namespace
}  // namespace tilewright
