// A kernel in C++ as text, with the public header alone.
#include <tilewright/kernel.h>

#include <cstdio>

int main() {
  using namespace tilewright::kernel;
  KernelBuilder k("twice");
  const Index N = k.dim("N");
  const Tile X = k.input("X", DType::F32, {N}), Y = k.output("Y", DType::F32, {N});
  k.grid({ceildiv(N, 64)}, threads(64), [&](Index b) {
    const Tile x = fragment(DType::F32, {64});
    copy(X[{at(b * 64, 64)}], x);
    x.all() = 2 * x;
    copy(x, Y[{at(b * 64, 64)}]);
  });
  const std::string text = k.text();
  const bool is_there = text.find("copy(X[b1 * 64 :+ 64], fragment2)  # text.cpp:13\n") != std::string::npos;
  std::fputs(is_there ? "" : text.c_str(), stdout);
  return is_there ? 0 : 1;
}
