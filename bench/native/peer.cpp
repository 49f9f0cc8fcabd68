#include "peer.hpp"

#include <algorithm>
#include <span>

#include "forms_of.hpp"
#include "predefined.hpp"
#include "transport/mpi/abi/standard.hpp"

namespace paceline::peers {
namespace {

const Predefined* row_of(std::span<const Predefined> rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Predefined::name);
  return found == rows.end() ? nullptr : &*found;
}

// MPI has only logical operations for truth values.
std::string_view on_truth(std::string_view op) {
  if (op == "sum" || op == "max" || op == "bit_or") return "logical_or";
  if (op == "product" || op == "min" || op == "bit_and") return "logical_and";
  return op == "bit_xor" ? "logical_xor" : op;
}

bool has_op(std::string_view collective) {
  return collective == "allreduce" || collective == "reduce" || collective == "reduce_scatter";
}

// An MPI's own collectives, over one binary interface.
template <class A>
class PeerOf : public Peer {
 public:
  using Datatype = typename A::Datatype;
  using Op = typename A::Op;

  PeerOf(const std::string& path, const void* communicator)
      : library_(path),
        ranks_{Functions<A>::load(library_), *static_cast<const typename A::Comm*>(communicator),
               handle_of<A, typename A::Request>(kNoRequest, library_)} {
    ranks_.call.check(ranks_.call.Comm_rank(ranks_.communicator, &ranks_.rank), "Comm_rank");
    ranks_.call.check(ranks_.call.Comm_size(ranks_.communicator, &ranks_.size), "Comm_size");
  }

  std::function<void()> prepared(const MpiCall& c) const override {
    const int n = within(c.count);
    const auto type = type_of(c.type);
    const auto op = has_op(c.collective) ? op_of(c) : Op{};
    if (c.form != Form::blocking) return FormsOf<A>(ranks_, c, type, op).prepared();
    if (has_op(c.collective)) return reducing(c, type, op);
    const Functions<A>& f = ranks_.call;
    const auto comm = ranks_.communicator;
    if (c.collective == "broadcast")
      return [=, &f] { f.check(f.Bcast(c.output, n, type, c.root, comm), "Bcast"); };
    if (c.collective == "barrier") return [=, &f] { f.check(f.Barrier(comm), "Barrier"); };
    return moving(c, type);
  }

 private:
  std::function<void()> reducing(const MpiCall& c, Datatype type, Op op) const {
    const int n = within(c.count);
    const bool here = c.collective != "reduce" || c.root == ranks_.rank;
    const void* input = c.input == c.output && here ? A::in_place() : c.input;
    const Functions<A>& f = ranks_.call;
    const auto comm = ranks_.communicator;
    void* output = c.output;
    if (c.collective == "allreduce")
      return [=, &f] { f.check(f.Allreduce(input, output, n, type, op, comm), "Allreduce"); };
    if (c.collective == "reduce")
      return [=, &f, root = c.root] {
        f.check(f.Reduce(input, output, n, type, op, root, comm), "Reduce");
      };
    return [=, &f] {
      f.check(f.Reduce_scatter_block(input, output, n, type, op, comm), "Reduce_scatter_block");
    };
  }

  // In place, the rank's own unit lies inside the longer buffer.
  std::function<void()> moving(const MpiCall& c, Datatype type) const {
    const int n = within(c.count), root = c.root;
    const std::size_t own = c.count * c.element * std::size_t(ranks_.rank);
    const auto inside = [&](const void* piece, const void* whole) {
      return piece == whole || piece == at(whole, own);
    };
    const bool is_root = root == ranks_.rank;
    const void* given = inside(c.input, c.output) ? A::in_place() : c.input;
    const Functions<A>& f = ranks_.call;
    const auto comm = ranks_.communicator;
    const void* input = c.input;
    void* output = c.output;
    if (c.collective == "allgather")
      return [=, &f] { f.check(f.Allgather(given, n, type, output, n, type, comm), "Allgather"); };
    if (c.collective == "alltoall") {
      const void* from = input == output ? A::in_place() : input;
      return [=, &f] { f.check(f.Alltoall(from, n, type, output, n, type, comm), "Alltoall"); };
    }
    if (c.collective == "gather")
      return [=, &f, from = is_root ? given : input] {
        f.check(f.Gather(from, n, type, output, n, type, root, comm), "Gather");
      };
    if (c.collective == "scatter")
      return [=, &f, to = is_root && inside(output, input) ? A::in_place() : output] {
        f.check(f.Scatter(input, n, type, to, n, type, root, comm), "Scatter");
      };
    fail(Fault::refusal, "mpi: no collective of MPI for ", c.collective, ".");
  }

  Datatype type_of(std::string_view name) const {
    if (const Predefined* row = row_of(kTypes, name))
      return handle_of<A, Datatype>(*row, library_);
    fail(Fault::refusal, "mpi: MPI has no ", name,
         "; its own collectives cannot be called with it.");
  }

  Op op_of(const MpiCall& c) const {
    const std::string_view name = c.type == "bool" ? on_truth(c.op) : std::string_view(c.op);
    const bool refused = c.type.starts_with("float") && name.starts_with("logical");
    const Predefined* row = refused ? nullptr : row_of(kOps, name);
    if (row) return handle_of<A, Op>(*row, library_);
    fail(Fault::refusal, "mpi: MPI has no ", c.op, " of ", c.type,
         "; its own collectives cannot be called with it.");
  }

  Loaded library_;
  RanksOf<A> ranks_;
};

}  // namespace

Form form_from(std::string_view name) {
  if (name == "blocking") return Form::blocking;
  if (name == "concurrent") return Form::concurrent;
  if (name == "sendrecv_ring") return Form::sendrecv_ring;
  fail(Fault::usage, "mpi: '", name, "' is no form of a call; use blocking, concurrent or ",
       "sendrecv_ring.");
}

std::unique_ptr<Peer> Peer::open(std::string_view abi, const std::string& path,
                                 const void* communicator) {
  if (abi == mpi::Mpich::name) return std::make_unique<PeerOf<mpi::Mpich>>(path, communicator);
  if (abi == mpi::OpenMpi::name) return std::make_unique<PeerOf<mpi::OpenMpi>>(path, communicator);
  if (abi == mpi::Standard::name)
    return std::make_unique<PeerOf<mpi::Standard>>(path, communicator);
  fail(Fault::refusal, "mpi: the collectives of an MPI whose interface is '", abi,
       "' cannot be called from here.");
}

}  // namespace paceline::peers
