// Makes a call of the core from a paceline_call.
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <vector>

#include "edge.hpp"

namespace paceline::capi {
namespace {

// Size of the structure's first version, the least that a caller can have.
constexpr std::size_t kFirstSize = offsetof(paceline_call, reserved) + sizeof(int);
static_assert(sizeof(paceline_call) == kFirstSize, "padding at the end would hold anything");

constexpr std::size_t kMostSize = 4096;  // a larger value is uninitialised memory

// Members that a newer header appends are 0 in calls that do not use them.
void check_size(const paceline_call& given, const char* where) {
  if (given.size < kFirstSize || given.size > kMostSize)
    fail(Fault::usage, where, ": call.size is ", given.size,
         "; set it to sizeof(paceline_call), and all unused members to 0.");
  const char* bytes = reinterpret_cast<const char*>(&given);
  for (std::size_t i = sizeof(paceline_call); i < given.size; ++i)
    if (bytes[i] != 0)
      fail(Fault::refusal, where, ": call.size is ", given.size, ", and this library, version ",
           PACELINE_VERSION, ", knows only the first ", sizeof(paceline_call),
           " bytes; the others must be 0. Use the library that the header belongs to.");
}

[[gnu::noinline, gnu::cold]] void refuse(int value, int most, std::string_view where,
                                         const char* what) {
  fail(Fault::usage, where, ": ", what, " is ", value, "; it must be a paceline_", what,
       ", from 1 to ", most, ".");
}

// The core's values count from 0, C's from 1. Every call comes through here, so `where` builds its
// text only for an error.
template <class Ours, class Where>
Ours enum_from(int value, int most, const Where& where, const char* what) {
  if (value < 1 || value > most) {
    if constexpr (std::is_enum_v<Where>) refuse(value, most, name_of(where), what);
    else refuse(value, most, where, what);
  }
  return static_cast<Ours>(value - 1);
}

std::vector<std::size_t> copy(const std::size_t* counts, int ranks) {
  return counts ? std::vector<std::size_t>(counts, counts + ranks) : std::vector<std::size_t>();
}

void set_counts(Call& call, const paceline_call& given, const Communicator& communicator) {
  call.count = given.count;
  call.uneven = given.uneven != 0 || given.counts || given.counts_received;
  if (!call.uneven) return;
  const auto where = name_of(call.collective);
  call.counts = copy(given.counts, communicator.size());
  call.counts_received = copy(given.counts_received, communicator.size());
  if (given.counts_received && call.collective != Collective::alltoall)
    fail(Fault::usage, where, ": counts_received is set; only alltoall has it.");
  if (!given.counts || call.collective == Collective::alltoall) return;
  const std::size_t own = call.counts[static_cast<std::size_t>(communicator.rank())];
  if (given.count != 0 && given.count != own)
    fail(Fault::usage, where, ": count is ", given.count, ", but counts[", communicator.rank(),
         "] of this rank is ", own, "; leave count 0 or make them equal.");
  call.count = own;
}

template <class Ours, class Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<int>(ours) + 1 == static_cast<int>(theirs);
}
static_assert(same(Collective::allreduce, PACELINE_ALLREDUCE) &&
              same(Collective::broadcast, PACELINE_BROADCAST) &&
              same(Collective::reduce, PACELINE_REDUCE) &&
              same(Collective::reduce_scatter, PACELINE_REDUCE_SCATTER) &&
              same(Collective::allgather, PACELINE_ALLGATHER) &&
              same(Collective::alltoall, PACELINE_ALLTOALL) &&
              same(Collective::gather, PACELINE_GATHER) &&
              same(Collective::scatter, PACELINE_SCATTER) &&
              same(Collective::barrier, PACELINE_BARRIER) && PACELINE_BARRIER == kCollectives);
static_assert(same(Type::f64, PACELINE_F64) && same(Type::f32, PACELINE_F32) &&
              same(Type::f16, PACELINE_F16) && same(Type::bf16, PACELINE_BF16) &&
              same(Type::i8, PACELINE_I8) && same(Type::u8, PACELINE_U8) &&
              same(Type::i16, PACELINE_I16) && same(Type::u16, PACELINE_U16) &&
              same(Type::i32, PACELINE_I32) && same(Type::u32, PACELINE_U32) &&
              same(Type::i64, PACELINE_I64) && same(Type::u64, PACELINE_U64) &&
              same(Type::boolean, PACELINE_BOOL) && PACELINE_BOOL == kTypes);
static_assert(same(Op::sum, PACELINE_SUM) && same(Op::product, PACELINE_PRODUCT) &&
              same(Op::min, PACELINE_MIN) && same(Op::max, PACELINE_MAX) &&
              same(Op::average, PACELINE_AVERAGE) && same(Op::bit_and, PACELINE_BIT_AND) &&
              same(Op::bit_or, PACELINE_BIT_OR) && same(Op::bit_xor, PACELINE_BIT_XOR) &&
              same(Op::logical_and, PACELINE_LOGICAL_AND) &&
              same(Op::logical_or, PACELINE_LOGICAL_OR) &&
              same(Op::logical_xor, PACELINE_LOGICAL_XOR) && PACELINE_LOGICAL_XOR == kOps);

}  // namespace

Call call_from(const paceline_call* given, const Communicator& communicator, const char* where) {
  if (!given) fail(Fault::usage, where, ": call is null; pass the address of a paceline_call.");
  check_size(*given, where);
  Call call;
  call.collective =
      enum_from<Collective>(given->collective, kCollectives, where, "collective");
  const Collective asked = call.collective;
  if (call.collective != Collective::barrier)
    call.type = enum_from<Type>(given->type, kTypes, asked, "type");
  if (has_op(call.collective))
    call.op = enum_from<Op>(given->op, kOps, asked, "op");
  if (given->timeout_ms < 0)
    fail(Fault::usage, name_of(asked), ": timeout_ms is ", given->timeout_ms,
         "; it must be at least 1, or 0 for the time-out of all calls.");
  call.root = given->root;
  call.input = given->input;
  call.output = given->output;
  if (given->algorithm) call.algorithm = given->algorithm;
  call.cut.segments = given->segments;
  call.cut.window = given->window;
  call.cut.knobs.radix = given->radix;
  call.cut.knobs.blocks = given->blocks;
  call.timeout_ms = given->timeout_ms;
  call.tag = given->tag;
  if (call.tag != 0) call.label = str("tag ", call.tag);
  call.priority = given->priority;
  if (given->reserved != 0)
    fail(Fault::usage, name_of(asked), ": call.reserved is ", given->reserved, "; it must be 0.");
  set_counts(call, *given, communicator);
  return call;
}

}  // namespace paceline::capi
