// Scenarios in which ranks disagree, come late, give up or leave.
#include <unistd.h>

#include "mpi/scenarios.hpp"

namespace paceline::test {
namespace {

struct Difference {
  const char* word;
  void (*make)(Call& call, int rank);
};

const Difference kDifferences[] = {
    {"count differs", [](Call& c, int r) { c.count = r == 1 ? 101 : 100; }},
    {"count differs", [](Call& c, int r) { c.count = r == 1 ? 0 : 100; }},
    {"count differs", [](Call& c, int r) { c.count = r == 1 ? 5000 : 100000; }},
    {"count differs", [](Call& c, int r) { c.count = r == 0 ? 200000 : 199999; }},
    {"type differs", [](Call& c, int r) { c.type = r == 1 ? Type::i32 : Type::f32; }},
    {"collective differs",
     [](Call& c, int r) { c.collective = r == 0 ? Collective::barrier : Collective::allreduce; }},
    {"root differs",
     [](Call& c, int r) {
       c.collective = Collective::broadcast;
       c.root = r == 1 ? 1 : 0;
     }},
    {"algorithm differs", [](Call& c, int r) { c.algorithm = r == 1 ? "ring" : "binomial"; }},
};

Call allreduce_of(std::vector<float>& data) {
  Call call{.collective = Collective::allreduce, .type = Type::f32};
  call.input = call.output = data.data();
  call.count = data.size();
  return call;
}

WorldConfig over_mpi(const Ranks& ranks, int timeout_ms) {
  WorldConfig config = ranks.config();
  config.only_mpi = true;
  config.timeout_ms = timeout_ms;
  return config;
}

// Everybody waits for rank 0, which does something else first. One that is busy outside of Paceline
// answers nothing, and is known by its messages; one that looks in now and then says it itself.
std::string late_by(const Ranks& ranks, bool looks_in) {
  const bool is_late = ranks.rank == 0;
  const int patience_ms = looks_in ? 3000 : 700;
  const std::string waited = str("has waited ", patience_ms * 1e-3, " s; rank 0");
  Communicator world = ranks.join(over_mpi(ranks, is_late ? 20000 : patience_ms));
  std::vector<float> data(10);
  Call call = allreduce_of(data);
  call.algorithm = "direct";
  world.run(call);
  if (is_late) {
    for (int i = 0; i < patience_ms / 10 + 100 && world.broken().empty(); ++i) {
      usleep(10000);
      try {
        if (looks_in) (void)world.is_called();
      } catch (const Error&) {
        break;  // told by the others
      }
    }
    return expect_fault(Fault::timeout, {waited}, [&] {
      for (int i = 0; i < 200; ++i) world.run(call);  // what the others sent may do for one
    });
  }
  return expect_fault(
      Fault::timeout,
      // On a busy machine rank 0 may have answered from inside #1, which is the start's.
      {waited, looks_in ? "has last left allreduce #1" : "allreduce #1"},
      [&] { world.run(call); });
}

}  // namespace

std::string mismatch(const Ranks& ranks) {
  if (ranks.ranks == 1) return {};
  for (const Difference& d : kDifferences) {
    Communicator world = ranks.join(over_mpi(ranks, 8000));
    std::vector<float> in(200000), out(200000);
    Call call{.collective = Collective::allreduce, .type = Type::f32};
    call.count = 100;
    call.input = in.data();
    call.output = out.data();
    d.make(call, ranks.rank);
    const std::string bad = expect_fault(Fault::mismatch, {"rank", "differs"}, [&] {
      for (int i = 0; i < 200; ++i) {  // a rank that got through learns it at one of its next calls
        world.run(call);
        usleep(10000);
      }
    });
    if (!bad.empty()) return str(d.word, ": ", bad);
  }
  return {};
}

std::string late(const Ranks& ranks) {
  return ranks.ranks == 1 ? "" : late_by(ranks, false);
}

std::string late_looking_in(const Ranks& ranks) {
  return ranks.ranks == 1 ? "" : late_by(ranks, true);
}

// In a ring everybody waits for a neighbour, which waits for its own. Who asks is told whom to ask
// next: the last rank, which waits longest for rank 0, gives up first and still names it.
std::string late_behind(const Ranks& ranks) {
  if (ranks.ranks < 3) return {};
  const bool is_late = ranks.rank == 0, is_last = ranks.rank == ranks.ranks - 1;
  Communicator world = ranks.join(over_mpi(ranks, is_last ? 3000 : 20000));
  std::vector<float> data(1000);
  Call call = allreduce_of(data);
  call.algorithm = "ring";
  world.run(call);
  if (is_late) sleep(5);
  return expect_fault(Fault::timeout,
                      {str("rank ", ranks.ranks - 1, " has waited 3 s; rank "),
                       "no further: rank 0 does not answer, and was last heard of in allreduce #1"},
                      [&] { world.run(call); });
}

// Long messages to a rank that does not come are given up: their buffers are the caller's again,
// and what is still under way disturbs nobody.
std::string given_up(const Ranks& ranks) {
  if (ranks.ranks == 1) return {};
  WorldConfig config = over_mpi(ranks, 20000);
  config.mpi.chunk_bytes = 64u << 10;
  Communicator world = ranks.join(config);
  Communicator other = world.dup();
  {
    std::vector<float> data(500000, 1);
    Call call = allreduce_of(data);
    call.algorithm = "ring";
    if (ranks.rank == 1) sleep(2);
    else call.timeout_ms = 500;
    const std::string bad = expect_fault(Fault::timeout, {"has waited"}, [&] { world.run(call); });
    if (!bad.empty()) return bad;
    std::fill(data.begin(), data.end(), -1e30f);
  }
  // Another communicator of the same world is as good as before, once the late rank is back.
  for (std::size_t n : {std::size_t{3}, std::size_t{100000}}) {
    Case c{Collective::allreduce, "ring", ranks.ranks, n};
    Buffers<float> buffers(c, ranks.rank);
    Call call = buffers.call();
    other.run(call);
    if (std::string bad = buffers.check(); !bad.empty()) return bad;
  }
  return {};
}

std::string left(const Ranks& ranks) {
  if (ranks.ranks == 1) return {};
  Communicator world = ranks.join(over_mpi(ranks, 20000));
  const Call barrier{.collective = Collective::barrier};
  if (ranks.rank == 1) {
    world.run(barrier);
    world.leave();
    return expect_fault(Fault::usage, {"has left"}, [&] { world.run(barrier); });
  }
  // Who is quick finds it gone in the second barrier, and may tell a slow one within the first.
  // That one never finds it by itself: all that rank 1 had to say there was said before it left.
  return expect_fault(Fault::lost, {"barrier #2", "rank 1", "left"}, [&] {
    world.run(barrier);
    world.run(barrier);
  });
}

std::string configuration_differs(const Ranks& ranks) {
  if (ranks.ranks == 1) return {};
  WorldConfig config = over_mpi(ranks, 20000);
  if (ranks.rank == 1) config.mpi.chunk_bytes = 12345;
  return expect_fault(Fault::mismatch, {"configuration differs", "12345"},
                      [&] { ranks.join(config); });
}

}  // namespace paceline::test
