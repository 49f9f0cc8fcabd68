// Frozen: control groups of both versions, at any mount point.
#include "transport/shm/frozen.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/str.hpp"

namespace paceline {
namespace {

// Files as the system would have them: version 2 at unified/, the freezer of version 1 at old/.
struct Groups {
  Groups() : folder(std::filesystem::temp_directory_path() / str("paceline-groups-", getpid())) {
    write("unified/job/frozen/cgroup.events", "populated 1\nfrozen 1\n");
    write("unified/job/works/cgroup.events", "populated 1\nfrozen 0\n");
    write("unified/ended/cgroup.events/it", "opens, and cannot be read");
    write("old/frozen/freezer.state", "FROZEN\n");
    write("old/nearly/freezer.state", "FREEZING\n");
    write("old/works/freezer.state", "THAWED\n");
  }
  ~Groups() { std::filesystem::remove_all(folder); }
  Groups(const Groups&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  // Returns the freezers if the group `root` is mounted at unified/.
  Freezers freezers(const std::string& root = "/") const {
    const std::string at = folder.string();
    return Freezers(str("30 20 0:26 ", root, " ", at, "/unified rw,relatime - cgroup2 none rw\n",
                        "31 20 0:27 / ", at, "/old rw shared:5 - cgroup none rw,cpu,freezer\n",
                        "32 20 0:28 / ", at, "/other rw - cgroup none rw,memory\n"));
  }

  const std::filesystem::path folder;
};

TEST_CASE("frozen groups of either version") {
  const Groups groups;
  const Freezers freezers = groups.freezers();
  CHECK(freezers.hold("9:memory:/\n0::/job/frozen\n"));
  CHECK(!freezers.hold("9:memory:/\n0::/job/works\n"));
  CHECK(freezers.hold("6:cpu,freezer:/frozen\n0::/job/works\n"));
  CHECK(freezers.hold("6:freezer:/nearly\n"));
  CHECK(!freezers.hold("6:freezer:/works\n0::/job/works\n"));
  CHECK(!freezers.hold("6:memory:/frozen\n"));
}

TEST_CASE("a part of the groups is all that a container sees") {
  const Groups groups;
  CHECK(groups.freezers("/pod").hold("0::/pod/job/frozen\n"));
  CHECK(!groups.freezers("/pod").hold("0::/job/frozen\n"));
}

TEST_CASE("what cannot be read is not frozen") {
  const Groups groups;
  for (const char* said : {"", "0", "0:", "0::", "::", "0::/none\n", "0::/../..\n", "0::/ended\n",
                           "6:freezer\n"})
    CHECK(!groups.freezers().hold(said));
  for (const char* mounts : {"", "-", " - ", "1 2 3 4 5 - cgroup2", "cgroup2 - cgroup freezer"})
    CHECK(!Freezers(mounts).hold("0::/job/frozen\n6:freezer:/frozen\n"));
  CHECK(!Freezers().hold(getpid()));
  CHECK(!Freezers().hold(1 << 30));
}

}  // namespace
}  // namespace paceline
