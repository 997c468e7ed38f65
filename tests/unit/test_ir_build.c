/* The data structure: types, building, changing, walking, cloning, comparing; layouts. */
#include "help_gen_ir.h"
#include "help_rt.h"

#include "ir/walk.h"

#include <string.h>

struct fixture {
  struct help_arena h;
  struct ir_module *m;
  struct ir_builder b;
};

static void begin(struct fixture *f) {
  help_arena_init(&f->h);
  f->m = ir_module_new(&f->h.arena, IR_TILE_STAGE);
  f->b = (struct ir_builder){.m = f->m, .block = f->m->body};
}

static void end(struct fixture *f) {
  arena_free(&f->h.arena);
}

static const char *text(struct fixture *f, const struct ir_module *m) {
  struct strbuf out = {.arena = &f->h.arena};
  ir_print(m, (struct ir_print_options){0}, &out);
  const char *body = strstr(sb_str(&out), "{\n    ");
  return body ? body + 2 : sb_str(&out);
}

static void test_table(void **state) {
  (void)state;
  for (unsigned i = 1; i < IR_OPCODE_COUNT; i++) {
    const struct ir_opinfo *info = ir_info((enum ir_opcode)i);
    enum ir_opcode found;
    assert_true(ir_find_opcode(info->name, strlen(info->name), &found));
    assert_int_equal(found, i);
    assert_true(info->stages != 0);
    /* Swapping needs two operands; an op is pure or has effects. */
    assert_true(!(info->traits & IR_COMMUTES) || info->n_in == 2);
    assert_true(!(info->traits & IR_PURE) ||
                !(info->traits & (IR_READS | IR_WRITES | IR_EFFECT | IR_TERM | IR_SYNC)));
    for (uint32_t k = 0; k < info->n_attrs; k++)
      assert_true(info->attrs[k].key != IR_ATTR_NONE);
    assert_int_equal(info->attrs[info->n_attrs].key, IR_ATTR_NONE);
  }
  enum ir_opcode none;
  assert_false(ir_find_opcode("ad", 2, &none));
  assert_false(ir_find_opcode("addd", 4, &none));
  assert_false(ir_find_opcode("", 0, &none));
  assert_true(ir_info(IR_DOT)->attrs[0].key == IR_ATTR_prec && !ir_info(IR_DOT)->attrs[0].required);
  assert_true(ir_info(IR_IOTA)->attrs[0].key == IR_ATTR_axis &&
              ir_info(IR_IOTA)->attrs[0].required);
}

static void test_types(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  int64_t d[] = {128, 64}, huge[] = {INT64_MAX, 3}, dyn[] = {IR_DYN, 4};
  struct ir_type t = ir_tile(DT_BF16, 2, d), v = t, s = ir_scalar(DT_F32);
  v.kind = IR_VIEW;
  v.dim[0] = IR_DYN;
  assert_int_equal(ir_elems(t), 128 * 64);
  assert_int_equal(ir_elems(s), 1);
  assert_int_equal(ir_elems(ir_tile(DT_F32, 2, huge)), INT64_MAX);
  assert_int_equal(ir_elems(ir_tile(DT_F32, 2, dyn)), IR_DYN);
  assert_true(ir_type_eq(t, t));
  assert_false(ir_type_eq(t, v));
  assert_true(ir_shape_eq(t, ir_tile(DT_F32, 2, d)));
  assert_false(ir_type_eq(t, ir_tile(DT_F32, 2, d)));
  assert_false(ir_shape_eq(t, s));
  static const char *const want[] = {"bf16(128,64)", "view bf16(?,64)", "f32", "ptr f32", "none"};
  struct ir_type types[] = {t, v, s, {.kind = IR_PTR, .dtype = DT_F32}, {.kind = IR_NONE}};
  for (int i = 0; i < 5; i++) {
    struct strbuf out = {.arena = &h.arena};
    ir_type_describe(types[i], &out);
    assert_string_equal(sb_str(&out), want[i]);
  }
  arena_free(&h.arena);
}

static void test_attrs_are_sorted(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct ir_val v = ir_const_int(&f.b, DT_S32, 7);
  struct ir_op o = ir_value_at(f.m, v)->def;
  int64_t ints[] = {3, 1};
  ir_set_attr(f.m, o, (struct ir_attr){.key = IR_ATTR_perm, .ints = ints, .n_ints = 2});
  ints[0] = 9; /* copied */
  ir_set_attr(f.m, o, (struct ir_attr){.key = IR_ATTR_pad, .i = 5});
  ir_set_attr(f.m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = 1});
  ir_set_attr(f.m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = 2}); /* replaces */
  const struct ir_opnode *n = ir_op_at(f.m, o);
  assert_int_equal(n->n_attrs, 4);
  for (uint32_t i = 1; i < n->n_attrs; i++)
    assert_true(n->attrs[i - 1].key < n->attrs[i].key);
  assert_int_equal(ir_attr_int(f.m, o, IR_ATTR_axis, -1), 2);
  assert_int_equal(ir_attr_int(f.m, o, IR_ATTR_message, -1), -1);
  assert_int_equal(ir_get_attr(f.m, o, IR_ATTR_perm)->ints[0], 3);
  assert_null(ir_get_attr(f.m, o, IR_ATTR_prec));
  end(&f);
}

static void test_constants_take_their_dtype(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct ir_val a = ir_const_num(&f.b, DT_BF16, 0.1), b = ir_const_int(&f.b, DT_F16, 3);
  struct ir_val c = ir_const_num(&f.b, DT_S32, 2.5);
  ir_const_num(&f.b, DT_F32, -0.0);
  assert_true(ir_get_attr(f.m, ir_value_at(f.m, a)->def, IR_ATTR_value)->f == 0.10009765625);
  assert_true(ir_get_attr(f.m, ir_value_at(f.m, b)->def, IR_ATTR_value)->f == 3.0);
  assert_int_equal(ir_get_attr(f.m, ir_value_at(f.m, c)->def, IR_ATTR_value)->i, 2);
  assert_string_equal(text(&f, f.m), "    %0 = const 0.10009765625 : bf16\n"
                                     "    %1 = const 3.0 : f16\n"
                                     "    %2 = const 2 : s32\n"
                                     "    %3 = const -0.0 : f32\n  }\n}\n");
  end(&f);
}

static void test_operands_grow(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct ir_val v[3] = {ir_const_int(&f.b, DT_S32, 0), ir_const_int(&f.b, DT_S32, 1),
                        ir_const_int(&f.b, DT_S32, 2)};
  for (uint32_t first = 0; first <= 3; first++) {
    struct ir_op o = ir_build(&f.b, IR_PRINT, first, v, 0, NULL);
    for (uint32_t i = first; i < 300; i++)
      ir_add_operand(f.m, o, v[i % 3]);
    assert_int_equal(ir_op_at(f.m, o)->n_in, 300);
    for (uint32_t i = 0; i < 300; i++)
      assert_int_equal(ir_op_at(f.m, o)->in[i].id, v[i % 3].id);
  }
  end(&f);
}

/* a b c, in the order of their constants. */
static void expect_order(struct fixture *f, struct ir_block b, const char *want) {
  char got[20];
  size_t n = 0;
  struct ir_op prev = {0};
  IR_EACH_OP (f->m, b, o) {
    assert_int_equal(ir_op_at(f->m, o)->prev.id, prev.id);
    assert_int_equal(ir_op_at(f->m, o)->block.id, b.id);
    got[n++] = (char)('a' + ir_attr_int(f->m, o, IR_ATTR_value, 0));
    prev = o;
  }
  got[n] = 0;
  assert_int_equal(ir_block_at(f->m, b)->last.id, prev.id);
  assert_string_equal(got, want);
}

static void test_links(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct ir_op o[4];
  struct ir_block body = f.m->body, other = ir_new_block(f.m, (struct ir_op){0});
  for (int i = 0; i < 3; i++)
    o[i] = ir_value_at(f.m, ir_const_int(&f.b, DT_S32, i))->def;
  expect_order(&f, body, "abc");
  f.b.before = o[1];
  o[3] = ir_value_at(f.m, ir_const_int(&f.b, DT_S32, 3))->def;
  expect_order(&f, body, "adbc");
  ir_move_before(f.m, o[2], body, o[0]);
  expect_order(&f, body, "cadb");
  ir_move_before(f.m, o[2], body, (struct ir_op){0});
  expect_order(&f, body, "adbc");
  ir_move_before(f.m, o[3], body, o[3]); /* onto itself */
  expect_order(&f, body, "adbc");
  ir_move_before(f.m, o[3], other, (struct ir_op){0});
  expect_order(&f, body, "abc");
  expect_order(&f, other, "d");
  ir_move_before(f.m, o[0], other, o[3]);
  expect_order(&f, body, "bc");
  expect_order(&f, other, "ad");
  ir_remove(f.m, o[1]);
  expect_order(&f, body, "c");
  ir_remove(f.m, o[2]);
  expect_order(&f, body, "");
  end(&f);
}

static struct ir_op build_if(struct fixture *f, struct ir_val c) {
  struct ir_op o = ir_build(&f->b, IR_IF, 1, &c, 0, NULL);
  struct ir_builder inner = f->b;
  for (int i = 0; i < 2; i++) {
    inner.block = ir_op_at(f->m, o)->blocks[i];
    ir_build(&inner, IR_PRINT, 1, &c, 0, NULL);
    ir_build(&inner, IR_YIELD, 0, NULL, 0, NULL);
  }
  return o;
}

static void count_and_remove(void *user, struct ir_module *m, struct ir_op o) {
  uint32_t *count = user;
  count[ir_op_at(m, o)->opcode]++;
  if (ir_op_at(m, o)->opcode == IR_PRINT || count[IR_IF] == 2)
    ir_remove(m, o);
}

static void test_walk(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct ir_val c = ir_const_int(&f.b, DT_BOOL, 1);
  struct ir_op first = build_if(&f, c);
  build_if(&f, c);
  ir_build(&f.b, IR_RETURN, 0, NULL, 0, NULL);
  /* In order, and no further than the block it was given. */
  struct ir_block then = ir_op_at(f.m, first)->blocks[0];
  struct ir_op o = ir_block_at(f.m, then)->first;
  o = ir_walk_next(f.m, o, then);
  assert_int_equal(ir_op_at(f.m, o)->opcode, IR_YIELD);
  assert_int_equal(ir_walk_next(f.m, o, then).id, 0);
  assert_int_equal(ir_op_at(f.m, ir_walk_next(f.m, o, f.m->body))->opcode, IR_PRINT);
  /* A visitor may remove what it is given; the blocks of a removed op are not visited. */
  uint32_t count[IR_OPCODE_COUNT] = {0};
  ir_walk(f.m, f.m->body, count_and_remove, count);
  assert_int_equal(count[IR_IF], 2);
  assert_int_equal(count[IR_PRINT], 2);
  assert_int_equal(count[IR_YIELD], 2);
  assert_int_equal(count[IR_RETURN], 1);
  end(&f);
}

static void test_replace_uses(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct ir_val c = ir_const_int(&f.b, DT_BOOL, 1), d = ir_const_int(&f.b, DT_BOOL, 0);
  build_if(&f, c);
  ir_replace_uses(f.m, c, d);
  assert_string_equal(text(&f, f.m), "    %0 = const true : bool\n    %1 = const false : bool\n"
                                     "    if %1 {\n      print %1\n      yield\n    } else {\n"
                                     "      print %1\n      yield\n    }\n  }\n}\n");
  end(&f);
}

/* Thousands of nested blocks cost no C stack in what runs on modules not yet verified. */
static void test_deep(void **state) {
  (void)state;
#ifdef KILN_STRESS
  const uint32_t depth = 1000;
#else
  const uint32_t depth = 200000;
#endif
  struct fixture f;
  begin(&f);
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct ir_val c = ir_const_int(&f.b, DT_BOOL, 1);
  for (uint32_t i = 0; i < depth; i++) {
    struct ir_op o = ir_build(&f.b, IR_IF, 1, &c, 0, NULL);
    f.b.block = ir_op_at(f.m, o)->blocks[0];
  }
  struct strbuf out = {.arena = &f.h.arena};
  ir_print(f.m, (struct ir_print_options){0}, &out);
  assert_true(out.n < depth * 300);
  struct ir_module *copy = ir_clone(f.m, &f.h.arena);
  assert_true(ir_equal(f.m, copy, NULL));
  assert_false(ir_verify(f.m, &diags));
  help_expect_diag(&diags, DIAG_IR_INVALID, "nested deeper than 200");
  diag_free(&diags);
  end(&f);
}

/* ---- clone and equal ---- */

static void test_clone(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed < 60; seed++) {
    struct help_arena h, h2;
    help_arena_init(&h);
    help_arena_init(&h2);
    struct gen_ir g = {.seed = seed, .n_ops = 30, .max_depth = 3};
    struct ir_module *m =
        seed % 2 ? gen_ir(&h.arena, &g) : gen_ir_text(&h.arena, &g, (enum ir_stage)(seed / 2 % 3));
    struct strbuf before = {.arena = &h2.arena}, after = {.arena = &h2.arena};
    ir_print(m, (struct ir_print_options){.names = true, .locs = true}, &before);
    struct ir_module *copy = ir_clone(m, &h2.arena);
    assert_true(ir_equal(m, copy, NULL));
    /* Nothing of the copy lies in the first arena. */
    arena_free(&h.arena);
    ir_print(copy, (struct ir_print_options){.names = true, .locs = true}, &after);
    assert_string_equal(sb_str(&before), sb_str(&after));
    /* It can be built on. */
    struct ir_builder b = {.m = copy, .block = copy->body};
    ir_const_int(&b, DT_S32, 1);
    assert_true(copy->values.n > 1);
    arena_free(&h2.arena);
  }
}

static void change_nothing(struct ir_module *m) {
  m->values.at[1].name = symtab_get(m->syms, "other");
  m->ops.at[1].loc = ir_add_loc(m, (struct diag_loc){0, 77, 1}, 0);
}
static void change_kernel(struct ir_module *m) {
  m->kernel = symtab_get(m->syms, "other");
}
static void change_target(struct ir_module *m) {
  m->target = symtab_get(m->syms, "sm_80");
}
static void change_arg(struct ir_module *m) {
  m->args.at[0].optional = !m->args.at[0].optional;
}
static void change_arg_dim(struct ir_module *m) {
  m->args.at[0].dim[0] = expr_const(&m->exprs, 5);
}
static void change_config(struct ir_module *m) {
  struct ir_config_entry e = {.key = symtab_get(m->syms, "z"), .kind = IR_CFG_INT};
  VEC_PUSH(m->arena, &m->config, e);
}
static void change_fact(struct ir_module *m) {
  struct ir_fact x = {.sym = symtab_get(m->syms, "M"), .n = 2};
  VEC_PUSH(m->arena, &m->facts, x);
}
static void change_grid(struct ir_module *m) {
  m->grid[0] = expr_op2(&m->exprs, EXPR_ADD, m->grid[0], expr_sym(&m->exprs, "M"));
}
static void change_role(struct ir_module *m) {
  VEC_PUSH(m->arena, &m->roles, (struct ir_role){.name = symtab_get(m->syms, "r")});
}
static void change_res(struct ir_module *m) {
  m->res.at[1].type.dtype ^= 1;
}
static void change_layout(struct ir_module *m) {
  m->layouts.at[1]->rank = 1 - m->layouts.at[1]->rank;
}
static void change_param(struct ir_module *m) {
  m->params.at[0].value = expr_sym(&m->exprs, "Q");
}
static void change_recipe(struct ir_module *m) {
  m->recipe = recipe_new(m->arena, m->syms);
  m->recipe->kernel = m->recipe->target = "";
}
static void change_type(struct ir_module *m) {
  m->values.at[1].type.dtype ^= 1;
}
static void change_value_layout(struct ir_module *m) {
  m->values.at[1].layout ^= 1;
}
static void change_sched(struct ir_module *m) {
  ir_op_at(m, ir_block_at(m, m->body)->last)->sched.order ^= 1;
}
static void change_opcode(struct ir_module *m) {
  struct ir_builder b = {.m = m, .block = m->body};
  ir_build(&b, IR_RETURN, 0, NULL, 0, NULL);
}
static void change_order(struct ir_module *m) {
  ir_remove(m, ir_block_at(m, m->body)->last);
}

static void test_equal_sees(void **state) {
  (void)state;
  static const struct {
    const char *what;
    void (*change)(struct ir_module *m);
    bool same;
  } cases[] = {{"names and locations", change_nothing, true},
               {"kernel", change_kernel, false},
               {"target", change_target, false},
               {"argument", change_arg, false},
               {"dim", change_arg_dim, false},
               {"config", change_config, false},
               {"fact", change_fact, false},
               {"grid", change_grid, false},
               {"role", change_role, false},
               {"resource", change_res, false},
               {"layout", change_layout, false},
               {"param", change_param, false},
               {"recipe", change_recipe, false},
               {"type", change_type, false},
               {"value layout", change_value_layout, false},
               {"schedule", change_sched, false},
               {"more ops", change_opcode, false},
               {"fewer ops", change_order, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct help_arena h;
    help_arena_init(&h);
    struct gen_ir g = {.seed = 4, .n_ops = 20, .max_depth = 2};
    struct ir_module *m = gen_ir_text(&h.arena, &g, IR_MACHINE_STAGE);
    struct ir_module *copy = ir_clone(m, &h.arena);
    struct strbuf why = {.arena = &h.arena};
    assert_true(ir_equal(m, copy, &why));
    cases[i].change(copy);
    if (ir_equal(m, copy, &why) != cases[i].same)
      fail_msg("%s: %s", cases[i].what, sb_str(&why));
    assert_int_equal(why.n == 0, cases[i].same); /* says where */
    assert_int_equal(ir_equal(copy, m, NULL), cases[i].same);
    arena_free(&h.arena);
  }
}

/* Ops equal one by one, but in other blocks. */
static void test_equal_sees_structure(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  struct ir_val c = ir_const_int(&f.b, DT_BOOL, 1);
  struct ir_op o = ir_build(&f.b, IR_IF, 1, &c, 0, NULL);
  struct ir_builder inner = f.b;
  inner.block = ir_op_at(f.m, o)->blocks[0];
  struct ir_op p = ir_build(&inner, IR_PRINT, 0, NULL, 0, NULL);
  struct ir_module *copy = ir_clone(f.m, &f.h.arena);
  ir_move_before(copy, p, ir_op_at(copy, o)->blocks[1], (struct ir_op){0});
  assert_false(ir_equal(f.m, copy, NULL));
  ir_move_before(copy, p, copy->body, (struct ir_op){0});
  assert_false(ir_equal(f.m, copy, NULL));
  ir_move_before(copy, p, ir_op_at(copy, o)->blocks[0], (struct ir_op){0});
  assert_true(ir_equal(f.m, copy, NULL));
  end(&f);
}

/* ---- layouts ---- */

/* The accumulator of mma.m16n8: PTX ISA, figure of the C fragment: c0, c1 in row lane / 4, c2, c3
 * in row lane / 4 + 8; column (lane % 4) * 2 + (i & 1). */
static void test_layout_of_mma(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  int64_t shape[] = {16, 8}, step[4][2] = {{0, 1}, {8, 0}, {0, 2}, {1, 0}};
  struct layout *l = layout_new(&h.arena, 2, shape);
  layout_add(&h.arena, l, LAYOUT_LANE, 4, step[2]); /* groups are put in order */
  layout_add(&h.arena, l, LAYOUT_REG, 2, step[0]);
  layout_add(&h.arena, l, LAYOUT_LANE, 8, step[3]);
  layout_add(&h.arena, l, LAYOUT_REG, 2, step[1]);
  assert_int_equal(layout_extent(l, LAYOUT_REG), 4);
  assert_int_equal(layout_extent(l, LAYOUT_LANE), 32);
  assert_int_equal(layout_extent(l, LAYOUT_CTA), 1);
  for (uint32_t lane = 0; lane < 32; lane++)
    for (uint32_t i = 0; i < 4; i++) {
      uint32_t hw[LAYOUT_HW_COUNT] = {i, lane, 0, 0, 0};
      int64_t at[LAYOUT_MAX_RANK];
      layout_coord(l, hw, at);
      assert_int_equal(at[0], lane / 4 + (i < 2 ? 0 : 8));
      assert_int_equal(at[1], lane % 4 * 2 + (i & 1));
    }
  struct strbuf out = {.arena = &h.arena};
  layout_print(l, &out);
  assert_string_equal(sb_str(&out), "[16,8] reg 2:(0,1) 2:(8,0) lane 4:(0,2) 8:(1,0)");
  arena_free(&h.arena);
}

static void test_layout_text(void **state) {
  (void)state;
  static const char *const good[] = {
      "[16,8] reg 2:(0,1) 2:(8,0) lane 4:(0,2) 8:(1,0)", "[]", "[] reg 3:()",
      "[7] reg 3!:(1) warp 5:(0) warpgroup 2:(2) cta 4:(100)", "[1,2,3,4,5] lane 2:(0,0,0,0,-1)"};
  static const struct {
    const char *text, *error;
  } bad[] = {{"", "`[` expected"},
             {"[16", "`,` or `]` expected"},
             {"[1,2,3,4,5,6]", "more than 5 dims"},
             {"[99999999999999999999]", "number too large"},
             {"[4] reg x:(1)", NULL},
             {"[4] reg 2(1)", "`:(` expected after an extent"},
             {"[4] reg 2:(1,2)", "one step per dim expected"},
             {"[4] reg 0:(1)", "extent out of range"},
             {"[4] reg 4294967296:(1)", "extent out of range"},
             {"[4] reg 2:(x)", "number expected"}};
  struct help_arena h;
  help_arena_init(&h);
  const char *after, *error;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    const char *stop = good[i] + strlen(good[i]);
    struct layout *l = layout_parse(&h.arena, good[i], stop, &after, &error);
    assert_non_null(l);
    assert_ptr_equal(after, stop);
    struct strbuf out = {.arena = &h.arena};
    layout_print(l, &out);
    assert_string_equal(sb_str(&out), good[i]);
    struct layout *again = layout_parse(&h.arena, good[i], stop, &after, &error);
    assert_true(layout_eq(l, again));
    if (l->modes.n) {
      again->modes.at[0].unreduced = !again->modes.at[0].unreduced;
      assert_false(layout_eq(l, again));
    }
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    error = NULL;
    struct layout *l =
        layout_parse(&h.arena, bad[i].text, bad[i].text + strlen(bad[i].text), &after, &error);
    if (bad[i].error) {
      assert_null(l);
      assert_string_equal(error, bad[i].error);
    } else if (l) { /* stops where the layout ends */
      assert_true(*after != 0);
    } else {
      assert_non_null(error);
    }
  }
  arena_free(&h.arena);
}

static void test_layouts_are_interned(void **state) {
  (void)state;
  struct fixture f;
  begin(&f);
  int64_t shape[] = {4}, step[] = {1};
  struct layout *l = layout_new(&f.h.arena, 1, shape);
  layout_add(&f.h.arena, l, LAYOUT_REG, 4, step);
  uint32_t a = ir_add_layout(f.m, l);
  assert_int_equal(ir_add_layout(f.m, l), a);
  layout_add(&f.h.arena, l, LAYOUT_LANE, 4, step); /* the module has a copy */
  uint32_t b = ir_add_layout(f.m, l);
  assert_true(a != b && a && b);
  assert_int_equal(f.m->layouts.n, 3);
  end(&f);
}

static void test_layout_extents_saturate(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  int64_t shape[] = {4}, step[] = {0};
  struct layout *l = layout_new(&h.arena, 1, shape);
  for (int i = 0; i < 4; i++)
    layout_add(&h.arena, l, LAYOUT_REG, UINT32_MAX, step);
  assert_int_equal(layout_extent(l, LAYOUT_REG), UINT32_MAX);
  arena_free(&h.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_attrs_are_sorted),
      cmocka_unit_test(test_constants_take_their_dtype),
      cmocka_unit_test(test_operands_grow),
      cmocka_unit_test(test_links),
      cmocka_unit_test(test_walk),
      cmocka_unit_test(test_replace_uses),
      cmocka_unit_test(test_deep),
      cmocka_unit_test(test_clone),
      cmocka_unit_test(test_equal_sees),
      cmocka_unit_test(test_equal_sees_structure),
      cmocka_unit_test(test_layout_of_mma),
      cmocka_unit_test(test_layout_text),
      cmocka_unit_test(test_layouts_are_interned),
      cmocka_unit_test(test_layout_extents_saturate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
