"""PyTorch as a candidate, on a CPU or a CUDA device. Under torch < 2 attention is matmul, mask and softmax, and its name says so.

Options: backend=cudnn|flash (of attention), compile=1 (the operator through torch.compile), joined by &."""
import contextlib
import math

from worker_protocol import NotInstalled, Unsupported, Worker, package_path, serve

GRAPH_LAUNCHES = 20
DTYPES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "bool": "bool"}


def import_torch(packages="torch"):
    try:
        import torch
    except ImportError:
        raise NotInstalled("PyTorch is not installed", "pip install " + packages) from None
    return torch


class TorchWorker(Worker):
    name = "torch"
    devices = ("cpu", "cuda")
    packages = "torch"
    unit_scale = None

    def start(self, request):
        global torch, F
        torch = import_torch()
        import torch.nn.functional as F
        self.device = request["device"]
        self.options = dict(word.split("=", 1) for word in (request.get("options") or "").split("&") if "=" in word)
        self.name = "-".join([self.name] + ["compile" if key == "compile" else value for key, value in self.options.items()])
        torch.set_num_threads(request["threads"])
        torch.set_grad_enabled(False)
        if self.device.startswith("cuda") and not torch.cuda.is_available():
            raise NotInstalled("torch %s sees no CUDA device" % torch.__version__, "install a CUDA build of torch")
        self.has_sdpa = hasattr(F, "scaled_dot_product_attention")
        attention = "scaled_dot_product_attention" if self.has_sdpa else "matmul+mask+softmax (torch < 2)"
        return {"version": torch.__version__, "libraries": {"attention": attention, "mkl": str(torch.backends.mkl.is_available())}, "paths": [package_path(torch)]}

    def init_device(self):
        torch.zeros(1, device=self.device).add_(1)

    def prepare(self, contract):
        if not hasattr(self, "op_" + contract["op"]):
            raise Unsupported("torch worker has no " + contract["op"])
        if contract.get("lengths"):
            raise Unsupported("torch worker has no padded batches")
        self.contract = contract
        self.op = getattr(self, "op_" + contract["op"])
        if self.options.get("backend") and contract["op"] != "attn":
            raise Unsupported("backend=%s is of attention" % self.options["backend"])
        if self.options.get("compile"):
            torch._dynamo.reset()
            self.op = torch.compile(self.op, dynamic=False)
        return {}

    def bind(self, tensors):
        self.host_outputs, self.host_inputs, self.inputs, self.outputs, self.sweep, self.graph = [], [], [], [], None, None
        for t in tensors:
            count = math.prod(t.shape)
            host = torch.frombuffer(t.memory, dtype=getattr(torch, DTYPES[t.dtype])).reshape(t.shape) if count else torch.empty(t.shape, dtype=getattr(torch, DTYPES[t.dtype]))
            if self.device == "cpu":
                (self.outputs if t.is_output else self.inputs).append(host)
            elif t.is_output:
                self.host_outputs.append(host)
                self.outputs.append(torch.empty(t.shape, dtype=host.dtype, device=self.device))
            else:
                self.host_inputs.append(host)
                self.inputs.append(host.to(self.device))

    def enqueue(self):
        self.result = self.op(*self.inputs)

    def keep(self):
        """What an operator returned goes where the harness looks; no part of a call on a device, where it would be one more kernel."""
        if self.result is not None:
            results = self.result if isinstance(self.result, tuple) else (self.result,)
            for out, value in zip(self.outputs, results):
                out.copy_(value)

    def launch(self):
        self.enqueue()
        self.keep()
        if self.device != "cpu":
            torch.cuda.synchronize()

    def timed(self, count, request):
        if self.device == "cpu":
            return super().timed(count, request)
        moves = not request.get("only_timed")
        for device, host in zip(self.inputs, self.host_inputs) if moves else ():
            device.copy_(host)
        times = self.timed_on_device(count, request.get("each", True), request.get("flush", False), request.get("graph", False))
        if moves:
            self.keep()
        for host, out in zip(self.host_outputs, self.outputs) if moves else ():
            host.copy_(out)
        return times

    def timed_on_device(self, count, each, flush, graph):
        """By events. A flush writes over twice the L2 cache; without one an untimed launch comes first, so that the device never waits for the host."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * count if each else 2)]
        if not each and graph and self.capture():
            replays = max(count // GRAPH_LAUNCHES, 1)
            self.graph.replay()
            events[0].record()
            for _ in range(replays):
                self.graph.replay()
            events[1].record()
            torch.cuda.synchronize()
            return [events[0].elapsed_time(events[1]) / (replays * GRAPH_LAUNCHES)]
        if not each:
            events[0].record()
            for _ in range(count):
                self.enqueue()
            events[1].record()
            torch.cuda.synchronize()
            return [events[0].elapsed_time(events[1]) / count]
        if flush and self.sweep is None:
            self.sweep = torch.empty(2 * torch.cuda.get_device_properties(self.device).L2_cache_size, dtype=torch.uint8, device=self.device)
        if not flush:
            self.enqueue()
        for i in range(count):
            if flush:
                self.sweep.zero_()
            events[2 * i].record()
            self.enqueue()
            events[2 * i + 1].record()
        torch.cuda.synchronize()
        return [events[2 * i].elapsed_time(events[2 * i + 1]) for i in range(count)]

    def capture(self):
        """A graph of several calls, made once for the tensors bound; False when the operator cannot be captured."""
        if self.graph is None:
            try:
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    for _ in range(GRAPH_LAUNCHES):
                        self.enqueue()
                self.graph = graph
            except Exception as error:  # noqa: BLE001 - whatever it is, the calls are timed without a graph
                print("no graph: %s" % str(error)[:200])
                self.graph = False
        return bool(self.graph)

    def peak(self):
        return {"device_bytes": torch.cuda.max_memory_allocated()} if self.device != "cpu" else {}

    def op_gemm(self, a, b, bias=None):
        variant, epilogue = self.contract["variant"], self.contract.get("epilogue") or ""
        if a.dtype.itemsize == 1 and a.dtype.is_floating_point:
            return self.scaled_gemm(a, b)
        a = a.mT if variant[0] == "t" else a
        b = b.mT if variant[1] == "t" else b
        if a.dtype == torch.int8:
            return torch.matmul(a.to(torch.int32), b.to(torch.int32))
        if not epilogue and self.outputs[0].dtype == a.dtype:
            torch.matmul(a, b, out=self.outputs[0])
            return None
        c = torch.matmul(a, b)
        c = c + bias if bias is not None else c
        if "relu" in epilogue:
            return torch.relu(c)
        if "gelu" in epilogue:
            return F.gelu(c)
        return F.silu(c) if "silu" in epilogue else c

    def scaled_gemm(self, a, b):
        if self.contract["variant"] != "nt" or self.device == "cpu":
            raise Unsupported("torch multiplies eight-bit floats as A·Bᵀ on a CUDA device")
        if self.unit_scale is None:
            self.unit_scale = torch.ones((), device=self.device)
        return torch._scaled_mm(a, b.mT, scale_a=self.unit_scale, scale_b=self.unit_scale, out_dtype=self.outputs[0].dtype)

    def op_gemv(self, a, x):
        torch.mv(a.T if self.contract["variant"] == "t" else a, x, out=self.outputs[0])

    def op_attn(self, q, k, v):
        c = self.contract
        if c["variant"] == "bshd":
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        group, sq, sk, spec = q.shape[1] // k.shape[1], q.shape[2], k.shape[2], c["mask"]["spec"]
        if group > 1:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        square = spec == "causal-br" and sq == sk or spec == "causal-tl" and sq <= sk
        visible = None if square else self.visible(spec, sq, sk, q.device)
        if self.has_sdpa and (square or visible is None or bool(visible.any(dim=1).all())):
            with self.attention_backend():
                o = F.scaled_dot_product_attention(q, k, v, attn_mask=None if square else visible, is_causal=square)
        else:
            s = torch.matmul(q, k.transpose(-1, -2)).float() * c["scale"]
            s = s if visible is None else s.masked_fill(~visible, -math.inf)
            p = torch.softmax(s, dim=-1).nan_to_num(0.0).to(v.dtype)
            o = torch.matmul(p, v)
        return o.transpose(1, 2) if c["variant"] == "bshd" else o

    def attention_backend(self):
        name = self.options.get("backend")
        if not name:
            return contextlib.nullcontext()
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return sdpa_kernel({"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[name])

    def visible(self, spec, sq, sk, device):
        if spec == "none":
            return None
        i, j = torch.arange(sq, device=device)[:, None], torch.arange(sk, device=device)[None, :]
        at, kind, numbers = i + sk - sq, spec.split("-")[0], spec.split("-")[1:]
        if spec == "causal-br":
            return j <= at
        if spec == "causal-tl":
            return j <= i
        if kind == "window":
            return (j <= at) & (j > at - int(numbers[0]))
        if kind == "local":
            return (j >= at - int(numbers[0])) & (j <= at + int(numbers[1]))
        if kind == "prefix":
            return (j < int(numbers[0])) | (j <= at)
        raise Unsupported("mask " + spec)

    def op_softmax(self, x):
        return torch.softmax(x, dim=-1)

    def op_rmsnorm(self, x, weight):
        if x.dtype == weight.dtype and hasattr(F, "rms_norm"):
            return F.rms_norm(x, (x.shape[-1],), weight, self.contract["eps"])
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.contract["eps"]) * weight

    def op_layernorm(self, x, weight, bias):
        return F.layer_norm(x, (x.shape[-1],), weight.to(x.dtype), bias.to(x.dtype), self.contract["eps"])

    def op_reduce(self, x):
        kind = self.contract["variant"]
        x = x.abs() if kind.startswith("abs") else x
        return {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "prod": torch.prod}[kind.replace("abs", "")](x, dim=-1)

    def op_argreduce(self, x):
        return (torch.argmax if self.contract["variant"] == "max" else torch.argmin)(x, dim=-1)

    def op_topk(self, x):
        values, indices = torch.topk(x, int(self.contract["variant"][1:]), dim=-1)
        return values, indices

    def op_cumsum(self, x):
        return torch.cumsum(x, dim=-1)

    def op_transpose(self, x):
        return x.T

    def op_swiglu(self, a, b):
        return F.silu(a) * b

    def op_add(self, a, b):
        torch.add(a, b, out=self.outputs[0])

    def op_mul(self, a, b):
        torch.mul(a, b, out=self.outputs[0])

    def op_relu(self, x):
        return torch.relu(x)

    def op_gelu(self, x):
        return F.gelu(x, approximate="tanh" if self.contract["variant"] == "tanh" else "none")

    def op_silu(self, x):
        return F.silu(x)

    def op_exp(self, x):
        return torch.exp(x)

    def op_cast(self, x):
        return x


if __name__ == "__main__":
    serve(TorchWorker())
