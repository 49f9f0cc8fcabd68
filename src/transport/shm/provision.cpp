#include "transport/shm/provision.hpp"

#include <sys/statvfs.h>

#include <algorithm>

#include "base/error.hpp"
#include "transport/shm/shm.hpp"
#include "transport/stage.hpp"

namespace paceline {
namespace {

constexpr std::size_t kLeast = 64u << 10, kMost = 4u << 20, kPage = 4096;

constexpr std::size_t whole_pages(std::size_t bytes) { return bytes / (2 * kPage) * (2 * kPage); }

std::size_t least_free(const std::vector<Room>& rooms) {
  const auto less = [](const Room& a, const Room& b) { return a.free < b.free; };
  return std::min_element(rooms.begin(), rooms.end(), less)->free;
}

std::string stages_of(std::size_t bytes) { return str("stages of ", human_bytes(double(bytes))); }

}  // namespace

std::size_t stage_bytes(std::size_t bytes, int ranks) {
  const std::size_t each = bytes / static_cast<std::size_t>(std::max(ranks, 1));
  return std::clamp(whole_pages(each), kLeast, kMost);
}

Provision provide(std::size_t asked, const std::vector<Room>& rooms) {
  const std::size_t free = least_free(rooms);
  if (free / rooms.size() >= Stage::kHead + asked) return {asked, true};
  if (std::all_of(rooms.begin(), rooms.end(), [](const Room& room) { return room.anonymous; }))
    return {asked, false};
  const std::size_t each = free / 2 / rooms.size();
  if (each < Stage::kHead + kLeast) return {0, true};
  return {std::min(whole_pages(each - Stage::kHead), asked), true};
}

Room room_in(const std::string& folder) {
  struct statvfs found{};
  const bool known = statvfs(folder.c_str(), &found) == 0;
  return {known ? std::size_t(found.f_bavail) * std::size_t(found.f_frsize) : 0,
          SharedFile::can_be_anonymous()};
}

SharedFile make_stage(const std::string& folder, std::size_t bytes) {
  try {
    return SharedFile::create(folder, bytes);
  } catch (const Error& full) {
    try {
      return SharedFile::create_anonymous(bytes);
    } catch (const Error& besides) {
      fail(Fault::resource, full.what(), " Nor is there memory besides: ", besides.what(),
           " A communicator needs a stage of this size for each of its ranks, as ",
           "PACELINE_STAGE_BYTES says; close communicators that are no longer used.");
    }
  }
}

std::string shortage(const ShmConfig& config, const Provision& made, const std::vector<Room>& rooms,
                     const std::string& why) {
  const auto ranks = static_cast<int>(rooms.size());
  const std::size_t free = least_free(rooms);
  const std::size_t asked = stage_bytes(config.stage_bytes, ranks);
  if (made.bytes == asked && why.empty()) return {};
  const std::size_t whole = (asked + Stage::kHead) * rooms.size();
  return str("shm: the ", ranks, " ranks of this node want ", human_bytes(double(whole)), " of '",
             config.dir, "' for ", stages_of(asked), " and ", human_bytes(double(free)),
             " are free; ", why.empty() ? "" : str(why, " "),
             made.bytes > 0
                 ? str("they make do with ", stages_of(made.bytes), ", so long calls are slower.")
                 : str("so they send messages instead, which takes longer."),
             " Enlarge it (docker run --shm-size), or lower PACELINE_SHM_BYTES or ",
             "PACELINE_STAGE_BYTES.");
}

}  // namespace paceline
