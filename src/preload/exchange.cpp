#include "exchange.hpp"

#include <algorithm>

#include "hosts.hpp"
#include "recovery.hpp"

namespace paceline::preload {

bool Exchange::pass(FallbackReason why) {
  state->count_passed(row, why);
  return false;
}

void Exchange::begin() {
  input.load();
  output.load(first_read, pieces_read);
}

void Exchange::end() {
  if (is_written) output.store();
}

bool is_ours(Exchange& x, Collective collective, std::optional<std::size_t> bytes) {
  CommState& state = *x.state;
  if (state.why == FallbackReason::differed && is_wanted(collective)) check_not_ended(state);
  if (!state.communicator.valid()) return x.pass(state.why);
  if (!is_wanted(collective)) return x.pass(FallbackReason::option);
  if (bytes == 0 && collective != Collective::barrier) return x.pass(FallbackReason::empty);
  if (bytes && is_hosts_faster({collective, *bytes, state.ranks, state.nodes}))
    return x.pass(FallbackReason::host);
  x.call.collective = collective;
  x.call.may_wait = false;
  x.bytes = bytes ? *bytes : std::max(x.input.bytes(), x.output.bytes());
  return true;
}

}  // namespace paceline::preload
