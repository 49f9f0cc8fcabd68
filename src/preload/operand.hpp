// Operand: one buffer of a call of MPI as contiguous bytes, which Paceline reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "elements.hpp"
#include "host_mpi.hpp"

namespace paceline::preload {

// An array of counts or displacements, one for each rank, of 4 or 8 bytes each; null where a rank
// passes none.
class Lengths {
 public:
  Lengths() = default;
  template <class Number>
  Lengths(const Number* first) : first_(first), is_wide_(sizeof(Number) == 8) {
    static_assert(std::is_integral_v<Number> && (sizeof(Number) == 4 || sizeof(Number) == 8));
  }
  explicit operator bool() const { return first_; }
  std::int64_t operator[](int i) const {
    return is_wide_ ? at<std::int64_t>(i) : at<std::int32_t>(i);
  }

 private:
  template <class Number>
  Number at(int i) const {
    Number number;
    std::memcpy(&number, static_cast<const std::byte*>(first_) + std::size_t(i) * sizeof number,
                sizeof number);
    return number;
  }

  const void* first_ = nullptr;
  bool is_wide_ = false;
};

// A buffer as MPI describes it, of `pieces` pieces. Without `counts` all have `count` elements,
// without `places` each begins where the one before it ends. `places` are in extents of the
// datatype.
struct Described {
  const void* buffer = nullptr;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int pieces = 1;
  std::int64_t count = 0;
  Lengths counts = {}, places = {};

  std::int64_t count_of(int piece) const { return counts ? counts[piece] : count; }
  // False if MPI would refuse a count or the datatype.
  bool is_right() const;
};

class Operand {
 public:
  void describe(const Described& buffer);   // once; without it there is none: address() is null
  // Describes another buffer with the pieces, all alike, and the datatype of that operand's.
  void describe_like(const Operand& other, const void* buffer);
  const Described& described() const { return of_; }
  const Element* element() const { return element_; }   // null: not predefined, or with holes
  std::size_t bytes() const { return bytes_; }          // of all pieces
  std::size_t bytes(int piece) const {
    return sizes().empty() ? piece_ : sizes()[std::size_t(piece)];
  }
  std::size_t offset(int piece) const {
    return sizes().empty() ? piece_ * std::size_t(piece) : more_->offsets[std::size_t(piece)];
  }
  // Bytes of each piece; empty: all are alike.
  const std::vector<std::size_t>& sizes() const;

  // Gives the operand memory of its own even where the buffer itself would do.
  void keep_apart() { is_apart_ = true; }
  // The program may free the datatype, and the arrays, while the operand lives.
  void keep_description();
  // The contiguous bytes: the buffer itself, or memory of the operand, whose content load() copies
  // from the buffer and store() copies into it. Both throw a usage error if MPI refuses the
  // datatype, a resource error if the driver of a GPU cannot copy.
  std::byte* address() {
    return is_direct() ? static_cast<std::byte*>(const_cast<void*>(of_.buffer)) : own();
  }
  void load(int first, int pieces) {
    if (!is_direct()) move(first, pieces, true);
  }
  void load() { load(0, of_.pieces); }
  void store() {
    if (!is_direct()) move(0, of_.pieces, false);
  }
  void* place_of(int piece) const;   // in the buffer
  // True if address() is the buffer itself.
  bool is_direct() {
    if (!is_looked_at_) look();
    return is_dense_ && !is_on_device_ && !is_apart_;
  }

 private:
  // Only operands with uneven pieces, memory or a datatype of their own have these.
  struct More {
    ~More();
    std::vector<std::size_t> sizes, offsets;   // one offset more than pieces
    std::vector<std::int64_t> counts, places;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t room = 0;                      // of `bytes`
  };

  void look();
  More& more();
  std::byte* own();
  void measure_pieces(std::size_t element_bytes);
  void move(int first, int pieces, bool is_load);
  void move_piece(int piece, bool is_load);

  Described of_;
  const Element* element_ = nullptr;
  std::size_t bytes_ = 0, piece_ = 0;
  bool is_dense_ = true;    // predefined elements, one piece behind the other
  bool is_apart_ = false, is_on_device_ = false, is_looked_at_ = false;
  std::unique_ptr<More> more_;
};

}  // namespace paceline::preload
