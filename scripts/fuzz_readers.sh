#!/usr/bin/env bash
# usage: scripts/fuzz_readers.sh language|records|files [seconds]
#        scripts/fuzz_readers.sh --build-only language|records|files
# Fuzzes what reads bytes that others wrote, with clang-19's libFuzzer and the address and undefined-behaviour
# sanitizers (needs clang-19 and libclang-rt-19-dev), from the kept corpus in tests/fuzz/corpus:
#   language  `.tile` text and printed IR                   records  recipes, artefacts, objects, cache entries
#   files     tensors, cells, tables, traces, claims, objectives, tuning spaces, trials and best records
# New inputs go to build/fuzz/READER; afterwards the corpus is the smallest set with the same coverage.
set -euo pipefail
cd "$(dirname "$0")/.."
build_only=
if [ "${1:-}" = --build-only ]; then build_only=1; shift; fi
reader=${1:?"which reader: language, records or files (--help: the head of this script)"}
seconds=${2:-600}
options=(-max_len=20000 -timeout=120 -print_final_stats=1)
case $reader in
  language) sources=(src/lang/*.cpp src/ir/*.cpp src/base/*.cpp); options+=(-dict=tests/fuzz/language.dict) ;;
  records) sources=($(ls src/runtime/*.cpp | grep -v cpu_device) src/cache/entry.cpp src/base/*.cpp) ;;
  files) sources=(src/tune/*.cpp src/measure/*.cpp src/bench/record/*.cpp src/bench/traffic/*.cpp
                  src/bench/decision/*.cpp src/bench/oracle/{arguments,mask,workload}.cpp src/base/*.cpp) ;;
  *) echo "no reader '$reader': language, records or files" >&2; exit 2 ;;
esac
build=build/fuzz
found=$build/$reader
corpus=tests/fuzz/corpus/$reader
mkdir -p "$build/objects" "$found" "$corpus"
objects=()
for source in "tests/fuzz/${reader}_fuzz.cpp" "${sources[@]}"; do
  object=$build/objects/$(echo "$source" | tr / _).o
  objects+=("$object")
  [ "$object" -nt "$source" ] && continue
  printf '%s\0%s\0' "$source" "$object"
done > "$build/to_compile"
xargs -0 -r -n 2 -P "$(nproc)" sh -c '${TILEWRIGHT_LAUNCHER:-} clang++-19 -std=c++23 -Wno-deprecated-declarations -O1 -g1 -DFMT_HEADER_ONLY \
  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Isrc -Iinclude -c "$0" -o "$1"' < "$build/to_compile"
clang++-19 -fsanitize=fuzzer,address,undefined "${objects[@]}" -lxxhash -lsqlite3 -o "$build/${reader}_fuzz"
[ -z "$build_only" ] || exit 0
"$build/${reader}_fuzz" -max_total_time="$seconds" "${options[@]}" "$found" "$corpus"
mkdir -p "$build/kept"
"$build/${reader}_fuzz" -merge=1 "$build/kept" "$corpus" "$found"
rm -rf "$corpus"
mv "$build/kept" "$corpus"
du -sh "$corpus"
