#include "exchange.hpp"

#include <algorithm>

#include "recovery.hpp"
#include "summary.hpp"

namespace paceline::preload {
namespace {

// "ring, 4 segments": what explain() says before its reasons. Calls of one length on a communicator
// are taken to have one algorithm.
const std::string& algorithm_of(const Exchange& x) {
  std::string& known = x.state->algorithms[{x.row, x.bytes}];
  if (known.empty() && x.op != MPI_OP_NULL) known = "exchange, then MPI_Reduce_local";
  if (known.empty()) {
    const std::string said = x.state->communicator.explain(x.call);
    known = said.substr(0, said.find(':'));
  }
  return known;
}

}  // namespace

bool Exchange::pass(FallbackReason why) {
  count_passed(row, why);
  return false;
}

void Exchange::begin() {
  if (is_summarised) {
    algorithm = &algorithm_of(*this);   // now: when it ends another call may begin in a thread
    began = summary_clock();
  }
  input.load();
  output.load(first_read, pieces_read);
}

void Exchange::end() {
  if (is_written) output.store();
  if (is_summarised) count_served(row, *algorithm, bytes, began);
}

bool is_ours(Exchange& x, Collective collective, std::optional<std::size_t> bytes) {
  CommState& state = *x.state;
  if (state.why == FallbackReason::differed && is_wanted(collective)) check_not_ended(state);
  if (!state.communicator.valid()) return x.pass(state.why);
  if (!is_wanted(collective)) return x.pass(FallbackReason::option);
  if (bytes == 0 && collective != Collective::barrier) return x.pass(FallbackReason::empty);
  x.call.collective = collective;
  x.call.may_wait = false;
  x.bytes = bytes ? *bytes : std::max(x.input.bytes(), x.output.bytes());
  return true;
}

}  // namespace paceline::preload
