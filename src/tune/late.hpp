// Late: what a call takes where some ranks are predicted to enter last, and what it gains by that.
//
// All times by the model of a machine whose ranks, or nodes, have a port each way; see
// docs/design/0041.
#pragma once

#include <optional>

#include "ir/algorithm.hpp"
#include "tune/choice.hpp"

namespace paceline {

// An algorithm for late ranks with the cut that suits it, and its times in seconds.
struct LateForm {
  const Algorithm* algorithm = nullptr;
  Cut cut = kUncut;
  double residual_s = 0;   // from the last rank's entry on, where the late ones are late enough
  double before_s = 0;     // what the others do before it enters
  double wrong_s = 0;      // at most, from the last entry on, where others are late, or nobody is

  // How much later than the others the late ranks must be for it to beat what takes so long.
  double gap_s(double static_s) const { return before_s + residual_s - static_s; }
};

// The best form for the late ranks of the problem, of those that a call may go over to from what
// it usually takes: its bits stay the same, or may differ. None where there is none, or where more
// than a quarter of the ranks are late, or of the nodes that they share with others.
std::optional<LateForm> form_for_late(const Problem& problem, const ChoiceInputs& now,
                                      const Choice& usual);

// That form, where it is worth it.
std::optional<Choice> chosen_late(const Problem& problem, const ChoiceInputs& now,
                                  const Choice& usual);

// How an algorithm for late ranks that is asked for by name is best cut; nothing where nobody is.
std::optional<Cut> cut_for_late(const Algorithm& named, Problem problem, const ChoiceInputs& now);

// What calls may take instead of the usual where ranks share a node and their last ones came late
// (engine/entries.hpp); nothing where it would change bits that must not follow arrival.
std::optional<Choice> chosen_by_arrival(const Problem& problem, const ChoiceInputs& now,
                                        const Choice& usual);

}  // namespace paceline
