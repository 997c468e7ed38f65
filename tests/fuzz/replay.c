/* Runs a fuzz target over files, without libFuzzer: each file as it is, cut short, and with bytes
 * changed, in a fixed sequence. KILN_LONG=1 makes more of the changed ones.
 *   fuzz_x FILE_OR_FOLDER... */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static unsigned changed_per_file = 6;
static unsigned long files, runs;

/* A copy in a block of just this size: reading past the end is then seen by AddressSanitizer. */
static void run(const uint8_t *data, size_t n) {
  uint8_t *exact = malloc(n ? n : 1);
  PROMISE(exact != NULL);
  if (n)
    memcpy(exact, data, n);
  LLVMFuzzerTestOneInput(exact, n);
  free(exact);
  runs++;
}

static uint64_t next_random(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *seed >> 33;
}

static void run_changed(const uint8_t *data, size_t n) {
  if (n == 0)
    return;
  uint64_t seed = n;
  uint8_t *copy = malloc(n);
  PROMISE(copy != NULL);
  for (unsigned i = 0; i < changed_per_file; i++) {
    run(data, (size_t)next_random(&seed) % n); /* cut short */
    memcpy(copy, data, n);
    for (unsigned k = 0; k <= i % 3; k++) {
      size_t at = (size_t)next_random(&seed) % n;
      /* Another byte of the text keeps it closer to something meaningful than a random one. */
      copy[at] = i % 2 ? data[(size_t)next_random(&seed) % n] : (uint8_t)next_random(&seed);
    }
    run(copy, n);
    /* A stretch of the text moved elsewhere. */
    memcpy(copy, data, n);
    size_t len = (size_t)next_random(&seed) % (n < 64 ? n : 64);
    size_t from = (size_t)next_random(&seed) % (n - len),
           to = (size_t)next_random(&seed) % (n - len);
    memmove(copy + to, data + from, len);
    run(copy, n);
  }
  free(copy);
}

static void run_file(const char *path) {
  FILE *f = fopen(path, "rb");
  PROMISE(f != NULL);
  static uint8_t data[1 << 20];
  size_t n = fread(data, 1, sizeof data, f);
  fclose(f);
  files++;
  run(data, n);
  run_changed(data, n);
}

static void run_path(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0)
    return; /* a folder of seeds that this checkout does not have */
  if (!S_ISDIR(st.st_mode)) {
    run_file(path);
    return;
  }
  struct dirent **entry;
  int n = scandir(path, &entry, NULL, alphasort); /* sorted: the same order everywhere */
  for (int i = 0; i < n; i++) {
    char sub[4096];
    if (entry[i]->d_name[0] != '.') {
      snprintf(sub, sizeof sub, "%s/%s", path, entry[i]->d_name);
      run_path(sub);
    }
    free(entry[i]);
  }
  if (n >= 0)
    free(entry);
}

int main(int argc, char **argv) {
  const char *longer = getenv("KILN_LONG");
  if (longer && strcmp(longer, "1") == 0)
    changed_per_file = 500;
  for (int i = 1; i < argc; i++)
    run_path(argv[i]);
  printf("%lu files, %lu inputs\n", files, runs);
  PROMISE(files > 0);
  return 0;
}
