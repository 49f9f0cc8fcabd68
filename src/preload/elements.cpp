#include "elements.hpp"

#include <array>
#include <climits>
#include <cstdint>
#include <type_traits>

namespace paceline::preload {
namespace {

// Handles are numbers in one family and addresses in the other: a table by hash serves both.
template <class Handle, class Value>
class Table {
 public:
  const Value* find(Handle handle) const {
    for (std::size_t i = place_of(handle);; i = next(i)) {
      if (slots_[i].is_used && slots_[i].handle == handle) return &slots_[i].value;
      if (!slots_[i].is_used) return nullptr;
    }
  }
  void add(Handle handle, const Value& value) {
    std::size_t i = place_of(handle);
    while (slots_[i].is_used && slots_[i].handle != handle) i = next(i);
    if (!slots_[i].is_used) slots_[i] = {handle, true, value};
  }

 private:
  static constexpr std::size_t kBits = 8;  // four times as many as there are datatypes
  struct Slot {
    Handle handle{};
    bool is_used = false;
    Value value{};
  };
  static std::size_t place_of(Handle handle) {
    std::uint64_t number;
    if constexpr (std::is_pointer_v<Handle>)
      number = reinterpret_cast<std::uintptr_t>(handle) >> 4;
    else
      number = static_cast<std::uint64_t>(handle);
    return (number * 0x9e3779b97f4a7c15u) >> (64 - kBits);
  }
  static std::size_t next(std::size_t i) { return (i + 1) % (std::size_t{1} << kBits); }

  std::array<Slot, std::size_t{1} << kBits> slots_;
};

template <class Number>
constexpr Type type_of() {
  if constexpr (std::is_floating_point_v<Number>)
    return sizeof(Number) == 8 ? Type::f64 : Type::f32;
  constexpr bool is_signed = std::is_signed_v<Number>;
  switch (sizeof(Number)) {
    case 1: return is_signed ? Type::i8 : Type::u8;
    case 2: return is_signed ? Type::i16 : Type::u16;
    case 4: return is_signed ? Type::i32 : Type::u32;
    default: return is_signed ? Type::i64 : Type::u64;
  }
}

class Elements : public Table<MPI_Datatype, Element> {
 public:
  Elements() {
    add_c();
    add_fixed();
    put(MPI_BYTE, Type::u8, Class::byte);
    put(MPI_C_BOOL, Type::boolean, Class::boolean);
    put(MPI_AINT, type_of<MPI_Aint>(), Class::other_integer);
    put(MPI_OFFSET, type_of<MPI_Offset>(), Class::other_integer);
    put(MPI_COUNT, type_of<MPI_Count>(), Class::other_integer);
    add_fortran();
    for (MPI_Datatype type :
         {MPI_CHAR, MPI_WCHAR, MPI_PACKED, MPI_CHARACTER, MPI_LOGICAL, MPI_C_FLOAT_COMPLEX,
          MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX})
      put(type, Type::u8, Class::plain);
  }

 private:
  // Compiler flags may make the types of Fortran longer, and a build of MPI may lack some: the
  // sizes that MPI reports decide.
  void put(MPI_Datatype type, Type ours, Class kind) {
    if (type == MPI_DATATYPE_NULL) return;
    int bytes = 0;
    MPI_Aint low = 0, extent = 0;
    if (PMPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes <= 0) return;
    if (PMPI_Type_get_extent(type, &low, &extent) != MPI_SUCCESS) return;
    if (low != 0 || extent != bytes) return;
    const auto length = static_cast<std::size_t>(bytes);
    if (kind != Class::plain && length != size_of(ours)) return;
    add(type, {ours, kind, length});
  }

  void add_c() {
    put(MPI_FLOAT, Type::f32, Class::floating);
    put(MPI_DOUBLE, Type::f64, Class::floating);
    put(MPI_SIGNED_CHAR, Type::i8, Class::integer);
    put(MPI_UNSIGNED_CHAR, Type::u8, Class::integer);
    put(MPI_SHORT, type_of<short>(), Class::integer);
    put(MPI_UNSIGNED_SHORT, type_of<unsigned short>(), Class::integer);
    put(MPI_INT, type_of<int>(), Class::integer);
    put(MPI_UNSIGNED, type_of<unsigned>(), Class::integer);
    put(MPI_LONG, type_of<long>(), Class::integer);
    put(MPI_UNSIGNED_LONG, type_of<unsigned long>(), Class::integer);
    put(MPI_LONG_LONG, type_of<long long>(), Class::integer);
    put(MPI_UNSIGNED_LONG_LONG, type_of<unsigned long long>(), Class::integer);
  }

  void add_fixed() {
    put(MPI_INT8_T, Type::i8, Class::integer);
    put(MPI_UINT8_T, Type::u8, Class::integer);
    put(MPI_INT16_T, Type::i16, Class::integer);
    put(MPI_UINT16_T, Type::u16, Class::integer);
    put(MPI_INT32_T, Type::i32, Class::integer);
    put(MPI_UINT32_T, Type::u32, Class::integer);
    put(MPI_INT64_T, Type::i64, Class::integer);
    put(MPI_UINT64_T, Type::u64, Class::integer);
  }

  void add_fortran() {
    put(MPI_INTEGER, Type::i32, Class::other_integer);
    put(MPI_INTEGER1, Type::i8, Class::other_integer);
    put(MPI_INTEGER2, Type::i16, Class::other_integer);
    put(MPI_INTEGER4, Type::i32, Class::other_integer);
    put(MPI_INTEGER8, Type::i64, Class::other_integer);
    put(MPI_REAL, Type::f32, Class::floating);
    put(MPI_REAL4, Type::f32, Class::floating);
    put(MPI_REAL8, Type::f64, Class::floating);
    put(MPI_DOUBLE_PRECISION, Type::f64, Class::floating);
  }
};

class Ops : public Table<MPI_Op, Op> {
 public:
  Ops() {
    add(MPI_SUM, Op::sum);
    add(MPI_PROD, Op::product);
    add(MPI_MIN, Op::min);
    add(MPI_MAX, Op::max);
    add(MPI_LAND, Op::logical_and);
    add(MPI_LOR, Op::logical_or);
    add(MPI_LXOR, Op::logical_xor);
    add(MPI_BAND, Op::bit_and);
    add(MPI_BOR, Op::bit_or);
    add(MPI_BXOR, Op::bit_xor);
  }
};

}  // namespace

const Element* find_element(MPI_Datatype type) {
  static const Elements elements;
  return elements.find(type);
}

const Op* find_op(MPI_Op op) {
  static const Ops ops;
  return ops.find(op);
}

bool is_defined(Op op, Class kind) {
  switch (op) {
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_xor: return kind == Class::integer || kind == Class::boolean;
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return kind == Class::integer || kind == Class::other_integer || kind == Class::byte;
    default:
      return kind == Class::integer || kind == Class::other_integer || kind == Class::floating;
  }
}

}  // namespace paceline::preload
