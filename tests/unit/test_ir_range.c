/* Range facts are true: what is claimed of a module becomes asserts in it, and the interpreter runs
 * them. On generated modules and on loops over tensors of many shapes; and what is claimed of known
 * modules is what is to be expected. */
#include "help_gen_ir.h"
#include "help_rt.h"
#include "help_run_ir.h"

#include "ir/access.h"
#include "ir/range.h"
#include "ir/walk.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- claims as asserts ---- */

enum claim { LOW, HIGH, DIVISOR, TRUTH, START, END, RUNS, EVEN, TRIPS, LAST_ONLY, CLAIMS };

struct claims {
  struct ir_module *m; /* with the asserts */
  struct ir_builder b;
  struct ir_intervals *r;
  uint32_t count[CLAIMS];
  uint32_t wrong_at; /* the claim of this number is made too strong (from 1; 0: none) */
  uint32_t made;
};

static bool is_wrong(struct claims *c) {
  return ++c->made == c->wrong_at;
}

static struct ir_val splat(struct claims *c, struct ir_type t, int64_t x) {
  struct ir_val s = ir_const_int(&c->b, (enum dtype)t.dtype, x);
  return t.kind == IR_SCALAR ? s : ir_build1(&c->b, IR_SPLAT, t, 1, &s);
}

static struct ir_val op2(struct claims *c, enum ir_opcode o, struct ir_val x, struct ir_val y) {
  struct ir_type t = ir_type_of(c->m, x);
  struct ir_val in[2] = {x, y};
  bool compares = o == IR_EQ || o == IR_LE || o == IR_GE || o == IR_LT;
  if (compares)
    t.dtype = DT_BOOL;
  return ir_build1(&c->b, o, t, 2, in);
}

static struct ir_val index_const(struct claims *c, int64_t x) {
  return ir_const_int(&c->b, DT_INDEX, x);
}

static void claim(struct claims *c, enum claim kind, struct ir_val holds, const char *what,
                  uint32_t number) {
  struct ir_op o = ir_build(&c->b, IR_ASSERT, 1, &holds, 0, NULL);
  struct ir_attr a = {.key = IR_ATTR_message};
  a.s = symtab_get(c->m->syms, arena_printf(c->m->arena, "%s of %u", what, number));
  ir_set_attr(c->m, o, a);
  c->count[kind]++;
}

/* What is known of one value; the builder stands where it is visible. */
static void claim_value(struct claims *c, struct ir_val v) {
  struct ir_type t = ir_type_of(c->m, v);
  enum dtype dt = (enum dtype)t.dtype;
  if ((t.kind != IR_SCALAR && t.kind != IR_TILE) || dtype_is_float(dt))
    return;
  struct ir_interval r = ir_interval_of(c->r, v), all = ir_interval_all(dt);
  assert_true(r.lo <= r.hi && r.div >= 0 && r.lo >= all.lo && r.hi <= all.hi);
  if (dt == DT_BOOL) {
    struct ir_val no = r.hi < 1 ? ir_build1(&c->b, IR_NOT, t, 1, &v) : v;
    bool wrong = (r.hi < 1 || r.lo > 0) && is_wrong(c);
    if (r.hi < 1 || r.lo > 0)
      claim(c, TRUTH, wrong == (r.hi < 1) ? v : no, "truth", v.id);
    return;
  }
  if (r.lo > all.lo) {
    struct ir_val bound = splat(c, t, is_wrong(c) ? r.hi + (r.hi < all.hi) : r.lo);
    claim(c, LOW, op2(c, IR_GE, v, bound), "low bound", v.id);
  }
  if (r.hi < all.hi)
    claim(c, HIGH, op2(c, IR_LE, v, splat(c, t, r.hi)), "high bound", v.id);
  if (r.div > 1 && r.div <= all.hi) {
    struct ir_val rest = op2(c, IR_MOD, v, splat(c, t, r.div));
    claim(c, DIVISOR, op2(c, IR_EQ, rest, splat(c, t, 0)), "divisor", v.id);
  }
}

static struct ir_val size_of(struct claims *c, struct ir_val view, uint32_t d) {
  struct ir_val n = ir_build1(&c->b, IR_DIM, ir_scalar(DT_INDEX), 1, &view);
  ir_set_attr(c->m, ir_value_at(c->m, n)->def, (struct ir_attr){.key = IR_ATTR_axis, .i = d});
  return n;
}

static void claim_access(struct claims *c, const struct ir_access *a) {
  int64_t masks[IR_MAX_RANK], bare[IR_MAX_RANK];
  ir_access_masks(c->m, c->r, a, masks);
  ir_access_masks(c->m, NULL, a, bare);
  for (uint32_t d = 0; d < a->rank; d++) {
    assert_int_equal(masks[d] & ~bare[d], 0); /* knowing more never masks more */
    struct ir_val end = op2(c, IR_ADD, a->offset[d], index_const(c, a->tile.dim[d]));
    struct ir_val size = size_of(c, a->view, d);
    struct ir_val fits = op2(c, IR_LE, end, size);
    if (!(masks[d] & IR_MASK_END))
      claim(c, END, fits, "end", a->op.id);
    if (!(masks[d] & IR_MASK_START))
      claim(c, START, op2(c, IR_GE, a->offset[d], index_const(c, 0)), "start", a->op.id);
    struct expr dim = a->arg == IR_NO_ARG ? (struct expr){0} : c->m->args.at[a->arg].dim[d];
    struct ir_op loop = {0};
    if (dim.id)
      loop = ir_val_fits_but_last(c->m, a->offset[d], a->tile.dim[d], dim);
    if (loop.id) {
      const struct ir_opnode *n = ir_op_at(c->m, loop);
      struct ir_val hi = n->in[1], step = n->in[2];
      struct ir_val next = op2(c, IR_ADD, ir_block_at(c->m, n->blocks[0])->args.at[0], step);
      struct ir_val last = op2(c, IR_GE, next, hi);
      claim(c, LAST_ONLY, op2(c, IR_OR, last, fits), "last iteration alone", a->op.id);
    }
  }
}

static void claim_loop(struct claims *c, struct ir_op loop) {
  struct ir_loop_facts f = ir_loop_facts(c->m, c->r, loop);
  struct ir_val lo = ir_op_at(c->m, loop)->in[0], hi = ir_op_at(c->m, loop)->in[1];
  struct ir_val step = ir_op_at(c->m, loop)->in[2];
  if (f.runs)
    claim(c, RUNS, op2(c, IR_LT, lo, hi), "running", loop.id);
  struct ir_val span = op2(c, IR_SUB, hi, lo);
  if (f.even)
    claim(c, EVEN, op2(c, IR_EQ, op2(c, IR_MOD, span, step), index_const(c, 0)), "evenness",
          loop.id);
  if (f.trips >= 0) {
    struct ir_val one = op2(c, IR_SUB, step, index_const(c, 1));
    struct ir_val up = op2(c, IR_ADD, span, one);
    struct ir_val trips = op2(c, IR_FLOORDIV, up, step);
    trips = op2(c, IR_MAX, trips, index_const(c, 0));
    claim(c, TRIPS, op2(c, IR_EQ, trips, index_const(c, f.trips)), "trips", loop.id);
  }
}

static void claim_args(struct claims *c, struct ir_block b) {
  c->b.block = b;
  c->b.before = ir_block_at(c->m, b)->first;
  for (uint32_t i = 0; i < ir_block_at(c->m, b)->args.n; i++)
    claim_value(c, ir_block_at(c->m, b)->args.at[i]);
}

/* The module with everything that is claimed of it asserted in it. */
static struct claims instrument(const struct ir_module *original, struct arena *a,
                                uint32_t wrong_at) {
  struct claims c = {.m = ir_clone(original, a), .wrong_at = wrong_at};
  c.r = ir_find_intervals(c.m, a);
  c.b.m = c.m;
  VEC(struct ir_op) ops = {0};
  struct ir_op o = ir_block_at(c.m, c.m->body)->first;
  for (; o.id; o = ir_walk_next(c.m, o, c.m->body))
    VEC_PUSH(a, &ops, o);
  claim_args(&c, c.m->body);
  for (uint32_t i = 0; i < ops.n; i++) {
    o = ops.at[i];
    c.b.block = ir_op_at(c.m, o)->block;
    c.b.before = o;
    struct ir_access access;
    if (ir_access_of(c.m, o, &access))
      claim_access(&c, &access);
    if (ir_op_at(c.m, o)->opcode == IR_FOR)
      claim_loop(&c, o);
    c.b.before = ir_op_at(c.m, o)->next;
    for (uint32_t k = 0; k < ir_op_at(c.m, o)->n_out; k++)
      claim_value(&c, ir_op_at(c.m, o)->out[k]);
    for (uint32_t k = 0; k < ir_op_at(c.m, o)->n_blocks; k++)
      claim_args(&c, ir_op_at(c.m, o)->blocks[k]);
  }
  return c;
}

/* ---- generated modules ---- */

static struct hm_memory memory;

static void add_facts(struct ir_module *m, uint64_t seed) {
  struct ir_fact facts[] = {{.sym = symtab_get(m->syms, "M"), .is_value = true, .n = 7},
                            {.sym = symtab_get(m->syms, "N"), .n = 3},
                            {.sym = symtab_get(m->syms, "N"), .is_value = true, .n = 9}};
  m->facts.n = 0;
  for (uint32_t i = 0; i < COUNT(facts); i++)
    if (seed >> i & 1)
      VEC_PUSH(m->arena, &m->facts, facts[i]);
}

static uint64_t n_seeds(uint64_t otherwise) {
  const char *longer = getenv("KILN_LONG"), *s = getenv("KILN_SEEDS");
  if (s)
    return strtoull(s, NULL, 0);
#ifdef KILN_STRESS
  otherwise /= 5;
#endif
  return longer && strcmp(longer, "1") == 0 ? otherwise * 10 : otherwise;
}

static void test_generated(void **state) {
  (void)state;
  uint32_t count[CLAIMS] = {0};
  const char *first = getenv("KILN_SEED");
  uint64_t seed = first ? strtoull(first, NULL, 0) : 1, end = seed + n_seeds(1000);
  for (; seed < end; seed++) {
    struct help_arena h;
    struct diag_sink diags;
    help_arena_init(&h);
    assert_true(diag_init(&diags, &mem_libc));
    struct gen_ir g = {.seed = seed, .n_ops = 80, .max_depth = 3 + (uint32_t)(seed % 8 == 0) * 4};
    struct ir_module *m = gen_ir(&h.arena, &g);
    add_facts(m, seed);
    struct claims c = instrument(m, &h.arena, 0);
    hm_fill(m, &memory, seed, seed & 16 ? HM_INTEGERS : HM_BITS);
    if (!ir_verify(c.m, &diags) || !hm_run(c.m, &memory, INTERP_ROUNDED, &diags)) {
      hm_print_diags(&diags);
      fail_msg("seed %llu\n%s", (unsigned long long)seed, hm_text(c.m, &h.arena));
    }
    for (uint32_t i = 0; i < CLAIMS; i++)
      count[i] += c.count[i];
    diag_free(&diags);
    arena_free(&h.arena);
  }
  static const char *const names[] = {"low bounds", "high bounds", "divisors", "truths", "starts",
                                      "ends",       "running",     "even",     "trips"};
  for (uint32_t i = 0; i < COUNT(names); i++) {
    printf("%s%u %s", i ? ", " : "", count[i], names[i]);
    if (count[i] < 20) /* so that the test tests something */
      fail_msg("only %u claims of %s were made", count[i], names[i]);
  }
  printf("\n");
}

/* A claim that is a little too strong is seen: the method can fail. */
static void test_wrong_claims(void **state) {
  (void)state;
  uint32_t seen = 0, tried = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct help_arena h;
    struct diag_sink diags;
    help_arena_init(&h);
    assert_true(diag_init(&diags, &mem_libc));
    struct gen_ir g = {.seed = seed, .n_ops = 40, .max_depth = 0};
    struct ir_module *m = gen_ir(&h.arena, &g);
    struct claims right = instrument(m, &h.arena, 0);
    uint32_t wrong_at = 1 + (uint32_t)(seed % (right.made ? right.made : 1));
    struct claims c = instrument(m, &h.arena, wrong_at);
    tried += c.made >= wrong_at;
    hm_fill(m, &memory, seed, HM_INTEGERS);
    seen += !hm_run(c.m, &memory, INTERP_ROUNDED, &diags);
    diag_free(&diags);
    arena_free(&h.arena);
  }
  /* Of an interval of one value the bound cannot be made too strong where the type ends. */
  assert_true(tried >= 30 && seen * 4 >= tried * 3);
}

/* ---- known modules, all small shapes ---- */

/* Loops over the columns of X in steps of 8, with what the facts and bounds of each case are. */
static const char walk_text[] = "kiln-ir 1 tile\n"
                                "kernel walk {\n"
                                "  arg X: in f32 [M, N]\n"
                                "  arg Y: out f32 [M, N]\n"
                                "  dims M, N\n"
                                "%s"
                                "  grid cdiv(M, 4)\n"
                                "  body(%%x: view f32(?,?), %%y: view f32(?,?), %%m: index, "
                                "%%n: index, %%g: index) {\n"
                                "    %%0 = const 0 : index\n"
                                "    %%4 = const 4 : index\n"
                                "    %%8 = const 8 : index\n"
                                "    %%at = mul %%g, %%4 : index\n"
                                "%s"
                                "    for %%k: index = %%0, %%hi, %%8 {\n"
                                "      %%v = load %%x, %%at, %%k : f32(4,8)\n"
                                "      store %%y, %%at, %%k, %%v\n"
                                "      yield\n"
                                "    }\n"
                                "    return\n"
                                "  }\n"
                                "}\n";

static struct ir_module *parse(struct arena *a, const char *text) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct ir_module *m = ir_parse(a, &diags, 0, text, strlen(text));
  if (!m || !ir_verify(m, &diags)) {
    hm_print_diags(&diags);
    fail_msg("%s", text);
  }
  diag_free(&diags);
  return m;
}

static struct ir_op find(const struct ir_module *m, enum ir_opcode opcode) {
  struct ir_op o = ir_block_at(m, m->body)->first;
  while (o.id && ir_op_at(m, o)->opcode != opcode)
    o = ir_walk_next(m, o, m->body);
  assert_true(o.id != 0);
  return o;
}

static void run_walk(const struct ir_module *m, int64_t rows, int64_t cols) {
  static float x[64 * 64], y[64 * 64];
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct interp_arg args[2] = {{.tensor = interp_dense(x, DT_F32, 2, (int64_t[]){rows, cols})},
                               {.tensor = interp_dense(y, DT_F32, 2, (int64_t[]){rows, cols})}};
  struct interp_options opt = {.max_steps = 100000};
  if (!interp_run(m, args, 2, &opt, &diags, &mem_libc)) {
    hm_print_diags(&diags);
    fail_msg("%lld x %lld", (long long)rows, (long long)cols);
  }
  diag_free(&diags);
}

static void test_walks(void **state) {
  (void)state;
  static const struct {
    const char *facts, *hi;
    int64_t m, n;       /* the shape the facts ask for; 0: any */
    int64_t rows, cols; /* masks of the load */
    bool runs, even;
    int64_t trips;
    uint32_t last_only;
  } cases[] = {
      {"", "    %hi = const 16 : index\n", 0, 0, 1, 1, true, true, 2, 0},
      {"", "    %hi = min %n, %n : index\n", 0, 0, 1, 1, false, false, -1, 2},
      {"  fact M % 4\n  fact N % 8\n", "    %hi = min %n, %n : index\n", -4, -8, 0, 0, false, true,
       -1, 0},
      {"  fact M = 8\n  fact N = 24\n", "    %hi = add %n, %0 : index\n", 8, 24, 0, 0, true, true,
       3, 0},
      {"  fact N = 20\n", "    %hi = sub %n, %0 : index\n", 0, 20, 1, 1, true, false, 3, 2},
      {"  fact N = 20\n", "    %hi = const 9 : index\n", 0, 20, 1, 0, true, false, 2, 0},
      {"  fact N % 8\n", "    %c = sub %n, %8 : index\n    %hi = max %c, %0 : index\n", 0, -8, 1, 1,
       false, true, -1, 0},
      {"", "    %c = mul %at, %8 : index\n    %hi = min %n, %c : index\n", 0, 0, 1, 1, false, false,
       -1, 2},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct help_arena h;
    help_arena_init(&h);
    struct ir_module *m =
        parse(&h.arena, arena_printf(&h.arena, walk_text, cases[i].facts, cases[i].hi));
    struct ir_intervals *r = ir_find_intervals(m, &h.arena);
    struct ir_access a;
    int64_t masks[IR_MAX_RANK];
    assert_true(ir_access_of(m, find(m, IR_LOAD), &a));
    ir_access_masks(m, r, &a, masks);
    struct ir_loop_facts f = ir_loop_facts(m, r, find(m, IR_FOR));
    if (masks[0] != cases[i].rows || masks[1] != cases[i].cols || f.runs != cases[i].runs ||
        f.even != cases[i].even || f.trips != cases[i].trips || f.n_last_only != cases[i].last_only)
      fail_msg("case %zu: masks %lld %lld, runs %d, even %d, trips %lld, last only %u", i,
               (long long)masks[0], (long long)masks[1], f.runs, f.even, (long long)f.trips,
               f.n_last_only);
    struct claims c = instrument(m, &h.arena, 0);
    for (int64_t rows = 0; rows <= 9; rows++)
      for (int64_t cols = 0; cols <= 34; cols++) {
        int64_t wm = cases[i].m, wn = cases[i].n;
        if ((wm > 0 && rows != wm) || (wm < 0 && rows % wm) || (wn > 0 && cols != wn) ||
            (wn < 0 && cols % wn))
          continue;
        run_walk(c.m, rows, cols);
      }
    arena_free(&h.arena);
  }
}

/* Which integers need 64 bits. */
static void test_widths(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  struct ir_module *m =
      parse(&h.arena, "kiln-ir 1 tile\n"
                      "kernel w {\n"
                      "  arg X: in s32 [M, N]\n"
                      "  dims M, N\n"
                      "  fact N = 4096\n"
                      "  grid cdiv(M, 4), 65536\n"
                      "  body(%x: view s32(?,?), %m: index, %n: index, %g: index, %j: index) {\n"
                      "    %0 = mul %j, %n : index\n" /* < 65536 * 4096: 28 bits */
                      "    %1 = mul %0, %n : index\n" /* 40 bits */
                      "    %2 = mod %1, %n : index\n" /* below 4096 */
                      "    %3 = add %g, %j : index\n" /* the grid is not known */
                      "    %4 = load %x, %g, %j : s32(4,4)\n"
                      "    %5 = cast %4 : index(4,4)\n"
                      "    %6 = reduce_sum %5 {axis = 0} : index(1,4)\n"
                      "    print %2, %3, %6\n"
                      "    return\n  }\n}\n");
  struct ir_intervals *r = ir_find_intervals(m, &h.arena);
  static const bool fits[] = {true, false, true, false, true, true, false};
  struct ir_op o = ir_block_at(m, m->body)->first;
  for (size_t i = 0; i < COUNT(fits); i++, o = ir_op_at(m, o)->next)
    if (ir_fits_32(r, ir_op_at(m, o)->out[0]) != fits[i])
      fail_msg("value %zu", i);
  struct ir_interval product =
      ir_interval_of(r, ir_op_at(m, ir_block_at(m, m->body)->first)->out[0]);
  assert_int_equal(product.hi, INT64_C(65535) * 4096);
  assert_int_equal(product.div, 4096);
  arena_free(&h.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_generated),
      cmocka_unit_test(test_wrong_claims),
      cmocka_unit_test(test_walks),
      cmocka_unit_test(test_widths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
