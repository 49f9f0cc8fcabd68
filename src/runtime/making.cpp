// How communicators are made: of a transport, and of each other.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "runtime/communicator_state.hpp"
#include "runtime/probe.hpp"
#include "runtime/record_signal.hpp"

namespace paceline {
namespace {

constexpr std::size_t kUsualElements = 1u << 18;
constexpr std::uint64_t kProbing = 2;   // a communicator as long as the start

Communicator open(const std::shared_ptr<Session>& session, std::uint64_t context,
                  std::vector<int> ranks, int rank, const Group* made_of = nullptr) {
  auto group = std::make_shared<Group>();
  if (made_of) group->timeout_ms = made_of->timeout_ms;
  group->context = context;
  group->ranks = std::move(ranks);
  group->rank = rank;
  return Communicator(std::make_shared<Communicator::State>(session, group));
}

}  // namespace

Communicator Communicator::split(int colour, int key) {
  const int p = size(), me = rank();
  std::vector<std::int32_t> mine{colour, key}, all(2 * static_cast<std::size_t>(p));
  Call call;
  call.collective = Collective::allgather;
  call.type = Type::i32;
  call.input = mine.data();
  call.output = all.data();
  call.count = 2;
  run(call);
  // Every rank derives the same new context from what has been agreed: no second exchange is
  // needed.
  const Group& group = *state_->group;
  const std::uint64_t context =
      Random::mix(group.context ^ Random::mix(std::uint64_t{group.last} << 32 |
                                              static_cast<std::uint32_t>(colour)));
  if (colour < 0) return {};
  std::vector<int> members;
  for (int r = 0; r < p; ++r)
    if (all[2 * static_cast<std::size_t>(r)] == colour) members.push_back(r);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[2 * static_cast<std::size_t>(a) + 1] < all[2 * static_cast<std::size_t>(b) + 1];
  });
  const int position =
      static_cast<int>(std::find(members.begin(), members.end(), me) - members.begin());
  for (int& member : members) member = group.ranks[static_cast<std::size_t>(member)];
  Communicator made = open(state_->session, context, std::move(members), position, &group);
  made.seat_together();
  return made;
}

Communicator Communicator::subgroup(const std::vector<int>& ranks, std::uint64_t tag) {
  const Group& group = *state_->group;
  std::vector<int> members;
  int position = -1;
  for (int r : ranks) {
    if (r < 0 || r >= size())
      fail(Fault::usage, "subgroup: ", r, " is not a rank; it must be from 0 to ", size() - 1, ".");
    if (r == rank()) position = static_cast<int>(members.size());
    members.push_back(group.ranks[static_cast<std::size_t>(r)]);
  }
  if (position < 0)
    fail(Fault::usage, "subgroup: rank ", rank(), " makes a group that it is not part of.");
  return open(state_->session, Random::mix(group.context ^ Random::mix(tag ^ 0x73756267)),
              std::move(members), position, &group);
}

void Communicator::seat_together() {
  if (!state_->group->stages) return;
  state_->session->seat_together(*state_->group, timeout_ms(),
                                 {"new communicator", "Look at it, or raise timeout_ms."});
}

// Whoever calls first should not wait for this program's pages to come from disk or memory: a call
// is prepared here that nobody will start.
void Communicator::warm_up(int timeout_ms) {
  if (!state_->group->stages) return;
  state_->session->seat_together(
      *state_->group, timeout_ms,
      {"start-up", "Is it still there? PACELINE_START_TIMEOUT_MS is the limit."});
  std::byte place{};
  Call call{Collective::allreduce, Type::f32, Op::sum};
  call.input = call.output = &place;
  call.count = kUsualElements;
  try {
    const Ready ready = state_->prepare(call);
    state_->free_flight(*ready.prepared);
  } catch (const Error&) {   // options may ask for what it cannot have; who calls will be told
  }
}

Communicator join_transport(std::unique_ptr<Transport> transport, const WorldConfig& config,
                            bool together) {
  const int rank = transport->rank(), ranks = transport->ranks();
  const auto session = Session::make(std::move(transport), config);
  record_on_signal(config.record_signal, config.record_dir, session);
  std::vector<int> everybody(static_cast<std::size_t>(ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  if (config.machine == "probe" && std::set(config.nodes.begin(), config.nodes.end()).size() > 1)
    session->assume(probed(open(session, kProbing, everybody, rank), config));
  Communicator world = open(session, 1, std::move(everybody), rank);
  if (together) world.warm_up(config.start_timeout_ms);
  return world;
}

}  // namespace paceline
