#!/usr/bin/env bash
# usage: scripts/fuzz_language.sh [seconds]   Fuzzes the readers of `.tile` text and printed IR with clang-19's libFuzzer.
# New inputs go to build/fuzz/language; what is worth keeping is copied to tests/fuzz/corpus/language.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-600}
mkdir -p build/fuzz/language build/fuzz/objects
clang=$(command -v clang++-19 || command -v clang++-14)
objects=()
for source in tests/fuzz/language_fuzz.cpp src/lang/*.cpp src/ir/*.cpp src/base/*.cpp; do
  object=build/fuzz/objects/$(echo "$source" | tr / _).o
  [ "$object" -nt "$source" ] || "$clang" -std=c++2b -O1 -g1 -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -Isrc -Iinclude -c "$source" -o "$object"
  objects+=("$object")
done
"$clang" -fsanitize=fuzzer,address,undefined "${objects[@]}" -lfmt -lxxhash -o build/fuzz/language_fuzz
exec build/fuzz/language_fuzz -max_total_time="$seconds" -max_len=20000 -timeout=120 -print_final_stats=1 \
  -dict=tests/fuzz/language.dict build/fuzz/language tests/fuzz/corpus/language kernels examples tests/lang/errors
