// Element types, and the operations that combine two elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline {

enum class Type : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean
};
inline constexpr int kTypes = 13;

// `average` adds up like `sum`; the owner of a finished block then divides it by the number of
// ranks, integers towards zero.
enum class Op : std::uint8_t {
  sum,
  product,
  min,
  max,
  average,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  logical_xor
};
inline constexpr int kOps = 11;

std::size_t size_of(Type type);         // bytes of one element
std::string_view name_of(Type type);    // "float32", "bfloat16", "uint8", "bool", ...
std::string_view name_of(Op op);        // "sum", "bit_and", ...
Type type_from(std::string_view name);  // throws Error (usage) that lists the known names
Op op_from(std::string_view name);      // throws as type_from() does

bool is_floating(Type type);

// True if any order of operands gives the same bits.
bool is_exact(Op op, Type type);

// True if `op` is defined for `type`: bitwise operations take integers and bool, average takes all
// types but bool, the others take every type (on bool, sum and max are "or", product and min are
// "and").
bool is_defined(Op op, Type type);

}  // namespace paceline
