/* In a launcher, which has the stub too: says that a program is linked statically and so gets
   nothing from LD_PRELOAD. It runs without a dynamic linker, so that only its launcher can tell. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int is_launcher(const char* name) {
  static const char* const kLaunchers[] = {"mpiexec", "mpirun", "orterun", "prterun", "srun"};
  for (size_t i = 0; i < sizeof kLaunchers / sizeof *kLaunchers; ++i) {
    const size_t length = strlen(kLaunchers[i]);
    if (strncmp(name, kLaunchers[i], length) == 0 && (name[length] == 0 || name[length] == '.'))
      return 1;
  }
  return 0;
}

/* True for a program of this machine's kind that names no dynamic linker. */
static int is_static(int file) {
  ElfW(Ehdr) head;
  if (pread(file, &head, sizeof head, 0) != (ssize_t)sizeof head ||
      memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)))
    return 0;
  for (int i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) part;
    const off_t at = (off_t)head.e_phoff + i * (off_t)sizeof part;
    if (pread(file, &part, sizeof part, at) != (ssize_t)sizeof part || part.p_type == PT_INTERP)
      return 0;
  }
  return head.e_phnum > 0;
}

static void look_at(const char* word) {
  if (!strchr(word, '/') || strstr(word, ".so") || access(word, X_OK) != 0) return;
  const int file = open(word, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  if (is_static(file))
    fprintf(stderr,
            "paceline: preload: %s is linked statically, so that LD_PRELOAD does nothing in it: "
            "Paceline serves none of its calls. Link it dynamically.\n", word);
  close(file);
}

/* glibc passes main()'s arguments to constructors. */
__attribute__((constructor)) static void look_at_programs(int argc, char** argv) {
  if (argc < 1 || !is_launcher(program_invocation_short_name)) return;
  for (int i = 1; i < argc; ++i) look_at(argv[i]);
}
