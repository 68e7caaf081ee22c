"""What every ready worker shares: the protocol of docs/workers.md, tensors in shared memory, timing, operators by name.

A worker is a subclass of Worker and one call of serve(). It gets requests as JSON lines on stdin and answers on stdout; print() goes to
stderr. Standard library only; a framework is imported by the subclass, and a missing one is reported as not installed."""
import json
import mmap
import os
import sys
import time


class Unsupported(Exception):
    """The contract is not one this worker can do."""


class NotInstalled(Exception):
    """A package is missing; the message says which, `help` how to get it."""

    def __init__(self, message, help=""):
        super().__init__(message)
        self.help = help


class Tensor:
    """One argument: `memory` is a writable buffer of exactly its bytes."""

    def __init__(self, spec, memory):
        self.name, self.dtype, self.shape = spec["name"], spec["dtype"], spec["shape"]
        self.strides, self.is_output, self.memory = spec["strides"], spec["output"], memory


class Worker:
    name = "worker"
    packages = None  # what pip installs for it; None: nothing
    devices = None  # kinds of device it computes on, ("cpu", "cuda"); None: whatever it is given

    def start(self, request):
        """Imports the framework. Returns {"version": …, "libraries": {…}, "paths": […]}."""
        raise NotImplementedError

    def init_device(self):
        pass

    def prepare(self, contract):
        """Raises Unsupported, or returns a dict of the contract's fields this worker would compute differently (normally empty)."""
        return {}

    def compile(self, config):
        """Returns (kernels compiled, cache hits). A library compiled by its vendor returns (0, 0)."""
        return 0, 0

    def bind(self, tensors):
        """Keeps framework tensors over the shared memory; called again when the memory changes."""
        raise NotImplementedError

    def launch(self):
        """One call; the outputs are complete in shared memory on return."""
        raise NotImplementedError

    def peak(self):
        return {}

    def timed(self, count, request):
        """Milliseconds of each launch. `request` may ask for less: see docs/workers.md."""
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            self.launch()
            times.append((time.perf_counter_ns() - start) * 1e-6)
        return times


def package_path(module):
    return os.path.dirname(os.path.abspath(module.__file__))


def map_tensors(specs):
    tensors, files = [], {}
    for spec in specs:
        if spec["path"] not in files:
            fd = os.open(spec["path"], os.O_RDWR)
            files[spec["path"]] = memoryview(mmap.mmap(fd, spec["bytes"]))
            os.close(fd)
        count = 1
        for extent in spec["shape"]:
            count *= extent
        width = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}.get(spec["dtype"], 1)
        begin = spec["offset"]
        tensors.append(Tensor(spec, files[spec["path"]][begin:begin + count * width]))
    return tensors


def answer(worker, request):
    op = request["op"]
    if op == "open":
        if worker.devices and request["device"].split(":")[0] not in worker.devices:
            install = "pip install %s, and " % worker.packages if worker.packages else ""
            raise NotInstalled("%s computes on %s, not on %s" % (worker.name, " and ".join(worker.devices), request["device"]), "%s--device %s:0" % (install, worker.devices[0]))
        return dict(worker.start(request), name=worker.name)
    if op == "init_device":
        worker.init_device()
        return {}
    if op == "prepare":
        differs = worker.prepare(request["contract"])
        return {"differs": differs} if differs else {"digest": request["digest"]}
    if op == "compile":
        compiles, hits = worker.compile(request["config"] or {})
        return {"compiles": compiles, "cache_hits": hits}
    if op == "bind":
        worker.bind(map_tensors(request["args"]))
        return {}
    if op == "launch":
        return {"ms": worker.timed(request["n"], request)}
    if op == "peak":
        return worker.peak()
    raise ValueError("unknown request " + repr(op))


def serve(worker):
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "close":
            break
        try:
            reply = dict(answer(worker, request), ok=True)
        except NotInstalled as error:
            reply = {"ok": False, "kind": "not-installed", "error": str(error), "help": error.help}
        except Unsupported as error:
            reply = {"ok": False, "kind": "unsupported", "error": str(error)}
        except Exception as error:  # noqa: BLE001 - whatever a framework raises is the candidate's failure
            reply = {"ok": False, "kind": "failed", "error": type(error).__name__ + ": " + str(error)[:500]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
