// Registers must be written on every path to their readers.
#include "ir/thread_verify.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "ir/thread_builder.h"

namespace tilewright::ir::thread {
namespace {

std::string fault(const std::function<void(Builder&)>& body) {
  Builder b("k");
  b.line = 7;
  body(b);
  const Status s = verify(b.finish());
  return s ? "" : s.error().message;
}

TEST(ThreadVerify, ReadsWithoutAWriteAreNamed) {
  Builder unwritten("k");
  unwritten.copy_of(unwritten.reg(Scalar::B32));
  EXPECT_EQ(verify(unwritten.finish()).error().code, DiagnosticCode::E9309);
  EXPECT_EQ(fault([](Builder& b) { b.copy_of(b.reg(Scalar::B32)); }),
            "k, line 7: mov reads register r1, which is not written on every path to it");
}

TEST(ThreadVerify, WhatOneBranchWroteIsUnknownBehindIt) {
  const auto branches = [](bool both) {
    return fault([&](Builder& b) {
      const Reg x = b.reg(Scalar::B32);
      const Value is_first = b.compare(Compare::Eq, Scalar::U32, b.special(SpecialRegister::ThreadX), 0);
      b.if_then(
          is_first, [&] { b.assign(x, 1); },
          [&] {
            if (both) b.assign(x, 2);
          });
      b.copy_of(x);
    });
  };
  EXPECT_EQ(branches(false), "k, line 7: mov reads register r1, which is not written on every path to it");
  EXPECT_EQ(branches(true), "");
}

TEST(ThreadVerify, ALoopMayEndBeforeItsBodyHasRun) {
  const auto loop = [](bool before_break) {
    return fault([&](Builder& b) {
      const Reg x = b.reg(Scalar::B32);
      const Value ends = b.compare(Compare::Eq, Scalar::U32, b.special(SpecialRegister::ThreadX), 0);
      b.loop([&] {
        if (before_break) b.assign(x, 1);
        b.break_if(ends);
        b.assign(x, 1);
      });
      b.copy_of(x);
    });
  };
  EXPECT_NE(loop(false), "");
  EXPECT_EQ(loop(true), "");
}

TEST(ThreadVerify, AThreadThatEndsReadsNothing) {
  EXPECT_EQ(fault([](Builder& b) {
              const Reg x = b.reg(Scalar::B32);
              b.if_then(
                  b.compare(Compare::Eq, Scalar::U32, b.special(SpecialRegister::ThreadX), 0), [&] { b.assign(x, 1); },
                  [&] { b.emit(Op::Return); });
              b.copy_of(x);
            }),
            "");
}

}  // namespace
}  // namespace tilewright::ir::thread
