#include "transport/mpi/fabric.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/options_launcher.hpp"

namespace paceline::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libfabric.so.1";

// By releases of Intel MPI, from the folder that holds lib and bin; the last is the wheel's.
constexpr std::array kFolders = {"opt/mpi/libfabric/lib", "libfabric/lib", "libfabric",
                                 "lib/libfabric", "lib"};

bool is_wanted() {
  constexpr std::array kOff = {"0", "no", "off", "false", "disable"};
  std::string value = value_of("I_MPI_OFI_LIBRARY_INTERNAL").value_or("1");
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kOff, value) == kOff.end();
}

}  // namespace

std::string fabric_of(const std::string& library) {
  fs::path lib = fs::path(library).parent_path();
  if (lib.filename() == "release" || lib.filename() == "debug") lib = lib.parent_path();
  std::error_code none;  // a folder that cannot be read holds none for us
  for (const char* folder : kFolders) {
    const fs::path file = lib.parent_path() / folder / kName;
    if (fs::is_regular_file(file, none)) return file;
  }
  return "";
}

std::string providers_of(const std::string& fabric) {
  std::error_code none;
  const fs::path folder = fs::path(fabric).parent_path();
  return fs::is_directory(folder / "prov", none) ? folder / "prov" : folder;
}

void load_fabric_of(const std::string& library) {
  if (!is_wanted() || dlopen(kName, RTLD_NOW | RTLD_NOLOAD)) return;
  const std::string file = fabric_of(library);
  if (file.empty() || !dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return;
  setenv("FI_PROVIDER_PATH", providers_of(file).c_str(), 0);
}

}  // namespace paceline::mpi
