// PeerMemory: copies between own memory and any of a peer's, by the system (cross-memory attach) or
// through XPMEM, and whether these ranks can have them.
//
// Containers, security modules and kernels differ in whom they let do so, and nothing but trying
// tells. Nobody is asked for the right: where it is missing, calls do without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/shm/xpmem.hpp"
#include "transport/stage.hpp"

namespace paceline {

class PeerMemory {
 public:
  // `names`: what the ranks are called outside, in order; empty: by number. `wish`: auto, cma,
  // xpmem or off; one rank that does not want a way decides for all.
  PeerMemory(int rank, const std::vector<int>& names, std::string wish);
  PeerMemory(const PeerMemory&) = delete;   // peers know where it is

  struct Peer {
    int rank, process;
    bool is_watched;   // its end is noticed; else its number could be another's by then
  };
  std::string card() const;   // one word
  // Tries both ways with a peer that has this card: reads a number that the peer has told, so that
  // both know it is that one, and times them.
  void try_peer(const Peer& peer, const std::string& card);

  // What this rank has found with all its peers, in one line; and what follows from all ranks'.
  std::string finding() const;
  void agree(const std::vector<std::string>& findings);

  const std::string& why_not() const { return why_not_; }   // see Stages
  const char* way() const { return by_xpmem_ ? "XPMEM" : "cross-memory attach"; }

  // All of it, with this peer; 0, or the errno of what stopped it half-way.
  int copy(int rank, const PeerCopy& wanted);

 private:
  struct Card {
    std::string wish;
    std::uint64_t place = 0, nonce = 0, sample = 0;
    std::int64_t segment = 0;
  };
  static Card read_card(const std::string& text);
  std::string name_of(int rank) const;
  std::string why_not_cma(const Peer& peer, const Card& theirs) const;
  std::string why_not_mapped(const Peer& peer, const Card& theirs, bool has_cma);

  int rank_;
  std::vector<int> names_;
  std::string wish_;
  struct Place {
    std::uint64_t nonce = 0, answer = 0;
  };
  Place place_;
  Xpmem xpmem_;
  std::vector<std::byte> sample_;   // peers read it, and look how long that takes

  struct Way {
    int process = -1;
    std::int64_t segment = 0;
  };
  std::vector<Way> peers_;
  bool by_xpmem_;         // so far as this rank knows; in the end, what all have agreed on
  std::string why_not_;   // likewise
};

}  // namespace paceline
