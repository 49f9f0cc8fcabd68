// FormsOf: an MPI's own calls in other forms than one blocking collective, for comparison.
#pragma once

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <vector>

#include "peers/mpi_calls.hpp"
#include "transport/mpi/abi/binding.hpp"

namespace paceline::peers {

template <class A>
class FormsOf {
 public:
  struct Place {
    typename A::Comm communicator;
    int rank, ranks;
  };
  using Datatype = typename A::Datatype;
  using Op = typename A::Op;

  FormsOf(const mpi::Binding<A>& mpi, const Place& place) : mpi_(mpi), place_(place) {}

  void run(const MpiCall& call, Datatype type, Op op) const {
    if (call.form == MpiForm::concurrent) return concurrent(call, type, op);
    if (call.collective != Collective::allreduce)
      fail(Fault::refusal, "mpi: a ring of Sendrecv does allreduce, not ",
           name_of(call.collective), ".");
    ring(call, type, op);
  }

 private:
  // Elements of a unit that one of the concurrent calls takes.
  struct Part {
    std::size_t first;
    int count;
  };

  // As the published listing has it: equal parts, the last one takes what is left over.
  void concurrent(const MpiCall& c, Datatype type, Op op) const {
    const std::size_t parts = c.count < c.parts || c.parts == 0 ? 1 : c.parts;
    const std::size_t length = c.count / parts;
    std::vector<typename A::Request> requests(parts, mpi_.handle.no_request);
    // What Iallgatherv reads until it ends.
    std::vector<std::vector<int>> counts(parts), at(parts);
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t end = i + 1 == parts ? c.count : (i + 1) * length;
      const Part part{i * length, int(end - i * length)};
      if (c.collective == Collective::allgather) {
        for (int r = 0; r < place_.ranks; ++r) {
          counts[i].push_back(part.count);
          at[i].push_back(within(std::size_t(r) * c.count + part.first));
        }
        gather(c, part, type, counts[i], at[i], requests[i]);
      } else {
        start(c, part, type, op, requests[i]);
      }
    }
    std::vector<typename A::Status> statuses(parts);
    mpi_.check(mpi_.call.Waitall(int(parts), requests.data(), statuses.data()), "Waitall");
  }

  void start(const MpiCall& c, const Part& part, Datatype type, Op op,
             typename A::Request& request) const {
    const std::size_t offset = part.first * size_of(c.type);
    const bool here = c.collective != Collective::reduce || c.root == place_.rank;
    const void* input = c.input == c.output && here ? A::in_place() : at(c.input, offset);
    void* output = at(c.output, offset);
    const auto communicator = place_.communicator;
    switch (c.collective) {
      case Collective::allreduce:
        return mpi_.check(mpi_.call.Iallreduce(input, output, part.count, type, op, communicator,
                                               &request), "Iallreduce");
      case Collective::reduce:
        return mpi_.check(mpi_.call.Ireduce(input, output, part.count, type, op, c.root,
                                            communicator, &request), "Ireduce");
      case Collective::broadcast:
        return mpi_.check(mpi_.call.Ibcast(output, part.count, type, c.root, communicator,
                                           &request), "Ibcast");
      default:
        fail(Fault::refusal, "mpi: several calls of ", name_of(c.collective),
             " on parts of the message leave its pieces elsewhere than one call does; use "
             "allreduce, reduce, broadcast or allgather.");
    }
  }

  void gather(const MpiCall& c, const Part& part, Datatype type, const std::vector<int>& counts,
              const std::vector<int>& where, typename A::Request& request) const {
    const std::size_t own = std::size_t(place_.rank) * c.count * size_of(c.type);
    const bool in_place = c.input == c.output || c.input == at(c.output, own);
    const void* input = in_place ? A::in_place() : at(c.input, part.first * size_of(c.type));
    mpi_.check(mpi_.call.Iallgatherv(input, part.count, type, c.output, counts.data(),
                                     where.data(), type, place_.communicator, &request),
               "Iallgatherv");
  }

  // As programs that know no better write it: one message at a time, whole blocks, the sum after
  // its message, memory anew in each call.
  void ring(const MpiCall& c, Datatype type, Op op) const {
    const int p = place_.ranks, r = place_.rank;
    const std::size_t element = size_of(c.type), unit = c.count / std::size_t(p);
    const auto first = [&](int block) { return unit * std::size_t((block + 2 * p) % p); };
    const auto count = [&](int block) {
      return int((block + 2 * p) % p == p - 1 ? c.count - first(block) : unit);
    };
    const auto data = [&](int block) { return at(c.output, first(block) * element); };
    if (c.input != c.output) std::memcpy(c.output, c.input, c.count * element);
    const auto spare =
        std::make_unique_for_overwrite<std::byte[]>((c.count - first(p - 1)) * element);
    for (int k = 0; k < p - 1; ++k) {
      const int came = r - k - 1;
      exchange(data(r - k), count(r - k), spare.get(), count(came), type);
      mpi_.check(mpi_.call.Reduce_local(spare.get(), data(came), count(came), type, op),
                 "Reduce_local");
    }
    for (int k = 0; k < p - 1; ++k)
      exchange(data(r + 1 - k), count(r + 1 - k), data(r - k), count(r - k), type);
  }

  // Sends to the right, receives from the left.
  void exchange(const void* mine, int count, void* theirs, int expected, Datatype type) const {
    const int p = place_.ranks, left = (place_.rank + p - 1) % p, right = (place_.rank + 1) % p;
    typename A::Status status;
    mpi_.check(mpi_.call.Sendrecv(mine, count, type, right, 0, theirs, expected, type, left, 0,
                                  place_.communicator, &status),
               "Sendrecv");
  }

  static const void* at(const void* data, std::size_t offset) {
    return static_cast<const std::byte*>(data) + offset;
  }
  static void* at(void* data, std::size_t offset) { return static_cast<std::byte*>(data) + offset; }

  static int within(std::size_t elements) {
    if (elements > INT_MAX)
      fail(Fault::refusal, "mpi: a collective of ", elements,
           " elements; an MPI counts to 2147483647.");
    return int(elements);
  }

  const mpi::Binding<A>& mpi_;
  Place place_;
};

}  // namespace paceline::peers
