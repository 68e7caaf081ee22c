#!/usr/bin/env bash
# Installs what is needed, builds to build/release, and measures a tiled GEMM and an attention kernel on this machine: rows of the
# lifecycle table, correctness first.   usage: scripts/quickstart.sh [--no-install]
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" = --no-install ] || { scripts/install.sh; scripts/references.sh; }
cmake --preset release
cmake --build build/release --target tilewright tilewright-jit
tilewright=build/release/bin/tilewright

echo
echo "== one kernel, compiled and proven right against the interpreter (odd sizes on purpose)"
"$tilewright" run kernels/matmul_relu.tile --dim M=127,N=65,K=33 --param T=f32 --check

echo
echo "== its life, measured: a tiled GEMM and an attention kernel"
"$tilewright" bench tile:kernels/matmul.tile:matmul --op gemm:512x512x512 --budget quick --out out/quickstart-gemm
"$tilewright" bench tile:kernels/attention.tile:attention --op attn:b1hq4hkv4sq512sk512d64:bshd:causal-br --budget quick --out out/quickstart-attention

echo
echo "== the same kernel where a model calls it: model_ms is the whole model with the operator swapped"
"$tilewright" bench tile:kernels/attention.tile:attention --op attn:b1hq4hkv2sq128sk128d16:bshd:causal-br --model tiny --budget quick --out out/quickstart-model

echo
for table in out/quickstart-*/*/table.csv; do echo "$table"; cat "$table"; done
