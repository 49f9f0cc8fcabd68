#include "folds.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "base/error.hpp"
#include "exchange.hpp"
#include "packing.hpp"

namespace paceline::preload {
namespace {

// Longest vectors, of all ranks together, that are exchanged as a whole: one exchange of more bytes
// instead of two. Not measured.
constexpr std::size_t kWhole = 32u << 10;

template <class Handle>
bool is_one_of(Handle handle, std::initializer_list<Handle> all) {
  return std::find(all.begin(), all.end(), handle) != all.end();
}

bool is_users(MPI_Op op) {
  return !is_one_of(op, {MPI_OP_NULL, MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND,
                         MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE,
                         MPI_NO_OP});
}

bool are_pairs(MPI_Datatype type) {
  return is_one_of(type, {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                          MPI_LONG_DOUBLE_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER});
}

bool are_complex(MPI_Datatype type) {
  return is_one_of(type, {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX,
                          MPI_COMPLEX, MPI_DOUBLE_COMPLEX});
}

void check(int code, const char* what) {
  if (code != MPI_SUCCESS)
    fail(Fault::usage, "PMPI_", what, " refused the operation (", code, ").");
}

// Elements of any datatype in memory of their own, as a program has them.
class Unpacked {
 public:
  Unpacked(std::size_t count, MPI_Datatype type) : count_(count), type_(type) {
    MPI_Aint low = 0, extent = 0, first = 0, length = 0;
    check(PMPI_Type_get_extent(type, &low, &extent), "Type_get_extent");
    check(PMPI_Type_get_true_extent(type, &first, &length), "Type_get_true_extent");
    const std::size_t all = std::size_t(extent) * (count - 1) + std::size_t(length);
    memory_ = std::make_unique<std::byte[]>(all);
    first_ = memory_.get() - first;
  }
  void* first() const { return first_; }
  void take(const std::byte* packed, std::size_t bytes) {
    unpack(packed, bytes, first_, count_, type_);
  }
  void give(std::byte* packed, std::size_t bytes) const {
    pack(first_, count_, type_, packed, bytes);
  }

 private:
  std::size_t count_;
  MPI_Datatype type_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* first_ = nullptr;
};

// Packed elements are as the program has them: without holes, and nothing lies before them.
bool is_packed(MPI_Datatype type, std::size_t element) {
  MPI_Aint low = 0, extent = 0, first = 0, length = 0;
  check(PMPI_Type_get_extent(type, &low, &extent), "Type_get_extent");
  check(PMPI_Type_get_true_extent(type, &first, &length), "Type_get_true_extent");
  const auto bytes = static_cast<MPI_Aint>(element);
  return low == 0 && first == 0 && extent == bytes && length == bytes;
}

// Bytes that are kept for the next call, where it has as many.
class Room {
 public:
  explicit Room(std::size_t bytes) {
    memory_.describe({nullptr, MPI_BYTE, 1, static_cast<std::int64_t>(bytes)});
    memory_.keep_apart();
  }
  std::byte* get() { return memory_.address(); }

 private:
  Operand memory_;
};

class Fold {
 public:
  explicit Fold(Exchange& x)
      : x_(x),
        of_(x.output.described().type != MPI_DATATYPE_NULL ? x.output.described()
                                                           : x.input.described()),
        ranks_(x.state->ranks),
        element_(packed_bytes(1, of_.type)),
        is_packed_(is_packed(of_.type, element_)) {}

  void run() {
    const auto count = static_cast<std::size_t>(of_.count);
    if (x_.call.collective == Collective::reduce_scatter) return scatter(count);
    x_.bytes = count * element_;
    if (count * element_ * std::size_t(ranks_) <= kWhole) whole(count);
    else by_pieces(count);
  }

 private:
  bool is_wanted() const {
    return x_.call.collective != Collective::reduce || x_.state->rank == x_.call.root;
  }

  void call(Collective collective, const void* in, void* out, std::size_t bytes) {
    Call call;
    call.collective = collective;
    call.input = in;
    call.output = out;
    call.count = bytes;
    call.root = x_.call.root;
    call.may_wait = false;
    ++x_.state->calls;
    x_.state->communicator.run(call);
  }

  // All elements at the ranks that want the result.
  void collect(const void* in, void* out, std::size_t bytes) {
    const bool to_root = x_.call.collective == Collective::reduce;
    call(to_root ? Collective::gather : Collective::allgather, in, is_wanted() ? out : nullptr,
         bytes);
  }

  void whole(std::size_t count) {
    const std::size_t bytes = count * element_;
    Room all(is_wanted() ? bytes * std::size_t(ranks_) : 0);
    collect(x_.call.input, all.get(), bytes);
    if (is_wanted()) std::memcpy(x_.call.output, combine(all.get(), bytes, count), bytes);
  }

  void by_pieces(std::size_t count) {
    const auto p = static_cast<std::size_t>(ranks_), r = std::size_t(x_.state->rank);
    const std::size_t piece = (count + p - 1) / p, bytes = piece * element_;
    const std::size_t own = std::min(count - std::min(count, r * piece), piece);
    const bool is_even = count == piece * p;
    Room padded(is_even ? 0 : bytes * p), received(bytes * p);
    if (!is_even) std::memcpy(padded.get(), x_.call.input, count * element_);
    call(Collective::alltoall, is_even ? x_.call.input : padded.get(), received.get(), bytes);
    const std::byte* const result = combine(received.get(), bytes, own);
    collect(result, is_even ? x_.call.output : padded.get(), bytes);
    if (is_wanted() && !is_even) std::memcpy(x_.call.output, padded.get(), count * element_);
  }

  void scatter(std::size_t count) {
    const auto p = static_cast<std::size_t>(ranks_);
    std::size_t bytes = 0;   // of the longest piece
    for (int r = 0; r < ranks_; ++r) bytes = std::max(bytes, x_.input.bytes(r));
    x_.bytes = x_.input.bytes();
    const bool is_even = x_.bytes == bytes * p;
    Room padded(is_even ? 0 : bytes * p), received(bytes * p);
    const auto* const pieces = static_cast<const std::byte*>(x_.call.input);
    for (int r = 0; !is_even && r < ranks_; ++r)
      std::memcpy(padded.get() + bytes * std::size_t(r), pieces + x_.input.offset(r),
                  x_.input.bytes(r));
    call(Collective::alltoall, is_even ? x_.call.input : padded.get(), received.get(), bytes);
    const std::byte* const result = combine(received.get(), bytes, count);
    if (count > 0) std::memcpy(x_.call.output, result, count * element_);
  }

  // Combines `count` elements of each rank, whose vectors are `apart` bytes apart. Returns where
  // the result is: in the last one's place.
  std::byte* combine(std::byte* vectors, std::size_t apart, std::size_t count) {
    std::byte* const last = vectors + apart * std::size_t(ranks_ - 1);
    if (count == 0) return last;
    if (is_packed_) {
      for (int rank = ranks_ - 2; rank >= 0; --rank)
        combine(vectors + apart * std::size_t(rank), last, count);
      return last;
    }
    const std::size_t bytes = count * element_;
    Unpacked result(count, of_.type), next(count, of_.type);
    result.take(last, bytes);
    for (int rank = ranks_ - 2; rank >= 0; --rank) {
      next.take(vectors + apart * std::size_t(rank), bytes);
      combine(next.first(), result.first(), count);
    }
    result.give(last, bytes);
    return last;
  }

  void combine(const void* left, void* right, std::size_t count) {
    for (std::size_t first = 0; first < count; first += INT_MAX) {
      const auto n = static_cast<int>(std::min<std::size_t>(count - first, INT_MAX));
      const auto at = static_cast<std::int64_t>(first);
      check(PMPI_Reduce_local(element_at(left, at, of_.type), element_at(right, at, of_.type), n,
                              of_.type, x_.op),
            "Reduce_local");
    }
  }

  Exchange& x_;
  const Described& of_;
  int ranks_;
  std::size_t element_;   // bytes
  bool is_packed_;
};

}  // namespace

bool is_fold(MPI_Op op, MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return false;
  if (is_users(op)) return true;
  if (is_one_of(op, {MPI_MAXLOC, MPI_MINLOC})) return are_pairs(type);
  if (!is_one_of(op, {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX})) return false;
  if (type == MPI_LONG_DOUBLE) return true;
  return is_one_of(op, {MPI_SUM, MPI_PROD}) && are_complex(type);
}

void run_fold(Exchange& x) { Fold(x).run(); }

}  // namespace paceline::preload
