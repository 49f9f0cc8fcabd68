#include "transport/mpi/streams.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/str.hpp"

namespace paceline::mpi {
namespace {

constexpr std::uint32_t kFirstTag = 1;

// Address of bytes [offset, offset + bytes) of the list if they lie in one piece, else null.
std::byte* inside(const std::vector<Part>& parts, std::size_t offset, std::size_t bytes) {
  for (const Part& part : parts) {
    if (offset < part.bytes) return offset + bytes <= part.bytes ? part.data + offset : nullptr;
    offset -= part.bytes;
  }
  return nullptr;
}

}  // namespace

std::uint32_t Tags::draw() {
  if (used_.size() > last_ - first_) return 0;
  while (std::find(used_.begin(), used_.end(), next_) != used_.end())
    next_ = next_ == last_ ? first_ : next_ + 1;
  used_.push_back(next_);
  return std::exchange(next_, next_ == last_ ? first_ : next_ + 1);
}

void Tags::give_back(std::uint32_t tag) { std::erase(used_, tag); }

Streams::Streams(MpiPort& port, std::size_t chunk_bytes, Failed failed)
    : port_(port),
      chunk_bytes_(chunk_bytes),
      least_bytes_(chunk_bytes),
      pool_(std::max(chunk_bytes, kLongestChunk)),
      failed_(std::move(failed)),
      tags_(std::size_t(port.ranks()),
            Tags(kFirstTag, std::uint32_t(std::max(port.tag_limit(), 1)))),
      moved_(std::size_t(port.ranks())) {}

void Streams::expect_rate(double bytes_per_s) {
  const double bytes = std::min(bytes_per_s * kChunkS, double(pool_.bytes()));
  chunk_bytes_ = std::max(least_bytes_, std::size_t(bytes) / kCacheLine * kCacheLine);
}

bool Streams::is_at_work(const Stream& s) const {
  const Order& last = moved_[std::size_t(s.peer)];
  return last.context == s.order.context && last.number == s.order.number;
}

void Streams::has_moved(const Stream& s) { moved_[std::size_t(s.peer)] = s.order; }

// Address in the caller's buffer if a chunk may move there without a copy, else null.
std::byte* Streams::unstaged(const Stream& s, std::uint32_t chunk) const {
  if (s.transfer->consume || (chunk < kProbe && !is_at_work(s))) return nullptr;
  return inside(s.transfer->parts, s.chunks.begin(chunk), s.chunks.length(chunk));
}

void Streams::send(Transfer& t, std::uint32_t tag) {
  const Order order = order_of(t, sends_++);
  const auto is_behind = [&](const Stream& s) { return goes_before(order, s.order); };
  const auto at = out_.insert(std::find_if(out_.begin(), out_.end(), is_behind),
                              {&t, t.peer, tag, {t.bytes, chunks_of(t.bytes)}});
  at->order = order;
  start_sends(*at);
}

void Streams::receive(Transfer* t, int peer, std::uint32_t tag, std::size_t bytes,
                      std::uint32_t chunks, const Order& order, bool waits) {
  const Chunks cut(bytes, chunks);
  if (t && t->bytes == bytes && cut.most <= pool_.bytes()) {
    in_.push_back({t, peer, tag, cut});
    in_.back().order = order;
    in_.back().waits = waits;
    start_receives(in_.back());
  } else {
    keep({.peer = peer, .tag = tag, .chunks = chunks});
  }
}

// True if the next chunk may be sent. Streams to one peer follow each other, in the order of
// goes_before(): side by side they would share the link, and the first would arrive as late as the
// last. A stream that its receiver wants, or has begun to receive, does not wait for earlier ones
// that have not begun; if one of those begins meanwhile, chunks under way end first.
bool Streams::is_due(const Stream& s) const {
  const bool overtakes = s.wanted || s.finished > 0;
  std::uint32_t under_way = 0;   // of others, to the same peer
  bool is_before = true;
  for (const Stream& other : out_) {
    if (&other == &s) {
      is_before = false;
      continue;
    }
    if (other.peer != s.peer || other.failed) continue;
    const bool counts = other.finished > 0 || (is_before && !overtakes);
    if (is_before && counts && other.started < other.chunks.count) return false;
    if (counts) under_way += other.started - other.finished;
  }
  return under_way + s.started - s.finished < kWindow;
}

void Streams::want(int peer, std::uint32_t tag) {
  for (Stream& s : out_)
    if (s.peer == peer && s.tag == tag) {
      s.wanted = true;
      start_sends(s);
    }
}

std::vector<Streams::HeldUp> Streams::release(const FindBefore& before) {
  std::vector<HeldUp> wanted;
  if (!may_be_held_up_) return wanted;
  may_be_held_up_ = false;
  const double now_s = port_.now_s();
  for (Stream& s : in_) {
    if (s.finished > 0 || s.wanted) continue;
    const Peer::Before found = before(s.peer, s.order);
    if (found == Peer::Before::nobody) s.since_s = 0;
    else if (s.since_s == 0) s.since_s = now_s;
    const bool is_late = s.since_s > 0 && now_s - s.since_s > kHeldUpS;
    if (found == Peer::Before::unknown || is_late) {
      s.wanted = true;
      wanted.push_back({s.peer, s.tag});
    }
    s.waits = s.waits && found == Peer::Before::older && !is_late;
    start_receives(s);
    may_be_held_up_ = may_be_held_up_ || (s.since_s > 0 && !s.wanted);
  }
  return wanted;
}

void Streams::start_sends(Stream& s) {
  for (; s.may_start() && is_due(s); ++s.started) {
    Chunk& chunk = s.at(s.started);
    const std::size_t bytes = s.chunks.length(s.started);
    const std::byte* data = unstaged(s, s.started);
    if (!data) {
      chunk.staged = pool_.take();
      copy_out(s.transfer->parts, s.chunks.begin(s.started), chunk.staged.get(), bytes);
      data = chunk.staged.get();
    }
    chunk.message = port_.send(MpiPort::Mode::matched, s.peer, int(s.tag), data, bytes);
  }
}

void Streams::start_receives(Stream& s) {
  if (s.waits) return;
  for (; s.may_start(); ++s.started) {
    Chunk& chunk = s.at(s.started);
    std::byte* data = unstaged(s, s.started);
    std::size_t capacity = s.chunks.length(s.started);
    if (!data) {
      chunk.staged = pool_.take();
      data = chunk.staged.get();
      capacity = pool_.bytes();  // if the stream is dropped, an earlier chunk may come here
    }
    chunk.message = port_.recv(s.peer, int(s.tag), data, capacity);
  }
}

// True if a chunk ended as it should. If not, its stream never completes: its peer counts as lost.
bool Streams::check(Stream& s, const Ended& how, std::size_t bytes) {
  if (how.error)
    failed_(s.peer, port_.text_of(how.error));
  else if (how.bytes != bytes)
    failed_(s.peer, str("a chunk of ", bytes, " bytes came with ", how.bytes));
  s.failed |= how.error || how.bytes != bytes;
  return !s.failed;
}

bool Streams::advance_send(Stream& s) {
  const std::uint32_t before = s.finished;
  Ended how;
  while (s.finished < s.started && port_.ended(s.at(s.finished).message, how)) {
    if (check(s, how, 0)) has_moved(s);   // a send ends with no bytes received
    pool_.give(std::move(s.at(s.finished).staged));
    ++s.finished;
  }
  if (s.is_over()) {
    tags_[std::size_t(s.peer)].give_back(s.tag);
    if (!s.failed) s.transfer->done.store(true, std::memory_order_release);
  }
  return s.finished != before;
}

bool Streams::advance_receive(Stream& s) {
  const std::uint32_t before = s.finished;
  Ended how;
  while (s.finished < s.started && port_.ended(s.at(s.finished).message, how)) {
    Chunk& chunk = s.at(s.finished);
    const std::size_t bytes = s.chunks.length(s.finished);
    if (check(s, how, bytes)) {
      has_moved(s);
      if (chunk.staged)
        deliver(*s.transfer, chunk.staged.get(), bytes);
      else
        s.transfer->moved += bytes;
    }
    pool_.give(std::move(chunk.staged));
    ++s.finished;
  }
  start_receives(s);
  if (s.is_over() && !s.failed) s.transfer->done.store(true, std::memory_order_release);
  return s.finished != before;
}

void Streams::post(Leftover& leftover) {
  while (!leftover.sends && !closed_ && leftover.posted.size() < kWindow &&
         leftover.received + leftover.posted.size() < leftover.chunks) {
    Buffer staged = pool_.take();
    const int message = port_.recv(leftover.peer, int(leftover.tag), staged.get(), pool_.bytes());
    leftover.posted.push_back({message, std::move(staged)});
  }
}

// Its receives are posted at once: their sender may wait for them while this rank waits elsewhere.
void Streams::keep(Leftover leftover) {
  leftovers_.push_back(std::move(leftover));
  post(leftovers_.back());
}

bool Streams::advance(Leftover& leftover) {
  Ended how;
  std::erase_if(leftover.posted, [&](Chunk& chunk) {
    if (!port_.ended(chunk.message, how)) return false;
    if (!how.cancelled) ++leftover.received;
    pool_.give(std::move(chunk.staged));
    return true;
  });
  if (!leftover.sends && leftover.received >= leftover.chunks)
    for (const Chunk& chunk : leftover.posted) port_.cancel(chunk.message);
  post(leftover);
  if (!leftover.posted.empty()) return false;
  if (leftover.sends) tags_[std::size_t(leftover.peer)].give_back(leftover.tag);
  return true;
}

// Waits until MPI has let go of chunks in a caller's buffer, since their peer is at work on them.
// Returns the number that was not cancelled. Goes on receiving, since peers may wait for this rank
// meanwhile. Messages that are given up together share the time: until then this rank answers no
// peer.
std::uint32_t Streams::settle(std::vector<int>& messages, int peer, double most_s) {
  std::uint32_t moved = 0;
  if (settles_since_s_ == 0) settles_since_s_ = port_.now_s();
  const double give_up_s = settles_since_s_ + most_s;
  while (true) {
    std::vector<int> asked = messages;
    pending_receives(asked);
    port_.poll(asked);
    progress_receives();
    Ended how;
    std::erase_if(messages, [&](int message) {
      const bool ended = port_.ended(message, how);
      if (ended && !how.cancelled) ++moved;
      return ended;
    });
    if (messages.empty()) return moved;
    if (port_.now_s() < give_up_s) continue;
    for (int message : messages) port_.abandon(message, nullptr);
    if (most_s < kLetGoS) return moved;  // it has left
    std::fprintf(stderr,
                 "paceline: mpi: rank %d stopped in the middle of a message that rank %d has given "
                 "up. MPI may still use the buffer of that call: leave it alone.\n",
                 peer, port_.rank());
    return moved;
  }
}

Streams::Leftover Streams::leftover_of(Stream s, bool sends, double most_s) {
  Leftover leftover{sends, s.peer, s.tag, s.chunks.count, s.finished};
  std::vector<int> mine;
  for (std::uint32_t i = s.finished; i < s.started; ++i) {
    Chunk& chunk = s.at(i);
    if (chunk.staged) {
      leftover.posted.push_back(std::move(chunk));
      continue;
    }
    if (!sends) port_.cancel(chunk.message);
    mine.push_back(chunk.message);
  }
  leftover.received += settle(mine, s.peer, most_s);
  return leftover;
}

Streams::Stream Streams::take(std::vector<Stream>& from, std::vector<Stream>::iterator at) {
  Stream taken = std::move(*at);
  from.erase(at);
  return taken;
}

std::optional<Streams::Withdrawn> Streams::drop(const Transfer& t, double most_s) {
  const auto is = [&](const Stream& s) { return s.transfer == &t; };
  if (const auto at = std::find_if(in_.begin(), in_.end(), is); at != in_.end())
    keep(leftover_of(take(in_, at), false));
  const auto at = std::find_if(out_.begin(), out_.end(), is);
  if (at == out_.end()) return {};
  const Withdrawn withdrawn{at->tag, at->started};
  keep(leftover_of(take(out_, at), true, most_s));
  return withdrawn;
}

void Streams::withdraw(int peer, std::uint32_t tag, std::uint32_t chunks) {
  const auto is = [&](const auto& s) { return s.peer == peer && s.tag == tag; };
  const auto at = std::find_if(in_.begin(), in_.end(), is);
  if (at != in_.end() && chunks < at->chunks.count) {  // else all of it comes
    Leftover leftover = leftover_of(take(in_, at), false);
    leftover.chunks = chunks;
    keep(std::move(leftover));
  }
  for (Leftover& leftover : leftovers_)
    if (!leftover.sends && is(leftover)) leftover.chunks = std::min(leftover.chunks, chunks);
}

void Streams::oldest_of(const std::vector<Stream>& streams, std::vector<int>& messages) {
  for (const Stream& s : streams)
    if (s.finished < s.started) messages.push_back(s.at(s.finished).message);
}

void Streams::pending_receives(std::vector<int>& messages) const {
  oldest_of(in_, messages);
  for (const Leftover& leftover : leftovers_)
    for (const Chunk& chunk : leftover.posted) messages.push_back(chunk.message);
}

void Streams::pending(std::vector<int>& messages) const {
  oldest_of(out_, messages);
  pending_receives(messages);
}

bool Streams::progress_receives() {
  bool moved = false;
  for (Stream& s : in_) moved |= advance_receive(s);
  std::erase_if(in_, [](const Stream& s) { return s.is_over(); });
  std::erase_if(leftovers_, [&](Leftover& leftover) { return advance(leftover); });
  return moved;
}

bool Streams::progress() {
  bool moved = false;
  settles_since_s_ = 0;
  for (Stream& s : out_) moved |= advance_send(s);
  for (Stream& s : out_) start_sends(s);  // after all advances: the first in order goes first
  std::erase_if(out_, [](const Stream& s) { return s.is_over(); });
  moved |= progress_receives();
  return moved;
}

bool Streams::comes_from(int peer) const {
  return std::any_of(in_.begin(), in_.end(), [&](const Stream& s) { return s.peer == peer; });
}

void Streams::close() {
  closed_ = true;
  while (!in_.empty()) keep(leftover_of(take(in_, in_.begin()), false));
  for (Leftover& leftover : leftovers_)
    if (!leftover.sends) leftover.chunks = 0;
}

void Streams::abandon() {
  const auto forget = [&](Chunk& chunk) {
    port_.abandon(chunk.message, std::move(chunk.staged));
  };
  for (auto* streams : {&out_, &in_})
    for (Stream& s : *streams)
      for (; s.finished < s.started; ++s.finished) forget(s.at(s.finished));
  for (Leftover& leftover : leftovers_)
    for (Chunk& chunk : leftover.posted) forget(chunk);
  out_.clear();
  in_.clear();
  leftovers_.clear();
}

}  // namespace paceline::mpi
