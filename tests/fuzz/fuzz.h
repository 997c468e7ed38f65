/* What the fuzz targets share. A target takes bytes, must not crash whatever they are, and aborts
 * when a promise is broken. With libFuzzer (preset `fuzz`) it runs for as long as one likes:
 *   build/fuzz/fuzz/fuzz_ir -max_total_time=600 NEW_FOLDER tests/fuzz/corpus/ir
 * In every other build replay.c runs it over the corpus, in ctest. */
#ifndef KILN_TESTS_FUZZ_H
#define KILN_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Always on: a fuzz target's promise is not an assertion about callers. */
#define PROMISE(cond)                                                                              \
  do {                                                                                             \
    if (!(cond)) {                                                                                 \
      fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #cond);                   \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

#endif
