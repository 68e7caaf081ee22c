#!/usr/bin/env bash
# Did this commit make a kernel wrong, slower, fatter or slower to compile? Measures the build of the commit gated last and the present one,
# one after the other on this machine, and compares their records; keeps the present build for the next time.
# usage: scripts/gate.sh   (after scripts/test.sh; builds are kept in TILEWRIGHT_GATE_DIR, default ~/.cache/tilewright-gate)
# A regression must show in each of three attempts: exit 5, or 3 for a wrong result. The first time there is nothing to compare with.
set -euo pipefail
cd "$(dirname "$0")/.."
kept=${TILEWRIGHT_GATE_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tilewright-gate}
commit=$(git rev-parse --short=12 HEAD)
build=${TILEWRIGHT_BUILD:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() {  # BINARY FOLDER
  local kernel
  for kernel in matmul.tile:matmul:gemm:256x256x256 softmax.tile:softmax:softmax:512x1024; do
    IFS=: read -r file name op dims <<<"$kernel"
    "$1" bench "tile:kernels/$file:$name" --op "$op:$dims" --threads 1 --budget quick --no-reference --model none --no-progress \
      --out "$2" >"$work/log" 2>&1 || { local code=$?; cat "$work/log"; return $code; }
  done
}

mkdir -p "$kept"
before=$(cat "$kept/commit" 2>/dev/null || true)
if [ -n "$before" ] && [ "$before" != "$commit" ] && [ -x "$kept/$before/bin/tilewright" ]; then
  for attempt in 1 2 3; do
    measure "$kept/$before/bin/tilewright" "$work/before-$attempt" || { echo "gate: the build of $before does not run here"; break; }
    status=0
    measure "$build/bin/tilewright" "$work/after-$attempt" || status=$?
    if [ $status = 3 ]; then echo "gate: the present build fails the check of its own kernels"; exit 3; fi
    [ $status = 0 ] || { echo "gate: nothing can be measured here now (exit $status)"; break; }
    "$build/bin/tilewright" gate "$work/before-$attempt" "$work/after-$attempt" --delta 10 >"$work/gate" || status=$?
    case $status in 3 | 5) ;; *) break ;; esac
  done
  echo "gate: $before → $commit"
  cat "$work/gate" 2>/dev/null || true
  case ${status:-0} in 3 | 5) exit "$status" ;; esac
else
  echo "gate: no earlier build is kept in $kept; $commit is the first"
fi
if [ "$before" != "$commit" ]; then
  cmake --install "$build" --prefix "$kept/$commit" >/dev/null
  echo "$commit" >"$kept/commit.new" && mv "$kept/commit.new" "$kept/commit"
  [ -z "$before" ] || rm -rf "${kept:?}/$before"
fi
