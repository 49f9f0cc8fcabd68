#include "transport/mpi/netmod.hpp"

#include <algorithm>

#include "base/options_launcher.hpp"

namespace paceline::mpi {

std::vector<std::string> netmods_of(const std::string& about) {
  constexpr std::string_view kDevice = "ch4:";
  const std::size_t device = about.find(kDevice);
  std::vector<std::string> found;
  if (device == std::string::npos) return found;
  std::size_t at = device + kDevice.size();
  for (const std::size_t end = std::min(about.find('\n', at), about.size()); at < end;) {
    const std::size_t next = std::min(about.find_first_of(", \t", at), end);
    if (next > at) found.push_back(about.substr(at, next - at));
    at = next + 1;
  }
  return found;
}

bool is_over_ucx(const std::string& about) {
  const std::vector<std::string> netmods = netmods_of(about);
  if (netmods.empty()) return false;
  const std::string wanted = value_of(kNetmod).value_or("");
  return (std::ranges::count(netmods, wanted) ? wanted : netmods.front()) == "ucx";
}

}  // namespace paceline::mpi
