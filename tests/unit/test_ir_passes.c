/* The pass runner and the target-independent passes: what they may not change (results, by the
 * interpreter, on random modules), what they do (tests/ir/pass_*.tir), and how fast. */
#include "help_gen_ir.h"
#include "help_rt.h"
#include "help_run_ir.h"

#include "base/num.h"
#include "ir/interp.h"
#include "ir/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- before equals after ---- */

static struct hm_memory before_mem, after_mem;

static void compare_memory(const struct ir_module *before, const struct ir_module *after,
                           const struct hm_memory *x, const struct hm_memory *y, uint64_t seed,
                           struct arena *a) {
  const char *difference = hm_difference(before, x, y, a);
  if (difference)
    fail_msg("seed %llu: %s\n%s\n---- after\n%s", (unsigned long long)seed, difference,
             hm_text(before, a), hm_text(after, a));
}

static void check_seed(uint64_t seed, const struct ir_pass *passes, uint32_t n, bool integers,
                       uint32_t *counts) {
  struct help_arena h;
  struct diag_sink diags;
  help_arena_init(&h);
  assert_true(diag_init(&diags, &mem_libc));
  /* With any bits in memory the order of a dot's sum shows; with small integers it cannot. */
  struct gen_ir g = {
      .seed = seed, .n_ops = 150, .max_depth = 3, .plain_dots = !integers, .exact_dots = integers};
  struct ir_module *m = gen_ir(&h.arena, &g);
  if (!ir_verify(m, &diags)) {
    hm_print_diags(&diags);
    fail_msg("seed %llu: the generated module is not valid\n%s", (unsigned long long)seed,
             hm_text(m, &h.arena));
  }
  struct ir_module *before = ir_clone(m, &h.arena);
  struct ir_run_options opt = {.debug = seed % 4 == 0 ? "roundtrip,clone" : NULL};
  if (!ir_run_passes(m, passes, n, &diags, &opt)) {
    hm_print_diags(&diags);
    fail_msg("seed %llu: passes failed\n%s", (unsigned long long)seed, hm_text(before, &h.arena));
  }
  hm_fill(before, &before_mem, seed, integers ? HM_INTEGERS : HM_BITS);
  hm_fill(before, &after_mem, seed, integers ? HM_INTEGERS : HM_BITS);
  if (!hm_run(before, &before_mem, INTERP_ROUNDED, &diags) ||
      !hm_run(m, &after_mem, INTERP_ROUNDED, &diags)) {
    hm_print_diags(&diags);
    fail_msg("seed %llu: not interpreted\n%s", (unsigned long long)seed, hm_text(m, &h.arena));
  }
  compare_memory(before, m, &before_mem, &after_mem, seed, &h.arena);
  for (uint32_t i = 0; i < IR_OPCODE_COUNT; i++)
    counts[i] += g.count[i];
  diag_free(&diags);
  arena_free(&h.arena);
}

static uint64_t first_seed(void) {
  const char *s = getenv("KILN_SEED");
  return s ? strtoull(s, NULL, 0) : 1;
}

static uint64_t n_seeds(uint64_t otherwise) {
  const char *s = getenv("KILN_SEEDS");
#ifdef KILN_STRESS
  otherwise /= 5;
#endif
  return s ? strtoull(s, NULL, 0) : otherwise;
}

/* Each pass alone, pairs, and the whole pipeline. */
static void test_before_equals_after(void **state) {
  (void)state;
  uint32_t n, counts[IR_OPCODE_COUNT] = {0};
  const struct ir_pass *all = ir_tile_pipeline(&n);
  for (uint64_t seed = first_seed(); seed < first_seed() + n_seeds(1500); seed++) {
    uint32_t k = (uint32_t)(seed % (n + 2));
    if (k < n)
      check_seed(seed, all + k, 1, seed & 8, counts);
    else
      check_seed(seed, all, n, seed & 8, counts);
  }
  for (unsigned op = 1; op < IR_OPCODE_COUNT; op++) {
    const struct ir_opinfo *info = ir_info((enum ir_opcode)op);
    if ((info->stages >> IR_TILE_STAGE & 1) && !counts[op])
      fail_msg("the generator never made `%s`", info->name);
  }
}

/* A second run of the pipeline finds nothing left to do. */
static void test_settles(void **state) {
  (void)state;
  for (uint64_t seed = first_seed(); seed < first_seed() + n_seeds(200); seed++) {
    struct help_arena h;
    struct diag_sink diags;
    help_arena_init(&h);
    assert_true(diag_init(&diags, &mem_libc));
    struct gen_ir g = {.seed = seed, .n_ops = 60, .max_depth = 3};
    struct ir_module *m = gen_ir(&h.arena, &g);
    uint32_t n;
    const struct ir_pass *passes = ir_tile_pipeline(&n);
    for (int round = 0; round < 3; round++)
      assert_true(ir_run_passes(m, passes, n, &diags, NULL));
    struct ir_module *before = ir_clone(m, &h.arena);
    assert_true(ir_run_passes(m, passes, n, &diags, NULL));
    struct strbuf why = {.arena = &h.arena};
    if (!ir_equal(before, m, &why))
      fail_msg("seed %llu: %s\n%s\n----\n%s", (unsigned long long)seed, sb_str(&why),
               hm_text(before, &h.arena), hm_text(m, &h.arena));
    diag_free(&diags);
    arena_free(&h.arena);
  }
}

/* ---- folding against the interpreter ---- */

/* One kernel per (op, dtype): out[i] = op(constants), stored; run as it is and after folding. */
/* The first two: in f16 their fma with the second rounds twice if done in f32. */
static const double fold_values[] = {0x1.ff8p-12,
                                     0x1.004p0,
                                     0.0,
                                     -0.0,
                                     1.0,
                                     -1.0,
                                     -7.0,
                                     0.1,
                                     255.0,
                                     70000.0,
                                     1e-42,
                                     1e38,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     (double)NAN};
static const int64_t fold_ints[] = {0,  1,   -1,   2,         7,         -8,       63,
                                    64, 127, -128, INT32_MAX, INT64_MAX, INT64_MIN};

static bool rule_takes(enum ir_opcode op, enum dtype t) {
  struct help_arena h;
  struct diag_sink diags;
  help_arena_init(&h);
  assert_true(diag_init(&diags, &mem_libc));
  struct ir_module *m = ir_module_new(&h.arena, IR_TILE_STAGE);
  struct ir_builder b = {.m = m, .block = m->body};
  struct ir_val v = ir_const_int(&b, t, 1), in[3] = {v, v, v};
  ir_build1(&b, op, ir_scalar(t), ir_info(op)->n_in, in);
  m->kernel = symtab_get(m->syms, "k");
  m->n_grid = 1;
  m->grid[0] = expr_const(&m->exprs, 1);
  ir_add_arg(m, m->body, ir_scalar(DT_INDEX));
  ir_build(&b, IR_RETURN, 0, NULL, 0, NULL);
  bool ok = ir_verify(m, &diags);
  diag_free(&diags);
  arena_free(&h.arena);
  return ok;
}

/* Stores the rows of results, row by row, into O[rows]. */
static void fold_case(enum ir_opcode op, enum dtype t, enum dtype r) {
  struct help_arena h;
  struct diag_sink diags;
  help_arena_init(&h);
  assert_true(diag_init(&diags, &mem_libc));
  struct ir_module *m = ir_module_new(&h.arena, IR_TILE_STAGE);
  enum dtype mem = r == DT_INDEX ? DT_S64 : r; /* index is no type of memory */
  struct ir_arg o = {.name = symtab_get(m->syms, "O"),
                     .kind = IR_ARG_OUT,
                     .dtype = mem,
                     .rank = 1,
                     .present = true};
  uint32_t n = dtype_is_float(t) ? COUNT(fold_values) : COUNT(fold_ints), total = 0;
  o.dim[0] = expr_const(&m->exprs, 4000);
  VEC_PUSH(&h.arena, &m->args, o);
  m->kernel = symtab_get(m->syms, "fold");
  m->n_grid = 1;
  m->grid[0] = expr_const(&m->exprs, 1);
  struct ir_type view = {.kind = IR_VIEW, .dtype = (uint8_t)mem, .rank = 1, .dim = {IR_DYN}};
  int64_t one[1] = {1};
  struct ir_val out = ir_add_arg(m, m->body, view);
  ir_add_arg(m, m->body, ir_scalar(DT_INDEX));
  struct ir_builder b = {.m = m, .block = m->body};
  for (uint32_t x = 0; x < n; x++)
    for (uint32_t y = 0; y < (ir_info(op)->n_in > 1 ? n : 1); y++) {
      struct ir_val in[3];
      for (uint32_t k = 0; k < 3; k++) {
        uint32_t at = k == 0 ? x : k == 1 ? y : (x + y) % n;
        int64_t cell = 0;
        num_store_int(t, &cell, 0, fold_ints[at % COUNT(fold_ints)]);
        in[k] = dtype_is_float(t) ? ir_const_num(&b, t, fold_values[at])
                                  : ir_const_int(&b, t, num_load_int(t, &cell, 0));
      }
      struct ir_val v = ir_build1(&b, op, ir_scalar(r), ir_info(op)->n_in, in);
      if (r != mem)
        v = ir_build1(&b, IR_CAST, ir_scalar(mem), 1, &v);
      v = ir_build1(&b, IR_SPLAT, ir_tile(mem, 1, one), 1, &v);
      struct ir_val args[3] = {out, ir_const_int(&b, DT_INDEX, total++), v};
      ir_build(&b, IR_STORE, 3, args, 0, NULL);
    }
  ir_build(&b, IR_RETURN, 0, NULL, 0, NULL);
  struct ir_module *before = ir_clone(m, &h.arena);
  uint32_t n_passes;
  const struct ir_pass *passes = ir_tile_pipeline(&n_passes);
  hm_fill(m, &before_mem, 1, HM_INTEGERS);
  hm_fill(m, &after_mem, 1, HM_INTEGERS);
  if (!ir_run_passes(m, passes, n_passes, &diags, NULL) ||
      !hm_run(before, &before_mem, INTERP_ROUNDED, &diags) ||
      !hm_run(m, &after_mem, INTERP_ROUNDED, &diags)) {
    hm_print_diags(&diags);
    fail_msg("%s of %s", ir_info(op)->name, dtype_name(t));
  }
  compare_memory(before, m, &before_mem, &after_mem, 0, &h.arena);
  diag_free(&diags);
  arena_free(&h.arena);
}

static void test_folds_as_interpreted(void **state) {
  (void)state;
  for (unsigned op = 1; op < IR_OPCODE_COUNT; op++)
    for (unsigned t = 0; t < DT_COUNT; t++) {
      const struct ir_opinfo *info = ir_info((enum ir_opcode)op);
      bool elementwise = info->n_out == 1 && info->n_in >= 1 && info->n_in <= 3 &&
                         (info->stages >> IR_TILE_STAGE & 1) && !info->n_attrs && op != IR_SELECT &&
                         op != IR_CAST && !(op >= IR_EQ && op <= IR_GE);
      if (elementwise && rule_takes((enum ir_opcode)op, (enum dtype)t))
        fold_case((enum ir_opcode)op, (enum dtype)t, (enum dtype)t);
      if (op >= IR_EQ && op <= IR_GE && (t != DT_BOOL || op == IR_EQ || op == IR_NE))
        fold_case((enum ir_opcode)op, (enum dtype)t, DT_BOOL);
    }
  for (unsigned t = 0; t < DT_COUNT; t++)
    for (unsigned r = 0; r < DT_COUNT; r++)
      fold_case(IR_CAST, (enum dtype)t, (enum dtype)r);
}

/* ---- identities: x from memory against constants ---- */

/* A kernel with X in: t[16], O out: r[4000]. */
struct kernel {
  struct help_arena h;
  struct diag_sink diags;
  struct ir_module *m;
  struct ir_builder b;
  struct ir_val x, out; /* X as a tile; O */
  uint32_t total;       /* elements stored so far */
};

static void kernel_begin(struct kernel *k, enum dtype t, enum dtype r) {
  memset(k, 0, sizeof *k);
  help_arena_init(&k->h);
  assert_true(diag_init(&k->diags, &mem_libc));
  struct ir_module *m = k->m = ir_module_new(&k->h.arena, IR_TILE_STAGE);
  struct ir_arg args[2] = {
      {.name = symtab_get(m->syms, "X"), .dtype = t, .rank = 1},
      {.name = symtab_get(m->syms, "O"), .kind = IR_ARG_OUT, .dtype = r, .rank = 1}};
  for (int i = 0; i < 2; i++) {
    args[i].present = true;
    args[i].dim[0] = expr_const(&m->exprs, i ? 4000 : 16);
    VEC_PUSH(&k->h.arena, &m->args, args[i]);
    ir_add_arg(m, m->body,
               (struct ir_type){
                   .kind = IR_VIEW, .dtype = (uint8_t)args[i].dtype, .rank = 1, .dim = {IR_DYN}});
  }
  m->kernel = symtab_get(m->syms, "identities");
  m->n_grid = 1;
  m->grid[0] = expr_const(&m->exprs, 1);
  ir_add_arg(m, m->body, ir_scalar(DT_INDEX));
  k->b = (struct ir_builder){.m = m, .block = m->body};
  k->out = ir_block_at(m, m->body)->args.at[1];
  struct ir_val in[2] = {ir_block_at(m, m->body)->args.at[0], ir_const_int(&k->b, DT_INDEX, 0)};
  int64_t n = 16;
  k->x = ir_build1(&k->b, IR_LOAD, ir_tile(t, 1, &n), 2, in);
}

static void kernel_store(struct kernel *k, struct ir_val v) {
  struct ir_val in[3] = {k->out, ir_const_int(&k->b, DT_INDEX, k->total), v};
  ir_build(&k->b, IR_STORE, 3, in, 0, NULL);
  k->total += 16;
  assert_true(k->total <= 4000);
}

static void kernel_end(struct kernel *k, const char *what) {
  struct ir_module *m = k->m;
  enum dtype t = m->args.at[0].dtype;
  ir_build(&k->b, IR_RETURN, 0, NULL, 0, NULL);
  struct ir_module *before = ir_clone(m, &k->h.arena);
  hm_fill(m, &before_mem, 1, HM_INTEGERS);
  for (uint32_t i = 0; i < 16; i++)
    if (dtype_is_float(t))
      num_store(t, before_mem.bytes[0], i, fold_values[i % COUNT(fold_values)]);
    else
      num_store_int(t, before_mem.bytes[0], i, fold_ints[i % COUNT(fold_ints)]);
  if (t == DT_E5M2)
    before_mem.bytes[0][15] = 0x7c; /* an infinity, which a store would saturate */
  hm_fill(m, &after_mem, 1, HM_INTEGERS);
  memcpy(after_mem.bytes[0], before_mem.bytes[0], HM_MAX_BYTES);
  uint32_t n;
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  if (!ir_run_passes(m, passes, n, &k->diags, NULL) ||
      !hm_run(before, &before_mem, INTERP_ROUNDED, &k->diags) ||
      !hm_run(m, &after_mem, INTERP_ROUNDED, &k->diags)) {
    hm_print_diags(&k->diags);
    fail_msg("%s of %s", what, dtype_name(t));
  }
  compare_memory(before, m, &before_mem, &after_mem, 0, &k->h.arena);
  diag_free(&k->diags);
  arena_free(&k->h.arena);
}

static void identity_case(enum ir_opcode op, enum dtype t, enum dtype r) {
  struct kernel k;
  int64_t n16 = 16;
  struct ir_type tile = ir_tile(t, 1, &n16), result = ir_tile(r, 1, &n16);
  kernel_begin(&k, t, r);
  uint32_t n = dtype_is_float(t) ? COUNT(fold_values) : COUNT(fold_ints);
  if (ir_info(op)->n_in == 1) {
    struct ir_val once = ir_build1(&k.b, op, result, 1, &k.x);
    kernel_store(&k, ir_type_eq(tile, result) ? ir_build1(&k.b, op, result, 1, &once) : once);
    for (unsigned inner = IR_NEG; inner <= IR_ABS; inner++)
      if (rule_takes((enum ir_opcode)inner, t) && ir_type_eq(tile, result)) {
        struct ir_val y = ir_build1(&k.b, (enum ir_opcode)inner, tile, 1, &k.x);
        kernel_store(&k, ir_build1(&k.b, op, result, 1, &y));
      }
  }
  for (uint32_t i = 0; i < n && ir_info(op)->n_in == 2; i++) {
    int64_t cell = 0;
    num_store_int(t, &cell, 0, fold_ints[i % COUNT(fold_ints)]);
    struct ir_val c = dtype_is_float(t) ? ir_const_num(&k.b, t, fold_values[i])
                                        : ir_const_int(&k.b, t, num_load_int(t, &cell, 0));
    c = ir_build1(&k.b, IR_SPLAT, tile, 1, &c);
    struct ir_val right[2] = {k.x, c}, left[2] = {c, k.x}, same[2] = {k.x, k.x};
    struct ir_val once = ir_build1(&k.b, op, result, 2, right);
    kernel_store(&k, once);
    kernel_store(&k, ir_build1(&k.b, op, result, 2, left));
    if (i == 0)
      kernel_store(&k, ir_build1(&k.b, op, result, 2, same));
    if (ir_type_eq(tile, result)) { /* (x op c) op c: reassociation */
      struct ir_val twice[2] = {once, c};
      kernel_store(&k, ir_build1(&k.b, op, result, 2, twice));
    }
  }
  kernel_end(&k, ir_info(op)->name);
}

static void test_identities_keep_every_bit(void **state) {
  (void)state;
  for (unsigned op = 1; op < IR_OPCODE_COUNT; op++)
    for (unsigned t = 0; t < DT_COUNT; t++) {
      const struct ir_opinfo *info = ir_info((enum ir_opcode)op);
      bool compares = op >= IR_EQ && op <= IR_GE;
      bool elementwise = info->n_out == 1 && (info->n_in == 1 || info->n_in == 2) &&
                         (info->stages >> IR_TILE_STAGE & 1) && !info->n_attrs && op != IR_CAST;
      if (t == DT_INDEX || !elementwise)
        continue;
      if (compares ? (t != DT_BOOL || op == IR_EQ || op == IR_NE)
                   : rule_takes((enum ir_opcode)op, (enum dtype)t))
        identity_case((enum ir_opcode)op, (enum dtype)t, compares ? DT_BOOL : (enum dtype)t);
    }
}

/* x to b to c, for every pair that can be in memory at both ends. */
static void test_casts_of_casts(void **state) {
  (void)state;
  int64_t n = 16;
  for (unsigned a = 0; a < DT_COUNT; a++)
    for (unsigned c = 0; c < DT_COUNT; c++) {
      struct kernel k;
      if (a == DT_INDEX || c == DT_INDEX)
        continue;
      kernel_begin(&k, (enum dtype)a, (enum dtype)c);
      for (unsigned b = 0; b < DT_COUNT; b++) {
        struct ir_val v = ir_build1(&k.b, IR_CAST, ir_tile((enum dtype)b, 1, &n), 1, &k.x);
        kernel_store(&k, ir_build1(&k.b, IR_CAST, ir_tile((enum dtype)c, 1, &n), 1, &v));
      }
      kernel_end(&k, "cast");
    }
}

/* Casts of casts: every value of the first type through the second must be what it was. */
static void test_holds_all(void **state) {
  (void)state;
  for (unsigned from = 0; from < DT_COUNT; from++)
    for (unsigned to = 0; to < DT_COUNT; to++) {
      enum dtype f = (enum dtype)from, t = (enum dtype)to;
      if (dtype_bits(f) > 16)
        continue;
      bool all = true;
      for (uint32_t bits = 0; bits < 1u << dtype_bits(f); bits++) {
        uint64_t x = bits, y = 0;
        double v = num_load(f, &x, 0);
        if (isnan(v) || isinf(v))
          continue;
        num_store(t, &y, 0, v);
        all = all && num_load(t, &y, 0) == v;
      }
      if (f == DT_BOOL)
        all = true; /* 0 and 1 */
      /* Whether bool holds another type is never asked for; e4m3 and e5m2 hold small integers. */
      if (ir_holds_all(t, f) && !all)
        fail_msg("%s does not hold every value of %s", dtype_name(t), dtype_name(f));
      if (!ir_holds_all(t, f) && all && t != DT_BOOL && dtype_bits(t) >= 16)
        fail_msg("%s holds every value of %s", dtype_name(t), dtype_name(f));
    }
}

/* ---- the runner ---- */

static const char gemm[] =
    "kiln-ir 1 tile\nkernel gemm {\n  arg A: in f32 [M]\n  arg C: out f32 [M]\n  dims M\n"
    "  grid 1\n  body(%0: view f32(?), %1: view f32(?), %2: index, %3: index) {\n"
    "    %4 = const 0 : index\n    %5 = const 1 : index\n    %6 = add %4, %5 : index\n"
    "    %7 = load %0, %6 : f32(4)\n    store %1, %4, %7\n    return\n  }\n}\n";

struct runner {
  struct help_arena h;
  struct diag_sink diags;
  struct ir_module *m;
  struct strbuf dumped;
};

static void dump(void *user, const char *text) {
  sb_puts(user, text);
}

static void runner_begin(struct runner *r) {
  help_arena_init(&r->h);
  assert_true(diag_init(&r->diags, &mem_libc));
  r->m = ir_parse(&r->h.arena, &r->diags, 0, gemm, sizeof gemm - 1);
  assert_non_null(r->m);
  r->dumped = (struct strbuf){.arena = &r->h.arena};
}

static void runner_end(struct runner *r) {
  diag_free(&r->diags);
  arena_free(&r->h.arena);
}

static bool run(struct runner *r, const struct ir_pass *passes, uint32_t n, const char *debug) {
  struct ir_run_options opt = {.debug = debug, .dump = dump, .user = &r->dumped};
  return ir_run_passes(r->m, passes, n, &r->diags, &opt);
}

static bool breaks_it(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  (void)ctx;
  *changed = true;
  ir_remove(m, ir_block_at(m, m->body)->first); /* its result is used */
  return true;
}

static bool lies(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  (void)ctx;
  (void)changed;
  struct ir_builder b = {.m = m, .block = m->body, .before = ir_block_at(m, m->body)->last};
  ir_const_int(&b, DT_INDEX, 5);
  return true;
}

static bool gives_up(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  (void)m, (void)ctx, (void)changed;
  return false;
}

static bool refuses(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  (void)m, (void)changed;
  diag_report(ctx->diags, DIAG_ERROR, DIAG_LIMIT, DIAG_NOWHERE, "too much of it");
  return false;
}

static bool uses_scratch(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  (void)m, (void)changed;
  memset(arena_get(ctx->scratch, 1 << 20), 1, 1 << 20);
  return ctx->scratch->total < 3 << 20; /* of 8 runs, if it were never reset: 8 MiB */
}

static void test_verifies_after_each_pass(void **state) {
  (void)state;
  struct runner r;
  const struct ir_pass bad[] = {{"bad", breaks_it, false}};
  runner_begin(&r);
  assert_false(run(&r, bad, 1, NULL));
  help_expect_diag(&r.diags, DIAG_IR_INVALID, "used before it is defined");
  help_expect_diag(&r.diags, DIAG_INTERNAL, "pass `bad` left an invalid module");
  const struct diag *d = &VEC_LAST(&r.diags.list);
  assert_int_equal(d->notes.n, 1);
  assert_non_null(strstr(d->notes.at[0].text, "; ^ add: operand 1 is used before it is defined"));
  runner_end(&r);
}

static void test_verifies_before_the_first(void **state) {
  (void)state;
  struct runner r;
  uint32_t n;
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  runner_begin(&r);
  r.m->n_grid = 0;
  assert_false(run(&r, passes, n, NULL));
  help_expect_diag(&r.diags, DIAG_IR_INVALID, "the grid has 0 axes");
  runner_end(&r);
}

static void test_reports_failures(void **state) {
  (void)state;
  struct runner r;
  const struct ir_pass silent[] = {{"silent", gives_up, false}},
                       loud[] = {{"loud", refuses, false}};
  runner_begin(&r);
  assert_false(run(&r, silent, 1, NULL));
  help_expect_diag(&r.diags, DIAG_INTERNAL, "pass `silent` failed without a reason");
  runner_end(&r);
  runner_begin(&r);
  assert_false(run(&r, loud, 1, NULL));
  assert_int_equal(r.diags.n_errors, 1);
  help_expect_diag(&r.diags, DIAG_LIMIT, "too much of it");
  runner_end(&r);
}

static void test_sees_silent_changes(void **state) {
  (void)state;
  struct runner r;
  const struct ir_pass liar[] = {{"liar", lies, false}};
  runner_begin(&r);
  assert_false(run(&r, liar, 1, "roundtrip"));
  help_expect_diag(&r.diags, DIAG_INTERNAL, "pass `liar` changed the module without saying so");
  runner_end(&r);
  runner_begin(&r); /* only that mode looks */
  assert_true(run(&r, liar, 1, NULL));
  runner_end(&r);
}

static void test_modes(void **state) {
  (void)state;
  struct runner r;
  uint32_t n;
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  runner_begin(&r);
  assert_true(run(&r, passes, n, "print:after=cse"));
  assert_true(str_starts(sb_str(&r.dumped), "; after cse\nkiln-ir 1 tile\n"));
  assert_null(strstr(sb_str(&r.dumped), "after dce"));
  runner_end(&r);

  runner_begin(&r);
  assert_true(run(&r, passes, n, "print:after=all,roundtrip,clone"));
  for (uint32_t i = 0; i < n; i++) {
    char head[40];
    snprintf(head, sizeof head, "; after %s\n", passes[i].name);
    assert_non_null(strstr(sb_str(&r.dumped), head));
  }
  runner_end(&r);

  runner_begin(&r); /* the sum of constants stays */
  assert_true(run(&r, passes, n, "skip=canonicalise,skip=dce"));
  assert_non_null(strstr(hm_text(r.m, &r.h.arena), " = add "));
  runner_end(&r);

  runner_begin(&r); /* canonicalise folds it, dce would remove what it leaves */
  assert_true(run(&r, passes, n, "stop-after=canonicalise"));
  assert_null(strstr(hm_text(r.m, &r.h.arena), " = add "));
  assert_non_null(strstr(hm_text(r.m, &r.h.arena), "const 0"));
  runner_end(&r);

  runner_begin(&r);
  assert_true(run(&r, passes, n, "timing"));
  assert_non_null(strstr(sb_str(&r.dumped), "; dce: "));
  assert_non_null(strstr(sb_str(&r.dumped), " us, "));
  runner_end(&r);

  runner_begin(&r);
  assert_false(run(&r, passes, n, "roundtrip,sideways"));
  help_expect_diag(&r.diags, DIAG_USAGE, "`sideways` is no IR debug mode");
  runner_end(&r);
}

static void test_scratch_is_reset(void **state) {
  (void)state;
  struct runner r;
  struct ir_pass passes[8];
  for (int i = 0; i < 8; i++)
    passes[i] = (struct ir_pass){"scratch", uses_scratch, false};
  runner_begin(&r);
  assert_true(run(&r, passes, 8, NULL));
  runner_end(&r);
}

/* ---- time ---- */

/* Of this process alone: the machine may be busy. */
static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Milliseconds of the pipeline on n ops, the best of three. */
static double pipeline_ms(uint32_t n_ops) {
  double best = 1e9;
  for (int i = 0; i < 3; i++) {
    struct help_arena h;
    struct diag_sink diags;
    help_arena_init(&h);
    assert_true(diag_init(&diags, &mem_libc));
    struct gen_ir g = {.seed = 3, .n_ops = n_ops, .max_depth = 4};
    struct ir_module *m = gen_ir(&h.arena, &g);
    uint32_t n;
    const struct ir_pass *passes = ir_tile_pipeline(&n);
    double start = now_ms();
    assert_true(ir_run_passes(m, passes, n, &diags, NULL));
    double spent = now_ms() - start;
    best = spent < best ? spent : best;
    diag_free(&diags);
    arena_free(&h.arena);
  }
  return best;
}

static void test_time_is_linear(void **state) {
  (void)state;
#ifdef KILN_STRESS
  printf("SKIP: growth of one at a time is not linear\n");
  skip();
#endif
  double small = pipeline_ms(10000), large = pipeline_ms(100000);
  printf("pipeline: 10^4 ops %.1f ms, 10^5 ops %.1f ms\n", small, large);
  /* Ten times the ops; a quadratic step would show as a hundredfold. */
  assert_true(large < small * 40 + 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_before_equals_after),
      cmocka_unit_test(test_settles),
      cmocka_unit_test(test_folds_as_interpreted),
      cmocka_unit_test(test_holds_all),
      cmocka_unit_test(test_identities_keep_every_bit),
      cmocka_unit_test(test_casts_of_casts),
      cmocka_unit_test(test_verifies_after_each_pass),
      cmocka_unit_test(test_verifies_before_the_first),
      cmocka_unit_test(test_reports_failures),
      cmocka_unit_test(test_sees_silent_changes),
      cmocka_unit_test(test_modes),
      cmocka_unit_test(test_scratch_is_reset),
      cmocka_unit_test(test_time_is_linear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
