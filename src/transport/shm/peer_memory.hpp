// PeerMemory: copies between own memory and any of a peer's, by the system (cross-memory attach),
// and whether these ranks can have them.
//
// Containers, security modules and kernels differ in whom they let do so, and nothing but trying
// tells. Nobody is asked for the right: where it is missing, calls do without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/staging.hpp"

namespace paceline {

class PeerMemory {
 public:
  // `names`: what the ranks are called outside, in order; empty: by number. `wish`: auto or off;
  // one rank that does not want it decides for all.
  PeerMemory(int rank, const std::vector<int>& names, std::string wish);
  PeerMemory(const PeerMemory&) = delete;   // peers know where it is

  struct Peer {
    int rank, process;
    bool is_watched;   // its end is noticed; else its number could be another's by then
  };
  std::string card() const;   // one word
  // Tries it with a peer that has this card: reads a number that the peer has told, so that both
  // know it is that one, and writes one.
  void try_peer(const Peer& peer, const std::string& card);

  // What this rank has found with all its peers, in one line; and what follows from all ranks'.
  std::string finding() const;
  void agree(const std::vector<std::string>& findings);

  const std::string& why_not() const { return why_not_; }   // see StagingBuffers
  static const char* way() { return "cross-memory attach"; }

  // All of it, with this peer; 0, or the errno of what stopped it half-way.
  int copy(int rank, const PeerCopy& wanted);

 private:
  struct Card {
    std::string wish;
    std::uint64_t place = 0, nonce = 0;
  };
  static Card read_card(const std::string& text);
  std::string name_of(int rank) const;
  std::string why_not_with(const Peer& peer, const Card& theirs) const;

  int rank_;
  std::vector<int> names_;
  std::string wish_;
  struct Place {
    std::uint64_t nonce = 0, answer = 0;
  };
  Place place_;
  std::vector<int> processes_;   // of the peers, by rank
  std::string why_not_;   // so far as this rank knows; in the end, what all have agreed on
};

}  // namespace paceline
