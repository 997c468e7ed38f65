/* Taps (ir/tap.h) and watches (interp.h): a value of one program and iteration becomes an output,
 * and nothing else changes; who wrote an element is told. */
#include "help_gen_ir.h"
#include "help_rt.h"
#include "help_run_ir.h"

#include "ir/tap.h"

#include <string.h>

/* Two nested loops, a while in a branch; X is [N], Y is [N, 4]. */
static const char text[] =
    "kiln-ir 1 tile\n"
    "kernel k {\n"
    "  arg X: in f32 [N]\n"
    "  arg Y: out f32 [N, 4]\n"
    "  dims N\n"
    "  grid 2, 3\n"
    "  body(%x: view f32(?), %y: view f32(?,4), %n: index, %i: index, %j: index) {\n"
    "    %c0 = const 0 : index\n"
    "    %c1 = const 1 : index\n"
    "    %c2 = const 2 : index\n"
    "    %c4 = const 4 : index\n"
    "    %c5 = const 5 : index\n"
    "    %c9 = const 9 : index\n"
    "    %r = for %k: index = %c1, %c9, %c4 carry(%s: index = %c0) : index {\n"
    "      %t = for %l: index = %c0, %c2, %c1 carry(%u: index = %s) : index {\n"
    "        %v = add %u, %k : index\n"
    "        %w = mul %v, %c2 : index\n"
    "        yield %w\n"
    "      }\n"
    "      yield %t\n"
    "    }\n"
    "    %p = while (%q: index = %c1) : index {\n"
    "      %b = lt %q, %c9 : bool\n"
    "      condition %b, %q\n"
    "    } do (%e: index) {\n"
    "      %f = mul %e, %c2 : index\n"
    "      yield %f\n"
    "    }\n"
    "    %g = cast %i : f32\n"
    "    %h = splat %g : f32(2,4)\n"
    "    %m = mul %j, %c2 : index\n"
    "    %z = eq %i, %c1 : bool\n"
    "    if %z {\n"
    "      for %o: index = %c0, %c5, %c1 {\n"
    "        store %y, %m, %c0, %h\n"
    "        yield\n"
    "      }\n"
    "      yield\n"
    "    } else {\n"
    "      yield\n"
    "    }\n"
    "    return\n"
    "  }\n"
    "}\n";

struct fixture {
  struct help_arena mem;
  struct diag_sink diags;
  struct ir_module *m;
};

static void start(struct fixture *f) {
  help_arena_init(&f->mem);
  assert_true(diag_init(&f->diags, &mem_libc));
  f->m = ir_parse(&f->mem.arena, &f->diags, 0, text, strlen(text));
  if (!f->m || !ir_verify(f->m, &f->diags)) {
    hm_print_diags(&f->diags);
    fail();
  }
}

static void stop(struct fixture *f) {
  diag_free(&f->diags);
  arena_free(&f->mem.arena);
}

static void run(const struct ir_module *m, struct interp_arg *args, struct interp_watch *watch,
                struct diag_sink *diags) {
  struct interp_options o = {.domain = INTERP_ROUNDED, .watch = watch};
  if (!interp_run(m, args, m->args.n, &o, diags, &mem_libc)) {
    hm_print_diags(diags);
    fail();
  }
}

/* The n-th op of an opcode, in the order of the text. */
struct nth {
  enum ir_opcode opcode;
  uint32_t n;
  struct ir_op found;
};

static void look(void *user, struct ir_module *m, struct ir_op o) {
  struct nth *x = user;
  if (ir_op_at(m, o)->opcode == x->opcode && x->n-- == 0)
    x->found = o;
}

static struct ir_val value(struct ir_module *m, enum ir_opcode opcode, uint32_t n) {
  struct nth x = {opcode, n, {0}};
  ir_walk(m, m->body, look, &x);
  assert_true(x.found.id != 0);
  return ir_op_at(m, x.found)->out[0];
}

/* The value at a program and iterations, which is an index; -1: it is not stored. */
static int64_t seen(struct fixture *f, struct ir_val v, int64_t i, int64_t j, int64_t outer,
                    int64_t inner) {
  float x[6] = {0}, y[24] = {0};
  int64_t got = -1, dims[2] = {6, 4}, one = 1;
  struct ir_module *m = ir_clone(f->m, &f->mem.arena);
  struct ir_tap tap;
  struct interp_arg args[16] = {0};
  assert_true(ir_add_tap(m, v, &tap));
  if (!ir_verify(m, &f->diags)) {
    hm_print_diags(&f->diags);
    fail();
  }
  args[0].tensor = interp_dense(x, DT_F32, 1, dims);
  args[1].tensor = interp_dense(y, DT_F32, 2, dims);
  args[tap.first].i = i;
  args[tap.first + 1].i = j;
  args[tap.first + 2].i = outer;
  if (tap.n_loops > 1)
    args[tap.first + 3].i = inner;
  assert_int_equal(tap.value, tap.first + 2 + tap.n_loops);
  assert_int_equal(m->args.n, tap.value + 1);
  assert_true(tap.changed_dtype);
  args[tap.value].tensor = interp_dense(&got, m->args.at[tap.value].dtype, 1, &one);
  run(m, args, NULL, &f->diags);
  return got;
}

static void test_iterations(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  /* u, w over (outer, inner): 0 2 | 6 22 | ... with k = 1, 5: (0+1)*2 = 2, (2+1)*2 = 6,
   * (6+5)*2 = 22, (22+5)*2 = 54. */
  static const int64_t w[2][2] = {{2, 6}, {22, 54}}, u[2][2] = {{0, 2}, {6, 22}};
  struct ir_val v = value(f.m, IR_MUL, 0), carried = ir_op_at(f.m, ir_value_at(f.m, v)->def)->in[0];
  carried = ir_op_at(f.m, ir_value_at(f.m, carried)->def)->in[0];
  assert_int_equal(ir_value_at(f.m, carried)->def.id, 0);
  for (int64_t outer = 0; outer < 2; outer++)
    for (int64_t inner = 0; inner < 2; inner++) {
      assert_int_equal(seen(&f, v, 1, 2, outer, inner), w[outer][inner]);
      assert_int_equal(seen(&f, carried, 0, 0, outer, inner), u[outer][inner]);
    }
  assert_int_equal(seen(&f, v, 1, 2, 2, 0), -1); /* no such iteration, no such program */
  assert_int_equal(seen(&f, v, 1, 2, 0, 2), -1);
  assert_int_equal(seen(&f, v, 2, 0, 0, 0), -1);
  /* The while: 1, 2, 4, 8, 16; the condition is asked once more than the body runs. */
  struct ir_val test = value(f.m, IR_LT, 0), next = value(f.m, IR_MUL, 1);
  for (int64_t i = 0; i < 4; i++) {
    assert_int_equal(seen(&f, next, 0, 1, i, 0), INT64_C(2) << i);
    assert_int_equal((int32_t)seen(&f, test, 0, 1, i, 0), 1);
  }
  assert_int_equal(seen(&f, next, 0, 1, 4, 0), -1);
  assert_int_equal((int32_t)seen(&f, test, 0, 1, 4, 0), 0);
  assert_int_equal((int32_t)seen(&f, test, 0, 1, 5, 0), -1);
  stop(&f);
}

static void test_watch(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  float x[6] = {0}, y[24] = {0};
  int64_t dims[2] = {6, 4};
  struct interp_arg args[2] = {0};
  args[0].tensor = interp_dense(x, DT_F32, 1, dims);
  args[1].tensor = interp_dense(y, DT_F32, 2, dims);
  struct interp_watch w = {.arg = 1, .coord = {5, 3}};
  run(f.m, args, &w, &f.diags);
  assert_true(w.found);
  assert_int_equal(ir_op_at(f.m, w.op)->opcode, IR_STORE);
  assert_int_equal(w.program[0], 1);
  assert_int_equal(w.program[1], 2);
  assert_int_equal(w.cell, 7);
  assert_int_equal(w.n_loops, 1);
  assert_int_equal(w.iteration[0], 4);
  w = (struct interp_watch){.arg = 0, .coord = {5}};
  run(f.m, args, &w, &f.diags);
  assert_false(w.found);
  w = (struct interp_watch){.arg = 1, .coord = {6, 0}}; /* there is none */
  run(f.m, args, &w, &f.diags);
  assert_false(w.found);
  stop(&f);
}

/* ---- any value of any module ---- */

struct values {
  struct ir_val at[4096];
  uint32_t n;
};

static void list(void *user, struct ir_module *m, struct ir_op o) {
  struct values *x = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_op up = ir_block_at(m, n->block)->parent;
  for (; up.id; up = ir_block_at(m, ir_op_at(m, up)->block)->parent)
    if (ir_op_at(m, up)->opcode == IR_MERGE)
      return; /* runs in parts of loops alone */
  for (uint32_t i = 0; i < n->n_out && x->n < 4000; i++)
    x->at[x->n++] = n->out[i];
  for (uint32_t k = 0; k < n->n_blocks && n->opcode != IR_MERGE; k++) {
    const struct ir_blocknode *b = ir_block_at(m, n->blocks[k]);
    for (uint32_t i = 0; i < b->args.n && x->n < 4000; i++)
      x->at[x->n++] = b->args.at[i];
  }
}

/* The tapped module is valid and does to the other arguments what it did before; in program 0 and
 * first iterations a value in no branch is stored. */
static void test_any_value(void **state) {
  (void)state;
  static struct hm_memory before, after;
  static struct values values;
  uint32_t tapped = 0, views = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    struct help_arena mem;
    struct diag_sink diags;
    struct gen_ir g = {.seed = seed, .n_ops = 30, .max_depth = 3};
    help_arena_init(&mem);
    assert_true(diag_init(&diags, &mem_libc));
    struct ir_module *m = gen_ir(&mem.arena, &g), *with = ir_clone(m, &mem.arena);
    values.n = 0;
    ir_walk(m, m->body, list, &values);
    uint64_t random = seed;
    struct ir_tap tap;
    struct ir_val v = values.at[gen_below(&random, values.n)];
    if (!ir_add_tap(with, v, &tap)) {
      views++;
      assert_int_equal(ir_type_of(m, v).kind, IR_VIEW);
      assert_true(ir_equal(m, with, &(struct strbuf){.arena = &mem.arena}));
    } else if (with->args.n <= HM_MAX_ARGS) {
      tapped++;
      if (!ir_verify(with, &diags)) {
        hm_print_diags(&diags);
        fail_msg("seed %llu:\n%s", (unsigned long long)seed, hm_text(with, &mem.arena));
      }
      hm_fill(m, &before, seed, HM_INTEGERS);
      hm_fill(with, &after, seed, HM_INTEGERS);
      memcpy(after.bytes, before.bytes, m->args.n * sizeof before.bytes[0]);
      for (uint32_t i = 0; i < m->args.n; i++) {
        after.args[i].i = before.args[i].i;
        after.args[i].f = before.args[i].f;
      }
      for (uint32_t i = tap.first; i < tap.value; i++)
        after.args[i].i = 0;
      bool ran = hm_run(m, &before, INTERP_ROUNDED, &diags);
      assert_true(ran && hm_run(with, &after, INTERP_ROUNDED, &diags));
      const char *why = hm_difference(m, &before, &after, &mem.arena);
      if (why)
        fail_msg("seed %llu: %s", (unsigned long long)seed, why);
    }
    diag_free(&diags);
    arena_free(&mem.arena);
  }
  print_message("%u values tapped, %u views refused\n", tapped, views);
  assert_true(tapped > 100 && views > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_iterations),
      cmocka_unit_test(test_watch),
      cmocka_unit_test(test_any_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
