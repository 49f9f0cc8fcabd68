// Ranks as threads of one process: a C program as it would be, several times at once.
#pragma once

#include <doctest/doctest.h>
#include <paceline/paceline.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace capi {

// A folder of its own, gone afterwards.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "paceline-capi-XXXXXX").string()) {
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

// Sets a variable for the length of a scope; ranks are started inside it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
};

// body(world, rank) on so many ranks. It may free the world, or leave it to be finalised.
template <class Body>
void with_ranks(int ranks, Body&& body) {
  const Variable limit("PACELINE_TIMEOUT_MS", "20000"), start("PACELINE_START_TIMEOUT_MS", "20000");
  const Folder folder;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      paceline_comm* world = nullptr;
      const paceline_status status = paceline_init_store(folder.path(), rank, ranks, &world);
      CHECK_MESSAGE(status == PACELINE_OK, paceline_error());
      if (status != PACELINE_OK) return;
      body(world, rank);
      CHECK(paceline_finalize(&world) == PACELINE_OK);
    });
  for (std::thread& thread : threads) thread.join();
}

inline bool error_has(const std::string& words) {
  return std::string(paceline_error()).find(words) != std::string::npos;
}

// A call of this kind with nothing else set.
inline paceline_call call_of(paceline_collective collective) {
  paceline_call call{};
  call.size = sizeof call;
  call.collective = collective;
  return call;
}

inline paceline_call allreduce_of(std::vector<double>& x) {
  paceline_call call = call_of(PACELINE_ALLREDUCE);
  call.type = PACELINE_F64;
  call.op = PACELINE_SUM;
  call.input = call.output = x.data();
  call.count = x.size();
  return call;
}

}  // namespace capi

#define CHECK_OK(call) CHECK_MESSAGE((call) == PACELINE_OK, paceline_error())
// The code, and what the message must name.
#define CHECK_FAULT(call, code, words)                       \
  do {                                                       \
    CHECK((call) == (code));                                 \
    CHECK_MESSAGE(capi::error_has(words), paceline_error()); \
  } while (false)
