// The protocol by which ranks claim positions (arrival/claims.hpp), in all interleavings: each rank
// loads the counter, exchanges it, writes its number, and leaves, one call after the other, however
// far the others are.
//
// At every moment a rank in a call may read any cell: it must name no rank, or the rank that has
// the position in this very call.
#include "arrival/claims.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/str.hpp"

namespace paceline {
namespace {

// Functions for each step of the protocol; mutants differ in one of them.
struct Protocol {
  std::size_t (*side_of)(std::uint64_t call) = claims::side_of;
  std::uint64_t (*one_more)(std::uint64_t before, std::uint64_t call) = claims::one_more;
  int (*named_in)(std::uint64_t cell, std::uint64_t call) = claims::named_in;
  std::uint64_t (*word)(std::uint64_t call, int value) = claims::word;
  bool compares = true;    // when it exchanges the counter
  int ahead = 2;           // a rank enters a call once all have left the call this many before
  bool is_kept = false;    // position 0, for rank 0
};

enum class At : char { outside, entered, loaded, taken, named };

struct Rank {
  At at = At::outside;
  std::uint64_t call = 1, left = 0, before = 0;
  int position = -1;
};

struct State {
  std::vector<Rank> ranks;
  std::uint64_t counters[2] = {};
  std::vector<std::uint64_t> cells[2];
  std::map<std::pair<std::uint64_t, int>, int> truth;   // ranks by call and position

  std::string key() const {
    std::string out;
    for (const Rank& r : ranks)
      out += str(char('a' + int(r.at)), r.call, ",", r.at == At::loaded ? r.before : 0, ",",
                 r.position, ";");
    for (int side : {0, 1}) {
      out += str("|", counters[side]);
      for (std::uint64_t cell : cells[side]) out += str(",", cell);
    }
    for (const auto& [what, rank] : truth) out += str("/", what.first, ".", what.second, "=", rank);
    return out;
  }
};

class Explorer {
 public:
  Explorer(const Protocol& protocol, int ranks, std::uint64_t calls)
      : p_(protocol), calls_(calls) {
    first_.ranks.resize(std::size_t(ranks));
    for (auto& side : first_.cells) side.resize(std::size_t(ranks));
  }

  // Returns what can go wrong; empty: nothing.
  std::string run() {
    std::vector<State> todo{first_};
    while (!todo.empty() && fault_.empty()) {
      const State state = std::move(todo.back());
      todo.pop_back();
      if (!seen_.insert(state.key()).second) continue;
      bool moves = false, over = true;
      for (std::size_t r = 0; r < state.ranks.size(); ++r) {
        over = over && state.ranks[r].left == calls_;
        if (!may_move(state, state.ranks[r])) continue;
        moves = true;
        todo.push_back(state);
        move(todo.back(), int(r));
        check(todo.back());
      }
      if (!moves && !over) fault_ = "nobody can go on";
    }
    return fault_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  bool may_move(const State& state, const Rank& rank) const {
    if (rank.left == calls_) return false;
    if (rank.at != At::outside) return true;
    for (const Rank& other : state.ranks)
      if (other.left + std::uint64_t(p_.ahead) < rank.call) return false;
    return true;
  }

  void take(State& state, Rank& rank, int id, int position) {
    rank.position = position;
    rank.at = At::taken;
    if (position < 0 || position >= int(state.ranks.size()))
      fault_ = str("rank ", id, " takes position ", position);
    else if (!state.truth.try_emplace({rank.call, position}, id).second)
      fault_ = str("two ranks take position ", position);
  }

  void move(State& state, int id) {
    Rank& rank = state.ranks[std::size_t(id)];
    const std::size_t side = p_.side_of(rank.call);
    switch (rank.at) {
      case At::outside:
        rank.at = At::entered;
        if (p_.is_kept && id == 0) take(state, rank, id, 0);
        break;
      case At::entered:
        rank.before = state.counters[side];
        rank.at = At::loaded;
        break;
      case At::loaded:
        if (p_.compares && state.counters[side] != rank.before) {
          rank.before = state.counters[side];   // and again
          break;
        }
        state.counters[side] = p_.one_more(rank.before, rank.call);
        take(state, rank, id, claims::value_of(state.counters[side]) - 1 + p_.is_kept);
        break;
      case At::taken:
        state.cells[side][std::size_t(rank.position)] = p_.word(rank.call, id);
        rank.at = At::named;
        break;
      case At::named:   // it may leave before any other rank has come
        rank.left = rank.call++;
        rank.at = At::outside;
        rank.position = -1;
        forget(state);
        break;
    }
  }

  // Forgets calls that all ranks have left: no rank will take or read a position in them.
  static void forget(State& state) {
    std::uint64_t least = state.ranks[0].left;
    for (const Rank& rank : state.ranks) least = std::min(least, rank.left);
    std::erase_if(state.truth, [&](const auto& one) { return one.first.first <= least; });
  }

  void check(const State& state) {
    for (const Rank& rank : state.ranks) {
      if (rank.at != At::named && rank.at != At::taken) continue;
      const auto& cells = state.cells[p_.side_of(rank.call)];
      for (std::size_t position = 0; position < cells.size() && fault_.empty(); ++position) {
        const int named = p_.named_in(cells[position], rank.call);
        const auto took = state.truth.find({rank.call, int(position)});
        if (named >= 0 && (took == state.truth.end() || took->second != named))
          fault_ = str("position ", position, " of call ", rank.call, " is read as rank ", named);
      }
    }
  }

  Protocol p_;
  std::uint64_t calls_;
  State first_;
  std::set<std::string> seen_;
  std::string fault_;
};

TEST_CASE("claims: no two ranks take a position, and nobody reads an old one") {
  for (const bool is_kept : {false, true})
    for (int ranks = 2; ranks <= 4; ++ranks) {
      Explorer explorer({.is_kept = is_kept}, ranks, ranks == 2 ? 5 : ranks == 3 ? 3 : 2);
      const std::string fault = explorer.run();
      CHECK_MESSAGE(fault.empty(), ranks, " ranks: ", fault);
      CHECK(explorer.states() > 100);
      MESSAGE(ranks, " ranks: ", explorer.states(), " states");
    }
}

TEST_CASE("claims: protocols that lack something are found out") {
  const auto one_side = [](std::uint64_t) { return std::size_t{0}; };
  const auto counts_on = [](std::uint64_t before, std::uint64_t) { return before + 1; };
  const auto any_call = [](std::uint64_t cell, std::uint64_t) {
    return cell == 0 ? -1 : claims::value_of(cell);
  };
  const struct {
    const char* what;
    Protocol protocol;
    const char* fault;
  } mutants[] = {
      {"one side for all calls", {.side_of = one_side}, ""},
      {"a counter that is never begun anew", {.one_more = counts_on}, "takes position"},
      {"cells that do not say of which call they are", {.named_in = any_call}, "is read as rank"},
      {"a counter that is stored, not exchanged", {.compares = false}, "two ranks take"},
      {"ranks three calls ahead", {.ahead = 3}, ""},
      {"ranks that wait for nobody", {.ahead = 9}, ""},
  };
  for (const auto& mutant : mutants)
    for (int ranks = 2; ranks <= 3; ++ranks) {
      const std::string fault = Explorer(mutant.protocol, ranks, 3).run();
      CHECK_MESSAGE(!fault.empty(), mutant.what, ", ", ranks, " ranks");
      CHECK_MESSAGE(fault.find(mutant.fault) != std::string::npos, mutant.what, ": ", fault);
    }
}

// The functions on real atomics: every position once, in each of many calls.
TEST_CASE("claims: who takes them in one call after the other") {
  StageClaims claims{};
  for (std::uint64_t call = 1; call <= 100; ++call) {
    std::set<int> taken;
    for (int rank = 0; rank < 5; ++rank) {
      const int position = claims::take(claims, call);
      claims::publish(claims, call, position, rank);
      CHECK(claims::rank_at(claims, call, position) == rank);
      taken.insert(position);
    }
    CHECK(taken == std::set<int>{0, 1, 2, 3, 4});
    CHECK(claims::rank_at(claims, call + 1, 0) == -1);
    CHECK(claims::rank_at(claims, call + 2, 0) == -1);
  }
}

}  // namespace
}  // namespace paceline
