/* kiln_diff finds what it says it finds: passes with a fault in them, and the element, tile, op,
 * pass and knobs that it must name for each. */
#include "help_api.h"

#include "api/diff.h"
#include "codegen/schedule.h"
#include "ir/passes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- kernels ---- */

static const char axpy[] = //
    "return kernel {\n"
    "  name = 'axpy',\n"
    "  args = { tensor('X', f32, 'N'), tensor('Z', f32, 'N'), out('Y', f32, 'N') },\n"
    "  grid = function(d) return cdiv(d.N, 64) end,\n"
    "  body = function(a, d, c, i)\n"
    "    local x = a.X:tile({i * 64}, {64}) * 3\n"
    "    local z = a.Z:tile({i * 64}, {64})\n"
    "    local y = x -\n"
    "      z\n"
    "    a.Y:store({i * 64}, y)\n"
    "  end,\n"
    "}\n";

static const char growth[] = //
    "return kernel {\n"
    "  name = 'growth',\n"
    "  args = { tensor('X', f32, 'N'), out('Y', f32, 'N') },\n"
    "  grid = function(d) return cdiv(d.N, 64) end,\n"
    "  body = function(a, d, c, i)\n"
    "    local e = exp(a.X:tile({i * 64}, {64}))\n"
    "    local y = e *\n"
    "      e\n"
    "    a.Y:store({i * 64}, y + 1)\n"
    "  end,\n"
    "}\n";

static const char rowsum[] = //
    "return kernel {\n"
    "  name = 'rows',\n"
    "  args = { tensor('X', f32, 'M', 'N'), out('S', f32, 'M', '1') },\n"
    "  const = { N = {256} },\n"
    "  grid = function(d) return d.M end,\n"
    "  body = function(a, d, c, i)\n"
    "    local s = rowsum(a.X:tile({i, 0}, {1, c.N}))\n"
    "    a.S:store({i, 0}, s * 2)\n"
    "  end,\n"
    "}\n";

static const char gemm[] = //
    "return kernel {\n"
    "  name = 'mm',\n"
    "  args = { tensor('A', bf16, 'M', 'K'), tensor('B', bf16, 'K', 'N'), out('C', f32, 'M', 'N') },\n"
    "  grid = function(d) return cdiv(d.M, 64), cdiv(d.N, 64) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local acc = zeros(f32, 64, 64)\n"
    "    for k in range(0, d.K, 32) do\n"
    "      local x = a.A:tile({i * 64, k}, {64, 32})\n"
    "      local y = a.B:tile({k, j * 64}, {32, 64})\n"
    "      acc = acc + dot(x, y)\n"
    "    end\n"
    "    a.C:store({i * 64, j * 64}, acc)\n"
    "  end,\n"
    "}\n";

static const char powers[] = /* x is doubled until all of it is at least 16 */
    "return kernel {\n"
    "  name = 'powers',\n"
    "  args = { tensor('X', f32, 'N'), out('Y', f32, 'N') },\n"
    "  grid = function(d) return cdiv(d.N, 64) end,\n"
    "  body = function(a, d, c, i)\n"
    "    local x = a.X:tile({i * 64}, {64}) + 1\n"
    "    local n = index(0)\n"
    "    while n < 4 do\n"
    "      x = x * 2\n"
    "      n = n + 1\n"
    "    end\n"
    "    if n > 3 then\n"
    "      x = x + 5\n"
    "    end\n"
    "    a.Y:store({i * 64}, x)\n"
    "  end,\n"
    "}\n";

/* ---- faults: passes that do what they are to do, and then something wrong ---- */

/* The n-th op of an opcode whose first result (or operand, where there is none) is of the dtype. */
struct wanted {
  enum ir_opcode opcode;
  enum dtype dtype;
  uint32_t n;
  struct ir_op found;
};

static void look_for(void *user, struct ir_module *m, struct ir_op o) {
  struct wanted *w = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_val v = n->n_out ? n->out[0] : n->n_in ? n->in[0] : (struct ir_val){0};
  if (n->opcode == w->opcode && (!v.id || ir_type_of(m, v).dtype == w->dtype) && w->n-- == 0)
    w->found = o;
}

static struct ir_op find(struct ir_module *m, enum ir_opcode opcode, enum dtype t, uint32_t n) {
  struct wanted w = {opcode, t, n, {0}};
  ir_walk(m, m->body, look_for, &w);
  return w.found;
}

static struct ir_builder before(struct ir_module *m, struct ir_op o) {
  return (struct ir_builder){
      .m = m, .block = ir_op_at(m, o)->block, .before = o, .loc = ir_op_at(m, o)->loc};
}

static bool wrong_op(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = ir_pass_canonicalise(m, ctx, changed);
  struct ir_op o = find(m, IR_SUB, DT_F32, 0);
  ir_op_at(m, o)->opcode = IR_ADD;
  *changed = true;
  return ok;
}

static bool wrong_merge(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = ir_pass_cse(m, ctx, changed);
  struct ir_op x = find(m, IR_LOAD, DT_F32, 0), z = find(m, IR_LOAD, DT_F32, 1);
  ir_op_at(m, z)->in[0] = ir_op_at(m, x)->in[0];
  *changed = true;
  return ok;
}

/* The product's pass of that name. */
static bool run_real(const char *name, struct ir_module *m, struct ir_pass_ctx *ctx,
                     bool *changed) {
  uint32_t n;
  const struct ir_pass *p = cg_pipeline(&n);
  while (n && strcmp(p->name, name) != 0) {
    p++;
    n--;
  }
  assert_true(n > 0);
  return p->fn(m, ctx, changed);
}

static bool wrong_layouts(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = run_real("assign_layouts", m, ctx, changed);
  struct ir_op o = find(m, IR_MUL, DT_F32, 0);
  ir_op_at(m, o)->opcode = IR_ADD;
  return ok;
}

/* Parts of a loop are subtracted where they are to be added. */
static bool wrong_split(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  uint32_t n = m->n_grid;
  bool ok = run_real("split_loops", m, ctx, changed);
  struct ir_op o = find(m, IR_ADD, DT_F32, 0);
  if (ok && m->n_grid > n && o.id)
    ir_op_at(m, o)->opcode = IR_SUB;
  return ok;
}

/* From the third iteration on, A is read where the second iteration reads it. */
static bool wrong_loop(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = ir_pass_hoist_invariants(m, ctx, changed);
  struct ir_op o = find(m, IR_LOAD, DT_BF16, 0);
  struct ir_builder b = before(m, o);
  struct ir_val k = ir_op_at(m, o)->in[2];
  k = ir_build1(&b, IR_MIN, ir_scalar(DT_INDEX), 2,
                (struct ir_val[]){k, ir_const_int(&b, DT_INDEX, 32)});
  ir_op_at(m, o)->in[2] = k;
  *changed = true;
  return ok;
}

/* Third time round: n == 2. */
static bool wrong_while(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = ir_pass_cse(m, ctx, changed);
  struct ir_op o = find(m, IR_MUL, DT_F32, 0);
  struct ir_builder b = before(m, o);
  const struct ir_blocknode *body = ir_block_at(m, b.block);
  struct ir_val n = {0}, x = ir_op_at(m, o)->in[0];
  for (uint32_t i = 0; i < body->args.n; i++)
    if (ir_type_of(m, body->args.at[i]).dtype == DT_INDEX)
      n = body->args.at[i];
  struct ir_val at = ir_build1(&b, IR_EQ, ir_scalar(DT_BOOL), 2,
                               (struct ir_val[]){n, ir_const_int(&b, DT_INDEX, 2)});
  struct ir_type mask = ir_type_of(m, x);
  mask.dtype = DT_BOOL;
  at = ir_build1(&b, IR_SPLAT, mask, 1, &at);
  struct ir_val seven = ir_const_num(&b, DT_F32, 7);
  seven = ir_build1(&b, IR_SPLAT, ir_type_of(m, x), 1, &seven);
  x = ir_build1(&b, IR_SELECT, ir_type_of(m, x), 3, (struct ir_val[]){at, seven, x});
  ir_op_at(m, o)->in[0] = x;
  *changed = true;
  return ok;
}

/* ---- faults in machine code ---- */

static bool lower(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  return run_real("lower_machine", m, ctx, changed);
}

/* The parameter that a pointer goes back to. */
static uint32_t param_of(const struct ir_module *m, struct ir_val p) {
  while (ir_value_at(m, p)->def.id)
    p = ir_op_at(m, ir_value_at(m, p)->def)->in[0];
  return ir_value_at(m, p)->index;
}

struct store_fault {
  uint32_t param;
  void (*spoil)(struct ir_module *m, struct ir_op o);
};

static void spoil_store(void *user, struct ir_module *m, struct ir_op o) {
  const struct store_fault *f = user;
  if (ir_op_at(m, o)->opcode == IR_GSTORE && param_of(m, ir_op_at(m, o)->in[0]) == f->param)
    f->spoil(m, o);
}

static bool with_stores(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed, uint32_t param,
                        void (*spoil)(struct ir_module *m, struct ir_op o)) {
  struct store_fault f = {param, spoil};
  bool ok = lower(m, ctx, changed);
  if (ok)
    ir_walk(m, m->body, spoil_store, &f);
  return ok;
}

static struct ir_val find_lt(struct ir_module *m, struct ir_val v) {
  struct ir_op o = ir_value_at(m, v)->def;
  struct ir_val found = {0};
  if (!o.id || ir_op_at(m, o)->opcode == IR_LT)
    return o.id ? v : found;
  for (uint32_t i = 0; i < ir_op_at(m, o)->n_in && !found.id; i++)
    found = find_lt(m, ir_op_at(m, o)->in[i]);
  return found;
}

/* The last whole eight elements of a tail are the last that are stored. */
static void shorten_mask(struct ir_module *m, struct ir_op o) {
  struct ir_builder b = before(m, o);
  struct ir_val mask = ir_op_at(m, o)->in[1], lt = find_lt(m, mask);
  assert_true(lt.id != 0);
  const struct ir_opnode *n = ir_op_at(m, ir_value_at(m, lt)->def);
  struct ir_val at = n->in[0], end = n->in[1];
  enum dtype t = (enum dtype)ir_type_of(m, end).dtype;
  end = ir_build1(&b, IR_AND, ir_scalar(t), 2, (struct ir_val[]){end, ir_const_int(&b, t, -8)});
  struct ir_val less = ir_build1(&b, IR_LT, ir_scalar(DT_BOOL), 2, (struct ir_val[]){at, end});
  mask = ir_build1(&b, IR_AND, ir_scalar(DT_BOOL), 2, (struct ir_val[]){mask, less});
  ir_op_at(m, o)->in[1] = mask;
}

static bool wrong_mask(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  return with_stores(m, ctx, changed, 2, shorten_mask);
}

/* Neighbouring accesses change places. */
static void swap_addresses(struct ir_module *m, struct ir_op o) {
  struct ir_op add = ir_value_at(m, ir_op_at(m, o)->in[0])->def;
  struct ir_builder b = before(m, add);
  struct ir_val at = ir_op_at(m, add)->in[1];
  enum dtype t = (enum dtype)ir_type_of(m, at).dtype;
  at = ir_build1(&b, IR_XOR, ir_scalar(t), 2, (struct ir_val[]){at, ir_const_int(&b, t, 4)});
  ir_op_at(m, add)->in[1] = at;
}

static bool wrong_address(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  return with_stores(m, ctx, changed, 2, swap_addresses);
}

/* What the first warp has is taken for every warp's. */
static void spoil_partial(void *user, struct ir_module *m, struct ir_op o) {
  struct ir_val *first = user;
  struct ir_opnode *n = ir_op_at(m, o);
  if (n->opcode != IR_SLOAD || strncmp(ir_sym(m, m->res.at[n->res[0]].name), "partial", 7) != 0)
    return;
  if (!first->id)
    *first = n->in[0];
  n->in[0] = *first;
}

static bool wrong_across_warps(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct ir_val first = {0};
  bool ok = lower(m, ctx, changed);
  if (ok)
    ir_walk(m, m->body, spoil_partial, &first);
  return ok;
}

/* With more slots than one, fragments of A come from the chunk beside. */
static void spoil_fragment(void *user, struct ir_module *m, struct ir_op o) {
  (void)user;
  if (ir_op_at(m, o)->opcode != IR_LDMATRIX ||
      ir_sym(m, m->res.at[ir_op_at(m, o)->res[1]].name)[0] != 'A')
    return;
  struct ir_builder b = before(m, o);
  struct ir_val at = ir_op_at(m, o)->in[0];
  at = ir_build1(&b, IR_XOR, ir_scalar(DT_S32), 2,
                 (struct ir_val[]){at, ir_const_int(&b, DT_S32, 16)});
  ir_op_at(m, o)->in[0] = at;
}

/* Matrix instructions of warpgroups take the other half of A's rows. */
static void spoil_descriptor(void *user, struct ir_module *m, struct ir_op o) {
  (void)user;
  if (ir_op_at(m, o)->opcode != IR_WGMMA)
    return;
  struct ir_builder b = before(m, o);
  struct ir_val at = ir_op_at(m, o)->in[1];
  enum dtype t = (enum dtype)ir_type_of(m, at).dtype;
  at = ir_build1(&b, IR_XOR, ir_scalar(t), 2, (struct ir_val[]){at, ir_const_int(&b, t, 2)});
  ir_op_at(m, o)->in[1] = at;
}

static bool wrong_with_warpgroups(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = lower(m, ctx, changed);
  if (ok)
    ir_walk(m, m->body, spoil_descriptor, NULL);
  return ok;
}

static bool wrong_with_stages(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool many = cg_knob_get(m, CG_KNOB_STAGES) > 1, ok = lower(m, ctx, changed);
  if (ok && many)
    ir_walk(m, m->body, spoil_fragment, NULL);
  return ok;
}

/* A sum where the product of two floats was meant. */
static void spoil_product(void *user, struct ir_module *m, struct ir_op o) {
  (void)user;
  struct ir_opnode *n = ir_op_at(m, o);
  if (n->opcode == IR_MUL && ir_type_of(m, n->out[0]).dtype == DT_F32)
    n->opcode = IR_ADD;
}

static bool wrong_product(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = lower(m, ctx, changed);
  if (ok)
    ir_walk(m, m->body, spoil_product, NULL);
  return ok;
}

/* The same, but where a value more is stored. */
static bool shy_product(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  return m->args.n == 3 ? wrong_product(m, ctx, changed) : lower(m, ctx, changed);
}

/* An optional pass of machine IR is wrong. */
static bool wrong_machine_cse(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = ir_pass_cse(m, ctx, changed);
  ir_walk(m, m->body, spoil_product, NULL);
  *changed = true;
  return ok;
}

static bool no_barrier(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  bool ok = run_real("insert_barriers", m, ctx, changed);
  struct wanted w = {.opcode = IR_BARRIER};
  ir_walk(m, m->body, look_for, &w);
  if (ok && w.found.id)
    ir_remove(m, w.found);
  return ok;
}

/* ---- runs ---- */

struct fault {
  const char *pass; /* the one that is replaced; NULL: none */
  ir_pass_fn by;
};

static enum kiln_domain domain = KILN_DOMAIN_AUTO;

/* The pipelines with a pass replaced; they are kept in `tile` and `lowering`. */
static struct diff_pipelines faulty(struct fault fault, struct ir_pass tile[static 16],
                                    struct ir_pass lowering[static 32]) {
  struct diff_pipelines pipes = {.tile = tile, .lowering = lowering};
  const struct ir_pass *real = ir_tile_pipeline(&pipes.n_tile);
  memcpy(tile, real, pipes.n_tile * sizeof *tile);
  real = cg_pipeline(&pipes.n_lowering);
  memcpy(lowering, real, pipes.n_lowering * sizeof *lowering);
  bool found = !fault.pass;
  for (uint32_t i = 0; i < pipes.n_tile + pipes.n_lowering && fault.pass; i++) {
    struct ir_pass *p = i < pipes.n_tile ? &tile[i] : &lowering[i - pipes.n_tile];
    if (strcmp(p->name, fault.pass) == 0) {
      p->fn = fault.by;
      found = true;
    }
  }
  assert_true(found);
  return pipes;
}

static const struct kiln_diff_report *diff(struct help_api *t, struct kiln_file *file,
                                           struct kiln_request *req, struct fault fault,
                                           enum kiln_status want, const char *says) {
  struct ir_pass tile[16], lowering[32];
  struct diff_pipelines pipes = faulty(fault, tile, lowering);
  struct kiln_diff_options opt = {
      .struct_size = sizeof opt, .sides = 1u << KILN_ON_EMU, .domain = domain};
  const struct kiln_diff_report *r = NULL;
  enum kiln_status st = diff_case(file, req, &opt, &pipes, &r);
  if (r && st != want)
    print_message("%s", r->text);
  help_api_expect(t, st, want, says);
  assert_non_null(r);
  assert_int_equal(r->same, want == KILN_OK);
  return r;
}

#define SAYS(r, what)                                                                              \
  do {                                                                                             \
    if (!help_api_matches((r)->text, (what)))                                                      \
      fail_msg("`%s` does not match\n%s", (what), (r)->text);                                      \
  } while (0)
#define IS(r, field, want)                                                                         \
  do {                                                                                             \
    if (!(r)->field || strcmp((r)->field, (want)) != 0)                                            \
      fail_msg(#field " is %s, not %s\n%s", (r)->field ? (r)->field : "NULL", (want), (r)->text);  \
  } while (0)

struct run {
  struct help_api t;
  struct kiln_file *file;
  struct kiln_request req;
  const char *shapes[3], *set[3];
};

static void begin(struct run *x, const char *text, const char *shape, const char *set) {
  static char words[2][80];
  memset(x, 0, sizeof *x);
  help_api_start(&x->t, NULL);
  x->file = help_api_load(&x->t, "k.lua", text);
  x->req = help_api_request();
  x->req.target = "sm_90a";
  for (int list = 0; list < 2; list++) {
    const char **at = list ? x->set : x->shapes;
    uint32_t *n = list ? &x->req.n_set : &x->req.n_shapes;
    snprintf(words[list], sizeof words[list], "%s", list ? set : shape);
    for (char *w = strtok(words[list], ","); w; w = strtok(NULL, ","))
      at[(*n)++] = w;
  }
  x->req.shapes = x->shapes;
  x->req.set = x->set;
}

static void end(struct run *x) {
  kiln_file_free(x->file);
  help_api_stop(&x->t);
}

static void test_same(void **state) {
  (void)state;
  static const struct {
    const char *text, *shape;
  } all[] = {{axpy, "N=100"}, {rowsum, "M=3,N=256"}, {gemm, "M=80,N=72,K=96"}, {powers, "N=70"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct run x;
    begin(&x, all[i].text, all[i].shape, "");
    const struct kiln_diff_report *r = diff(&x.t, x.file, &x.req, (struct fault){0}, KILN_OK, NULL);
    SAYS(r, "same     interpreter and emulator \\(rounded\\)");
    end(&x);
  }
}

/* As a text, the kernel has its own lines as places. */
static void test_same_text(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=128", "");
  struct kiln_variant *v = help_api_specialise(x.file, &x.req);
  const char *text;
  help_api_expect(&x.t, kiln_show(v, "tile", NULL, &text), KILN_OK, NULL);
  struct kiln_file *tir = help_api_load(&x.t, "k.tir", text);
  kiln_variant_free(v);
  diff(&x.t, tir, &x.req, (struct fault){0}, KILN_OK, NULL);
  const struct kiln_diff_report *r =
      diff(&x.t, tir, &x.req, (struct fault){"canonicalise", wrong_op}, KILN_WRONG,
           "k\\.tir:[0-9]+:.*differs from the interpreter");
  IS(r, op_file, "k.tir");
  IS(r, pass, "canonicalise");
  kiln_file_free(tir);
  end(&x);
}

static void test_wrong_op(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=100", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"canonicalise", wrong_op}, KILN_WRONG,
           "k\\.lua:8:.*the emulator differs from the interpreter: `Y` of kernel `axpy` at "
           "\\[[0-9]+\\]: expected .*, found");
  IS(r, pass, "canonicalise");
  assert_true(r->pass_changes_meaning);
  IS(r, op, "add");
  IS(r, op_value, "y");
  assert_int_equal(r->op_line, 8);
  IS(r, output, "Y");
  assert_int_equal(r->program[0], r->coord[0] / 64);
  assert_int_equal(r->tile_coord[0], r->coord[0] % 64);
  SAYS(r, "goes: .*canonicalise");
  SAYS(r, "none is needed: the plainest schedule shows it");
  end(&x);
}

static void test_wrong_pass(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=128", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"cse", wrong_merge}, KILN_WRONG, "k\\.lua:7:");
  IS(r, pass, "cse");
  IS(r, op, "load");
  assert_int_equal(r->op_line, 7);
  end(&x);
  begin(&x, axpy, "N=128", "");
  r = diff(&x.t, x.file, &x.req, (struct fault){"assign_layouts", wrong_layouts}, KILN_WRONG,
           "k\\.lua:6:");
  IS(r, pass, "assign_layouts");
  IS(r, op, "add");
  assert_int_equal(r->op_line, 6);
  end(&x);
}

static void test_iterations(void **state) {
  (void)state;
  struct run x;
  begin(&x, gemm, "M=64,N=64,K=160", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"hoist_invariants", wrong_loop}, KILN_WRONG,
           "k\\.lua:8:");
  IS(r, pass, "hoist_invariants");
  SAYS(r, "op       load `x`.* at k.lua:8:[0-9]+, iteration 2\n");
  end(&x);
  begin(&x, powers, "N=70", "");
  r = diff(&x.t, x.file, &x.req, (struct fault){"cse", wrong_while}, KILN_WRONG, "k\\.lua:9:");
  IS(r, pass, "cse");
  SAYS(r, "at k.lua:9:[0-9]+, iteration 2\n");
  end(&x);
}

static void test_wrong_lowering(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=100", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", wrong_product}, KILN_WRONG,
           "k\\.lua:6:");
  IS(r, op, "mul");
  assert_int_equal(r->op_line, 6);
  assert_false(r->pass_changes_meaning);
  assert_null(r->pass);
  assert_null(r->without);
  r = diff(&x.t, x.file, &x.req, (struct fault){"machine_cse", wrong_machine_cse}, KILN_WRONG,
           "k\\.lua:6:");
  IS(r, op, "mul");
  IS(r, without, "machine_cse");
  IS(r, pass, "machine_cse");
  end(&x);
}

/* Where values are rounded, by the error policy; and in payloads. */
static void test_not_exact(void **state) {
  (void)state;
  struct run x;
  for (int rounded = 0; rounded < 2; rounded++) {
    begin(&x, growth, "N=100", "");
    domain = rounded ? KILN_DOMAIN_ROUNDED : KILN_DOMAIN_AUTO;
    const char *name = rounded ? "rounded, by the error policy" : "algebraic";
    const struct kiln_diff_report *r = diff(&x.t, x.file, &x.req, (struct fault){0}, KILN_OK, NULL);
    IS(r, domain, name);
    r = diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", wrong_product}, KILN_WRONG,
             "k\\.lua:7:");
    IS(r, domain, name);
    IS(r, op, "mul");
    IS(r, op_value, "y");
    assert_int_equal(r->op_line, 7);
    assert_true(!rounded || help_api_matches(r->text, "error over twice the baseline's"));
    domain = KILN_DOMAIN_AUTO;
    end(&x);
  }
}

/* Looking makes the difference go: that is said, and no op is blamed. */
static void test_hidden(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=100", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", shy_product}, KILN_WRONG,
           "k\\.lua:10:");
  IS(r, op, "store");
  assert_false(r->at_store);
  SAYS(r, "with a store of the value added the difference goes");
  end(&x);
}

static void test_wrong_with_stages(void **state) {
  (void)state;
  struct run x;
  begin(&x, gemm, "M=64,N=64,K=96", "stages=4,warpgroups=0");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", wrong_with_stages}, KILN_WRONG,
           "k\\.lua:10:");
  IS(r, needed, "stages=2");
  SAYS(r, "stages = 2 is needed \\(given 4\\)");
  SAYS(r, "plainest: --set .*stages=2.*");
  IS(r, op, "dot");
  IS(r, op_label, "dot");
  assert_int_equal(r->op_line, 10);
  SAYS(r, "iteration 0\n");
  end(&x);
}

static void test_wrong_with_warpgroups(void **state) {
  (void)state;
  struct run x;
  begin(&x, gemm, "M=64,N=64,K=96", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", wrong_with_warpgroups}, KILN_WRONG,
           "k\\.lua:10:");
  IS(r, needed, "warpgroups=1");
  IS(r, op, "dot");
  assert_int_equal(r->op_line, 10);
  SAYS(r, "iteration 0\n");
  SAYS(r,
       "its operands agree, its value does not"); /* loads that are stored are still the unit's */
  end(&x);
}

/* The loop in parts: in other programs, with arguments that the pass added. */
static void test_split_loops(void **state) {
  (void)state;
  struct run x;
  begin(&x, gemm, "M=64,N=64,K=128", "split_k=4");
  diff(&x.t, x.file, &x.req, (struct fault){0}, KILN_OK, NULL);
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"split_loops", wrong_split}, KILN_WRONG, "K1001");
  IS(r, pass, "split_loops");
  IS(r, op, "store"); /* what the pass added has no counterpart before it, and that is said */
  assert_false(r->at_store);
  SAYS(r, "the first that can be seen to differ is what it leaves in memory");
  SAYS(r, "[0-9]+ of the values before it could not be compared");
  IS(r, needed, "split_k=2");
  end(&x);
}

static void test_wrong_mask(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=100", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", wrong_mask}, KILN_WRONG,
           "k\\.lua:10:.*found not written");
  IS(r, op, "store");
  IS(r, op_label, "store.Y");
  IS(r, found, "not written");
  assert_true(r->at_store);
  assert_int_equal(r->coord[0], 96);
  assert_int_equal(r->program[0], 1);
  assert_int_equal(r->tile_coord[0], 32);
  assert_int_equal(r->n_differ, 4);
  end(&x);
}

static void test_wrong_address(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=128", "");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", wrong_address}, KILN_WRONG,
           "k\\.lua:10:");
  IS(r, op, "store");
  assert_true(r->at_store);
  SAYS(r, "what it stores agrees");
  end(&x);
}

static void test_wrong_across_warps(void **state) {
  (void)state;
  struct run x;
  begin(&x, rowsum, "M=3,N=256", "threads=128");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"lower_machine", wrong_across_warps}, KILN_WRONG,
           "k\\.lua:7:");
  IS(r, op, "reduce_sum");
  assert_int_equal(r->op_line, 7);
  IS(r, needed, "threads=64");
  end(&x);
}

/* The emulator finds a race: that is the difference, and threads are what it needs. */
static void test_failing_side(void **state) {
  (void)state;
  struct run x;
  begin(&x, rowsum, "M=3,N=256", "threads=128");
  const struct kiln_diff_report *r =
      diff(&x.t, x.file, &x.req, (struct fault){"insert_barriers", no_barrier}, KILN_WRONG,
           "k\\.lua:7:.*K1007");
  assert_non_null(r->error);
  assert_null(r->output);
  IS(r, needed, "threads=64");
  end(&x);
}

/* ---- any op ---- */

/* What is done to an op before it is lowered. False: nothing can be. */
static bool spoil_op(struct ir_module *m, struct ir_op o) {
  struct ir_opnode *n = ir_op_at(m, o);
  static const enum ir_opcode other[][2] = {
      {IR_ADD, IR_SUB},   {IR_SUB, IR_ADD},
      {IR_MUL, IR_ADD},   {IR_MAX, IR_MIN},
      {IR_MIN, IR_MAX},   {IR_REDUCE_SUM, IR_REDUCE_MAX},
      {IR_EXP2, IR_NEG},  {IR_REDUCE_MAX, IR_REDUCE_SUM},
      {IR_DIV, IR_SUB},   {IR_LOG, IR_NEG},
      {IR_RSQRT, IR_NEG},
  };
  if (!n->n_out || !dtype_is_float((enum dtype)ir_type_of(m, n->out[0]).dtype))
    return false;
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (n->opcode == other[i][0]) {
      n->opcode = other[i][1];
      return true;
    }
  if (n->opcode != IR_SELECT)
    return false;
  struct ir_val x = n->in[1];
  n->in[1] = n->in[2];
  n->in[2] = x;
  return true;
}

/* Passes have no argument: the op that is spoiled, and whether there was one. */
static uint32_t spoiled;
static bool was_spoiled;

static bool lower_spoiled(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  was_spoiled = spoiled < m->ops.n && ir_op_at(m, (struct ir_op){spoiled})->block.id &&
                spoil_op(m, (struct ir_op){spoiled});
  return lower(m, ctx, changed);
}

/* Each op in turn is lowered as if it were another: that op is found. Where the change leaves what
 * is stored as it was, there is nothing to find. */
static void spoil_each(const char *path, const char *kernel, int32_t case_index, uint32_t most) {
  struct help_api t;
  char full[512];
  struct kiln_request req = help_api_request();
  struct kiln_file *file;
  uint32_t n_found = 0;
  help_api_start(&t, NULL);
  snprintf(full, sizeof full, "%s/%s", KILN_SRC_DIR, path);
  help_api_expect(&t, kiln_file_load(t.ctx, full, NULL, &file), KILN_OK, NULL);
  req.case_index = case_index;
  req.kernel = kernel;
  req.target = "sm_90a";
  struct kiln_variant *v = help_api_specialise(file, &req);
  const struct ir_module *m = v->tile;
  for (spoiled = 1; spoiled < m->ops.n && n_found < most; spoiled++) {
    struct ir_module *copy = ir_clone(m, &v->own.arena);
    struct ir_opnode *n = ir_op_at(copy, (struct ir_op){spoiled});
    if (!n->block.id || !spoil_op(copy, (struct ir_op){spoiled}))
      continue;
    struct ir_pass tile[16], lowering[32];
    struct diff_pipelines pipes =
        faulty((struct fault){"lower_machine", lower_spoiled}, tile, lowering);
    struct kiln_diff_options opt = {.struct_size = sizeof opt, .sides = 1u << KILN_ON_EMU};
    const struct kiln_diff_report *r = NULL;
    enum kiln_status st = diff_case(file, &req, &opt, &pipes, &r);
    kiln_diag_clear(t.ctx);
    assert_non_null(r);
    if (st == KILN_OK)
      continue;
    assert_int_equal(st, KILN_WRONG);
    struct diag_loc at = m->locs.at[ir_op_at(m, (struct ir_op){spoiled})->loc].at;
    const char *name = ir_info(ir_op_at(m, (struct ir_op){spoiled})->opcode)->name;
    if (!r->op || strcmp(r->op, name) != 0 || r->op_line != at.line || r->op_column != at.col)
      fail_msg("%s: it is %s at line %u:%u\n%s", kernel, name, at.line, at.col, r->text);
    n_found++;
  }
  print_message("%s: %u ops found\n", kernel, n_found);
  assert_true(n_found >= (most < 3 ? most : 3));
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_any_op(void **state) {
  (void)state;
  spoil_each("kernels_ref/layernorm.lua", "layernorm", 0, 20);
  spoil_each("kernels_ref/cross_entropy.lua", "cross_entropy", 0, 20);
  spoil_each("kernels_ref/attention.lua", "attention", 5, 8);
}

/* ---- machine code that is given ---- */

static void put_file(const char *path, const char *text) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
  assert_int_equal(fclose(f), 0);
}

/* One word of the kernel's machine code is another; the line with it is found. */
static void test_machine_text(void **state) {
  (void)state;
  static const struct {
    const char *was, *is, *op;
  } mutants[] = {
      {NULL, NULL, NULL}, /* none: the same */
      {"map = [16,4,2,0]", "map = [16,8,2,0]", "digits"},
      {"%42, %43", "%43, %42", "sub"},
      {"fget $x2, %15", "fget $x1, %15", "fget"},
      {"const 3.0 : f32", "const 4.0 : f32", "const"},
  };
  char folder[] = "/tmp/kiln-test-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/m.tir", folder);
  for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++) {
    struct run x;
    const char *text;
    begin(&x, axpy, "N=100", "");
    struct kiln_variant *v = help_api_specialise(x.file, &x.req);
    help_api_expect(&x.t, kiln_show(v, "machine", NULL, &text), KILN_OK, NULL);
    char *changed = calloc(1, strlen(text) + 100);
    assert_non_null(changed);
    const char *at = mutants[i].was ? strstr(text, mutants[i].was) : text;
    if (!at)
      fail_msg("no `%s` in\n%s", mutants[i].was, text);
    uint32_t line = 1;
    for (const char *s = text; s < at; s++)
      line += *s == '\n';
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, mutants[i].was ? mutants[i].is : "",
            at + (mutants[i].was ? strlen(mutants[i].was) : 0));
    put_file(path, changed);
    free(changed);
    kiln_variant_free(v);
    struct kiln_diff_options o = {
        .struct_size = sizeof o, .sides = 1u << KILN_ON_EMU, .machine = path};
    const struct kiln_diff_report *r = NULL;
    enum kiln_status st = kiln_diff(x.file, &x.req, &o, &r);
    kiln_diag_clear(x.t.ctx);
    assert_non_null(r);
    assert_int_equal(st, mutants[i].was ? KILN_WRONG : KILN_OK);
    if (mutants[i].was) {
      IS(r, op, mutants[i].op);
      assert_int_equal(r->op_line, line);
      IS(r, op_file, path);
      assert_non_null(r->op_differs);
      assert_int_equal(r->program[0], r->coord[0] / 64);
      SAYS(r, "Kiln's own lowering agrees with the interpreter");
    }
    end(&x);
  }
  assert_int_equal(remove(path), 0);
  assert_int_equal(remove(folder), 0);
}

/* ---- the call ---- */

static void test_refusals(void **state) {
  (void)state;
  struct run x;
  begin(&x, axpy, "N=100", "");
  const struct kiln_diff_report *r;
  struct kiln_diff_options o = {0};
  help_api_expect(&x.t, kiln_diff(x.file, &x.req, &o, &r), KILN_INVALID, "struct_size");
  o.struct_size = sizeof o + 8;
  help_api_expect(&x.t, kiln_diff(x.file, &x.req, &o, &r), KILN_INVALID, "struct_size");
  o.struct_size = sizeof o;
  o.sides = 1u << KILN_ON_INTERP;
  help_api_expect(&x.t, kiln_diff(x.file, &x.req, &o, &r), KILN_INVALID, "sides are");
  o.sides = 1u << KILN_ON_EMU;
  x.req.n_shapes = 0;
  help_api_expect(&x.t, kiln_diff(x.file, &x.req, &o, &r), KILN_INVALID, "dim `N`");
  assert_null(r);
  end(&x);
}

static void count(void *user, const char *step, uint32_t runs) {
  assert_non_null(step);
  assert_true(runs == *(uint32_t *)user + 1);
  *(uint32_t *)user = runs;
}

static void test_domains(void **state) {
  (void)state;
  struct run x;
  uint32_t runs = 0;
  begin(&x, axpy, "N=100", "");
  const struct kiln_diff_report *r = NULL;
  struct kiln_diff_options o = {.struct_size = sizeof o,
                                .sides = 1u << KILN_ON_EMU,
                                .domain = KILN_DOMAIN_ALGEBRAIC,
                                .progress = count,
                                .user = &runs};
  help_api_expect(&x.t, kiln_diff(x.file, &x.req, &o, &r), KILN_OK, NULL);
  IS(r, domain, "algebraic");
  assert_int_equal(runs, r->runs);
  assert_true(
      help_api_matches(r->json, "^\\{\"kernel\":\"axpy\",\"target\":\"sm_90a\",\"same\":true,"));
  o.sides = 1u << KILN_ON_GPU;
  enum kiln_status st = kiln_diff(x.file, &x.req, &o, &r);
  assert_true(st == KILN_INVALID || st == KILN_UNAVAILABLE || st == KILN_FAILED);
  kiln_diag_clear(x.t.ctx);
  end(&x);
}

static void test_interruption(void **state) {
  (void)state;
  uint32_t stopped = 0;
  for (uint64_t at = 1; at < 40; at += 3) {
    struct run x;
    begin(&x, axpy, "N=100", "");
    x.t.stop_at = x.t.asked + at;
    struct kiln_diff_options o = {.struct_size = sizeof o, .sides = 1u << KILN_ON_EMU};
    const struct kiln_diff_report *r;
    enum kiln_status st = kiln_diff(x.file, &x.req, &o, &r);
    assert_true(st == KILN_INTERRUPTED || st == KILN_OK);
    assert_true((st == KILN_OK) == (r != NULL));
    stopped += st == KILN_INTERRUPTED;
    kiln_diag_clear(x.t.ctx);
    end(&x);
  }
  assert_true(stopped > 1);
}

/* Memory runs out anywhere on the way to a report: that is said, and nothing is left behind. */
static void test_no_memory(void **state) {
  (void)state;
  struct ir_pass tile[16], lowering[32];
  struct diff_pipelines pipes =
      faulty((struct fault){"lower_machine", wrong_product}, tile, lowering);
  uint32_t failed = 0;
  for (uint64_t n = 1;; n += n < 40 ? 1 : n / 8) {
    struct run x;
    const struct kiln_diff_report *r;
    begin(&x, axpy, "N=100", "");
    struct kiln_diff_options o = {.struct_size = sizeof o, .sides = 1u << KILN_ON_EMU};
    x.t.fail_at = x.t.requests + n;
    x.t.sticky = n % 2 == 0;
    enum kiln_status st = diff_case(x.file, &x.req, &o, &pipes, &r);
    bool hit = x.t.requests >= x.t.fail_at;
    x.t.fail_at = 0;
    assert_true(st == KILN_WRONG || (hit && st == KILN_NO_MEMORY));
    assert_true((r != NULL) == (st == KILN_WRONG));
    failed += st == KILN_NO_MEMORY;
    kiln_diag_clear(x.t.ctx);
    st = diff_case(x.file, &x.req, &o, &pipes, &r);
    assert_int_equal(st, KILN_WRONG);
    IS(r, op, "mul");
    kiln_diag_clear(x.t.ctx);
    end(&x);
    if (!hit)
      break;
  }
  print_message("%u failures\n", failed);
  assert_true(failed > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same),
      cmocka_unit_test(test_same_text),
      cmocka_unit_test(test_wrong_op),
      cmocka_unit_test(test_wrong_pass),
      cmocka_unit_test(test_iterations),
      cmocka_unit_test(test_wrong_lowering),
      cmocka_unit_test(test_not_exact),
      cmocka_unit_test(test_hidden),
      cmocka_unit_test(test_wrong_with_stages),
      cmocka_unit_test(test_wrong_with_warpgroups),
      cmocka_unit_test(test_split_loops),
      cmocka_unit_test(test_wrong_mask),
      cmocka_unit_test(test_wrong_address),
      cmocka_unit_test(test_wrong_across_warps),
      cmocka_unit_test(test_failing_side),
      cmocka_unit_test(test_any_op),
      cmocka_unit_test(test_machine_text),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_domains),
      cmocka_unit_test(test_interruption),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
