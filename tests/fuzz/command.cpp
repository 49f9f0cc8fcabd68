#include "fuzz/command.hpp"

#include <chrono>
#include <cstdio>
#include <sstream>

#include "base/error.hpp"
#include "fuzz/loop.hpp"
#include "fuzz/tape.hpp"

namespace paceline::fuzz {
namespace {

constexpr int kUsual = 3;   // ranks, where they are processes

Request read(const std::vector<std::string>& words) {
  Request r;
  std::size_t at = 0;
  r.what = words[at++];
  if (at < words.size() && words[at][0] != '-') r.how = words[at++];
  while (at < words.size()) {
    const std::string name = words[at++];
    if (name == "--only-mpi" || name == "--threads") {
      (name == "--threads" ? r.threads : r.only_mpi) = true;
      continue;
    }
    if (at == words.size()) fail(Fault::usage, "fuzz: ", name, " wants a value.");
    const std::string& value = words[at++];
    if (name == "--seed") r.seed = std::stoull(value);
    else if (name == "--programs") r.programs = std::stoi(value);
    else if (name == "--ranks") r.ranks = std::stoi(value);
    else if (name == "--seconds") r.seconds = std::stod(value);
    else if (name == "--library") r.library = value;
    else if (name == "--folder") r.folder = value;
    else if (name == "--wrong-message") r.wrong_message = std::stoi(value);
    else if (name != "--keep") fail(Fault::usage, "fuzz: unknown option ", name);
    std::istringstream list(name == "--keep" ? value : "");
    for (std::string call; std::getline(list, call, ',');) r.kept.push_back(std::stoi(call));
  }
  if (r.ranks == 0 && r.how != "loop") r.ranks = kUsual;
  return r;
}

int play_on_loop(const Request& request) {
  const auto begun = std::chrono::steady_clock::now();
  int n = 0;
  for (;; ++n) {
    const double passed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (request.seconds > 0 ? passed_s > request.seconds : n >= request.programs) break;
    const std::uint64_t seed = request.seed + std::uint64_t(n);
    Faults faults = weather(seed);
    faults.wrong_message = request.wrong_message;
    const std::string bad = play_loop(program_of(request, n), faults).trouble();
    if (bad.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), bad.c_str());
    return 1;
  }
  std::printf("loop: %d programs from seed %llu on end rightly\n", n,
              static_cast<unsigned long long>(request.seed));
  return 0;
}

int play(const Request& request) {
  if (request.how == "loop") return play_on_loop(request);
  if (request.how == "mpi") return play_mpi(request);
  if (request.how != "shm") fail(Fault::usage, "fuzz play: loop, shm or mpi?");
  const std::string bad = play_shm(request);
  if (bad.empty())
    std::printf("shm: %d programs from seed %llu on end rightly on %d ranks\n", request.programs,
                static_cast<unsigned long long>(request.seed), request.ranks);
  else
    std::printf("%s\n", bad.c_str());
  return bad.empty() ? 0 : 1;
}

}  // namespace

Program program_of(const Request& request, int n) {
  const std::uint64_t seed = request.seed + std::uint64_t(n);
  const bool tapes = request.what == "tapes" || request.what == "judge" || request.how == "preload";
  Program program =
      request.how == "loop"
          ? loop_program(seed, request.ranks)
          : generate(seed, {.ranks = request.ranks,
                            .dialect = tapes ? Dialect::mpi : Dialect::core});
  return request.kept.empty() ? program : thinned(program, request.kept);
}

int command(const std::vector<std::string>& words) {
  try {
    const Request request = read(words);
    if (request.what == "play") return play(request);
    if (request.what == "tapes") return write_tapes(request);
    if (request.what == "judge") return judge_tapes(request);
    for (int n = 0; n < request.programs; ++n)
      std::printf("%s", text_of(program_of(request, n)).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

}  // namespace paceline::fuzz
