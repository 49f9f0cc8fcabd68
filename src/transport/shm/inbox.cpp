#include "transport/shm/inbox.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <sstream>

#include "base/error.hpp"

namespace paceline {
namespace {

constexpr std::size_t kRingLeast = 64u << 10, kRingMost = 1u << 20;
constexpr std::size_t kCells = 16;

// A rank's card in the store: "ok <nonce> <nonce> <pid> <fd>", or "failed <why>".
std::string key_of(const ShmConfig& c, int rank) {
  return str("paceline/", c.world, "/shm/", rank);
}

std::string host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

RingShape ring_shape(std::size_t bytes, int ranks) {
  const std::size_t pairs = std::max<std::size_t>(1, std::size_t(ranks) * std::size_t(ranks - 1));
  const std::size_t ring = std::bit_floor(std::clamp(bytes / pairs, kRingLeast, kRingMost));
  return {kCells, ring / kCells};
}

std::size_t Inboxes::file_bytes() const {
  return kInboxHeader + std::size_t(ranks_) * (sizeof(Drained) + shape_.bytes());
}

Drained& Inboxes::drained(int owner, int writer) const {
  return reinterpret_cast<Drained*>(files_[std::size_t(owner)].data() + kInboxHeader)[writer];
}

Ring Inboxes::ring(int owner, int writer) const {
  std::byte* rings =
      files_[std::size_t(owner)].data() + kInboxHeader + std::size_t(ranks_) * sizeof(Drained);
  return Ring(rings + std::size_t(writer) * shape_.bytes(), shape_);
}

Inboxes::Inboxes(Store& store, const ShmConfig& c)
    : rank_(c.rank),
      ranks_(c.ranks),
      shape_(ring_shape(c.bytes, c.ranks)),
      files_(std::size_t(c.ranks)),
      process_(std::size_t(c.ranks), -1) {
  const auto timeout = std::chrono::milliseconds(c.start_timeout_ms);
  std::uint64_t nonce[2];
  try {
    create(c, nonce);
  } catch (const Error& error) {
    store.set(key_of(c, rank_), str("failed ", error.what()));  // the others must not wait for it
    throw;
  }
  store.set(key_of(c, rank_), str("ok ", nonce[0], " ", nonce[1], " ",
                                  files_[std::size_t(rank_)].address(), " ", host()));
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) attach(peer, store.get(key_of(c, peer), timeout));
  store.set(key_of(c, rank_) + "/attached", "1");
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) store.get(key_of(c, peer) + "/attached", timeout);
  files_[std::size_t(rank_)].close_descriptor();  // from now on nobody else gets in
}

void Inboxes::create(const ShmConfig& c, std::uint64_t nonce[2]) {
  SharedFile& own = files_[std::size_t(rank_)];
  own = SharedFile::create(c.dir, file_bytes());
  if (getrandom(nonce, 16, 0) != 16)
    fail(Fault::resource, "shm: the system has no random numbers.");
  header(rank_).nonce[0] = nonce[0];
  header(rank_).nonce[1] = nonce[1];
}

void Inboxes::attach(int peer, const std::string& card) {
  std::istringstream words(card);
  std::string state, pid, descriptor, where;
  std::uint64_t nonce[2] = {};
  words >> state;
  if (state != "ok")
    fail(Fault::resource, "rank ", peer,
         " could not start: ", card.substr(std::min<std::size_t>(card.size(), 7)));
  words >> nonce[0] >> nonce[1] >> pid >> descriptor >> where;
  try {
    process_[std::size_t(peer)] =
        static_cast<int>(syscall(SYS_pidfd_open, std::atoi(pid.c_str()), 0));
    files_[std::size_t(peer)] = SharedFile::attach(pid + " " + descriptor, file_bytes());
    if (header(peer).nonce[0] != nonce[0] || header(peer).nonce[1] != nonce[1])
      fail(Fault::refusal, "the memory found is another's");
  } catch (const Error& error) {
    fail(Fault::refusal, "shm: rank ", peer, " on '", where, "' cannot be reached from rank ",
         rank_, " on '", host(), "' (", error.what(),
         "). Ranks must be on one machine, in one container and of one user.");
  }
}

bool Inboxes::has_died(int rank) const {
  pollfd watch{process_[std::size_t(rank)], POLLIN, 0};
  return watch.fd >= 0 && poll(&watch, 1, 0) == 1;
}

Inboxes::~Inboxes() {
  for (int fd : process_)
    if (fd >= 0) close(fd);
}

}  // namespace paceline
