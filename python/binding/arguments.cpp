#include "arguments.hpp"

#include <nanobind/stl/string.h>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/options.hpp"
#include "runtime/fingerprint.hpp"

namespace nb = nanobind;

namespace paceline::binding {
namespace {

// The lengths of one call are checked against these.
struct Rules {
  std::string_view call;
  std::size_t ranks;
  std::size_t rank;
};

const char* plural(std::size_t count) { return count == 1 ? "" : "s"; }

std::size_t size_from(nb::handle number, const Rules& rules, const char* what, std::size_t index) {
  const auto fault = [&](const char* rule) {
    fail(Fault::usage, rules.call, ": ", what, "[", index, "] is ", nb::repr(number).c_str(), "; ",
         rule, ". Pass the number of elements for each rank.");
  };
  if (!PyIndex_Check(number.ptr())) fault("it must be a whole number");
  const Py_ssize_t value = PyNumber_AsSsize_t(number.ptr(), nullptr);  // clips what is too large
  if (value < 0) fault("a count cannot be negative");
  if (value == std::numeric_limits<Py_ssize_t>::max()) fault("a count must fit into memory");
  return static_cast<std::size_t>(value);
}

std::vector<std::size_t> counts_from(nb::handle sequence, const Rules& rules, const char* what) {
  const nb::object fast = nb::steal(PySequence_Fast(sequence.ptr(), ""));
  if (!fast.is_valid()) {
    PyErr_Clear();
    fail(Fault::usage, rules.call, ": ", what, " is ", nb::repr(sequence).c_str(),
         "; it must be a sequence with one count per rank.");
  }
  const auto size = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(fast.ptr()));
  if (size != rules.ranks)
    fail(Fault::usage, rules.call, ": ", what, " has ", size, " count", plural(size),
         "; it must have one for each of the ", rules.ranks, " rank", plural(rules.ranks),
         " of the communicator.");
  std::vector<std::size_t> counts(size);
  std::size_t total = 0;
  for (std::size_t i = 0; i < size; ++i) {
    counts[i] =
        size_from(PySequence_Fast_GET_ITEM(fast.ptr(), static_cast<Py_ssize_t>(i)), rules, what, i);
    if (counts[i] > std::numeric_limits<std::size_t>::max() / 16 - total)
      fail(Fault::usage, rules.call, ": the sum of ", what,
           " is larger than any memory. Pass elements, not bytes.");
    total += counts[i];
  }
  return counts;
}

std::size_t sum(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

void must_be_given(const Buffer& buffer, const Where& where) {
  if (!buffer.given())
    fail(Fault::usage, where.call, ": ", where.argument,
         " is None; this rank needs it. Pass an array.");
}

void must_be_writable(const Buffer& buffer, const Where& where) {
  if (buffer.read_only())
    fail(Fault::usage, where.call, ": ", where.argument,
         " is read-only; the result is written into it. Pass a writable array.");
}

void must_have(const Buffer& buffer, const Where& where, std::size_t count,
               const std::string& because) {
  if (buffer.count() != count)
    fail(Fault::usage, where.call, ": ", where.argument, " has ", buffer.count(), " element",
         plural(buffer.count()), "; it must have ", count, " (", because, ").");
}

// Required length of the longer buffer of a call with pieces, and the reason.
struct Total {
  std::size_t count;
  std::string because;
};

Total total_of(const Rules& rules, const std::vector<std::size_t>& counts, std::size_t unit) {
  if (!counts.empty()) return {sum(counts), "the sum of counts"};
  if (unit > std::numeric_limits<std::size_t>::max() / 16 / rules.ranks)
    fail(Fault::usage, rules.call, ": ", rules.ranks, " pieces of ", unit,
         " elements are larger than any memory.");
  return {unit * rules.ranks, str(rules.ranks, " rank", plural(rules.ranks), " x ", unit)};
}

// The own piece: `whole` divided by the ranks, or what counts say. Its buffer, if given, must fit.
void divide_whole(Call& call, const Rules& rules, const Buffer& whole, const Where& where) {
  if (!call.counts.empty()) {
    must_have(whole, where, sum(call.counts), "the sum of counts");
    call.count = call.counts[rules.rank];
    return;
  }
  if (whole.count() % rules.ranks != 0)
    fail(Fault::usage, rules.call, ": ", where.argument, " has ", whole.count(),
         " elements, which ", rules.ranks,
         " ranks cannot share evenly. Pass counts, one per rank, or a length that they divide.");
  call.count = whole.count() / rules.ranks;
}

// reduce_scatter, scatter: a whole at the input, a piece at the output.
void take_apart(Call& call, const Rules& rules, const Kept& kept, bool has_whole) {
  const Where input{rules.call, "x"}, output{rules.call, "out"};
  must_be_given(kept.output, output);
  call.count = kept.output.count();
  if (!has_whole) return;
  must_be_given(kept.input, input);
  divide_whole(call, rules, kept.input, input);
  must_have(kept.output, output, call.count, "the piece of this rank");
}

// allgather, gather: a piece at the input, a whole at the output.
void put_together(Call& call, const Rules& rules, const Kept& kept, bool has_whole) {
  const Where input{rules.call, "x"}, output{rules.call, "out"};
  must_be_given(kept.input, input);
  call.count = kept.input.count();
  if (!has_whole) return;
  if (!call.counts.empty())
    must_have(kept.input, input, call.counts[rules.rank], "the count of this rank");
  must_be_given(kept.output, output);
  const Total total = total_of(rules, call.counts, call.count);
  must_have(kept.output, output, total.count, total.because);
}

void exchange(Call& call, const Rules& rules, const Kept& kept) {
  const Where input{rules.call, "x"}, output{rules.call, "out"};
  must_be_given(kept.input, input);
  must_be_given(kept.output, output);
  divide_whole(call, rules, kept.input, input);
  if (call.counts.empty()) {
    must_have(kept.output, output, kept.input.count(), "as many as x");
  } else {
    must_have(kept.output, output, sum(call.counts_received), "the sum of counts_received");
  }
}

// Ranks other than the root of a gather or scatter learn from counts only that the pieces differ.
void set_counts(Call& call, const Rules& rules, const Arguments& arguments) {
  call.uneven = !arguments.counts.is_none();
  const bool rooted =
      call.collective == Collective::gather || call.collective == Collective::scatter;
  if (!call.uneven || (rooted && static_cast<std::size_t>(call.root) != rules.rank)) return;
  call.counts = counts_from(arguments.counts, rules, "counts");
  if (call.collective == Collective::alltoall)
    call.counts_received = counts_from(arguments.received, rules, "counts_received");
}

void measure(Call& call, const Rules& rules, const Kept& kept) {
  const Where input{rules.call, "x"}, output{rules.call, "out"};
  const bool is_root = static_cast<std::size_t>(call.root) == rules.rank;
  switch (call.collective) {
    case Collective::barrier: return;
    case Collective::broadcast:
      must_be_given(kept.output, input);
      call.count = kept.output.count();
      return;
    case Collective::allreduce:
    case Collective::reduce:
      must_be_given(kept.input, input);
      call.count = kept.input.count();
      if (call.collective == Collective::reduce && !is_root) return;
      must_be_given(kept.output, output);
      must_have(kept.output, output, call.count, "as many as x");
      return;
    case Collective::reduce_scatter: return take_apart(call, rules, kept, true);
    case Collective::scatter: return take_apart(call, rules, kept, is_root);
    case Collective::allgather: return put_together(call, rules, kept, true);
    case Collective::gather: return put_together(call, rules, kept, is_root);
    case Collective::alltoall: return exchange(call, rules, kept);
  }
}

int number_from(nb::handle number, std::string_view call, const char* name,
                const char* also = "") {
  if (number.is_none()) return 0;
  int value = -1;
  if (!nb::try_cast(number, value, false) || value < 0)
    fail(Fault::usage, call, ": ", name, " is ", nb::repr(number).c_str(),
         "; it must be a whole number, at least 1, ", also,
         "or None to leave the choice to Paceline.");
  return value;
}

int root_from(nb::handle root, std::string_view call, int ranks) {
  int value = -1;
  if (!PyIndex_Check(root.ptr()) || !nb::try_cast(root, value) || value < 0 || value >= ranks)
    fail(Fault::usage, call, ": root is ", nb::repr(root).c_str(),
         "; it must be a rank, from 0 to ", ranks - 1, ".");
  return value;
}

// A number is the tag itself, a name is hashed.
void set_tag(Call& call, nb::handle tag, std::string_view name) {
  if (tag.is_none()) return;
  if (nb::isinstance<nb::str>(tag)) {
    call.label = nb::cast<std::string>(tag);
    call.tag = tag_of(call.label);
    return;
  }
  if (!nb::try_cast(tag, call.tag, false) || call.tag == 0)
    fail(Fault::usage, name, ": tag is ", nb::repr(tag).c_str(),
         "; it must be a name, a whole number from 1 to 2^64 - 1, or None.");
  call.label = str("tag ", call.tag);
}

void set_knobs(Call& call, nb::handle knobs, std::string_view name) {
  if (knobs.is_none()) return;
  const auto given = nb::cast<nb::tuple>(knobs);
  const nb::handle algorithm = given[0];
  if (!algorithm.is_none()) {
    if (!nb::try_cast(algorithm, call.algorithm, false))
      fail(Fault::usage, name, ": algorithm is ", nb::repr(algorithm).c_str(),
           "; it must be a name or None.");
    if (call.algorithm == "auto") call.algorithm.clear();
  }
  call.cut = cut_from(given[1], name);
  call.cut.window = number_from(given[2], name, "window");
  call.cut.knobs.radix = number_from(given[3], name, "radix");
  call.cut.knobs.blocks = number_from(given[4], name, "blocks");
  set_tag(call, given[5], name);
  call.timeout_ms = number_from(given[7], name, "timeout_ms");
  if (!given[6].is_none() && !nb::try_cast(given[6], call.priority, false))
    fail(Fault::usage, name, ": priority is ", nb::repr(given[6]).c_str(),
         "; it must be a whole number from ", kLeastUrgent, " to ", kMostUrgent,
         ", or None for 0.");
}

void set_type(Call& call, const Rules& rules, const Kept& kept) {
  const Buffer& first = kept.input.given() ? kept.input : kept.output;
  call.type = first.type();
  if (kept.input.given() && kept.output.given() && kept.input.type() != kept.output.type())
    fail(Fault::usage, rules.call, ": x has type ", name_of(kept.input.type()), " and out ",
         name_of(kept.output.type()), "; they must be equal. Convert one of them.");
}

const char* article(const Buffer& buffer) {
  return buffer.device() == kOnHost ? "the host" : "a device";
}

void must_be_together(const Rules& rules, const Kept& kept) {
  const Buffer &x = kept.input, &out = kept.output;
  if (!x.given() || !out.given() || x.device() == out.device()) return;
  if (x.device() == kOnHost || out.device() == kOnHost)
    fail(Fault::usage, rules.call, ": x is in memory of ", article(x), " and out of ", article(out),
         "; both must be in one. Copy one of them there.");
  fail(Fault::usage, rules.call, ": x is on device ", x.device(), " and out on device ",
       out.device(), "; both must be on one. Copy one of them there.");
}

}  // namespace

Cut cut_from(nb::handle segments, std::string_view call) {
  if (!nb::isinstance<nb::str>(segments))
    return {.segments = number_from(segments, call, "segments", "the size of one like '4MiB', ")};
  const std::string text =
      checked(row_of(Option::segments), nb::cast<std::string>(segments), str(call, ": segments"));
  const Pieces pieces = pieces_from(text);
  return {.segments = pieces.number, .segment_bytes = pieces.bytes};
}

Call call_from(const Arguments& arguments, Seat seat, Kept& kept) {
  Call call;
  call.collective = collective_from(arguments.collective);
  const std::string_view name = name_of(call.collective);
  const Rules rules{name, static_cast<std::size_t>(seat.ranks),
                    static_cast<std::size_t>(seat.rank)};

  if (has_root(call.collective)) call.root = root_from(arguments.root, name, seat.ranks);
  if (has_op(call.collective)) call.op = op_from(nb::str(arguments.op).c_str());
  set_knobs(call, arguments.knobs, name);
  set_counts(call, rules, arguments);

  const bool in_place = arguments.input.ptr() == arguments.output.ptr();
  const bool is_broadcast = call.collective == Collective::broadcast;
  if (!in_place) kept.input = Buffer(arguments.input, {name, "x"}, seat.accepts);
  kept.output =
      Buffer(arguments.output, {name, in_place || is_broadcast ? "x" : "out"}, seat.accepts);
  const bool sends_only = is_broadcast && call.root == seat.rank;
  if (kept.output.given() && !sends_only)
    must_be_writable(kept.output, {name, in_place || is_broadcast ? "x" : "out"});
  if (in_place && kept.output.given()) kept.input = kept.output.alias();

  must_be_together(rules, kept);
  set_type(call, rules, kept);
  measure(call, rules, kept);
  call.input = is_broadcast ? nullptr : kept.input.data();
  call.output = kept.output.data();
  return call;
}

}  // namespace paceline::binding
