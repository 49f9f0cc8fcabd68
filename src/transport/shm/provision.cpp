#include "transport/shm/provision.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "transport/shm/inbox.hpp"
#include "transport/shm/slab.hpp"

namespace paceline {
namespace {

constexpr std::size_t kLeast = 64u << 10, kMost = 4u << 20, kPage = 4096;

constexpr std::size_t kBesides = Slab::file_bytes(1, 0);   // besides the slots of a stage

constexpr std::size_t whole_pages(std::size_t bytes) { return bytes / (2 * kPage) * (2 * kPage); }

std::size_t least(const std::vector<FolderSpace>& spaces, std::size_t FolderSpace::*what) {
  const auto less = [&](const FolderSpace& a, const FolderSpace& b) { return a.*what < b.*what; };
  return (*std::min_element(spaces.begin(), spaces.end(), less)).*what;
}

// Bytes for slots in the longest file that every rank may make; 0: too few.
std::size_t most_of_file(const std::vector<FolderSpace>& spaces) {
  const std::size_t longest = least(spaces, &FolderSpace::longest);
  return longest < kBesides + kLeast ? 0 : whole_pages(longest - kBesides);
}

struct Space {
  std::size_t whole = 0, free = 0;   // bytes of a file system
};

std::optional<Space> space_in(const std::string& folder) {
  struct statvfs found{};
  if (statvfs(folder.c_str(), &found) != 0) return {};
  const auto unit = static_cast<std::size_t>(found.f_frsize);
  return Space{std::size_t(found.f_blocks) * unit, std::size_t(found.f_bavail) * unit};
}

std::string stages_of(std::size_t bytes) { return str("stages of ", human_bytes(double(bytes))); }

}  // namespace

// Long rings count only what they carry. Short ones count all that lies beside it as well, and lose
// cells before those become too short for most messages.
RingShape ring_shape(std::size_t bytes, int ranks) {
  constexpr std::size_t kLong = 64u << 10, kMostRing = 1u << 20, kShortCell = 512;
  const auto p = static_cast<std::size_t>(ranks);
  const std::size_t ring = bytes / std::max<std::size_t>(1, p * (p - 1));
  if (ring >= kLong) return {std::bit_floor(std::min(ring, kMostRing)) / RingShape::kMostCells};
  const std::size_t beside = kInboxHeader / p + sizeof(Drained) + RingShape{0, 0}.bytes();
  const std::size_t each = std::max(bytes / (p * p), beside) - beside;
  for (std::size_t cells = RingShape::kMostCells; cells >= RingShape::kLeastCells; cells /= 2) {
    const std::size_t stride = each / cells / sizeof(Cell64) * sizeof(Cell64);
    const std::size_t least = cells > RingShape::kLeastCells ? kShortCell : RingShape::kLeastCell;
    if (stride >= least + sizeof(Cell64)) return {stride - sizeof(Cell64), cells};
  }
  return {RingShape::kLeastCell, RingShape::kLeastCells};
}

std::size_t inbox_bytes(const RingShape& shape, int ranks) {
  return kInboxHeader + std::size_t(ranks) * (sizeof(Drained) + shape.bytes());
}

std::size_t stage_bytes(std::size_t bytes, int ranks) {
  const std::size_t each = bytes / static_cast<std::size_t>(std::max(ranks, 1));
  return std::clamp(whole_pages(each), kLeast, kMost);
}

Provision provide(std::size_t asked, const std::vector<FolderSpace>& spaces) {
  asked = std::min(asked, most_of_file(spaces));
  if (asked == 0) return {0, true};
  const std::size_t free = least(spaces, &FolderSpace::free);
  if (free / spaces.size() >= kBesides + asked) return {asked, true};
  if (std::all_of(spaces.begin(), spaces.end(), std::mem_fn(&FolderSpace::anonymous)))
    return {asked, false};
  const std::size_t each = free / 2 / spaces.size();
  if (each < kBesides + kLeast) return {0, true};
  return {std::min(whole_pages(each - kBesides), asked), true};
}

FolderSpace folder_space(const std::string& folder) {
  const auto space = space_in(folder);
  return {space ? space->free : 0, SharedFile::can_be_anonymous(), SharedFile::longest()};
}

RingShape fitting(const RingShape& wanted, const std::string& folder, int ranks) {
  const auto space = space_in(folder);
  if (const std::size_t longest = SharedFile::longest(); inbox_bytes(wanted, ranks) > longest)
    return ring_shape(longest / 2 * std::size_t(ranks), ranks);
  const std::size_t all = inbox_bytes(wanted, ranks) * std::size_t(ranks);
  if (!space || all <= space->whole || SharedFile::can_be_anonymous()) return wanted;
  return ring_shape(space->whole / 2, ranks);
}

std::string shortage_of_rings(const ShmConfig& config, std::span<const RingShape> shapes) {
  const auto ranks = static_cast<int>(shapes.size());
  const RingShape asked = ring_shape(config.bytes, ranks);
  std::size_t all = 0, smaller = 0;
  for (const RingShape& shape : shapes) {
    all += inbox_bytes(shape, ranks);
    smaller += shape.bytes() < asked.bytes() ? 1 : 0;
  }
  if (smaller > 0)
    return str("shm: '", config.dir, "' has no room for the messages of the ", ranks,
               " ranks of this node as PACELINE_SHM_BYTES=", human_bytes(double(config.bytes)),
               " wants them; they make do with ", human_bytes(double(all)),
               ", so long messages are slower. Enlarge it (docker run --shm-size)",
               SharedFile::longest() < inbox_bytes(asked, ranks)
                   ? ", and raise the limit of the length of files (ulimit -f)." : ".");
  if (asked.cells > RingShape::kLeastCells || all <= config.bytes) return {};
  return str("shm: the messages of the ", ranks, " ranks of this node take ",
             human_bytes(double(all)), " at least, and PACELINE_SHM_BYTES is ",
             human_bytes(double(config.bytes)), ". Raise it, or start fewer ranks.");
}

std::string shortage(const ShmConfig& config, const Provision& made,
                     const std::vector<FolderSpace>& spaces, const std::string& why) {
  const auto ranks = static_cast<int>(spaces.size());
  const std::size_t free = least(spaces, &FolderSpace::free);
  const std::size_t asked = stage_bytes(config.stage_bytes, ranks);
  if (made.bytes == asked && why.empty()) return {};
  const std::string slower = made.bytes > 0
      ? str("they make do with ", stages_of(made.bytes), ", so long calls are slower.")
      : str("so they send messages instead, which takes longer.");
  if (most_of_file(spaces) < asked)
    return str("shm: the ", ranks, " ranks of this node want files of ",
               human_bytes(double(asked + kBesides)), " for ", stages_of(asked),
               " and one of them may make files of ",
               human_bytes(double(least(spaces, &FolderSpace::longest))), "; ", slower,
               " Raise the limit of the length of files (ulimit -f).");
  const std::size_t whole = (asked + kBesides) * spaces.size();
  return str("shm: the ", ranks, " ranks of this node want ", human_bytes(double(whole)), " of '",
             config.dir, "' for ", stages_of(asked), " and ", human_bytes(double(free)),
             " are free; ", why.empty() ? "" : str(why, " "), slower,
             " Enlarge it (docker run --shm-size), or lower PACELINE_SHM_BYTES or ",
             "PACELINE_STAGE_BYTES.");
}

}  // namespace paceline
