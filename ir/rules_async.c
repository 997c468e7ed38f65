/* Verifier rules of the machine ops of asynchronous hardware: named barriers, pipes with mbarriers,
 * the tensor memory unit, wgmma, clusters. Rules that need a look at several ops or resources at
 * once are in verify_machine.c; whether the program is right in time is the emulator's business. */
#include "ir/rules_impl.h"

#include "base/str.h"

#include <stdio.h>

static const char *attr_word(const struct ir_check *c, enum ir_attr_key key) {
  const struct ir_attr *a = ir_get_attr(c->m, c->op, key);
  return a ? ir_sym(c->m, a->s) : "";
}

static void want_flag(struct ir_check *c, enum ir_attr_key key, const char *name) {
  int64_t v = ir_attr_int(c->m, c->op, key, 0);
  if (v != 0 && v != 1)
    ir_rule_fail(c, "%s is %lld; it must be 0 or 1", name, (long long)v);
}

static void want_result(struct ir_check *c, enum dtype t) {
  struct ir_type_text a;
  if (!ir_rule_is_scalar(out(c, 0), t))
    ir_rule_fail(c, "the result must be %s, not %s", dtype_name(t), ir_type_text(out(c, 0), &a));
}

void ir_rule_in_role(struct ir_check *c) {
  const struct ir_attr *a = ir_get_attr(c->m, c->op, IR_ATTR_role);
  uint32_t role;
  want_result(c, DT_BOOL);
  if (!ir_find_role(c->m, a->s, &role))
    ir_rule_fail(c, "the module lists no role `%.40s`", ir_sym(c->m, a->s));
  else if (!c->m->roles.at[role].warps)
    ir_rule_fail(c, "role `%.40s` has no number of warps", ir_sym(c->m, a->s));
}

/* The table says that it names fragments. */
void ir_rule_pin(struct ir_check *c) {
  (void)c;
}

void ir_rule_bar(struct ir_check *c) {
  int64_t count = ir_res_int(ir_rule_res(c, 0), IR_ATTR_count, 1);
  if (c->n->n_in > 1)
    ir_rule_fail(c, "takes at most one operand, an index");
  else if (c->n->n_in == 1)
    ir_rule_want_scalar(c, 0, DT_S32, "the index");
  else if (count != 1)
    ir_rule_fail(c, "needs an index: `%.40s` counts %lld barriers",
                 ir_sym(c->m, ir_rule_res(c, 0)->name), (long long)count);
}

void ir_rule_cluster_arrive(struct ir_check *c) {
  const char *sem = attr_word(c, IR_ATTR_sem);
  if (!str_eq(sem, "relaxed") && !str_eq(sem, "release"))
    ir_rule_fail(c, "sem is `%.20s`; it must be relaxed or release", sem);
}

/* ---- pipes ---- */

void ir_rule_pipe_init(struct ir_check *c) {
  if (!ir_pipe_has_barriers(c->m, ir_rule_res(c, 0)))
    ir_rule_fail(c, "the pipe has no mbarriers; kinds tma and role have");
}

/* The cursor's pipe; NULL after reporting. verify_machine.c checks cursors themselves. */
static const struct ir_res *pipe_of(struct ir_check *c, uint32_t i, bool produces) {
  const struct ir_res *cursor = ir_rule_res(c, i);
  uint32_t pipe = ir_cursor_pipe(c->m, cursor);
  if (!pipe)
    return NULL;
  if (ir_cursor_produces(c->m, cursor) == produces)
    return &c->m->res.at[pipe];
  ir_rule_fail(c, "needs a %s's cursor; `%.40s` is the other side's",
               produces ? "producer" : "consumer", ir_sym(c->m, cursor->name));
  return NULL;
}

static bool is_tma(const struct ir_check *c, const struct ir_res *pipe) {
  return str_eq(ir_res_word(c->m, pipe, IR_ATTR_kind), "tma");
}

void ir_rule_slot_produce(struct ir_check *c) {
  const struct ir_res *pipe = pipe_of(c, 0, true);
  if (!pipe)
    return;
  if (c->n->opcode == IR_SLOT_EXPECT && !is_tma(c, pipe))
    ir_rule_fail(c, "the pipe counts arrivals (slot_fill), not bytes");
  if (c->n->opcode == IR_SLOT_FILL && is_tma(c, pipe))
    ir_rule_fail(c, "the pipe counts bytes (slot_expect), not arrivals");
}

void ir_rule_slot_consume(struct ir_check *c) {
  const struct ir_res *pipe = pipe_of(c, 0, false);
  if (c->n->n_in > 1)
    ir_rule_fail(c, "takes at most one operand, the rank of a block");
  else if (c->n->n_in == 1)
    ir_rule_want_scalar(c, 0, DT_S32, "the rank");
  int64_t behind = ir_attr_int(c->m, c->op, IR_ATTR_behind, 0);
  int64_t slots = pipe ? ir_res_int(pipe, IR_ATTR_slots, 1) : INT64_MAX;
  if (behind < 0 || behind >= slots)
    ir_rule_fail(c, "behind is %lld in a pipe of %lld slots", (long long)behind, (long long)slots);
}

void ir_rule_slot_move(struct ir_check *c) {
  if (c->n->n_in == 1)
    ir_rule_want_scalar(c, 0, DT_S32, "the count");
}

void ir_rule_slot_at(struct ir_check *c) {
  uint32_t pipe = ir_cursor_pipe(c->m, ir_rule_res(c, 0));
  int64_t slots = ir_res_int(ir_rule_res(c, 1), IR_ATTR_slots, 1);
  want_result(c, DT_S32);
  if (pipe && ir_res_int(&c->m->res.at[pipe], IR_ATTR_slots, 1) != slots)
    ir_rule_fail(c, "the buffer has %lld slots, the pipe %lld", (long long)slots,
                 (long long)ir_res_int(&c->m->res.at[pipe], IR_ATTR_slots, 1));
}

/* ---- the tensor memory unit ---- */

/* Offset and coordinates, from operand 0 on; `extra` operands may follow. */
static bool check_box(struct ir_check *c, const struct ir_res *buf, const struct ir_res *map,
                      uint32_t extra) {
  const struct ir_attr *box = ir_res_attr(map, IR_ATTR_box);
  uint32_t rank = box ? box->n_ints : 0;
  if (c->n->n_in != 1 + rank + extra) {
    ir_rule_fail(c, "takes an offset and %u coordinates%s, %u operands are given", rank,
                 extra ? " and a mask" : "", c->n->n_in);
    return false;
  }
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  for (uint32_t i = 0; i < rank; i++)
    ir_rule_want_scalar(c, 1 + i, DT_S32, "a coordinate");
  if (buf->type.dtype != map->type.dtype)
    ir_rule_fail(c, "moves %s between a map of it and a buffer of %s",
                 dtype_name((enum dtype)map->type.dtype), dtype_name((enum dtype)buf->type.dtype));
  if (ir_res_int(buf, IR_ATTR_swizzle_bytes, 0) != ir_res_int(map, IR_ATTR_swizzle_bytes, 0))
    ir_rule_fail(c, "the map swizzles %lld bytes, the buffer %lld",
                 (long long)ir_res_int(map, IR_ATTR_swizzle_bytes, 0),
                 (long long)ir_res_int(buf, IR_ATTR_swizzle_bytes, 0));
  return true;
}

void ir_rule_tma_load(struct ir_check *c) {
  const struct ir_attr *hint = ir_get_attr(c->m, c->op, IR_ATTR_hint);
  int64_t multicast = ir_attr_int(c->m, c->op, IR_ATTR_multicast, 0);
  want_flag(c, IR_ATTR_multicast, "multicast");
  if (hint && !str_eq(ir_sym(c->m, hint->s), "evict_first") &&
      !str_eq(ir_sym(c->m, hint->s), "evict_last"))
    ir_rule_fail(c, "hint is `%.20s`; it must be evict_first or evict_last", ir_sym(c->m, hint->s));
  if (check_box(c, ir_rule_res(c, 0), ir_rule_res(c, 2), multicast == 1) && multicast == 1)
    ir_rule_want_scalar(c, c->n->n_in - 1u, DT_S32, "the mask");
  const struct ir_res *pipe = pipe_of(c, 1, true);
  if (pipe && !is_tma(c, pipe))
    ir_rule_fail(c, "its bytes count on a pipe of kind tma");
}

void ir_rule_tma_store(struct ir_check *c) {
  const struct ir_attr *reduce = ir_get_attr(c->m, c->op, IR_ATTR_reduce);
  if (reduce && !str_eq(ir_sym(c->m, reduce->s), "add"))
    ir_rule_fail(c, "reduce is `%.20s`; it must be add", ir_sym(c->m, reduce->s));
  check_box(c, ir_rule_res(c, 1), ir_rule_res(c, 0), 0);
  if (ir_res_attr(ir_rule_res(c, 0), IR_ATTR_round))
    ir_rule_fail(c, "takes a map that rounds, which is for loads");
  uint32_t arg;
  if (ir_tmap_arg(c->m, ir_rule_res(c, 0), &arg) && c->m->args.at[arg].kind == IR_ARG_IN)
    ir_rule_fail(c, "writes to argument `%.40s`, which is in",
                 ir_sym(c->m, c->m->args.at[arg].name));
}

static void check_pending(struct ir_check *c) {
  int64_t pending = ir_attr_int(c->m, c->op, IR_ATTR_pending, 0);
  if (pending < 0 || pending > 7)
    ir_rule_fail(c, "leaves %lld groups open; it must be 0 to 7", (long long)pending);
}

void ir_rule_bulk_wait(struct ir_check *c) {
  check_pending(c);
  want_flag(c, IR_ATTR_read, "read");
}

/* The table says that it names a tensor map. */
void ir_rule_tmap_prefetch(struct ir_check *c) {
  (void)c;
}

/* ---- matrices ---- */

void ir_rule_stmatrix(struct ir_check *c) {
  int64_t num = ir_attr_int(c->m, c->op, IR_ATTR_num, 0);
  const struct ir_res *buf = ir_rule_res(c, 0), *frag = ir_rule_res(c, 1);
  enum dtype t = (enum dtype)frag->type.dtype;
  want_flag(c, IR_ATTR_trans, "trans");
  if (num != 1 && num != 2 && num != 4)
    ir_rule_fail(c, "stores %lld matrices; it must be 1, 2 or 4", (long long)num);
  if (dtype_bits(t) != 16 || t != buf->type.dtype)
    ir_rule_fail(c, "moves 16-bit elements of one dtype, not %s to %s", dtype_name(t),
                 dtype_name((enum dtype)buf->type.dtype));
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  ir_rule_check_index(c, 1, frag, 2 * num);
}

void ir_rule_desc(struct ir_check *c) {
  const struct ir_res *buf = ir_rule_res(c, 0);
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  want_result(c, DT_S32);
  if (!ir_res_attr(buf, IR_ATTR_swizzle_bytes) || !ir_res_attr(buf, IR_ATTR_lbo) ||
      !ir_res_attr(buf, IR_ATTR_sbo))
    ir_rule_fail(c, "buffer `%.40s` needs swizzle_bytes, lbo and sbo", ir_sym(c->m, buf->name));
}

/* The k of one instruction, 0 if the unit has no such product. */
static int64_t wgmma_k(enum dtype d, enum dtype a, enum dtype b) {
  bool float8 = (a == DT_E4M3 || a == DT_E5M2) && (b == DT_E4M3 || b == DT_E5M2);
  bool int8 = (a == DT_S8 || a == DT_U8) && (b == DT_S8 || b == DT_U8);
  if ((a == DT_F16 && b == DT_F16 && (d == DT_F16 || d == DT_F32)) ||
      (a == DT_BF16 && b == DT_BF16 && d == DT_F32))
    return 16;
  if (a == DT_F32 && b == DT_F32 && d == DT_F32) /* as tf32 */
    return 8;
  if ((float8 && (d == DT_F16 || d == DT_F32)) || (int8 && d == DT_S32))
    return 32;
  return 0;
}

static void check_shape(struct ir_check *c, int64_t k, bool int8, int64_t *n_cols) {
  int m = 0, n = 0, deep = 0, end = 0;
  const char *shape = attr_word(c, IR_ATTR_shape);
  bool ok = sscanf(shape, "m%dn%dk%d%n", &m, &n, &deep, &end) == 3 && shape[end] == 0;
  char same[40];
  snprintf(same, sizeof same, "m%dn%dk%d", m, n, deep);
  ok = ok && str_eq(same, shape) && m == 64 && deep == k && n >= 8 && n <= 256 && n % 8 == 0;
  if (ok && int8) /* 8, 16, 24, 32, 48, 64, ... */
    ok = n <= 32 || n % 16 == 0;
  *n_cols = ok ? n : 8;
  if (!ok)
    ir_rule_fail(c, "shape is `%.30s`; it must be m64nNk%lld, N a multiple of 8 up to 256%s", shape,
                 (long long)k, int8 ? ", above 32 of 16" : "");
}

void ir_rule_wgmma(struct ir_check *c) {
  const struct ir_res *acc = ir_rule_res(c, 0), *a = ir_rule_res(c, 1), *b = ir_rule_res(c, 2);
  enum dtype d = (enum dtype)acc->type.dtype, ta = (enum dtype)a->type.dtype,
             tb = (enum dtype)b->type.dtype;
  int64_t k = wgmma_k(d, ta, tb), n;
  want_flag(c, IR_ATTR_trans_a, "trans_a");
  want_flag(c, IR_ATTR_trans_b, "trans_b");
  if (!k) {
    ir_rule_fail(c, "does not multiply %s and %s into %s", dtype_name(ta), dtype_name(tb),
                 dtype_name(d));
    return;
  }
  check_shape(c, k, d == DT_S32, &n);
  bool turned =
      ir_attr_int(c->m, c->op, IR_ATTR_trans_a, 0) || ir_attr_int(c->m, c->op, IR_ATTR_trans_b, 0);
  if (turned && k != 16)
    ir_rule_fail(c, "operands of %s must be K-major", dtype_name(ta));
  ir_rule_check_index(c, 0, acc, n / 2);
  if (a->kind == IR_RES_FRAG) {
    ir_rule_check_index(c, 1, a, k / 2);
    if (ir_attr_int(c->m, c->op, IR_ATTR_trans_a, 0))
      ir_rule_fail(c, "trans_a is of a in shared memory");
  } else {
    ir_rule_want_scalar(c, 1, DT_S32, "the descriptor of a");
  }
  ir_rule_want_scalar(c, 2, DT_S32, "the descriptor of b");
  ir_rule_want_scalar(c, 3, DT_BOOL, "scale_d");
}

void ir_rule_wgmma_wait(struct ir_check *c) {
  check_pending(c);
}

/* ---- clusters, registers, arithmetic ---- */

void ir_rule_rload(struct ir_check *c) {
  enum dtype t = (enum dtype)ir_rule_res(c, 0)->type.dtype;
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  ir_rule_want_scalar(c, 1, DT_S32, "the rank");
  ir_rule_check_width(c, c->n->n_out, t);
  ir_rule_check_results(c, t);
}

void ir_rule_rstore(struct ir_check *c) {
  if (c->n->n_in < 4) {
    ir_rule_fail(c, "takes an offset, a rank, a mask and at least one value");
    return;
  }
  enum dtype t = (enum dtype)ir_rule_res(c, 0)->type.dtype;
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  ir_rule_want_scalar(c, 1, DT_S32, "the rank");
  ir_rule_want_scalar(c, 2, DT_BOOL, "the mask");
  ir_rule_check_width(c, c->n->n_in - 3u, t);
  ir_rule_check_values(c, 3, t);
}

/* The role whose branch an op stands in: the nearest `if` on an in_role, or its `else` where there
 * are two roles. */
static bool enclosing_role(const struct ir_module *m, struct ir_op o, uint32_t *role) {
  for (;;) {
    struct ir_block b = ir_op_at(m, o)->block;
    struct ir_op up = ir_block_at(m, b)->parent;
    if (!up.id)
      return false;
    const struct ir_opnode *n = ir_op_at(m, up);
    o = up;
    if (n->opcode != IR_IF || n->n_in != 1)
      continue;
    struct ir_op cond = ir_value_at(m, n->in[0])->def;
    if (!cond.id || ir_op_at(m, cond)->opcode != IR_IN_ROLE ||
        !ir_find_role(m, ir_get_attr(m, cond, IR_ATTR_role)->s, role))
      continue;
    if (n->blocks[0].id == b.id)
      return true;
    if (m->roles.n == 2) {
      *role = 1 - *role;
      return true;
    }
  }
}

void ir_rule_set_regs(struct ir_check *c) {
  int64_t count = ir_attr_int(c->m, c->op, IR_ATTR_count, 0);
  uint32_t role;
  want_flag(c, IR_ATTR_up, "up");
  if (count < 24 || count > 256 || count % 8)
    ir_rule_fail(c, "count is %lld; it must be 24 to 256 in steps of 8", (long long)count);
  if (!enclosing_role(c->m, c->op, &role))
    ir_rule_fail(c, "must stand in the branch of a role (if on in_role)");
  else if (c->m->roles.at[role].regs != count)
    ir_rule_fail(c, "sets %lld registers, but role `%.40s` has regs = %u", (long long)count,
                 ir_sym(c->m, c->m->roles.at[role].name), c->m->roles.at[role].regs);
}

void ir_rule_ex2(struct ir_check *c) {
  ir_rule_want_scalar(c, 0, DT_F32, "the exponent");
  want_result(c, DT_F32);
}
