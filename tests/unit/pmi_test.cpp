// The launcher that we are to an MPI: what it answers over its socket, and what it does when the
// store fails.
#include "transport/mpi/pmi.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.hpp"

namespace paceline {
namespace {

using namespace std::chrono_literals;

// A rank's MPI, as far as it talks to its launcher.
class Client {
 public:
  explicit Client(const PmiServer& server) : to_(server.descriptor()) {}

  void tell(const std::string& text) const {
    REQUIRE(write(to_, text.data(), text.size()) == ssize_t(text.size()));
  }
  std::string hear() const {
    std::string line;
    for (char c = 0; read(to_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  std::string ask(const std::string& line) const {
    tell(line + "\n");
    return hear();
  }

 private:
  int to_;
};

struct Job {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::vector<int> nodes{0, 1};
  PmiServer first{store, {"job7", 0, nodes}, 5000ms};
  PmiServer second{store, {"job7", 1, nodes}, 5000ms};
  Client a{first}, b{second};
};

class BrokenStore : public Store {
 public:
  void set(const std::string&, const std::string&) override { fail(Fault::lost, "it is gone."); }
  std::string get(const std::string&, std::chrono::milliseconds) override {
    fail(Fault::lost, "it is gone.");
  }
};

TEST_CASE("pmi: a rank learns who it is among whom") {
  Job job;
  CHECK(job.a.ask("cmd=init pmi_version=1 pmi_subversion=1") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
  CHECK(job.a.ask("cmd=get_my_kvsname") == "cmd=my_kvsname rc=0 kvsname=job7");
  CHECK(job.a.ask("cmd=get_universe_size") == "cmd=universe_size rc=0 size=2");
  CHECK(job.a.ask("cmd=get_appnum") == "cmd=appnum rc=0 appnum=0");
  CHECK(job.a.ask("cmd=get_maxes").starts_with("cmd=maxes rc=0 kvsname_max="));
  CHECK(job.b.ask("cmd=get kvsname=job7 key=PMI_process_mapping") ==
        "cmd=get_result rc=0 msg=success value=(vector,(0,2,1))");
  CHECK(job.b.ask("cmd=finalize") == "cmd=finalize_ack rc=0");
}

TEST_CASE("pmi: what one rank puts another gets, whenever it is there") {
  Job job;
  job.b.tell("cmd=get kvsname=job7 key=card-0\n");   // before it is put
  CHECK(job.a.ask("cmd=put kvsname=job7 key=card-0 value=a=b c") ==
        "cmd=put_result rc=0 msg=success");
  CHECK(job.b.hear() == "cmd=get_result rc=0 msg=success value=a=b c");
}

TEST_CASE("pmi: what only launchers know is answered at once") {
  Job job;
  CHECK(job.a.ask("cmd=get kvsname=job7 key=PMI_hwloc_xmlfile") ==
        "cmd=get_result rc=-1 msg=key_not_found");
  CHECK(job.a.ask("cmd=publish_name service=x port=y") ==
        "cmd=publish_name_result rc=-1 msg=unknown");
}

TEST_CASE("pmi: a line may come in pieces, and two at once") {
  Job job;
  job.a.tell("cmd=get_app");
  job.a.tell("num\ncmd=fin");
  CHECK(job.a.hear() == "cmd=appnum rc=0 appnum=0");
  job.a.tell("alize\n");
  CHECK(job.a.hear() == "cmd=finalize_ack rc=0");
}

TEST_CASE("pmi: nobody leaves a barrier before the last has come, in any turn") {
  Job job;
  for (int turn = 0; turn < 3; ++turn) {
    const auto& [early, late] = turn % 2 ? std::tie(job.a, job.b) : std::tie(job.b, job.a);
    early.tell("cmd=barrier_in\n");
    // It cannot be answered yet: later requests wait, too.
    CHECK(late.ask("cmd=get_appnum") == "cmd=appnum rc=0 appnum=0");
    CHECK(late.ask("cmd=barrier_in") == "cmd=barrier_out rc=0");
    CHECK(early.hear() == "cmd=barrier_out rc=0");
  }
}

TEST_CASE("pmi: a barrier without the others fails in time") {
  const auto store = std::make_shared<MemoryStore>();
  for (const int rank : {0, 1}) {
    PmiServer server(store, {str("alone", rank), rank, {0, 0}}, 50ms);
    CHECK(Client(server).ask("cmd=barrier_in") == "cmd=barrier_out rc=-1 msg=failed");
    CHECK(Client(server).ask("cmd=get_appnum") == "cmd=appnum rc=0 appnum=0");
  }
}

TEST_CASE("pmi: a store that breaks is an error, and none any more at the end") {
  PmiServer server(std::make_shared<BrokenStore>(), {"job", 1, {0, 0}}, 50ms);
  const Client client(server);
  CHECK(client.ask("cmd=put key=k value=v") == "cmd=put_result rc=-1 msg=failed");
  CHECK(client.ask("cmd=get key=k") == "cmd=get_result rc=-1 msg=failed");
  CHECK(client.ask("cmd=barrier_in") == "cmd=barrier_out rc=-1 msg=failed");
  server.finish([&] { CHECK(client.ask("cmd=barrier_in") == "cmd=barrier_out rc=0"); });
  CHECK(client.ask("cmd=finalize") == "cmd=finalize_ack rc=0");
}

TEST_CASE("pmi: the environment is ours while the MPI starts, and then as before") {
  setenv("PMI_RANK", "17", 1);
  setenv("PMIX_NAMESPACE", "theirs", 1);
  const PmiServer server(std::make_shared<MemoryStore>(), {"job", 2, {0, 0, 0}}, 50ms);
  server.run([&] {
    CHECK(std::string(getenv("PMI_RANK")) == "2");
    CHECK(std::string(getenv("PMI_SIZE")) == "3");
    CHECK(std::string(getenv("PMI_FD")) == str(server.descriptor()));
    CHECK(getenv("PMIX_NAMESPACE") == nullptr);
  });
  CHECK(std::string(getenv("PMI_RANK")) == "17");
  CHECK(std::string(getenv("PMIX_NAMESPACE")) == "theirs");
  CHECK(getenv("PMI_SIZE") == nullptr);
  unsetenv("PMI_RANK");
  unsetenv("PMIX_NAMESPACE");
}

TEST_CASE("pmi: an MPI that never starts does not hang the job") {
  const pid_t child = fork();
  if (child == 0) {
    PmiServer server(std::make_shared<MemoryStore>(), {"job", 0, {0}}, 50ms);
    server.run([] { sleep(20); });
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 1));
}

TEST_CASE("pmi: an MPI that waits for a rank that has ended does not hang the job") {
  const pid_t other = fork();
  if (other == 0) {
    usleep(300'000);
    _exit(0);
  }
  const Watches others{{3, std::make_shared<const ProcessWatch>(other)}};
  const pid_t child = fork();
  if (child == 0) {
    PmiServer server(std::make_shared<MemoryStore>(), {"job", 0, {0}}, 60s);
    server.run([] { sleep(40); }, others);
    _exit(0);
  }
  int status = 0;
  waitpid(other, &status, 0);
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 1));
}

TEST_CASE("pmi: the mapping says node by node who lives there") {
  CHECK(process_mapping({0}) == "(vector,(0,1,1))");
  CHECK(process_mapping({0, 0, 0}) == "(vector,(0,1,3))");
  CHECK(process_mapping({0, 0, 1, 1}) == "(vector,(0,2,2))");
  CHECK(process_mapping({0, 0, 1}) == "(vector,(0,1,2),(1,1,1))");
  CHECK(process_mapping({0, 0, 1, 1, 2, 3}) == "(vector,(0,2,2),(2,2,1))");
  CHECK(process_mapping({0, 1, 0}) == "(vector,(0,3,1))");
  CHECK(process_mapping({0, 1, 1, 0}) == "(vector,(0,4,1))");
}

}  // namespace
}  // namespace paceline
