#!/usr/bin/env bash
# usage: scripts/check_examples.sh TILEWRIGHT   Every example under `run --check`: the wrong ones must be refused (exit 3), the others pass.
set -u
cd "$(dirname "$0")/.."
tilewright=$1
failed=0
passed=0
for file in examples/*.tile; do
  case $(basename "$file") in
    race.tile | out_of_bounds.tile | uninitialised.tile | communicating_iterations.tile) want=3 ;;
    *) want=0 ;;
  esac
  "$tilewright" run "$file" --check >/dev/null 2>&1
  got=$?
  if [ "$got" = "$want" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$file: exit $got, expected $want"; fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
