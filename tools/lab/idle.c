/* Lets ranks that wait for the network rest a moment: LD_PRELOADed into the processes of the lab.
 *
 * All nodes share the cores of one machine. A rank that polls without pause, as MPIs do where each
 * has a core of its own, takes the core from the one that it waits for. After kPatience looks in
 * vain at sockets a thread sleeps for kNap before every further one; so does who only offers the
 * core to others, without a look in between.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPatience = 4, kNap = 50000 /* ns */ };

static __thread int vain, looks;

static void rest(void) {
  const struct timespec nap = {0, kNap};
  if (++vain > kPatience) nanosleep(&nap, 0);
}

static int looked(int found, int waits) {
  ++looks;
  if (found != 0)
    vain = 0;
  else if (!waits)
    rest();
  return found;
}

/* The function of that name that would have been called. */
#define NEXT(name)                                                            \
  static __typeof__(&name) next;                                              \
  if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int epoll_wait(int set, struct epoll_event* events, int most, int timeout) {
  NEXT(epoll_wait);
  return looked(next(set, events, most, timeout), timeout != 0);
}

int epoll_pwait(int set, struct epoll_event* events, int most, int timeout, const sigset_t* mask) {
  NEXT(epoll_pwait);
  return looked(next(set, events, most, timeout, mask), timeout != 0);
}

int poll(struct pollfd* sockets, nfds_t count, int timeout) {
  NEXT(poll);
  return looked(next(sockets, count, timeout), timeout != 0);
}

int sched_yield(void) {
  if (!looks) rest();
  looks = 0;
  return (int)syscall(SYS_sched_yield);
}
