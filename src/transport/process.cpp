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

// When a process began, in ticks since the boot; empty: it has ended (it may still wait for its
// parent to look), or /proc cannot be read.
std::string begin_of(const std::string& id) {
  std::string stat;
  std::getline(std::ifstream("/proc/" + id + "/stat"), stat, '\0');
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::string state, field;
  fields >> state;   // the third field, the first after the name
  for (int i = 4; i <= 22; ++i) fields >> field;
  return fields && state != "Z" && state != "X" ? field : "";
}

// The name of a namespace of this process; empty where the system has none of this kind.
std::string space_of(const char* kind) {
  char name[64] = {};
  return readlink(kind, name, sizeof(name) - 1) > 0 ? name : std::string();
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
  const std::string numbers = space_of("/proc/self/ns/pid"), begin = begin_of("self");
  if (numbers.empty() || begin.empty() || begin != begin_of(std::to_string(getpid()))) return {};
  return str(boot_id(), " ", numbers, " ", space_of("/proc/self/ns/time"));
}

std::string own_process() { return str(getpid(), " ", begin_of("self"), " ", process_space()); }

Seen look_at(const std::string& process, const std::string& space) {
  std::istringstream fields(process);
  int id = 0;
  std::string begin, theirs;
  fields >> id >> begin >> std::ws;
  std::getline(fields, theirs);
  if (space.empty() || theirs != space) return Seen::elsewhere;
  return begin_of(std::to_string(id)) == begin ? Seen::runs : Seen::has_ended;
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
  begin_ = begin_of(std::to_string(id));
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ProcessWatch::has_ended() const {
  if (error_ == ESRCH) return true;
  pollfd watch{descriptor_, POLLIN, 0};
  if (descriptor_ >= 0) return poll(&watch, 1, 0) == 1;
  return !begin_.empty() && begin_of(std::to_string(id_)) != begin_;
}

}  // namespace paceline
