// PeerMemory: copies between own memory and a peer's, by the system (cross-memory attach), and the
// test whether these ranks may make them.
//
// Containers, security modules and kernels differ in what they allow, and only trying tells. No
// rank asks for the right: without it, calls use other ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/staging.hpp"

namespace paceline {

class PeerMemory {
 public:
  // `names`: the ranks' numbers in the world, in order; empty: their own. `wish`: auto or off; one
  // rank that says off decides for all.
  PeerMemory(int rank, const std::vector<int>& names, std::string wish);
  PeerMemory(const PeerMemory&) = delete;   // peers know where it is

  struct Peer {
    int rank, process;
    bool is_watched;   // its end is noticed; else its number could be another process's by then
  };
  std::string card() const;   // one word
  // Tries it with the peer of this card: reads the number there, which must be the card's, and
  // writes it back.
  void try_peer(const Peer& peer, const std::string& card);

  // finding(): why this rank cannot copy from all its peers, in one line; empty: it can. agree():
  // decides from the findings of all ranks.
  std::string finding() const;
  void agree(const std::vector<std::string>& findings);

  const std::string& why_not() const { return why_not_; }   // see StagingBuffers
  static const char* way() { return "cross-memory attach"; }

  // Copies all of it; returns 0, or the errno of what stopped it half-way. Says on stderr once that
  // the system refuses what it allowed when the ranks joined.
  int copy(int rank, const PeerCopy& wanted);

 private:
  struct Card {
    std::string wish;
    std::uint64_t place = 0, nonce = 0;
  };
  static Card read_card(const std::string& text);
  std::string name_of(int rank) const;
  std::string why_not_with(const Peer& peer, const Card& theirs) const;
  std::string trouble(int peer, bool writes, int error) const;

  int rank_;
  std::vector<int> names_;
  std::string wish_;
  struct Place {
    std::uint64_t nonce = 0, answer = 0;
  };
  Place place_;
  std::vector<int> processes_;   // of the peers, by rank
  bool has_told_ = false;        // of a refusal since the ranks joined
  std::string why_not_;   // so far as this rank knows; in the end, what all have agreed on
};

}  // namespace paceline
