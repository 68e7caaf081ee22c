#!/usr/bin/env bash
# usage: scripts/fuzz_records.sh [seconds]   (default 600; needs clang-19 and libclang-rt-19-dev)
# Fuzzes the readers of recipes, artefacts, objects and cache entries with libFuzzer, address and undefined-behaviour
# sanitizers, from the kept corpus; afterwards the corpus is the smallest set with the same coverage.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
build=build/fuzz
corpus=tests/fuzz/corpus/records
mkdir -p "$build/found" "$corpus"
clang++-19 -std=c++23 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -DFMT_HEADER_ONLY -Isrc \
  -Iinclude tests/fuzz/records_fuzz.cpp $(ls src/runtime/*.cpp | grep -v cpu_device) src/cache/entry.cpp src/base/hash.cpp \
  -lxxhash -o "$build/records_fuzz"
"$build/records_fuzz" -max_total_time="$seconds" -max_len=20000 -timeout=120 -print_final_stats=1 "$build/found" "$corpus"
mkdir -p "$build/kept"
"$build/records_fuzz" -merge=1 "$build/kept" "$corpus" "$build/found"
rm -rf "$corpus"
mv "$build/kept" "$corpus"
du -sh "$corpus"
