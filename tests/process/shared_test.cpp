// Buffers that all ranks reach: the algorithms that read and write them in place, on processes.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "bootstrap/join.hpp"
#include "coll/registry.hpp"
#include "ir/load_store.hpp"
#include "process/ranks.hpp"
#include "runtime/shared_memory.hpp"
#include "world/cases.hpp"

namespace paceline {
namespace {

using test::expect_fault;
using test::join;
using test::run_ranks;
using test::value;

// Room for every buffer of a case: input and output, apart or one inside the other.
struct Shared {
  std::shared_ptr<SharedMemory> input, output;

  Shared(Communicator& world, std::size_t elements)
      : input(world.allocate(elements * sizeof(double))),
        output(world.allocate(elements * sizeof(double))) {}
  double* in() const { return reinterpret_cast<double*>(input->data()); }
  double* out() const { return reinterpret_cast<double*>(output->data()); }
};

struct SharedCase {
  Collective collective;
  std::size_t count;
  int root;
  bool in_place;
};

// Where the rank's data begins and where its result will be, `skip` elements into the memory.
Call call_of(const SharedCase& c, const Shared& memory, int rank, std::size_t skip) {
  Call call;
  call.collective = c.collective;
  call.type = Type::f64;
  call.root = c.root;
  call.count = c.count;
  call.algorithm = "symmetric";
  double *in = memory.in() + skip, *out = memory.out() + skip;
  const std::size_t own = static_cast<std::size_t>(rank) * c.count;
  if (c.in_place && c.collective == Collective::allgather) in = out + own;
  else if (c.in_place && c.collective == Collective::reduce_scatter) out = in + own;
  else if (c.in_place || c.collective == Collective::broadcast) in = out;
  call.input = in;
  call.output = out;
  return call;
}

std::size_t units_in(const SharedCase& c, int ranks) {
  const bool many = c.collective == Collective::reduce_scatter ||
                    c.collective == Collective::alltoall;
  return many ? static_cast<std::size_t>(ranks) : 1;
}

void fill(const SharedCase& c, const Call& call, int rank, int ranks) {
  auto* in = static_cast<double*>(const_cast<void*>(call.input));
  for (std::size_t unit = 0; unit < units_in(c, ranks); ++unit)
    for (std::size_t i = 0; i < c.count; ++i)
      in[unit * c.count + i] = value(rank, static_cast<int>(unit), i);
}

// Element i of unit `unit` of the result.
double wanted(const SharedCase& c, int rank, int ranks, std::size_t unit, std::size_t i) {
  const int from = static_cast<int>(unit);
  switch (c.collective) {
    case Collective::broadcast: return value(c.root, 0, i);
    case Collective::allgather: return value(from, 0, i);
    case Collective::alltoall: return value(from, rank, i);
    default: break;
  }
  double sum = 0;
  const int target = c.collective == Collective::reduce_scatter ? rank : 0;
  for (int r = 0; r < ranks; ++r) sum += value(r, target, i);
  return sum;
}

std::string run_case(Communicator& world, const SharedCase& c, const Shared& memory,
                     std::size_t skip) {
  const int rank = world.rank(), ranks = world.size();
  const Call call = call_of(c, memory, rank, skip);
  fill(c, call, rank, ranks);
  world.run(call);
  const bool many = c.collective == Collective::allgather || c.collective == Collective::alltoall;
  const auto* out = static_cast<const double*>(call.output);
  for (std::size_t unit = 0; unit < (many ? std::size_t(ranks) : 1); ++unit)
    for (std::size_t i = 0; i < c.count; ++i)
      if (const double want = wanted(c, rank, ranks, unit, i); out[unit * c.count + i] != want)
        return str(name_of(c.collective), " n=", c.count, " root=", c.root,
                   c.in_place ? " in place" : "", ": rank ", rank, " unit ", unit, " element ", i,
                   " is ", out[unit * c.count + i], ", not ", want);
  return {};
}

constexpr Collective kShared[] = {Collective::allreduce, Collective::broadcast,
                                  Collective::reduce_scatter, Collective::allgather,
                                  Collective::alltoall};

std::string run_all(Communicator& world) {
  const int p = world.size();
  // Several segments for each rank, and room for all in 64 MiB, which is all that containers have.
  const int longest = p < 8 ? 65537 : 16411;
  const Shared memory(world, std::size_t(longest + 8) * std::size_t(p));
  if (!memory.input->is_shared()) return "the memory is not shared";
  for (const Collective collective : kShared)
    for (const std::size_t count : {0, 1, p - 1, p + 1, 67, 1023, longest})
      for (const bool in_place : {false, true})
        for (const int root : {0, p - 1}) {
          if (in_place && collective == Collective::alltoall) continue;
          const SharedCase c{collective, count, has_root(collective) ? root : 0, in_place};
          if (std::string bad = run_case(world, c, memory, count % 5); !bad.empty()) return bad;
        }
  return {};
}

}  // namespace

TEST_CASE("every algorithm over shared buffers keeps its contract, and all are tried") {
  std::size_t known = 0;
  for (const Algorithm* a : registry()) known += a->uses(Access::symmetric) ? 1 : 0;
  CHECK(known == std::size(kShared));
  for (int p : {1, 2, 3, 5, 8}) {
    const std::string bad = run_ranks(p, 60, [&](int rank, const std::string& folder) {
      Communicator world = join(rank, p, folder);
      return run_all(world);
    });
    CHECK_MESSAGE(bad.empty(), "p = " << p << ": " << bad);
  }
}

TEST_CASE("a call that gives more signals than stages count is refused on every rank, unsent") {
  const std::string bad = run_ranks(3, 300, [&](int rank, const std::string& folder)
                                           -> std::string {
    Communicator world = join(rank, 3, folder, 120000);   // 100,000 handovers take their time
    const Shared memory(world, 200000);
    constexpr int most = static_cast<int>(kMostSignals) / 2;   // each gives two
    for (const Collective collective : {Collective::allreduce, Collective::broadcast}) {
      const SharedCase c{collective, 65541, 1, collective == Collective::allreduce};
      Call call = call_of(c, memory, rank, 0);
      for (int segments : {most + 1, 50000, 65536}) {
        call.cut.segments = segments;
        const std::string told = expect_fault(
            Fault::refusal,
            {"signals in a call", str("count ", kMostSignals), str("at most ", most, " segments")},
            [&] { world.run(call); });
        if (!told.empty()) return str(segments, " segments: ", told);
      }
      fill(c, call, rank, 3);
      call.cut.segments = most;
      world.run(call);   // nothing was sent, so nothing is out of step
      const auto* out = static_cast<const double*>(call.output);
      for (std::size_t i = 0; i < c.count; ++i)
        if (const double want = wanted(c, rank, 3, 0, i); out[i] != want)
          return str("element ", i, " is ", out[i], ", not ", want);
    }
    return {};
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("more than 16 ranks are summed in groups, in rank order") {
  const std::string bad = run_ranks(18, 60, [&](int rank, const std::string& folder) {
    Communicator world = join(rank, 18, folder);
    const Shared memory(world, 1000);
    std::string first;
    for (const bool in_place : {false, true}) {
      const SharedCase c{Collective::allreduce, 901, 0, in_place};
      if (first.empty()) first = run_case(world, c, memory, 3);
    }
    return first;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("the choice takes shared buffers by itself, plans and parts of the world too") {
  const std::string bad = run_ranks(4, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 4, folder);
    Communicator half = world.split(rank % 2, rank);
    const auto memory = half.allocate(4096 * sizeof(float));
    auto* x = reinterpret_cast<float*>(memory->data());
    Call call;
    call.collective = Collective::allreduce;
    call.type = Type::f32;
    call.input = call.output = x;
    call.count = 4096;
    if (half.explain(call).find("symmetric") == std::string::npos) return half.explain(call);
    Plan plan = half.plan(call);
    for (int turn = 1; turn <= 3; ++turn) {
      std::fill_n(x, 4096, float(turn * (rank + 1)));
      plan.start().wait();
      const float want = float(turn * (rank % 2 == 0 ? 1 + 3 : 2 + 4));
      for (int i = 0; i < 4096; ++i)
        if (x[i] != want) return str("turn ", turn, ": ", x[i], ", not ", want);
    }
    return {};
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// What `call` would take; "" if that is, or is not, an algorithm over shared buffers, as `wanted`.
std::string not_as(bool wanted, const Communicator& group, const Call& call) {
  const std::string told = group.explain(call);
  return (told.find("symmetric") == 0) == wanted ? "" : str(group.size(), " ranks take ", told);
}

TEST_CASE("communicators whose ranks all have a part reach it, in their own order") {
  const std::string bad = run_ranks(3, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 3, folder);
    Communicator turned = world.split(0, -rank), pair = world.split(rank == 1 ? 1 : 0, rank);
    const auto of_all = world.allocate(40000), of_pair = pair.allocate(40000);
    Call call;
    call.collective = Collective::broadcast;   // the root is the last of the world
    call.output = of_all->data();
    call.count = 40000;
    std::fill_n(of_all->data(), 40000, std::byte(rank + 1));
    if (std::string told = not_as(true, turned, call); !told.empty()) return told;
    turned.run(call);
    if (of_all->data()[39999] != std::byte{3}) return "the turned world's root is another";
    std::fill_n(of_all->data(), 40000, std::byte(rank + 1));
    if (std::string told = not_as(rank != 1, pair, call); !told.empty()) return told;
    pair.run(call);
    if (of_all->data()[7] != std::byte(rank == 1 ? 2 : 1)) return "the pair's root is another";
    call.output = of_pair->data();
    if (rank == 1) return not_as(false, world, call);   // alone in its pair
    if (std::string told = not_as(true, pair, call); !told.empty()) return told;
    return not_as(false, world, call);
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("where one rank has no room, all have private memory, and it says why") {
  const std::string bad = run_ranks(3, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 3, folder);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = rank == 1 ? 8192 : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto memory = world.allocate(40000);
    if (memory->is_shared()) return "it is shared";
    if (memory->bytes() != 40000 || memory->data()[39999] != std::byte{0}) return "no memory";
    if ((memory->trouble().find("ulimit -f") != std::string::npos) != (rank == 1))
      return str("rank ", rank, " says '", memory->trouble(), "'");
    return {};
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("ranks on nodes of their own do not share, and huge pages change no result") {
  const auto allocate = [](bool apart) {
    return run_ranks(2, 60, [&](int rank, const std::string& folder) -> std::string {
      WorldConfig config;
      config.rank = rank;
      config.ranks = 2;
      config.huge_pages = true;
      if (apart) config.nodes = {0, 1};
      Communicator world = join_world(std::make_shared<FileStore>(folder), config);
      const std::size_t bytes = (3u << 20) + 40;
      const auto memory = world.allocate(bytes);
      if (memory->is_shared() == apart || !memory->trouble().empty()) return "not as expected";
      std::fill_n(memory->data(), bytes, std::byte(rank + 1));
      Call call;
      call.collective = Collective::allreduce;
      call.input = call.output = memory->data();
      call.count = bytes;
      world.run(call);
      for (std::size_t at : {std::size_t{0}, std::size_t{2} << 20, bytes - 1})
        if (memory->data()[at] != std::byte{3}) return str("byte ", at, " is wrong");
      return {};
    });
  };
  CHECK(allocate(false) == "");
  CHECK(allocate(true) == "");
}

TEST_CASE("symmetric: other places on each rank, or private memory on one, are a mismatch") {
  const auto run = [](const std::vector<std::string>& words, int offset, bool private_one) {
    return run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
      Communicator world = join(rank, 2, folder, 5000);
      const auto memory = world.allocate(1 << 16);
      std::vector<std::byte> own(1 << 16);
      Call call;
      call.collective = Collective::allreduce;
      call.count = 1 << 15;
      std::byte* x = memory->data() + (rank == 1 ? offset : 0);
      if (rank == 1 && private_one) x = own.data();
      call.input = call.output = x;
      return expect_fault(Fault::mismatch, words, [&] { world.run(call); });
    });
  };
  const std::string places = run({"place in shared memory differs"}, 64, false);
  CHECK_MESSAGE(places.empty(), places);
  const std::string traded = run_ranks(2, 30, [&](int rank, const std::string& folder) {
    Communicator world = join(rank, 2, folder, 5000);
    const auto memory = world.allocate(1 << 16);
    Call call{.collective = Collective::allreduce};
    call.count = 1 << 15;
    call.input = memory->data() + (rank == 1 ? 1 << 15 : 0);
    call.output = memory->data() + (rank == 1 ? 0 : 1 << 15);
    return expect_fault(Fault::mismatch, {"place in shared memory differs"},
                        [&] { world.run(call); });
  });
  CHECK_MESSAGE(traded.empty(), traded);
  const std::string one = run({"rank 0 passes buffers in shared memory, rank 1 others"}, 0, true);
  CHECK_MESSAGE(one.empty(), one);
}

TEST_CASE("a short message is sent, so each rank may pass what memory it likes") {
  const std::string bad = run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 2, folder, 5000);
    const auto memory = world.allocate(400);
    std::vector<float> own(100);
    auto* x = rank == 0 ? reinterpret_cast<float*>(memory->data()) : own.data();
    std::fill_n(x, 100, float(rank + 1));
    Call call;
    call.collective = Collective::allreduce;
    call.type = Type::f32;
    call.input = call.output = x;
    call.count = 100;
    world.run(call);
    return x[0] == 3 && x[99] == 3 ? "" : str("the sum is ", x[0]);
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("algorithm=symmetric on private buffers is refused, and names paceline.empty") {
  const std::string bad = run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 2, folder);
    std::vector<float> x(4096, 1);
    Call call;
    call.collective = Collective::allreduce;
    call.type = Type::f32;
    call.input = call.output = x.data();
    call.count = x.size();
    call.algorithm = "symmetric";
    return expect_fault(Fault::refusal, {"paceline.empty"}, [&] { world.run(call); });
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace paceline
