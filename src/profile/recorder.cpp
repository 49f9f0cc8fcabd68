#include "profile/recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include "base/error.hpp"
#include "base/str.hpp"

namespace paceline {
namespace {

constexpr std::size_t kTextBytes = 1u << 20;

std::int64_t ns_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::uint64_t hash_of(std::string_view text) {   // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string first_line_of(const char* path) {
  char line[128] = "";
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t bytes = read(file, line, sizeof line - 1);
  close(file);
  return bytes > 0 ? std::string(line, static_cast<std::size_t>(bytes)) : std::string();
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out;
}

template <std::size_t N>
void put(char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), std::min(N - 1, text.size()));
}

}  // namespace

std::int64_t profile_now_ns() { return ns_of(CLOCK_MONOTONIC); }

// Two containers on one machine share its boot; a time namespace shifts the clock of those in it.
std::uint64_t clock_identity() {
  std::string text = first_line_of("/proc/sys/kernel/random/boot_id");
  if (text.empty()) text = host_name();
  char space[64] = "";
  if (readlink("/proc/self/ns/time", space, sizeof space - 1) > 0) text += space;
  return hash_of(text);
}

Recorder::Recorder(const ProfileConfig& config)
    : path_(str(config.folder, "/", config.source, "-", config.rank, ".profile")) {
  map(config);
  describe(config);
}

// MAP_POPULATE maps the pages before the first call, which then has no page faults.
void Recorder::map(const ProfileConfig& config) {
  const std::size_t capacity = std::max<std::size_t>(1, config.bytes / sizeof(CallRecord));
  bytes_ = kProfileHeaderBytes + kTextBytes + capacity * sizeof(CallRecord);
  const auto give_up = [&](const char* what) {
    fail(Fault::resource, "profile: '", path_, "' cannot be ", what, ": ", std::strerror(errno),
         ". Set PACELINE_PROFILE to a folder that every rank can write to, with room for ",
         bytes_ >> 20, " MiB per rank, or PACELINE_PROFILE_BYTES to less.");
  };
  mkdir(config.folder.c_str(), 0777);   // it mostly exists; if it cannot be made, open() fails
  const std::string fresh = str(path_, ".", getpid());
  unlink(fresh.c_str());
  const int file = open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) give_up("made");
  // Allocates the blocks, not only the length: a full disk would otherwise end the program later.
  if (const int error = posix_fallocate(file, 0, static_cast<off_t>(bytes_)); error != 0) {
    errno = error;
    close(file);
    unlink(fresh.c_str());
    give_up("given its length");
  }
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  // Another program may still write to an older file of that name, which only loses its name.
  if (memory == MAP_FAILED || rename(fresh.c_str(), path_.c_str()) != 0) {
    unlink(fresh.c_str());
    give_up("mapped");
  }
  memory_ = static_cast<std::byte*>(memory);
  header_ = new (memory_) ProfileHeader{};
  header_->capacity = capacity;
  records_ = reinterpret_cast<CallRecord*>(memory_ + kProfileHeaderBytes + kTextBytes);
}

void Recorder::describe(const ProfileConfig& config) {
  ProfileHeader& header = *header_;
  header.header_bytes = kProfileHeaderBytes;
  header.record_bytes = sizeof(CallRecord);
  header.text_bytes = kTextBytes;
  header.rank = config.rank;
  header.ranks = config.ranks;
  header.process = getpid();
  header.begin_ns = profile_now_ns();
  header.begin_unix_ns = ns_of(CLOCK_REALTIME);
  header.clock = clock_identity();
  put(header.source, config.source);
  put(header.host, host_name());
  put(header.node, config.node.empty() ? host_name() : config.node);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header.magic, kProfileMagic, sizeof header.magic);   // from here on it is readable
}

Recorder::~Recorder() { munmap(memory_, bytes_); }

std::uint32_t Recorder::communicator(std::span<const int> ranks,
                                     std::optional<std::uint64_t> instance) {
  std::string members;
  for (const int rank : ranks) members += str(members.empty() ? "" : ",", rank);
  const std::lock_guard lock(mutex_);
  if (!instance) instance = alike_[std::vector<int>(ranks.begin(), ranks.end())]++;
  const std::uint32_t number = communicators_++;
  note(str("{\"communicator\":", number, ",\"instance\":", *instance, ",\"ranks\":[", members,
           "]}"));
  return number;
}

std::uint32_t Recorder::operation(std::uint32_t communicator, std::uint32_t which) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = communicators_++;
  note(str("{\"operation\":", which, ",\"communicator\":", communicator, ",\"number\":", number,
           "}"));
  return number;
}

std::uint32_t Recorder::site(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = sites_.find(name); found != sites_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(sites_.size());
  sites_.emplace(name, number);
  note(str("{\"site\":", number, ",\"name\":\"", escaped(name), "\"}"));
  return number;
}

// Several threads may write lines at a time: each reserves room first. A reader finds zeros in room
// whose text is not yet written.
void Recorder::note(std::string_view line) {
  const std::uint64_t bytes = line.size() + 1;
  std::uint64_t at = header_->text_used.load();
  do {
    if (at + bytes > header_->text_bytes) {
      ++header_->text_lost;
      return;
    }
  } while (!header_->text_used.compare_exchange_weak(at, at + bytes));
  char* text = reinterpret_cast<char*>(memory_) + kProfileHeaderBytes + at;
  std::memcpy(text, line.data(), line.size());
  text[line.size()] = '\n';
}

// A thread that is still inside a call may write to its record: the page is mapped again then.
void Recorder::finish() {
  header_->end_ns.store(profile_now_ns());
  madvise(memory_, bytes_, MADV_DONTNEED);   // the file has it
}

}  // namespace paceline
