// Attach: copies by the system between the memory of two processes (cross-memory attach), and
// whether it makes them.
//
// Containers, security modules and kernels differ in whom they let do so, and nothing but trying
// tells. Nobody is asked for the right: where it is missing, calls do without.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/stage.hpp"

namespace paceline {

// All of it; 0, or the errno of what stopped it half-way.
int copy_attached(int process, const PeerCopy& wanted);

// Tried at start-up, by every rank with every other: one reads a number that the other has told it,
// so that both know it is that one, and then writes.
class AttachProbe {
 public:
  // `names`: what the ranks are called outside, in order; empty: by number.
  AttachProbe(int rank, const std::vector<int>& names, bool is_wanted);
  AttachProbe(const AttachProbe&) = delete;   // peers know where it is

  struct Peer {
    int rank, process;
    bool is_watched;   // its end is noticed; else its number could be another's by then
  };
  std::string card() const;   // one word
  std::string try_peer(const Peer& peer, const std::string& card) const;   // why not; empty: it can

 private:
  std::string name_of(int rank) const;

  int rank_;
  std::vector<int> names_;
  bool is_wanted_;
  struct Place {
    std::uint64_t nonce = 0, answer = 0;
  };
  Place place_;
};

}  // namespace paceline
