#include "transport/mpi/pmi.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/error.hpp"
#include "transport/mpi/start_deadline.hpp"

extern "C" char** environ;   // POSIX has no header for it

namespace paceline {
namespace {

constexpr int kNameMax = 256, kKeyMax = 64, kValueMax = 1024;   // as MPICH's own launcher has them

// Value of "name=" in a line of such pairs; "value" comes last and may hold spaces.
std::string field(const std::string& line, std::string_view name) {
  const std::string start = str(" ", name, "=");
  const std::string text = " " + line;
  const std::size_t at = text.find(start);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + start.size();
  if (name == "value") return text.substr(begin);
  return text.substr(begin, text.find(' ', begin) - begin);
}

bool send_line(int to, const std::string& line) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = send(to, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

// Replaces the environment variables of process managers by ours while it lives.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& ours) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view pair = *entry;
      const std::size_t middle = pair.find('=');
      if (pair.starts_with("PMI") && middle != std::string_view::npos)
        theirs_[std::string(pair.substr(0, middle))] = pair.substr(middle + 1);
    }
    for (const auto& [name, value] : theirs_) unsetenv(name.c_str());
    for (const auto& [name, value] : ours) {
      setenv(name.c_str(), value.c_str(), 1);
      names_.push_back(name);
    }
  }
  ~Environment() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    for (const auto& [name, value] : theirs_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> theirs_;
  std::vector<std::string> names_;
};

struct Block {
  int first, nodes, ranks;   // on each of these consecutive nodes
};

std::vector<Block> blocks_of(const std::vector<int>& nodes) {
  std::vector<Block> blocks;
  for (std::size_t r = 0; r < nodes.size();) {
    std::size_t end = r;
    while (end < nodes.size() && nodes[end] == nodes[r]) ++end;
    const int ranks = static_cast<int>(end - r);
    if (!blocks.empty() && blocks.back().ranks == ranks &&
        blocks.back().first + blocks.back().nodes == nodes[r])
      ++blocks.back().nodes;
    else
      blocks.push_back({nodes[r], 1, ranks});
    r = end;
  }
  return blocks;
}

// True if the ranks of each node are consecutive.
bool in_order(const std::vector<Block>& blocks) {
  int next = 0;
  for (const Block& b : blocks) {
    if (b.first != next) return false;
    next += b.nodes;
  }
  return true;
}

}  // namespace

std::string process_mapping(const std::vector<int>& nodes) {
  std::vector<Block> blocks = blocks_of(nodes);
  if (!in_order(blocks)) blocks = {{0, static_cast<int>(nodes.size()), 1}};
  std::string text = "(vector";
  for (const Block& b : blocks) text += str(",(", b.first, ",", b.nodes, ",", b.ranks, ")");
  return text + ")";
}

PmiServer::PmiServer(std::shared_ptr<Store> store, PmiJob job, std::chrono::milliseconds timeout)
    : store_(std::move(store)), job_(std::move(job)), timeout_(timeout) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0)
    fail(Fault::resource, "start-up: no socket to start an MPI with; are too many files open?");
  thread_ = std::thread([this] { serve(); });
}

PmiServer::~PmiServer() {
  shutdown(ends_[1], SHUT_RDWR);   // ends the thread's read
  thread_.join();
  close(ends_[0]);
  close(ends_[1]);
}

void PmiServer::run(const std::function<void()>& init, const Watches& others) const {
  const Environment ours({{"PMI_FD", str(ends_[0])},
                          {"PMI_RANK", str(job_.rank)},
                          {"PMI_SIZE", str(job_.nodes.size())}});
  const StartDeadline deadline(job_.rank, "MPI has not started", timeout_, others);
  init();
}

void PmiServer::finish(const std::function<void()>& finalize) {
  ending_ = true;
  finalize();
  store_.reset();   // the thread needs it no more: all meetings are over
}

void PmiServer::serve() {
  std::string waiting;
  char piece[4096];
  while (true) {
    const ssize_t n = read(ends_[1], piece, sizeof(piece));
    if (n <= 0) return;
    waiting.append(piece, static_cast<std::size_t>(n));
    std::size_t end = 0;
    while ((end = waiting.find('\n')) != std::string::npos) {
      const std::string reply = answer(waiting.substr(0, end));
      waiting.erase(0, end + 1);
      if (!reply.empty() && !send_line(ends_[1], reply + "\n")) return;
    }
  }
}

std::string PmiServer::answer(const std::string& line) {
  const std::string command = field(line, "cmd");
  try {
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    if (command == "get_maxes")
      return str("cmd=maxes rc=0 kvsname_max=", kNameMax, " keylen_max=", kKeyMax,
                 " vallen_max=", kValueMax);
    if (command == "get_appnum") return "cmd=appnum rc=0 appnum=0";
    if (command == "get_my_kvsname") return str("cmd=my_kvsname rc=0 kvsname=", job_.name);
    if (command == "get_universe_size")
      return str("cmd=universe_size rc=0 size=", job_.nodes.size());
    if (command == "put") {
      store_->set(key(field(line, "key")), field(line, "value"));
      return "cmd=put_result rc=0 msg=success";
    }
    if (command == "get") return reply_to_get(field(line, "key"));
    if (command == "barrier_in") {
      meet();
      return "cmd=barrier_out rc=0";
    }
    if (command == "finalize") return "cmd=finalize_ack rc=0";
    if (command == "abort") return {};   // the MPI has said why, and ends the process
    return str("cmd=", command, "_result rc=-1 msg=unknown");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paceline: rank %d: starting MPI through the store failed. %s\n",
                 job_.rank, error.what());
    const std::string what = command == "barrier_in" ? "barrier_out" : command + "_result";
    return str("cmd=", what, " rc=-1 msg=failed");
  }
}

std::string PmiServer::reply_to_get(const std::string& wanted) {
  const auto found = [](const std::string& value) {
    return "cmd=get_result rc=0 msg=success value=" + value;
  };
  const std::string none = "cmd=get_result rc=-1 msg=key_not_found";
  if (wanted == "PMI_process_mapping") {
    const std::string mapping = process_mapping(job_.nodes);
    return mapping.size() < kValueMax ? found(mapping) : none;
  }
  // Keys of launchers are not waited for; some rank puts every other key.
  if (wanted.starts_with("PMI_")) return none;
  return found(store_->get(key(wanted), timeout_));
}

// Rank 0 hears from all ranks, then tells all: a store has no counters.
void PmiServer::meet() {
  const std::string turn = str("barrier/", turn_++, "/");
  try {
    if (job_.rank != 0) {
      store_->set(key(turn + str(job_.rank)), "here");
      store_->get(key(turn + "all"), timeout_);
      return;
    }
    for (std::size_t r = 1; r < job_.nodes.size(); ++r) store_->get(key(turn + str(r)), timeout_);
    store_->set(key(turn + "all"), "here");
  } catch (const std::exception&) {
    if (!ending_) throw;
  }
}

std::string PmiServer::key(const std::string& of) const {
  return str("paceline/", job_.name, "/", of);
}

}  // namespace paceline
