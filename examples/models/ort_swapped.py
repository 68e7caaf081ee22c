#!/usr/bin/env python3
"""A model in ONNX Runtime with its MatMul swapped, for `tilewright model compare --model-cmd`.

Protocol: prints `ready`, then answers each line `a` (the framework as it is) or `b` (MatMul swapped) with `done` after one
forward. The framework runs the whole graph in both cases, so its overhead is part of the number.

  pip install onnxruntime onnx onnxruntime-extensions scipy-openblas32
  tilewright model compare --model-cmd 'python3 examples/models/ort_swapped.py'

The swapped operator is OpenBLAS's sgemm called through ctypes. With `--tile FILE.tile:KERNEL` it is a tile kernel of yours that
takes (A, B) and returns C, called through python/tilewright.py.
"""
import argparse
import ctypes
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime_extensions import PyCustomOpDef, get_library_path, onnx_op

ROWS, WIDTH, HIDDEN, LAYERS = 64, 256, 1024, 2


def open_sgemm():
    import scipy_openblas32

    library = ctypes.CDLL(os.path.join(scipy_openblas32.get_lib_dir(), "libscipy_openblas.so"))
    pointer = lambda x: x.ctypes.data_as(ctypes.c_void_p)
    row_major, plain = 101, 111

    def matmul(a, b):
        (m, k), n = a.shape, b.shape[1]
        c = np.empty((m, n), np.float32)
        library.scipy_cblas_sgemm(row_major, plain, plain, m, n, k, ctypes.c_float(1), pointer(a), k, pointer(b), n,
                                  ctypes.c_float(0), pointer(c), n)
        return c

    return matmul


def open_tile(spec):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
    import tilewright

    file, name = spec.rsplit(":", 1)
    return getattr(tilewright.load(file), name)


arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--tile", metavar="FILE.tile:KERNEL")
options = arguments.parse_args()
matmul = open_tile(options.tile) if options.tile else open_sgemm()


@onnx_op(
    op_type="SwappedMatMul",
    inputs=[PyCustomOpDef.dt_float, PyCustomOpDef.dt_float],
    outputs=[PyCustomOpDef.dt_float],
)
def swapped_matmul(a, b):
    return matmul(np.ascontiguousarray(a), np.ascontiguousarray(b))


def build(op_type, domain):
    """A residual MLP: x + W2 · relu(W1 · x), LAYERS times; weights from a fixed seed."""
    random = np.random.default_rng(1)
    nodes, weights, x = [], [], "x"
    for layer in range(LAYERS):
        for name, shape in (("up", (WIDTH, HIDDEN)), ("down", (HIDDEN, WIDTH))):
            value = random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]))
            weights.append(numpy_helper.from_array(value, f"{name}{layer}"))
        nodes += [
            helper.make_node(op_type, [x, f"up{layer}"], [f"h{layer}"], domain=domain),
            helper.make_node("Relu", [f"h{layer}"], [f"r{layer}"]),
            helper.make_node(op_type, [f"r{layer}", f"down{layer}"], [f"d{layer}"], domain=domain),
            helper.make_node("Add", [x, f"d{layer}"], [f"x{layer}"]),
        ]
        x = f"x{layer}"
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, WIDTH])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [ROWS, WIDTH])],
        weights,
    )
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def session(op_type, domain=""):
    options = ort.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    return ort.InferenceSession(build(op_type, domain).SerializeToString(), options, ["CPUExecutionProvider"])


def main():
    sessions = {"a": session("MatMul"), "b": session("SwappedMatMul", "ai.onnx.contrib")}
    x = np.random.default_rng(2).standard_normal((ROWS, WIDTH), np.float32)
    first, second = (sessions[s].run(None, {"x": x})[0] for s in "ab")
    if not np.allclose(first, second, rtol=1e-4, atol=1e-4):
        sys.exit(f"the swapped MatMul is wrong by {np.abs(first - second).max()}")
    print("ready", flush=True)
    for line in sys.stdin:
        sessions[line.strip()].run(None, {"x": x})
        print("done", flush=True)


if __name__ == "__main__":
    main()
