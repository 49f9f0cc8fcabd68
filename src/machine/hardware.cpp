#include "machine/hardware.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/options_launcher.hpp"
#include "base/str.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Variables by which users and launchers choose the network of an MPI.
constexpr const char* kVariables[] = {
    "FI_PROVIDER",     "FI_TCP_IFACE",   "FI_OFI_RXM_BUFFER_SIZE",  "I_MPI_FABRICS",
    "I_MPI_OFI_PROVIDER", "MPIR_CVAR_CH4_NETMOD", "OMPI_MCA_btl",   "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_mtl",    "OMPI_MCA_pml",   "UCX_NET_DEVICES",         "UCX_TLS"};

std::string line_of(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

// Returns the processor's model from /proc/cpuinfo, whose keys differ between architectures.
std::string processor_of(const std::string& file) {
  std::set<std::string> kinds;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    for (const char* key : {"model name", "CPU part", "cpu\t", "uarch"})
      if (line.starts_with(key)) kinds.insert(line.substr(line.find(':') + 1));
  std::string out;
  for (const std::string& kind : kinds) out += kind;
  return out;
}

std::set<std::string> entries_of(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;   // a missing folder has no entries
  for (const auto& entry : fs::directory_iterator(folder, error))
    names.insert(entry.path().filename().string());
  return names;
}

// Returns the adapters that are up, by kind, speed and packet size. Names and numbers are left out,
// since they differ between nodes, and change with every container that is started. Virtual
// adapters count only if there are no others.
std::string adapters(const fs::path& system) {
  std::set<std::string> real, all;
  for (const std::string& name : entries_of(system / "class/net")) {
    const fs::path one = system / "class/net" / name;
    const std::string type = line_of(one / "type"), state = line_of(one / "operstate");
    if (name == "lo" || state == "down") continue;
    const std::string kind =
        str(type, "/", line_of(one / "speed"), "/", line_of(one / "mtu"));
    all.insert(kind);
    if (std::error_code error; fs::exists(one / "device", error)) real.insert(kind);
  }
  for (const std::string& name : entries_of(system / "class/infiniband"))
    for (const std::string& port : entries_of(system / "class/infiniband" / name / "ports"))
      real.insert(line_of(system / "class/infiniband" / name / "ports" / port / "rate"));
  std::string out;
  for (const std::string& kind : real.empty() ? all : real) out += str(" ", kind);
  return out;
}

}  // namespace

std::string describe_hardware(const std::string& system, const std::string& processors) {
  std::string out = str(sysconf(_SC_NPROCESSORS_ONLN), " x", processor_of(processors), ";",
                        adapters(system));
  for (const char* variable : kVariables)
    if (const auto value = value_of(variable)) out += str("; ", variable, "=", *value);
  return out;
}

}  // namespace paceline
