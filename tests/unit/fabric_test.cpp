// Where releases of Intel MPI have their libfabric.
#include "transport/mpi/fabric.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace paceline {
namespace {

namespace fs = std::filesystem;

// A release in a folder that goes with the test.
struct Release {
  std::string root;
  Release() {
    char name[] = "/tmp/paceline-fabric-XXXXXX";
    root = mkdtemp(name);
  }
  ~Release() { fs::remove_all(root); }
  Release(const Release&) = delete;
  std::string with(const std::string& path) const {
    const fs::path file = root + "/" + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "a library";
    return file;
  }
};

TEST_CASE("fabric: found in each release's folder") {
  for (const char* folder : {"opt/mpi/libfabric/lib", "libfabric/lib", "libfabric",
                             "lib/libfabric", "lib"}) {
    CAPTURE(folder);
    const Release release;
    const std::string file = release.with(std::string(folder) + "/libfabric.so.1");
    for (const char* library : {"lib/libmpi.so.12", "lib/release/libmpi.so.12",
                                "lib/debug/libmpi.so.12", "lib64/libmpi_abi.so.1"})
      CHECK(mpi::fabric_of(release.root + "/" + library) == file);
  }
}

TEST_CASE("fabric: one in a folder of its own before the one in lib") {
  const Release release;
  release.with("lib/libfabric.so.1");
  const std::string file = release.with("opt/mpi/libfabric/lib/libfabric.so.1");
  CHECK(mpi::fabric_of(release.root + "/lib/libmpi.so.12") == file);
}

TEST_CASE("fabric: none where nothing of that name is a file") {
  const Release release;
  release.with("lib/libfabric.so");
  release.with("libfabric/lib/libfabric.so.1/a file in a folder of that name");
  CHECK(mpi::fabric_of(release.root + "/lib/libmpi.so.12").empty());
  CHECK(mpi::fabric_of("libmpi.so.12").empty());
  CHECK(mpi::fabric_of("").empty());
}

}  // namespace
}  // namespace paceline
