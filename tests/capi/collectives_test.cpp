// Every collective with equal pieces and differing ones, in place and not, in every way to call it.
#include <algorithm>
#include <functional>
#include <numeric>

#include "ranks.hpp"

namespace capi {
namespace {

using Number = std::int64_t;
constexpr Number kUntouched = -77;

enum class Way { named, run, wait, test, wait_for, plan };
constexpr Way kWays[] = {Way::named, Way::run, Way::wait, Way::test, Way::wait_for, Way::plan};

struct Case {
  paceline_collective collective = PACELINE_ALLREDUCE;
  int ranks = 1, rank = 0, root = 0;
  std::size_t count = 0;
  bool uneven = false, in_place = false;
  Way way = Way::run;

  bool is(std::initializer_list<paceline_collective> some) const {
    return std::find(some.begin(), some.end(), collective) != some.end();
  }
  bool has_units() const {
    return !is({PACELINE_ALLREDUCE, PACELINE_BROADCAST, PACELINE_REDUCE, PACELINE_BARRIER});
  }
  // Elements that `from` has for `to`, or the piece of `to` where all say the same.
  std::size_t piece(int from, int to) const {
    if (!uneven) return count;
    return collective == PACELINE_ALLTOALL ? std::size_t(from * 2 + to + 1) % 4
                                           : (count + std::size_t(to) * 2) % 5;
  }
};

Number value(int rank, std::size_t index) { return (rank + 1) * 1'000'003 + Number(index) * 7; }

Number sum(const Case& c, std::size_t index) {
  Number all = 0;
  for (int r = 0; r < c.ranks; ++r) all += value(r, index);
  return all;
}

std::vector<std::size_t> pieces(const Case& c, const std::function<std::size_t(int)>& piece) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < c.ranks; ++r) counts.push_back(piece(r));
  return counts;
}

std::size_t total(const std::vector<std::size_t>& counts, int before) {
  return std::accumulate(counts.begin(), counts.begin() + before, std::size_t{0});
}

// One rank's part in a case: its buffers, the call, and what must be there afterwards.
class Part {
 public:
  explicit Part(const Case& c) : c_(c) {
    sent_ = pieces(c, [&](int r) { return c.piece(c.rank, r); });
    received_ = pieces(c, [&](int r) {
      return c.collective == PACELINE_ALLTOALL ? c.piece(r, c.rank) : c.piece(c.rank, r);
    });
    own_ = c.has_units() ? sent_[std::size_t(c.rank)] : c.count;
    const bool whole_in = c.is({PACELINE_REDUCE_SCATTER, PACELINE_ALLTOALL, PACELINE_SCATTER});
    const bool whole_out = c.is({PACELINE_ALLGATHER, PACELINE_ALLTOALL, PACELINE_GATHER});
    input_.resize(whole_in ? total(sent_, c.ranks) : own_);
    output_.resize(whole_out ? total(received_, c.ranks) : own_);
    call_ = call_of(c.collective);
    set_buffers();
    call_.type = PACELINE_I64;
    call_.op = PACELINE_SUM;
    call_.root = c.root;
    call_.count = own_;
    if (c.uneven) set_counts();
  }

  const paceline_call& call() const { return call_; }

  void fill() {
    std::fill(output_.begin(), output_.end(), kUntouched);
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = value(c_.rank, i);
    if (c_.in_place && !input_is_home())
      std::copy(input_.begin(), input_.end(), output_.begin() + std::ptrdiff_t(offset()));
    if (c_.collective == PACELINE_BROADCAST && c_.rank == c_.root) output_ = input_;
  }

  std::string check() const {
    const bool root = c_.rank == c_.root;
    switch (c_.collective) {
      case PACELINE_ALLREDUCE: return compare([&](std::size_t i) { return sum(c_, i); });
      case PACELINE_BROADCAST: return compare([&](std::size_t i) { return value(c_.root, i); });
      case PACELINE_REDUCE: return root ? compare([&](std::size_t i) { return sum(c_, i); }) : "";
      case PACELINE_REDUCE_SCATTER:
        return compare([&](std::size_t i) { return sum(c_, total(sent_, c_.rank) + i); });
      case PACELINE_SCATTER:
        return compare([&](std::size_t i) { return value(c_.root, offset() + i); });
      case PACELINE_GATHER:
        if (!root) return "";
        [[fallthrough]];
      case PACELINE_ALLGATHER: return compare_pieces([](int) { return std::size_t{0}; });
      case PACELINE_ALLTOALL:
        return compare_pieces([&](int from) {
          return total(pieces(c_, [&](int r) { return c_.piece(from, r); }), c_.rank);
        });
      default: return "";
    }
  }

 private:
  // Of the own piece in the longer buffer.
  std::size_t offset() const {
    const bool is_longer = c_.has_units() && !c_.is({PACELINE_ALLTOALL});
    return is_longer ? total(sent_, c_.rank) : 0;
  }
  bool input_is_home() const { return c_.is({PACELINE_REDUCE_SCATTER, PACELINE_SCATTER}); }

  void set_buffers() {
    const bool at_root = c_.rank == c_.root;
    call_.input = input_.data();
    call_.output = output_.data();
    if (c_.is({PACELINE_REDUCE, PACELINE_GATHER}) && !at_root) call_.output = nullptr;
    if (c_.is({PACELINE_SCATTER}) && !at_root) call_.input = nullptr;
    if (c_.is({PACELINE_BROADCAST, PACELINE_BARRIER})) call_.input = nullptr;
    if (c_.in_place && call_.input && call_.output) {
      if (input_is_home())
        call_.output = input_.data() + offset();
      else
        call_.input = output_.data() + offset();
    }
  }

  void set_counts() {
    call_.uneven = 1;
    if (c_.is({PACELINE_GATHER, PACELINE_SCATTER}) && c_.rank != c_.root) return;
    call_.counts = sent_.data();
    call_.count = 0;  // the own count may be left out where counts say it
    if (c_.collective == PACELINE_ALLTOALL) call_.counts_received = received_.data();
  }

  std::string compare(const std::function<Number(std::size_t)>& wanted) const {
    const auto* came = static_cast<const Number*>(call_.output);
    for (std::size_t i = 0; i < own_; ++i)
      if (came[i] != wanted(i))
        return "[" + std::to_string(i) + "] is " + std::to_string(came[i]) + ", not " +
               std::to_string(wanted(i));
    return "";
  }

  // `start`: where in the input of a rank the piece begins that is for this one.
  std::string compare_pieces(const std::function<std::size_t(int)>& start) const {
    std::size_t at = 0;
    for (int from = 0; from < c_.ranks; ++from)
      for (std::size_t i = 0; i < received_[std::size_t(from)]; ++i, ++at)
        if (output_[at] != value(from, start(from) + i))
          return "[" + std::to_string(at) + "] of rank " + std::to_string(from) + " is " +
                 std::to_string(output_[at]);
    return "";
  }

  Case c_;
  std::vector<std::size_t> sent_, received_;
  std::size_t own_ = 0;
  std::vector<Number> input_, output_;
  paceline_call call_{};
};

paceline_status call_named(paceline_comm* comm, const paceline_call& c) {
  switch (c.collective) {
    case PACELINE_ALLREDUCE:
      return paceline_allreduce(comm, c.input, c.output, c.count, c.type, c.op);
    case PACELINE_BROADCAST:
      return paceline_broadcast(comm, c.output, c.count, c.type, c.root);
    case PACELINE_REDUCE:
      return paceline_reduce(comm, c.input, c.output, c.count, c.type, c.op, c.root);
    case PACELINE_REDUCE_SCATTER:
      return paceline_reduce_scatter(comm, c.input, c.output, c.count, c.type, c.op);
    case PACELINE_ALLGATHER: return paceline_allgather(comm, c.input, c.output, c.count, c.type);
    case PACELINE_ALLTOALL: return paceline_alltoall(comm, c.input, c.output, c.count, c.type);
    case PACELINE_GATHER:
      return paceline_gather(comm, c.input, c.output, c.count, c.type, c.root);
    case PACELINE_SCATTER:
      return paceline_scatter(comm, c.input, c.output, c.count, c.type, c.root);
    default: return paceline_barrier(comm);
  }
}

// Waits for the request in the way of the case.
paceline_status end(paceline_request** request, Way way) {
  paceline_status status = PACELINE_OK;
  for (int done = 0; !done;) {
    if (way == Way::test) {
      status = paceline_test(request, &done);
    } else if (way == Way::wait_for) {
      status = paceline_wait_for(request, 5, &done);
    } else {
      status = paceline_wait(request);
      done = 1;
    }
    if (!done && !*request) return PACELINE_INTERNAL;  // ended without saying so
  }
  return *request ? PACELINE_INTERNAL : status;
}

std::string call_planned(paceline_comm* comm, Part& part) {
  paceline_plan* plan = nullptr;
  if (paceline_plan_create(comm, &part.call(), &plan) != PACELINE_OK) return paceline_error();
  std::string bad;
  for (int turn = 0; turn < 3 && bad.empty(); ++turn) {
    paceline_request* request = nullptr;
    part.fill();
    if (paceline_plan_start(plan, &request) != PACELINE_OK ||
        end(&request, Way::wait) != PACELINE_OK)
      bad = paceline_error();
    else
      bad = part.check();
  }
  if (paceline_plan_free(&plan) != PACELINE_OK || plan) return "the plan was not freed";
  return bad;
}

std::string call(paceline_comm* comm, const Case& c) {
  Part part(c);
  part.fill();
  if (c.way == Way::plan) return call_planned(comm, part);
  paceline_status status = PACELINE_OK;
  if (c.way == Way::named) {
    status = call_named(comm, part.call());
  } else if (c.way == Way::run) {
    status = paceline_run(comm, &part.call());
  } else {
    paceline_request* request = nullptr;
    status = paceline_start(comm, &part.call(), &request);
    if (status == PACELINE_OK) status = end(&request, c.way);
  }
  return status == PACELINE_OK ? part.check() : paceline_error();
}

template <class Visit>
void for_each_case(int ranks, int rank, Visit&& visit) {
  Case c;
  c.ranks = ranks;
  c.rank = rank;
  for (int kind = PACELINE_ALLREDUCE; kind <= PACELINE_BARRIER; ++kind)
    for (std::size_t count : {0, 1, 7, 3000})
      for (int root = 0; root < ranks; ++root)
        for (bool uneven : {false, true})
          for (bool in_place : {false, true})
            for (Way way : kWays) {
              c.collective = static_cast<paceline_collective>(kind);
              c.count = count;
              c.root = root;
              c.uneven = uneven;
              c.in_place = in_place;
              c.way = way;
              if (uneven && (!c.has_units() || way == Way::named)) continue;
              if (uneven && in_place && kind == PACELINE_ALLTOALL) continue;
              visit(c);
            }
}

TEST_CASE("every collective in every way") {
  for (int ranks : {1, 2, 3})
    with_ranks(ranks, [&](paceline_comm* world, int rank) {
      int cases = 0;
      std::string bad;
      for_each_case(ranks, rank, [&](const Case& c) {
        if (!bad.empty()) return;
        bad = call(world, c);
        ++cases;
        if (!bad.empty())
          bad += " (collective " + std::to_string(c.collective) + ", " + std::to_string(rank) +
                 " of " + std::to_string(ranks) + ", count " + std::to_string(c.count) + ", root " +
                 std::to_string(c.root) + ", uneven " + std::to_string(c.uneven) + ", in place " +
                 std::to_string(c.in_place) + ", way " + std::to_string(int(c.way)) + ")";
      });
      CHECK_MESSAGE(bad.empty(), bad);
      CHECK(cases > 300 * ranks);
    });
}

}  // namespace
}  // namespace capi
