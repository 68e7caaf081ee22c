#include "runtime/artefact.h"

#include "runtime/byte_stream.h"

namespace tilewright::runtime {
namespace {

constexpr std::string_view kMagic = "TWKERNEL";
constexpr size_t kHeaderBytes = kMagic.size() + sizeof(uint32_t) + sizeof(uint64_t);

}  // namespace

uint64_t digest64(std::string_view bytes) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t hash = 0xcbf29ce484222325 ^ (bytes.size() * kPrime);
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 32;
  };
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t size = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), size);
    mix(word);
    bytes.remove_prefix(size);
  }
  return hash;
}

std::string serialise(const Artefact& artefact) {
  ByteWriter body;
  body.put(artefact.kind);
  body.put(std::string_view(serialise(artefact.recipe)));
  body.put(std::string_view(artefact.code));
  const std::string bytes = body.take();
  ByteWriter header;
  header.put(kArtefactVersion);
  header.put(digest64(bytes));
  return std::string(kMagic) + header.take() + bytes;
}

Result<Artefact> parse_artefact(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return fail(FailureCode::bad_artefact, "not a Tilewright kernel file");
  if (bytes.size() < kHeaderBytes) return fail(FailureCode::bad_artefact, "the kernel file is truncated");
  ByteReader header(bytes.substr(kMagic.size()));
  const auto version = header.get<uint32_t>();
  if (version != kArtefactVersion) {
    return fail(FailureCode::bad_artefact, "the kernel file has format version " + std::to_string(version) +
                                               ", this library reads " + std::to_string(kArtefactVersion));
  }
  const auto digest = header.get<uint64_t>();
  const std::string_view body = bytes.substr(kHeaderBytes);
  if (digest64(body) != digest)
    return fail(FailureCode::bad_artefact, "the kernel file is damaged: its digest does not match");
  ByteReader reader(body);
  Artefact artefact;
  artefact.kind = reader.get<CodeKind>();
  const std::string_view recipe = reader.text();
  artefact.code = reader.text();
  if (reader.failed() || reader.left() != 0 || artefact.kind > CodeKind::Ptx) {
    return fail(FailureCode::bad_artefact, "the kernel file is damaged");
  }
  Result<Recipe> parsed = parse_recipe(recipe);
  if (!parsed) return std::unexpected(parsed.error());
  artefact.recipe = std::move(*parsed);
  return artefact;
}

}  // namespace tilewright::runtime
