// Process: the identity of a rank's process, by which others on its boot tell whether it runs.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace paceline {

std::string boot_id();

// This process, in words that hold within a boot, a space of process numbers, and a space of
// clocks.
std::string own_process();

// The space in which such words hold; empty: unknown.
std::string process_space();

enum class Seen { runs, has_ended, elsewhere };   // elsewhere: it cannot be told

// `space`: that of this process, which takes longer to find out than the rest.
Seen look_at(const std::string& process, const std::string& space);
int number_of_process(const std::string& process);
// Error text about a rank whose words are from an earlier run, or whose process has ended.
std::string why_stale(int rank, const std::string& process = "");

// Sees whether a process of this space has ended: by a descriptor of it, at once and for certain;
// without one (before Linux 5.3, or forbidden) by the start time of the process of that number.
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
  std::string begin_;   // start time; empty: not compared
};

// Descriptors are few, so all watchers of a process share one.
using SharedWatch = std::shared_ptr<const ProcessWatch>;
using Watches = std::map<int, SharedWatch>;   // by rank

}  // namespace paceline
