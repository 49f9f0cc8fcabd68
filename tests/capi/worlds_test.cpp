// Joining, splitting and leaving worlds.
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "ranks.hpp"

extern "C" {
extern const paceline_call kCallOfC;  // in_c.c
extern const size_t kSizesOfC[5];
}

namespace capi {
namespace {

// What a rank of this number contributes to a sum over who is in a communicator.
double sum_over(paceline_comm* comm, int rank) {
  double x = 1 << rank;
  CHECK_OK(paceline_allreduce(comm, &x, &x, 1, PACELINE_F64, PACELINE_SUM));
  return x;
}

TEST_CASE("the library is the header's") {
  CHECK(std::string(paceline_version()) == PACELINE_VERSION);
  CHECK(paceline_abi_version() == PACELINE_ABI);
}

TEST_CASE("C and C++ see the same structure and the same numbers") {
  const size_t sizes[] = {sizeof(paceline_call), sizeof(paceline_status),
                          sizeof(paceline_collective), sizeof(paceline_type), sizeof(paceline_op)};
  for (int i = 0; i < 5; ++i) CHECK(kSizesOfC[i] == sizes[i]);
  CHECK(kCallOfC.size == sizeof(paceline_call));
  CHECK(kCallOfC.collective == PACELINE_BARRIER);
  CHECK(kCallOfC.type == PACELINE_BOOL);
  CHECK(kCallOfC.op == PACELINE_LOGICAL_XOR);
  CHECK(kCallOfC.root == 1);
  CHECK(kCallOfC.count == 2);
  CHECK(std::string(kCallOfC.algorithm) == "some");
  CHECK(kCallOfC.segments == 3);
  CHECK(kCallOfC.window == 4);
  CHECK(kCallOfC.radix == 7);
  CHECK(kCallOfC.blocks == 8);
  CHECK(kCallOfC.uneven == 5);
  CHECK(kCallOfC.timeout_ms == 6);
  CHECK(kCallOfC.tag == 9);
  CHECK(kCallOfC.priority == -2);
}

TEST_CASE("a process that nobody launched is alone, as often as it likes") {
  for (int turn = 0; turn < 3; ++turn) {
    paceline_comm* world = nullptr;
    CHECK_OK(paceline_init(&world));
    CHECK(paceline_rank(world) == 0);
    CHECK(paceline_size(world) == 1);
    CHECK(sum_over(world, 3) == 8);
    CHECK_OK(paceline_finalize(&world));
    CHECK(world == nullptr);
  }
  paceline_comm* world = nullptr;
  CHECK_OK(paceline_init_store(nullptr, 0, 1, &world));
  CHECK(paceline_size(world) == 1);
  CHECK_OK(paceline_free(&world));
  CHECK(world == nullptr);
}

TEST_CASE("start-up that cannot work is an error with values") {
  paceline_comm* world = reinterpret_cast<paceline_comm*>(&world);
  CHECK_FAULT(paceline_init(nullptr), PACELINE_USAGE, "comm is null");
  CHECK_FAULT(paceline_init_store(nullptr, 0, 2, &world), PACELINE_USAGE, "2 ranks need a folder");
  CHECK(world == nullptr);
  CHECK_FAULT(paceline_init_store("/nowhere", 5, 3, &world), PACELINE_USAGE, "rank 5 of 3");
  CHECK_FAULT(paceline_init_store("/nowhere", -1, 3, &world), PACELINE_USAGE, "rank -1 of 3");
  CHECK_FAULT(paceline_init_store("/nowhere", 0, 0, &world), PACELINE_USAGE, "rank 0 of 0");
  CHECK_FAULT(paceline_init_store("/no/where", 0, 2, &world), PACELINE_RESOURCE, "/no/where");
  {
    const Variable ranks("PACELINE_RANKS", "2");
    CHECK_FAULT(paceline_init(&world), PACELINE_USAGE, "PACELINE_STORE is not set");
  }
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const Variable launched(name, "2");
    CHECK_FAULT(paceline_init(&world), PACELINE_REFUSAL, std::string(name) + "=2");
    CHECK_OK(paceline_init_store(nullptr, 0, 1, &world));
    CHECK_OK(paceline_finalize(&world));
  }
  CHECK_FAULT(paceline_init_mpi(nullptr, &world), PACELINE_REFUSAL, "no MPI is in this process");
  {
    const Variable wrong("PACELINE_SEGMENTS", "many");
    CHECK_FAULT(paceline_init(&world), PACELINE_USAGE, "PACELINE_SEGMENTS is 'many'");
  }
  {
    const Variable nowhere("PACELINE_SHM_DIR", "/no/memory");
    const Folder folder;
    CHECK_FAULT(paceline_init_store(folder.path(), 0, 1, &world), PACELINE_RESOURCE, "/no/memory");
  }
  {
    const Variable brief("PACELINE_START_TIMEOUT_MS", "100");
    const Folder folder;
    CHECK_FAULT(paceline_init_store(folder.path(), 0, 2, &world), PACELINE_TIMEOUT, "100 ms");
  }
  CHECK(world == nullptr);
}

TEST_CASE("split by colour and key; dup apart from its origin") {
  with_ranks(3, [](paceline_comm* world, int rank) {
    paceline_comm *part = nullptr, *none = reinterpret_cast<paceline_comm*>(&part), *copy = nullptr;
    CHECK_OK(paceline_split(world, rank == 1, -rank, &part));  // {2, 0} and {1}
    CHECK(paceline_size(part) == (rank == 1 ? 1 : 2));
    CHECK(paceline_rank(part) == (rank == 0 ? 1 : 0));
    CHECK(sum_over(part, rank) == (rank == 1 ? 2 : 5));
    CHECK_OK(paceline_split(world, rank == 2 ? -1 : 7, rank, &none));
    CHECK((none == nullptr) == (rank == 2));
    if (none) CHECK(sum_over(none, rank) == 3);

    CHECK_OK(paceline_dup(world, &copy));
    CHECK(paceline_rank(copy) == rank);
    std::vector<double> x(3, rank + 1.0);
    const paceline_call call = allreduce_of(x);
    paceline_request* request = nullptr;
    CHECK_OK(paceline_start(copy, &call, &request));
    CHECK(sum_over(world, rank) == 7);  // before the other one has ended
    CHECK_OK(paceline_wait(&request));
    CHECK(x[2] == 6.0);
    for (paceline_comm** comm : {&part, &none, &copy}) {
      CHECK_OK(paceline_free(comm));  // null as well
      CHECK(*comm == nullptr);
    }
  });
}

TEST_CASE("the world lives as long as something of it does") {
  with_ranks(2, [](paceline_comm* world, int rank) {
    paceline_comm* only = nullptr;
    CHECK_OK(paceline_dup(world, &only));
    paceline_comm* last = nullptr;
    CHECK_OK(paceline_dup(only, &last));
    CHECK_OK(paceline_free(&only));
    CHECK(sum_over(last, rank) == 3);
    CHECK_OK(paceline_free(&last));
    CHECK(sum_over(world, rank) == 3);
  });
}

TEST_CASE("finalize ends everything that was made in the world") {
  with_ranks(2, [](paceline_comm* world, int rank) {
    paceline_comm *copy = nullptr, *other = nullptr;
    CHECK_OK(paceline_dup(world, &copy));
    CHECK_OK(paceline_dup(world, &other));
    CHECK_OK(paceline_barrier(world));
    CHECK_OK(paceline_finalize(&copy));
    CHECK(copy == nullptr);
    CHECK_FAULT(paceline_barrier(other), PACELINE_USAGE, "left the world");
    CHECK(paceline_rank(other) == rank);  // what needs nobody still works
    CHECK_FAULT(paceline_dup(other, &copy), PACELINE_USAGE, "left the world");
    CHECK(copy == nullptr);
    CHECK_OK(paceline_free(&other));
    CHECK_OK(paceline_finalize(&other));  // null
  });
}

TEST_CASE("a flight record says what was called") {
  const Folder folder;
  with_ranks(2, [&](paceline_comm* world, int rank) {
    CHECK_OK(paceline_barrier(world));
    sum_over(world, 1);
    CHECK_OK(paceline_record(world, folder.path()));
    std::ifstream file(std::string(folder.path()) + "/rank-" + std::to_string(rank) + ".txt");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    CHECK(text.find("#1 barrier") != std::string::npos);
    CHECK(text.find("#2 allreduce of 1 ") != std::string::npos);
    CHECK_FAULT(paceline_record(world, ""), PACELINE_USAGE, "folder is empty");
    CHECK_FAULT(paceline_record(world, "/proc/nowhere"), PACELINE_RESOURCE, "cannot be written");
    CHECK_FAULT(paceline_record(nullptr, "x"), PACELINE_USAGE, "null");
  });
}

TEST_CASE("worlds of the launcher's store do not meet each other") {
  const Folder folder;
  const Variable store("PACELINE_STORE", folder.path());
  for (int turn = 0; turn < 3; ++turn) {
    paceline_comm* world = nullptr;
    CHECK_OK(paceline_init(&world));
    CHECK(sum_over(world, turn) == 1 << turn);
    CHECK_OK(paceline_finalize(&world));
  }
}

}  // namespace
}  // namespace capi
