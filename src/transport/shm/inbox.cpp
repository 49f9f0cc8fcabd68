#include "transport/shm/inbox.hpp"

#include <linux/membarrier.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/error.hpp"
#include "base/processors.hpp"
#include "transport/shm/slab.hpp"

namespace paceline {
namespace {

// A rank's card: "ok <nonce> <nonce> <pid> <fd> <host> <light> <cells> <cell bytes> <free>
// <anonymous>", or "failed <why>". The addresses at which peers may read and write stand in the
// memory that the card leads to, not on it: a process that can write cards could name any address.
constexpr std::string_view kFailed = "failed ";

int can_be_light() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 ? 1 : 0;
}

bool is_ring(const RingShape& shape) {
  return std::has_single_bit(shape.cells) && shape.cells <= RingShape::kMostCells &&
         shape.cell_bytes >= RingShape::kLeastCell && shape.cell_bytes <= RingShape::kMostCell &&
         shape.cell_bytes % sizeof(Cell64) == 0;
}

// The host's name as one word, for the card; "?" if it has none.
std::string host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  std::string word = name;
  std::ranges::replace_if(word, [](unsigned char c) { return c <= ' ' || c == 127; }, '?');
  return word.empty() ? "?" : word;
}

}  // namespace

Drained& Inboxes::drained(int owner, int writer) const {
  return reinterpret_cast<Drained*>(files_[std::size_t(owner)].data() + kInboxHeader)[writer];
}

Ring Inboxes::ring(int owner, int writer) const {
  const RingShape& shape = shapes_[std::size_t(owner)];
  std::byte* rings =
      files_[std::size_t(owner)].data() + kInboxHeader + std::size_t(ranks_) * sizeof(Drained);
  return Ring(rings + std::size_t(writer) * shape.bytes(), shape);
}

Inboxes::Inboxes(Bootstrap& meeting, const ShmConfig& c)
    : rank_(meeting.rank()),
      ranks_(meeting.ranks()),
      shapes_(std::size_t(ranks_), ring_shape(c.bytes, ranks_)),
      files_(std::size_t(ranks_)),
      process_(std::size_t(ranks_)),
      pid_(std::size_t(ranks_), -1),
      memory_(rank_, c.names, c.single_copy) {
  const std::vector<std::string> cards = meeting.allgather(create(c));
  std::string why;   // this rank's own trouble comes first
  for (int i = 0; i < ranks_ && why.empty(); ++i) {
    const int peer = (rank_ + i) % ranks_;
    try {
      attach(meeting, peer, cards[std::size_t(peer)]);
    } catch (const Error& error) {
      why = error.what();
    }
  }
  const std::string no_stage = why.empty() && ranks_ > 1 ? reserve(c) : "";
  settle(c, meeting.allgather(str(why, "\n", no_stage, "\n", memory_.finding())));
  files_[std::size_t(rank_)].close_descriptor();  // no other process can attach from now on
}

std::string Inboxes::reserve(const ShmConfig& c) try {
  provision_ = provide(stage_bytes(c.stage_bytes, ranks_), spaces_);
  if (provision_.bytes == 0) return {};
  const std::size_t bytes = Slab::file_bytes(1, provision_.bytes);
  reserved_ = provision_.in_folder ? SharedFile::create(c.dir, bytes)
                                   : SharedFile::create_anonymous(bytes);
  return {};
} catch (const Error& error) {
  return error.what();
}

// `said`: three lines of every rank: why it cannot take part, why it has no stage, what it has
// found of its peers' memory.
void Inboxes::settle(const ShmConfig& c, const std::vector<std::string>& said) {
  std::string no_stage;
  for (int i = 0; i < ranks_; ++i) {
    const int peer = (rank_ + i) % ranks_;
    const std::string& theirs = said[std::size_t(peer)];
    const std::size_t first = theirs.find('\n'), last = theirs.rfind('\n');
    require(first < last && last != theirs.npos, "shm: rank ", peer, " has said '", theirs, "'");
    if (first > 0) fail(Fault::resource, theirs.substr(0, first));
    if (first + 1 < last)
      no_stage = str("rank ", peer, ": ", theirs.substr(first + 1, last - first - 1));
  }
  std::vector<std::string> findings;
  for (const std::string& theirs : said) findings.push_back(theirs.substr(theirs.rfind('\n') + 1));
  memory_.agree(findings);
  if (!no_stage.empty()) {
    provision_.bytes = 0;
    reserved_ = {};
  }
  if (rank_ > 0 || ranks_ == 1) return;
  for (const std::string& line :
       {shortage_of_rings(c, shapes_), shortage(c, provision_, spaces_, no_stage)})
    if (!line.empty()) std::fprintf(stderr, "paceline: %s\n", line.c_str());
}

std::string Inboxes::create(const ShmConfig& c) try {
  SharedFile& own = files_[std::size_t(rank_)];
  RingShape& shape = shapes_[std::size_t(rank_)];
  shape = fitting(shape, c.dir, ranks_);
  own = SharedFile::create_or_besides(c.dir, inbox_bytes(shape, ranks_));
  const FolderSpace space = folder_space(c.dir);
  std::uint64_t* nonce = header(rank_).nonce;
  if (getrandom(nonce, 16, 0) != 16)
    fail(Fault::resource, "shm: the system has no random numbers.");
  const std::string memory = memory_.card();
  require(memory.size() < sizeof(InboxHeader::memory), "shm: ", memory, " is too long");
  std::memcpy(header(rank_).memory, memory.c_str(), memory.size() + 1);
  return str("ok ", nonce[0], " ", nonce[1], " ", own.address(), " ", host(), " ", can_be_light(),
             " ", shape.cells, " ", shape.cell_bytes, " ", space.free, " ", space.anonymous, " ",
             space.longest);
} catch (const Error& error) {
  return str(kFailed, error.what());   // the others must not wait for it
}

void Inboxes::attach(const Bootstrap& meeting, int peer, const std::string& card) {
  if (card.starts_with(kFailed)) {
    const std::string why = card.substr(kFailed.size());
    if (peer == rank_) fail(Fault::resource, why);
    fail(Fault::resource, "rank ", peer, " could not start: ", why);
  }
  std::istringstream words(card);
  std::string state, pid, descriptor, where;
  std::uint64_t nonce[2] = {};
  int light = 0;
  FolderSpace space;
  RingShape& shape = shapes_[std::size_t(peer)];
  words >> state >> nonce[0] >> nonce[1] >> pid >> descriptor >> where >> light >> shape.cells >>
      shape.cell_bytes >> space.free >> space.anonymous >> space.longest;
  spaces_.push_back(space);
  light_ = light_ && light == 1;
  const int number = pid_[std::size_t(peer)] = std::atoi(pid.c_str());
  if (peer == rank_) return;
  try {
    process_[std::size_t(peer)] = meeting.watch(peer, number);
    const ProcessWatch& process = *process_[std::size_t(peer)];
    if (process.error() == EMFILE || process.error() == ENFILE)
      fail(Fault::resource, "shm: no descriptor is free to watch it: ",
           std::strerror(process.error()), ". Close files, or raise their limit (ulimit -n).");
    if (!is_ring(shape)) fail(Fault::refusal, "its rings have no shape: ", card);
    files_[std::size_t(peer)] =
        SharedFile::attach(pid + " " + descriptor, inbox_bytes(shape, ranks_));
    if (header(peer).nonce[0] != nonce[0] || header(peer).nonce[1] != nonce[1])
      fail(Fault::refusal, "the memory found is another's");
    const char* said = header(peer).memory;
    memory_.try_peer({peer, number, process.has_descriptor()},
                     std::string(said, strnlen(said, sizeof(InboxHeader::memory))));
  } catch (const Error& error) {
    if (error.fault() == Fault::resource)
      fail(Fault::resource, "shm: rank ", rank_, " cannot reach rank ", peer, " (", error.what(),
           ")");
    fail(Fault::refusal, "shm: rank ", peer, " on '", where, "' cannot be reached from rank ",
         rank_, " on '", host(), "' (", error.what(),
         "). Ranks must be on one machine, in one container and of one user.");
  }
}

// A rank whose processors are not known may be anywhere.
bool Inboxes::is_oversubscribed() const {
  const std::vector<int> own = allowed_processors();
  int here = 1;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    const std::vector<int> theirs = allowed_processors(process_id(rank));
    here += std::ranges::includes(own, theirs) ? 1 : 0;
  }
  return here > static_cast<int>(own.size());
}

bool Inboxes::has_died(int rank) const {
  return process_[std::size_t(rank)] && process_[std::size_t(rank)]->has_ended();
}

}  // namespace paceline
