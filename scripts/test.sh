#!/usr/bin/env bash
# Installs what is needed, builds everything and passes all tests. With TILEWRIGHT_SANITIZERS=1 those of
# scripts/sanitize.sh too, under the address and undefined-behaviour sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh
cmake --preset release
cmake --build build/release
ctest --test-dir build/release --output-on-failure
if [ -n "${TILEWRIGHT_SANITIZERS:-}" ]; then scripts/sanitize.sh; fi
