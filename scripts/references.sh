#!/usr/bin/env bash
# Puts the reference frameworks the benchmark compares with (NumPy, ONNX Runtime, OpenBLAS) into build/python, where the command
# looks for them. Without them every row still has the float64 oracle, and says which reference is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x build/python/bin/python3 ] && build/python/bin/python3 -c 'import numpy, onnxruntime, scipy_openblas32' 2>/dev/null && exit 0
if ! python3 -m venv build/python 2>/dev/null || ! build/python/bin/pip install -q numpy onnxruntime scipy-openblas32; then
  echo "references not installed (python3 -m venv or pip failed); the benchmark goes on with the float64 oracle alone" >&2
fi
