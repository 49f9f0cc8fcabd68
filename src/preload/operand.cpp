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

Operand::More::~More() {
  if (bytes) Spare::get().give(std::move(bytes), room);
  if (type != MPI_DATATYPE_NULL) PMPI_Type_free(&type);
}

Operand::More& Operand::more() {
  if (!more_) more_ = std::make_unique<More>();
  return *more_;
}

const std::vector<std::size_t>& Operand::sizes() const {
  static const std::vector<std::size_t> none;
  return more_ ? more_->sizes : none;
}

void Operand::describe(const Described& buffer) {
  of_ = buffer;
  element_ = find_element(buffer.type);
  is_dense_ = element_;
  const std::size_t one = element_ ? element_->bytes : packed_bytes(1, buffer.type);
  if (of_.counts) return measure_pieces(one);
  piece_ = one * std::size_t(of_.count);
  bytes_ = piece_ * std::size_t(of_.pieces);
}

void Operand::describe_like(const Operand& other, const void* buffer) {
  of_ = other.of_;
  of_.buffer = buffer;
  element_ = other.element_;
  is_dense_ = other.is_dense_;
  piece_ = other.piece_;
  bytes_ = other.bytes_;
}

void Operand::measure_pieces(std::size_t element_bytes) {
  std::vector<std::size_t>&sizes = more().sizes, &offsets = more_->offsets;
  std::int64_t end = 0;
  sizes.reserve(std::size_t(of_.pieces));
  offsets.reserve(std::size_t(of_.pieces) + 1);
  for (int piece = 0; piece < of_.pieces; ++piece) {
    const std::int64_t count = of_.counts[piece];
    if (of_.places && count > 0 && of_.places[piece] != end) is_dense_ = false;
    end += count;
    offsets.push_back(bytes_);
    sizes.push_back(element_bytes * std::size_t(count));
    bytes_ += sizes.back();
  }
  offsets.push_back(bytes_);
}

void Operand::keep_description() {
  const auto keep = [&](Lengths& array, std::vector<std::int64_t> More::*kept) {
    if (!array) return;
    std::vector<std::int64_t>& copy = more().*kept;
    for (int piece = 0; piece < of_.pieces; ++piece) copy.push_back(array[piece]);
    array = copy.data();
  };
  keep(of_.counts, &More::counts);
  keep(of_.places, &More::places);
  if (element_ || of_.type == MPI_DATATYPE_NULL || (more_ && of_.type == more_->type)) return;
  if (PMPI_Type_dup(of_.type, &more().type) != MPI_SUCCESS)
    fail(Fault::usage, "PMPI_Type_dup refused the datatype.");
  of_.type = more_->type;
}

void Operand::look() {
  is_looked_at_ = true;
  is_on_device_ = is_dense_ && bytes_ > 0 && is_on_device(of_.buffer);
}

std::byte* Operand::own() {
  if (bytes_ == 0) return nullptr;
  if (!more().bytes) more_->bytes = Spare::get().take(bytes_, more_->room);
  return more_->bytes.get();
}

void* Operand::place_of(int piece) const {
  std::int64_t elements = of_.places ? of_.places[piece] : of_.count * piece;
  if (of_.counts && !of_.places)
    for (int i = 0; i < piece; ++i) elements += of_.counts[i];
  return element_at(of_.buffer, elements, of_.type);
}

void Operand::move(int first, int pieces, bool is_load) {
  if (bytes_ == 0) return;
  std::byte* const own = this->own();
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
  std::byte* const own = more_->bytes.get() + offset(piece);
  const auto count = std::size_t(of_.count_of(piece));
  HostCopy copy(place_of(piece), count, of_.type, true);   // what is between the elements stays
  if (element_) copy_bytes(is_load ? own : copy.address(), is_load ? copy.address() : own, n);
  else if (is_load) pack(copy.address(), count, of_.type, own, n);
  else unpack(own, n, copy.address(), count, of_.type);
  if (!is_load) copy.put_back();
}

}  // namespace paceline::preload
