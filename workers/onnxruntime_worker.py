"""ONNX Runtime as a candidate: one small graph per contract, built here byte by byte (no `onnx` package needed), run with bound buffers."""
import struct

from worker_protocol import NotInstalled, Unsupported, Worker, package_path, serve

FLOAT_TYPES = {"f32": (1, "float32"), "f16": (10, "float16"), "f64": (11, "float64"), "i32": (6, "int32"), "i64": (7, "int64"), "i8": (3, "int8"), "u8": (2, "uint8")}


# --- the few messages of onnx.proto that a graph needs -------------------------------------------------------------------------------
def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload):
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    if isinstance(payload, float):
        return varint(number << 3 | 5) + struct.pack("<f", payload)
    data = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    body = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op)
    return body + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()) + (field(7, domain) if domain else b"")


def value_info(name, code, shape):
    dims = b"".join(field(1, field(1, d)) for d in shape)
    return field(1, name) + field(2, field(1, field(1, code) + field(2, dims)))


def constant(name, code, shape, raw):
    return b"".join(field(1, d) for d in shape) + field(2, code) + field(8, name) + field(9, raw)


def model(nodes, inputs, outputs, constants, opset):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "kernel") + b"".join(field(5, c) for c in constants)
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    own = field(8, field(1, "com.microsoft") + field(2, 1))
    return field(1, 9) + field(7, graph) + field(8, field(1, "") + field(2, opset)) + own


class Graph:
    """Nodes for one operator; `last` is the name of the newest value."""

    def __init__(self, code, np_type):
        self.code, self.np_type, self.nodes, self.constants, self.count = code, np_type, [], [], 0

    def add(self, op, *inputs, domain="", **attributes):
        self.count += 1
        name = "t%d" % self.count
        self.nodes.append(node(op, inputs, [name], domain, **attributes))
        return name

    def scalar(self, value):
        import numpy as np
        self.count += 1
        name = "c%d" % self.count
        self.constants.append(constant(name, self.code, [], np.array(value, dtype=self.np_type).tobytes()))
        return name

    def ints(self, values):
        self.count += 1
        name = "c%d" % self.count
        self.constants.append(constant(name, 7, [len(values)], struct.pack("<%dq" % len(values), *values)))
        return name

    def array(self, value, code):
        self.count += 1
        name = "c%d" % self.count
        self.constants.append(constant(name, code, list(value.shape), value.tobytes()))
        return name


def gelu(g, x, kind):
    if kind == "tanh":
        cube = g.add("Mul", g.add("Mul", x, x), x)
        inner = g.add("Mul", g.add("Add", x, g.add("Mul", cube, g.scalar(0.044715))), g.scalar(0.7978845608028654))
        return g.add("Mul", g.add("Mul", x, g.scalar(0.5)), g.add("Add", g.add("Tanh", inner), g.scalar(1.0)))
    erf = g.add("Erf", g.add("Mul", x, g.scalar(0.7071067811865476)))
    return g.add("Mul", g.add("Mul", x, g.scalar(0.5)), g.add("Add", erf, g.scalar(1.0)))


def silu(g, x):
    return g.add("Mul", x, g.add("Sigmoid", x))


def build_gemm(g, c, a, b, bias=None):
    rank = len(c["args"][0]["shape"])
    swap = list(range(rank - 2)) + [rank - 1, rank - 2]
    variant, epilogue = c["variant"], c.get("epilogue") or ""
    if rank == 2:
        attributes = {"transA": int(variant[0] == "t"), "transB": int(variant[1] == "t")}
        y = g.add("Gemm", *([a, b, bias] if bias else [a, b]), **attributes)
    else:
        a = g.add("Transpose", a, perm=swap) if variant[0] == "t" else a
        b = g.add("Transpose", b, perm=swap) if variant[1] == "t" else b
        y = g.add("MatMul", a, b)
        y = g.add("Add", y, bias) if bias else y
    if "relu" in epilogue:
        return g.add("Relu", y)
    if "gelu" in epilogue:
        return gelu(g, y, "erf")
    return silu(g, y) if "silu" in epilogue else y


def build_fused_attention(g, c, q, k, v):
    """ONNX Runtime's own MultiHeadAttention, which keeps no score matrix; q, k and v are [batch, length, heads * depth] to it."""
    shapes = [arg["shape"] for arg in c["args"]]
    bshd, spec = c["variant"] == "bshd", c["mask"]["spec"]
    heads, length = (2, 1) if bshd else (1, 2)
    if c.get("lengths") or shapes[0][heads] != shapes[1][heads]:
        raise Unsupported("MultiHeadAttention has no lengths and no grouped heads")
    if spec != "none" and (spec not in ("causal-br", "causal-tl") or shapes[0][length] != shapes[1][length]):
        raise Unsupported("MultiHeadAttention masks square causal scores only")
    flat = []
    for x, shape in zip((q, k, v), shapes):
        x = x if bshd else g.add("Transpose", x, perm=[0, 2, 1, 3])
        flat.append(g.add("Reshape", x, g.ints([shape[0], shape[length], shape[heads] * shape[3]])))
    o = g.add("MultiHeadAttention", *flat, domain="com.microsoft", num_heads=shapes[0][heads], scale=float(c["scale"]),
              unidirectional=int(spec != "none"))
    o = g.add("Reshape", o, g.ints([shapes[0][0], shapes[0][length], shapes[0][heads], shapes[2][3]]))
    return o if bshd else g.add("Transpose", o, perm=[0, 2, 1, 3])


def build_attention(g, c, q, k, v):
    """Matrix products, mask, softmax: the operators ONNX Runtime fuses or not, as it decides."""
    import numpy as np
    from numpy_worker import mask_array
    import numpy_worker
    numpy_worker.np = np
    shapes = [arg["shape"] for arg in c["args"]]
    bshd = c["variant"] == "bshd"
    heads, length = (2, 1) if bshd else (1, 2)
    hq, hk, sq, sk = shapes[0][heads], shapes[1][heads], shapes[0][length], shapes[1][length]
    if c.get("lengths"):
        raise Unsupported("onnxruntime worker has no padded batches")
    if sk == 0 or sq == 0:
        raise Unsupported("empty sequences")
    if bshd:
        q, k, v = (g.add("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, k, v))
    if hq != hk:
        def repeat(x, d):
            x = g.add("Unsqueeze", x, g.ints([2]))
            x = g.add("Expand", x, g.ints([shapes[0][0], hk, hq // hk, sk, d]))
            return g.add("Reshape", x, g.ints([shapes[0][0], hq, sk, d]))
        k, v = repeat(k, shapes[1][3]), repeat(v, shapes[2][3])
    s = g.add("MatMul", g.add("Mul", q, g.scalar(c["scale"])), g.add("Transpose", k, perm=[0, 1, 3, 2]))
    visible = mask_array(np, c["mask"]["spec"], sq, sk)
    if visible is not None:
        s = g.add("Add", s, g.array(np.where(visible, 0, np.finfo(g.np_type).min / 2).astype(g.np_type), g.code))
    p = g.add("Softmax", s, axis=-1)
    if visible is not None and not visible.any(axis=1).all():
        p = g.add("Mul", p, g.array(visible.astype(g.np_type), g.code))
    o = g.add("MatMul", p, v)
    return g.add("Transpose", o, perm=[0, 2, 1, 3]) if bshd else o


def build_rmsnorm(g, c, x, weight):
    mean = g.add("ReduceMean", g.add("Mul", x, x), g.ints([-1]), keepdims=1)
    return g.add("Mul", g.add("Div", x, g.add("Sqrt", g.add("Add", mean, g.scalar(c["eps"])))), weight)


def build_reduce(g, c, x):
    ops = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd", "abssum": "ReduceL1"}
    if c["variant"] == "absmax":
        return g.add("ReduceMax", g.add("Abs", x), g.ints([-1]), keepdims=0)
    return g.add(ops[c["variant"]], x, g.ints([-1]), keepdims=0)


BUILDERS = {
    "gemm": build_gemm,
    "gemv": lambda g, c, a, x: g.add("MatMul", g.add("Transpose", a, perm=[1, 0]) if c["variant"] == "t" else a, x),
    "attn": build_attention,
    "softmax": lambda g, c, x: g.add("Softmax", x, axis=-1),
    "rmsnorm": build_rmsnorm,
    "layernorm": lambda g, c, x, w, b: g.add("LayerNormalization", x, w, b, axis=-1, epsilon=float(c["eps"])),
    "reduce": build_reduce,
    "cumsum": lambda g, c, x: g.add("CumSum", x, g.ints([1])),
    "transpose": lambda g, c, x: g.add("Transpose", x, perm=[1, 0]),
    "swiglu": lambda g, c, a, b: g.add("Mul", silu(g, a), b),
    "add": lambda g, c, a, b: g.add("Add", a, b),
    "mul": lambda g, c, a, b: g.add("Mul", a, b),
    "relu": lambda g, c, x: g.add("Relu", x),
    "gelu": lambda g, c, x: gelu(g, x, c["variant"]),
    "silu": lambda g, c, x: silu(g, x),
    "exp": lambda g, c, x: g.add("Exp", x),
}


class OnnxRuntimeWorker(Worker):
    name = "onnxruntime"
    devices = ("cpu",)

    def start(self, request):
        global np, ort
        try:
            import numpy as np
            import onnxruntime as ort
        except ImportError as error:
            raise NotInstalled("%s is not installed" % error.name, "pip install onnxruntime numpy") from None
        self.threads = request["threads"]
        self.fused = "backend=fused" in (request.get("options") or "")
        if self.fused:
            self.name = "onnxruntime-fused"
        return {"version": ort.__version__, "libraries": {"numpy": np.__version__}, "paths": [package_path(ort)]}

    def prepare(self, contract):
        kinds = {arg["dtype"] for arg in contract["args"]}
        if contract["op"] not in BUILDERS:
            raise Unsupported("onnxruntime worker has no " + contract["op"])
        if len(kinds) != 1 or not kinds <= {"f32", "f64", "f16"}:
            raise Unsupported("onnxruntime worker does " + contract["op"] + " in one of f32, f64, f16")
        if any(0 in arg["shape"] for arg in contract["args"]):
            raise Unsupported("empty tensors")
        if self.fused and contract["op"] != "attn":
            raise Unsupported("backend=fused is for attention; without it the graph is fused as ONNX Runtime decides")
        if self.fused:
            build_fused_attention(Graph(1, "float32"), contract, "q", "k", "v")
        self.contract = contract
        return {}

    def compile(self, config):
        c = self.contract
        code, np_type = FLOAT_TYPES[c["args"][0]["dtype"]]
        g = Graph(code, np_type)
        inputs = [a for a in c["args"] if a["role"] == "in"]
        outputs = [a for a in c["args"] if a["role"] != "in"]
        build = build_fused_attention if self.fused else BUILDERS[c["op"]]
        last = build(g, c, *[a["name"] for a in inputs])
        g.nodes.append(node("Identity", [last], [outputs[0]["name"]]))
        blob = model(g.nodes, [value_info(a["name"], code, a["shape"]) for a in inputs],
                     [value_info(a["name"], code, a["shape"]) for a in outputs], g.constants, 18)
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
        return 1, 0

    def bind(self, tensors):
        binding = self.session.io_binding()
        self.keep = []
        for t in tensors:
            array = np.frombuffer(t.memory, dtype=FLOAT_TYPES[t.dtype][1]).reshape(t.shape)
            self.keep.append(array)
            bind = binding.bind_output if t.is_output else binding.bind_input
            bind(t.name, "cpu", 0, array.dtype.type, t.shape, array.ctypes.data)
        self.binding = binding

    def launch(self):
        self.session.run_with_iobinding(self.binding)


if __name__ == "__main__":
    serve(OnnxRuntimeWorker())
