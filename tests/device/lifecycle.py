#!/usr/bin/env python3
"""Cold compile times: every sample is a fresh process, with CUDA's own cache off.

    lifecycle.py RUNNER KERNELS OUT.json [SAMPLES]

RUNNER is device_runner, KERNELS the folder of .tile files. Front end, planning, PTX and nvJitLink are timed by the runner; the driver is initialised
before anything is timed. What the driver assembles (kernels that reallocate registers) is timed around cuModuleLoadData in a process of its own, after cuInit and context creation.
"""
import ctypes, json, os, re, statistics, subprocess, sys, tempfile, time

os.environ["CUDA_CACHE_DISABLE"] = "1"

CASES = {
    "GEMM bf16 A·Bᵀ": ["matmul.tile", "matmul_nt", "T=bf16", "tensor=4096x4096", "tensor=4096x4096", "tensor=4096x4096"],
    "GEMM bf16 few rows": ["matmul.tile", "matmul_nt_skinny", "T=bf16", "tensor=16x4096", "tensor=4096x4096", "tensor=16x4096"],
    "attention bf16 D128 causal": ["attention.tile", "attention", "E=bf16", "dim:D=128", "scalar=0.088"] + ["tensor=1x4096x8x128"] * 4,
    "attention bf16 D64 causal": ["attention.tile", "attention", "E=bf16", "dim:D=64", "scalar=0.125"] + ["tensor=1x4096x8x64"] * 4,
    "softmax bf16 4096": ["softmax.tile", "softmax", "T=bf16", "dim:C=4096", "tensor=4096x4096", "tensor=4096x4096"],
    "add f32": ["elementwise.tile", "add", "tensor=16777216", "tensor=16777216", "tensor=16777216"],
}


def load(path):
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
    image = open(path, "rb").read() + b"\0"
    start = time.perf_counter()
    status = cuda.cuModuleLoadData(ctypes.byref(module), image)
    print(json.dumps({"status": status, "ms": (time.perf_counter() - start) * 1e3}))


def main():
    runner, kernels, out = sys.argv[1:4]
    samples = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, kernel, *words) in CASES.items():
            rows = []
            for _ in range(samples):
                prefix = os.path.join(folder, "k")
                run = subprocess.run([runner, "export", os.path.join(kernels, file), kernel, prefix, "driver=1", *words], capture_output=True, text=True, timeout=30)
                m = re.search(r"front end ([\d.]+) ms, plan ([\d.]+) ms, PTX ([\d.]+) ms, assemble ([\d.]+) ms", run.stdout)
                if not m:
                    print(name, "FAILED", run.stdout[-300:], run.stderr[-300:])
                    break
                loaded = json.loads(subprocess.run([sys.executable, __file__, "--load", prefix + ".0.cubin"], capture_output=True, text=True, timeout=30).stdout)
                times = [float(x) for x in m.groups()] + [loaded["ms"]]
                rows.append(times + [sum(times)])
            if rows:
                results[name] = {k: statistics.median(r[i] for r in rows)
                                 for i, k in enumerate(("front_end", "plan", "ptx", "nvjitlink", "load_or_driver_assembler", "all"))}
                results[name].update(samples=len(rows), least=min(r[-1] for r in rows), most=max(r[-1] for r in rows))
                print(name, {k: round(v, 2) for k, v in results[name].items()}, flush=True)
    json.dump(results, open(out, "w"), indent=1)


if __name__ == "__main__":
    load(sys.argv[2]) if sys.argv[1] == "--load" else main()
