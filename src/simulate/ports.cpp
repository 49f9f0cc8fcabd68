#include "simulate/ports.hpp"

#include <algorithm>
#include <functional>

namespace paceline {

// The nodes' sending ports, their receiving ports, the ranks' sending and receiving sides.
Ports::Ports(const std::vector<int>& node_of)
    : node_of_(node_of),
      nodes_(static_cast<std::size_t>(*std::max_element(node_of.begin(), node_of.end())) + 1),
      ranks_(node_of.size()), busy_(2 * (nodes_ + ranks_)), queues_(2 * (nodes_ + ranks_)) {}

std::pair<std::size_t, std::size_t> Ports::ports_of(int from, int to) const {
  const int sender = node_of_[std::size_t(from)], receiver = node_of_[std::size_t(to)];
  if (sender != receiver)
    return {static_cast<std::size_t>(sender), nodes_ + static_cast<std::size_t>(receiver)};
  return {2 * nodes_ + static_cast<std::size_t>(from),
          2 * nodes_ + ranks_ + static_cast<std::size_t>(to)};
}

void Ports::push(const Cursor& cursor) {
  heads_.push_back(cursor);
  std::push_heap(heads_.begin(), heads_.end(), std::greater<>());
}

void Ports::offer(const Urgency& message, int from, int to) {
  const auto [out, in] = ports_of(from, to);
  push({{message, out, in}, 0, true});
}

void Ports::release(int from, int to) {
  const auto [out, in] = ports_of(from, to);
  busy_[out] = busy_[in] = false;
  freed_.push_back(out);
  freed_.push_back(in);
}

// Puts what stands behind the cursor's place in its queue among the heads.
void Ports::look_behind(const Cursor& cursor) {
  const Queue& queue = queues_[cursor.port];
  const auto behind = queue.upper_bound(cursor.at);
  if (behind != queue.end()) push({*behind, cursor.port, false});
}

std::uint32_t Ports::next() {
  for (std::size_t port : freed_)
    if (!queues_[port].empty()) push({*queues_[port].begin(), port, false});
  freed_.clear();
  while (!heads_.empty()) {
    std::pop_heap(heads_.begin(), heads_.end(), std::greater<>());
    const Cursor head = heads_.back();
    heads_.pop_back();
    if (!head.fresh && busy_[head.port]) continue;   // taken meanwhile: nothing behind can start
    if (!fits(head.at)) {
      if (head.fresh) {
        queues_[head.at.out].insert(head.at);
        queues_[head.at.in].insert(head.at);
      } else {
        look_behind(head);
      }
      continue;
    }
    if (!head.fresh) {
      queues_[head.at.out].erase(head.at);
      queues_[head.at.in].erase(head.at);
    }
    busy_[head.at.out] = busy_[head.at.in] = true;
    return head.at.message.item;
  }
  return kNobody;
}

}  // namespace paceline
