#!/usr/bin/env bash
# Installs what is needed, builds everything and passes all tests; then those of scripts/sanitize.sh under sanitizers
# (TILEWRIGHT_SKIP_SANITIZERS=1 leaves them out).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh
cmake --preset release
cmake --build build/release
ctest --test-dir build/release --output-on-failure
[ -n "${TILEWRIGHT_SKIP_SANITIZERS:-}" ] || scripts/sanitize.sh
