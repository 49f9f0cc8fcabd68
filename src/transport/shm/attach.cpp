#include "transport/shm/attach.hpp"

#include <sys/random.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sstream>

#include "base/str.hpp"

namespace paceline {
namespace {

constexpr std::string_view kUnwanted = "off";

}  // namespace

int copy_attached(int process, const PeerCopy& wanted) {
  for (std::size_t done = 0; done < wanted.bytes;) {
    const std::size_t left = wanted.bytes - done;
    const iovec here{wanted.here + done, left};
    const iovec there{reinterpret_cast<void*>(wanted.there + done), left};
    const ssize_t moved = wanted.writes ? process_vm_writev(process, &here, 1, &there, 1, 0)
                                        : process_vm_readv(process, &here, 1, &there, 1, 0);
    if (moved > 0) done += static_cast<std::size_t>(moved);
    else if (moved == 0) return EFAULT;
    else if (errno != EINTR) return errno;
  }
  return 0;
}

AttachProbe::AttachProbe(int rank, const std::vector<int>& names, bool is_wanted)
    : rank_(rank), names_(names), is_wanted_(is_wanted) {
  if (getrandom(&place_.nonce, sizeof(place_.nonce), 0) != sizeof(place_.nonce))
    is_wanted_ = false;
}

std::string AttachProbe::card() const {
  if (!is_wanted_) return std::string(kUnwanted);
  return str(reinterpret_cast<std::uintptr_t>(&place_), ":", place_.nonce);
}

std::string AttachProbe::name_of(int rank) const {
  return str("rank ", names_.empty() ? rank : names_[static_cast<std::size_t>(rank)]);
}

std::string AttachProbe::try_peer(const Peer& peer, const std::string& card) const {
  for (const int rank : {rank_, peer.rank})
    if (rank == rank_ ? !is_wanted_ : card == kUnwanted)
      return str("PACELINE_ATTACH=off on ", name_of(rank));
  std::istringstream words(card);
  std::uint64_t there = 0, nonce = 0, found = 0;
  char colon = 0;
  words >> there >> colon >> nonce;
  if (!peer.is_watched) return "the system has no pidfd_open";
  const auto copy = [&](bool writes, std::size_t offset) {
    return copy_attached(peer.process, {peer.rank, writes, there + offset,
                                        reinterpret_cast<std::byte*>(&found), sizeof(found)});
  };
  const auto trouble = [&](const char* what, int error) {
    return str(name_of(rank_), " may not ", what, " the memory of ", name_of(peer.rank), ": ",
               std::strerror(error));
  };
  if (const int error = copy(false, offsetof(Place, nonce))) return trouble("read", error);
  if (found != nonce) return trouble("read", ESRCH);   // that process is another
  if (const int error = copy(true, offsetof(Place, answer))) return trouble("write", error);
  return {};
}

}  // namespace paceline
