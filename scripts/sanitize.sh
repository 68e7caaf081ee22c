#!/usr/bin/env bash
# Builds the rooms that read what others wrote, and those everything stands on, with the address and undefined-behaviour
# sanitizers (no LLVM), and passes their tests; says which failed.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=(base_test ir_test lang_test interp_test transform_test cache_test runtime_test bench_record_test)
cmake --preset sanitize
cmake --build build/sanitize --target "${tests[@]}"
failed=()
for test in "${tests[@]}"; do "build/sanitize/bin/$test" --gtest_brief=1 || failed+=("$test"); done
[ ${#failed[@]} -eq 0 ] || { echo "failed under the sanitizers: ${failed[*]}"; exit 1; }
