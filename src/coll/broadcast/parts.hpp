// A broadcast between ranks that reach each other's buffers: the root writes a part of the message
// into each peer, which reads the rest, so that all copy at the same time.
#pragma once

#include "coll/staged.hpp"

namespace paceline {

inline int cuts_of_parts(const Problem& pb, const Knobs&) { return pb.ranks; }

// A buffer is touched between two meetings of its owner with the root.
inline void build_parts(const Problem&, const Knobs&, Builder& b) {
  const int p = b.problem().ranks, r = b.problem().rank, root = b.problem().root;
  if (p == 1) return;
  if (r == root) {
    signal_others(b);
    for (int k = 1; k < p; ++k) {
      const int peer = (root + k) % p;
      b.wait(peer);   // it has come
      b.copy(b.output(peer), b.of_peer(peer, b.output(peer)));
    }
    signal_others(b);
    return wait_for_others(b);   // they have read what they wanted
  }
  b.signal(root);
  b.wait(root);
  if (r > 0) b.copy(b.of_peer(root, b.output(0, r)), b.output(0, r));
  if (r < p - 1) b.copy(b.of_peer(root, b.output(r + 1, p - 1 - r)), b.output(r + 1, p - 1 - r));
  b.signal(root);
  b.wait(root);   // it has written all
}

inline Cost cost_of_parts(const Problem& pb, const Knobs&) {
  if (pb.ranks == 1) return {};
  return {.rounds = 2, .copied = double(pb.ranks - 1) / pb.ranks};
}

}  // namespace paceline
