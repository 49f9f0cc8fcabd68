#include "runtime/shared_book.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "ir/contract.hpp"

namespace paceline {
namespace {

// Returns the parts of these ranks of the world; empty if one of them has none.
std::vector<std::byte*> parts_of(const Allocation& held, const std::vector<int>& ranks) {
  if (held.ranks == ranks) return held.parts;
  std::vector<std::byte*> parts;
  for (const int rank : ranks) {
    const auto at = std::find(held.ranks.begin(), held.ranks.end(), rank);
    if (at == held.ranks.end()) return {};
    parts.push_back(held.parts[std::size_t(at - held.ranks.begin())]);
  }
  return parts;
}

std::size_t bytes_of(const std::vector<Piece>& units, Type type) {
  std::size_t end = 0;
  for (const Piece& unit : units) end = std::max(end, unit.offset + unit.count);
  return end * size_of(type);
}

}  // namespace

void SharedBook::add(const std::shared_ptr<const Allocation>& allocation) {
  const std::lock_guard lock(mutex_);
  std::erase_if(allocations_, [](const auto& held) { return held.expired(); });
  allocations_.push_back(allocation);
  changes_->fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const Allocation> SharedBook::holder(const void* buffer, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(buffer);
  for (const auto& weak : allocations_) {
    const auto held = weak.lock();
    if (!held) continue;
    const std::byte* part = held->parts[held->rank];
    if (begin >= part && begin + bytes <= part + held->bytes) return held;
  }
  return nullptr;
}

std::optional<SharedPlaces> SharedBook::find(const Call& call, const Problem& problem,
                                             const Layout& layout,
                                             const std::vector<int>& ranks) const {
  if (changes() == 0 || call.uneven) return {};
  const std::lock_guard lock(mutex_);
  SharedPlaces places;
  places.peers.resize(std::size_t(problem.ranks));
  const Space input = home(problem, Space::input), output = home(problem, Space::output);
  for (const Space space : {Space::input, Space::output}) {
    if (space != input && space != output) continue;   // an in-place call uses one buffer
    const bool in = space == Space::input;
    const void* buffer = in ? call.input : call.output;
    const auto held = holder(buffer, bytes_of(in ? layout.input : layout.output, call.type));
    if (!held) return {};
    const std::vector<std::byte*> parts = parts_of(*held, ranks);
    if (parts.size() != ranks.size()) return {};
    const auto offset = static_cast<const std::byte*>(buffer) - held->parts[held->rank];
    places.name = Random::mix(places.name ^ held->number) ^
                  Random::mix(static_cast<std::uint64_t>(offset) * 2 + (in ? 1 : 0));
    for (std::size_t rank = 0; rank < parts.size(); ++rank)
      (in ? places.peers[rank].input : places.peers[rank].output) = parts[rank] + offset;
  }
  return places;
}

}  // namespace paceline
