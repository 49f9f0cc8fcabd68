// Elements of each type of MPI and the operations on them, with the sums that they must make. Data
// differ for every rank and index.
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int all, seed; /* ranks; another one for each call */

typedef struct {
  const char* name;
  MPI_Datatype type;
  size_t bytes;
  int kind; /* 'i', 'u': integers, 'j': not for logic, 'f': floats, 'B': bytes, 'b': bool */
} Element;

static Element elements[32];
static int element_count;

static void element(const char* name, MPI_Datatype type, size_t bytes, int kind) {
  const Element one = {name, type, bytes, kind};
  int size = 0;
  if (type == MPI_DATATYPE_NULL) return;
  MPI_Type_size(type, &size);
  if ((size_t)size == bytes) elements[element_count++] = one; /* else there is no Fortran */
}

static void list_elements(void) {
  element("float", MPI_FLOAT, 4, 'f'), element("double", MPI_DOUBLE, 8, 'f');
  element("schar", MPI_SIGNED_CHAR, 1, 'i'), element("uchar", MPI_UNSIGNED_CHAR, 1, 'u');
  element("short", MPI_SHORT, 2, 'i'), element("ushort", MPI_UNSIGNED_SHORT, 2, 'u');
  element("int", MPI_INT, 4, 'i'), element("unsigned", MPI_UNSIGNED, 4, 'u');
  element("long", MPI_LONG, sizeof(long), 'i');
  element("ulong", MPI_UNSIGNED_LONG, sizeof(long), 'u');
  element("llong", MPI_LONG_LONG, 8, 'i'), element("ullong", MPI_UNSIGNED_LONG_LONG, 8, 'u');
  element("int8", MPI_INT8_T, 1, 'i'), element("uint8", MPI_UINT8_T, 1, 'u');
  element("int16", MPI_INT16_T, 2, 'i'), element("uint16", MPI_UINT16_T, 2, 'u');
  element("int32", MPI_INT32_T, 4, 'i'), element("uint32", MPI_UINT32_T, 4, 'u');
  element("int64", MPI_INT64_T, 8, 'i'), element("uint64", MPI_UINT64_T, 8, 'u');
  element("aint", MPI_AINT, sizeof(MPI_Aint), 'j');
  element("byte", MPI_BYTE, 1, 'B'), element("bool", MPI_C_BOOL, 1, 'b');
  element("integer", MPI_INTEGER, 4, 'j'), element("real", MPI_REAL, 4, 'f');
  element("double precision", MPI_DOUBLE_PRECISION, 8, 'f');
}

typedef struct {
  const char* name;
  MPI_Op op;
  const char* kinds;
} Operation;

static int list_operations(Operation* ops) {
  const Operation list[] = {
      {"sum", MPI_SUM, "fiuj"},   {"prod", MPI_PROD, "fiuj"},  {"min", MPI_MIN, "fiuj"},
      {"max", MPI_MAX, "fiuj"},   {"land", MPI_LAND, "iub"},   {"lor", MPI_LOR, "iub"},
      {"lxor", MPI_LXOR, "iub"},  {"band", MPI_BAND, "iujB"},  {"bor", MPI_BOR, "iujB"},
      {"bxor", MPI_BXOR, "iujB"},
  };
  memcpy(ops, list, sizeof list);
  return (int)(sizeof list / sizeof *list);
}

static uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u, x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

/* Floats are small whole numbers, so that sums and products of few are exact in any order. */
static void fill(unsigned char* to, size_t count, const Element* e, int rank) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t x = mixed(((uint64_t)rank << 32 | i) + ((uint64_t)seed << 48));
    const double whole = 1 + (double)(x % 9);
    const float small = (float)whole;
    const uint64_t thin = x % 5 ? x : 0; /* some zeros, for the logical operations */
    const unsigned char truth = x & 1;
    const void* from = e->kind == 'b' ? (const void*)&truth : (const void*)&thin;
    if (e->kind == 'f') from = e->bytes == 8 ? (const void*)&whole : (const void*)&small;
    memcpy(to + i * e->bytes, from, e->bytes);
  }
}

/* One element as a number, and back. */
static double whole_of(const unsigned char* from, const Element* e) {
  float small;
  double whole;
  memcpy(&small, from, 4), memcpy(&whole, from, e->bytes == 8 ? 8 : 4);
  return e->bytes == 8 ? whole : (double)small;
}

static uint64_t bits_of(const unsigned char* from, const Element* e) {
  uint64_t bits = 0;
  memcpy(&bits, from, e->bytes);
  const int above = 64 - 8 * (int)e->bytes;
  const int has_sign = e->kind == 'i' || e->kind == 'j';
  return has_sign ? (uint64_t)((int64_t)(bits << above) >> above) : bits;
}

static double sum_of_floats(int o, double a, double b) {
  return o == 0 ? a + b : o == 1 ? a * b : o == 2 ? (a < b ? a : b) : (a > b ? a : b);
}

static uint64_t sum_of_bits(int o, uint64_t a, uint64_t b, const Element* e) {
  const int has_sign = e->kind == 'i' || e->kind == 'j';
  const int less = has_sign ? (int64_t)a < (int64_t)b : a < b;
  const uint64_t all_of_them[] = {a + b,  a * b,    less ? a : b, less ? b : a, a && b,
                                  a || b, !a != !b, a & b,        a | b,        a ^ b};
  return all_of_them[o];
}

/* Operation `o` of elements first .. first + n - 1 of all ranks. */
static void combine(unsigned char* to, const Element* e, int o, size_t first, size_t n) {
  const size_t length = (first + n) * e->bytes;
  unsigned char* row = malloc(length + 8);
  for (int r = 0; r < all; ++r) {
    fill(row, first + n, e, r);
    for (size_t i = 0; i < n; ++i) {
      const unsigned char* from = row + (first + i) * e->bytes;
      unsigned char* into = to + i * e->bytes;
      if (r == 0) {
        memcpy(into, from, e->bytes);
      } else if (e->kind == 'f') {
        const double whole = sum_of_floats(o, whole_of(into, e), whole_of(from, e));
        const float small = (float)whole;
        memcpy(into, e->bytes == 8 ? (const void*)&whole : (const void*)&small, e->bytes);
      } else {
        const uint64_t bits = sum_of_bits(o, bits_of(into, e), bits_of(from, e), e);
        memcpy(into, &bits, e->bytes);
      }
    }
  }
  free(row);
}
