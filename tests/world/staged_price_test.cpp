// Long calls of ranks that share nodes, whose staging buffers have room for a part of the message:
// the price is that of what runs, and no flat algorithm would have been much faster.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/str.hpp"
#include "world/nodes.hpp"

namespace paceline::test {
namespace {

struct Staged {
  Choice choice;
  double span_s;

  Staged(const Message& message, const Nodes& nodes, std::size_t stage_bytes, Machine machine,
         const Overrides& wish = {}) {
    machine.ranks_per_node = nodes.ranks;
    const Shape shape{.collective = message.collective, .ranks = nodes.all(),
                      .group = nodes.ranks};
    Problem p = problem_of(find_algorithm(message.collective, "hierarchical"), shape, 0);
    CHECK(stages_in_nodes(p));
    choice = choose(p, {message.bytes, machine, stage_bytes}, wish);
    World world;
    for (; p.rank < p.ranks; ++p.rank) world.push_back(lower(*choice.algorithm, p, choice.cut));
    const auto count = message.bytes / 4 / static_cast<std::size_t>(units_of(p));
    span_s = simulate(world, count, 4, machine).span_s();
  }
};

}  // namespace

TEST_CASE("staged price: in as many segments as have room, about what the simulator says") {
  double least = 10, most = 0, lost = 0;
  for (const char* machine : {"edr-100g", "ethernet-10g", "lab-200mbit"})
    for (const Nodes& nodes : {Nodes{4, 2}, Nodes{4, 4}, Nodes{2, 4}})
      for (const auto collective : {Collective::allreduce, Collective::reduce_scatter,
                                    Collective::allgather})
        for (const std::size_t bytes : {8u << 20, 32u << 20}) {
          const Message message{collective, bytes};
          const std::size_t stage = (8u << 20) / static_cast<unsigned>(nodes.ranks);
          const Staged chosen(message, nodes, stage, machine_from(machine));
          const Staged ring(message, nodes, stage, machine_from(machine), {.algorithm = "ring"});
          CAPTURE(str(machine, ", ", nodes.count, " x ", nodes.ranks, ", ", name_of(collective),
                      " of ", bytes, " bytes: ", chosen.choice.algorithm->name, " in ",
                      chosen.choice.cut.segments));
          const double of_price = chosen.span_s / chosen.choice.expected_s;
          CHECK(of_price > 0.8);
          CHECK(of_price < 1.15);
          CHECK(chosen.span_s < 1.08 * ring.span_s);
          least = std::min(least, of_price);
          most = std::max(most, of_price);
          lost = std::max(lost, chosen.span_s / ring.span_s);
        }
  MESSAGE("simulated ", least, " to ", most, " of the price, at most ", lost, " of a ring's time");
}

}  // namespace paceline::test
