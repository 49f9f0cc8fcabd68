#include "engine/compiled_schedule.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "arrival/notes.hpp"
#include "ir/load_store.hpp"

namespace paceline {
namespace {

constexpr std::size_t kSlotAlignment = 64;  // of scratch slots: a cache line
// Bytes of a slot of UnevenCopy: at most kLongestSlot, and less if many ranks have one for each.
constexpr std::size_t kLongestSlot = 4096, kSlotsOfAll = 256u << 10;

std::size_t uneven_slot(int ranks) {
  const std::size_t each = kSlotsOfAll / std::size_t(ranks) / kSlotAlignment * kSlotAlignment;
  return std::clamp(each, kSlotAlignment, kLongestSlot);
}

class Binder {
 public:
  Binder(CompiledSchedule& bound, const Layout& layout, const std::vector<Layout>& peers)
      : compiled_(bound), s_(*bound.schedule), layout_(layout), peers_(peers) {
    element_ = size_of(bound.type);
    const Problem& p = s_.problem;
    if (p.uneven && p.ranks > 1 && is_load_store(s_)) uneven_slot_ = uneven_slot(p.ranks);
    else if (p.one_node || compiled_.mixed) longest_ = longest_block();
    for (const Slot& slot : s_.slots) {
      std::size_t& bytes = is_staging(static_cast<int>(slots_.size())) ? compiled_.staging_bytes
                                                                       : compiled_.scratch_bytes;
      bytes = (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
      slots_.push_back(bytes);
      std::size_t most = 0;
      for (const Segment& shape : slot.shapes) most = std::max(most, extent_of(shape));
      bytes += uneven_slot_ > 0 ? uneven_slot_ : most * element_;
    }
  }

  void add(const Step& step) {
    if (uneven_slot_ > 0 && step.kind == Kind::copy && uses_slot(step)) return add_uneven(step);
    CompiledStep out;
    out.first = static_cast<std::uint32_t>(compiled_.stretches.size());
    const bool list = step.kind == Kind::send || step.kind == Kind::recv;
    if (list) {
      out.places = 1;
      for (const Segment* s = s_.begin(step); s != s_.end(step); ++s) append(out, s, 1);
    } else if (step.segments > 0) {
      out.places = step.segments;
      for (std::uint32_t i = 1; i < step.segments; ++i)
        if (s_.begin(step)[i].space == Space::incoming)
          out.incoming = static_cast<std::int32_t>(i) - 1;
      append(out, s_.begin(step), step.segments);
    }
    out.stretches = static_cast<std::uint32_t>(compiled_.stretches.size()) - out.first;
    compiled_.steps.push_back(out);
  }

 private:
  bool uses_slot(const Step& step) const {
    return std::any_of(s_.begin(step), s_.end(step),
                       [](const Segment& s) { return s.space == Space::scratch; });
  }

  // A slot has one block. Between two ranks the block's number in its unit is the message's.
  void add_uneven(const Step& step) {
    const Problem& p = s_.problem;
    const Segment &target = s_.begin(step)[0], &source = s_.begin(step)[1];
    UnevenCopy copy;
    copy.step = static_cast<std::uint32_t>(compiled_.steps.size());
    copy.sends = target.space == Space::scratch;
    const Segment &own = copy.sends ? source : target, &slot = copy.sends ? target : source;
    copy.peer = has_root(p.collective) && p.rank != p.root ? p.root : own.first / s_.cuts;
    copy.seq = own.first % s_.cuts;
    copy.slot = {Space::scratch, slot.owner, slots_[static_cast<std::size_t>(slot.slot)]};
    copy.place = place_of(own, 0);
    copy.bytes = piece(own, 0).count * element_;
    copy.is_message = copy.bytes > uneven_slot_ - kUnevenHead;
    if (copy.is_message && copy.sends && p.in_place && !has_root(p.collective)) {
      copy.aside = compiled_.aside_bytes;
      compiled_.aside_bytes += copy.bytes;
    }
    CompiledStep out;
    out.first = static_cast<std::uint32_t>(compiled_.stretches.size());
    out.places = step.segments;
    out.bytes = copy.is_message ? 0 : copy.bytes;
    compiled_.steps.push_back(out);
    compiled_.uneven_copies.push_back(copy);
  }

  bool is_staging(int slot) const { return compiled_.mixed && slot < s_.staging; }

  // Appends one stretch per block, joined with the last one if every operand continues without a
  // gap.
  void append(CompiledStep& out, const Segment* operands, std::uint32_t n) {
    for (int i = 0; i < operands[0].blocks; ++i) {
      const std::size_t count = piece(operands[0], i).count;
      if (count == 0) continue;
      out.bytes += count * element_;
      const auto at = static_cast<std::uint32_t>(compiled_.places.size());
      for (std::uint32_t k = 0; k < n; ++k) compiled_.places.push_back(place_of(operands[k], i));
      if (joins(out, at, n)) {
        compiled_.stretches.back().elements += count;
        compiled_.places.resize(at);
      } else {
        compiled_.stretches.push_back({count, at});
      }
    }
  }

  bool joins(const CompiledStep& out, std::uint32_t at, std::uint32_t n) const {
    if (compiled_.stretches.size() == out.first) return false;
    const Stretch& last = compiled_.stretches.back();
    for (std::uint32_t k = 0; k < n; ++k) {
      const Place &a = compiled_.places[last.first_place + k], &b = compiled_.places[at + k];
      if (a.space != b.space || a.owner != b.owner) return false;
      if (a.offset + last.elements * element_ != b.offset) return false;
    }
    return true;
  }

  // Returns the elements from the slot's origin to the shape's end. If peers compute each other's
  // slots, every block counts as long as the longest, so that slots are equal on all ranks.
  std::size_t extent_of(const Segment& shape) const {
    Segment whole = shape;
    whole.blocks += whole.first - whole.origin;
    whole.first = whole.origin;
    return s_.problem.one_node || is_staging(shape.slot) ? longest_ * std::size_t(whole.blocks)
                           : count_of(s_, layout_, whole);
  }

  std::size_t longest_block() const {
    std::size_t longest = 0;
    for (const std::vector<Piece>* units : {&layout_.input, &layout_.output})
      for (int block = 0; block < s_.blocks(); ++block)
        longest = std::max(longest, place(s_, *units, block).count);
    return longest;
  }

  Piece piece(const Segment& s, int i) const {
    const bool alike = s.owner == kOwn || is_staging(s.slot);
    const Layout& layout = alike ? layout_ : peers_[static_cast<std::size_t>(s.owner)];
    return place(s_, s.like == Space::input ? layout.input : layout.output, s.first + i);
  }

  Place place_of(const Segment& s, int i) const {
    const bool staging = s.space == Space::scratch && is_staging(s.slot);
    if (s.owner != kOwn && !staging && peers_.empty())
      fail(Fault::refusal, "a step of ", s_.algorithm, " touches memory of rank ", s.owner,
           ", which it does not reach; allocate the buffers with paceline.empty.");
    if (s.space == Space::incoming) return {Space::incoming, kOwn, incoming_offset(s, i)};
    if (s.space != Space::scratch) return {s.space, s.owner, piece(s, i).offset * element_};
    Segment before = s;  // what lies in the slot in front of this block
    before.blocks = s.first + i - s.origin;
    before.first = s.origin;
    return {Space::scratch, staging && s.owner == kOwn ? s_.problem.rank : s.owner,
            slots_[static_cast<std::size_t>(s.slot)] + count_of(s_, layout_, before) * element_};
  }

  std::size_t incoming_offset(const Segment& s, int i) const {
    Segment before = s;
    before.blocks = i;
    return count_of(s_, layout_, before) * element_;
  }

  CompiledSchedule& compiled_;
  const Schedule& s_;
  const Layout& layout_;
  const std::vector<Layout>& peers_;
  std::size_t element_ = 1;
  std::size_t longest_ = 0;   // longest block in elements, if ranks share memory
  std::size_t uneven_slot_ = 0;   // bytes of a slot of UnevenCopy; 0: there are none
  std::vector<std::size_t> slots_;
};

// True if its steps reach staging buffers of other ranks; a rank alone on its node has only its own
// scratch.
bool has_mates(const Schedule& schedule) {
  const Problem& p = schedule.problem;
  return schedule.staging > 0 &&
         std::count(p.nodes.begin(), p.nodes.end(), p.nodes[std::size_t(p.rank)]) > 1;
}

}  // namespace

CompiledSchedule resolve(std::shared_ptr<const Schedule> schedule, const Layout& layout, Type type,
                         Op op,
              const std::vector<Layout>& peers) {
  CompiledSchedule bound;
  bound.schedule = std::move(schedule);
  bound.type = type;
  const Problem& problem = bound.schedule->problem;
  if (has_op(problem.collective)) {
    bound.reduce = reduce_kernel(type, op);
    bound.reduce_copy = reduce_copy_kernel(type, op);
  }
  if (op == Op::average && has_op(problem.collective)) bound.divisor = problem.ranks;
  bound.mixed = has_mates(*bound.schedule);
  Binder binder(bound, layout, peers);
  for (const Step& step : bound.schedule->steps) binder.add(step);
  for (const Piece& unit : layout.output)
    if (bound.schedule->single_copy) bound.message_bytes += unit.count * size_of(type);
  return bound;
}

void add_notes(CompiledSchedule& bound) {
  bound.has_notes = true;
  if (!bound.mixed) return;
  bound.notes_at = (bound.staging_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  bound.staging_bytes = bound.notes_at + Notes::kShownBytes;
}

std::size_t most_staging_for_notes() { return kSlotAlignment - 1 + Notes::kShownBytes; }

void leave_out_combining(CompiledSchedule& bound, bool load_store) {
  const Problem& problem = bound.schedule->problem;
  if (!has_op(problem.collective))
    fail(Fault::refusal, name_of(problem.collective), ": combines nothing that could be left out.");
  if (load_store)
    fail(Fault::refusal, name_of(problem.collective), "/", bound.schedule->algorithm,
         ": combines straight from its peers' memory; without that nothing is transferred. Name an "
         "algorithm that sends, such as ring.");
  bound.reduce = [](void*, const void* const*, int, std::size_t) {};
  bound.divisor = 1;
}

}  // namespace paceline
