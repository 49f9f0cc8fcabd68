#include "base/types.hpp"

#include <iterator>
#include <string>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace paceline {
namespace {

struct TypeRow {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};

// In the order of the enumerations.
constexpr TypeRow kTypeRows[] = {
    {"float64", 8, true}, {"float32", 4, true}, {"float16", 2, true}, {"bfloat16", 2, true},
    {"int8", 1, false},   {"uint8", 1, false},  {"int16", 2, false},  {"uint16", 2, false},
    {"int32", 4, false},  {"uint32", 4, false}, {"int64", 8, false},  {"uint64", 8, false},
    {"bool", 1, false},
};
static_assert(std::size(kTypeRows) == kTypes);
static_assert(kTypeRows[static_cast<int>(Type::boolean)].name == "bool");

constexpr std::string_view kOpNames[] = {
    "sum",     "product",     "min",        "max",         "average", "bit_and", "bit_or",
    "bit_xor", "logical_and", "logical_or", "logical_xor",
};
static_assert(std::size(kOpNames) == kOps);
static_assert(kOpNames[static_cast<int>(Op::logical_xor)] == "logical_xor");

// A number from outside (C ABI, a damaged table file) must not become an index unseen.
const TypeRow& row_of(Type type) {
  const int index = static_cast<int>(type);
  if (index >= kTypes) fail(Fault::usage, "type: no type has number ", index, ".");
  return kTypeRows[index];
}

void list(std::string& known, std::string_view name) {
  if (!known.empty()) known += ", ";
  known += name;
}

}  // namespace

std::size_t size_of(Type type) { return row_of(type).bytes; }

std::string_view name_of(Type type) { return row_of(type).name; }

std::string_view name_of(Op op) {
  const int index = static_cast<int>(op);
  if (index >= kOps) fail(Fault::usage, "op: no operation has number ", index, ".");
  return kOpNames[index];
}

Type type_from(std::string_view name) {
  std::string known;
  for (int i = 0; i < kTypes; ++i) {
    if (kTypeRows[i].name == name) return static_cast<Type>(i);
    list(known, kTypeRows[i].name);
  }
  fail(Fault::usage, "type: '", name, "' is not an element type. Use one of ", known, ".",
       did_you_mean(name, known));
}

Op op_from(std::string_view name) {
  std::string known;
  for (int i = 0; i < kOps; ++i) {
    if (kOpNames[i] == name) return static_cast<Op>(i);
    list(known, kOpNames[i]);
  }
  fail(Fault::usage, "op: '", name, "' is not an operation. Use one of ", known, ".",
       did_you_mean(name, known));
}

bool is_floating(Type type) { return row_of(type).floating; }

bool is_exact(Op op, Type type) {
  const bool rounds = op == Op::sum || op == Op::product || op == Op::average;
  return !rounds || !is_floating(type);
}

bool is_defined(Op op, Type type) {
  (void)name_of(op);   // throws if the number is no operation
  const bool bitwise = op == Op::bit_and || op == Op::bit_or || op == Op::bit_xor;
  if (bitwise) return !is_floating(type);
  return op != Op::average || type != Type::boolean;
}

}  // namespace paceline
