#include "bootstrap/mpi_settings.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "base/options_launcher.hpp"
#include "transport/mpi/netmod.hpp"

namespace paceline {
namespace {

constexpr const char* kBuffer = "FI_OFI_RXM_BUFFER_SIZE";   // bytes
constexpr const char* kRoom = "17408";                      // 16 KiB, and our header

bool has_buffers(const MpiLibrary& library) {
  return library.about().find("Intel") != std::string::npos;
}

}  // namespace

void choose_netmod(const MpiLibrary& library) {
  const std::vector<std::string> netmods = mpi::netmods_of(library.about());
  if (!library.is_initialized() && std::ranges::count(netmods, "ofi"))
    setenv(mpi::kNetmod, "ofi", 0);
}

void share_no_memory(const MpiLibrary& library) {
  if (std::ranges::count(mpi::netmods_of(library.about()), "ucx")) setenv("UCX_TLS", "^sm", 0);
}

void widen_buffers(const MpiLibrary& library, Bootstrap& meeting) {
  if (!has_buffers(library)) return;
  const std::vector<std::string> said = meeting.allgather(value_of(kBuffer).value_or("unset"));
  for (std::size_t rank = 1; rank < said.size(); ++rank)
    if (said[rank] != said[0])
      fail(Fault::usage, "start-up: ", kBuffer, " differs between ranks (rank 0: ", said[0],
           ", rank ", rank, ": ", said[rank], "); ranks of Intel MPI whose buffers differ wait ",
           "for each other for ever. Unset it, or set it to ", kRoom, " for all of them.");
  setenv(kBuffer, kRoom, 0);
}

}  // namespace paceline
