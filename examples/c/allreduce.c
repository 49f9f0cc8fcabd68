// Sums of vectors over all ranks, in the three ways that there are.
//
//   cc allreduce.c $(pkg-config --cflags --libs paceline) -o allreduce
//   paceline run -n 2 ./allreduce
#include <paceline/paceline.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 100000, kSteps = 10 };

// Ends the program with the library's message where a call failed; the others are told.
static void check(paceline_status status) {
  if (status == PACELINE_OK) return;
  fprintf(stderr, "%s\n", paceline_error());
  exit(status);
}

static void fill(float* x, float value) {
  for (int i = 0; i < kCount; ++i) x[i] = value;
}

static float gradient[kCount], weights[kCount];

int main(void) {
  paceline_comm* world;
  check(paceline_init(&world));
  const int rank = paceline_rank(world), size = paceline_size(world);

  // Blocking, in place: input and output are the same buffer.
  fill(gradient, (float)(rank + 1));
  check(paceline_allreduce(world, gradient, gradient, kCount, PACELINE_F32, PACELINE_SUM));
  printf("rank %d of %d: blocking %g\n", rank, size, gradient[0]);

  // Non-blocking: the gradients are summed while the rank computes something else.
  paceline_call call = {.size = sizeof call, .collective = PACELINE_ALLREDUCE,
                        .type = PACELINE_F32, .op = PACELINE_AVERAGE, .input = gradient,
                        .output = gradient, .count = kCount};
  paceline_request* request;
  fill(gradient, (float)rank);
  check(paceline_start(world, &call, &request));
  for (int i = 0; i < kCount; ++i) weights[i] = 1.0f / (float)(i + 1);
  check(paceline_wait(&request));
  printf("rank %d of %d: overlapped %g\n", rank, size, gradient[0]);

  // Persistent: set up once, started in every step.
  paceline_plan* plan;
  check(paceline_plan_create(world, &call, &plan));
  for (int step = 0; step < kSteps; ++step) {
    fill(gradient, (float)(step + rank));
    check(paceline_plan_start(plan, &request));
    check(paceline_wait(&request));
    for (int i = 0; i < kCount; ++i) weights[i] -= 0.01f * gradient[i];
  }
  printf("rank %d of %d: planned %g\n", rank, size, gradient[0]);

  check(paceline_plan_free(&plan));
  check(paceline_finalize(&world));
  return 0;
}
