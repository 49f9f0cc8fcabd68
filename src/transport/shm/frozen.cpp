#include "transport/shm/frozen.hpp"

#include <sstream>

#include "base/files.hpp"
#include "base/str.hpp"

namespace paceline {
namespace {

bool has_word(const std::string& list, const std::string& word) {
  return str(",", list, ",").find(str(",", word, ",")) != std::string::npos;
}

}  // namespace

// A line is "36 35 0:30 /root /folder options ... - type source options".
Freezers::Freezers(const std::string& mounts) {
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t ends = line.find(" - ");
    if (ends == line.npos) continue;
    std::istringstream before(line), after(line.substr(ends + 3));
    std::string skipped, type, options;
    Mount mount;
    before >> skipped >> skipped >> skipped >> mount.root >> mount.folder;
    after >> type >> skipped >> options;
    mount.unified = type == "cgroup2";
    if (mount.unified || (type == "cgroup" && has_word(options, "freezer")))
      mounts_.push_back(std::move(mount));
  }
}

Freezers::Freezers() : Freezers(contents_of("/proc/self/mountinfo")) {}

bool Freezers::hold(int process_id) const {
  return !mounts_.empty() && hold(contents_of(str("/proc/", process_id, "/cgroup")));
}

// A line is "0::/group" in version 2, "6:freezer,other:/group" in version 1.
bool Freezers::hold(const std::string& groups) const {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const Mount& mount : mounts_)
      if (mount.unified ? controllers.empty() : has_word(controllers, "freezer"))
        if (is_frozen(mount, line.substr(second + 1))) return true;
  }
  return false;
}

bool Freezers::is_frozen(const Mount& mount, const std::string& group) const {
  const std::string root = mount.root == "/" ? "" : mount.root;
  if (!group.starts_with(root)) return false;
  const std::string folder = mount.folder + group.substr(root.size());
  if (mount.unified)
    return contents_of(folder + "/cgroup.events").find("frozen 1") != std::string::npos;
  return contents_of(folder + "/freezer.state").starts_with("FR");   // FREEZING counts: most are
}

}  // namespace paceline
