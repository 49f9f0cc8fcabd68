// FormsOf: an MPI's own calls in other forms than one blocking collective, for comparison.
#pragma once

#include <climits>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "functions.hpp"
#include "peer.hpp"

namespace paceline::peers {

// The ranks of a communicator, of one binary interface.
template <class A>
struct RanksOf {
  Functions<A> call;
  typename A::Comm communicator;
  typename A::Request no_request;
  int rank = 0, size = 1;
};

// Returns the count as an int, with which an MPI counts; throws a refusal if it is too large.
inline int within(std::size_t elements) {
  if (elements > INT_MAX)
    fail(Fault::refusal, "mpi: a collective of ", elements,
         " elements; an MPI counts to 2147483647.");
  return int(elements);
}

inline const std::byte* at(const void* data, std::size_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}
inline std::byte* at(void* data, std::size_t offset) {
  return static_cast<std::byte*>(data) + offset;
}

template <class A>
class FormsOf {
 public:
  using Datatype = typename A::Datatype;
  using Op = typename A::Op;
  using Request = typename A::Request;

  FormsOf(const RanksOf<A>& ranks, const MpiCall& call, Datatype type, Op op)
      : ranks_(ranks), c_(call), type_(type), op_(op) {}

  std::function<void()> prepared() const {
    if (c_.form == Form::concurrent) {
      const auto start = starter();
      return [self = *this, start] { self.concurrent(start); };
    }
    if (c_.collective != "allreduce")
      fail(Fault::refusal, "mpi: a ring of Sendrecv does allreduce, not ", c_.collective, ".");
    return [self = *this] { self.ring(); };
  }

 private:
  // Elements of a unit that one of the concurrent calls takes.
  struct Part {
    std::size_t first;
    int count;
  };
  // Arrays that Iallgatherv reads until it ends.
  struct Places {
    std::vector<int> counts, at;
  };
  using Start = void (FormsOf::*)(const Part&, Places&, Request&) const;

  Start starter() const {
    if (c_.collective == "allreduce") return &FormsOf::start_allreduce;
    if (c_.collective == "reduce") return &FormsOf::start_reduce;
    if (c_.collective == "broadcast") return &FormsOf::start_broadcast;
    if (c_.collective == "allgather") return &FormsOf::start_allgather;
    fail(Fault::refusal, "mpi: several calls of ", c_.collective,
         " on parts of the message leave its pieces elsewhere than one call does; use "
         "allreduce, reduce, broadcast or allgather.");
  }

  // Cuts the message as the published listing does: equal parts, the last one takes the rest.
  void concurrent(Start start) const {
    const std::size_t parts = c_.count < c_.parts || c_.parts == 0 ? 1 : c_.parts;
    const std::size_t length = c_.count / parts;
    std::vector<Request> requests(parts, ranks_.no_request);
    std::vector<Places> places(parts);
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t end = i + 1 == parts ? c_.count : (i + 1) * length;
      (this->*start)({i * length, within(end - i * length)}, places[i], requests[i]);
    }
    std::vector<typename A::Status> statuses(parts);
    check(call().Waitall(int(parts), requests.data(), statuses.data()), "Waitall");
  }

  void start_allreduce(const Part& part, Places& /*places*/, Request& request) const {
    check(call().Iallreduce(input(part, true), output(part), part.count, type_, op_, comm(),
                            &request), "Iallreduce");
  }

  void start_reduce(const Part& part, Places& /*places*/, Request& request) const {
    check(call().Ireduce(input(part, c_.root == ranks_.rank), output(part), part.count, type_, op_,
                         c_.root, comm(), &request), "Ireduce");
  }

  void start_broadcast(const Part& part, Places& /*places*/, Request& request) const {
    check(call().Ibcast(output(part), part.count, type_, c_.root, comm(), &request), "Ibcast");
  }

  void start_allgather(const Part& part, Places& places, Request& request) const {
    for (int r = 0; r < ranks_.size; ++r) {
      places.counts.push_back(part.count);
      places.at.push_back(within(std::size_t(r) * c_.count + part.first));
    }
    const std::size_t own = std::size_t(ranks_.rank) * c_.count * c_.element;
    const bool in_place = c_.input == c_.output || c_.input == at(c_.output, own);
    const void* from = in_place ? A::in_place() : at(c_.input, part.first * c_.element);
    check(call().Iallgatherv(from, part.count, type_, c_.output, places.counts.data(),
                             places.at.data(), type_, comm(), &request), "Iallgatherv");
  }

  const void* input(const Part& part, bool may_be_in_place) const {
    return c_.input == c_.output && may_be_in_place ? A::in_place()
                                                    : at(c_.input, part.first * c_.element);
  }
  void* output(const Part& part) const { return at(c_.output, part.first * c_.element); }

  // A ring in its plainest form: one message at a time, whole blocks, the sum after its message,
  // new memory in each call.
  void ring() const {
    const int p = ranks_.size, r = ranks_.rank;
    const std::size_t unit = c_.count / std::size_t(p);
    const auto first = [&](int block) { return unit * std::size_t((block + 2 * p) % p); };
    const auto count = [&](int block) {
      return int((block + 2 * p) % p == p - 1 ? c_.count - first(block) : unit);
    };
    const auto data = [&](int block) { return at(c_.output, first(block) * c_.element); };
    if (c_.input != c_.output) std::memcpy(c_.output, c_.input, c_.count * c_.element);
    const auto spare =
        std::make_unique_for_overwrite<std::byte[]>((c_.count - first(p - 1)) * c_.element);
    for (int k = 0; k < p - 1; ++k) {
      const int came = r - k - 1;
      exchange(data(r - k), count(r - k), spare.get(), count(came));
      check(call().Reduce_local(spare.get(), data(came), count(came), type_, op_), "Reduce_local");
    }
    for (int k = 0; k < p - 1; ++k)
      exchange(data(r + 1 - k), count(r + 1 - k), data(r - k), count(r - k));
  }

  // Sends to the right, receives from the left.
  void exchange(const void* mine, int count, void* theirs, int expected) const {
    const int p = ranks_.size, left = (ranks_.rank + p - 1) % p, right = (ranks_.rank + 1) % p;
    typename A::Status status;
    check(call().Sendrecv(mine, count, type_, right, 0, theirs, expected, type_, left, 0, comm(),
                          &status), "Sendrecv");
  }

  const Functions<A>& call() const { return ranks_.call; }
  typename A::Comm comm() const { return ranks_.communicator; }
  void check(int code, const char* what) const { ranks_.call.check(code, what); }

  RanksOf<A> ranks_;
  MpiCall c_;
  Datatype type_;
  Op op_;
};

}  // namespace paceline::peers
