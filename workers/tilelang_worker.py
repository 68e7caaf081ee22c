"""TileLang as a candidate: its matrix product on a CUDA device."""
from worker_protocol import NotInstalled, Unsupported, package_path, serve
from torch_worker import TorchWorker, import_torch

CONFIG = {"block_m": 128, "block_n": 128, "block_k": 32, "num_stages": 3, "threads": 128}
NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}


def make_kernel(tilelang, T, M, N, K, cfg, dtype, transpose_b):
    @tilelang.jit(out_idx=[])
    def build():
        b_shape = (N, K) if transpose_b else (K, N)
        b_tile = (cfg["block_n"], cfg["block_k"]) if transpose_b else (cfg["block_k"], cfg["block_n"])

        @T.prim_func
        def main(A: T.Tensor((M, K), dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), dtype)):
            with T.Kernel(T.ceildiv(N, cfg["block_n"]), T.ceildiv(M, cfg["block_m"]), threads=cfg["threads"]) as (bx, by):
                A_s = T.alloc_shared((cfg["block_m"], cfg["block_k"]), dtype)
                B_s = T.alloc_shared(b_tile, dtype)
                acc = T.alloc_fragment((cfg["block_m"], cfg["block_n"]), "float32")
                T.clear(acc)
                for k in T.Pipelined(T.ceildiv(K, cfg["block_k"]), num_stages=cfg["num_stages"]):
                    T.copy(A[by * cfg["block_m"], k * cfg["block_k"]], A_s)
                    if transpose_b:
                        T.copy(B[bx * cfg["block_n"], k * cfg["block_k"]], B_s)
                    else:
                        T.copy(B[k * cfg["block_k"], bx * cfg["block_n"]], B_s)
                    T.gemm(A_s, B_s, acc, transpose_B=transpose_b)
                T.copy(acc, C[by * cfg["block_m"], bx * cfg["block_n"]])
        return main
    return build()


class TileLangWorker(TorchWorker):
    name = "tilelang"
    devices = ("cuda",)
    packages = "torch tilelang"

    def start(self, request):
        torch = import_torch(self.packages)
        try:
            import tilelang
            import tilelang.language as T
        except ImportError:
            raise NotInstalled("TileLang is not installed", "pip install " + self.packages) from None
        super().start(request)
        self.tilelang, self.T = tilelang, T
        return {"version": tilelang.__version__, "libraries": {"torch": torch.__version__}, "paths": [package_path(tilelang)]}

    def prepare(self, contract):
        plain = contract["op"] == "gemm" and not contract.get("epilogue") and len(contract["args"][0]["shape"]) == 2
        if not plain or contract["variant"][0] == "t" or contract["args"][0]["dtype"] not in NAMES:
            raise Unsupported("tilelang worker does plain two-dimensional gemm with A stored as in the formula")
        return super().prepare(contract)

    def compile(self, config):
        a, b, c = (arg["shape"] for arg in self.contract["args"])
        cfg = dict(CONFIG, **config)
        self.kernel = make_kernel(self.tilelang, self.T, a[0], c[1], a[1], cfg, NAMES[self.contract["args"][0]["dtype"]], self.contract["variant"][1] == "t")
        return 1, 0

    def op_gemm(self, a, b):
        self.kernel(a, b, self.outputs[0])


if __name__ == "__main__":
    serve(TileLangWorker())
