#include "transport/transport.hpp"

#include <algorithm>

#include "base/copy_bytes.hpp"
#include "base/processors.hpp"

namespace paceline {
namespace {

// Calls move(part, bytes) for every stretch of the list between offset and offset + bytes.
template <class Move>
void walk(const std::vector<Part>& parts, std::size_t offset, std::size_t bytes, Move&& move) {
  for (const Part& part : parts) {
    if (bytes == 0) return;
    if (offset >= part.bytes) {
      offset -= part.bytes;
      continue;
    }
    const std::size_t now = std::min(bytes, part.bytes - offset);
    move(part.data + offset, now);
    bytes -= now;
    offset = 0;
  }
}

}  // namespace

bool Transport::is_oversubscribed() const {
  return ranks() > static_cast<int>(allowed_processors().size());
}

void copy_out(const std::vector<Part>& parts, std::size_t offset, std::byte* target,
              std::size_t bytes) {
  walk(parts, offset, bytes, [&](const std::byte* from, std::size_t now) {
    copy_bytes(target, from, now);
    target += now;
  });
}

void deliver(Transfer& transfer, const std::byte* data, std::size_t bytes) {
  if (transfer.consume) {
    if (bytes > 0) transfer.consume(transfer.state, transfer.moved, data, bytes);
  } else {
    walk(transfer.parts, transfer.moved, bytes, [&](std::byte* to, std::size_t now) {
      copy_bytes(to, data, now);
      data += now;
    });
  }
  transfer.moved += bytes;
}

}  // namespace paceline
