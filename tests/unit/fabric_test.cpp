// Paths of libfabric in releases of Intel MPI.
#include "transport/mpi/fabric.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "folder.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;

struct Release : test::Folder {
  std::string with(const std::string& name) const {
    const fs::path file = path + "/" + name;
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
      CHECK(mpi::fabric_of(release.path + "/" + library) == file);
  }
}

TEST_CASE("fabric: one in a folder of its own before the one in lib") {
  const Release release;
  release.with("lib/libfabric.so.1");
  const std::string file = release.with("opt/mpi/libfabric/lib/libfabric.so.1");
  CHECK(mpi::fabric_of(release.path + "/lib/libmpi.so.12") == file);
}

TEST_CASE("fabric: none where nothing of that name is a file") {
  const Release release;
  release.with("lib/libfabric.so");
  release.with("libfabric/lib/libfabric.so.1/a file in a folder of that name");
  CHECK(mpi::fabric_of(release.path + "/lib/libmpi.so.12").empty());
  CHECK(mpi::fabric_of("libmpi.so.12").empty());
  CHECK(mpi::fabric_of("").empty());
}

TEST_CASE("fabric: providers are beside it, or in a folder of their own") {
  const Release release;
  const std::string file = release.with("libfabric/lib/libfabric.so.1");
  CHECK(mpi::providers_of(file) == release.path + "/libfabric/lib");
  release.with("libfabric/lib/prov/libtcp-fi.so");
  CHECK(mpi::providers_of(file) == release.path + "/libfabric/lib/prov");
}

}  // namespace
}  // namespace paceline
