"""Tests of python/tilewright.py: standard library unittest; the parts that need NumPy or PyTorch are skipped without them.

    TILEWRIGHT_LIBRARY=…/libtilewright_runtime.so TW_ADD_TWK=…/add.twk python3 tests/python/tilewright_test.py
"""

import importlib.util
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import tilewright  # noqa: E402

HAVE_NUMPY = importlib.util.find_spec("numpy") is not None
HAVE_TORCH = importlib.util.find_spec("torch") is not None


class RawArray:
    """The least that `__array_interface__` asks for: needs no package."""

    def __init__(self, values, read_only=False):
        import ctypes
        self.memory = (ctypes.c_float * len(values))(*values)
        self.__array_interface__ = {"shape": (len(values),), "typestr": "<f4", "version": 3,
                                    "data": (ctypes.addressof(self.memory), read_only)}


@unittest.skipUnless("TW_ADD_TWK" in os.environ, "TW_ADD_TWK is not set")
class AheadOfTime(unittest.TestCase):
    def setUp(self):
        self.kernels = tilewright.load(os.environ["TW_ADD_TWK"])
        self.add = self.kernels.add

    def test_describes_itself(self):
        self.assertEqual(repr(self.add), "<tilewright kernel add(a, b, c, scale=)>")
        self.assertEqual(dir(self.kernels), ["add"])
        with self.assertRaisesRegex(AttributeError, "no kernel 'mul'; there are: add"):
            self.kernels.mul

    def test_runs_on_plain_memory(self):
        a, b, c = RawArray([1, 2, 3]), RawArray([10, 20, 30]), RawArray([0, 0, 0])
        self.assertIs(self.add(a, b, out=c), c)
        self.assertEqual(list(c.memory), [11, 22, 33])
        self.add(a, b, c, scale=0.5)
        self.assertEqual(list(c.memory), [6, 12, 18])
        self.add(a, b=b, c=c, scale=2)
        self.assertEqual(list(c.memory), [21, 42, 63])

    def test_errors_name_the_argument(self):
        a, b, c = RawArray([1, 2, 3]), RawArray([1, 2]), RawArray([0, 0, 0])
        with self.assertRaisesRegex(tilewright.ArgumentError, "b: axis 0 .n. has extent 2, expected 3") as caught:
            self.add(a, b, out=c)
        self.assertEqual(caught.exception.code, "E1405")
        with self.assertRaisesRegex(tilewright.ArgumentError, "c: the kernel writes it, but the tensor is read-only"):
            self.add(a, a, out=RawArray([0, 0, 0], read_only=True))
        with self.assertRaisesRegex(tilewright.ArgumentError, "c is written and overlaps a in memory"):
            self.add(a, a, out=a)
        with self.assertRaisesRegex(tilewright.ArgumentError, "a: list is not an array"):
            self.add([1.0], a, out=c)
        with self.assertRaisesRegex(tilewright.ArgumentError, "add has no argument or parameter 'size'"):
            self.add(a, a, out=c, size=3)
        with self.assertRaisesRegex(tilewright.ArgumentError, "add: b is missing"):
            self.add(a)
        with self.assertRaisesRegex(tilewright.ArgumentError, "scale: 18446744073709551616 does not fit in 64 bits"):
            self.add(a, a, out=c, scale=2**64)
        with self.assertRaisesRegex(tilewright.Error, "assertion failed"):
            self.add(RawArray([-12345.0]), RawArray([0.0]), out=RawArray([0.0]))

    def test_threads(self):
        failures = []

        def work():
            a, b, c = RawArray(range(5000)), RawArray(range(5000)), RawArray([0] * 5000)
            for _ in range(20):
                self.add(a, b, out=c)
            if list(c.memory) != [2 * i for i in range(5000)]:
                failures.append("wrong")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    @unittest.skipUnless(HAVE_NUMPY, "NumPy is not installed")
    def test_numpy_without_copies(self):
        import numpy
        a, b = numpy.arange(6, dtype=numpy.float32), numpy.ones(6, dtype=numpy.float32)
        c = self.add(a, b)
        self.assertIsInstance(c, numpy.ndarray)
        numpy.testing.assert_array_equal(c, a + 1)
        out = numpy.zeros(12, dtype=numpy.float32)
        self.add(a, b, out=out[3:9])  # a view of the caller's memory is written
        numpy.testing.assert_array_equal(out[3:9], a + 1)
        self.assertEqual(out[2], 0)
        with self.assertRaisesRegex(tilewright.ArgumentError, "a: axis 0 .n. has stride 2, this plan needs 1"):
            self.add(numpy.zeros(12, dtype=numpy.float32)[::2], b)
        with self.assertRaisesRegex(tilewright.ArgumentError, "a: expected f32, got f64"):
            self.add(a.astype(float), b, out=c)
        self.assertEqual(self.add(a[:0], b[:0]).shape, (0,))
        with self.assertRaisesRegex(tilewright.ArgumentError, "b: expected 1 axes, got 2"):
            self.add(a, b.reshape(2, 3))
        numpy.testing.assert_array_equal(self.add(a, b, scale=numpy.int64(2)), a + 2)
        with self.assertRaisesRegex(tilewright.ArgumentError, "a: expected f32, got f64"):
            self.add(a.astype(float), b)

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_torch_without_copies(self):
        import torch
        a, b = torch.arange(6, dtype=torch.float32), torch.ones(6)
        c = self.add(a, b)
        self.assertIsInstance(c, torch.Tensor)
        self.assertTrue(torch.equal(c, a + 1))
        self.assertIs(self.add(a, b, out=c, scale=3.0), c)
        self.assertTrue(torch.equal(c, a + 3))

    def test_a_source_needs_the_compiler(self):
        if os.environ["TILEWRIGHT_LIBRARY"].endswith("libtilewright.so"):
            self.skipTest("this library has one")
        with self.assertRaisesRegex(tilewright.Error, "no_compiler"):
            tilewright.load("nothing.tile")


@unittest.skipUnless("TW_KERNELS" in os.environ, "TW_KERNELS, the folder of .tile files, is not set")
class JustInTime(unittest.TestCase):
    @unittest.skipUnless(HAVE_NUMPY, "NumPy is not installed")
    def test_compiles_and_calls(self):
        import numpy
        kernels = tilewright.load(os.path.join(os.environ["TW_KERNELS"], "matmul_relu.tile"))
        random = numpy.random.default_rng(1)
        for shape in [(64, 64, 64), (65, 33, 17), (64, 64, 64)]:
            m, n, k = shape
            a = random.integers(-3, 4, (m, k)).astype(numpy.float32)
            b = random.integers(-3, 4, (k, n)).astype(numpy.float32)
            c = kernels.matmul_relu(a, b, T="f32")
            numpy.testing.assert_array_equal(c, numpy.maximum(a @ b, 0))

    @unittest.skipUnless(HAVE_NUMPY, "NumPy is not installed")
    def test_optional_tensors(self):
        import numpy
        kernel = tilewright.load(os.path.join(os.environ["TW_KERNELS"], "matmul.tile")).matmul_epilogue
        a, b = numpy.ones((4, 5), dtype=numpy.float32), numpy.ones((5, 6), dtype=numpy.float32)
        bias, residual = numpy.arange(6, dtype=numpy.float32), numpy.full((4, 6), 100, dtype=numpy.float32)
        for _ in range(2):
            numpy.testing.assert_array_equal(kernel(a, b), a @ b)
            numpy.testing.assert_array_equal(kernel(a, b, bias), a @ b + bias)
            numpy.testing.assert_array_equal(kernel(a, b, None, residual), a @ b + residual)
            numpy.testing.assert_array_equal(kernel(a, b, bias=bias, residual=residual), a @ b + bias + residual)

    @unittest.skipUnless(HAVE_NUMPY, "NumPy is not installed")
    def test_a_plan_for_each_constant_dimension(self):
        import numpy
        softmax = tilewright.load(os.path.join(os.environ["TW_KERNELS"], "softmax.tile")).softmax
        for columns in (7, 3, 7, 8):
            rows = softmax(numpy.ones((5, columns), dtype=numpy.float32))
            numpy.testing.assert_allclose(rows, numpy.full((5, columns), 1 / columns), rtol=1e-6)

    def test_errors_carry_the_caret(self):
        with self.assertRaises(tilewright.Error):
            tilewright.load("/nowhere/kernel.tile")


def have_cuda():
    if not HAVE_TORCH:
        return False
    import torch
    return torch.cuda.is_available()


@unittest.skipUnless("TW_KERNELS" in os.environ and have_cuda(), "needs PyTorch and a CUDA device")
class OnACudaDevice(unittest.TestCase):
    def setUp(self):
        import torch
        self.torch = torch
        self.matmul = tilewright.load(os.path.join(os.environ["TW_KERNELS"], "matmul.tile")).matmul

    def check(self, a, b):
        c = self.matmul(a, b)
        self.assertEqual(c.device, a.device)
        expected = a.double() @ b.double()
        self.torch.testing.assert_close(c.double(), expected, rtol=2e-2, atol=2e-2)

    def test_runs_where_its_arrays_are(self):
        torch = self.torch
        torch.manual_seed(1)
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            a = torch.rand(129, 257, device="cuda:0", dtype=dtype) - 0.5
            b = torch.rand(257, 65, device="cuda:0", dtype=dtype) - 0.5
            self.check(a, b)
            self.check(a[1:, 1:], b[1:])  # another class: addresses and pitches between steps of 16 bytes
            self.check(a[:, :256].contiguous(), b[:256, :64].contiguous())

    def test_runs_on_the_current_stream(self):
        torch = self.torch
        side = torch.cuda.Stream()
        a, b = torch.ones(64, 64, device="cuda:0"), torch.ones(64, 64, device="cuda:0")
        self.matmul(a, b)  # compiled
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            a.fill_(2)  # a call on another stream would still read ones
            c = self.matmul(a, b)
        side.synchronize()
        self.assertTrue(bool((c == 128).all()))
        tilewright.synchronise("cuda:0")

    def test_arrays_on_two_devices_are_refused(self):
        a, b = self.torch.ones(8, 8, device="cuda:0"), self.torch.ones(8, 8)
        with self.assertRaisesRegex(tilewright.ArgumentError, "several devices: A on cuda:0, B on cpu"):
            self.matmul(a, b)


if __name__ == "__main__":
    unittest.main()
