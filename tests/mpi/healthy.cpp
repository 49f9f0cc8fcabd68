// Scenarios in which nothing goes wrong.
#include <unistd.h>

#include "mpi/raw.hpp"
#include "mpi/scenarios.hpp"
#include "native/peer.hpp"
#include "transport/mpi/symbols.hpp"

namespace paceline::test {
namespace {

// All the cases, or every so many of them where there are many ranks for few processors.
std::string run_cases(Communicator& world, int every, bool near) {
  const int p = world.size();
  std::string bad;
  int turn = 0;
  for_each_case(p, p > 3, [&](const Case& c) {
    if (!bad.empty() || (!near && is_load_store(c)) || ++turn % every != 0)
      return;
    bad = turn % 2 ? run_once<float>(world, c) : run_once<double>(world, c);
  });
  return bad;
}

// Values that say from whom they are and where they belong.
float mark(int rank, int round, std::size_t i) {
  return static_cast<float>(rank * 7919 + round * 104729 + static_cast<int>(i % 9973));
}

}  // namespace

std::string algorithms_in_pieces(const Ranks& ranks) {
  Communicator world = ranks.join(ranks.in_pieces());
  return run_cases(world, ranks.ranks > 5 ? 37 : ranks.ranks > 3 ? 11 : 3, false);
}

std::string algorithms_by_route(const Ranks& ranks) {
  Communicator world = ranks.join(ranks.config());
  return run_cases(world, ranks.ranks > 5 ? 7 : 1, true);
}

std::string two_nodes(const Ranks& ranks) {
  WorldConfig config = ranks.config();
  config.node = ranks.rank % 2 ? "odd" : "even";
  Communicator world = ranks.join(config);
  return run_cases(world, ranks.ranks > 5 ? 37 : 7, false);
}

std::string long_messages(const Ranks& ranks) {
  WorldConfig config = ranks.config();
  config.only_mpi = true;
  config.mpi.chunk_bytes = 4096;
  if (ranks.threads) config.progress = Progress::thread;
  Communicator world = ranks.join(config);
  Communicator other = world.dup();
  std::vector<std::unique_ptr<Buffers<float>>> buffers;
  std::vector<Request> requests;
  const std::size_t count = ranks.ranks > 3 ? 20000 : 150000;
  for (int i = 0; i < 6; ++i) {
    const Case c{i % 3 == 2 ? Collective::alltoall : Collective::allreduce,
                 "",
                 ranks.ranks,
                 count + std::size_t(i),
                 0,
                 false,
                 false,
                 i,
                 2};
    buffers.push_back(std::make_unique<Buffers<float>>(c, ranks.rank));
    requests.push_back((i % 2 ? other : world).start(buffers.back()->call()));
  }
  for (std::size_t i = requests.size(); i-- > 0;) requests[i].wait();
  for (const auto& b : buffers)
    if (std::string wrong = b->check(); !wrong.empty()) return wrong;
  return {};
}

// A root that runs ahead of a receiver that looks away: nothing is lost, whatever the sizes.
std::string flood(const Ranks& ranks) {
  WorldConfig config = ranks.config();
  config.only_mpi = true;
  Communicator world = ranks.join(config);
  constexpr std::size_t kSizes[] = {0, 1, 500, 2000, 3000};
  constexpr int kRounds = 1500;
  std::vector<float> data(3000);
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t n = kSizes[round % 5];
    for (std::size_t i = 0; i < n; ++i) data[i] = world.rank() == 0 ? mark(0, round, i) : -1;
    Call call{.collective = Collective::broadcast, .type = Type::f32, .output = data.data()};
    call.count = n;
    call.algorithm = "binomial";
    if (world.rank() != 0 && round % 300 == 0) usleep(50000);
    world.run(call);
    for (std::size_t i = 0; i < n; ++i)
      if (data[i] != mark(0, round, i))
        return str("round ", round, " element ", i, " is ", data[i], ", not ", mark(0, round, i));
  }
  return {};
}

std::string split_over_mpi(const Ranks& ranks) {
  Communicator world = ranks.join(ranks.in_pieces());
  Communicator part = world.split(ranks.rank % 2, -ranks.rank);
  const int members = (ranks.ranks + 1 - ranks.rank % 2) / 2;
  if (part.size() != members) return str(part.size(), " members, not ", members);
  if (part.rank() != members - 1 - ranks.rank / 2) return str("its place is ", part.rank());
  Case c{Collective::allreduce, "ring", members, 1000};
  if (std::string bad = run_once<float>(part, c); !bad.empty()) return bad;
  c.ranks = ranks.ranks;
  return run_once<double>(world, c);
}

// Worlds of several communicators, at once.
std::string other_communicators(const Ranks& ranks) {
  Communicator world = ranks.join(ranks.in_pieces());
  const RawMpi raw(*ranks.mpi);
  const RawMpi::Comm self = raw.self();
  Communicator alone = ranks.join(ranks.in_pieces(), &self);
  if (alone.size() != 1) return str("MPI_COMM_SELF has ", alone.size(), " ranks");
  RawMpi::Comm half = raw.split(ranks.rank % 2, ranks.rank);
  Communicator part = ranks.join(ranks.in_pieces(), &half);
  const int members = (ranks.ranks + 1 - ranks.rank % 2) / 2;
  if (part.size() != members) return str(part.size(), " members, not ", members);
  const Case cases[] = {{Collective::allreduce, "", ranks.ranks, 700},
                        {Collective::allgather, "", 1, 300},
                        {Collective::alltoall, "", members, 300}};
  Buffers<float> a(cases[0], world.rank()), b(cases[1], 0), c(cases[2], part.rank());
  Request first = world.start(a.call()), second = alone.start(b.call()),
          third = part.start(c.call());
  third.wait();
  second.wait();
  first.wait();
  return a.check() + b.check() + c.check();
}

// The MPI's own collectives, where they can do what ours can.
std::string own_collectives(const Ranks& ranks) {
  const std::shared_ptr<MpiWorld> world = ranks.mpi->open(nullptr);
  const mpi::Symbols symbols = mpi::Symbols::load("");
  const auto peer = peers::Peer::open(ranks.mpi->abi(),
                                      mpi::Symbols::file_of(symbols.need("PMPI_Barrier")),
                                      world->communicator_address());
  std::string bad;
  for_each_case(ranks.ranks, true, [&](const Case& given) {
    Case c = given;
    if (!bad.empty() || c.uneven || c.segments > 0 || c.knobs.blocks > 0) return;
    if (c.in_place && c.collective == Collective::reduce_scatter)
      return;  // MPI means another place
    Buffers<float> buffers(c, ranks.rank);
    const Call call = buffers.call();
    peer->prepared({std::string(name_of(call.collective)), std::string(name_of(call.type)),
                    std::string(name_of(call.op)), call.root, call.input, call.output, call.count,
                    size_of(call.type)})();
    bad = buffers.check();
  });
  if (!bad.empty()) return bad;
  float x = 1;
  peers::MpiCall call{"allreduce", "float32", "average", 0, &x, &x, 1, sizeof(x)};
  bad = expect_fault(Fault::refusal, {"no average"}, [&] { peer->prepared(call); });
  call.op = "sum";
  call.type = "bfloat16";
  return bad + expect_fault(Fault::refusal, {"bfloat16"}, [&] { peer->prepared(call); });
}

}  // namespace paceline::test
