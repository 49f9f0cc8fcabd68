// A file system in memory for the ranks of one test: how much of it is taken shows what they left,
// though their files have no names.
#pragma once

#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "skip.hpp"

namespace paceline::test {

// Of so many bytes; only root can have one: the test that makes one is skipped otherwise.
class OwnMemory {
 public:
  explicit OwnMemory(std::size_t bytes) {
    REQUIRE(mkdtemp(path_));
    is_there_ = mount("tmpfs", path_, "tmpfs", 0, str("size=", bytes).c_str()) == 0;
    if (!is_there_) skip("only root can make a small /dev/shm");
  }
  ~OwnMemory() {
    if (is_there_) umount2(path_, MNT_DETACH);
    rmdir(path_);
  }
  OwnMemory(const OwnMemory&) = delete;
  bool is_there() const { return is_there_; }
  std::string path() const { return path_; }

  // Pages that are taken, also by files without a name.
  std::size_t taken() const {
    struct statvfs room{};
    REQUIRE(statvfs(path_, &room) == 0);
    return room.f_blocks - room.f_bfree;
  }

 private:
  char path_[32] = "/tmp/paceline-small-XXXXXX";
  bool is_there_ = false;
};

// Mappings of this process of memory that ranks share: files without a name in `folder`, and
// those that are in no folder.
inline int shared_maps(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);)
    found += line.ends_with(" (deleted)") &&
             (line.find(" " + folder + "/") != line.npos ||
              line.find(" /memfd:paceline") != line.npos);
  return found;
}

}  // namespace paceline::test
