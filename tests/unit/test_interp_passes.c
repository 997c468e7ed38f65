/* Passes and the text form keep the meaning: the interpreter gives the same bits before and after
 * each pass, after the whole pipeline, and after print and parse. On hand-made modules that are
 * full of what passes look for, and on every elementwise op applied to constants. */
#include "help_gen_ir.h"
#include "help_interp.h"
#include "help_ref.h"
#include "ir/passes.h"
#include "ir/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { MAX_ARGS = 16, ARG_BYTES = 1 << 17 };

/* Inputs and outputs of one run. */
struct data {
  unsigned char arg[MAX_ARGS][ARG_BYTES];
  struct interp_arg value[MAX_ARGS];
};

struct dims {
  const struct ir_module *m;
  int64_t value[HI_MAX_ARGS];
};

static bool look_up(void *user, const char *name, int64_t *value) {
  const struct dims *d = user;
  for (uint32_t k = 0; k < d->m->dims.n; k++)
    if (strcmp(ir_sym(d->m, d->m->dims.at[k]), name) == 0) {
      *value = d->value[k];
      return true;
    }
  return false;
}

/* What is under test, for messages: the seed of a generated module and its domain. */
static struct {
  uint64_t seed;
  enum interp_domain domain;
} now;

/* The element type of an argument's array. */
static enum dtype array_type(const struct ir_arg *a) {
  return now.domain == INTERP_ALGEBRAIC && dtype_is_float(a->dtype) ? DT_S64 : a->dtype;
}

/* Dense arguments for the given dims; integer-valued contents (payloads of all 64 bits in the
 * algebraic domain), outputs poisoned. */
static void fill(const struct ir_module *m, const struct dims *dims, uint64_t seed,
                 struct data *d) {
  assert_true(m->args.n <= MAX_ARGS);
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *a = &m->args.at[k];
    struct interp_arg *v = &d->value[k];
    *v = (struct interp_arg){0};
    if (!a->present)
      continue;
    if (a->kind == IR_ARG_SCALAR) {
      v->i =
          a->dtype == DT_BOOL ? (int64_t)(ref_random(&seed) & 1) : (int64_t)(ref_random(&seed) % 5);
      v->f = (double)v->i;
      continue;
    }
    int64_t dim[IR_MAX_RANK], n = 1;
    const char *why;
    for (uint32_t axis = 0; axis < a->rank; axis++) {
      assert_true(
          expr_eval(&m->exprs, a->dim[axis], look_up, (void *)(uintptr_t)dims, &dim[axis], &why));
      n *= dim[axis];
    }
    enum dtype t = array_type(a);
    assert_true(dtype_bytes(t, n) <= ARG_BYTES);
    memset(d->arg[k], 0x5a, (size_t)dtype_bytes(t, n));
    v->tensor = interp_dense(d->arg[k], t, a->rank, dim);
    for (int64_t i = 0; i < n && a->kind != IR_ARG_OUT; i++)
      if (t == a->dtype)
        ref_put(t, d->arg[k], i, (long double)(ref_random(&seed) % 5));
      else
        ref_put_bits(t, d->arg[k], i, ref_random(&seed));
  }
}

static void run(const struct ir_module *m, struct data *d) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct interp_options opt = {.max_steps = 2000000, .domain = now.domain};
  if (!interp_run(m, d->value, m->args.n, &opt, &diags, &mem_libc))
    fail_msg("seed %llu: run failed: %s", (unsigned long long)now.seed, help_last_message(&diags));
  diag_free(&diags);
}

/* The two runs left the same values everywhere; NaNs are one. */
static void compare(const struct ir_module *m, const struct data *a, const struct data *b,
                    const char *what) {
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *arg = &m->args.at[k];
    if (!arg->present || arg->kind == IR_ARG_SCALAR || arg->kind == IR_ARG_IN)
      continue;
    int64_t n = 1;
    for (uint32_t axis = 0; axis < arg->rank; axis++)
      n *= a->value[k].tensor.dim[axis];
    for (int64_t i = 0; i < n; i++) {
      enum dtype t = array_type(arg);
      long double x = ref_get(t, a->arg[k], i), y = ref_get(t, b->arg[k], i);
      if (!ref_same(x, y))
        fail_msg("seed %llu, %s: element %lld of '%s' was %.20Lg, is %.20Lg",
                 (unsigned long long)now.seed, what, (long long)i, ir_sym(m, arg->name), x, y);
    }
  }
}

static struct data before, after;

/* The clone of m after passes first..first+n-1 of the pipeline; *changed if it differs. */
static struct ir_module *pass_on(const struct ir_module *m, struct arena *a, uint32_t first,
                                 uint32_t n) {
  uint32_t all;
  const struct ir_pass *passes = ir_tile_pipeline(&all);
  assert_true(first + n <= all);
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct ir_module *copy = ir_clone(m, a);
  if (!ir_run_passes(copy, passes + first, n, &diags, NULL))
    fail_msg("pass failed: %s", help_last_message(&diags));
  diag_free(&diags);
  return copy;
}

static struct ir_module *reparsed(const struct ir_module *m, struct arena *a) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct strbuf text = {.arena = a};
  ir_print(m, (struct ir_print_options){0}, &text);
  struct ir_module *r = ir_parse(a, &diags, 0, sb_str(&text), text.n);
  if (!r)
    fail_msg("the printed module cannot be parsed: %s", help_last_message(&diags));
  diag_free(&diags);
  return r;
}

static void check_variant(const struct ir_module *m, const struct ir_module *variant,
                          const struct dims *dims, uint64_t seed, const char *what) {
  fill(m, dims, seed, &after);
  run(variant, &after);
  compare(m, &before, &after, what);
}

static void check_module(const struct ir_module *m, const struct dims *dims, uint64_t seed) {
  struct help_arena a;
  help_arena_init(&a);
  fill(m, dims, seed, &before);
  run(m, &before);
  check_variant(m, reparsed(m, &a.arena), dims, seed, "print and parse");
  uint32_t n;
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  for (uint32_t k = 0; k < n; k++)
    check_variant(m, pass_on(m, &a.arena, k, 1), dims, seed, passes[k].name);
  struct ir_module *all = pass_on(m, &a.arena, 0, n);
  check_variant(m, all, dims, seed, "the pipeline");
  check_variant(m, pass_on(all, &a.arena, 0, n), dims, seed, "the pipeline, twice");
  arena_free(&a.arena);
}

/* ---- constants: what is folded is what the interpreter would have computed ---- */

static const double float_constants[] = {0.0,      -0.0,     1.0,   -1.0,     1.5,      -3.0,
                                         0.1,      100.0,    448.0, -65504.0, 3e38,     0x1p-14,
                                         -0x1p-24, 0x1p-149, NAN,   HUGE_VAL, -HUGE_VAL};

static struct ir_val constant(struct hi *h, enum dtype t, size_t which, bool *ok) {
  static const int64_t ints[] = {0, 1, -1, 2, 3, -3, 7, -8, 8, 15, 100, -128, 255, 1000};
  *ok = true;
  if (dtype_is_float(t)) {
    *ok = which < COUNT(float_constants);
    return hi_num(h, t, *ok ? float_constants[which] : 0);
  }
  unsigned bits = dtype_bits(t);
  if (t == DT_BOOL) {
    *ok = which < 2;
    return ir_const_int(&h->b, t, (int64_t)(which & 1));
  }
  if (which < COUNT(ints))
    return ir_const_int(&h->b, t, ref_wrap(t, (uint64_t)ints[which]));
  *ok = which < COUNT(ints) + 2;
  uint64_t top = UINT64_C(1) << (bits - 1);
  return ir_const_int(&h->b, t, ref_wrap(t, which == COUNT(ints) ? top : top - 1));
}

/* Stores op(constants) for all pairs, one element each. t: operands; u: result. */
static void check_folding(enum ir_opcode op, enum dtype t, enum dtype u, bool folds) {
  struct hi h;
  hi_init(&h);
  uint32_t n_in = ir_info(op)->n_in;
  hi_tensor(&h, "O", IR_ARG_OUT, u, "N");
  hi_begin(&h, "1");
  int64_t at = 0, one = 1;
  bool ok = true;
  for (size_t i = 0; ok; i++) {
    struct ir_val x[3];
    x[0] = constant(&h, t, i, &ok);
    bool inner = ok;
    for (size_t j = 0; inner; j++) {
      x[1] = constant(&h, t, n_in > 1 ? j : 0, &inner);
      x[2] = constant(&h, t, 2, &(bool){0});
      if (!inner || (n_in == 1 && j))
        break;
      struct ir_val r = op == IR_CAST ? hi_cast(&h, u, x[0])
                        : n_in == 1   ? hi_op1(&h, op, x[0])
                        : n_in == 2   ? hi_op2(&h, op, x[0], x[1])
                                      : hi_op3(&h, op, x[0], x[1], x[2]);
      hi_store1(&h, 0, hi_index(&h, at++), hi_splat(&h, r, 1, &one));
    }
  }
  hi_end(&h);
  struct dims dims = {.m = h.m, .value = {at}};
  struct help_arena a;
  help_arena_init(&a);
  uint32_t n, left = 0;
  ir_tile_pipeline(&n);
  struct ir_module *m = pass_on(h.m, &a.arena, 0, n);
  char what[64];
  snprintf(what, sizeof what, "%s on %s", ir_info(op)->name, dtype_name(t));
  fill(h.m, &dims, 1, &before);
  run(h.m, &before);
  check_variant(h.m, m, &dims, 1, what);
  for (struct ir_op o = ir_block_at(m, m->body)->first; o.id; o = ir_op_at(m, o)->next)
    left += ir_op_at(m, o)->opcode == op;
  if (folds && left)
    fail_msg("%s: %u of %lld are not folded", what, left, (long long)at);
  arena_free(&a.arena);
  hi_free(&h);
}

static const enum dtype types[] = {DT_S4,  DT_U4,   DT_S8,   DT_U8,   DT_S32, DT_S64,
                                   DT_F16, DT_BF16, DT_E4M3, DT_E5M2, DT_F32, DT_F64};

static void test_folding(void **state) {
  (void)state;
  for (int op = IR_NO_OP + 1; op < IR_OPCODE_COUNT; op++) {
    int rule = ir_info((enum ir_opcode)op)->rule;
    bool any = rule == IR_RULE_arith, is_float = rule == IR_RULE_float_arith;
    bool is_int = rule == IR_RULE_int_arith || rule == IR_RULE_bits;
    bool compares = rule == IR_RULE_compare;
    if (!any && !is_float && !is_int && !compares)
      continue;
    for (size_t k = 0; k < COUNT(types); k++) {
      enum dtype t = types[k];
      if ((is_float && !dtype_is_float(t)) || (is_int && dtype_is_float(t)))
        continue;
      check_folding((enum ir_opcode)op, t, compares ? DT_BOOL : t, any || is_int || compares);
    }
  }
}

static void test_folding_of_bools(void **state) {
  (void)state;
  static const enum ir_opcode ops[] = {IR_AND, IR_OR, IR_XOR, IR_NOT, IR_EQ, IR_NE};
  for (size_t k = 0; k < COUNT(ops); k++)
    check_folding(ops[k], DT_BOOL, DT_BOOL, true);
}

static void test_folding_of_casts(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(types); k++) {
    for (size_t j = 0; j < COUNT(types); j++)
      check_folding(IR_CAST, types[k], types[j], true);
    check_folding(IR_CAST, types[k], DT_BOOL, true);
    check_folding(IR_CAST, DT_BOOL, types[k], true);
  }
}

/* ---- identities on values that are not constant, special ones among them ---- */

/* x op c, c op x, x op x, and op of op, for every elementwise op and dtype and telling constants;
 * x holds the special values. */
static void check_identities(enum ir_opcode op, enum dtype t, bool compares) {
  struct hi h;
  hi_init(&h);
  enum dtype u = compares ? DT_BOOL : t;
  uint32_t n_in = ir_info(op)->n_in;
  hi_tensor(&h, "X", IR_ARG_IN, t, "M");
  hi_tensor(&h, "O", IR_ARG_OUT, u, "N");
  hi_begin(&h, "1");
  enum { W = 24 };
  int64_t w = W, at = 0;
  struct ir_val x = hi_load1(&h, 0, hi_index(&h, 0), W);
  bool ok = true;
  for (size_t i = 0; ok && n_in > 1; i++) {
    struct ir_val c = hi_splat(&h, constant(&h, t, i, &ok), 1, &w);
    if (!ok)
      break;
    for (int turn = 0; turn < 2; turn++) {
      struct ir_val a = turn ? c : x, b = turn ? x : c;
      struct ir_val r = n_in == 2 ? hi_op2(&h, op, a, b) : hi_op3(&h, op, a, b, x);
      hi_store1(&h, 1, hi_index(&h, at), r);
      at += W;
      if (compares || n_in != 2)
        continue;
      hi_store1(&h, 1, hi_index(&h, at), hi_op2(&h, op, r, c));
      at += W;
    }
  }
  struct ir_val y = n_in == 1   ? hi_op1(&h, op, x)
                    : n_in == 2 ? hi_op2(&h, op, x, x)
                                : hi_op3(&h, op, x, x, x);
  hi_store1(&h, 1, hi_index(&h, at), y);
  at += W;
  if (n_in == 1) {
    hi_store1(&h, 1, hi_index(&h, at), hi_op1(&h, op, y));
    hi_store1(&h, 1, hi_index(&h, at + W), hi_op1(&h, op, hi_op1(&h, IR_NEG, x)));
    at += 2 * W;
  }
  hi_end(&h);
  struct help_arena a;
  help_arena_init(&a);
  struct dims dims = {.m = h.m, .value = {W, at}};
  uint32_t n;
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  for (uint32_t k = 0; k <= n; k++) {
    struct ir_module *m = k < n ? pass_on(h.m, &a.arena, k, 1) : pass_on(h.m, &a.arena, 0, n);
    for (int turn = 0; turn < 2; turn++) {
      struct data *d = turn ? &after : &before;
      fill(h.m, &dims, 1, d);
      for (int64_t i = 0; i < W; i++)
        if (dtype_is_float(t))
          ref_put(t, d->arg[0], i,
                  (long double)float_constants[(size_t)i % COUNT(float_constants)]);
        else
          ref_put_bits(t, d->arg[0], i,
                       (uint64_t)(i * i * i - 60) ^ (i % 5 == 0 ? ~UINT64_C(0) : 0));
      run(turn ? m : h.m, d);
    }
    char what[64];
    snprintf(what, sizeof what, "%s on %s, %s", ir_info(op)->name, dtype_name(t),
             k < n ? passes[k].name : "all passes");
    compare(h.m, &before, &after, what);
  }
  arena_free(&a.arena);
  hi_free(&h);
}

static void test_identities(void **state) {
  (void)state;
  for (int op = IR_NO_OP + 1; op < IR_OPCODE_COUNT; op++) {
    int rule = ir_info((enum ir_opcode)op)->rule;
    bool is_float = rule == IR_RULE_float_arith;
    bool is_int = rule == IR_RULE_int_arith || rule == IR_RULE_bits;
    bool compares = rule == IR_RULE_compare;
    if (rule != IR_RULE_arith && !is_float && !is_int && !compares)
      continue;
    for (size_t k = 0; k < COUNT(types); k++)
      if (!(is_float && !dtype_is_float(types[k])) && !(is_int && dtype_is_float(types[k])))
        check_identities((enum ir_opcode)op, types[k], compares);
  }
}

/* Patterns of several ops, in the order of a stack: x y z, whole constants, ops; on all pairs of
 * special values. gone: the op that is not there after the passes (8-bit floats aside). */
static const struct {
  const char *text, *gone;
  enum { INTS = 1, FLOATS = 2, ANY = 3 } on;
} patterns[] = {
    {"x y sub y add", "sub", INTS},
    {"y x y sub add", "sub", INTS},
    {"x y add y sub", "sub", INTS},
    {"x y add x sub", "sub", INTS},
    {"x y sub y add", NULL, FLOATS},
    {"x y add y sub", NULL, FLOATS},
    {"x y neg add", "neg", ANY},
    {"x neg y add", "neg", ANY},
    {"x y neg sub", "neg", ANY},
    {"0 x sub", "sub", INTS},
    {"0 x sub", NULL, FLOATS},
    {"x y sub neg", "neg", INTS},
    {"x y sub neg", NULL, FLOATS},
    {"x neg y neg mul", "neg", FLOATS},
    {"x neg y neg div", NULL, FLOATS},
    {"x -1 mul", "mul", INTS},
    {"x 1 y fma", "fma", FLOATS},
    {"x y -0 fma", "fma", FLOATS},
    {"x y 0 fma", NULL, FLOATS},
    {"x -1 floordiv", "floordiv", INTS},
    {"x -1 mod", "mod", INTS},
    {"x 3 mul 3 floordiv", NULL, INTS},
    {"x 3 mul 3 mod", NULL, INTS},
    {"x 3 floordiv 5 floordiv", NULL, INTS},
    {"x 100 floordiv 100 floordiv", NULL, INTS},
    {"x -3 floordiv 5 floordiv", NULL, INTS},
    {"x 7 mod 7 mod", NULL, INTS},
    {"x -7 mod -7 mod", NULL, INTS},
    {"x y min y min", NULL, ANY},
    {"x x y max max", NULL, ANY},
    {"x x y max min", "max", INTS},
    {"x y min y max", "min", INTS},
    {"x x y max min", NULL, FLOATS},
    {"x 3 min 5 min", NULL, ANY},
    {"x -1 max 2 max", NULL, ANY},
    {"x abs abs", NULL, ANY},
    {"x x y or and", "or", INTS},
    {"x x y and or", "and", INTS},
    {"x x not and", "not", INTS},
    {"x not x or", "not", INTS},
    {"x x not xor", "not", INTS},
    {"x 12 and 10 and", NULL, INTS},
    {"x 12 or 3 or", NULL, INTS},
    {"x 12 xor 12 xor", NULL, INTS},
    {"x y lt not z y select", "not", INTS},
    {"x y le not z y select", NULL, FLOATS},
    {"x y eq not z y select", "not", ANY},
    {"x y gt x y gt z y select y select", NULL, ANY},
    {"x y gt x x y gt z y select select", NULL, ANY},
};

static const char *const words[] = {"x", "y", "z"};

/* NULL: a word of another kind. */
static struct ir_val pattern_value(struct hi *h, const struct ir_val *xyz, struct ir_type t,
                                   const char *word, size_t n) {
  for (size_t i = 0; i < COUNT(words); i++)
    if (n == 1 && *word == *words[i])
      return xyz[i];
  bool number = (*word >= '0' && *word <= '9') || (*word == '-' && n > 1);
  if (!number)
    return (struct ir_val){0};
  double value = strtod(word, NULL);
  struct ir_val k = dtype_is_float((enum dtype)t.dtype)
                        ? hi_num(h, (enum dtype)t.dtype, value)
                        : ir_const_int(&h->b, (enum dtype)t.dtype,
                                       ref_wrap((enum dtype)t.dtype, (uint64_t)(int64_t)value));
  return hi_splat(h, k, 1, t.dim);
}

static void check_pattern(size_t p, enum dtype t) {
  enum { W = COUNT(float_constants) * COUNT(float_constants) };
  struct hi h;
  hi_init(&h);
  for (size_t i = 0; i < COUNT(words); i++)
    hi_tensor(&h, words[i], IR_ARG_IN, t, "N");
  hi_tensor(&h, "O", IR_ARG_OUT, t, "N");
  hi_begin(&h, "1");
  struct ir_val zero = hi_index(&h, 0), xyz[3], stack[16];
  for (uint32_t i = 0; i < 3; i++)
    xyz[i] = hi_load1(&h, i, zero, W);
  uint32_t n = 0;
  for (const char *s = patterns[p].text; *s; s += *s == ' ') {
    size_t len = strcspn(s, " ");
    struct ir_val v = pattern_value(&h, xyz, ir_type_of(h.m, xyz[0]), s, len);
    enum ir_opcode op;
    if (!v.id) {
      assert_true(ir_find_opcode(s, len, &op));
      uint32_t k = ir_info(op)->n_in;
      assert_true(n >= k);
      n -= k;
      v = k == 1   ? hi_op1(&h, op, stack[n])
          : k == 2 ? hi_op2(&h, op, stack[n], stack[n + 1])
                   : hi_op3(&h, op, stack[n], stack[n + 1], stack[n + 2]);
    }
    stack[n++] = v;
    s += len;
  }
  assert_int_equal(n, 1);
  hi_store1(&h, 3, zero, stack[0]);
  hi_end(&h);
  struct help_arena a;
  help_arena_init(&a);
  struct dims dims = {.m = h.m, .value = {W}};
  uint32_t n_passes;
  ir_tile_pipeline(&n_passes);
  struct ir_module *m = pass_on(h.m, &a.arena, 0, n_passes);
  for (int turn = 0; turn < 2; turn++) {
    struct data *d = turn ? &after : &before;
    fill(h.m, &dims, 1, d);
    for (int64_t i = 0; i < W && now.domain == INTERP_ROUNDED; i++)
      for (int64_t k = 0; k < 3; k++) {
        int64_t c = (k == 0 ? i : k == 1 ? i / 17 : i * 7 + 3) % 17;
        if (dtype_is_float(t))
          ref_put(t, d->arg[k], i, (long double)float_constants[c]);
        else
          ref_put_bits(t, d->arg[k], i, (uint64_t)(c * c * c - 60) ^ (c % 5 ? 0 : ~UINT64_C(0)));
      }
    run(turn ? m : h.m, d);
  }
  compare(h.m, &before, &after, patterns[p].text);
  enum ir_opcode gone;
  for (struct ir_op o = ir_block_at(m, m->body)->first; patterns[p].gone && o.id;
       o = ir_op_at(m, o)->next) {
    assert_true(ir_find_opcode(patterns[p].gone, strlen(patterns[p].gone), &gone));
    if (ir_op_at(m, o)->opcode == gone && dtype_bits(t) >= 16)
      fail_msg("%s on %s: `%s` is still there", patterns[p].text, dtype_name(t), patterns[p].gone);
  }
  arena_free(&a.arena);
  hi_free(&h);
}

static void test_patterns(void **state) {
  (void)state;
  for (size_t p = 0; p < COUNT(patterns); p++)
    for (size_t k = 0; k < COUNT(types); k++)
      if (patterns[p].on & (dtype_is_float(types[k]) ? FLOATS : INTS))
        check_pattern(p, types[k]);
}

/* Casts of casts: only those between whose types nothing is lost may go. */
static void test_cast_chains(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(types); i++) {
    struct hi h;
    hi_init(&h);
    enum { W = 24 };
    hi_tensor(&h, "X", IR_ARG_IN, types[i], "M");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_F64, "N");
    hi_begin(&h, "1");
    struct ir_val x = hi_load1(&h, 0, hi_index(&h, 0), W);
    int64_t at = 0;
    for (size_t j = 0; j < COUNT(types); j++)
      for (size_t k = 0; k < COUNT(types); k++, at += W)
        hi_store1(&h, 1, hi_index(&h, at),
                  hi_cast(&h, DT_F64, hi_cast(&h, types[k], hi_cast(&h, types[j], x))));
    hi_end(&h);
    struct help_arena a;
    help_arena_init(&a);
    struct dims dims = {.m = h.m, .value = {W, at}};
    uint32_t n;
    ir_tile_pipeline(&n);
    struct ir_module *m = pass_on(h.m, &a.arena, 0, n);
    for (int turn = 0; turn < 2; turn++) {
      struct data *d = turn ? &after : &before;
      fill(h.m, &dims, 1, d);
      for (int64_t e = 0; e < W; e++)
        ref_put(types[i], d->arg[0], e,
                (long double)float_constants[(size_t)e % COUNT(float_constants)] * 1.0009765625L);
      run(turn ? m : h.m, d);
    }
    compare(h.m, &before, &after, dtype_name(types[i]));
    arena_free(&a.arena);
    hi_free(&h);
  }
}

/* ---- control, memory, redundancy ---- */

/* Loops with unchanged, duplicated, dead and swapped carried values; equal subexpressions in nested
 * blocks; stores between equal loads; a dot into zero that is added. */
static void build_redundant(struct hi *h) {
  hi_init(h);
  hi_tensor(h, "A", IR_ARG_IN, DT_BF16, "M,K");
  hi_tensor(h, "B", IR_ARG_IN, DT_BF16, "K,N");
  hi_tensor(h, "C", IR_ARG_INOUT, DT_F32, "M,N");
  uint32_t flag = hi_scalar(h, "flag", DT_S32);
  hi_begin(h, "cdiv(M, 8),cdiv(N, 8)");
  struct ir_val zero = hi_index(h, 0), eight = hi_index(h, 8), four = hi_index(h, 4);
  struct ir_val i = hi_op2(h, IR_MUL, h->grid[0], eight), j = hi_op2(h, IR_MUL, eight, h->grid[1]);
  struct ir_val i2 = hi_op2(h, IR_ADD, hi_op2(h, IR_MUL, h->grid[0], hi_index(h, 8)), zero);
  struct ir_val acc0 = hi_full(h, DT_F32, 0, 8, 8), ones = hi_full(h, DT_F32, 1, 8, 8);
  struct ir_op loop =
      hi_for(h, zero, h->dim[1], four, 5, (struct ir_val[]){acc0, ones, acc0, zero, acc0});
  struct ir_val k = hi_arg(h, loop, 0, 0), acc = hi_arg(h, loop, 0, 1);
  struct ir_val same = hi_arg(h, loop, 0, 2), dead = hi_arg(h, loop, 0, 3);
  struct ir_val count = hi_arg(h, loop, 0, 4), twin = hi_arg(h, loop, 0, 5);
  struct ir_val a = hi_load2(h, 0, i, k, 8, 4), a2 = hi_load2(h, 0, i2, k, 8, 4);
  struct ir_val b = hi_load2(h, 1, k, j, 4, 8);
  struct ir_val p = hi_op3(h, IR_DOT, a, b, hi_full(h, DT_F32, 0, 8, 8));
  struct ir_val q = hi_op3(h, IR_DOT, a2, b, hi_full(h, DT_F32, 0, 8, 8));
  acc = hi_op2(h, IR_ADD, p, acc);
  twin = hi_op2(h, IR_ADD, twin, q);
  hi_yield(h, 5,
           (struct ir_val[]){acc, same, hi_op2(h, IR_ADD, dead, p),
                             hi_op2(h, IR_ADD, count, hi_index(h, 1)), twin});
  struct ir_val sum = hi_op2(h, IR_ADD, hi_out(h, loop, 0), hi_out(h, loop, 1));
  sum = hi_op2(h, IR_ADD, sum, hi_out(h, loop, 4));
  struct ir_type tile = ir_type_of(h->m, sum);
  struct ir_val s = h->arg[flag], two = ir_const_int(&h->b, DT_S32, 2);
  struct ir_op branch = hi_if(h, hi_op2(h, IR_LT, s, two), 3, (struct ir_type[]){tile, tile, tile});
  struct ir_val c1 = hi_load2(h, 2, i, j, 8, 8);
  struct ir_val u = hi_op2(h, IR_ADD, sum, c1);
  hi_store2(h, 2, i2, j, u);
  struct ir_val c2 = hi_load2(h, 2, i, j, 8, 8); /* not c1: a store lies between */
  hi_yield(h, 3, (struct ir_val[]){c2, sum, u});
  struct ir_val v = hi_op2(h, IR_SUB, sum, hi_load2(h, 2, i, j, 8, 8));
  hi_yield(h, 3, (struct ir_val[]){v, sum, sum});
  struct ir_val count_tile =
      hi_splat(h, hi_cast(h, DT_F32, hi_out(h, loop, 3)), 2, (int64_t[]){8, 8});
  struct ir_val r = hi_op2(h, IR_ADD, hi_out(h, branch, 0), hi_out(h, branch, 1));
  r = hi_op2(h, IR_MUL, hi_op2(h, IR_ADD, r, count_tile), hi_full(h, DT_F32, 1, 8, 8));
  struct ir_val mask = hi_op2(h, IR_GE, r, hi_full(h, DT_F32, 10, 8, 8));
  r = hi_op3(h, IR_SELECT, hi_op1(h, IR_NOT, mask), acc0, r);
  hi_op1(h, IR_EXP, r); /* dead */
  hi_store2(h, 2, i, j, r);
  /* A while that runs `flag` times and swaps. */
  struct ir_type s32 = ir_scalar(DT_S32);
  struct ir_val n0 = ir_const_int(&h->b, DT_S32, 0), n1 = ir_const_int(&h->b, DT_S32, 1);
  struct ir_op w =
      hi_while(h, 3, (struct ir_val[]){n0, n1, s}, 3, (struct ir_type[]){s32, s32, s32});
  struct ir_val x = hi_arg(h, w, 0, 0), y = hi_arg(h, w, 0, 1), z = hi_arg(h, w, 0, 2);
  hi_condition(h, 4, (struct ir_val[]){hi_op2(h, IR_GT, z, n0), x, y, z});
  struct ir_val bx = hi_arg(h, w, 1, 0), by = hi_arg(h, w, 1, 1), bz = hi_arg(h, w, 1, 2);
  hi_yield(h, 3, (struct ir_val[]){by, hi_op2(h, IR_ADD, bx, by), hi_op2(h, IR_SUB, bz, n1)});
  struct ir_val fib = hi_splat(h, hi_cast(h, DT_F32, hi_out(h, w, 0)), 2, (int64_t[]){1, 1});
  hi_store2(h, 2, i, j, fib);
  hi_end(h);
}

static void test_redundant(void **state) {
  (void)state;
  struct hi h;
  build_redundant(&h);
  static const int64_t shapes[][3] = {{8, 8, 8}, {19, 13, 21}, {1, 1, 1}, {16, 0, 9}};
  for (size_t s = 0; s < COUNT(shapes); s++)
    for (uint64_t seed = 1; seed < 6; seed++) {
      struct dims dims = {.m = h.m};
      for (int k = 0; k < 3; k++)
        dims.value[k] = shapes[s][k];
      check_module(h.m, &dims, seed);
    }
  hi_free(&h);
}

/* ---- generated modules ---- */

/* Dots that start at zero and are added elsewhere are left out: merging them changes the order of a
 * sum, which means nothing but shows in the bits. */
static void test_generated(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 120; seed++) {
    struct help_arena a;
    help_arena_init(&a);
    struct gen_ir g = {.seed = seed, .n_ops = 60, .max_depth = 4, .plain_dots = true};
    struct ir_module *m = gen_ir(&a.arena, &g);
    struct dims dims = {.m = m};
    assert_true(m->dims.n <= COUNT(dims.value));
    for (uint32_t k = 0; k < m->dims.n; k++)
      dims.value[k] = 1 + (int64_t)gen_below(&(uint64_t){seed * 8 + k}, 17);
    now.seed = seed;
    check_module(m, &dims, seed);
    /* DOUBLE does not round what passes fold: only the text form is compared. */
    now.domain = INTERP_DOUBLE;
    fill(m, &dims, seed, &before);
    run(m, &before);
    check_variant(m, reparsed(m, &a.arena), &dims, seed, "print and parse");
    now.domain = INTERP_ALGEBRAIC;
    check_module(m, &dims, seed);
    now.domain = INTERP_ROUNDED;
    arena_free(&a.arena);
  }
}

/* All of the above, on payloads: where passes fold, the algebraic domain sees constants. */
static void test_algebraic(void **state) {
  now.domain = INTERP_ALGEBRAIC;
  test_folding(state);
  test_folding_of_bools(state);
  test_folding_of_casts(state);
  test_identities(state);
  test_patterns(state);
  test_cast_chains(state);
  test_redundant(state);
  now.domain = INTERP_ROUNDED;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_folding),          cmocka_unit_test(test_folding_of_bools),
      cmocka_unit_test(test_folding_of_casts), cmocka_unit_test(test_identities),
      cmocka_unit_test(test_patterns),         cmocka_unit_test(test_cast_chains),
      cmocka_unit_test(test_redundant),        cmocka_unit_test(test_generated),
      cmocka_unit_test(test_algebraic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
