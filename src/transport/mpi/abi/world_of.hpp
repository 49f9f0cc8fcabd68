// WorldOf: the ranks of a communicator over one binary interface.
#pragma once

#include <climits>
#include <functional>
#include <memory>
#include <vector>

#include "transport/mpi/abi/forms_of.hpp"
#include "transport/mpi/abi/port_of.hpp"
#include "transport/mpi/library.hpp"
#include "transport/mpi/transport.hpp"

namespace paceline::mpi {

template <class A>
class WorldOf : public MpiWorld, public std::enable_shared_from_this<WorldOf<A>> {
 public:
  // Duplicates `whole`. `library` is kept.
  WorldOf(std::shared_ptr<MpiLibrary> library, const Binding<A>& mpi, typename A::Comm whole)
      : library_(std::move(library)), mpi_(mpi) {
    mpi_.check(mpi_.call.Comm_dup(whole, &communicator_), "Comm_dup");
    mpi_.check(mpi_.call.Comm_set_errhandler(communicator_, mpi_.handle.errors_return),
               "Comm_set_errhandler");
    mpi_.check(mpi_.call.Comm_rank(communicator_, &rank_), "Comm_rank");
    mpi_.check(mpi_.call.Comm_size(communicator_, &ranks_), "Comm_size");
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  const Binding<A>& binding() const { return mpi_; }
  typename A::Comm communicator() const { return communicator_; }

  void free() override {
    if (!freed_) mpi_.call.Comm_free(&communicator_);
    freed_ = true;
  }

  std::unique_ptr<Transport> transport(const MpiConfig& config) override {
    agree(*this, config);
    return make_transport(std::make_unique<PortOf<A>>(this->shared_from_this()), config);
  }

  std::vector<std::string> allgather(const std::string& mine) override {
    const auto byte = mpi_.handle.byte;
    int length = size_of_message(mine.size());
    std::vector<int> lengths(std::size_t(ranks_), 0), at(std::size_t(ranks_), 0);
    mpi_.check(mpi_.call.Allgather(&length, int(sizeof(int)), byte, lengths.data(),
                                   int(sizeof(int)), byte, communicator_),
               "Allgather");
    std::size_t sum = 0;
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      at[r] = size_of_message(sum);
      sum += std::size_t(lengths[r]);
    }
    std::string all(std::size_t(size_of_message(sum)), '\0');
    mpi_.check(mpi_.call.Allgatherv(mine.data(), length, byte, all.data(), lengths.data(),
                                    at.data(), byte, communicator_),
               "Allgatherv");
    std::vector<std::string> said;
    for (std::size_t r = 0; r < lengths.size(); ++r)
      said.push_back(all.substr(std::size_t(at[r]), std::size_t(lengths[r])));
    return said;
  }

  void wake_peers() override {
    int found = 0;
    typename A::Status status;
    mpi_.check(mpi_.call.Iprobe(A::any_source, 0, communicator_, &found, &status), "Iprobe");
  }

  void run(const MpiCall& call) override {
    if (freed_) fail(Fault::usage, "mpi: this rank has left the world; it can make no calls.");
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
  static int size_of_message(std::size_t bytes) {
    if (bytes > INT_MAX) fail(Fault::resource, "mpi: start-up messages of ", bytes, " bytes.");
    return static_cast<int>(bytes);
  }

  void reduce(const MpiCall& c, typename A::Datatype type, typename A::Op op) {
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
  void move(const MpiCall& c, typename A::Datatype type, int n, std::size_t own) {
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

  std::shared_ptr<MpiLibrary> library_;
  Binding<A> mpi_;
  typename A::Comm communicator_ = {};
  int rank_ = 0, ranks_ = 1;
  bool freed_ = false;
};

}  // namespace paceline::mpi
