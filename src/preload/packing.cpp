#include "packing.hpp"

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
class Described {
 public:
  Described(const void* buffer, int count, MPI_Datatype type)
      : buffer_(const_cast<void*>(buffer)), count_(count), type_(type) {
    if (buffer) return;
    constexpr MPI_Aint kElsewhere = 64, kBack = -kElsewhere;
    check(PMPI_Type_create_hindexed(1, &count, &kBack, type, &type_), "Type_create_hindexed");
    is_ours_ = true;
    check(PMPI_Type_commit(&type_), "Type_commit");
    buffer_ = reinterpret_cast<void*>(kElsewhere);
    count_ = 1;
  }
  ~Described() {
    if (is_ours_) PMPI_Type_free(&type_);
  }
  Described(const Described&) = delete;

  void* buffer() const { return buffer_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  void* buffer_;
  int count_;
  MPI_Datatype type_;
  bool is_ours_ = false;
};

}  // namespace

std::size_t packed_bytes(int count, MPI_Datatype type) {
  MPI_Count bytes = 0;
  check(PMPI_Type_size_x(type, &bytes), "Type_size_x");
  return std::size_t(bytes) * std::size_t(count);
}

void pack(const void* buffer, int count, MPI_Datatype type, std::byte* packed, std::size_t bytes,
          MPI_Comm comm) {
  const Described from(buffer, count, type);
  int position = 0;
  check(PMPI_Pack(from.buffer(), from.count(), from.type(), packed, static_cast<int>(bytes),
                  &position, comm),
        "Pack");
  check_all(position, bytes, "Pack");
}

void unpack(const std::byte* packed, std::size_t bytes, void* buffer, int count, MPI_Datatype type,
            MPI_Comm comm) {
  const Described into(buffer, count, type);
  int position = 0;
  check(PMPI_Unpack(packed, static_cast<int>(bytes), &position, into.buffer(), into.count(),
                    into.type(), comm),
        "Unpack");
  check_all(position, bytes, "Unpack");
}

void* element_at(void* buffer, std::size_t index, MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0;
  check(PMPI_Type_get_extent(type, &low, &extent), "Type_get_extent");
  // Computed with integers: MPI_BOTTOM is null, with the addresses in the datatype.
  return reinterpret_cast<void*>(reinterpret_cast<MPI_Aint>(buffer) +
                                 static_cast<MPI_Aint>(index) * extent);
}

}  // namespace paceline::preload
