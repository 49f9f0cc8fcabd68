// A program of collectives, the same for every rank: what a seed stands for.
//
// All ranks follow one list of actions, each those that concern it, so that no order of theirs can
// be a deadlock. Calls under way at once are completed by each rank in an order of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "ir/problem.hpp"

namespace paceline::fuzz {

enum class Dialect { core, mpi };            // what can be said in Paceline's calls, or in MPI's
enum class Mode { blocking, started, planned };
// Numbers of a reduction of floats: those whose result is exact in any order, those that round, and
// infinities, NaN, zeros and denormals among them.
enum class Values { whole, wild, special };
enum class Way { split, dup, subgroup, alone };

// Communicators made at once from the ranks of another: groups `first` .. `first + groups - 1`.
struct Making {
  Way way = Way::split;
  int parent = 0;
  int first = 0;
  int groups = 1;
};

// One call, as all ranks of its group make it.
struct Invocation {
  int group = 0;
  Collective collective = Collective::barrier;
  Type type = Type::u8;
  Op op = Op::sum;
  int root = 0;
  std::size_t count = 0;               // elements of a unit
  // Uneven: per position; alltoall: what a sends b at a * p + b.
  std::vector<std::size_t> counts;
  std::uint64_t in_place = 0;          // bit per position
  Mode mode = Mode::blocking;
  bool shared = false;                 // buffers that all ranks reach
  std::size_t shift = 0;               // elements before each buffer
  Values values = Values::whole;
  std::uint64_t data = 0;              // seed of the numbers
  std::string algorithm;               // empty: chosen
  int segments = 0, window = 0, blocks = 0;
  int priority = 0;
  int same_as = -1;                    // an earlier call with the same arguments and numbers
  int plan_of = -1;                    // an earlier planned call that is started again
};

struct Action {
  enum class Kind { make, release, begin, complete };
  Kind kind = Kind::begin;
  int subject = 0;                     // making, group or call
  std::vector<int> calls = {};         // to complete
};

struct Program {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::vector<int> nodes = {};         // of each rank, where they are on several
  Dialect dialect = Dialect::core;
  Numbers numbers = Numbers::stable;   // or fast: sums may have other bits the next time
  std::vector<std::vector<int>> groups = {};   // ranks of the world, by position; 0 is the world
  std::vector<Making> makings = {};
  std::vector<Invocation> calls = {};
  std::vector<Action> actions = {};
};

struct Wishes {
  int ranks = 1;
  Dialect dialect = Dialect::core;
  Numbers numbers = Numbers::stable;
  bool plain = false;                  // no other communicators, no shared memory
  std::size_t most_elements = 40000;   // of a unit
  const Collective* collective = nullptr;   // no other
};

Program generate(std::uint64_t seed, const Wishes& wishes);

// The same without the calls that are not in `kept`; the others keep their numbers.
Program thinned(const Program& program, const std::vector<int>& kept);

std::string text_of(const Program& program);
std::string text_of(const Program& program, int call);

// The position of a rank of the world in a group; -1: it is no member.
int position_of(const Program& program, int group, int rank);
int size_of_group(const Program& program, int group);

// A number of the program's own for a place in it: for delays, orders, numbers.
std::uint64_t draw(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);

}  // namespace paceline::fuzz
