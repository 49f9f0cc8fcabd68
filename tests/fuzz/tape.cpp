#include "fuzz/tape.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/error.hpp"
#include "fuzz/judge.hpp"

namespace paceline::fuzz {
namespace {

class Writer {
 public:
  Writer(const Program& program, int rank, std::ostream& out)
      : program_(program), rank_(rank), out_(out) {}

  void write() {
    out_ << "program " << program_.seed << "\n";
    for (std::size_t i = 0; i < program_.actions.size(); ++i) {
      const Action& action = program_.actions[i];
      const std::uint64_t x = own_draw(i, 1);
      if (x % 8 == 0) out_ << "pause " << (x >> 8 & (x % 64 == 0 ? 2047 : 127)) << "\n";
      switch (action.kind) {
        case Action::Kind::make: make(program_.makings[std::size_t(action.subject)]); break;
        case Action::Kind::release:
          if (is_in(action.subject)) out_ << "release " << action.subject << "\n";
          break;
        case Action::Kind::begin: begin(action.subject); break;
        case Action::Kind::complete: complete(action.calls, i); break;
      }
    }
  }

 private:
  std::uint64_t own_draw(std::uint64_t a, std::uint64_t b) const {
    return draw(program_.seed ^ 0x74617065, static_cast<std::uint64_t>(rank_), a, b);
  }
  bool is_in(int group) const { return position_of(program_, group, rank_) >= 0; }

  void make(const Making& m) {
    if (!is_in(m.parent)) return;
    int mine = -1;
    for (int g = m.first; g < m.first + m.groups; ++g)
      if (is_in(g)) mine = g;
    if (m.way == Way::alone) {
      out_ << "self " << mine << "\n";
    } else if (m.way == Way::dup) {
      out_ << "dup " << m.parent << " " << mine << "\n";
    } else if (m.way == Way::split) {
      out_ << "split " << m.parent << " " << mine << " " << (mine < 0 ? -1 : mine - m.first) << " "
           << (mine < 0 ? 0 : position_of(program_, mine, rank_)) << "\n";
    } else if (mine >= 0) {
      out_ << "subgroup " << m.parent << " " << mine << " " << size_of_group(program_, mine);
      for (int r : program_.groups[std::size_t(mine)])
        out_ << " " << position_of(program_, m.parent, r);
      out_ << "\n";
    }
  }

  void begin(int number) {
    const Invocation& c = program_.calls[std::size_t(number)];
    if (!is_in(c.group)) return;
    const int position = position_of(program_, c.group, rank_);
    const Frame frame = frame_of(program_, number, position);
    const auto place = [&](const Extent& extent) {
      return str(extent.block, " ", kEdge + (c.shift + extent.at) * size_of(c.type));
    };
    std::vector<unsigned char> block[2];
    for (int b : {0, 1}) block[b].resize(block_bytes(program_, number, frame, b));
    fill(program_, number, position, {block[0], block[1]});
    const int p = size_of_group(program_, c.group);
    out_ << "begin " << number << " " << name_of(c.collective) << " " << name_of(c.type) << " "
         << name_of(c.op) << " " << c.root << " " << c.group << " " << (c.mode != Mode::blocking)
         << " " << frame.in_place << " " << place(frame.input) << " " << place(frame.output) << " "
         << (c.counts.empty() ? c.count : unit_count(c, p, position)) << " " << !c.counts.empty()
         << " " << block[0].size() << " " << block[1].size() << "\n";
    if (!c.counts.empty()) {
      out_ << "counts " << p;
      const bool pairs = c.collective == Collective::alltoall;
      for (int r = 0; r < p; ++r)
        out_ << " " << (pairs ? unit_count(c, p, position, r) : unit_count(c, p, r));
      for (int r = 0; r < p; ++r)
        out_ << " " << (pairs ? unit_count(c, p, r, position) : unit_count(c, p, r));
      out_ << "\n";
    }
    for (const auto& bytes : block)
      out_.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }

  void complete(std::vector<int> calls, std::size_t action) {
    std::erase_if(calls, [&](int call) {
      return !is_in(program_.calls[std::size_t(call)].group);
    });
    if (calls.empty()) return;
    for (std::size_t i = calls.size(); i > 1; --i)
      std::swap(calls[i - 1], calls[own_draw(action, 100 + i) % i]);
    out_ << "complete " << own_draw(action, 2) % 2 << " " << calls.size();
    for (int call : calls) out_ << " " << call;
    out_ << "\n";
  }

  const Program& program_;
  int rank_;
  std::ostream& out_;
};

// What one rank has found of a program: a digest per call.
using Digests = std::map<int, std::uint64_t>;

// Reads what the rank wrote of the program; empty, or what is wrong.
std::string judge_one(const Program& program, int rank, std::istream& in, Digests& digests) {
  std::string word;
  std::uint64_t seed = 0;
  if (!(in >> word >> seed) || word != "program" || seed != program.seed)
    return str("rank ", rank, " has written nothing");
  int call = 0;
  std::size_t bytes[2];
  while (in.peek() == '\n') in.get();
  while (in.peek() == 'c' && in >> word >> call >> bytes[0] >> bytes[1]) {
    in.get();
    std::vector<unsigned char> block[2];
    for (int b : {0, 1}) {
      block[b].resize(bytes[b]);
      in.read(reinterpret_cast<char*>(block[b].data()), std::streamsize(bytes[b]));
    }
    const Invocation& c = program.calls[std::size_t(call)];
    const int position = position_of(program, c.group, rank);
    const Blocks blocks{block[0], block[1]};
    if (const std::string bad = flaw(program, call, position, blocks); !bad.empty()) return bad;
    const std::uint64_t bits = digests[call] = digest(program, call, position, blocks);
    // A host may sum in another order when a call is not to block.
    const bool repeats = c.same_as >= 0 && c.mode == Mode::blocking &&
                         program.calls[std::size_t(c.same_as)].mode == Mode::blocking;
    if (repeats && bits != digests[c.same_as])
      return str("rank ", rank, ", ", text_of(program, call), ": other bits than call ", c.same_as);
  }
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const bool begun = std::any_of(program.actions.begin(), program.actions.end(), [&](auto& a) {
      return a.kind == Action::Kind::begin && a.subject == int(i);
    });
    const bool wanted = begun && position_of(program, program.calls[i].group, rank) >= 0;
    if (wanted != digests.contains(int(i)))
      return str("rank ", rank, wanted ? " has not made " : " has made ", text_of(program, int(i)));
  }
  return {};
}

std::string compare(const Program& program, const std::vector<Digests>& ranks) {
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const Invocation& c = program.calls[i];
    if (!same_everywhere(c) || c.mode != Mode::blocking) continue;
    const std::vector<int>& members = program.groups[std::size_t(c.group)];
    const Digests& first = ranks[std::size_t(members[0])];
    for (int r : members)
      if (const auto found = first.find(int(i));
          found != first.end() && ranks[std::size_t(r)].at(int(i)) != found->second)
        return str("rank ", r, " has other bits than rank ", members[0], " from ",
                   text_of(program, int(i)));
  }
  return {};
}

}  // namespace

int write_tapes(const Options& options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    std::ofstream out(str(options.folder, "/tape.", rank), std::ios::binary);
    for (int n = 0; n < options.programs; ++n) {
      const Program program = program_of(options, n);
      Writer(program, rank, out).write();
    }
    if (!out) fail(Fault::resource, "fuzz: cannot write to ", options.folder);
  }
  return 0;
}

int judge_tapes(const Options& options) {
  std::vector<std::ifstream> in;
  for (int rank = 0; rank < options.ranks; ++rank)
    in.emplace_back(str(options.folder, "/out.", rank), std::ios::binary);
  for (int n = 0; n < options.programs; ++n) {
    const Program program = program_of(options, n);
    std::vector<Digests> digests(in.size());
    std::string bad;
    for (std::size_t r = 0; r < in.size() && bad.empty(); ++r)
      bad = judge_one(program, int(r), in[r], digests[r]);
    if (bad.empty()) bad = compare(program, digests);
    if (bad.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(program.seed), bad.c_str());
    return 1;
  }
  std::printf("preload: %d programs from seed %llu on end rightly on %d ranks\n", options.programs,
              static_cast<unsigned long long>(options.seed), options.ranks);
  return 0;
}

}  // namespace paceline::fuzz
