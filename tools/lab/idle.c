/* Lets ranks that wait for the network rest a moment: LD_PRELOADed into the processes of the lab.
 *
 * All nodes share the cores of one machine. A rank that polls without pause, as MPIs do where each
 * has a core of its own, takes the core from the one that it waits for. After kPatience looks in
 * vain at sockets every further look of a thread waits for them: for kNap at most, since the
 * message may come another way, or as long as IDLE_NAP_NS says. A thread that only yields the
 * core, without a look in between, sleeps for kNap.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPatience = 4, kNap = 50000 /* ns */ };

static __thread int vain, looks;

static struct timespec nap(void) {
  static long ns;
  if (!ns) {
    const char* said = getenv("IDLE_NAP_NS");
    ns = said ? atol(said) : 0;
    if (ns <= 0) ns = kNap;
  }
  return (struct timespec){0, ns};
}

/* True if the next look is to wait. */
static int is_vain(int found, int timeout) {
  ++looks;
  if (found != 0) vain = 0;
  return found == 0 && timeout == 0 && ++vain > kPatience;
}

static int ended(int found) {
  if (found > 0) vain = 0;
  return found < 0 ? 0 : found;   /* interrupted: nothing was found */
}

/* The function of that name that would have been called. */
#define NEXT(name)                                                            \
  static __typeof__(&name) next;                                              \
  if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int epoll_pwait(int set, struct epoll_event* events, int most, int timeout, const sigset_t* mask) {
  NEXT(epoll_pwait);
  const int found = next(set, events, most, timeout, mask);
  if (!is_vain(found, timeout)) return found;
  const struct timespec most_ns = nap();
  return ended((int)syscall(SYS_epoll_pwait2, set, events, most, &most_ns, mask, _NSIG / 8));
}

int epoll_wait(int set, struct epoll_event* events, int most, int timeout) {
  return epoll_pwait(set, events, most, timeout, 0);
}

int poll(struct pollfd* sockets, nfds_t count, int timeout) {
  NEXT(poll);
  const int found = next(sockets, count, timeout);
  if (!is_vain(found, timeout)) return found;
  const struct timespec most_ns = nap();
  return ended(ppoll(sockets, count, &most_ns, 0));
}

int sched_yield(void) {
  const struct timespec rest = {0, kNap};
  if (!looks && ++vain > kPatience) nanosleep(&rest, 0);
  looks = 0;
  return (int)syscall(SYS_sched_yield);
}
