#include "transport/process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/str.hpp"

namespace paceline {
namespace {

// Start time of a process, in ticks since the boot; empty: it has ended (it may still wait for its
// parent), or /proc cannot be read. Reads the entry of its first thread: an emulator of another
// processor makes up what a process reads of itself, but not what it reads of its threads.
std::string begin_of(int id) {
  std::string stat;
  std::getline(std::ifstream(str("/proc/", id, "/task/", id, "/stat")), stat, '\0');
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::string state, field;
  fields >> state;   // the third field, the first after the name
  for (int i = 4; i <= 22; ++i) fields >> field;
  return fields && state != "Z" && state != "X" ? field : "";
}

// Target of a link of /proc; empty: the system has none of this name.
std::string link_of(const char* path) {
  char target[64] = {};
  return readlink(path, target, sizeof(target) - 1) > 0 ? target : std::string();
}

}  // namespace

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

// Numbers of processes, and when they began, mean something within a boot, a space of such numbers,
// and a space of clocks. Empty: not known, or /proc is that of another space.
std::string process_space() {
  const std::string numbers = link_of("/proc/self/ns/pid");
  if (numbers.empty() || link_of("/proc/self") != str(getpid()) || begin_of(getpid()).empty())
    return {};
  return str(boot_id(), " ", numbers, " ", link_of("/proc/self/ns/time"));
}

std::string own_process() { return str(getpid(), " ", begin_of(getpid()), " ", process_space()); }

Seen look_at(const std::string& process, const std::string& space) {
  std::istringstream fields(process);
  int id = 0;
  std::string begin, theirs;
  fields >> id >> begin >> std::ws;
  std::getline(fields, theirs);
  if (space.empty() || theirs != space) return Seen::elsewhere;
  return begin_of(id) == begin ? Seen::runs : Seen::has_ended;
}

int number_of_process(const std::string& process) { return std::atoi(process.c_str()); }

std::string why_stale(int rank, const std::string& process) {
  return str("start-up: what rank ", rank, " has said",
             process.empty() ? "" : str(" (process ", number_of_process(process), ")"),
             " is in the store from an earlier run, or its process has ended while the ranks met. "
             "A store must be new for each run; start all ranks again, with a new one.");
}

ProcessWatch::ProcessWatch(int id)
    : id_(id), descriptor_(static_cast<int>(syscall(SYS_pidfd_open, id, 0))) {
  if (descriptor_ >= 0) return;
  error_ = errno;
  begin_ = begin_of(id);
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ProcessWatch::has_ended() const {
  if (error_ == ESRCH) return true;
  pollfd watch{descriptor_, POLLIN, 0};
  if (descriptor_ >= 0) return poll(&watch, 1, 0) == 1;
  return !begin_.empty() && begin_of(id_) != begin_;
}

}  // namespace paceline
