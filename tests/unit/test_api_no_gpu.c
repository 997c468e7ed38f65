/* A driver without a GPU, as in many containers: a library in the driver's place that says so.
 * Nothing that needs no GPU is bothered by it, and what needs one says why there is none. The
 * command line is what is run: the library must be found by a fresh process. */
#include "help_api.h"

#include "runtime/abi_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char dir[] = "/tmp/kiln-api-XXXXXX";

/* All functions of the driver that Kiln looks for; cuInit gives `init`, and there are no
 * devices. */
static bool build_driver(int init) {
  char path[128], command[256];
  snprintf(path, sizeof path, "%s/driver.c", dir);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
#define X(member, symbol, result, params)                                                          \
  fprintf(f, "int %s(int *p) { return %d; }\n", #symbol, strcmp(#symbol, "cuInit") == 0 ? init : 0);
#define FUNCTIONS CUDA_FUNCTIONS(X)
  fprintf(f, "#define cuDriverGetVersion unused_version\n#define cuDeviceGetCount unused_count\n");
  FUNCTIONS
  fprintf(f, "#undef cuDriverGetVersion\n#undef cuDeviceGetCount\n"
             "int cuDriverGetVersion(int *v) { *v = 13000; return 0; }\n"
             "int cuDeviceGetCount(int *n) { *n = 0; return 0; }\n");
  assert_int_equal(fclose(f), 0);
  snprintf(command, sizeof command, "cc -shared -fPIC -w -o %s/libcuda.so.1 %s", dir, path);
  return system(command) == 0;
}

/* Runs `kiln <words>` with that driver; its output, errors included, and exit code. */
static int kiln(const char *words, char *said, size_t size) {
  char command[8192];
  snprintf(command, sizeof command, "LD_LIBRARY_PATH=%s '%s' %s 2>&1", dir, getenv("KILN"), words);
  FILE *p = popen(command, "r");
  assert_non_null(p);
  size_t n = fread(said, 1, size - 1, p);
  said[n] = 0;
  int status = pclose(p);
  return status >> 8;
}

static void expect(const char *words, int code, const char *pattern, const char *never) {
  char said[16384];
  int got = kiln(words, said, sizeof said);
  if (got != code || !help_api_matches(said, pattern) || (never && help_api_matches(said, never)))
    fail_msg("kiln %s: exit %d, expected %d with /%s/: %s", words, got, code, pattern, said);
}

static void test_no_device(void **state) {
  (void)state;
  if (!getenv("KILN")) {
    print_message("SKIP: KILN does not name the kiln executable\n");
    skip();
  }
  static const int inits[] = {100, 0}; /* CUDA_ERROR_NO_DEVICE; fine, with a count of 0 */
  for (int i = 0; i < 2; i++) {
    if (!build_driver(inits[i])) {
      print_message("SKIP: no C compiler\n");
      skip();
    }
    expect("doctor", 0, "\nGPU +none: the CUDA driver finds no GPU", "error:");
    expect("doctor --json", 0, "\"gpus\":\\[\\]", "error");
    expect("show '" KILN_SRC_DIR "/kernels_ref/softmax.lua' --stage machine", 0,
           "^kiln-ir 1 machine\n", "error:");
    expect("run '" KILN_SRC_DIR "/kernels_ref/softmax.lua' --shape M=3,N=40", 0,
           "on interpreter\n  verified", "error:");
    expect("run '" KILN_SRC_DIR "/kernels_ref/gemm.lua' --kernel gemm --shape M=3,N=4,K=5", 0,
           "on interpreter\n  verified", "error:");
    expect("run '" KILN_SRC_DIR "/kernels_ref/softmax.lua' --on gpu --shape M=3,N=40", 1,
           "^error: the CUDA driver finds no GPU.*K0901\\]\n$", NULL);
  }
}

static int make_dir(void **state) {
  (void)state;
  return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_device)};
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
