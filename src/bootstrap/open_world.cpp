#include "bootstrap/open_world.hpp"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "bootstrap/profiled_world.hpp"
#include "machine/machine_choice.hpp"
#include "runtime/communicator_state.hpp"
#include "runtime/diagnostics/record_signal.hpp"

namespace paceline {

constexpr std::uint64_t kProbing = 2;   // context of a communicator during the start

Communicator join_transport(std::unique_ptr<Transport> transport, const WorldConfig& config,
                            bool together) {
  const int rank = transport->rank(), ranks = transport->ranks();
  const auto session = Session::make(std::move(transport), config);
  record_on_signal(config.record_signal, config.record_dir, session);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  if (asks_links(config))
    session->assume(machine_between_nodes(
        Communicator(open_communicator(session, kProbing, all, rank)), config));
  Communicator world(open_communicator(session, 1, std::move(all), rank));
  if (together) world.attach_together(config.start_timeout_ms);
  begin_profile(world, config);
  return world;
}

void leave_world(Communicator& world, Leaving why) {
  end_profile(world);
  world.leave(why);
}

}  // namespace paceline
