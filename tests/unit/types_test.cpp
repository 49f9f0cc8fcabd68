// Names and sizes of types, the table of defined operations, and readable sizes.
#include "base/types.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/error.hpp"
#include "base/str.hpp"

using namespace paceline;

namespace {

template <class Action>
std::string refusal_of(Action action, Fault fault) {
  try {
    action();
  } catch (const Error& error) {
    return error.fault() == fault ? error.what() : "wrong fault";
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("types: names lead back to their values") {
  for (int i = 0; i < kTypes; ++i) CHECK(type_from(name_of(Type(i))) == Type(i));
  for (int i = 0; i < kOps; ++i) CHECK(op_from(name_of(Op(i))) == Op(i));
  CHECK(name_of(Type::f32) == "float32");
  CHECK(name_of(Type::bf16) == "bfloat16");
  CHECK(name_of(Type::u8) == "uint8");
  CHECK(name_of(Type::boolean) == "bool");
  CHECK(name_of(Op::bit_and) == "bit_and");
  CHECK(name_of(Op::logical_xor) == "logical_xor");
}

TEST_CASE("types: the name of a type tells its size") {
  for (int i = 0; i < kTypes; ++i) {
    const std::string name(name_of(Type(i)));
    const std::size_t digit = name.find_first_of("0123456789");
    const std::size_t bits = digit == std::string::npos ? 8 : std::stoul(name.substr(digit));
    CHECK(size_of(Type(i)) * 8 == bits);
    CHECK(is_floating(Type(i)) == contains(name, "float"));
  }
}

TEST_CASE("types: an unknown name is answered with the known ones") {
  const std::string type = refusal_of([] { (void)type_from("float"); }, Fault::usage);
  CHECK(contains(type, "'float'"));
  CHECK(contains(type, "float64, float32, float16, bfloat16"));
  const std::string op = refusal_of([] { (void)op_from(""); }, Fault::usage);
  CHECK(contains(op, "sum, product, min, max, average"));
  CHECK(contains(refusal_of([] { (void)name_of(Type(13)); }, Fault::usage), "13"));
  CHECK(contains(refusal_of([] { (void)name_of(Op(11)); }, Fault::usage), "11"));
  CHECK(contains(refusal_of([] { (void)is_defined(Op(99), Type::f32); }, Fault::usage), "99"));
}

TEST_CASE("types: what is defined") {
  int defined = 0;
  for (int t = 0; t < kTypes; ++t)
    for (int o = 0; o < kOps; ++o) defined += is_defined(Op(o), Type(t));
  CHECK(defined == 4 * 8 + 8 * 11 + 10);
  CHECK(is_defined(Op::average, Type::bf16));
  CHECK(is_defined(Op::average, Type::i32));
  CHECK_FALSE(is_defined(Op::average, Type::boolean));
  CHECK_FALSE(is_defined(Op::bit_xor, Type::f64));
  CHECK(is_defined(Op::bit_xor, Type::boolean));
  CHECK(is_defined(Op::logical_and, Type::f16));
}

TEST_CASE("shortened: at most so many bytes, an ellipsis, no half of a character") {
  CHECK(shortened("rank 3 died", 11) == "rank 3 died");
  CHECK(shortened("rank 3 died", 10) == "rank 3 ...");
  CHECK(shortened("", 0).empty());
  CHECK(shortened("abcd", 3) == "...");
  CHECK(shortened("abcd", 2) == "..");
  const std::string accents = "caf\u00e9 caf\u00e9";   // 11 bytes, each last letter of two
  CHECK(shortened(accents, 8) == "caf\u00e9...");
  CHECK(shortened(accents, 7) == "caf...");
  for (std::size_t most = 0; most < 14; ++most) CHECK(shortened(accents, most).size() <= most);
}

TEST_CASE("str: bytes as a person reads them") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1) == "1 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1 KiB");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(64.0 * 1024 * 1024) == "64 MiB");
  CHECK(human_bytes(1024.0 * 1024 - 1) == "1 MiB");
  CHECK(human_bytes(-1536) == "-1.5 KiB");
  CHECK(human_bytes(1e300).ends_with(" EiB"));
}
