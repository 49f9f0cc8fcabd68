#include "fuzz/judge.hpp"

#include <cstring>

#include "base/str.hpp"
#include "fuzz/numbers.hpp"

namespace paceline::fuzz {
namespace {

constexpr unsigned char kEdgeByte = 0xa5, kOutputByte = 0x5a;

bool has_input(const Invocation& c, int position) {
  if (c.collective == Collective::barrier || c.collective == Collective::broadcast) return false;
  return c.collective != Collective::scatter || position == c.root;
}

bool has_output(const Invocation& c, int position) {
  if (c.collective == Collective::barrier) return false;
  const bool at_root = c.collective == Collective::reduce || c.collective == Collective::gather;
  return !at_root || position == c.root;
}

// Units sent or received, in elements.
std::size_t all_units(const Invocation& c, int ranks, int position, bool sent) {
  std::size_t sum = 0;
  for (int other = 0; other < ranks; ++other)
    sum += c.collective != Collective::alltoall ? unit_count(c, ranks, other)
           : sent ? unit_count(c, ranks, position, other) : unit_count(c, ranks, other, position);
  return sum;
}

std::size_t own_offset(const Invocation& c, int ranks, int position) {
  std::size_t at = 0;
  for (int r = 0; r < position; ++r) at += unit_count(c, ranks, r);
  return at;
}

std::uint64_t seed_of(const Invocation& c, int from, int to, std::size_t i) {
  return draw(c.data, static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to), i);
}

Reduction reduction_of(const Program& program, const Invocation& c) {
  return {c.type, c.op, c.values, size_of_group(program, c.group)};
}

// Element i of what `from` has for `to` (0 where the collective does not tell ranks apart).
std::uint64_t bits_of(const Program& program, const Invocation& c, int from, int to,
                      std::size_t i) {
  const std::uint64_t seed = seed_of(c, from, to, i);
  if (!has_op(c.collective)) return any_bits(c.type, seed);
  return number(reduction_of(program, c), from, seed,
                draw(c.data, static_cast<std::uint64_t>(to) << 40 | i, 7));
}

void put(unsigned char* to, Type type, std::uint64_t bits) {
  std::memcpy(to, &bits, size_of(type));   // little-endian, as are all targets of the tests
}
std::uint64_t get(const unsigned char* from, Type type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, size_of(type));
  return bits;
}

unsigned char* begin_of(const Invocation& c, const Extent& extent, Blocks blocks) {
  return blocks[std::size_t(extent.block)].data() + kEdge + (c.shift + extent.at) * size_of(c.type);
}

// Calls each(unit's first element, elements, other position) for all that the position sends or has
// at the end; where the collective has one unit it is the position's own.
template <class Each>
void for_units(const Invocation& c, int ranks, int position, bool sent, Each&& each) {
  const bool many = c.collective == Collective::alltoall ||
                    (sent ? c.collective == Collective::reduce_scatter ||
                                c.collective == Collective::scatter
                          : c.collective == Collective::allgather ||
                                c.collective == Collective::gather);
  if (!many) return each(0, unit_count(c, ranks, position), position);
  std::size_t at = 0;
  for (int other = 0; other < ranks; ++other) {
    const std::size_t n = c.collective != Collective::alltoall ? unit_count(c, ranks, other)
                          : sent ? unit_count(c, ranks, position, other)
                                 : unit_count(c, ranks, other, position);
    each(at, n, other);
    at += n;
  }
}

// Empty, or what is wrong with element i of the unit that came from `other`.
std::string flaw_of_element(const Program& program, const Invocation& c, int position, int other,
                            std::size_t i, std::uint64_t got) {
  if (has_op(c.collective)) {
    const int to = c.collective == Collective::reduce_scatter ? position : 0;
    std::vector<std::uint64_t> sources;
    for (int r = 0; r < size_of_group(program, c.group); ++r)
      sources.push_back(bits_of(program, c, r, to, i));
    return flaw(reduction_of(program, c), sources, got);
  }
  const bool from_root =
      c.collective == Collective::broadcast || c.collective == Collective::scatter;
  const bool told_apart =
      c.collective == Collective::alltoall || c.collective == Collective::scatter;
  const std::uint64_t wanted =
      bits_of(program, c, from_root ? c.root : other, told_apart ? position : 0, i);
  return got == wanted ? "" : str("is ", got, ", not ", wanted, " (bits)");
}

}  // namespace

std::size_t unit_count(const Invocation& c, int ranks, int a, int b) {
  if (c.counts.empty()) return c.count;
  const bool pairs = c.collective == Collective::alltoall;
  return c.counts[std::size_t(pairs ? a * ranks + b : a)];
}

Frame frame_of(const Program& program, int call, int position) {
  const Invocation& c = program.calls[std::size_t(call)];
  const int p = size_of_group(program, c.group);
  Frame frame;
  frame.output.block = 1;
  const bool in = has_input(c, position), out = has_output(c, position);
  const bool long_in = c.collective == Collective::reduce_scatter ||
                       c.collective == Collective::scatter;
  const bool long_out = c.collective == Collective::allgather ||
                        c.collective == Collective::gather;
  const bool pairs = c.collective == Collective::alltoall;
  const std::size_t own = unit_count(c, p, position);
  if (in) frame.input.count = long_in || pairs ? all_units(c, p, position, true) : own;
  if (out) frame.output.count = long_out || pairs ? all_units(c, p, position, false) : own;
  frame.elements[0] = frame.input.count;
  frame.elements[1] = frame.output.count;
  frame.in_place = in && out && (c.in_place >> position & 1);
  if (!frame.in_place) return frame;
  // MPI's reduce_scatter in place leaves the result at the front.
  const bool front = c.collective == Collective::reduce_scatter && program.dialect == Dialect::mpi;
  const std::size_t at = own_offset(c, p, position);
  frame.elements[long_in ? 1 : 0] = 0;
  frame.input.block = frame.output.block = long_in ? 0 : 1;
  if (long_in) frame.output.at = front ? 0 : at;
  if (long_out) frame.input.at = at;
  return frame;
}

std::size_t block_bytes(const Program& program, int call, const Frame& frame, int block) {
  const Invocation& c = program.calls[std::size_t(call)];
  return 2 * kEdge + (c.shift + frame.elements[block]) * size_of(c.type);
}

void fill(const Program& program, int call, int position, Blocks blocks) {
  const Invocation& c = program.calls[std::size_t(call)];
  const Frame frame = frame_of(program, call, position);
  const std::size_t size = size_of(c.type);
  for (std::size_t block : {0u, 1u}) {
    const std::size_t bytes = frame.elements[block] * size, begin = kEdge + c.shift * size;
    std::memset(blocks[block].data(), kEdgeByte, blocks[block].size());
    std::memset(blocks[block].data() + begin, kOutputByte, bytes);
  }
  const bool is_source = c.collective == Collective::broadcast && position == c.root;
  const Extent& extent = is_source ? frame.output : frame.input;
  if (!is_source && !has_input(c, position)) return;
  const bool told_apart = c.collective == Collective::alltoall ||
                          c.collective == Collective::scatter ||
                          c.collective == Collective::reduce_scatter;
  unsigned char* to = begin_of(c, extent, blocks);
  for_units(c, size_of_group(program, c.group), position, true,
            [&](std::size_t at, std::size_t n, int other) {
              for (std::size_t i = 0; i < n; ++i)
                put(to + (at + i) * size, c.type,
                    bits_of(program, c, position, told_apart ? other : 0, i));
            });
}

std::string flaw(const Program& program, int call, int position, Blocks blocks) {
  const Invocation& c = program.calls[std::size_t(call)];
  const Frame frame = frame_of(program, call, position);
  const std::size_t size = size_of(c.type);
  const int p = size_of_group(program, c.group);
  std::string first;
  const auto report = [&](const std::string& what) {
    if (!first.empty()) return;
    const int rank = program.groups[std::size_t(c.group)][std::size_t(position)];
    first = str("rank ", rank, ", ", text_of(program, call), ": ", what);
  };
  const unsigned char* out = begin_of(c, frame.output, blocks);
  if (frame.output.count > 0)
    for_units(c, p, position, false, [&](std::size_t at, std::size_t n, int other) {
      for (std::size_t i = 0; i < n && first.empty(); ++i)
        if (const std::string bad = flaw_of_element(program, c, position, other, i,
                                                    get(out + (at + i) * size, c.type));
            !bad.empty())
          report(str("element ", at + i, " ", bad));
    });
  // Everything else is as it was, but for an input that MPI and we may use as scratch.
  std::vector<unsigned char> wanted[2];
  for (std::size_t b : {0u, 1u}) wanted[b].resize(blocks[b].size());
  const Blocks before{wanted[0], wanted[1]};
  fill(program, call, position, before);
  const auto keep = [&](const Extent& extent) {
    if (extent.count > 0)
      std::memcpy(begin_of(c, extent, before), begin_of(c, extent, blocks), extent.count * size);
  };
  keep(frame.output);
  if (frame.in_place && c.collective == Collective::reduce_scatter) keep(frame.input);
  for (std::size_t b : {0u, 1u})
    for (std::size_t i = 0; i < wanted[b].size(); ++i)
      if (wanted[b][i] != blocks[b][i])
        report(str(b == 0 ? "the input" : "the output", " was touched at byte ",
                   static_cast<std::ptrdiff_t>(i) -
                       static_cast<std::ptrdiff_t>(kEdge + c.shift * size)));
  return first;
}

std::uint64_t digest(const Program& program, int call, int position, Blocks blocks) {
  const Invocation& c = program.calls[std::size_t(call)];
  const Frame frame = frame_of(program, call, position);
  const unsigned char* out = begin_of(c, frame.output, blocks);
  std::uint64_t sum = 1;
  for (std::size_t i = 0; i < frame.output.count; ++i)
    sum = draw(sum, get(out + i * size_of(c.type), c.type));
  return sum;
}

bool same_everywhere(const Invocation& c) {
  return c.collective == Collective::allreduce || c.collective == Collective::broadcast ||
         c.collective == Collective::allgather;
}

}  // namespace paceline::fuzz
