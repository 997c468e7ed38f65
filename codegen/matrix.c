/* How an operand of a dot lies in shared memory as it was loaded. See pass.h. */
#include "base/check.h"
#include "codegen/pass.h"

#define CHUNK      16
#define SLOT_ALIGN 128

static int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

int64_t cg_dot_k_pad(const struct ir_module *m, struct ir_op dot, int64_t k) {
  const struct ir_mma *x = cg_mma_of(m, dot);
  enum dtype t = (enum dtype)ir_type_of(m, ir_op_at(m, dot)->in[0]).dtype;
  return round_up(k, x ? (int64_t)x->k : 16 / dtype_bytes(t, 1));
}

int64_t cg_matrix_pitch(enum dtype t, int64_t inner) {
  int64_t chunks = round_up(inner * dtype_bytes(t, 1), CHUNK) / CHUNK;
  return ((chunks & (chunks - 1)) == 0 ? chunks : chunks | 1) * CHUNK;
}

int64_t cg_matrix_bytes(enum dtype t, int64_t outer, int64_t inner) {
  return round_up(outer * cg_matrix_pitch(t, inner), SLOT_ALIGN);
}

struct cg_use cg_dot_of_load(const struct ir_module *m, const struct cg_uses *u,
                             struct ir_op load) {
  struct cg_use use = u->list.at[u->first[ir_op_at(m, load)->out[0].id]];
  while (ir_op_at(m, use.op)->opcode != IR_DOT)
    use = u->list.at[u->first[ir_op_at(m, use.op)->out[0].id]];
  return use;
}

struct cg_matrix cg_matrix_of_load(const struct ir_module *m, struct ir_op load, struct cg_use use,
                                   const struct layout *acc) {
  const struct ir_opnode *dot = ir_op_at(m, use.op);
  struct ir_type t = ir_type_of(m, ir_op_at(m, load)->out[0]);
  struct cg_operand_source src = cg_trace_operand(m, dot->in[use.operand]);
  int k_dim = src.dim[use.operand == 0 ? 1 : 0], mn_dim = src.dim[use.operand];
  int64_t k = k_dim < 0 ? 1 : t.dim[k_dim], mn = mn_dim < 0 ? 1 : t.dim[mn_dim];
  int64_t k_pad = cg_dot_k_pad(m, use.op, k), mn_pad = cg_layout_cover(acc, use.operand);
  int vdim = (int)ir_attr_int(m, load, IR_ATTR_vdim, 0);
  int64_t step = CHUNK / dtype_bytes((enum dtype)t.dtype, 1);
  /* Where the contiguous dim is neither (a unit dim), k is inner. */
  if (vdim == k_dim || vdim != mn_dim)
    return (struct cg_matrix){mn_pad, round_up(k_pad, step), mn_dim, k_dim, mn, k_pad};
  return (struct cg_matrix){k_pad, round_up(mn_pad, step), k_dim, mn_dim, k_pad, mn};
}
