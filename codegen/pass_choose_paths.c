/* How each dot gets its operands, and each load its data.
 *
 * Before: accesses bounded. After: the module is at the scheduled stage with one role. Every dot
 * has an instruction (inst) and a path per operand: `smem`, a load that lands in shared memory as
 * it is; `computed`, a tile in registers that its consumers write to shared memory. Every load has
 * a path: `cp_async` and `staged` (through registers, where alignment or the pad value forbids the
 * former) feed dots alone; `frag` goes to registers (pass_fill_schedule.c may make it `direct`:
 * read where a dot's operand is computed). A load that both kinds of users read is there
 * twice. What is pinned stays, or is refused where it cannot be. */
#include "codegen/pass.h"
#include "ir/range.h"

static enum dtype dtype_of(const struct ir_module *m, struct ir_val v) {
  return (enum dtype)ir_type_of(m, v).dtype;
}

/* Casts operand i of a dot (2: its accumulator and, after it, its result). */
static void cast_operand(struct ir_module *m, struct ir_op dot, uint32_t i, enum dtype to) {
  const struct ir_opnode n = *ir_op_at(m, dot);
  struct ir_builder b = {.m = m, .block = n.block, .before = dot, .loc = n.loc};
  struct ir_type t = ir_type_of(m, n.in[i]), was = t;
  t.dtype = (uint8_t)to;
  struct ir_val v = ir_build1(&b, IR_CAST, t, 1, &n.in[i]);
  ir_op_at(m, dot)->in[i] = v;
  if (i < 2)
    return;
  b.before = n.next;
  ir_value_at(m, n.out[0])->type = t;
  struct ir_val back = ir_build1(&b, IR_CAST, was, 1, &n.out[0]);
  ir_replace_uses(m, n.out[0], back);
  ir_op_at(m, ir_value_at(m, back)->def)->in[0] = n.out[0];
}

/* Dots of dtypes that no instruction takes, as dots of others that hold every value of theirs:
 * 4-bit integers in 8 bits; 8-bit floats, where the target has no good instruction or one that sums
 * in fewer bits than the kernel allows, in f16; and
 * where these have an f16 accumulator, that in f32, rounded once. */
static void widen_operands(struct ir_module *m, struct ir_op o) {
  const struct cg_target *t = cg_target_of(m);
  /* An instruction that converts takes many registers: too many beside a second accumulator, which
   * there is where a dot does not add to what a loop carries. */
  struct ir_val acc = ir_op_at(m, o)->in[2];
  bool carried = !ir_value_at(m, acc)->def.id;
  const char *prec = cg_attr_word(m, o, IR_ATTR_prec);
  bool short_sums = str_eq(prec, "promoted") || str_eq(prec, "fast"); /* are allowed */
  bool fp8_unit =
      (t->features & CG_FP8_MMA) && (cg_mma_converts(m, DT_E4M3) ? carried : short_sums);
  bool fp8 = false;
  for (uint32_t i = 0; i < 2; i++) {
    enum dtype d = dtype_of(m, ir_op_at(m, o)->in[i]);
    fp8 = fp8 || d == DT_E4M3 || d == DT_E5M2;
    if (d == DT_S4 || d == DT_U4)
      cast_operand(m, o, i, d == DT_S4 ? DT_S8 : DT_U8);
    else if ((d == DT_E4M3 || d == DT_E5M2) && !fp8_unit)
      cast_operand(m, o, i, DT_F16);
  }
  if (fp8 && !fp8_unit && *prec) /* f16 has one way to be summed */
    cg_set_word(m, o, IR_ATTR_prec, "ieee");
  if (fp8 && fp8_unit && dtype_of(m, ir_op_at(m, o)->in[2]) == DT_F16)
    cast_operand(m, o, 2, DT_F32);
}

/* The instruction for a dot, or NULL after reporting. */
static const char *choose_inst(struct ir_module *m, struct ir_pass_ctx *ctx, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  enum dtype a = dtype_of(m, n->in[0]), b = dtype_of(m, n->in[1]), c = dtype_of(m, n->in[2]);
  const char *prec = cg_attr_word(m, o, IR_ATTR_prec);
  bool ieee = !prec[0] || str_eq(prec, "ieee");
  const struct ir_mma *x = ir_mma_find(c, a, b);
  if (x && (a != DT_F32 || !ieee))
    return arena_printf(m->arena, "mma_%s", x->shape);
  if (a == b && b == c && (c == DT_F32 || c == DT_S32 || c == DT_S64))
    return "fma";
  cg_error(m, ctx->diags, o, DIAG_LOWER_UNSUPPORTED,
           "dot of %s and %s into %s is not lowered to the GPU", dtype_name(a), dtype_name(b),
           dtype_name(c));
  return NULL;
}

/* Does the loaded tile lie in shared memory as a matrix: its two dims the operand's, the rest 1? */
static bool is_matrix(const struct ir_module *m, struct cg_operand_source s) {
  struct ir_type t = ir_type_of(m, ir_op_at(m, s.load)->out[0]);
  for (uint32_t d = 0; d < t.rank; d++)
    if ((int)d != s.dim[0] && (int)d != s.dim[1] && t.dim[d] != 1)
      return false;
  return true;
}

/* cp.async needs 4 aligned bytes along a dim of the matrix, fills with zeros, and cannot leave out
 * the first bytes of a chunk. */
static const char *load_path(const struct ir_module *m, struct cg_operand_source s) {
  if (ir_op_at(m, s.load)->opcode == IR_GATHER)
    return "staged";
  const struct ir_attr *pad = ir_get_attr(m, s.load, IR_ATTR_pad);
  enum dtype t = (enum dtype)ir_type_of(m, ir_op_at(m, s.load)->out[0]).dtype;
  bool zero = !pad || (dtype_is_float(t) ? pad->f == 0 : pad->i == 0);
  int64_t bytes = ir_attr_int(m, s.load, IR_ATTR_align, 1) * dtype_bytes(t, 1);
  int64_t vdim = ir_attr_int(m, s.load, IR_ATTR_vdim, 0);
  bool along = vdim == s.dim[0] || vdim == s.dim[1];
  bool crosses_low = ir_get_attr(m, s.load, IR_ATTR_masks)->ints[vdim] & 2;
  return zero && bytes >= 4 && along && !crosses_low ? "cp_async" : "staged";
}

/* A copy of the chain from the load to v (included) before the load's and the others' places. */
static struct ir_val clone_chain(struct ir_module *m, struct ir_val v) {
  struct ir_op def = ir_value_at(m, v)->def;
  struct ir_opnode n = *ir_op_at(m, def);
  struct ir_builder b = {.m = m, .block = n.block, .before = def, .loc = n.loc};
  struct ir_val *in = ARENA_ARRAY(m->arena, struct ir_val, n.n_in);
  for (uint32_t i = 0; i < n.n_in; i++)
    in[i] = n.in[i];
  if (n.opcode != IR_LOAD && n.opcode != IR_GATHER)
    in[0] = clone_chain(m, n.in[0]);
  struct ir_type t = ir_type_of(m, v);
  struct ir_op o = ir_build(&b, n.opcode, n.n_in, in, 1, &t);
  for (uint32_t i = 0; i < n.n_attrs; i++)
    ir_set_attr(m, o, n.attrs[i]);
  struct ir_val r = ir_op_at(m, o)->out[0];
  ir_value_at(m, r)->name = ir_value_at(m, v)->name;
  return r;
}

/* Does anything but this one dot operand read a value of the chain? */
static bool is_shared_chain(const struct ir_module *m, const struct cg_uses *u, struct ir_val v) {
  for (;;) {
    if (u->count[v.id] != 1)
      return true;
    struct ir_op def = ir_value_at(m, v)->def;
    if (ir_op_at(m, def)->opcode == IR_LOAD || ir_op_at(m, def)->opcode == IR_GATHER)
      return false;
    v = ir_op_at(m, def)->in[0];
  }
}

/* Refuses what was pinned for the operand. */
static bool refuse_pin(struct ir_module *m, struct ir_pass_ctx *ctx, struct ir_op o,
                       const char *pinned, const char *why) {
  cg_error(m, ctx->diags, o, DIAG_CONFIG, "schedule `%s.%s`: %s", cg_attr_word(m, o, IR_ATTR_label),
           pinned, why);
  return false;
}

struct chooser {
  struct ir_pass_ctx *ctx;
  VEC(struct ir_op) dots;
  VEC(struct ir_op) fed; /* loads that land in shared memory */
};

static bool choose_operand(struct ir_module *m, struct chooser *c, struct ir_op dot, uint32_t i) {
  struct ir_pass_ctx *ctx = c->ctx;
  enum ir_attr_key key = i ? IR_ATTR_b_path : IR_ATTR_a_path;
  struct cg_operand_source s = cg_trace_operand(m, ir_op_at(m, dot)->in[i]);
  const char *pinned = cg_attr_word(m, dot, key);
  bool loaded = s.load.id && is_matrix(m, s);
  const char *load_pinned = loaded ? cg_attr_word(m, s.load, IR_ATTR_path) : "";
  if (str_eq(pinned, "smem") && !loaded)
    return refuse_pin(m, ctx, dot, i ? "b_path" : "a_path",
                      "the operand is no tile as it was loaded: it can only be `computed`");
  if (str_eq(pinned, "smem") && (str_eq(load_pinned, "frag") || str_eq(load_pinned, "direct")))
    return refuse_pin(m, ctx, s.load, "path",
                      "the dot that reads it is pinned to shared memory as loaded");
  bool to_regs = str_eq(load_pinned, "frag") || str_eq(load_pinned, "direct");
  if (!loaded || str_eq(pinned, "computed") || to_regs) {
    cg_set_word(m, dot, key, "computed");
    return true;
  }
  struct cg_uses u = cg_collect_uses(m, ctx->scratch);
  if (is_shared_chain(m, &u, ir_op_at(m, dot)->in[i])) {
    struct ir_val copy = clone_chain(m, ir_op_at(m, dot)->in[i]);
    ir_op_at(m, dot)->in[i] = copy;
    s = cg_trace_operand(m, copy);
  }
  cg_set_word(m, dot, key, "smem");
  const char *path = load_path(m, s);
  if (str_eq(load_pinned, "tma"))
    return refuse_pin(m, ctx, s.load, "path",
                      "tma feeds dots of warpgroups: give `warpgroups` too");
  if (str_eq(load_pinned, "cp_async") && !str_eq(path, "cp_async"))
    return refuse_pin(m, ctx, s.load, "path",
                      "cp_async needs a pad of 0 and 4 aligned bytes along a dim of the matrix");
  cg_set_word(m, s.load, IR_ATTR_path, str_eq(load_pinned, "staged") ? "staged" : path);
  VEC_PUSH(ctx->scratch, &c->fed, s.load);
  return true;
}

/* Loads that feed no dot go to registers, and stores as the schedule says later. */
static bool choose_rest(struct ir_module *m, struct chooser *c, struct ir_op o) {
  const char *label = cg_attr_word(m, o, IR_ATTR_label), *pinned = cg_attr_word(m, o, IR_ATTR_path);
  bool shared = false; /* does another copy of this load feed a dot? */
  for (uint32_t i = 0; i < c->fed.n; i++) {
    if (c->fed.at[i].id == o.id)
      return true;
    shared = shared || str_eq(cg_attr_word(m, c->fed.at[i], IR_ATTR_label), label);
  }
  if (str_eq(pinned, "direct")) {
    struct cg_uses u = cg_collect_uses(m, c->ctx->scratch);
    if (!cg_only_computes(m, &u, o).id)
      return refuse_pin(m, c->ctx, o, "path",
                        "`direct` is for what one operand of a dot is computed from, element by "
                        "element, in the same block, with nothing written in between");
    return true;
  }
  if (*pinned && !str_eq(pinned, "frag") && !shared)
    return refuse_pin(m, c->ctx, o, "path",
                      "it feeds no dot as it is loaded: it can only be `frag`");
  cg_set_word(m, o, IR_ATTR_path, "frag");
  return true;
}

static void list_dot(void *user, struct ir_module *m, struct ir_op o) {
  struct chooser *c = user;
  if (ir_op_at(m, o)->opcode == IR_DOT)
    VEC_PUSH(c->ctx->scratch, &c->dots, o);
}

/* Loads of a dot that has its paths already: the tensor memory unit's. */
static void list_fed(struct ir_module *m, struct chooser *c, struct ir_op dot) {
  struct cg_loads from = {0};
  for (uint32_t i = 0; i < 2; i++)
    cg_find_loads(m, c->ctx->scratch, ir_op_at(m, dot)->in[i], &from);
  for (uint32_t i = 0; i < from.list.n; i++)
    if (str_eq(cg_attr_word(m, from.list.at[i], IR_ATTR_path), "tma"))
      VEC_PUSH(c->ctx->scratch, &c->fed, from.list.at[i]);
}

bool cg_pass_choose_paths(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct chooser c = {.ctx = ctx};
  bool ok = true;
  /* A walk: ops inside of an op that was removed are still in the table. */
  ir_walk(m, m->body, list_dot, &c);
  for (uint32_t i = 0; i < c.dots.n; i++) {
    if (cg_is_wgmma(m, c.dots.at[i])) {
      list_fed(m, &c, c.dots.at[i]);
      continue;
    }
    widen_operands(m, c.dots.at[i]);
    const char *inst = choose_inst(m, ctx, c.dots.at[i]);
    ok = ok && inst;
    if (!inst)
      continue;
    cg_set_word(m, c.dots.at[i], IR_ATTR_inst, inst);
    ok = choose_operand(m, &c, c.dots.at[i], 0) && ok;
    ok = choose_operand(m, &c, c.dots.at[i], 1) && ok;
  }
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if (n->block.id && n->opcode == IR_LOAD)
      ok = choose_rest(m, &c, o) && ok;
    if (n->block.id && n->opcode == IR_GATHER && !ir_get_attr(m, o, IR_ATTR_path))
      cg_set_word(m, o, IR_ATTR_path, "frag");
  }
  m->stage = IR_SCHEDULED_STAGE;
  cg_add_roles(m);
  *changed = true;
  return ok;
}
