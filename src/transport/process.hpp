// Process: of which process a rank is, so that others on its boot can tell whether it still runs.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace paceline {

std::string boot_id();

// This process, in words that mean something to others within a boot, a space of numbers of
// processes, and a space of clocks.
std::string own_process();

// Where such words mean something; empty: nowhere.
std::string process_space();

enum class Seen { runs, has_ended, elsewhere };   // elsewhere: it cannot be told

// `space`: that of this process, which takes longer to find out than the rest.
Seen look_at(const std::string& process, const std::string& space);
int number_of_process(const std::string& process);
// What to say of a rank whose words are those of a process that has ended.
std::string why_stale(int rank, const std::string& process = "");

// Sees whether a process of this space has ended: by a descriptor of it, at once and for certain;
// where there is none (before Linux 5.3, or forbidden) by when the process of that number began.
class ProcessWatch {
 public:
  explicit ProcessWatch(int id);
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch();
  int id() const { return id_; }
  bool has_ended() const;
  bool has_descriptor() const { return descriptor_ >= 0; }
  int error() const { return error_; }   // why there is no descriptor

 private:
  int id_ = 0, descriptor_ = -1, error_ = 0;
  std::string begin_;   // empty: not looked at by it
};

// Descriptors are few: whoever watches a process shares that of it.
using SharedWatch = std::shared_ptr<const ProcessWatch>;
using Watches = std::map<int, SharedWatch>;   // by rank

}  // namespace paceline
