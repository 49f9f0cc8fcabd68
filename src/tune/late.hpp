// Late: choices for calls in which some ranks are predicted to enter last, and their times.
//
// Times come from a model of the machine in which each rank, or node, has a port each way; see
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
  double residual_s = 0;   // from the last rank's entry on, if the late ranks are late enough
  double before_s = 0;     // of the other ranks' steps before it enters

  // Least delay of the late ranks with which this form beats a call that takes static_s.
  double gap_s(double static_s) const { return before_s + residual_s - static_s; }
};

// Returns the best form for the late ranks of the problem, of those to which a call may switch from
// its usual choice: bits stay the same, unless they may differ. Nothing if there is none, or if
// more than a quarter of the ranks are late, or of the nodes if ranks share nodes.
std::optional<LateForm> form_for_late(const Problem& problem, const ChoiceInputs& now,
                                      const Choice& usual);

// True if the form is faster than the usual choice, once the late ranks are late enough.
bool is_faster(const LateForm& form, const Problem& problem, const Choice& usual);

// Returns that form as a choice, if it is faster.
std::optional<Choice> chosen_late(const Problem& problem, const ChoiceInputs& now,
                                  const Choice& usual);

// Best cut of an algorithm for late ranks that the caller names; nothing if no rank is late.
std::optional<Cut> cut_for_late(const Algorithm& named, Problem problem, const ChoiceInputs& now);

// Returns the choice for ranks of one node of which the last ones came late (arrival/entries.hpp);
// nothing if no row fits, or if it would change bits that must not follow arrival.
std::optional<Choice> chosen_by_arrival(const Problem& problem, const ChoiceInputs& now,
                                        const Choice& usual);

}  // namespace paceline
