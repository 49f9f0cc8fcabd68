#include "profile/recorder.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/str.hpp"
#include "folder.hpp"

namespace paceline {
namespace {

using test::Folder;

std::string bytes_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

}  // namespace

TEST_CASE("recorder: what was entered is in the file before anything is closed") {
  const Folder folder;
  Recorder recorder({.folder = folder.path, .source = "paceline", .rank = 3, .ranks = 5});
  const int ranks[] = {3, 1};
  CHECK(recorder.communicator(ranks) == 0);
  CHECK(recorder.communicator(ranks) == 1);
  CHECK(recorder.communicator(ranks, 0xfedcba9876543210) == 2);
  CHECK(recorder.site("a \"place\"") == 0);
  CHECK(recorder.site("a \"place\"") == 0);
  CallRecord* const call = recorder.enter({2, 1, 9, 0, 4096, false});
  REQUIRE(call != nullptr);
  const std::string left = bytes_of(folder.path + "/paceline-3.profile");
  const auto& header = *reinterpret_cast<const ProfileHeader*>(left.data());
  CHECK(left.substr(0, 8) == std::string(kProfileMagic, 8));
  CHECK(header.calls == 1);
  CHECK(header.end_ns == 0);
  const std::string text = left.substr(header.header_bytes, header.text_used);
  CHECK(text.find("{\"communicator\":1,\"instance\":1,\"ranks\":[3,1]}\n") != std::string::npos);
  CHECK(text.find("\"instance\":18364758544493064720,\"ranks\":[3,1]}\n") != std::string::npos);
  CHECK(text.find("a \\\"place\\\"") != std::string::npos);
  const auto& record = *reinterpret_cast<const CallRecord*>(
      left.data() + header.header_bytes + header.text_bytes);
  CHECK(record.stage == CallStage::entered);
  CHECK(record.bytes == 4096);
  CHECK(record.number == 9);
  CHECK(record.enter_ns > 0);
}

TEST_CASE("recorder: a call that a thread completes before it returns stays complete") {
  const Folder folder;
  Recorder recorder({.folder = folder.path, .source = "paceline"});
  CallRecord& call = *recorder.enter({0, 0, 0, 0, 8, true});
  Recorder::complete(call, true);
  Recorder::leave(call, true);
  CHECK(call.stage == CallStage::complete);
  CHECK(call.leave_ns >= call.done_ns);
  CallRecord& bad = *recorder.enter({0, 0, 1, 0, 8, false});
  Recorder::leave(bad, false);
  CHECK(bad.stage == CallStage::failed);
  Recorder::complete(bad, true);
  CHECK(bad.stage == CallStage::failed);
}

TEST_CASE("recorder: what has ended is in the file and takes no memory") {
  const auto resident = [] {   // bytes
    std::size_t total = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> total >> pages;
    return pages * std::size_t(getpagesize());
  };
  const Folder folder;
  std::vector<std::unique_ptr<Recorder>> kept;
  const std::size_t before = resident();
  constexpr std::size_t kBytes = 8u << 20;
  for (int rank = 0; rank < 8; ++rank) {
    kept.push_back(std::make_unique<Recorder>(ProfileConfig{
        .folder = folder.path, .rank = rank, .ranks = 8, .bytes = kBytes}));
    CallRecord* const late = kept.back()->enter({.bytes = 77});
    REQUIRE(late != nullptr);
    kept.back()->finish();
    Recorder::leave(*late, true);   // of a call that was under way
  }
  CHECK(resident() < before + kBytes);
  const std::string left = bytes_of(kept.back()->path());
  const auto& header = *reinterpret_cast<const ProfileHeader*>(left.data());
  const auto& record = *reinterpret_cast<const CallRecord*>(
      left.data() + header.header_bytes + header.text_bytes);
  CHECK(header.end_ns > 0);
  CHECK(record.bytes == 77);
  CHECK(record.stage == CallStage::returned);
}

TEST_CASE("recorder: a full file keeps counting, and what is recorded stays as it is") {
  const Folder folder;
  Recorder recorder(
      {.folder = folder.path, .source = "mpi", .bytes = 2 * sizeof(CallRecord)});
  CHECK(recorder.enter({0, 0, 0, 0, 1, false}) != nullptr);
  CHECK(recorder.enter({0, 0, 1, 0, 1, false}) != nullptr);
  for (int i = 0; i < 5; ++i) CHECK(recorder.enter({0, 0, 2, 0, 1, false}) == nullptr);
  const std::string left = bytes_of(recorder.path());
  CHECK(reinterpret_cast<const ProfileHeader*>(left.data())->calls == 7);
}

TEST_CASE("recorder: a folder that cannot be written to is an error that says what to do") {
  try {
    Recorder recorder({.folder = "/proc/paceline", .source = "mpi"});
    FAIL("it was made");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::resource);
    CHECK(std::string(error.what()).find("PACELINE_PROFILE") != std::string::npos);
  }
}

}  // namespace paceline
