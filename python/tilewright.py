"""Tilewright from Python: compile and call tile kernels on NumPy and PyTorch arrays, without copies.

    import numpy, tilewright
    kernels = tilewright.load("matmul_relu.tile")
    c = kernels.matmul_relu(a, b)                  # the output is allocated, of the first array's library
    kernels.matmul_relu(a, b, out=c)               # or given
    kernels.matmul_relu(a, b, block_M=96)          # parameters and scalar arguments by name

This file needs the standard library only and talks to libtilewright.so by its C ABI; copy it anywhere. Arrays are
taken by `__array_interface__` or DLPack. A kernel file built ahead of time (`.twk`) loads the same way, then
libtilewright_runtime.so is enough. A call runs where its arrays are: CUDA tensors of PyTorch on their device, on the
current stream, without waiting; `synchronise` waits and raises what a launch left behind (a failed assertion). The library is looked for in $TILEWRIGHT_LIBRARY, beside this file, in the build
tree and by the system's loader. Calls release the GIL; a kernel may be called from several threads.
"""

import ctypes
import json
import operator
import os
import sys
import threading

__all__ = ["load", "synchronise", "Error", "ArgumentError", "CompileError", "Kernels", "Kernel"]

_ABI_VERSION = 1
_MAX_RANK = 8
_CPU, _CUDA = 0, 1
_DL_CUDA = 2  # of DLPack
_READ_ONLY, _ABSENT = 1, 2
_IN, _OUT, _INOUT = 0, 1, 2

# Our spelling, NumPy's, PyTorch's: in the order of tw_dtype.
_DTYPES = [
    ("bool", "bool", "bool"), ("i8", "int8", "int8"), ("i16", "int16", "int16"), ("i32", "int32", "int32"),
    ("i64", "int64", "int64"), ("u8", "uint8", "uint8"), ("u16", "uint16", "uint16"), ("u32", "uint32", "uint32"),
    ("u64", "uint64", "uint64"), ("f16", "float16", "float16"), ("bf16", None, "bfloat16"),
    ("f32", "float32", "float32"), ("f64", "float64", "float64"), ("e4m3", None, "float8_e4m3fn"),
    ("e5m2", None, "float8_e5m2"),
]
_DTYPE_OF_TYPESTR = {"|b1": 0, "|i1": 1, "<i2": 2, "<i4": 3, "<i8": 4, "|u1": 5, "<u2": 6, "<u4": 7, "<u8": 8,
                     "<f2": 9, "<f4": 11, "<f8": 12}
_BYTES = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1]


class Error(RuntimeError):
    """What the library refused: `code` is "E1403", `name` "wrong_dtype"."""

    def __init__(self, code, name, message):
        super().__init__(f"{message} [{code} {name}]" if code else message)
        self.code, self.name, self.message = code, name, message


class ArgumentError(Error, ValueError):
    """An argument that the kernel cannot take."""


class CompileError(Error):
    """The kernel source is wrong, or this target cannot run it."""


# ---- the C ABI ------------------------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("extents", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("flags", ctypes.c_uint32), ("device", ctypes.c_int32)]


class _ScalarValue(ctypes.Union):
    _fields_ = [("integer", ctypes.c_int64), ("floating", ctypes.c_double)]


class _Scalar(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("value", _ScalarValue)]


class _Arguments(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(_Tensor)), ("tensor_count", ctypes.c_size_t),
                ("scalars", ctypes.POINTER(_Scalar)), ("scalar_count", ctypes.c_size_t)]


class _TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("access", ctypes.c_int32), ("is_absent", ctypes.c_int32)]


class _ScalarInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("has_default", ctypes.c_int32)]


class _CompileRequest(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("source", ctypes.c_char_p),
                ("kernel", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("parameters", ctypes.POINTER(ctypes.c_char_p)), ("parameter_count", ctypes.c_size_t),
                ("arguments", ctypes.POINTER(_Arguments)),
                ("cache_folder", ctypes.c_char_p)]


_HANDLE = ctypes.c_void_p
_FUNCTIONS = {  # name: (result, arguments); a _HANDLE result of those below _STATUS_FUNCTIONS is a tw_status*
    "tw_abi_version": (ctypes.c_uint32, []),
    "tw_status_code": (ctypes.c_int32, [_HANDLE]),
    "tw_status_code_text": (ctypes.c_char_p, [_HANDLE]),
    "tw_status_name": (ctypes.c_char_p, [_HANDLE]),
    "tw_status_message": (ctypes.c_char_p, [_HANDLE]),
    "tw_status_is_wrong_class": (ctypes.c_int32, [_HANDLE]),
    "tw_status_free": (None, [_HANDLE]),
    "tw_device_open": (_HANDLE, [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(_HANDLE)]),
    "tw_device_name": (ctypes.c_char_p, [_HANDLE]),
    "tw_device_synchronise": (_HANDLE, [_HANDLE, _HANDLE]),
    "tw_buffer_allocate": (_HANDLE, [_HANDLE, ctypes.c_size_t, ctypes.POINTER(_HANDLE)]),
    "tw_buffer_free": (None, [_HANDLE]),
    "tw_buffer_data": (_HANDLE, [_HANDLE]),
    "tw_buffer_bytes": (ctypes.c_size_t, [_HANDLE]),
    "tw_plan_load": (_HANDLE, [_HANDLE, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_HANDLE)]),
    "tw_plan_free": (None, [_HANDLE]),
    "tw_plan_kernel": (ctypes.c_char_p, [_HANDLE]),
    "tw_plan_tensor_count": (ctypes.c_size_t, [_HANDLE]),
    "tw_plan_scalar_count": (ctypes.c_size_t, [_HANDLE]),
    "tw_plan_tensor_info": (_HANDLE, [_HANDLE, ctypes.c_size_t, ctypes.POINTER(_TensorInfo)]),
    "tw_plan_scalar_info": (_HANDLE, [_HANDLE, ctypes.c_size_t, ctypes.POINTER(_ScalarInfo)]),
    "tw_plan_workspace_bytes": (_HANDLE, [_HANDLE, ctypes.POINTER(_Arguments), ctypes.POINTER(ctypes.c_size_t)]),
    "tw_plan_infer_extents": (_HANDLE, [_HANDLE, ctypes.POINTER(_Arguments), ctypes.c_size_t,
                                        ctypes.POINTER(ctypes.c_int64)]),
    "tw_execute": (_HANDLE, [_HANDLE, ctypes.POINTER(_Arguments), _HANDLE, ctypes.c_size_t, _HANDLE]),
    "tw_tensor_from_dlpack": (_HANDLE, [_HANDLE, ctypes.POINTER(_Tensor)]),
    "tw_tensor_from_dlpack_versioned": (_HANDLE, [_HANDLE, ctypes.POINTER(_Tensor)]),
    "tw_compiler_open": (_HANDLE, [ctypes.POINTER(_HANDLE)]),
    "tw_compiler_describe": (_HANDLE, [_HANDLE, ctypes.c_char_p, ctypes.POINTER(_HANDLE)]),
    "tw_compiler_compile": (_HANDLE, [_HANDLE, ctypes.POINTER(_CompileRequest), ctypes.POINTER(_HANDLE)]),
    "tw_compiled_data": (_HANDLE, [_HANDLE]),
    "tw_compiled_size": (ctypes.c_size_t, [_HANDLE]),
    "tw_compiled_free": (None, [_HANDLE]),
}


def _candidates():
    if os.environ.get("TILEWRIGHT_LIBRARY"):
        return [os.environ["TILEWRIGHT_LIBRARY"]]
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [here, os.path.join(here, "..", "lib"), os.path.join(here, "..", "..", "lib"),
               os.path.join(here, "..", "..", "..", "lib"), os.path.join(here, "..", "build", "release", "lib")]
    names = ["libtilewright.so", "libtilewright.so.1", "libtilewright_runtime.so", "libtilewright_runtime.so.1"]
    return [os.path.join(folder, name) for name in names for folder in folders] + names


class _Library:
    """The loaded library, its devices and its compiler; made on first use."""

    def __init__(self):
        reasons = []
        for path in _candidates():
            if os.sep in path and not os.path.exists(path):
                continue
            try:
                self.dll = ctypes.CDLL(path)
                break
            except OSError as error:
                reasons.append(str(error))
        else:
            raise Error("", "", "libtilewright.so was not found: set TILEWRIGHT_LIBRARY to it " + "; ".join(reasons))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self.dll, name)
            function.restype, function.argtypes = result, arguments
        if self.dll.tw_abi_version() != _ABI_VERSION:
            raise Error("", "", f"{path} has ABI version {self.dll.tw_abi_version()}, this file needs {_ABI_VERSION}")
        self.lock = threading.Lock()
        self._devices = {}
        self._compiler = None

    def check(self, status):
        """Raises when `status` is a failure, and frees it."""
        if not status:
            return
        code = self.dll.tw_status_code(status)
        read = (self.dll.tw_status_code_text, self.dll.tw_status_name, self.dll.tw_status_message)
        texts = [text(status).decode(errors="replace") for text in read]
        self.dll.tw_status_free(status)
        kind = ArgumentError if 1400 <= code < 1420 else CompileError if code < 3000 else Error
        raise kind(*texts)

    def make(self, function, *arguments):
        """The handle that `function` writes through its last argument."""
        handle = _HANDLE()
        self.check(function(*arguments, ctypes.byref(handle)))
        return handle

    @property
    def compiler(self):
        with self.lock:
            if self._compiler is None:
                self._compiler = self.make(self.dll.tw_compiler_open)
        return self._compiler

    def device(self, name):
        """The device called "cpu" or "cuda:0", opened on first use."""
        with self.lock:
            if name not in self._devices:
                self._devices[name] = self.make(self.dll.tw_device_open, name.encode(), None)
            return self._devices[name]

    def take(self, compiled):
        """The bytes of a tw_compiled, which is freed."""
        try:
            return ctypes.string_at(self.dll.tw_compiled_data(compiled), self.dll.tw_compiled_size(compiled))
        finally:
            self.dll.tw_compiled_free(compiled)


_library_lock = threading.Lock()
_library = None


def _get_library():
    global _library
    with _library_lock:
        if _library is None:
            _library = _Library()
    return _library


# ---- arrays ---------------------------------------------------------------------------------------------------------

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.restype, _capsule_is.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def _int64s(values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


class _View:
    """A tw_tensor over an array, what must stay alive with it, and the name of the device it is on (None: absent)."""

    def __init__(self, library, name, array):
        self.tensor = _Tensor()
        self.keep = [array]
        self.where = None if array is None else "cpu"
        if array is None:
            self.tensor.flags = _ABSENT
        elif hasattr(array, "__array_interface__"):
            self._from_interface(name, array)
        elif hasattr(array, "__dlpack__"):
            self._from_dlpack(library, name, array)
        else:
            raise ArgumentError("", "", f"{name}: {type(array).__name__} is not an array of NumPy, PyTorch or DLPack")

    def _from_interface(self, name, array):
        interface = array.__array_interface__
        dtype = _DTYPE_OF_TYPESTR.get(interface["typestr"])
        if dtype is None and str(getattr(array, "dtype", "")) == "bfloat16":
            dtype = 10
        if dtype is None:
            raise ArgumentError("", "", f"{name}: elements of type {interface['typestr']} are not supported")
        shape, strides, size = interface["shape"], interface.get("strides"), _BYTES[dtype]
        if len(shape) > _MAX_RANK:
            raise ArgumentError("", "", f"{name}: has {len(shape)} axes, at most {_MAX_RANK} are possible")
        if strides is not None and any(stride % size for stride in strides):
            raise ArgumentError("", "", f"{name}: its strides are not whole elements")
        self.keep.append(extents := _int64s(shape))
        self.tensor.data = interface["data"][0] or None
        self.tensor.extents = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            self.keep.append(elements := _int64s([stride // size for stride in strides]))
            self.tensor.strides = ctypes.cast(elements, ctypes.POINTER(ctypes.c_int64))
        self.tensor.dtype, self.tensor.rank, self.tensor.device = dtype, len(shape), _CPU
        self.tensor.flags = _READ_ONLY if interface["data"][1] else 0

    def _from_dlpack(self, library, name, array):
        kind, ordinal = array.__dlpack_device__()
        try:  # PyTorch's current stream is the one that will run: nothing to wait for (-1); of others the default one (1)
            capsule = array.__dlpack__(stream=-1 if _is_torch(array) else 1) if kind == _DL_CUDA else array.__dlpack__()
        except (BufferError, RuntimeError) as error:
            raise ArgumentError("", "", f"{name}: {error}") from None
        self.keep.append(capsule)  # its destructor gives the tensor back: we never consume it
        if _capsule_is(capsule, b"dltensor_versioned"):
            function, capsule_name = library.dll.tw_tensor_from_dlpack_versioned, b"dltensor_versioned"
        else:
            function, capsule_name = library.dll.tw_tensor_from_dlpack, b"dltensor"
        library.check(function(_capsule_pointer(capsule, capsule_name), ctypes.byref(self.tensor)))
        if self.tensor.device == _CUDA:
            self.where = f"cuda:{ordinal}"


def _is_torch(array):
    return type(array).__module__.split(".")[0] == "torch"


def _stream_for(where, like):
    """The stream that a call on arrays like this one runs on: PyTorch's current one, else the device's default (None)."""
    if where == "cpu" or not _is_torch(like):
        return None
    return sys.modules["torch"].cuda.current_stream(like.device).cuda_stream or None


def _allocate(like, shape, dtype):
    """A new array of the same library as `like`."""
    _, numpy_name, torch_name = _DTYPES[dtype]
    module = type(like).__module__.split(".")[0]
    if module == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, torch_name), device=like.device)
    if module == "numpy":
        numpy = sys.modules["numpy"]
        if numpy_name is None:
            try:
                import ml_dtypes  # NumPy has no narrow floats of its own
                return numpy.empty(shape, dtype=getattr(ml_dtypes, torch_name))
            except ImportError:
                message = f"NumPy has no {torch_name}: install ml_dtypes or use PyTorch tensors"
                raise ArgumentError("", "", message) from None
        return numpy.empty(shape, dtype=numpy_name)
    raise ArgumentError("", "", f"outputs cannot be allocated for arrays of {module}: give them with out=")


# ---- kernels --------------------------------------------------------------------------------------------------------


class _Plan:
    def __init__(self, library, where, artefact):
        self.library, self.where = library, where
        self.workspaces = {}  # free ones by stream (work on one stream is in order); operations are atomic
        self.handle = library.make(library.dll.tw_plan_load, library.device(where), artefact, len(artefact))

    def __del__(self):
        dll = self.library.dll
        for free in self.workspaces.values():
            for workspace in free:
                dll.tw_buffer_free(workspace)
        if getattr(self, "handle", None):
            dll.tw_plan_free(self.handle)

    def execute(self, arguments, stream):
        """A tw_status*."""
        dll, needed = self.library.dll, ctypes.c_size_t()
        status = dll.tw_plan_workspace_bytes(self.handle, ctypes.byref(arguments), ctypes.byref(needed))
        if status:
            return status
        free = self.workspaces.setdefault(stream, [])
        workspace = self._workspace(free, needed.value)
        try:
            data = dll.tw_buffer_data(workspace) if workspace else None
            return dll.tw_execute(self.handle, ctypes.byref(arguments), data, needed.value, stream)
        finally:
            if workspace:
                free.append(workspace)

    def _workspace(self, free, size):
        dll = self.library.dll
        if size == 0:
            return None
        try:
            workspace = free.pop()
            if dll.tw_buffer_bytes(workspace) >= size:
                return workspace
            dll.tw_buffer_free(workspace)
        except IndexError:
            pass
        return self.library.make(dll.tw_buffer_allocate, self.library.device(self.where), size)

    def describe(self):
        dll, tensor, scalar = self.library.dll, _TensorInfo(), _ScalarInfo()
        out = {"name": dll.tw_plan_kernel(self.handle).decode(), "tensors": [], "scalars": [], "parameters": []}
        for i in range(dll.tw_plan_tensor_count(self.handle)):
            self.library.check(dll.tw_plan_tensor_info(self.handle, i, ctypes.byref(tensor)))
            out["tensors"].append({"name": tensor.name.decode(), "dtype": _DTYPES[tensor.dtype][0],
                                   "rank": tensor.rank, "access": ["in", "out", "inout"][tensor.access],
                                   "optional": bool(tensor.is_absent)})
        for i in range(dll.tw_plan_scalar_count(self.handle)):
            self.library.check(dll.tw_plan_scalar_info(self.handle, i, ctypes.byref(scalar)))
            out["scalars"].append({"name": scalar.name.decode(), "dtype": _DTYPES[scalar.dtype][0]})
        return out


class Kernel:
    """One kernel of a file. Call it with its tensors in order (or by name), scalars and parameters by name.

    Outputs that are not given are allocated and returned: one alone, several as a tuple. `out` gives them (one array or
    a sequence). An optional tensor may be None.
    """

    def __init__(self, library, description, path=None, ready=None):
        self._library, self._path, self._ready = library, path, ready  # ready: the one plan of a kernel file
        self.description = description
        self.__name__ = description["name"]
        self._tensors = description["tensors"]
        self._scalars = description["scalars"]
        self._parameters = {parameter["name"] for parameter in description["parameters"]}
        self._plans = {}  # by device and chosen parameters, the latest compiled first
        self._lock = threading.Lock()
        self.__doc__ = f"{self.__name__}(" + ", ".join(
            [tensor["name"] for tensor in self._tensors] + [scalar["name"] + "=" for scalar in self._scalars]) + ")"

    def __repr__(self):
        return f"<tilewright kernel {self.__doc__}>"

    def __call__(self, *arrays, out=None, **named):
        given, scalars, parameters = self._sort_arguments(arrays, out, named)
        views = [self._view(tensor, given) for tensor in self._tensors]
        missing = [i for i, tensor in enumerate(self._tensors)
                   if tensor["access"] == "out" and tensor["name"] not in given]
        call = self._arguments(views, scalars)
        first = next((array for array in given.values() if array is not None), None)
        where = self._where(views)
        plans = [self._ready] if self._ready else self._plans.setdefault((where, parameters), [])
        if missing:
            plan = self._plan_for(plans, where, parameters, call)
            for i in missing:
                given[self._tensors[i]["name"]] = array = self._allocate_output(plan, call, i, first)
                views[i] = _View(self._library, self._tensors[i]["name"], array)
            call = self._arguments(views, scalars)
        self._execute(plans, where, parameters, call, _stream_for(where, first))
        outputs = [given[tensor["name"]] for tensor in self._tensors if tensor["access"] != "in"]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _where(self, views):
        """The device that all arrays are on."""
        found = {}
        for tensor, view in zip(self._tensors, views):
            if view.where is not None:
                found.setdefault(view.where, tensor["name"])
        if len(found) > 1:
            places = ", ".join(f"{name} on {where}" for where, name in found.items())
            raise ArgumentError("E1413", "wrong_device", f"{self.__name__}: its arrays are on several devices: {places}")
        return next(iter(found), "cpu")

    def _sort_arguments(self, arrays, out, named):
        names = [tensor["name"] for tensor in self._tensors]
        readable = [tensor["name"] for tensor in self._tensors if tensor["access"] != "out"]
        order = names if len(arrays) > len(readable) else readable
        if len(arrays) > len(names):
            message = f"{self.__name__} takes {len(names)} tensors ({', '.join(names)}), got {len(arrays)}"
            raise ArgumentError("", "", message)
        given = dict(zip(order, arrays))
        written = [tensor["name"] for tensor in self._tensors if tensor["access"] == "out"]
        if out is not None:
            given.update(zip(written, out if isinstance(out, (tuple, list)) else [out]))
        scalar_names = [scalar["name"] for scalar in self._scalars]
        scalars, parameters = {}, {}
        for name, value in named.items():
            if name in names:
                given[name] = value
            elif name in scalar_names:
                scalars[name] = value
            elif name in self._parameters or self._path is not None and not self._parameters:
                parameters[name] = value
            else:
                raise ArgumentError("", "", f"{self.__name__} has no argument or parameter '{name}'; it has: " +
                                    ", ".join(names + scalar_names + sorted(self._parameters)))
        return given, scalars, tuple(sorted((name, str(value)) for name, value in parameters.items()))

    def _view(self, tensor, given):
        name = tensor["name"]
        if name in given:
            view = _View(self._library, name, given[name])
            if given[name] is not None and view.tensor.rank != tensor["rank"]:
                raise ArgumentError("E1404", "wrong_rank",
                                    f"{name}: expected {tensor['rank']} axes, got {view.tensor.rank}")
            return view
        if tensor["access"] == "out":  # to be allocated: its extents are not known yet
            view = _View(self._library, name, None)
            view.tensor.flags, view.tensor.rank = 0, tensor["rank"]
            if tensor["dtype"] in [row[0] for row in _DTYPES]:
                view.tensor.dtype = [row[0] for row in _DTYPES].index(tensor["dtype"])
            else:
                view.tensor.dtype = -1  # depends on a parameter
            return view
        if tensor["optional"]:
            return _View(self._library, name, None)
        raise ArgumentError("", "", f"{self.__name__}: {name} is missing")

    def _arguments(self, views, scalars):
        tensors = (_Tensor * max(1, len(views)))(*[view.tensor for view in views])
        values = (_Scalar * max(1, len(self._scalars)))()
        for value, scalar in zip(values, self._scalars):
            if scalar["name"] not in scalars:
                continue
            given = scalars[scalar["name"]]
            try:
                value.kind, whole = 1, operator.index(given)  # NumPy's integers too
            except TypeError:
                value.kind, value.value.floating = 2, float(given)
                continue
            low, high = (0, 2**64) if scalar["dtype"] == "u64" else (-2**63, 2**63)
            if not low <= whole < high:
                raise ArgumentError("E1415", "wrong_scalar", f"{scalar['name']}: {whole} does not fit in 64 bits")
            value.value.integer = whole if whole < 2**63 else whole - 2**64  # u64: its bits
        call = _Arguments(tensors, len(views), values, len(self._scalars))
        call.keep = (views, tensors, values)
        return call

    def _compile(self, where, parameters, call):
        if self._path is None:
            raise Error("", "", f"{self.__name__}: a kernel built ahead of time cannot be compiled for other arguments")
        library = self._library
        texts = [f"{name}={value}".encode() for name, value in parameters]
        request = _CompileRequest(ctypes.sizeof(_CompileRequest), os.fsencode(self._path), None, self.__name__.encode(),
                                  where.encode(), (ctypes.c_char_p * max(1, len(texts)))(*texts), len(texts),
                                  ctypes.pointer(call), None)
        compiled = library.make(library.dll.tw_compiler_compile, library.compiler, ctypes.byref(request))
        return _Plan(library, where, library.take(compiled))

    def _plan_for(self, plans, where, parameters, call):
        """Any plan that understands these shapes; compiled when there is none."""
        needed = ctypes.c_size_t()
        for plan in list(plans):
            dll = self._library.dll
            status = dll.tw_plan_workspace_bytes(plan.handle, ctypes.byref(call), ctypes.byref(needed))
            if self._path is None:  # the one plan there is: it says what it expects
                self._library.check(status)
                return plan
            if not status and self._dtypes_agree(plan, call):
                return plan
            dll.tw_status_free(status)
        with self._lock:
            plan = self._compile(where, parameters, call)
            plans.insert(0, plan)
        return plan

    def _dtypes_agree(self, plan, call):
        wanted = plan.describe()["tensors"]
        return all(call.tensors[i].dtype in (-1, [row[0] for row in _DTYPES].index(wanted[i]["dtype"])) or
                   call.tensors[i].flags & _ABSENT for i in range(len(wanted)))

    def _allocate_output(self, plan, call, index, like):
        extents, info, library = (ctypes.c_int64 * _MAX_RANK)(), _TensorInfo(), self._library
        library.check(library.dll.tw_plan_infer_extents(plan.handle, ctypes.byref(call), index, extents))
        library.check(library.dll.tw_plan_tensor_info(plan.handle, index, ctypes.byref(info)))
        return _allocate(like, tuple(extents[: info.rank]), info.dtype)

    def _execute(self, plans, where, parameters, call, stream):
        dll = self._library.dll
        for plan in list(plans):
            status = plan.execute(call, stream)
            if not status:
                return
            code = dll.tw_status_code(status)
            # Another set of tensors, dtype, extent or class may be another plan's; the rest is final.
            is_final = not (dll.tw_status_is_wrong_class(status) or code in (1402, 1403, 1405, 1410))
            if is_final or self._path is None:
                self._library.check(status)
            dll.tw_status_free(status)
        with self._lock:
            plan = self._compile(where, parameters, call)
            plans.insert(0, plan)
        self._library.check(plan.execute(call, stream))


class Kernels:
    """The kernels of a file, as attributes and by iteration."""

    def __init__(self, kernels):
        self._kernels = {kernel.__name__: kernel for kernel in kernels}

    def __getattr__(self, name):
        try:
            return self._kernels[name]
        except KeyError:
            raise AttributeError(f"no kernel '{name}'; there are: {', '.join(self._kernels)}") from None

    def __getitem__(self, name):
        return self._kernels[name]

    def __iter__(self):
        return iter(self._kernels.values())

    def __dir__(self):
        return list(self._kernels)

    def __repr__(self):
        return "\n".join(map(repr, self)) or "<no tilewright kernels>"


def _load_plan(library, artefact):
    """On the CPU, or on the first CUDA device when it was built for one."""
    try:
        return _Plan(library, "cpu", artefact)
    except ArgumentError as error:
        if error.name != "wrong_device":
            raise
    return _Plan(library, "cuda:0", artefact)


def synchronise(device="cuda:0"):
    """Waits for PyTorch's current stream on `device` (else its default stream) and raises what a launch left behind."""
    library, stream = _get_library(), None
    if device != "cpu" and "torch" in sys.modules:
        stream = sys.modules["torch"].cuda.current_stream(device).cuda_stream or None
    library.check(library.dll.tw_device_synchronise(library.device(device), stream))


def load(path):
    """The kernels of a `.tile` source or a `.twk` kernel file. Nothing is compiled before the first call."""
    library, path = _get_library(), os.fspath(path)
    if path.endswith(".twk"):
        with open(path, "rb") as file:
            plan = _load_plan(library, file.read())
        return Kernels([Kernel(library, plan.describe(), ready=plan)])
    text = library.take(library.make(library.dll.tw_compiler_describe, library.compiler, os.fsencode(path)))
    return Kernels([Kernel(library, description, path=path) for description in json.loads(text)["kernels"]])
