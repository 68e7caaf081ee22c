#!/usr/bin/env bash
# usage: outside.sh find_package|fetch_content <source> <build>
# Builds tests/project/outside against the installed run-time library, or with Tilewright's sources as a part of it, and
# runs its programs; with the command installed also a kernel that CMake compiled ahead of time.
set -euo pipefail
way=$1 source=$2 build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arguments=(-DWAY="$way" -DTILEWRIGHT_SOURCE="$source")
if [ "$way" = find_package ]; then
  cmake --install "$build" --component Runtime --prefix "$work/first" >/dev/null
  if [ -x "$build/bin/tilewright" ] && [ -e "$build/lib/libtilewright-jit.so" ] && [ -e "$build/lib/libtilewright.so" ]; then
    cmake --install "$build" --component Command --prefix "$work/first" >/dev/null
  fi
  mv "$work/first" "$work/moved"  # an installation is relocatable
  arguments+=(-DCMAKE_PREFIX_PATH="$work/moved")
fi
# The first C++ program of docs/language.md.
awk '/^```cpp$/ && !seen { inside = 1; seen = 1; next } /^```$/ { inside = 0 } inside' "$source/docs/language.md" >"$work/documented.cpp"
arguments+=(-DDOCUMENTED="$work/documented.cpp")
cmake -G Ninja -S "$source/tests/project/outside" -B "$work/build" "${arguments[@]}" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/build" -j2 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for program in shared_c static_c shared_cpp cpp_text; do
  "$work/build/$program"
done
if [ -x "$work/build/kernel" ]; then
  "$work/build/kernel"
  if ldd "$work/build/kernel" | grep -E 'LLVM|libtilewright\.|jit'; then
    echo "a kernel built ahead of time must not need the compiler"
    exit 1
  fi
fi
if [ -x "$work/build/cpp/matmul_bias_gelu" ]; then
  export TILEWRIGHT_CACHE_DIR="$work/cache"
  tilewright=$work/moved/bin/tilewright
  "$work/build/documented"
  "$work/build/cpp/matmul_bias_gelu"
  "$work/build/cpp/matmul_bias_gelu" --text >"$work/k.tile"
  "$tilewright" run - --check --dim M=33,N=65,K=17 <"$work/k.tile" >"$work/log" || { cat "$work/log"; exit 1; }
  "$tilewright" emit /dev/stdin --stage tile <"$work/k.tile" | grep gemm >/dev/null
  "$tilewright" build - --out "$work/aot" --target cpu:x86-64-v3 <"$work/k.tile" >/dev/null
  test -s "$work/aot/matmul_bias_gelu.h"
fi
if ldd "$work/build/static_c" | grep -E 'tilewright|LLVM'; then
  echo "static_c must not need a library of ours"
  exit 1
fi
