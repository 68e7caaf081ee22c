"""Triton as a candidate: its matrix product on a CUDA device, compiled by its own JIT at `compile` with the harness's cache folder."""
from worker_protocol import NotInstalled, Unsupported, package_path, serve
from torch_worker import TorchWorker, import_torch

CONFIG = {"block_m": 128, "block_n": 128, "block_k": 64, "num_warps": 8, "num_stages": 3}


def make_kernel(triton, tl):
    @triton.jit
    def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
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
    return matmul


class TritonWorker(TorchWorker):
    name = "triton"

    def start(self, request):
        torch = import_torch()
        try:
            import triton
            import triton.language as tl
        except ImportError:
            raise NotInstalled("Triton is not installed", "pip install triton") from None
        if not request["device"].startswith("cuda"):
            raise NotInstalled("Triton needs a CUDA device", "run with --device cuda:0 on a machine that has one")
        facts = super().start(request)
        self.triton, self.kernel = triton, make_kernel(triton, tl)
        return {"version": triton.__version__, "libraries": {"torch": torch.__version__}, "paths": [package_path(triton)], "attention": facts["libraries"]["attention"]}

    def prepare(self, contract):
        if contract["op"] != "gemm" or contract.get("epilogue") or len(contract["args"][0]["shape"]) != 2:
            raise Unsupported("triton worker does plain two-dimensional gemm")
        return super().prepare(contract)

    def compile(self, config):
        self.config = dict(CONFIG, **config)
        import torch
        shapes = [(a["shape"], a["dtype"]) for a in self.contract["args"]]
        self.inputs = [torch.empty(s, dtype=getattr(torch, {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[d]), device=self.device) for s, d in shapes[:2]]
        self.outputs = [torch.empty(shapes[2][0], dtype=self.inputs[0].dtype, device=self.device)]
        self.op_gemm(*self.inputs)
        torch.cuda.synchronize()
        return 1, 0

    def op_gemm(self, a, b):
        variant, c, cfg = self.contract["variant"], self.outputs[0], self.config
        a = a.mT if variant[0] == "t" else a
        b = b.mT if variant[1] == "t" else b
        M, N, K = a.shape[0], b.shape[1], a.shape[1]
        grid = (self.triton.cdiv(M, cfg["block_m"]) * self.triton.cdiv(N, cfg["block_n"]),)
        self.kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
                          BM=cfg["block_m"], BN=cfg["block_n"], BK=cfg["block_k"], num_warps=cfg["num_warps"], num_stages=cfg["num_stages"])


if __name__ == "__main__":
    serve(TritonWorker())
