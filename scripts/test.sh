#!/usr/bin/env bash
# Installs what is needed, builds everything and passes all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh
cmake --preset release
cmake --build build/release
ctest --test-dir build/release --output-on-failure
