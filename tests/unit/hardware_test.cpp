// Fingerprint of processors and network: each part counts, and differences between nodes of one
// kind do not.
#include "machine/hardware.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/str.hpp"
#include "folder.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// A kernel's folders, made up.
struct System : test::Folder {
  System() {
    processor("Xeon");
    adapter("eth0", "25000", true);
    adapter("lo", "0", false);
  }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((fs::path(path) / file).parent_path());
    std::ofstream(fs::path(path) / file) << text << "\n";
  }
  void processor(const std::string& name) {
    write("cpuinfo", str("processor\t: 0\nmodel name\t: ", name, "\ncpu MHz\t\t: ", ++mhz_));
  }
  void adapter(const std::string& name, const std::string& speed, bool real,
               const std::string& mtu = "1500", const std::string& state = "up") {
    const std::string one = "class/net/" + name + "/";
    write(one + "speed", speed);
    write(one + "mtu", mtu);
    write(one + "type", "1");
    write(one + "operstate", state);
    if (real) write(one + "device/vendor", "0x1af4");
  }
  std::string text() const { return describe_hardware(path, path + "/cpuinfo"); }

 private:
  int mhz_ = 2000;   // which changes by the moment
};

TEST_CASE("processors, adapters, their speed and packets, and what chooses among them count") {
  System system;
  std::set<std::string> seen{system.text()};
  const auto is_new = [&] { return seen.insert(system.text()).second; };
  CHECK(system.text().find("Xeon") != std::string::npos);
  system.processor("EPYC");
  CHECK(is_new());
  system.adapter("eth0", "100000", true);
  CHECK(is_new());
  system.adapter("eth0", "100000", true, "9000");
  CHECK(is_new());
  system.write("class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
  CHECK(is_new());
  setenv("UCX_TLS", "tcp", 1);
  CHECK(is_new());
  setenv("UCX_TLS", "rc", 1);
  CHECK(is_new());
  unsetenv("UCX_TLS");
  CHECK(!is_new());
}

TEST_CASE("names, the number of adapters of a kind, and virtual ones beside real ones do not") {
  System system;
  const std::string before = system.text();
  system.processor("Xeon");
  system.adapter("eth1", "25000", true);
  system.adapter("veth12ab", "10000", false);
  system.adapter("eth2", "1000", true, "1500", "down");
  CHECK(system.text() == before);
  fs::rename(fs::path(system.path) / "class/net/eth0", fs::path(system.path) / "class/net/ens3");
  CHECK(system.text() == before);
}

TEST_CASE("virtual adapters count where there are no others, as in a container") {
  System system;
  fs::remove_all(fs::path(system.path) / "class/net/eth0");
  const std::string none = system.text();
  system.adapter("eth0", "10000", false);
  CHECK(system.text() != none);
}

TEST_CASE("a machine that tells nothing has a description all the same") {
  CHECK(!describe_hardware("/nowhere", "/nowhere").empty());
}

}  // namespace
}  // namespace paceline
