#include "transport/shm/peer_memory.hpp"

#include <sys/random.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/str.hpp"

namespace paceline {
namespace {

int copy_by_system(int process, const PeerCopy& wanted) {
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

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

PeerMemory::PeerMemory(int rank, const std::vector<int>& names, std::string wish)
    : rank_(rank), names_(names), wish_(std::move(wish)) {
  if (getrandom(&place_.nonce, sizeof(place_.nonce), 0) != sizeof(place_.nonce)) wish_ = "off";
}

std::string PeerMemory::card() const {
  return str(wish_, ":", address_of(&place_), ":", place_.nonce);
}

PeerMemory::Card PeerMemory::read_card(const std::string& text) {
  Card card;
  std::istringstream words(text);
  char colon = 0;
  std::getline(words, card.wish, ':');
  words >> card.place >> colon >> card.nonce;
  return card;
}

std::string PeerMemory::name_of(int rank) const {
  return str("rank ", names_.empty() ? rank : names_[static_cast<std::size_t>(rank)]);
}

void PeerMemory::try_peer(const Peer& peer, const std::string& card) {
  const auto place = static_cast<std::size_t>(peer.rank);
  processes_.resize(std::max(processes_.size(), place + 1), -1);
  processes_[place] = peer.process;
  if (const std::string why = why_not_with(peer, read_card(card)); why_not_.empty()) why_not_ = why;
}

std::string PeerMemory::why_not_with(const Peer& peer, const Card& theirs) const {
  for (const int rank : {rank_, peer.rank})
    if (const std::string& wish = rank == rank_ ? wish_ : theirs.wish; wish == "off")
      return str("PACELINE_SINGLE_COPY=", wish, " on ", name_of(rank));
  if (!peer.is_watched) return "the system has no pidfd_open";
  std::uint64_t found = 0;
  const auto copy = [&](bool writes, std::size_t offset) {
    return copy_by_system(peer.process, {peer.rank, writes, theirs.place + offset,
                                         reinterpret_cast<std::byte*>(&found), sizeof(found)});
  };
  int error = copy(false, offsetof(Place, nonce));
  if (error == 0 && found != theirs.nonce) error = ESRCH;   // that process is another
  if (error != 0) return trouble(peer.rank, false, error);
  error = copy(true, offsetof(Place, answer));
  return error == 0 ? std::string() : trouble(peer.rank, true, error);
}

std::string PeerMemory::trouble(int peer, bool writes, int error) const {
  return str(name_of(rank_), " may not ", writes ? "write" : "read", " the memory of ",
             name_of(peer), ": ", std::strerror(error));
}

std::string PeerMemory::finding() const { return why_not_; }

// In rank order, so that all know the same.
void PeerMemory::agree(const std::vector<std::string>& findings) {
  const auto first = std::ranges::find_if(findings, [](const auto& one) { return !one.empty(); });
  why_not_ = first == findings.end() ? std::string() : *first;
}

int PeerMemory::copy(int rank, const PeerCopy& wanted) {
  const int error = copy_by_system(processes_[static_cast<std::size_t>(rank)], wanted);
  if (PeerCopy::is_refusal(error) && !std::exchange(has_told_, true))
    std::fprintf(stderr, "paceline: %s. The system allowed it when the ranks joined. Long "
                 "broadcasts between them are sent as messages; PACELINE_SINGLE_COPY=off has them "
                 "staged, which is faster.\n", trouble(rank, wanted.writes, error).c_str());
  return error;
}

}  // namespace paceline
