#include "operand.hpp"

#include <mutex>
#include <utility>

#include "base/copy_bytes.hpp"
#include "base/error.hpp"
#include "device.hpp"
#include "packing.hpp"

namespace paceline::preload {
namespace {

// Memory that operands have had, for the next ones: new memory costs a page fault for each page.
class Spare {
 public:
  static Spare& get() {
    static Spare* const one = new Spare;
    return *one;
  }

  std::unique_ptr<std::byte[]> take(std::size_t bytes, std::size_t& room) {
    const std::lock_guard lock(mutex_);
    for (auto& block : blocks_)
      if (block.room >= bytes && block.bytes) {
        room = block.room;
        kept_ -= room;
        return std::move(block.bytes);
      }
    room = bytes;
    return std::unique_ptr<std::byte[]>(new std::byte[bytes]);
  }

  void give(std::unique_ptr<std::byte[]> bytes, std::size_t room) {
    constexpr std::size_t kMostKept = 16u << 20;
    const std::lock_guard lock(mutex_);
    if (kept_ + room > kMostKept) return;
    for (auto& block : blocks_)
      if (!block.bytes) {
        block = {std::move(bytes), room};
        kept_ += room;
        return;
      }
  }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t room = 0;
  };
  std::mutex mutex_;
  Block blocks_[4];
  std::size_t kept_ = 0;
};

}  // namespace

bool Described::is_right() const {
  if (type == MPI_DATATYPE_NULL) return false;
  if (!counts) return count >= 0;
  for (int piece = 0; piece < pieces; ++piece)
    if (counts[piece] < 0) return false;
  return true;
}

void Operand::describe(const Described& buffer) {
  of_ = buffer;
  element_ = find_element(buffer.type);
  const std::size_t one = element_ ? element_->bytes : packed_bytes(1, buffer.type);
  is_dense_ = element_;
  if (!of_.counts) {
    piece_ = one * std::size_t(of_.count);
    bytes_ = piece_ * std::size_t(of_.pieces);
    return;
  }
  std::int64_t end = 0;
  sizes_.reserve(std::size_t(of_.pieces));
  offsets_.reserve(std::size_t(of_.pieces) + 1);
  for (int piece = 0; piece < of_.pieces; ++piece) {
    const std::int64_t count = of_.counts[piece];
    if (of_.places && count > 0 && of_.places[piece] != end) is_dense_ = false;
    end += count;
    offsets_.push_back(bytes_);
    sizes_.push_back(one * std::size_t(count));
    bytes_ += sizes_.back();
  }
  offsets_.push_back(bytes_);
}

Operand::~Operand() {
  if (own_) Spare::get().give(std::move(own_), room_);
  if (has_type_) PMPI_Type_free(&of_.type);
}

void Operand::swap(Operand& other) noexcept {
  std::swap(of_, other.of_);
  std::swap(element_, other.element_);
  std::swap(bytes_, other.bytes_);
  std::swap(piece_, other.piece_);
  std::swap(sizes_, other.sizes_);
  std::swap(offsets_, other.offsets_);
  std::swap(is_dense_, other.is_dense_);
  std::swap(is_apart_, other.is_apart_);
  std::swap(is_on_device_, other.is_on_device_);
  std::swap(is_looked_at_, other.is_looked_at_);
  std::swap(has_type_, other.has_type_);
  std::swap(kept_counts_, other.kept_counts_);
  std::swap(kept_places_, other.kept_places_);
  std::swap(own_, other.own_);
  std::swap(room_, other.room_);
}

void Operand::keep_description() {
  const auto keep = [&](Lengths& array, std::vector<std::int64_t>& kept) {
    for (int piece = 0; array && piece < of_.pieces; ++piece) kept.push_back(array[piece]);
    if (array) array = kept.data();
  };
  keep(of_.counts, kept_counts_);
  keep(of_.places, kept_places_);
  MPI_Datatype own = MPI_DATATYPE_NULL;
  if (element_ || of_.type == MPI_DATATYPE_NULL || has_type_) return;
  if (PMPI_Type_dup(of_.type, &own) != MPI_SUCCESS)
    fail(Fault::usage, "PMPI_Type_dup refused the datatype.");
  of_.type = own;
  has_type_ = true;
}

bool Operand::is_direct() {
  if (!is_looked_at_) {
    is_looked_at_ = true;
    is_on_device_ = is_dense_ && bytes_ > 0 && is_on_device(of_.buffer);
  }
  return is_dense_ && !is_on_device_ && !is_apart_;
}

std::byte* Operand::address() {
  if (is_direct()) return static_cast<std::byte*>(const_cast<void*>(of_.buffer));
  if (!own_ && bytes_ > 0) own_ = Spare::get().take(bytes_, room_);
  return own_.get();
}

void* Operand::place_of(int piece) const {
  std::int64_t elements = of_.places ? of_.places[piece] : of_.count * piece;
  if (of_.counts && !of_.places)
    for (int i = 0; i < piece; ++i) elements += of_.counts[i];
  return element_at(of_.buffer, elements, of_.type);
}

void Operand::move(int first, int pieces, bool is_load) {
  if (is_direct() || bytes_ == 0) return;
  std::byte* const own = address();
  if (!is_dense_) {
    for (int piece = first; piece < first + pieces; ++piece) move_piece(piece, is_load);
    return;
  }
  const std::size_t at = offset(first), n = offset(first + pieces) - at;
  auto* const buffer = static_cast<std::byte*>(const_cast<void*>(of_.buffer)) + at;
  void* const to = is_load ? own + at : buffer;
  const void* const from = is_load ? buffer : own + at;
  if (is_on_device_) copy_by_driver(buffer, to, from, n);
  else copy_bytes(to, from, n);
}

void Operand::move_piece(int piece, bool is_load) {
  const std::size_t n = bytes(piece);
  if (n == 0) return;
  std::byte* const own = own_.get() + offset(piece);
  const auto count = std::size_t(of_.count_of(piece));
  HostCopy copy(place_of(piece), count, of_.type, true);   // what is between the elements stays
  if (element_) copy_bytes(is_load ? own : copy.address(), is_load ? copy.address() : own, n);
  else if (is_load) pack(copy.address(), count, of_.type, own, n);
  else unpack(own, n, copy.address(), count, of_.type);
  if (!is_load) copy.put_back();
}

}  // namespace paceline::preload
