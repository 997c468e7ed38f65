/* How each dot gets its operands, and each load its data.
 *
 * Before: accesses bounded. After: the module is at the scheduled stage with one role. Every dot
 * has an instruction (inst) and a path per operand: `smem`, a load that lands in shared memory as
 * it is; `computed`, a tile in registers that its consumers write to shared memory. Every load has
 * a path: `cp_async` and `staged` (through registers, where alignment or the pad value forbids the
 * former) feed dots alone; `frag` goes to registers. A load that both kinds of users read is there
 * twice. */
#include "codegen/pass.h"
#include "ir/range.h"

/* The instruction for a dot, or NULL after reporting. */
static const char *choose_inst(const struct ir_module *m, struct ir_pass_ctx *ctx, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  enum dtype a = (enum dtype)ir_type_of(m, n->in[0]).dtype;
  enum dtype b = (enum dtype)ir_type_of(m, n->in[1]).dtype;
  enum dtype c = (enum dtype)ir_type_of(m, n->in[2]).dtype;
  const char *prec = cg_attr_word(m, o, IR_ATTR_prec);
  if (prec[0] && !str_eq(prec, "ieee")) {
    cg_error(m, ctx->diags, o, DIAG_LOWER_UNSUPPORTED,
             "dot in %s is not lowered to the GPU yet; leave prec out for true f32", prec);
    return NULL;
  }
  if (a == b && (a == DT_F16 || a == DT_BF16) && c == DT_F32)
    return "mma_m16n8k16";
  if (a == b && b == c && (c == DT_F32 || c == DT_F64 || c == DT_S32 || c == DT_S64))
    return "fma";
  cg_error(m, ctx->diags, o, DIAG_LOWER_UNSUPPORTED,
           "dot of %s and %s into %s is not lowered to the GPU; f16 or bf16 into f32, or f32, f64, "
           "s32, s64 each into itself are",
           dtype_name(a), dtype_name(b), dtype_name(c));
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
  if (n.opcode != IR_LOAD)
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
    if (ir_op_at(m, def)->opcode == IR_LOAD)
      return false;
    v = ir_op_at(m, def)->in[0];
  }
}

static void choose_operand(struct ir_module *m, struct ir_pass_ctx *ctx, struct ir_op dot,
                           uint32_t i) {
  enum ir_attr_key key = i ? IR_ATTR_b_path : IR_ATTR_a_path;
  struct cg_operand_source s = cg_trace_operand(m, ir_op_at(m, dot)->in[i]);
  if (!s.load.id || !is_matrix(m, s)) {
    cg_set_word(m, dot, key, "computed");
    return;
  }
  struct cg_uses u = cg_collect_uses(m, ctx->scratch);
  if (is_shared_chain(m, &u, ir_op_at(m, dot)->in[i])) {
    struct ir_val copy = clone_chain(m, ir_op_at(m, dot)->in[i]);
    ir_op_at(m, dot)->in[i] = copy;
    s = cg_trace_operand(m, copy);
  }
  cg_set_word(m, dot, key, "smem");
  cg_set_word(m, s.load, IR_ATTR_path, load_path(m, s));
}

bool cg_pass_choose_paths(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  VEC(struct ir_op) dots = {0};
  bool ok = true;
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    if (ir_op_at(m, o)->block.id && ir_op_at(m, o)->opcode == IR_DOT)
      VEC_PUSH(ctx->scratch, &dots, o);
  for (uint32_t i = 0; i < dots.n; i++) {
    const char *inst = choose_inst(m, ctx, dots.at[i]);
    ok = ok && inst;
    if (!inst)
      continue;
    cg_set_word(m, dots.at[i], IR_ATTR_inst, inst);
    choose_operand(m, ctx, dots.at[i], 0);
    choose_operand(m, ctx, dots.at[i], 1);
  }
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    struct ir_opnode *n = ir_op_at(m, o);
    if (n->block.id && (n->opcode == IR_LOAD || n->opcode == IR_STORE) &&
        !ir_get_attr(m, o, IR_ATTR_path))
      cg_set_word(m, o, IR_ATTR_path, "frag");
  }
  m->stage = IR_SCHEDULED_STAGE;
  VEC_PUSH(m->arena, &m->roles, (struct ir_role){.name = symtab_get(m->syms, "all")});
  *changed = true;
  return ok;
}
