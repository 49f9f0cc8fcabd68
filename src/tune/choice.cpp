#include "tune/choice.hpp"

#include "base/random.hpp"
#include "base/str.hpp"

namespace paceline {

std::uint64_t hash_of(const Choice& choice) {
  std::uint64_t h = Random::mix(static_cast<std::uint64_t>(choice.cut.segments) << 32 |
                                static_cast<std::uint64_t>(choice.cut.window));
  h = Random::mix(h ^ (static_cast<std::uint64_t>(choice.cut.knobs.radix) << 32 |
                       static_cast<std::uint64_t>(choice.cut.knobs.blocks)));
  h = Random::mix(h ^ ((choice.cut.in_step ? 1u : 0u) | (choice.cut.whole_tail ? 2u : 0u)));
  for (const char* c = choice.algorithm->name; *c; ++c)
    h = Random::mix(h ^ static_cast<std::uint64_t>(*c));
  return h;
}

const Machine& usual_machine(int ranks_per_node) {
  static const Machine inside = machine_from("shm"), across = machine_from("edr-100g");
  return ranks_per_node == 0 ? inside : across;
}

std::string text_of(const Overrides& wish) {
  const Cut& cut = wish.cut;
  return str(wish.algorithm, ' ', cut.segments, ' ', cut.segment_bytes, ' ', cut.window, ' ',
             cut.knobs.radix, ' ', cut.knobs.blocks);
}

}  // namespace paceline
