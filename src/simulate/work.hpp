// Work: the steps of all ranks in one list, with the bytes that each moves and its partner.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "ir/schedule.hpp"

namespace paceline {

inline constexpr std::uint32_t kNobody = ~std::uint32_t{0};

struct Item {
  Kind kind = Kind::copy;
  std::uint32_t call = 0;            // of those under way; its place among them by urgency
  int rank = 0;
  std::uint32_t step = 0;            // in the rank's schedule
  std::uint32_t segment = 0;         // pipeline segment
  std::uint32_t partner = kNobody;   // item at the other end of the message or signal
  std::uint64_t message_bytes = 0;   // send, recv, recv_reduce
  std::uint64_t local_bytes = 0;     // combined (target bytes by combinations) or copied
  std::uint64_t mates_bytes = 0;     // read from staging buffers of the node's other ranks
};

struct Work {
  std::vector<Item> items;           // call by call, rank by rank, in the order of the steps
  std::vector<std::uint32_t> first;  // by call and rank
};

// Urgency: the smaller, the sooner.
struct Urgency {
  std::uint32_t call = 0;
  std::uint32_t segment = 0;
  std::uint32_t step = 0;            // of a message: the sender's
  std::uint32_t receive = 0;         // of a message: the receiver's step
  std::uint32_t item = 0;            // last, so that no two are equal; grows with the rank
  auto operator<=>(const Urgency&) const = default;
};

inline Urgency urgency_of(const Item& item, std::uint32_t id) {
  return {item.call, item.segment, item.step, 0, id};
}

// Adds a call. Throws an internal error if a message lacks its other end.
void gather_work(const std::vector<Schedule>& world, std::size_t count, std::size_t element_bytes,
                 Work& work);

}  // namespace paceline
