"""Triton as a candidate: its matrix product on a CUDA device, compiled by its own JIT at `compile` with the harness's cache folder.

A·Bᵀ runs as a persistent kernel on tensor descriptors, the faster of two configurations; the other layouts as a kernel on pointers."""
import math

from worker_protocol import NotInstalled, Unsupported, package_path, serve
from torch_worker import TorchWorker, import_torch

CONFIG = {"block_m": 128, "block_n": 128, "block_k": 64, "num_warps": 8, "num_stages": 3}
PERSISTENT = ((128, 256, 64, 3, 8), (128, 128, 64, 4, 8))  # block_m, block_n, block_k, stages, warps


def by_pointers(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: "tl.constexpr", BN: "tl.constexpr", BK: "tl.constexpr"):
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    rm = (pid // columns) * BM + tl.arange(0, BM)
    rn = (pid % columns) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        at = k * BK + rk
        a = tl.load(a_ptr + rm[:, None] * sam + at[None, :] * sak, mask=(rm[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + at[:, None] * sbk + rn[None, :] * sbn, mask=(at[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * scm + rn[None, :] * scn, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def persistent(da, db, dc, M, N, K, BM: "tl.constexpr", BN: "tl.constexpr", BK: "tl.constexpr", GROUP: "tl.constexpr", SMS: "tl.constexpr"):
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    steps = tl.cdiv(K, BK)
    per_group = GROUP * columns
    for tile in tl.range(tl.program_id(0), rows * columns, SMS, flatten=True):
        first = tile // per_group * GROUP
        height = min(rows - first, GROUP)
        row = first + tile % per_group % height
        column = tile % per_group // height
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(steps):
            x = da.load([row * BM, step * BK])
            y = db.load([column * BN, step * BK])
            acc = tl.dot(x, y.T, acc)
        halves = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        dc.store([row * BM, column * BN], left.to(dc.dtype))
        dc.store([row * BM, column * BN + BN // 2], right.to(dc.dtype))


class TritonWorker(TorchWorker):
    name = "triton"
    devices = ("cuda",)
    packages = "torch triton"

    def start(self, request):
        global torch, triton, tl
        torch = import_torch(self.packages)
        try:
            import triton
            import triton.language as tl
        except ImportError:
            raise NotInstalled("Triton is not installed", "pip install " + self.packages) from None
        facts = super().start(request)
        self.kernels = triton.jit(by_pointers), triton.jit(persistent)
        return {"version": triton.__version__, "libraries": {"torch": torch.__version__}, "paths": [package_path(triton)], "attention": facts["libraries"]["attention"]}

    def prepare(self, contract):
        narrow = contract["args"][0]["dtype"] in ("e4m3", "e5m2")
        if contract["op"] != "gemm" or contract.get("epilogue") or len(contract["args"][0]["shape"]) != 2 or narrow:
            raise Unsupported("triton worker does plain two-dimensional gemm of f16, bf16 and f32")
        return super().prepare(contract)

    def compile(self, config):
        self.config, self.calls = dict(CONFIG, **config), []
        from torch_worker import DTYPES
        shapes = [(a["shape"], a["dtype"]) for a in self.contract["args"]]
        self.inputs = [torch.empty(s, dtype=getattr(torch, DTYPES[d]), device=self.device) for s, d in shapes[:2]]
        self.outputs = [torch.empty(shapes[2][0], dtype=self.inputs[0].dtype, device=self.device)]
        self.use_descriptors = self.contract["variant"] == "nt" and all(x.shape[1] * x.element_size() % 16 == 0 for x in self.inputs + self.outputs)
        if not self.use_descriptors:
            self.call_pointers()
            torch.cuda.synchronize()
            return 1, 0
        times = []
        for shape in PERSISTENT:
            call = self.persistent_call(*shape)
            call()
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(8):
                call()
            stop.record()
            stop.synchronize()
            times.append((start.elapsed_time(stop), shape))
        self.shape = min(times)[1]
        return len(PERSISTENT), 0

    def bind(self, tensors):
        super().bind(tensors)
        self.call = self.persistent_call(*self.shape) if self.use_descriptors else self.call_pointers

    def op_gemm(self, a, b):
        self.call()

    def persistent_call(self, bm, bn, bk, stages, warps):
        from triton.tools.tensor_descriptor import TensorDescriptor
        (a, b), c = self.inputs, self.outputs[0]
        m, k, n = a.shape[0], a.shape[1], b.shape[0]
        blocks = torch.cuda.get_device_properties(self.device).multi_processor_count
        descriptors = [TensorDescriptor(x, x.shape, x.stride(), box) for x, box in ((a, [bm, bk]), (b, [bn, bk]), (c, [bm, bn // 2]))]
        grid = (min(blocks, math.ceil(m / bm) * math.ceil(n / bn)),)
        return lambda: self.kernels[1][grid](*descriptors, m, n, k, bm, bn, bk, 8, blocks, num_stages=stages, num_warps=warps)

    def call_pointers(self):
        variant, c, cfg = self.contract["variant"], self.outputs[0], self.config
        a, b = self.inputs
        a = a.mT if variant[0] == "t" else a
        b = b.mT if variant[1] == "t" else b
        M, N, K = a.shape[0], b.shape[1], a.shape[1]
        grid = (math.ceil(M / cfg["block_m"]) * math.ceil(N / cfg["block_n"]),)
        self.kernels[0][grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
                              BM=cfg["block_m"], BN=cfg["block_n"], BK=cfg["block_k"], num_warps=cfg["num_warps"], num_stages=cfg["num_stages"])


if __name__ == "__main__":
    serve(TritonWorker())
