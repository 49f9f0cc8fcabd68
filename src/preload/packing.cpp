#include "packing.hpp"

#include <algorithm>
#include <climits>

#include "alone.hpp"
#include "base/error.hpp"

namespace paceline::preload {
namespace {

void check(int code, const char* what) {
  if (code != MPI_SUCCESS) fail(Fault::usage, "PMPI_", what, " refused the datatype (", code, ").");
}

void check_all(int position, std::size_t bytes, const char* what) {
  require(position >= 0 && std::size_t(position) == bytes, "PMPI_", what, " moved ", position,
          " bytes of a message of ", bytes);
}

// MPI_BOTTOM is the null address of a datatype that holds addresses. MPICH's MPI_Pack refuses it,
// so this describes the same elements relative to another address.
class Placed {
 public:
  Placed(const void* buffer, int count, MPI_Datatype type)
      : buffer_(const_cast<void*>(buffer)), count_(count), type_(type) {
    if (buffer) return;
    constexpr MPI_Aint kElsewhere = 64, kBack = -kElsewhere;
    check(PMPI_Type_create_hindexed(1, &count, &kBack, type, &type_), "Type_create_hindexed");
    is_ours_ = true;
    check(PMPI_Type_commit(&type_), "Type_commit");
    buffer_ = reinterpret_cast<void*>(kElsewhere);
    count_ = 1;
  }
  ~Placed() {
    if (is_ours_) PMPI_Type_free(&type_);
  }
  Placed(const Placed&) = delete;

  void* buffer() const { return buffer_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  void* buffer_;
  int count_;
  MPI_Datatype type_;
  bool is_ours_ = false;
};

// Calls `move` for as many elements at a time as MPI counts bytes in an int; with their number, the
// first one and the bytes.
template <class Move>
void in_parts(std::size_t count, std::size_t bytes, Move&& move) {
  const std::size_t one = count ? bytes / count : 0, most = one ? INT_MAX / one : 0;
  if (count && most == 0 && one > 0)
    fail(Fault::resource, "preload: an element of a datatype has ", one, " bytes; this MPI packs ",
         "at most 2147483647 at once.");
  for (std::size_t first = 0; one > 0 && first < count; first += std::min(most, count - first)) {
    const std::size_t n = std::min(most, count - first);
    move(static_cast<int>(n), first, n * one);
  }
}

}  // namespace

std::size_t packed_bytes(std::size_t count, MPI_Datatype type) {
  MPI_Count bytes = 0;
  check(PMPI_Type_size_x(type, &bytes), "Type_size_x");
  return std::size_t(bytes) * count;
}

void pack(const void* buffer, std::size_t count, MPI_Datatype type, std::byte* packed,
          std::size_t bytes) {
  in_parts(count, bytes, [&](int n, std::size_t first, std::size_t length) {
    const Placed from(element_at(buffer, std::int64_t(first), type), n, type);
    int position = 0;
    check(PMPI_Pack(from.buffer(), from.count(), from.type(), packed, static_cast<int>(length),
                    &position, alone()),
          "Pack");
    check_all(position, length, "Pack");
    packed += length;
  });
}

void unpack(const std::byte* packed, std::size_t bytes, void* buffer, std::size_t count,
            MPI_Datatype type) {
  in_parts(count, bytes, [&](int n, std::size_t first, std::size_t length) {
    const Placed into(element_at(buffer, std::int64_t(first), type), n, type);
    int position = 0;
    check(PMPI_Unpack(packed, static_cast<int>(length), &position, into.buffer(), into.count(),
                      into.type(), alone()),
          "Unpack");
    check_all(position, length, "Unpack");
    packed += length;
  });
}

void* element_at(const void* buffer, std::int64_t index, MPI_Datatype type) {
  if (index == 0) return const_cast<void*>(buffer);
  MPI_Aint low = 0, extent = 0;
  check(PMPI_Type_get_extent(type, &low, &extent), "Type_get_extent");
  // Computed with integers: MPI_BOTTOM is null, with the addresses in the datatype.
  return reinterpret_cast<void*>(reinterpret_cast<MPI_Aint>(buffer) +
                                 static_cast<MPI_Aint>(index) * extent);
}

}  // namespace paceline::preload
