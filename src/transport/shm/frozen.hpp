// Frozen: whether the control group of a process is frozen (systemctl freeze, `docker pause`).
//
// Its state in /proc does not show that: it is that of a process that sleeps, or waits for a disk.
#pragma once

#include <string>
#include <vector>

namespace paceline {

class Freezers {
 public:
  // `mounts`: as in /proc/self/mountinfo, which says where control groups are mounted.
  explicit Freezers(const std::string& mounts);
  Freezers();

  // True if the process is in a frozen group. `groups`: as in /proc/PID/cgroup. A group that cannot
  // be read, such as one outside of this process's namespace, counts as not frozen.
  bool hold(const std::string& groups) const;
  bool hold(int process_id) const;

 private:
  struct Mount {
    bool unified = false;   // version 2 of control groups; else the freezer of version 1
    std::string root;       // the group that is seen at `folder`
    std::string folder;
  };
  bool is_frozen(const Mount& mount, const std::string& group) const;

  std::vector<Mount> mounts_;
};

}  // namespace paceline
