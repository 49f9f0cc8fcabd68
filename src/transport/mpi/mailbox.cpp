#include "transport/mpi/mailbox.hpp"

#include <algorithm>

namespace paceline::mpi {
namespace {

constexpr std::size_t kReceives = 32;    // under way at once; posted ahead where MPI completes such
constexpr std::size_t kAskedAtOnce = 4;  // the oldest; the others end later anyway

}  // namespace

Mailbox::Mailbox(MpiPort& port, std::size_t payload)
    : port_(port), pool_(sizeof(Header) + payload), posts_ahead_(port.can_post_from_anybody()) {
  if (port.ranks() == 1 || !posts_ahead_) return;
  for (std::size_t i = 0; i < kReceives; ++i) receive();
}

void Mailbox::receive() {
  Buffer memory = pool_.take();
  const int message = port_.recv(MpiPort::kAnybody, kControlTag, memory.get(), pool_.bytes());
  receiving_.push_back({message, std::move(memory)});
}

void Mailbox::take() {
  while (receiving_.size() < kReceives) {
    Buffer memory = pool_.take();
    const int message = port_.take(kControlTag, memory.get(), pool_.bytes());
    if (message == MpiPort::kNone) return pool_.give(std::move(memory));
    receiving_.push_back({message, std::move(memory)});
  }
}

void Mailbox::post(int peer, Buffer memory, std::size_t bytes) {
  const int message = port_.send(MpiPort::Mode::buffered, peer, kControlTag, memory.get(), bytes);
  sending_.push_back({message, std::move(memory)});
}

bool Mailbox::next(Letter& letter, int& trouble) {
  trouble = 0;
  Ended how;
  if (!posts_ahead_ && !closing_) take();
  if (closing_ || receiving_.empty() || !port_.ended(receiving_.front().message, how)) return false;
  letter.memory = std::move(receiving_.front().memory);
  receiving_.pop_front();
  if (posts_ahead_) receive();
  trouble = how.error;
  if (how.error || how.bytes < sizeof(Header)) {
    pool_.give(std::move(letter.memory));
    return false;
  }
  letter.from = how.peer;
  letter.bytes = how.bytes - sizeof(Header);
  std::memcpy(&letter.header, letter.memory.get(), sizeof(Header));
  return true;
}

void Mailbox::pending(std::vector<int>& messages) const {
  const auto oldest = [&](const std::deque<Slot>& slots) {
    for (std::size_t i = 0; i < std::min(slots.size(), kAskedAtOnce); ++i)
      messages.push_back(slots[i].message);
  };
  oldest(receiving_);
  oldest(sending_);
}

void Mailbox::close() {
  closing_ = true;
  if (!posts_ahead_) return;   // their messages have arrived, and they end by themselves
  for (const Slot& slot : receiving_) port_.cancel(slot.message);
}

void Mailbox::collect_closed() {
  Ended how;
  while (closing_ && !receiving_.empty() && port_.ended(receiving_.front().message, how)) {
    pool_.give(std::move(receiving_.front().memory));
    receiving_.pop_front();
  }
}

void Mailbox::abandon() {
  for (auto* slots : {&receiving_, &sending_}) {
    for (Slot& slot : *slots) port_.abandon(slot.message, std::move(slot.memory));
    slots->clear();
  }
}

}  // namespace paceline::mpi
