#include "runtime/shared_memory.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/error.hpp"
#include "base/random.hpp"
#include "ir/contract.hpp"
#include "transport/shm/segment.hpp"

namespace paceline {
namespace {

constexpr std::size_t kPage = 4096;

// What a rank says about its part, of a fixed size: "<pid> <descriptor> <nonce>", or nothing.
constexpr std::size_t kCard = 64;

// Every rank's part as a file of its own; its last page holds a number that only the ranks know.
class Parts : public SharedMemory {
 public:
  explicit Parts(std::size_t bytes)
      : bytes_(bytes), file_bytes_((bytes + kPage - 1) / kPage * kPage + kPage) {}

  // The card of the own part; empty where there is no shared memory.
  std::string create(const std::string& folder, std::size_t rank, std::size_t ranks) {
    files_.resize(ranks);
    rank_ = rank;
    try {
      files_[rank] = SharedFile::create(folder, file_bytes_);
    } catch (const Error&) {
      return {};
    }
    std::uint64_t nonce = 0;
    if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce)) return {};
    std::memcpy(seal(rank), &nonce, sizeof(nonce));
    return str(files_[rank].address(), " ", nonce);
  }

  bool attach(std::size_t peer, const std::string& card) {
    if (peer == rank_) return files_[peer].data() != nullptr;
    std::istringstream words(card);
    std::string pid, descriptor;
    std::uint64_t nonce = 0;
    if (!(words >> pid >> descriptor >> nonce)) return false;
    try {
      files_[peer] = SharedFile::attach(pid + " " + descriptor, file_bytes_);
    } catch (const Error&) {
      return false;
    }
    return std::memcmp(seal(peer), &nonce, sizeof(nonce)) == 0;
  }

  // Whether every rank reaches every part decides what this is.
  void settle(bool shared, std::uint64_t number) {
    if (files_[rank_].data()) files_[rank_].close_descriptor();
    if (!shared) {
      files_.clear();
      own_.resize(bytes_);
      return;
    }
    allocation_.number = number;
    allocation_.rank = rank_;
    allocation_.bytes = bytes_;
    for (const SharedFile& file : files_) allocation_.parts.push_back(file.data());
  }

  std::byte* data() const override {
    return is_shared() ? files_[rank_].data() : const_cast<std::byte*>(own_.data());
  }
  std::size_t bytes() const override { return bytes_; }
  bool is_shared() const override { return !files_.empty(); }
  const Allocation& allocation() const { return allocation_; }

 private:
  std::byte* seal(std::size_t rank) { return files_[rank].data() + file_bytes_ - kPage; }

  std::size_t bytes_, file_bytes_;
  std::size_t rank_ = 0;
  std::vector<SharedFile> files_;
  std::vector<std::byte> own_;   // where memory is not shared
  Allocation allocation_;
};

std::vector<std::string> share_cards(Communicator& communicator, const std::string& mine) {
  std::vector<char> card(kCard), all(kCard * std::size_t(communicator.size()));
  std::copy_n(mine.begin(), std::min(mine.size(), kCard - 1), card.begin());
  Call call;
  call.collective = Collective::allgather;
  call.input = card.data();
  call.output = all.data();
  call.count = kCard;
  communicator.run(call);
  std::vector<std::string> cards;
  for (std::size_t at = 0; at < all.size(); at += kCard) cards.emplace_back(all.data() + at);
  return cards;
}

bool everybody(Communicator& communicator, bool mine) {
  std::uint8_t flag = mine ? 1 : 0;
  Call call;
  call.collective = Collective::allreduce;
  call.op = Op::min;
  call.input = call.output = &flag;
  call.count = 1;
  communicator.run(call);
  return flag == 1;
}

std::size_t bytes_of(const std::vector<Piece>& units, Type type) {
  std::size_t end = 0;
  for (const Piece& unit : units) end = std::max(end, unit.offset + unit.count);
  return end * size_of(type);
}

}  // namespace

std::shared_ptr<SharedMemory> allocate_shared(Communicator& communicator, std::uint64_t number,
                                              std::size_t bytes, const std::string& folder,
                                              SharedBook& book) {
  const auto rank = std::size_t(communicator.rank()), ranks = std::size_t(communicator.size());
  auto parts = std::make_shared<Parts>(bytes);
  const auto cards = share_cards(communicator, parts->create(folder, rank, ranks));
  bool reached = true;
  for (std::size_t peer = 0; peer < ranks; ++peer)
    reached = reached && parts->attach(peer, cards[peer]);
  const bool shared = everybody(communicator, reached);
  parts->settle(shared, number);
  if (shared) book.add({parts, &parts->allocation()});
  return parts;
}

void SharedBook::add(const std::shared_ptr<const Allocation>& allocation) {
  const std::lock_guard lock(mutex_);
  std::erase_if(allocations_, [](const auto& held) { return held.expired(); });
  allocations_.push_back(allocation);
  used_ = true;
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
                                             const Layout& layout) const {
  if (!used_ || call.uneven) return {};
  const std::lock_guard lock(mutex_);
  SharedPlaces places;
  places.peers.resize(std::size_t(problem.ranks));
  const Space input = home(problem, Space::input), output = home(problem, Space::output);
  for (const Space space : {Space::input, Space::output}) {
    if (space != input && space != output) continue;   // in place: one buffer under one name
    const bool in = space == Space::input;
    const void* buffer = in ? call.input : call.output;
    const auto held = holder(buffer, bytes_of(in ? layout.input : layout.output, call.type));
    if (!held) return {};
    const auto offset = static_cast<const std::byte*>(buffer) - held->parts[held->rank];
    places.name = Random::mix(places.name ^ held->number) ^
                  Random::mix(static_cast<std::uint64_t>(offset) * 2 + (in ? 1 : 0));
    for (std::size_t rank = 0; rank < held->parts.size(); ++rank)
      (in ? places.peers[rank].input : places.peers[rank].output) = held->parts[rank] + offset;
  }
  return places;
}

}  // namespace paceline
