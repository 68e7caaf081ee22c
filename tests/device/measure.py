#!/usr/bin/env python3
"""Runs exported plans (device_runner export) on a CUDA device: checks them against float64 references and times them against the libraries
PyTorch carries, in one process, in random order.

    measure.py CASES.json OUT.json     each case in a child process with a watchdog

A case: {"kind": "gemm" | "attention" | "row", "prefix": "…", …}. Steady: 0.2 s untimed back to back, then 0.25 s timed, 3 rounds in random
order, median. Burst: after 0.25 s idle, 5 launches timed together.
"""
import json, os, random, subprocess, sys, time

WATCHDOG_S = 100


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
            self.j = json.load(open(prefix + ".json"))
            self.kernels = []
            for i, l in enumerate(self.j["launches"]):
                image = open(f"{prefix}.{i}.cubin", "rb").read()
                module = ok(cu.cuModuleLoadData(image))
                f = ok(cu.cuModuleGetFunction(module, l["name"].encode()))
                ok(cu.cuFuncSetAttribute(f, cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l["shared"]))
                self.kernels.append((f, l))
            self.workspaces = [torch.zeros(max(16, n), dtype=torch.uint8, device=dev) for n in self.j["workspaces"]]

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
                        cu.CUtensorMapInterleave(0), cu.CUtensorMapSwizzle(m["swizzle"]), cu.CUtensorMapL2promotion(3),
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

    def race(contenders, flops, rounds=3):
        out = {n: {"steady_ms": [], "burst_ms": []} for n in contenders}
        for _ in range(rounds):
            names = list(contenders); random.shuffle(names)
            for n in names: out[n]["steady_ms"].append(steady(contenders[n]))
            random.shuffle(names)
            for n in names: out[n]["burst_ms"].append(burst(contenders[n]))
        for n in out:
            for k in ("steady", "burst"):
                s = sorted(out[n][k + "_ms"])
                out[n][k] = {"median_ms": s[len(s) // 2], "min_ms": s[0], "max_ms": s[-1], "rate": flops / s[len(s) // 2] / 1e9}
                del out[n][k + "_ms"]
        return out

    def relative(x, ref):
        return float((x.double() - ref).norm() / ref.norm())

    result = {"case": case, "device": torch.cuda.get_device_name(), "torch": torch.__version__}
    plan = Plan(case["prefix"])
    result["registers"] = [l["registers"] for _, l in plan.kernels]
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[case.get("dtype", "bf16")]
    if case["kind"] == "gemm":
        m, n, k = case["m"], case["n"], case["k"]
        a = torch.randn(m, k, device=dev, dtype=dtype)
        b = torch.randn(*((n, k) if case.get("tb") else (k, n)), device=dev, dtype=dtype)
        c = torch.full((m, n), float("nan"), device=dev, dtype=dtype)
        plan.bind([a, b, c])
        plan(); torch.cuda.synchronize()
        rows = torch.randperm(m, device=dev)[:64]
        bt = b.t() if case.get("tb") else b
        ref = a[rows].double() @ bt.double()
        if case.get("relu"): ref = ref.clamp(min=0)
        result["error"] = relative(c[rows], ref)
        result["nan"] = int(torch.isnan(c).sum())
        out = torch.empty(m, n, device=dev, dtype=dtype)
        if not case.get("check_only"):
            result["race"] = race({"tilewright": plan, "torch": lambda: torch.matmul(a, bt, out=out)}, 2.0 * m * n * k)
    elif case["kind"] == "attention":
        B, S, T, HQ, HK, D = (case[x] for x in ("B", "S", "T", "HQ", "HK", "D"))
        q = torch.randn(B, S, HQ, D, device=dev, dtype=dtype)
        kk = torch.randn(B, T, HK, D, device=dev, dtype=dtype)
        v = torch.randn(B, T, HK, D, device=dev, dtype=dtype)
        o = torch.full((B, S, HQ, D), float("nan"), device=dev, dtype=dtype)
        plan.bind([q, kk, v, o])
        plan(); torch.cuda.synchronize()
        h = HQ - 1
        s = (q[B - 1, :, h].double() @ kk[B - 1, :, h // (HQ // HK)].double().t()) * case["scale"]
        if case["causal"]:
            i = torch.arange(S, device=dev)[:, None]; j = torch.arange(T, device=dev)[None, :]
            s = s.masked_fill(j > i + T - S, float("-inf"))
        ref = torch.nan_to_num(torch.softmax(s, -1)) @ v[B - 1, :, h // (HQ // HK)].double()
        result["error"] = relative(o[B - 1, :, h], ref)
        result["nan"] = int(torch.isnan(o).sum())
        if not case.get("check_only"):
            from torch.nn.attention import SDPBackend, sdpa_kernel
            qt, kt, vt = q.transpose(1, 2), kk.transpose(1, 2), v.transpose(1, 2)
            def cudnn():
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    return torch.nn.functional.scaled_dot_product_attention(qt, kt, vt, is_causal=case["causal"], scale=case["scale"], enable_gqa=HQ != HK)
            flops = 4.0 * B * HQ * S * T * D * (0.5 if case["causal"] else 1)
            result["race"] = race({"tilewright": plan, "cudnn": cudnn}, flops)
    elif case["kind"] == "row":
        m, n = case["m"], case["n"]
        x = torch.randn(m, n, device=dev, dtype=dtype)
        y = torch.full((m, n), float("nan"), device=dev, dtype=dtype)
        plan.bind([x, y])
        plan(); torch.cuda.synchronize()
        ref = torch.softmax(x[:64].double(), -1)
        result["error"] = relative(y[:64], ref)
        result["nan"] = int(torch.isnan(y).sum())
        if not case.get("check_only"):
            result["race"] = race({"tilewright": plan, "torch": lambda: torch.softmax(x, -1, out=y)}, 2.0 * m * n * x.element_size())
    print("RESULT " + json.dumps(result))


def main():
    cases, out = json.load(open(sys.argv[1])), sys.argv[2]
    results = []
    for case in cases:
        p = subprocess.Popen([sys.executable, __file__, "--child", json.dumps(case)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            text, _ = p.communicate(timeout=WATCHDOG_S)
        except subprocess.TimeoutExpired:
            p.kill(); text, _ = p.communicate(); text += "\nWATCHDOG"
        line = [l for l in text.splitlines() if l.startswith("RESULT ")]
        name = os.path.basename(case["prefix"])
        if not line:
            print(name, "FAILED:", text[-900:])
            results.append({"case": case, "failed": text[-900:]})
            continue
        r = json.loads(line[0][7:])
        results.append(r)
        race = r.get("race", {})
        print(name, f"error {r['error']:.2e} nan {r['nan']} registers {r['registers']}",
              " ".join(f"{n}: steady {v['steady']['rate']:.0f} burst {v['burst']['rate']:.0f};" for n, v in race.items()), flush=True)
        json.dump(results, open(out, "w"), indent=1)
    json.dump(results, open(out, "w"), indent=1)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
    else:
        main()
