/* The choice of meta-parameters by the cost model: what is known to be good at the shapes that were
 * measured, what was given stays, costs grow with sizes, variants are bounded, and what the model
 * says nothing of keeps the first legal values. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct choice {
  long bm, bn, bk, split_k;
  double us; /* 0: not modelled */
  char text[4096];
};

struct fixture {
  struct help_api t;
  struct kiln_file *file;
};

static void begin(struct fixture *f) {
  help_api_start(&f->t, NULL);
  help_api_expect(&f->t,
                  kiln_file_load(f->t.ctx, KILN_SRC_DIR "/kernels_ref/gemm.lua", NULL, &f->file),
                  KILN_OK, NULL);
}

static void end(struct fixture *f) {
  kiln_file_free(f->file);
  help_api_stop(&f->t);
}

static long number_after(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static struct kiln_variant *specialise(struct fixture *f, long m, long n, long k, const char *set,
                                       const char *dtype, bool epilogue) {
  static const char *const absent[] = {"bias", "R"};
  char shape[64];
  const char *shapes[1] = {shape}, *sets[1] = {set}, *consts[1] = {dtype};
  struct kiln_request req = help_api_request();
  snprintf(shape, sizeof shape, "M=%ld", m);
  char n_text[64], k_text[64];
  snprintf(n_text, sizeof n_text, "N=%ld", n);
  snprintf(k_text, sizeof k_text, "K=%ld", k);
  const char *all[3] = {shapes[0], n_text, k_text};
  req.kernel = "gemm";
  req.target = "sm_90a";
  req.shapes = all;
  req.n_shapes = 3;
  req.set = sets;
  req.n_set = set != NULL;
  req.consts = consts;
  req.n_consts = dtype != NULL;
  req.absent = absent;
  req.n_absent = epilogue ? 0 : 2;
  return help_api_specialise(f->file, &req);
}

static void choose(struct fixture *f, long m, long n, long k, const char *set, const char *dtype,
                   bool epilogue, struct choice *out) {
  struct kiln_variant *v = specialise(f, m, n, k, set, dtype, epilogue);
  const char *text;
  help_api_expect(&f->t, kiln_show(v, "schedule", NULL, &text), KILN_OK, NULL);
  const char *tiles = strstr(text, "\ntiles: ");
  assert_non_null(tiles);
  snprintf(out->text, sizeof out->text, "%s", tiles + 1);
  out->bm = number_after(tiles, "BM = ");
  out->bn = number_after(tiles, "BN = ");
  out->bk = number_after(tiles, "BK = ");
  const char *first = strstr(tiles, "\n  ");
  out->us = first ? strtod(first, NULL) : 0;
  out->split_k = number_after(tiles, "split_k = ");
  /* What is said is what was compiled. */
  const char *knobs = strstr(text, "split_k = ");
  if (out->split_k > 1)
    assert_int_equal(number_after(text, "split_k = "), out->split_k);
  else
    assert_true(!knobs || knobs > tiles || number_after(text, "split_k = ") == 1);
  kiln_variant_free(v);
}

/* Parts meet in a cluster where they find room beside three slots; operands that one row of tiles
 * reads and L2 cannot hold go past it; what is given stays. */
static void test_clusters_and_streams(void **state) {
  (void)state;
  static const struct {
    long m, n, k;
    const char *set;
    long split_k, cluster, stream; /* -1: not in the schedule */
  } rows[] = {
      {64, 4096, 14336, NULL, 2, 1, 0},
      {64, 2048, 14336, NULL, 4, 1, 0},
      {64, 4096, 14336, "split_cluster=0", 2, 0, 0},
      {64, 4096, 14336, "split_k=2", 2, -1, 0},
      {64, 4096, 14336, "stream_axis=1", 2, 1, 1},
      {16, 6144, 4096, NULL, 2, 1, -1},    /* 50 MB of weights: L2 keeps most */
      {256, 4096, 14336, NULL, 2, -1, -1}, /* sums of two blocks would leave two slots */
      {128, 28672, 4096, NULL, -1, -1, 0},
      {4096, 64, 4096, NULL, 2, 1, -1},
      {4096, 64, 14336, NULL, 2, 1, 1}, /* the other operand */
      {4096, 4096, 4096, NULL, -1, -1, -1},
  };
  struct fixture f;
  begin(&f);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *text;
    struct kiln_variant *v =
        specialise(&f, rows[i].m, rows[i].n, rows[i].k, rows[i].set, NULL, false);
    help_api_expect(&f.t, kiln_show(v, "schedule", NULL, &text), KILN_OK, NULL);
    char *knobs = strdup(strstr(text, "\nknobs: "));
    knobs[1 + strcspn(knobs + 1, "\n")] = 0;
    if (number_after(knobs, "split_k = ") != rows[i].split_k ||
        number_after(knobs, "split_cluster = ") != rows[i].cluster ||
        number_after(knobs, "stream_axis = ") != rows[i].stream)
      fail_msg("row %zu: %s", i, text);
    free(knobs);
    kiln_variant_free(v);
  }
  end(&f);
}

/* Tiles that an H200 ran at 0.95 of cuBLASLt's fastest of eight or better. */
static void test_known_good(void **state) {
  (void)state;
  static const struct {
    long m, n, k, bm, bn, split_k;
  } rows[] = {
      {4096, 4096, 4096, 128, 256, 1},  {8192, 8192, 8192, 128, 256, 1},
      {4096, 10240, 8192, 128, 256, 1}, {2048, 28672, 4096, 128, 256, 1},
      {8192, 8192, 28672, 128, 256, 1}, {1024, 1024, 1024, 128, 64, 1},
      {512, 4096, 4096, 128, 128, 1},   {128, 28672, 4096, 128, 224, 1},
      {64, 4096, 14336, 64, 64, 2},
  };
  struct fixture f;
  struct choice c;
  begin(&f);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    choose(&f, rows[i].m, rows[i].n, rows[i].k, NULL, NULL, false, &c);
    if (c.bm != rows[i].bm || c.bn != rows[i].bn || c.bk != 64 || c.split_k != rows[i].split_k)
      fail_msg("%ld x %ld x %ld: %s", rows[i].m, rows[i].n, rows[i].k, c.text);
  }
  /* 16 rows: few of a tile's 128 rows hold data, and 48 such tiles leave most SMs idle. */
  choose(&f, 16, 6144, 4096, NULL, NULL, false, &c);
  if (c.bm != 64 || ((6144 + c.bn - 1) / c.bn) * c.split_k < 90)
    fail_msg("%s", c.text);
  end(&f);
}

static void test_epilogue(void **state) {
  (void)state;
  struct fixture f;
  struct choice plain, more;
  begin(&f);
  choose(&f, 4096, 4096, 4096, NULL, NULL, false, &plain);
  choose(&f, 4096, 4096, 4096, NULL, NULL, true, &more);
  assert_int_equal(more.bm, 128);
  assert_int_equal(more.bn, 256);
  assert_true(more.us > plain.us);
  end(&f);
}

/* More rows, columns or products never cost less, but for steps of rounding to tiles. */
static void test_monotone(void **state) {
  (void)state;
  struct fixture f;
  struct choice c;
  begin(&f);
  for (int dim = 0; dim < 3; dim++) {
    double before = 0;
    for (long size = 64; size <= 16384; size *= 2) {
      choose(&f, dim == 0 ? size : 2048, dim == 1 ? size : 2048, dim == 2 ? size : 2048, NULL, NULL,
             false, &c);
      if (c.us < before * 0.98)
        fail_msg("dim %d = %ld: %g us after %g\n%s", dim, size, c.us, before, c.text);
      before = c.us;
    }
  }
  end(&f);
}

static void test_given_stays(void **state) {
  (void)state;
  struct fixture f;
  struct choice c;
  begin(&f);
  choose(&f, 4096, 4096, 4096, "BN=64", NULL, false, &c);
  assert_int_equal(c.bn, 64);
  assert_int_equal(c.bm, 256); /* the larger of the legal ones: less traffic */
  choose(&f, 64, 4096, 14336, "split_k=1", NULL, false, &c);
  assert_int_equal(c.split_k, 1);
  choose(&f, 64, 4096, 14336, "split_k=4", NULL, false, &c);
  assert_int_equal(c.split_k, 4);
  choose(&f, 4096, 4096, 4096, "BM=192", NULL, false, &c); /* any value of the list's kind */
  assert_int_equal(c.bm, 192);
  end(&f);
}

static void test_not_modelled(void **state) {
  (void)state;
  struct fixture f;
  struct choice c;
  begin(&f);
  static const struct {
    long m;
    const char *set, *dtype, *says;
  } rows[] = {
      {4096, NULL, "T=f32", "the first legal values: it does not become warp-specialised"},
      {4096, "warpgroups=0", NULL, "the first legal values: it does not become warp-specialised"},
      {0, NULL, NULL, "the first legal values: "},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    choose(&f, rows[i].m, 4096, 4096, rows[i].set, rows[i].dtype, false, &c);
    if (c.bm != 128 || c.bn != 128 || c.bk != 64 || c.us != 0 || !strstr(c.text, rows[i].says))
      fail_msg("row %zu: %s", i, c.text);
  }
  end(&f);
}

/* ---- how many variants there are ---- */

struct key {
  char hex[33];
};

static int by_text(const void *a, const void *b) {
  return strcmp(((const struct key *)a)->hex, ((const struct key *)b)->hex);
}

/* M = 1 .. 4096, one at a time: 9 classes of divisibility, and at most a dozen choices in each. */
static void test_bounded(void **state) {
  (void)state;
  enum { SIZES = 4096, MOST = 9 * 12 };
  struct fixture f;
  struct key *keys = calloc(SIZES, sizeof *keys);
  assert_non_null(keys);
  begin(&f);
  uint32_t n = 1;
  for (long m = 1; m <= SIZES; m++) {
    struct kiln_variant *v = specialise(&f, m, 4096, 4096, NULL, NULL, false);
    help_api_expect(&f.t, kiln_variant_key(v, keys[m - 1].hex), KILN_OK, NULL);
    kiln_variant_free(v);
  }
  qsort(keys, SIZES, sizeof *keys, by_text);
  for (uint32_t i = 1; i < SIZES; i++)
    n += strcmp(keys[i].hex, keys[i - 1].hex) != 0;
  print_message("%u variants of 4096 sizes\n", n);
  if (n > MOST)
    fail_msg("%u variants, more than %d", n, MOST);
  free(keys);
  end(&f);
}

/* The choice for a size that comes again is the first one's, word for word. */
static void test_remembered(void **state) {
  (void)state;
  struct fixture f;
  struct choice a, b, other;
  begin(&f);
  choose(&f, 4096, 4096, 4096, NULL, NULL, false, &a);
  choose(&f, 64, 4096, 14336, NULL, NULL, false, &other);
  choose(&f, 4096, 4096, 4096, NULL, NULL, false, &b);
  assert_string_equal(a.text, b.text);
  assert_string_not_equal(a.text, other.text);
  choose(&f, 4080, 4096, 4096, NULL, NULL, false, &b); /* another class of divisibility */
  assert_int_equal(b.bn, a.bn);
  end(&f);
}

/* No request for memory that fails leaves anything behind, or changes what is chosen. */
static void test_no_memory(void **state) {
  (void)state;
  struct fixture f;
  struct choice c;
  begin(&f);
  for (uint64_t at = 1; at < 4000; at += 37) {
    struct kiln_request req = help_api_request();
    static const char *const shapes[] = {"M=512", "N=4096", "K=4096"};
    struct kiln_variant *v;
    req.kernel = "gemm";
    req.target = "sm_90a";
    req.shapes = shapes;
    req.n_shapes = 3;
    kiln_file_free(f.file);
    help_api_expect(&f.t,
                    kiln_file_load(f.t.ctx, KILN_SRC_DIR "/kernels_ref/gemm.lua", NULL, &f.file),
                    KILN_OK, NULL);
    f.t.requests = 0;
    f.t.fail_at = at;
    enum kiln_status st = kiln_specialise(f.file, &req, &v);
    bool reached = f.t.requests >= at;
    f.t.fail_at = 0;
    if (st != KILN_OK)
      assert_int_equal(st, KILN_NO_MEMORY);
    kiln_diag_clear(f.t.ctx);
    kiln_variant_free(v);
    if (!reached)
      break;
  }
  choose(&f, 512, 4096, 4096, NULL, NULL, false, &c);
  assert_int_equal(c.bn, 128);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_good),  cmocka_unit_test(test_clusters_and_streams),
      cmocka_unit_test(test_epilogue),    cmocka_unit_test(test_monotone),
      cmocka_unit_test(test_given_stays), cmocka_unit_test(test_not_modelled),
      cmocka_unit_test(test_bounded),     cmocka_unit_test(test_remembered),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
