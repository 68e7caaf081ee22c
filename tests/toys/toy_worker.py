"""A worker with planted faults, standard library only. Its option says what it does: die, hang, garbage, slow_reply,
lie (claims a tenth of its time), lie0.3 (three tenths), zero, negative, truth. It computes `add` on f32, each launch lasting 2 ms."""
import array
import json
import mmap
import os
import sys
import time

state = {"options": "", "args": []}


def load(arg):
    fd = os.open(arg["path"], os.O_RDWR)
    memory = mmap.mmap(fd, arg["bytes"])
    os.close(fd)
    return memory


def launch(count):
    times = []
    a, b, c = state["args"]
    for _ in range(count):
        start = time.perf_counter()
        n = a["shape"][0]
        x, y = array.array("f"), array.array("f")
        x.frombytes(a["memory"][a["offset"]:a["offset"] + 4 * n])
        y.frombytes(b["memory"][b["offset"]:b["offset"] + 4 * n])
        c["memory"][c["offset"]:c["offset"] + 4 * n] = array.array("f", [p + q for p, q in zip(x, y)]).tobytes()
        while time.perf_counter() - start < 0.002:
            pass
        times.append((time.perf_counter() - start) * 1e3)
    return [factor() * t for t in times]


def factor():
    """What it claims of a time."""
    option = state["options"]
    if option.startswith("lie"):
        return float(option[3:] or 0.1)
    return {"zero": 0.0, "negative": -1.0}.get(option, 1.0)


def answer(request):
    op = request["op"]
    if op == "open":
        state["options"] = request["options"]
        if state["options"] == "missing":
            return {"ok": False, "kind": "not-installed", "error": "package nowhere is not installed", "help": "pip install nowhere"}
        return {"ok": True, "name": "toy-worker-" + state["options"], "version": "1", "libraries": {"python": sys.version.split()[0]}}
    if op == "prepare":
        return {"ok": True, "digest": request["digest"]}
    if op == "compile":
        return {"ok": True, "compiles": 1, "cache_hits": 0}
    if op == "bind":
        state["args"] = [dict(arg, memory=load(arg)) for arg in request["args"]]
        return {"ok": True}
    if op == "launch":
        if state["options"] == "die":
            print("the toy worker dies now", file=sys.stderr, flush=True)
            os._exit(3)
        if state["options"] == "hang":
            time.sleep(1000)
        if state["options"] == "garbage":
            return "this is not an object"
        return {"ok": True, "ms": launch(request["n"])}
    return {"ok": True}


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "close":
        break
    print(json.dumps(answer(request)), flush=True)
