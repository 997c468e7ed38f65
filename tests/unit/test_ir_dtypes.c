/* Every tile op on every dtype, alone in a module: the verifier takes it exactly where the op's
 * rule says so, and refuses it with one message that names the op. What is taken is read back
 * from its text and runs in all three domains; where an op is exact they agree on small whole
 * numbers. */
#include "help_interp.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 2, COLS = 4, OUT_ROWS = 8, OUT_COLS = 64 };

struct one {
  struct hi h;
  enum dtype t;
  struct ir_val x, y, mask; /* (2,4): x = 0 1 2 3 and y = 1 2 3 1 in each row, as far as t goes */
  struct ir_val zero, view;
};

static bool is_float(enum dtype t) {
  return dtype_is_float(t);
}

static bool is_mask(enum dtype t) {
  return t == DT_BOOL;
}

/* What rows of ops.def say, by rule. */
static bool expected(enum ir_opcode op, enum dtype t) {
  switch ((int)op) {
  case IR_DIV:
  case IR_FMA:
  case IR_EXP:
  case IR_EXP2:
  case IR_LOG:
  case IR_LOG2:
  case IR_SQRT:
  case IR_RSQRT:
  case IR_TANH:
  case IR_ERF:
  case IR_SIGMOID:
  case IR_SIN:
  case IR_COS:
  case IR_FLOOR:
  case IR_CEIL:
  case IR_ROUND:
  case IR_TRUNC: return is_float(t);
  case IR_ADD:
  case IR_SUB:
  case IR_MUL:
  case IR_MIN:
  case IR_MAX:
  case IR_NEG:
  case IR_ABS:
  case IR_LT:
  case IR_LE:
  case IR_GT:
  case IR_GE:
  case IR_REDUCE_SUM:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_ARGMAX:
  case IR_ARGMIN:
  case IR_SCAN_SUM: return !is_mask(t);
  case IR_FLOORDIV:
  case IR_MOD:
  case IR_SHL:
  case IR_SHR: return !is_mask(t) && !is_float(t);
  case IR_AND:
  case IR_OR:
  case IR_XOR:
  case IR_NOT: return !is_float(t);
  case IR_REDUCE_ANY:
  case IR_REDUCE_ALL: return is_mask(t);
  default: return true;
  }
}

static struct ir_val make(struct one *o, enum ir_opcode op, struct ir_type t, uint32_t n,
                          const struct ir_val *in) {
  return ir_build1(&o->h.b, op, t, n, in);
}

static void set(struct one *o, struct ir_val v, enum ir_attr_key key, int64_t i) {
  ir_set_attr(o->h.m, ir_value_at(o->h.m, v)->def, (struct ir_attr){.key = key, .i = i});
}

static void set_list(struct one *o, struct ir_val v, enum ir_attr_key key, int64_t *list) {
  ir_set_attr(o->h.m, ir_value_at(o->h.m, v)->def,
              (struct ir_attr){.key = key, .ints = list, .n_ints = 2});
}

static struct ir_type tile(enum dtype t, int64_t rows, int64_t cols) {
  const int64_t dim[2] = {rows, cols};
  return ir_tile(t, 2, dim);
}

static void begin(struct one *o, enum dtype t) {
  hi_init(&o->h);
  o->t = t;
  hi_tensor(&o->h, "O", IR_ARG_OUT, DT_F64, "8,64");
  hi_begin(&o->h, "1");
  o->zero = hi_index(&o->h, 0);
  struct ir_val i = hi_wide(&o->h, hi_iota(&o->h, 1, COLS), ROWS, COLS);
  struct ir_val three = hi_splat(&o->h, hi_index(&o->h, 3), 2, (const int64_t[]){ROWS, COLS});
  struct ir_val one = hi_splat(&o->h, hi_index(&o->h, 1), 2, (const int64_t[]){ROWS, COLS});
  struct ir_val next = hi_op2(&o->h, IR_ADD, hi_op2(&o->h, IR_MOD, i, three), one);
  o->x = t == DT_INDEX ? i : hi_cast(&o->h, t, i);
  o->y = t == DT_INDEX ? next : hi_cast(&o->h, t, next);
  o->mask = make(o, IR_LT, tile(DT_BOOL, ROWS, COLS), 2, (const struct ir_val[]){i, one});
}

/* Gives the op's result, of rank 2, or {0} where this test has no form of the op. */
static struct ir_val apply(struct one *o, enum ir_opcode op) {
  struct hi *h = &o->h;
  const struct ir_opinfo *info = ir_info(op);
  struct ir_type t = tile(o->t, ROWS, COLS);
  const struct ir_val in[3] = {o->x, o->y, o->x};
  int64_t perm[2] = {1, 0}, offsets[2] = {1, 2};
  struct ir_val v;
  switch ((int)op) {
  case IR_EQ:
  case IR_NE:
  case IR_LT:
  case IR_LE:
  case IR_GT:
  case IR_GE: return make(o, op, tile(DT_BOOL, ROWS, COLS), 2, in);
  case IR_SELECT: {
    const struct ir_val three[3] = {o->mask, o->x, o->y};
    return make(o, op, t, 3, three);
  }
  case IR_REDUCE_SUM:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_REDUCE_ANY:
  case IR_REDUCE_ALL: return hi_reduce(h, op, o->x, 1);
  case IR_ARGMAX:
  case IR_ARGMIN:
    v = make(o, op, tile(DT_INDEX, ROWS, 1), 1, in);
    set(o, v, IR_ATTR_axis, 1);
    return v;
  case IR_SCAN_SUM:
    v = make(o, op, t, 1, in);
    set(o, v, IR_ATTR_axis, 1);
    return v;
  case IR_TRANSPOSE:
    v = make(o, op, tile(o->t, COLS, ROWS), 1, in);
    set_list(o, v, IR_ATTR_perm, perm);
    return v;
  case IR_EXTRACT:
    v = make(o, op, tile(o->t, 1, 2), 1, in);
    set_list(o, v, IR_ATTR_offsets, offsets);
    return v;
  case IR_CONCAT:
    v = make(o, op, tile(o->t, ROWS, 2 * COLS), 2, in);
    set(o, v, IR_ATTR_axis, 1);
    return v;
  case IR_RESHAPE: return make(o, op, tile(o->t, COLS, ROWS), 1, in);
  case IR_BROADCAST: {
    struct ir_val row = make(o, IR_EXTRACT, tile(o->t, 1, COLS), 1, in);
    int64_t first[2] = {1, 0};
    set_list(o, row, IR_ATTR_offsets, first);
    return make(o, op, tile(o->t, 3, COLS), 1, &row);
  }
  case IR_ITEM:
  case IR_SPLAT: {
    struct ir_val last = make(o, IR_EXTRACT, tile(o->t, 1, 1), 1, in);
    int64_t at[2] = {1, 3};
    set_list(o, last, IR_ATTR_offsets, at);
    struct ir_val s = make(o, IR_ITEM, ir_scalar(o->t), 1, &last);
    return make(o, IR_SPLAT, tile(o->t, 2, 2), 1, &s);
  }
  default: break;
  }
  bool same_type = info->n_in >= 1 && info->n_in <= 3 && info->n_out == 1 && info->n_blocks == 0 &&
                   expected(op, DT_F32) + expected(op, DT_S32) + expected(op, DT_BOOL) < 3;
  return same_type ? make(o, op, t, (uint32_t)info->n_in, in) : (struct ir_val){0};
}

/* Stores the result as f64 and ends the module. */
static bool end(struct one *o, struct ir_val v) {
  if ((enum dtype)ir_type_of(o->h.m, v).dtype != DT_F64)
    v = hi_cast(&o->h, DT_F64, v);
  hi_store2(&o->h, 0, o->zero, o->zero, v);
  ir_build(&o->h.b, IR_RETURN, 0, NULL, 0, NULL);
  return ir_verify(o->h.m, &o->h.diags);
}

/* In the algebraic domain what rounds to whole numbers is a bijection as any function is. */
static bool in_ring(enum ir_opcode op) {
  return op != IR_FLOOR && op != IR_CEIL && op != IR_ROUND && op != IR_TRUNC;
}

static void check_text(struct one *o) {
  struct strbuf a = {.arena = &o->h.mem.arena}, b = a;
  ir_print(o->h.m, (struct ir_print_options){0}, &a);
  uint32_t file = diag_add_file(&o->h.diags, "text", sb_str(&a), a.n);
  struct ir_module *m = ir_parse(&o->h.mem.arena, &o->h.diags, file, sb_str(&a), a.n);
  if (!m)
    fail_msg("%s\n%s", help_last_message(&o->h.diags), sb_str(&a));
  ir_print(m, (struct ir_print_options){0}, &b);
  assert_string_equal(sb_str(&a), sb_str(&b));
}

static void run_domains(struct one *o, const char *what, bool exact, bool ring) {
  static double out[3][OUT_ROWS * OUT_COLS];
  const int64_t dim[2] = {OUT_ROWS, OUT_COLS};
  check_text(o);
  for (int d = 0; d < 3; d++) {
    memset(out[d], 0, sizeof out[d]);
    o->h.opt.domain = (enum interp_domain)d;
    hi_bind_as(&o->h, 0, d == INTERP_ALGEBRAIC ? DT_S64 : DT_F64, out[d], dim);
    if (!hi_run(&o->h))
      fail_msg("%s, domain %d: %s", what, d, help_last_message(&o->h.diags));
  }
  for (int k = 0; exact && k < OUT_ROWS * OUT_COLS; k++) {
    int64_t payload;
    memcpy(&payload, &out[INTERP_ALGEBRAIC][k], sizeof payload);
    if (out[INTERP_ROUNDED][k] != out[INTERP_DOUBLE][k] ||
        (ring && payload != (int64_t)out[INTERP_ROUNDED][k]))
      fail_msg("%s, element %d: %g rounded, %g in double, payload %lld", what, k,
               out[INTERP_ROUNDED][k], out[INTERP_DOUBLE][k], (long long)payload);
  }
}

static void test_elementwise(void **state) {
  (void)state;
  uint32_t taken = 0, refused = 0;
  for (unsigned op = 1; op < IR_OPCODE_COUNT; op++) {
    const struct ir_opinfo *info = ir_info((enum ir_opcode)op);
    if (!(info->stages >> IR_TILE_STAGE & 1))
      continue;
    for (int t = 0; t < DT_COUNT; t++) {
      struct one o;
      begin(&o, (enum dtype)t);
      struct ir_val v = apply(&o, (enum ir_opcode)op);
      if (!v.id) {
        hi_free(&o.h);
        continue;
      }
      char what[64];
      snprintf(what, sizeof what, "%s on %s", info->name, dtype_name((enum dtype)t));
      bool ok = end(&o, v);
      if (ok != expected((enum ir_opcode)op, (enum dtype)t))
        fail_msg("%s is %s", what, ok ? "taken" : help_last_message(&o.h.diags));
      if (!ok && !strstr(help_last_message(&o.h.diags), info->name))
        fail_msg("%s is refused without its name: %s", what, help_last_message(&o.h.diags));
      if (ok)
        run_domains(&o, what, (info->traits & IR_EXACT) != 0, in_ring((enum ir_opcode)op));
      taken += ok;
      refused += !ok;
      hi_free(&o.h);
    }
  }
  print_message("%u pairs run, %u refused\n", taken, refused);
  assert_true(taken > 450 && refused > 200);
}

/* ---- ops of two dtypes ---- */

/* Whether memory holds it: it has bits of its own. */
static bool in_memory(enum dtype t) {
  return t != DT_INDEX;
}

/* Accumulators by operand, docs/numerics.md. */
static bool dot_expected(enum dtype a, enum dtype b, enum dtype acc) {
  bool fp8 = (a == DT_E4M3 || a == DT_E5M2) && (b == DT_E4M3 || b == DT_E5M2);
  if (a != b && !fp8)
    return false;
  if (a == DT_F64)
    return acc == DT_F64;
  if (!is_float(a))
    return (a == DT_S8 || a == DT_U8 || a == DT_S4 || a == DT_U4) && acc == DT_S32;
  return acc == DT_F32 || (acc == DT_F16 && a != DT_F32 && a != DT_BF16);
}

enum pair { CASTS, BITCASTS, RANDOMS, DOTS }; /* DOTS + i: into accs[i] */
static const enum dtype accs[] = {DT_F32, DT_F64, DT_S32, DT_F16};
enum { N_PAIRS = DOTS + sizeof accs / sizeof *accs };
static const char *const pair_names[] = {"cast", "bitcast", "random", "dot"};

static struct ir_val apply_pair(struct one *o, enum pair p, enum dtype t, enum dtype u) {
  struct hi *h = &o->h;
  struct ir_val v, in[3] = {o->x, o->y};
  if (p >= DOTS) {
    enum dtype acc = accs[p - DOTS];
    in[1] = u == o->t ? o->y : hi_cast(h, u, o->y);
    in[1] = hi_shape(h, IR_RESHAPE, in[1], 2, (const int64_t[]){COLS, ROWS});
    in[2] = hi_full(h, acc, 0, ROWS, ROWS);
    return make(o, IR_DOT, tile(acc, ROWS, ROWS), 3, in);
  }
  switch ((int)p) {
  case CASTS: return make(o, IR_CAST, tile(u, ROWS, COLS), 1, in);
  case BITCASTS: {
    int64_t bits = (int64_t)dtype_bits(t) * COLS, wide = (int64_t)dtype_bits(u);
    return make(o, IR_BITCAST, tile(u, ROWS, wide && bits % wide == 0 ? bits / wide : COLS), 1, in);
  }
  default:
    in[1] = in[0];
    in[0] = make(o, IR_ITEM, ir_scalar(u), 1, (const struct ir_val[]){hi_full(h, u, 1, 1, 1)});
    v = make(o, IR_RANDOM, tile(DT_S32, ROWS, COLS), 2, in);
    set(o, v, IR_ATTR_word, 1);
    return v;
  }
}

static bool pair_expected(enum pair p, enum dtype t, enum dtype u) {
  if (p >= DOTS)
    return dot_expected(t, u, accs[p - DOTS]);
  switch ((int)p) {
  case CASTS: return true;
  case BITCASTS:
    return in_memory(t) && in_memory(u) && !is_mask(t) && !is_mask(u) &&
           dtype_bits(t) * COLS % dtype_bits(u) == 0;
  default: return (t == DT_S64 || t == DT_INDEX) && u == DT_S64; /* counters, seed */
  }
}

static void test_pairs(void **state) {
  (void)state;
  uint32_t taken = 0, refused = 0;
  for (int p = 0; p < N_PAIRS; p++)
    for (int t = 0; t < DT_COUNT; t++)
      for (int u = 0; u < DT_COUNT; u++) {
        struct one o;
        begin(&o, (enum dtype)t);
        char what[64];
        snprintf(what, sizeof what, "%s of %s and %s", pair_names[p < DOTS ? p : DOTS],
                 dtype_name((enum dtype)t), dtype_name((enum dtype)u));
        bool ok = end(&o, apply_pair(&o, (enum pair)p, (enum dtype)t, (enum dtype)u));
        if (ok != pair_expected((enum pair)p, (enum dtype)t, (enum dtype)u))
          fail_msg("%s is %s", what, ok ? "taken" : help_last_message(&o.h.diags));
        if (ok) /* from float to integer payloads have a rule of their own */
          run_domains(&o, what, p == CASTS || p >= DOTS,
                      is_float((enum dtype)t) == is_float((enum dtype)u));
        taken += ok;
        refused += !ok;
        hi_free(&o.h);
      }
  print_message("%u pairs run, %u refused\n", taken, refused);
}

/* ---- memory ---- */

enum { LOADS, GATHERS, SCATTERS, FIRST_ATOMIC };
static const char *const atomics[] = {"add", "min", "max", "and", "or", "xor", "exchange"};

static bool atomic_expected(const char *kind, enum dtype t) {
  bool ints = t == DT_S32 || t == DT_S64;
  if (str_eq(kind, "add"))
    return ints || t == DT_F64 || t == DT_F32 || t == DT_F16 || t == DT_BF16;
  if (str_eq(kind, "min") || str_eq(kind, "max"))
    return ints || t == DT_F32;
  return ints || (str_eq(kind, "exchange") && (t == DT_F32 || t == DT_F64));
}

/* Stores x, uses the op on it and loads what memory holds then. */
static void memory(enum dtype t, unsigned form) {
  struct one o;
  _Alignas(8) unsigned char data[ROWS * COLS * 8] = {0};
  const int64_t dim[2] = {ROWS, COLS};
  struct hi *h = &o.h;
  hi_init(h);
  o.t = t;
  hi_tensor(h, "O", IR_ARG_OUT, DT_F64, "8,64");
  hi_tensor(h, "X", IR_ARG_INOUT, t, "2,4");
  hi_begin(h, "1");
  o.zero = hi_index(h, 0);
  struct ir_val i = hi_wide(h, hi_iota(h, 1, COLS), ROWS, COLS), row = hi_iota(h, 0, ROWS);
  struct ir_val x = hi_cast(h, t, i), col = hi_iota(h, 1, COLS), v;
  hi_store2(h, 1, o.zero, o.zero, x);
  struct ir_val in[4] = {h->arg[1], row, col, x};
  if (form >= FIRST_ATOMIC) {
    v = make(&o, IR_ATOMIC, tile(t, ROWS, COLS), 4, in);
    ir_set_attr(h->m, ir_value_at(h->m, v)->def,
                (struct ir_attr){.key = IR_ATTR_kind,
                                 .s = symtab_get(h->m->syms, atomics[form - FIRST_ATOMIC])});
  }
  if (form == SCATTERS)
    ir_build(&h->b, IR_SCATTER, 4, in, 0, NULL);
  v = form == GATHERS ? make(&o, IR_GATHER, tile(t, ROWS, COLS), 3, in)
                      : hi_load2(h, 1, o.zero, o.zero, ROWS, COLS);
  const char *name = form >= FIRST_ATOMIC ? atomics[form - FIRST_ATOMIC] : "move";
  char what[64];
  snprintf(what, sizeof what, "%s of %s", name, dtype_name(t));
  bool want = form < FIRST_ATOMIC || atomic_expected(name, t), ok = end(&o, v);
  if (ok != want)
    fail_msg("%s is %s", what, ok ? "taken" : help_last_message(&h->diags));
  for (int d = 0; ok && d < 3; d++) {
    double out[OUT_ROWS * OUT_COLS];
    const int64_t out_dim[2] = {OUT_ROWS, OUT_COLS};
    bool payload = d == INTERP_ALGEBRAIC;
    h->opt.domain = (enum interp_domain)d;
    hi_bind_as(h, 0, payload ? DT_S64 : DT_F64, out, out_dim);
    hi_bind_as(h, 1, payload && is_float(t) ? DT_S64 : t, data, dim);
    if (!hi_run(h))
      fail_msg("%s, domain %d: %s", what, d, help_last_message(&h->diags));
    for (int k = 0; k < ROWS * COLS; k++) {
      int64_t n = k % COLS, at = (int64_t)(k / COLS) * OUT_COLS + k % COLS, got;
      memcpy(&got, &out[at], sizeof got);
      n = is_mask(t) ? n != 0 : str_eq(name, "add") ? 2 * n : str_eq(name, "xor") ? 0 : n;
      if (payload ? got != n : out[at] != (double)n)
        fail_msg("%s, domain %d, element %d: %g, %lld", what, d, k, out[at], (long long)got);
    }
  }
  hi_free(h);
}

static void test_memory(void **state) {
  (void)state;
  for (int t = 0; t < DT_COUNT; t++)
    for (unsigned form = 0; in_memory((enum dtype)t) && form < FIRST_ATOMIC + 7; form++)
      memory((enum dtype)t, form);
}

/* ---- control ---- */

/* Values of each dtype through a loop and a branch. */
static void test_control(void **state) {
  (void)state;
  for (int t = 0; t < DT_COUNT; t++) {
    struct one o;
    begin(&o, (enum dtype)t);
    struct hi *h = &o.h;
    struct ir_val lo = hi_index(h, 0), hi = hi_index(h, 3), step = hi_index(h, 1);
    const struct ir_val inits[2] = {o.x, o.y};
    struct ir_op loop = hi_for(h, lo, hi, step, 2, inits);
    struct ir_val a = hi_arg(h, loop, 0, 1), b = hi_arg(h, loop, 0, 2); /* swapped each time */
    hi_yield(h, 2, (const struct ir_val[]){b, a});
    const struct ir_type type = tile((enum dtype)t, ROWS, COLS);
    struct ir_val even = make(&o, IR_LT, ir_scalar(DT_BOOL), 2, (const struct ir_val[]){lo, hi});
    struct ir_op branch = hi_if(h, even, 1, &type);
    struct ir_val first = hi_out(h, loop, 0), second = hi_out(h, loop, 1);
    hi_yield(h, 1, &second);
    hi_yield(h, 1, &first);
    if (!end(&o, hi_out(h, branch, 0)))
      fail_msg("%s: %s", dtype_name((enum dtype)t), help_last_message(&h->diags));
    run_domains(&o, dtype_name((enum dtype)t), true, true);
    hi_free(h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_elementwise),
                                     cmocka_unit_test(test_pairs), cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_control)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
