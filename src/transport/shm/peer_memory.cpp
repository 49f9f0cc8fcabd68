#include "transport/shm/peer_memory.hpp"

#include <sys/random.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>

#include "base/str.hpp"

namespace paceline {
namespace {

constexpr std::size_t kSample = 256u << 10;
constexpr int kTries = 3;   // the first maps pages

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

using Seconds = std::chrono::duration<double>;
constexpr Seconds kNever{1e9};

// The least of some tries.
template <class Copy>
Seconds time_of(Copy&& copy) {
  Seconds least = kNever;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (copy() != 0) return kNever;
    least = std::min<Seconds>(least, std::chrono::steady_clock::now() - begin);
  }
  return least;
}

bool wants(const std::string& wish, const char* way) { return wish == "auto" || wish == way; }

// On XPMEM, be it slower.
bool insists(const std::string& one, const std::string& other) {
  return one == "xpmem" || other == "xpmem";
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

PeerMemory::PeerMemory(int rank, const std::vector<int>& names, std::string wish)
    : rank_(rank),
      names_(names),
      wish_(std::move(wish)),
      xpmem_(wants(wish_, "xpmem")),
      sample_(xpmem_.segment() ? kSample : 0),
      by_xpmem_(xpmem_.segment() != 0) {
  if (getrandom(&place_.nonce, sizeof(place_.nonce), 0) != sizeof(place_.nonce)) {
    wish_ = "off";
    by_xpmem_ = false;
  }
}

std::string PeerMemory::card() const {
  return str(wish_, ":", address_of(&place_), ":", place_.nonce, ":", address_of(sample_.data()),
             ":", xpmem_.segment());
}

PeerMemory::Card PeerMemory::read_card(const std::string& text) {
  Card card;
  std::istringstream words(text);
  char colon = 0;
  std::getline(words, card.wish, ':');
  words >> card.place >> colon >> card.nonce >> colon >> card.sample >> colon >> card.segment;
  return card;
}

std::string PeerMemory::name_of(int rank) const {
  return str("rank ", names_.empty() ? rank : names_[static_cast<std::size_t>(rank)]);
}

void PeerMemory::try_peer(const Peer& peer, const std::string& card) {
  const Card theirs = read_card(card);
  const auto place = static_cast<std::size_t>(peer.rank);
  peers_.resize(std::max(peers_.size(), place + 1));
  peers_[place] = {peer.process, theirs.segment};
  std::string why = why_not_cma(peer, theirs);
  const std::string unmapped = why_not_mapped(peer, theirs, why.empty());
  by_xpmem_ = by_xpmem_ && unmapped.empty();
  if (!unmapped.empty() && insists(wish_, theirs.wish)) why += str(", and ", unmapped);
  if (why_not_.empty()) why_not_ = why;
}

std::string PeerMemory::why_not_cma(const Peer& peer, const Card& theirs) const {
  for (const int rank : {rank_, peer.rank})
    if (const std::string& wish = rank == rank_ ? wish_ : theirs.wish; !wants(wish, "cma"))
      return str("PACELINE_ATTACH=", wish, " on ", name_of(rank));
  if (!peer.is_watched) return "the system has no pidfd_open";
  std::uint64_t found = 0;
  const auto copy = [&](bool writes, std::size_t offset) {
    return copy_by_system(peer.process, {peer.rank, writes, theirs.place + offset,
                                         reinterpret_cast<std::byte*>(&found), sizeof(found)});
  };
  const auto trouble = [&](const char* what, int error) {
    return str(name_of(rank_), " may not ", what, " the memory of ", name_of(peer.rank), ": ",
               std::strerror(error));
  };
  if (const int error = copy(false, offsetof(Place, nonce))) return trouble("read", error);
  if (found != theirs.nonce) return trouble("read", ESRCH);   // that process is another
  if (const int error = copy(true, offsetof(Place, answer))) return trouble("write", error);
  return {};
}

// It must work, and be the faster way where nobody insists on it: than the system's copy, or where
// that is not to be had, than the two copies of calls without.
std::string PeerMemory::why_not_mapped(const Peer& peer, const Card& theirs, bool has_cma) {
  for (const int rank : {rank_, peer.rank})
    if ((rank == rank_ ? xpmem_.segment() : theirs.segment) == 0)
      return str(name_of(rank), " has no XPMEM");
  if (!peer.is_watched) return "the system has no pidfd_open";
  std::uint64_t found = 0;
  const PeerCopy number{peer.rank, false, theirs.place + offsetof(Place, nonce),
                        reinterpret_cast<std::byte*>(&found), sizeof(found)};
  const int error = xpmem_.copy(theirs.segment, number);
  if (error != 0 || found != theirs.nonce)
    return str(name_of(rank_), " may not map the memory of ", name_of(peer.rank), ": ",
               std::strerror(error ? error : ESRCH));
  if (insists(wish_, theirs.wish)) return {};
  std::vector<std::byte> room(kSample);
  const PeerCopy sample{peer.rank, false, theirs.sample, room.data(), kSample};
  const Seconds mapped = time_of([&] { return xpmem_.copy(theirs.segment, sample); });
  const Seconds other =
      has_cma ? time_of([&] { return copy_by_system(peer.process, sample); })
              : 2 * time_of([&] { return std::memcpy(room.data(), sample_.data(), kSample), 0; });
  return mapped < other ? "" : "XPMEM is slower";
}

std::string PeerMemory::finding() const { return str(by_xpmem_ ? "1" : "0", why_not_); }

// In rank order, so that all know the same; who cannot map says more than who can.
void PeerMemory::agree(const std::vector<std::string>& findings) {
  why_not_.clear();
  by_xpmem_ = std::ranges::all_of(findings, [](const auto& one) { return one.starts_with('1'); });
  for (const char mapped : {'0', '1'})
    for (const std::string& one : findings)
      if (!by_xpmem_ && why_not_.empty() && one.starts_with(mapped)) why_not_ = one.substr(1);
}

int PeerMemory::copy(int rank, const PeerCopy& wanted) {
  const Way& peer = peers_[static_cast<std::size_t>(rank)];
  return by_xpmem_ ? xpmem_.copy(peer.segment, wanted) : copy_by_system(peer.process, wanted);
}

}  // namespace paceline
