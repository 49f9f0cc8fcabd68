// Worlds of ranks on several nodes, side by side or in turn, and the choices of choose() for them.
#pragma once

#include "ir/lower.hpp"
#include "simulate/simulate.hpp"
#include "tune/choose.hpp"
#include "world/worlds.hpp"

namespace paceline::test {

// Number of nodes, and of ranks of each.
struct Nodes {
  int count, ranks;
  int all() const { return count * ranks; }
};

inline Shape shape_on(const Algorithm& a, const Nodes& nodes, bool in_turn = false) {
  return {.collective = a.collective, .ranks = nodes.all(), .group = nodes.ranks,
          .scattered = in_turn};
}

// Messages inside nodes: mixed_test.cpp has staging buffers.
inline Shape by_messages(const Algorithm& a, const Nodes& nodes, bool in_turn = false) {
  Shape shape = shape_on(a, nodes, in_turn);
  shape.no_staging = a.by_nodes();
  return shape;
}

// Returns all algorithms of the registry that go by nodes.
inline std::vector<const Algorithm*> written_for_nodes() {
  std::vector<const Algorithm*> out;
  std::copy_if(registry().begin(), registry().end(), std::back_inserter(out),
               [](const Algorithm* a) { return a->by_nodes(); });
  return out;
}

// Returns those that need no staging buffers.
inline std::vector<const Algorithm*> sending_in_nodes() {
  std::vector<const Algorithm*> out = written_for_nodes();
  std::erase_if(out, [](const Algorithm* a) { return a->claims(); });
  return out;
}

struct Message {
  Collective collective;
  std::size_t bytes;
};

// Choice that a communicator of these ranks makes, and its simulation.
struct Chosen {
  Choice choice;
  double span_s;

  Chosen(const Message& message, const Nodes& nodes, bool in_turn, Machine machine,
         const Overrides& wish = {}) {
    machine.ranks_per_node = nodes.ranks;
    const Shape shape{.collective = message.collective, .ranks = nodes.all(),
                      .group = nodes.ranks, .scattered = in_turn, .no_staging = true};
    Problem p = problem_of(find_algorithm(message.collective, wish.algorithm.empty()
                                                                  ? "hierarchical"
                                                                  : wish.algorithm),
                           shape, 0);
    const auto units = static_cast<std::size_t>(units_of(p));
    choice = choose(p, {message.bytes, machine}, wish);
    World world;
    for (; p.rank < p.ranks; ++p.rank) world.push_back(lower(*choice.algorithm, p, choice.cut));
    span_s = simulate(world, message.bytes / units, 1, machine).span_s();
  }
};

}  // namespace paceline::test
