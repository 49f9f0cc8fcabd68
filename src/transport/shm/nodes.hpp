// Nodes: which ranks share memory, found out by sharing some.
//
// Host names and launchers' variables can be wrong in containers and namespaces. So every rank
// makes a page of memory, says where it is, and tries to open its peers' pages.
#pragma once

#include <string>
#include <vector>

#include "transport/bootstrap.hpp"

namespace paceline {

struct Nodes {
  std::vector<int> of_rank;   // node of each rank; nodes are numbered by their lowest ranks
  std::vector<int> members(int node) const;
  int count() const;
  std::string why_apart;      // why this rank does not share memory with all; empty: it does
  // Why this rank does not share memory with another one on this boot of this machine; set on the
  // machine's first rank that has such a peer, empty on the others. Ranks of differently named
  // nodes do not count.
  std::string why_split;
  bool is_split = false;      // ranks of some machine do not share memory
};

// Collective; equal on all ranks but for `why_apart`. `folder` is a memory file system. Ranks that
// give different names count as apart, whether or not they share memory.
Nodes find_nodes(Bootstrap& meeting, const std::string& folder, const std::string& name);

// The rule by itself: reaches[a][b] says whether a has opened b's page. Every rank joins the first
// node all of whose members it reaches, and that reach it.
std::vector<int> group_nodes(const std::vector<std::vector<bool>>& reaches);

}  // namespace paceline
