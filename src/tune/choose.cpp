#include "tune/choose.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "tune/estimate.hpp"
#include "tune/late.hpp"
#include "tune/staging.hpp"
#include "tune/table.hpp"

namespace paceline {
namespace {

constexpr int kWindow = 6;         // segments under way: more keep no port busier (see window_of)
constexpr double kFewer = 0.99;    // limit of a smaller window's time (docs/design/0045-mixed.md)
constexpr int kMostAsked = 65536, kMostRadix = 16;   // most that a caller may ask for

// Returns the window. A pipe there and back (hops > 1) needs a segment under way for each round: a
// rank keeps a segment from its sum until its result comes back.
int window_of(const Row* row, const Problem& p, int segments) {
  int window = kWindow;
  if (row && row->cut == CutInto::segments && row->hops > 1)
    window = std::max(window, static_cast<int>(row->algorithm->cost(p, row->knobs).rounds));
  return std::min(segments, window);
}

Choice choice_of(const Row& row, const Problem& p, const Estimate& e) {
  Choice choice{.algorithm = row.algorithm, .row = &row, .why = row.why, .expected_s = e.seconds};
  choice.cut.knobs = row.knobs;
  choice.cut.in_step = e.in_step;
  // With two trees a piece is one block of each.
  if (row.cut == CutInto::blocks)
    choice.cut.knobs.blocks = e.pieces * row.algorithm->cuts(p, {.radix = 0, .blocks = 1});
  else choice.cut.segments = e.pieces;
  choice.cut.whole_tail = e.whole_tail;
  choice.cut.window = window_of(&row, p, choice.cut.segments);
  return choice;
}

// Returns the choice in as many segments as staging buffers in nodes have room for, with the window
// that takes least time; nothing if there is no room. A whole row is cut only if it is `named`.
std::optional<Choice> with_room(const Choice& choice, const Problem& p, const ChoiceInputs& now,
                                bool named) {
  if (!choice.algorithm->by_nodes() || !stages_in_nodes(p)) return choice;
  std::optional<Choice> best;
  for (const int window : {kWindow, 2, 1}) {
    const auto segments = segments_with_room(choice, p, now, window);
    if (!segments) continue;
    if (*segments > 1 && choice.row->cut == CutInto::whole && !named) continue;
    if (*segments == choice.cut.segments && window == kWindow) return choice;
    Choice fitting = choice;
    fitting.cut.segments = *segments;
    fitting.cut.window = std::min(*segments, window);
    fitting.expected_s = expected_s(fitting, p, now);
    if (!best || fitting.expected_s < kFewer * best->expected_s) best = fitting;
  }
  return best;
}

// True if a call that names no algorithm may take the row.
bool is_candidate(const Row& row, const Problem& p, const ChoiceInputs& now) {
  const Algorithm& a = *row.algorithm;
  if ((row.traits & named) || (a.by_nodes() && p.one_node)) return false;
  return !row.is_in_memory() || row.fits(p.ranks, now.bytes);
}

// Returns the best choice, or the best cut of `only`; an algorithm without a row stays whole.
// `in_segments`: the caller wants several, which staging buffers and single copies do not have.
Choice chosen(const Problem& p, const ChoiceInputs& now, const Algorithm* only, bool in_segments) {
  std::optional<Choice> best;
  for (const Row& row : rows()) {
    const Algorithm& a = *row.algorithm;
    if (a.collective != p.collective || a.claims()) continue;   // claims: chosen_by_arrival()
    if (only ? only != &a : !is_candidate(row, p, now)) continue;
    if (why_not(a, p)) continue;
    if (row.is_in_memory()) {
      if (in_segments && !a.uses(Access::symmetric)) continue;
      if (const auto cut = cut_in_memory(row, p, now, only != nullptr)) {
        best = Choice{.algorithm = &a, .row = &row, .cut = *cut, .why = row.why};
        best->expected_s = expected_s(*best, p, now);
        break;
      }
      continue;
    }
    const Estimate e = estimate(row, p, now);
    const auto choice = with_room(choice_of(row, p, e), p, now, only != nullptr);
    if (!choice || (best && choice->expected_s >= kMargin * best->expected_s)) continue;
    best = choice;
  }
  if (!best && only) {
    best = Choice{.algorithm = only};
    best->expected_s = expected_s(*best, p, now);
  }
  require(best.has_value(), "choose: no ", name_of(p.collective), " serves this problem");
  if (only) best->why = "asked for";
  return *best;
}

const Algorithm& asked_for(const Problem& p, const std::string& name) {
  const Algorithm& a = find_algorithm(p.collective, name);
  check_serves(a, p);
  return a;
}

bool is_named(const Overrides& wish) { return !wish.algorithm.empty() && wish.algorithm != "auto"; }

struct Knob {
  const char* name;
  int Knobs::*value;
  bool Takes::*taken;
  int least, most;
};
constexpr Knob kKnobs[] = {{"radix", &Knobs::radix, &Takes::radix, 2, kMostRadix},
                           {"blocks", &Knobs::blocks, &Takes::blocks, 1, kMostBlocks}};

std::string owners_of(const Knob& knob, Collective collective) {
  std::string names;
  for (const Algorithm* a : registry())
    if (a->collective == collective && a->takes.*knob.taken)
      names += str(names.empty() ? "" : ", ", a->name);
  return names.empty() ? str("no ", name_of(collective), " has one.")
                       : str("these have one: ", names, ".");
}

// Replaces the size of a segment by the number of segments that it gives.
void count_segments(Cut& cut, std::size_t bytes) {
  if (cut.segment_bytes == 0) return;
  const std::size_t number = bytes / cut.segment_bytes + (bytes % cut.segment_bytes != 0);
  cut.segments = static_cast<int>(std::clamp<std::size_t>(number, 1, kMostAsked));
  cut.segment_bytes = 0;
}

}  // namespace

void check_knobs(const Algorithm& a, const Knobs& knobs) {
  for (const Knob& knob : kKnobs) {
    const int value = knobs.*knob.value;
    if (value == 0) continue;
    const std::string where = str(name_of(a.collective), "/", a.name, ": ");
    if (value < knob.least || value > knob.most)
      fail(Fault::usage, where, knob.name, " is ", value, "; it must be ", knob.least, " to ",
           knob.most, ", or 0 to leave the choice to Paceline.");
    if (!(a.takes.*knob.taken))
      fail(Fault::usage, where, knob.name, " is ", value, ", but it has no ", knob.name, "; ",
           owners_of(knob, a.collective));
  }
}

Choice choose(const Problem& problem, const ChoiceInputs& now, Overrides wish) {
  const auto where = name_of(problem.collective);
  check_late(problem);
  count_segments(wish.cut, now.bytes);
  const auto [segments, window] = std::pair{wish.cut.segments, wish.cut.window};
  if (segments < 0 || segments > kMostAsked || window < 0 || window > kMostAsked)
    fail(Fault::usage, where, ": ", segments, " segments with a window of ", window,
         "; both go from 1 to ", kMostAsked, ", 0 leaves the choice to Paceline.");
  for (const Knob& knob : kKnobs)
    if (wish.cut.knobs.*knob.value != 0 && !is_named(wish))
      fail(Fault::usage, where, ": ", knob.name, " is ", wish.cut.knobs.*knob.value,
           ", but no algorithm is named; name one with algorithm=; ",
           owners_of(knob, problem.collective));

  const bool in_segments = wish.cut.segments > 1;
  const Algorithm* only = is_named(wish) ? &asked_for(problem, wish.algorithm) : nullptr;
  const bool claims = only && claims_in_segments(*only);   // its ranks claim positions
  if (only) check_claimed(*only, wish.cut);
  if (only && only->uses(Access::staging) && in_segments && !claims)
    fail(Fault::usage, where, ": ", wish.cut.segments, " segments, but ", only->name,
         " passes its message on in blocks; use blocks= instead, or another algorithm.");
  Choice choice = chosen(problem, now, only, in_segments);
  // Another algorithm or cut may suit if some ranks are predicted to come late (Problem::late).
  if (!only && wish.cut.segments == 0)
    if (const auto late = chosen_late(problem, now, choice)) choice = *late;
  if (only && wish.cut.segments == 0)
    if (const auto cut = cut_for_late(*only, problem, now)) choice.cut = *cut;
  check_knobs(*choice.algorithm, wish.cut.knobs);
  if (wish.cut.segments > 0) {
    // The knobs are chosen for the length of one segment.
    const ChoiceInputs each{now.bytes / static_cast<std::size_t>(wish.cut.segments), now.machine};
    choice.cut.knobs = chosen(problem, each, choice.algorithm, in_segments).cut.knobs;
    choice.cut.segments = wish.cut.segments;
    choice.cut.whole_tail = false;
    choice.cut.window = window_of(choice.row, problem, wish.cut.segments);
  }
  if (claims && wish.cut.segments == 0)
    choice.cut.segments = segments_in_stage(problem, now, choice);
  if (claims && choice.cut.segments > 1) choice.cut.window = kClaimedWindow;
  if (wish.cut.window > 0) choice.cut.window = wish.cut.window;
  for (const Knob& knob : kKnobs)
    if (wish.cut.knobs.*knob.value > 0) choice.cut.knobs.*knob.value = wish.cut.knobs.*knob.value;
  if (wish.cut != Cut{}) choice.expected_s = expected_s(choice, problem, now);
  return choice;
}

}  // namespace paceline
