// BlockingOf: an MPI's own blocking collectives, over one binary interface. Included by the
// instances only.
#pragma once

#include <climits>

#include "peers/forms_of.hpp"
#include "transport/mpi/abi/world_of.hpp"

namespace paceline::peers {

template <class A>
class BlockingOf {
 public:
  explicit BlockingOf(const mpi::WorldOf<A>& world)
      : mpi_(world.binding()), communicator_(world.communicator()), rank_(world.rank()),
        ranks_(world.ranks()) {}

  void run(const MpiCall& call) const {
    if (call.count > INT_MAX)
      fail(Fault::refusal, "mpi: a collective of ", call.count,
           " elements; an MPI counts to 2147483647.");
    const auto type = call.collective == Collective::barrier ? mpi_.handle.byte : type_of(call);
    const std::size_t unit = call.count * size_of(call.type);
    if (call.form != MpiForm::blocking) {
      const auto op = has_op(call.collective) ? op_of(call) : mpi_.handle.sum;
      return FormsOf<A>(mpi_, {communicator_, rank_, ranks_}).run(call, type, op);
    }
    switch (call.collective) {
      case Collective::allreduce:
      case Collective::reduce:
      case Collective::reduce_scatter:
        return reduce(call, type, op_of(call));
      case Collective::broadcast:
        return mpi_.check(
            mpi_.call.Bcast(call.output, int(call.count), type, call.root, communicator_), "Bcast");
      case Collective::barrier:
        return mpi_.check(mpi_.call.Barrier(communicator_), "Barrier");
      default:
        return move(call, type, int(call.count), unit * std::size_t(rank_));
    }
  }

 private:
  void reduce(const MpiCall& c, typename A::Datatype type, typename A::Op op) const {
    const int n = int(c.count);
    const bool here = c.collective != Collective::reduce || c.root == rank_;
    const void* input = c.input == c.output && here ? A::in_place() : c.input;
    if (c.collective == Collective::allreduce)
      mpi_.check(mpi_.call.Allreduce(input, c.output, n, type, op, communicator_), "Allreduce");
    else if (c.collective == Collective::reduce)
      mpi_.check(mpi_.call.Reduce(input, c.output, n, type, op, c.root, communicator_), "Reduce");
    else
      mpi_.check(mpi_.call.Reduce_scatter_block(input, c.output, n, type, op, communicator_),
                 "Reduce_scatter_block");
  }

  // `own`: where the rank's own unit begins inside the longer buffer.
  void move(const MpiCall& c, typename A::Datatype type, int n, std::size_t own) const {
    const auto inside = [&](const void* piece, const void* whole) {
      return piece == whole || piece == static_cast<const char*>(whole) + own;
    };
    const bool root = c.root == rank_;
    const void* input = inside(c.input, c.output) ? A::in_place() : c.input;
    switch (c.collective) {
      case Collective::allgather:
        return mpi_.check(mpi_.call.Allgather(input, n, type, c.output, n, type, communicator_),
                          "Allgather");
      case Collective::alltoall:
        if (c.input != c.output) input = c.input;
        return mpi_.check(mpi_.call.Alltoall(input, n, type, c.output, n, type, communicator_),
                          "Alltoall");
      case Collective::gather:
        return mpi_.check(mpi_.call.Gather(root ? input : c.input, n, type, c.output, n, type,
                                           c.root, communicator_),
                          "Gather");
      case Collective::scatter: {
        void* output = root && inside(c.output, c.input) ? A::in_place() : c.output;
        return mpi_.check(
            mpi_.call.Scatter(c.input, n, type, output, n, type, c.root, communicator_), "Scatter");
      }
      default:
        fail(Fault::refusal, "mpi: no collective of MPI for ", name_of(c.collective), ".");
    }
  }

  typename A::Datatype type_of(const MpiCall& c) const {
    const auto& h = mpi_.handle;
    switch (c.type) {
      case Type::f64:
        return h.f64;
      case Type::f32:
        return h.f32;
      case Type::i8:
        return h.i8;
      case Type::u8:
        return h.u8;
      case Type::i16:
        return h.i16;
      case Type::u16:
        return h.u16;
      case Type::i32:
        return h.i32;
      case Type::u32:
        return h.u32;
      case Type::i64:
        return h.i64;
      case Type::u64:
        return h.u64;
      case Type::boolean:
        return h.boolean;
      default:
        fail(Fault::refusal, "mpi: MPI has no ", name_of(c.type),
             "; its own collectives cannot be called with it.");
    }
  }

  typename A::Op op_of(const MpiCall& c) const {
    const auto& h = mpi_.handle;
    const bool truth = c.type == Type::boolean;  // MPI has but logical operations for it
    switch (c.op) {
      case Op::sum:
        return truth ? h.logical_or : h.sum;
      case Op::max:
        return truth ? h.logical_or : h.max;
      case Op::product:
        return truth ? h.logical_and : h.product;
      case Op::min:
        return truth ? h.logical_and : h.min;
      case Op::bit_and:
        return truth ? h.logical_and : h.bit_and;
      case Op::bit_or:
        return truth ? h.logical_or : h.bit_or;
      case Op::bit_xor:
        return truth ? h.logical_xor : h.bit_xor;
      case Op::logical_and:
      case Op::logical_or:
      case Op::logical_xor:
        if (is_floating(c.type)) break;
        return c.op == Op::logical_and  ? h.logical_and
               : c.op == Op::logical_or ? h.logical_or
                                        : h.logical_xor;
      default:
        break;
    }
    fail(Fault::refusal, "mpi: MPI has no ", name_of(c.op), " of ", name_of(c.type),
         "; its own collectives cannot be called with it.");
  }

  const mpi::Binding<A>& mpi_;
  typename A::Comm communicator_;
  int rank_, ranks_;
};

template <class A>
bool run_on(MpiWorld& world, const MpiCall& call) {
  const auto* of = dynamic_cast<mpi::WorldOf<A>*>(&world);
  if (!of) return false;
  of->check_open();
  BlockingOf<A>(*of).run(call);
  return true;
}

}  // namespace paceline::peers
