#include "runtime/shared_memory.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/error.hpp"
#include "transport/shm/segment.hpp"

namespace paceline {
namespace {

constexpr std::size_t kPage = 4096;

// Bytes of a rank's card, which describes its part: "<pid> <descriptor> <nonce>", or nothing.
constexpr std::size_t kCard = 64;

// Keeps every rank's part in a file of its own. The file begins with a random number until all
// ranks have attached it, so that they recognise it.
class Parts : public SharedMemory {
 public:
  explicit Parts(const Wanted& wanted)
      : bytes_(wanted.bytes), huge_(wanted.huge_pages && wanted.bytes >= kHugePage) {
    const std::size_t unit = huge_ ? kHugePage : kPage;
    file_bytes_ = std::max<std::size_t>(1, (bytes_ + unit - 1) / unit) * unit;
  }

  // Creates this rank's part and returns its card; empty if there is no shared memory.
  std::string create(const std::string& folder, std::size_t rank, std::size_t ranks) {
    files_.resize(ranks);
    rank_ = rank;
    try {
      files_[rank] = SharedFile::create(folder, file_bytes_);
      if (huge_) files_[rank].use_huge_pages();
    } catch (const Error& error) {
      trouble_ = error.what();
      return {};
    }
    std::uint64_t nonce = 0;
    if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce)) {
      trouble_ = "shm: the system has no random numbers.";
      return {};
    }
    std::memcpy(files_[rank].data(), &nonce, sizeof(nonce));
    return str(files_[rank].address(), " ", nonce);
  }

  bool attach(std::size_t peer, const std::string& card) {
    if (peer == rank_) return trouble_.empty();
    std::istringstream words(card);
    std::string pid, descriptor;
    std::uint64_t nonce = 0;
    if (!(words >> pid >> descriptor >> nonce)) return false;   // the peer reports its reason
    try {
      files_[peer] = SharedFile::attach(pid + " " + descriptor, file_bytes_);
      if (std::memcmp(files_[peer].data(), &nonce, sizeof(nonce)) != 0)
        fail(Fault::refusal, "shm: the memory found is another's");
    } catch (const Error& error) {
      if (trouble_.empty()) trouble_ = str("rank ", peer, " cannot be reached: ", error.what());
      return false;
    }
    return true;
  }

  // Takes private memory. `speaks`: keeps the reason, for trouble().
  void settle_private(bool speaks) {
    files_.clear();
    own_.resize(bytes_);
    if (!speaks) trouble_.clear();
  }

  ~Parts() override {
    if (changes_) changes_->fetch_add(1, std::memory_order_release);
  }

  // Takes the shared memory, which every rank has attached.
  void settle_shared(const Wanted& wanted, const SharedBook& book) {
    changes_ = book.counter();
    files_[rank_].close_descriptor();
    std::memset(files_[rank_].data(), 0, sizeof(std::uint64_t));
    allocation_.number = wanted.number;
    allocation_.ranks = wanted.ranks;
    allocation_.rank = rank_;
    allocation_.bytes = bytes_;
    for (const SharedFile& file : files_) allocation_.parts.push_back(file.data());
  }

  std::byte* data() const override {
    return is_shared() ? files_[rank_].data() : const_cast<std::byte*>(own_.data());
  }
  std::size_t bytes() const override { return bytes_; }
  bool is_shared() const override { return !files_.empty(); }
  std::string trouble() const override { return trouble_; }
  const Allocation& allocation() const { return allocation_; }

 private:
  std::size_t bytes_, file_bytes_ = 0;
  bool huge_;
  std::size_t rank_ = 0;
  std::string trouble_;
  std::vector<SharedFile> files_;
  std::vector<std::byte> own_;   // private memory
  std::shared_ptr<std::atomic<std::uint64_t>> changes_;   // counter of the book
  Allocation allocation_;
};

std::vector<std::string> share_cards(const RankCalls& calls, const std::string& mine) {
  std::vector<char> card(kCard), all(kCard * std::size_t(calls.ranks));
  std::copy_n(mine.begin(), std::min(mine.size(), kCard - 1), card.begin());
  Call call;
  call.collective = Collective::allgather;
  call.input = card.data();
  call.output = all.data();
  call.count = kCard;
  calls.run(call);
  std::vector<std::string> cards;
  for (std::size_t at = 0; at < all.size(); at += kCard) cards.emplace_back(all.data() + at);
  return cards;
}

// Returns the first rank that knows why it has not reached all parts; the number of ranks if all
// have. A rank that does not know gives the last rank, since another one knows.
int first_in_trouble(const RankCalls& calls, bool reached, const std::string& trouble) {
  std::int32_t first = calls.ranks;
  if (!reached) first = trouble.empty() ? calls.ranks - 1 : calls.rank;
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::i32;
  call.op = Op::min;
  call.input = call.output = &first;
  call.count = 1;
  calls.run(call);
  return first;
}

}  // namespace

std::shared_ptr<SharedMemory> allocate_shared(const RankCalls& calls, const Wanted& wanted,
                                              SharedBook& book) {
  const auto rank = std::size_t(calls.rank), ranks = std::size_t(calls.ranks);
  auto parts = std::make_shared<Parts>(wanted);
  if (!wanted.one_node) {
    parts->settle_private(false);
    return parts;
  }
  const auto cards = share_cards(calls, parts->create(wanted.folder, rank, ranks));
  bool reached = true;
  for (std::size_t peer = 0; peer < ranks; ++peer)
    reached = reached && parts->attach(peer, cards[peer]);
  const int first = first_in_trouble(calls, reached, parts->trouble());
  if (first < calls.ranks) {
    parts->settle_private(first == calls.rank);
    return parts;
  }
  parts->settle_shared(wanted, book);
  book.add({parts, &parts->allocation()});
  return parts;
}

}  // namespace paceline
