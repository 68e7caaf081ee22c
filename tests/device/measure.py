#!/usr/bin/env python3
"""Runs exported plans (device_runner export) on a CUDA device: checks them against float64 references and times them against the libraries
PyTorch carries, in one process, in random order.

    measure.py CASES.json OUT.json     each case in a child process with a watchdog

A case: {"name": "…", "kind": "gemm" | "gemv" | "attention" | "row", "plans": {"name": "PREFIX", …}, "rivals": […], …}. Steady: 0.2 s untimed back to back, then 0.25 s timed, 3 rounds in random
order, median. Burst: after 0.25 s idle, 5 launches timed together.
"""
import json, os, random, signal, sys, tempfile, time, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rivals import cublaslt, triton_tma

WATCHDOG_S = 60


def child(case):
    import ctypes
    import torch
    from cuda.bindings import driver as cu

    torch.manual_seed(case.get("seed", 1))
    dev = torch.device("cuda")
    torch.zeros(1, device=dev)

    def ok(result):
        err, *rest = result
        if int(err) != 0:
            raise RuntimeError(f"driver error {err}")
        return rest[0] if len(rest) == 1 else rest

    class Plan:
        def __init__(self, prefix):
            prefix, _, promotion = prefix.partition("@")  # "PREFIX@2": tensor maps with L2 promotion 128 B
            self.promotion = int(promotion or 3)
            self.j = json.load(open(prefix + ".json"))
            self.kernels = []
            for i, l in enumerate(self.j["launches"]):
                image = open(f"{prefix}.{i}.cubin", "rb").read()
                start = time.perf_counter()
                module = ok(cu.cuModuleLoadData(image))
                l["load_ms"] = (time.perf_counter() - start) * 1e3
                f = ok(cu.cuModuleGetFunction(module, l["name"].encode()))
                ok(cu.cuFuncSetAttribute(f, cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l["shared"]))
                attribute = cu.CUfunction_attribute
                l["registers"] = ok(cu.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, f))
                l["local_bytes"] = ok(cu.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f))
                self.kernels.append((f, l))
            self.workspaces = [torch.zeros(max(64, n), dtype=torch.uint8, device=dev) for n in self.j["workspaces"]]
            self.zeroed = [(w.data_ptr(), n) for w, n in zip(self.workspaces, self.j["zeroed"]) if n > 0]

        def bind(self, tensors):
            pointers = [t.data_ptr() for t in tensors] + [w.data_ptr() for w in self.workspaces]
            self.bound = []
            for f, l in self.kernels:
                values, types = [], []
                for p in pointers + self.j["slots"]:
                    values.append(p)
                    types.append(ctypes.c_int64)
                maps = []
                for m in l["maps"]:
                    rank = len(m["extents"])
                    maps.append(ok(cu.cuTensorMapEncodeTiled(
                        cu.CUtensorMapDataType(m["type"]), rank, pointers[m["pointer"]], [cu.cuuint64_t(x) for x in m["extents"]],
                        [cu.cuuint64_t(x) for x in m["strides"]], [cu.cuuint32_t(x) for x in m["box"]], [cu.cuuint32_t(1)] * rank,
                        cu.CUtensorMapInterleave(0), cu.CUtensorMapSwizzle(m["swizzle"]), cu.CUtensorMapL2promotion(self.promotion),
                        cu.CUtensorMapFloatOOBfill(0))))
                buffers = [ctypes.c_int64(v) for v in values]
                array = (ctypes.c_void_p * (len(buffers) + len(maps)))()
                for i, b in enumerate(buffers):
                    array[i] = ctypes.addressof(b)
                for i, m in enumerate(maps):
                    array[len(buffers) + i] = m.getPtr()
                self.bound.append((f, l, array, buffers, maps))

        def __call__(self):
            stream = torch.cuda.current_stream().cuda_stream
            for address, n in self.zeroed:
                ok(cu.cuMemsetD8Async(address, 0, n, stream))
            for f, l, array, _, _ in self.bound:
                ok(cu.cuLaunchKernel(f, *l["grid"], l["threads"], 1, 1, l["shared"], stream, ctypes.addressof(array), 0))

    def steady(fn, repeat_s=0.25, warm_s=0.2):
        fn(); torch.cuda.synchronize()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); fn(); fn(); fn(); b.record(); b.synchronize()
        per = max(1e-3, a.elapsed_time(b) / 3)
        for _ in range(int(warm_s * 1e3 / per) + 1): fn()
        n = int(repeat_s * 1e3 / per) + 1
        a.record()
        for _ in range(n): fn()
        b.record(); b.synchronize()
        return a.elapsed_time(b) / n

    def burst(fn):
        torch.cuda.synchronize(); time.sleep(0.25)
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(5): fn()
        b.record(); b.synchronize()
        return a.elapsed_time(b) / 5

    def race(contenders, flops, rounds=3, with_burst=True):
        out = {n: {"steady_ms": [], "burst_ms": []} for n in contenders}
        for _ in range(rounds):
            names = list(contenders)
            random.shuffle(names)
            short = {"repeat_s": 0.1, "warm_s": 0.05} if not with_burst else {}  # memory-bound work is far from the power limit
            for n in names: out[n]["steady_ms"].append(steady(contenders[n], **short))
            random.shuffle(names)
            for n in names: out[n]["burst_ms"].append(burst(contenders[n]) if with_burst else float("inf"))
        for n in out:
            for k in ("steady", "burst"):
                s = sorted(out[n][k + "_ms"])
                out[n][k] = {"median_ms": s[len(s) // 2], "min_ms": s[0], "max_ms": s[-1], "rate": flops / s[len(s) // 2] / 1e9}
                del out[n][k + "_ms"]
        return out

    def relative(x, ref):
        return float((x.double() - ref).norm() / ref.norm())

    def graphed(fn, launches=20):
        """`launches` calls as one graph, for work shorter than a launch from Python."""
        fn()
        torch.cuda.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            for _ in range(launches): fn()
        return g.replay

    def relative(x, ref):
        return float((x.double() - ref).norm() / ref.norm())

    result = {"case": case, "device": torch.cuda.get_device_name(), "torch": torch.__version__, "plans": {}}
    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "e4m3": torch.float8_e4m3fn}
    dtype = types[case.get("dtype", "bf16")]
    contenders, calls = {}, 1

    def enter_plans(tensors, out, check):
        """Every plan is checked before it may race."""
        for name, prefix in case["plans"].items():
            plan = Plan(prefix)
            plan.bind(tensors)
            out.fill_(float("nan"))
            plan()
            torch.cuda.synchronize()
            error = check()
            nan = int(torch.isnan(out).sum())
            result["plans"][name] = {"error": error, "nan": nan, "launches": [{k: l[k] for k in ("registers", "local_bytes", "load_ms")} for _, l in plan.kernels]}
            if nan == 0 and error < case.get("limit", 5e-3): contenders[name] = plan

    if case["kind"] == "gemm":
        m, n, k = case["m"], case["n"], case["k"]
        a = torch.randn(m, k, device=dev).to(dtype)
        b = torch.randn(*((n, k) if case.get("tb") else (k, n)), device=dev).to(dtype)
        c = torch.empty(m, n, device=dev, dtype=torch.bfloat16 if dtype == torch.float8_e4m3fn else dtype)
        rows = torch.randperm(m, device=dev)[:64]
        bt = b.t() if case.get("tb") else b
        ref = a[rows].double() @ bt.double()
        if case.get("relu"): ref = ref.clamp(min=0)
        if case.get("factor"): ref = ref * case["factor"]
        enter_plans([a, b, c], c, lambda: relative(c[rows], ref))
        out = torch.empty_like(c)
        rivals = case.get("rivals", ["torch"])
        if "torch" in rivals: contenders["torch"] = lambda: torch.matmul(a, bt, out=out)
        if "cublaslt" in rivals: contenders["cublaslt"] = cublaslt(torch, a, b, out, bool(case.get("tb")))
        if "triton" in rivals: contenders["triton"] = triton_tma(torch, a, b, out)
        if "scaled_mm" in rivals:
            one = torch.ones((), device=dev)
            for fast in (False, True):
                contenders["scaled_mm" + (" fast" if fast else "")] = lambda fast=fast: torch._scaled_mm(
                    a, bt, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)
        for name in [n for n in ("cublaslt", "triton") if n in contenders]:
            contenders[name](); torch.cuda.synchronize()
            result["plans"][name] = {"error": relative(out[rows], ref)}
        work = 2.0 * m * n * k
        if case.get("bytes"): work = 1.0 * a.element_size() * (m * k + n * k + m * n)
    elif case["kind"] == "gemv":
        m, k = case["m"], case["k"]
        a = torch.randn(m, k, device=dev, dtype=dtype)
        x = torch.randn(k, device=dev, dtype=dtype)
        y = torch.empty(m, device=dev, dtype=dtype)
        ref = a.double() @ x.double()
        enter_plans([a, x, y], y, lambda: relative(y, ref))
        out = torch.empty_like(y)
        contenders["torch"] = lambda: torch.mv(a, x, out=out)
        work = 1.0 * a.element_size() * (m * k + k + m)
    elif case["kind"] == "attention":
        B, S, T, HQ, HK, D = (case[x] for x in ("B", "S", "T", "HQ", "HK", "D"))
        q = torch.randn(B, S, HQ, D, device=dev, dtype=dtype)
        kk = torch.randn(B, T, HK, D, device=dev, dtype=dtype)
        v = torch.randn(B, T, HK, D, device=dev, dtype=dtype)
        o = torch.empty(B, S, HQ, D, device=dev, dtype=dtype)
        heads = [(0, 0), (B - 1, HQ - 1)]
        refs = []
        for b_, h in heads:
            s = (q[b_, :, h].double() @ kk[b_, :, h // (HQ // HK)].double().t()) * case["scale"]
            if case["causal"]:
                i = torch.arange(S, device=dev)[:, None]; j = torch.arange(T, device=dev)[None, :]
                s = s.masked_fill(j > i + T - S, float("-inf"))
            refs.append(torch.nan_to_num(torch.softmax(s, -1)) @ v[b_, :, h // (HQ // HK)].double())
            del s
        enter_plans([q, kk, v, o], o, lambda: max(relative(o[b_, :, h], r) for (b_, h), r in zip(heads, refs)))
        from torch.nn.attention import SDPBackend, sdpa_kernel
        qt, kt, vt = q.transpose(1, 2), kk.transpose(1, 2), v.transpose(1, 2)
        def cudnn():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(qt, kt, vt, is_causal=case["causal"], scale=case["scale"], enable_gqa=HQ != HK)
        if "cudnn" in case.get("rivals", ["cudnn"]): contenders["cudnn"] = cudnn
        work = 4.0 * B * HQ * S * T * D * (0.5 if case["causal"] else 1)
    elif case["kind"] == "row":
        m, n = case["m"], case["n"]
        x = torch.randn(m, n, device=dev, dtype=dtype)
        w = torch.randn(n, device=dev, dtype=dtype)
        bias = torch.randn(n, device=dev, dtype=dtype)
        y = torch.empty(m, n, device=dev, dtype=dtype)
        functional = torch.nn.functional
        rival = {"softmax": lambda x, w, bias: torch.softmax(x, -1),
                 "rmsnorm": lambda x, w, bias: functional.rms_norm(x, (n,), w, 1e-6),
                 "layernorm": lambda x, w, bias: functional.layer_norm(x, (n,), w, bias, 1e-5)}[case["op"]]
        ref = rival(x[:64].double(), w.double(), bias.double())
        enter_plans({"softmax": [x, y], "rmsnorm": [x, w, y], "layernorm": [x, w, bias, y]}[case["op"]], y, lambda: relative(y[:64], ref))
        contenders["torch"] = lambda: rival(x, w, bias)
        if "compile" in case.get("rivals", []):
            compiled = torch.compile(rival)
            contenders["compile"] = lambda: compiled(x, w, bias)
        work = 2.0 * m * n * x.element_size()
    if case.get("graph"):
        calls = 20
        contenders = {n: graphed(f, calls) for n, f in contenders.items()}
    if not case.get("check_only"): result["race"] = race(contenders, work * calls, case.get("rounds", 3), not case.get("steady_only"))
    print("RESULT " + json.dumps(result))


def main():
    cases, out = json.load(open(sys.argv[1])), sys.argv[2]
    results = []
    import torch  # once, before any process touches the device: children inherit it
    from cuda.bindings import driver
    for case in cases:
        with tempfile.TemporaryFile("w+") as log:
            pid = os.fork()
            if pid == 0:
                os.dup2(log.fileno(), 1); os.dup2(log.fileno(), 2)
                status = 1
                try:
                    child(case)
                    status = 0
                except BaseException:
                    traceback.print_exc()
                sys.stdout.flush(); sys.stderr.flush()
                os._exit(status)
            deadline, done = time.time() + WATCHDOG_S, 0
            while not done and time.time() < deadline:
                done, _ = os.waitpid(pid, os.WNOHANG)
                time.sleep(0.02)
            if not done:
                os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
            log.seek(0)
            text = log.read() + ("" if done else "\nWATCHDOG")
        line = [l for l in text.splitlines() if l.startswith("RESULT ")]
        name = case["name"]
        if not line:
            print(name, "FAILED:", text[-900:], flush=True)
            results.append({"case": case, "failed": text[-900:]})
            continue
        r = json.loads(line[0][7:])
        results.append(r)
        print(name, " ".join(f"{n}: error {v['error']:.1e}{' NAN' if v.get('nan') else ''} {v.get('launches', '')};" for n, v in r["plans"].items()))
        print("   ", " ".join(f"{n}: {v['steady']['rate']:.5g} [{v['steady']['min_ms']:.4f}-{v['steady']['max_ms']:.4f} ms] / {v['burst']['rate']:.5g};"
                              for n, v in r.get("race", {}).items()), flush=True)
        json.dump(results, open(out, "w"), indent=1)
    json.dump(results, open(out, "w"), indent=1)


if __name__ == "__main__":
    main()
