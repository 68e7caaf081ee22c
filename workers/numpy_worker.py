"""NumPy as a candidate: matrix products by its BLAS, everything else by array expressions. Computes in float32 (float64 for f64)."""
import math

from worker_protocol import NotInstalled, Unsupported, Worker, package_path, serve

DTYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8"}


class NumpyWorker(Worker):
    name = "numpy"
    devices = ("cpu",)

    def start(self, request):
        global np
        try:
            import numpy as np
        except ImportError:
            raise NotInstalled("NumPy is not installed", "pip install numpy") from None
        blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        libraries = {"blas": "openblas " + str(blas.get("version", "")) if "openblas" in str(blas) else str(blas.get("name", "unknown"))}
        return {"version": np.__version__, "libraries": libraries, "paths": [package_path(np)]}

    def prepare(self, contract):
        self.contract = contract
        self.op = contract["op"]
        if not hasattr(self, "op_" + self.op):
            raise Unsupported("numpy worker has no " + self.op)
        for arg in contract["args"]:
            if arg["dtype"] not in DTYPES and arg["dtype"] != "bf16":
                raise Unsupported("numpy has no " + arg["dtype"])
        return {}

    def bind(self, tensors):
        self.inputs, self.outputs = [], []
        for t in tensors:
            if t.dtype == "bf16":
                array = np.frombuffer(t.memory, dtype=np.uint16).reshape(t.shape)
            else:
                array = np.frombuffer(t.memory, dtype=DTYPES[t.dtype]).reshape(t.shape)
            (self.outputs if t.is_output else self.inputs).append((t, array))

    def wide(self, pair):
        """The values in the type arithmetic happens in."""
        t, array = pair
        if t.dtype == "bf16":
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array.astype(np.float32) if t.dtype == "f16" else array

    def store(self, value, index=0):
        t, out = self.outputs[index]
        if t.dtype == "bf16":
            bits = np.ascontiguousarray(value, dtype=np.float32).view(np.uint32)
            rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
            out[...] = np.where(np.isnan(value), np.uint16(0x7FC0), rounded)
        else:
            out[...] = value

    def launch(self):
        with np.errstate(all="ignore"):
            getattr(self, "op_" + self.op)(*[self.wide(pair) for pair in self.inputs])

    def op_gemm(self, a, b, bias=None):
        variant = self.contract["variant"]
        if a.dtype.kind in "iu":
            a, b = a.astype(np.int32), b.astype(np.int32)
        if variant[0] == "t":
            a = a.swapaxes(-1, -2)
        if variant[1] == "t":
            b = b.swapaxes(-1, -2)
        epilogue = self.contract.get("epilogue") or ""
        t, out = self.outputs[0]
        if not epilogue and out.dtype == a.dtype:
            np.matmul(a, b, out=out)
            return
        c = np.matmul(a, b)
        if bias is not None:
            c = c + bias
        if "relu" in epilogue:
            c = np.maximum(c, 0)
        elif "gelu" in epilogue:
            c = self.gelu(c, "erf")
        elif "silu" in epilogue:
            c = c / (1 + np.exp(-c))
        self.store(c)

    def op_gemv(self, a, x):
        self.store((a.T if self.contract["variant"] == "t" else a) @ x)

    def op_attn(self, q, k, v, *lengths):
        c = self.contract
        if lengths or c.get("lengths"):
            raise Unsupported("numpy worker has no padded batches")
        if c["variant"] == "bshd":
            q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        group = q.shape[1] // k.shape[1]
        if group > 1:
            k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        s = np.matmul(q, k.swapaxes(-1, -2)) * q.dtype.type(c["scale"])
        visible = mask_array(np, c["mask"]["spec"], q.shape[2], k.shape[2])
        if visible is not None:
            s = np.where(visible, s, -np.inf)
        top = s.max(axis=-1, keepdims=True) if s.shape[-1] else np.zeros(s.shape[:-1] + (1,), s.dtype)
        p = np.exp(s - np.where(np.isfinite(top), top, 0))
        total = p.sum(axis=-1, keepdims=True)
        o = np.matmul(p, v) / np.where(total > 0, total, 1)
        self.store(o.transpose(0, 2, 1, 3) if c["variant"] == "bshd" else o)

    def op_softmax(self, x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        self.store(e / e.sum(axis=-1, keepdims=True))

    def op_rmsnorm(self, x, weight):
        self.store(x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + x.dtype.type(self.contract["eps"])) * weight)

    def op_layernorm(self, x, weight, bias):
        d = x - x.mean(axis=-1, keepdims=True)
        self.store(d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + x.dtype.type(self.contract["eps"])) * weight + bias)

    def op_reduce(self, x):
        kind = self.contract["variant"]
        rows = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
        if kind in ("abssum", "absmax"):
            x, kind = np.abs(x), kind[3:]
        self.store(rows[kind](x, axis=-1))

    def op_argreduce(self, x):
        self.store((np.argmax if self.contract["variant"] == "max" else np.argmin)(x, axis=-1))

    def op_cumsum(self, x):
        self.store(np.cumsum(x, axis=-1))

    def op_transpose(self, x):
        t, out = self.outputs[0]
        if t.dtype == "bf16":
            out[...] = self.inputs[0][1].T
        else:
            out[...] = x.T

    def op_swiglu(self, a, b):
        self.store(a / (1 + np.exp(-a)) * b)

    def op_add(self, a, b):
        t, out = self.outputs[0]
        if t.dtype in ("bf16", "f16"):
            self.store(a + b)
        else:
            np.add(a, b, out=out)

    def op_mul(self, a, b):
        self.store(a * b)

    def op_relu(self, x):
        self.store(np.maximum(x, 0))

    def op_gelu(self, x):
        self.store(self.gelu(x, self.contract["variant"]))

    def op_silu(self, x):
        self.store(x / (1 + np.exp(-x)))

    def op_exp(self, x):
        self.store(np.exp(x))

    @staticmethod
    def gelu(x, kind):
        if kind == "tanh":
            return x * x.dtype.type(0.5) * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + x.dtype.type(0.044715) * x * x * x)))
        erf = np.vectorize(math.erf, otypes=[np.float64])
        return (x * 0.5 * (1 + erf(x / math.sqrt(2.0)))).astype(x.dtype)


def mask_array(np, spec, sq, sk):
    """Boolean [sq, sk] of the keys each query sees, or None when it sees all."""
    kind, _, numbers = spec.partition("-")
    i, j = np.arange(sq)[:, None], np.arange(sk)[None, :]
    at = i + sk - sq
    if spec == "none":
        return None
    if spec == "causal-br":
        return j <= at
    if spec == "causal-tl":
        return j <= i
    if kind == "window":
        return (j <= at) & (j > at - int(numbers))
    if kind == "local":
        left, right = map(int, numbers.split("-"))
        return (j >= at - left) & (j <= at + right)
    if kind == "prefix":
        return (j < int(numbers)) | (j <= at)
    raise Unsupported("mask " + spec)


if __name__ == "__main__":
    serve(NumpyWorker())
