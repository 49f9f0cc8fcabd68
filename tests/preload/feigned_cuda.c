/* libcuda.so.1 without a GPU, as far as the drop-in library asks it. What it calls device memory
   ends whoever touches it: the data lie elsewhere, and only cuMemcpy finds them, in a thread with
   the context. Managed memory is for both. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 64, INVALID_VALUE = 1, INVALID_CONTEXT = 201 };
enum { CONTEXT = 1, MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE = 2 };

static struct {
  char *shown, *data;
  size_t bytes;
  int is_managed;
} blocks[MOST];
static int count, copies, context;
static __thread void* current;

void* feigned_alloc(size_t bytes, int is_managed) {
  const int any = MAP_PRIVATE | MAP_ANONYMOUS, both = PROT_READ | PROT_WRITE;
  blocks[count].data = mmap(NULL, bytes, both, any, -1, 0);
  blocks[count].shown = is_managed ? blocks[count].data : mmap(NULL, bytes, PROT_NONE, any, -1, 0);
  blocks[count].bytes = bytes, blocks[count].is_managed = is_managed;
  return blocks[count++].shown;
}

/* Host memory, whole pages of it, is the device's from now on. */
void feigned_take(void* shown, size_t bytes) {
  void* const data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(data, shown, bytes);
  mprotect(shown, bytes, PROT_NONE);
  blocks[count].shown = shown, blocks[count].data = data, blocks[count++].bytes = bytes;
}

int feigned_copies(void) { return copies; }

static int block_of(uintptr_t address) {
  for (int i = 0; i < count; ++i)
    if (address - (uintptr_t)blocks[i].shown < blocks[i].bytes) return i;
  return -1;
}

int cuPointerGetAttributes(unsigned asked, const int* names, void** values, uintptr_t address) {
  const int block = block_of(address);
  for (unsigned i = 0; i < asked; ++i) {
    if (names[i] == MEMORY_TYPE) *(unsigned*)values[i] = block < 0 ? 0 : DEVICE;
    else if (names[i] == IS_MANAGED) *(unsigned*)values[i] = block >= 0 && blocks[block].is_managed;
    else if (names[i] == CONTEXT) *(void**)values[i] = block < 0 ? NULL : &context;
    else return INVALID_VALUE;
  }
  return 0;
}

static char* data_at(uintptr_t address) {
  const int block = block_of(address);
  if (block < 0) return (char*)address;
  return blocks[block].data + (address - (uintptr_t)blocks[block].shown);
}

int cuMemcpy(uintptr_t to, uintptr_t from, size_t bytes) {
  if (current != &context) return INVALID_CONTEXT;
  memcpy(data_at(to), data_at(from), bytes);
  ++copies;
  return 0;
}

int cuStreamSynchronize(void* stream) {
  return stream || current != &context ? INVALID_CONTEXT : 0;
}

int cuCtxPushCurrent_v2(void* pushed) {
  current = pushed;
  return 0;
}

int cuCtxPopCurrent_v2(void** popped) {
  *popped = current, current = NULL;
  return 0;
}
