// What the interpreter's checks found: each kind of mistake of one operation on one buffer is reported once, at its
// first occurrence, with how often it happened.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/diagnostic.h"
#include "ir/ir.h"

namespace tilewright::interp {

class Findings {
 public:
  struct Text {
    std::string message;
    std::string help;
    std::vector<Diagnostic::Note> notes;
  };
  /// `text` is called for the first occurrence only.
  void add(DiagnosticCode code, const ir::Op& op, const ir::Value* buffer, const std::function<Text()>& text);
  bool is_empty() const { return list_.empty(); }
  /// In order of first occurrence; repeated ones carry a note with their number.
  std::vector<Diagnostic> take();

 private:
  struct Entry {
    Diagnostic diagnostic;
    int64_t count = 1;
  };
  std::map<std::tuple<DiagnosticCode, const ir::Op*, const ir::Value*>, size_t> known_;
  std::vector<Entry> list_;
};

}  // namespace tilewright::interp
