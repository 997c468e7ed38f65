/* What the passes share; see pass.h. */
#include "codegen/pass.h"

#include "ir/resource.h"

#include <stdarg.h>
#include <stdio.h>

static void collect(void *user, struct ir_module *m, struct ir_op o) {
  struct cg_uses *u = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in; i++) {
    uint32_t v = n->in[i].id;
    struct cg_use use = {.op = o, .operand = i, .next = u->first[v]};
    VEC_PUSH(u->arena, &u->list, use);
    u->first[v] = u->list.n - 1;
    u->count[v]++;
  }
}

struct cg_uses cg_collect_uses(struct ir_module *m, struct arena *a) {
  struct cg_uses u = {.first = ARENA_ARRAY(a, uint32_t, m->values.n),
                      .count = ARENA_ARRAY(a, uint32_t, m->values.n),
                      .arena = a};
  VEC_PUSH(a, &u.list, (struct cg_use){0});
  ir_walk(m, m->body, collect, &u);
  return u;
}

void cg_error(const struct ir_module *m, struct diag_sink *diags, struct ir_op op, enum diag_id id,
              const char *fmt, ...) {
  char message[600];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(message, sizeof message, fmt, ap);
  va_end(ap);
  uint32_t loc = op.id ? ir_op_at(m, op)->loc : 0;
  diag_report(diags, DIAG_ERROR, id, loc ? m->locs.at[loc].at : DIAG_NOWHERE, "%s", message);
  while (loc && m->locs.at[loc].up && m->locs.at[loc].up < loc) {
    loc = m->locs.at[loc].up;
    diag_note(diags, m->locs.at[loc].at, "called from here");
  }
}

bool cg_is_elementwise(enum ir_opcode o) {
  return (o >= IR_ADD && o <= IR_CAST) || o == IR_RANDOM;
}
_Static_assert(IR_ADD < IR_FMA && IR_FMA < IR_EXP && IR_EXP < IR_COS && IR_COS < IR_AND &&
                   IR_AND < IR_SHR && IR_SHR < IR_EQ && IR_EQ < IR_GE && IR_GE < IR_SELECT &&
                   IR_CAST == IR_SELECT + 1 && IR_CAST < IR_REDUCE_SUM,
               "elementwise ops are one run of ops.def");

_Static_assert(IR_REDUCE_SUM < IR_REDUCE_ALL && IR_REDUCE_ALL < IR_ARGMAX &&
                   IR_ARGMIN + 1 == IR_SCAN_SUM && IR_ARGMIN - IR_REDUCE_SUM == 6,
               "reductions are one run of ops.def");

bool cg_is_reduce(enum ir_opcode o) {
  return o >= IR_REDUCE_SUM && o <= IR_ARGMIN;
}

bool cg_takes_indices(enum ir_opcode o) {
  return o == IR_GATHER || o == IR_SCATTER || o == IR_ATOMIC;
}

struct ir_val cg_selected(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  return n->opcode == IR_GATHER ? n->out[0] : n->in[n->n_in - 1u];
}

static bool is_free(const struct ir_module *m, struct ir_val v, int depth) {
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id || depth > 16)
    return false;
  const struct ir_opnode *n = ir_op_at(m, def);
  if (n->opcode == IR_SPLAT || n->opcode == IR_IOTA)
    return true;
  if ((n->opcode != IR_BROADCAST && !cg_is_elementwise(n->opcode)) || n->opcode == IR_RANDOM)
    return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (ir_type_of(m, n->in[i]).kind == IR_TILE && !is_free(m, n->in[i], depth + 1))
      return false;
  return true;
}

bool cg_is_free(const struct ir_module *m, struct ir_val v) {
  return ir_type_of(m, v).kind == IR_TILE && is_free(m, v, 0);
}

/* dim[d] of the result of a reshape is dim from[d] of its operand, -1 for a new unit dim; false if
 * more than unit dims change. */
static bool reshape_dims(struct ir_type in, struct ir_type out, int *from) {
  uint32_t k = 0;
  for (uint32_t d = 0; d < out.rank; d++) {
    while (k < in.rank && in.dim[k] == 1 && out.dim[d] != 1)
      k++;
    from[d] = -1;
    if (k < in.rank && in.dim[k] == out.dim[d])
      from[d] = (int)k++;
    else if (out.dim[d] != 1)
      return false;
  }
  for (; k < in.rank; k++)
    if (in.dim[k] != 1)
      return false;
  return true;
}

struct cg_operand_source cg_trace_operand(const struct ir_module *m, struct ir_val v) {
  const struct cg_operand_source computed = {{0}, {-1, -1}};
  int dim[2] = {0, 1};
  for (;;) {
    struct ir_op def = ir_value_at(m, v)->def;
    if (!def.id)
      return computed;
    const struct ir_opnode *n = ir_op_at(m, def);
    if (n->opcode == IR_TRANSPOSE) {
      const struct ir_attr *perm = ir_get_attr(m, def, IR_ATTR_perm);
      for (int i = 0; i < 2; i++)
        dim[i] = dim[i] < 0 ? -1 : (int)perm->ints[dim[i]];
    } else if (n->opcode == IR_RESHAPE) {
      int from[IR_MAX_RANK];
      if (!reshape_dims(ir_type_of(m, n->in[0]), ir_type_of(m, v), from))
        return computed;
      for (int i = 0; i < 2; i++)
        dim[i] = dim[i] < 0 ? -1 : from[dim[i]];
    } else if (n->opcode == IR_LOAD || n->opcode == IR_GATHER) {
      return (struct cg_operand_source){def, {dim[0], dim[1]}};
    } else {
      return computed;
    }
    v = n->in[0];
  }
}

static void find_loads(const struct ir_module *m, struct arena *a, struct ir_val v, uint8_t *seen,
                       struct cg_loads *out) {
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id || ir_type_of(m, v).kind != IR_TILE || seen[v.id])
    return;
  seen[v.id] = 1;
  const struct ir_opnode *n = ir_op_at(m, def);
  if (n->opcode == IR_LOAD)
    VEC_PUSH(a, &out->list, def);
  if (cg_is_elementwise(n->opcode) || n->opcode == IR_BROADCAST || n->opcode == IR_TRANSPOSE ||
      n->opcode == IR_RESHAPE || n->opcode == IR_BITCAST)
    for (uint32_t i = 0; i < n->n_in; i++)
      find_loads(m, a, n->in[i], seen, out);
}

void cg_find_loads(const struct ir_module *m, struct arena *a, struct ir_val v,
                   struct cg_loads *out) {
  find_loads(m, a, v, ARENA_ARRAY(a, uint8_t, m->values.n), out);
}

static int64_t bytes_of(struct ir_type t) {
  return ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1);
}

/* turned: the last transpose on the way here, or none; to: the operand. */
static int64_t crossing_bytes(const struct ir_module *m, struct ir_val v, struct ir_val turned,
                              struct ir_val to, bool spread) {
  struct ir_op def = ir_value_at(m, v)->def;
  int64_t most = 0;
  if (ir_type_of(m, v).kind != IR_TILE || cg_is_free(m, v))
    return 0;
  const struct ir_opnode *n = def.id ? ir_op_at(m, def) : NULL;
  if (!n || n->opcode == IR_DOT || n->opcode == IR_FOR)
    return turned.id ? bytes_of(ir_type_of(m, turned)) : spread ? bytes_of(ir_type_of(m, to)) : 0;
  if (!cg_is_elementwise(n->opcode) && n->opcode != IR_TRANSPOSE)
    return 0;
  for (uint32_t i = 0; i < n->n_in; i++) {
    int64_t bytes = crossing_bytes(m, n->in[i], n->opcode == IR_TRANSPOSE ? v : turned, to, spread);
    most = bytes > most ? bytes : most;
  }
  return most;
}

int64_t cg_crossing_bytes(const struct ir_module *m, struct ir_op dot) {
  struct ir_val a = ir_op_at(m, dot)->in[0];
  const struct ir_attr *w = ir_get_attr(m, dot, IR_ATTR_warps);
  const struct ir_val none = {0};
  int64_t bytes = crossing_bytes(m, a, none, a, w && w->ints[1] > 1);
  return bytes + bytes / 8; /* rows are padded */
}

bool cg_goes_to_registers(const struct ir_module *m, struct ir_op load) {
  const char *path = cg_attr_word(m, load, IR_ATTR_path);
  return str_eq(path, "frag") || str_eq(path, "direct");
}

struct ir_op cg_only_computes(const struct ir_module *m, const struct cg_uses *u,
                              struct ir_op load) {
  const struct ir_op none = {0};
  struct ir_block home = ir_op_at(m, load)->block;
  struct ir_val v = ir_op_at(m, load)->out[0];
  struct ir_op user;
  for (;; v = ir_op_at(m, user)->out[0]) {
    if (u->count[v.id] != 1)
      return none;
    struct cg_use use = u->list.at[u->first[v.id]];
    user = use.op;
    const struct ir_opnode *n = ir_op_at(m, user);
    if (n->block.id != home.id)
      return none;
    if (n->opcode == IR_DOT) {
      enum ir_attr_key key = use.operand ? IR_ATTR_b_path : IR_ATTR_a_path;
      if (use.operand > 1 || !str_eq(cg_attr_word(m, user, key), "computed"))
        return none;
      break;
    }
    if (!cg_is_elementwise(n->opcode) && n->opcode != IR_TRANSPOSE && n->opcode != IR_RESHAPE)
      return none;
  }
  for (struct ir_op o = ir_op_at(m, load)->next; o.id != user.id; o = ir_op_at(m, o)->next) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if (n->n_blocks || n->opcode == IR_STORE || n->opcode == IR_SCATTER || n->opcode == IR_ATOMIC)
      return none;
  }
  return user;
}

bool cg_is_wgmma(const struct ir_module *m, struct ir_op dot) {
  return str_starts(cg_attr_word(m, dot, IR_ATTR_inst), "wgmma_");
}

bool cg_has_a_in_registers(const struct ir_module *m, struct ir_op dot) {
  return cg_is_wgmma(m, dot) && str_eq(cg_attr_word(m, dot, IR_ATTR_a_path), "frag");
}

bool cg_takes_loaded(const struct ir_module *m, struct ir_op dot, uint32_t i) {
  return str_eq(cg_attr_word(m, dot, i ? IR_ATTR_b_path : IR_ATTR_a_path), "smem");
}

int64_t cg_wgmma_k(enum dtype t) {
  return 32 / dtype_bytes(t, 1);
}

bool cg_wgmma_promotes(const struct ir_module *m, struct ir_op dot) {
  return str_eq(cg_attr_word(m, dot, IR_ATTR_prec), "promoted");
}

const struct ir_mma *cg_mma_of(const struct ir_module *m, struct ir_op dot) {
  const struct ir_opnode *n = ir_op_at(m, dot);
  if (!str_starts(cg_attr_word(m, dot, IR_ATTR_inst), "mma_"))
    return NULL;
  return ir_mma_find((enum dtype)ir_type_of(m, n->in[2]).dtype,
                     (enum dtype)ir_type_of(m, n->in[0]).dtype,
                     (enum dtype)ir_type_of(m, n->in[1]).dtype);
}

bool cg_mma_converts(const struct ir_module *m, enum dtype a) {
  uint32_t major = cg_target_of(m)->cc_major;
  return dtype_is_float(a) && dtype_bits(a) == 8 && (major == 9 || major == 10);
}

bool cg_is_mn_inner(const struct ir_module *m, struct ir_op dot, int i) {
  if (!cg_takes_loaded(m, dot, (uint32_t)i))
    return i == 1; /* written row by row */
  struct cg_operand_source src = cg_trace_operand(m, ir_op_at(m, dot)->in[i]);
  int vdim = (int)ir_attr_int(m, src.load, IR_ATTR_vdim, 0);
  return src.dim[i] == vdim && src.dim[1 - i] != vdim;
}

struct cg_mma_atom cg_mma_atom_of(const struct ir_module *m, struct ir_op dot) {
  const struct ir_mma *x = cg_mma_of(m, dot);
  uint32_t bits = dtype_bits(x->a);
  struct cg_mma_atom atom = {.m = x->m, .k = x->k, .per = bits < 32 ? 32 / bits : 1};
  atom.row_pairs = bits == 8 && cg_is_mn_inner(m, dot, 0);
  atom.col_pairs = bits == 8 && cg_is_mn_inner(m, dot, 1);
  return atom;
}

bool cg_is_smem_only(const struct ir_module *m, const struct cg_uses *u, struct ir_val v) {
  if (!u->first[v.id])
    return false;
  for (uint32_t i = u->first[v.id]; i; i = u->list.at[i].next) {
    const struct ir_opnode *n = ir_op_at(m, u->list.at[i].op);
    if (n->opcode == IR_DOT) {
      if (u->list.at[i].operand > 1 || !cg_takes_loaded(m, u->list.at[i].op, u->list.at[i].operand))
        return false;
    } else if (n->opcode == IR_TRANSPOSE || n->opcode == IR_RESHAPE) {
      if (!cg_is_smem_only(m, u, n->out[0]))
        return false;
    } else {
      return false;
    }
  }
  return true;
}

bool cg_is_stored(const struct ir_module *m, struct ir_op load) {
  uint32_t read, written;
  if (!ir_view_arg(m, ir_op_at(m, load)->in[0], &read))
    return true;
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    bool writes = n->opcode == IR_STORE || n->opcode == IR_SCATTER || n->opcode == IR_ATOMIC;
    if (writes && n->block.id && ir_view_arg(m, n->in[0], &written) && written == read)
      return true;
  }
  return false;
}

const struct cg_target *cg_target_of(const struct ir_module *m) {
  return cg_find_target(ir_sym(m, m->target));
}

const char *cg_attr_word(const struct ir_module *m, struct ir_op o, enum ir_attr_key key) {
  const struct ir_attr *a = ir_get_attr(m, o, key);
  return a ? ir_sym(m, a->s) : "";
}

void cg_set_word(struct ir_module *m, struct ir_op o, enum ir_attr_key key, const char *word) {
  ir_set_attr(m, o, (struct ir_attr){.key = key, .s = symtab_get(m->syms, word)});
}

void cg_set_int(struct ir_module *m, struct ir_op o, enum ir_attr_key key, int64_t value) {
  ir_set_attr(m, o, (struct ir_attr){.key = key, .i = value});
}

void cg_set_ints(struct ir_module *m, struct ir_op o, enum ir_attr_key key, uint32_t n,
                 const int64_t *v) {
  ir_set_attr(m, o, (struct ir_attr){.key = key, .ints = v, .n_ints = n});
}

/* ---- barriers ---- */

#define COMPUTE_BAR 14 /* hardware barrier; lower_roles.c has 1 to 3 and 15 */

void cg_put_barrier(struct ir_builder *b) {
  struct ir_module *m = b->m;
  if (m->roles.n < 2) {
    ir_build(b, IR_BARRIER, 0, NULL, 0, NULL);
    return;
  }
  struct sym name = symtab_get(m->syms, "compute");
  uint32_t bar = ir_find_res(m, IR_RES_BAR, name);
  if (!bar) {
    struct ir_attr attrs[2] = {{.key = IR_ATTR_id, .i = COMPUTE_BAR},
                               {.key = IR_ATTR_threads, .i = 32 * (int64_t)m->roles.at[0].warps}};
    struct ir_res r = {.kind = IR_RES_BAR, .name = name, .attrs = attrs, .n_attrs = 2};
    bar = ir_add_res(m, r);
  }
  ir_set_res(m, ir_build(b, IR_BAR_SYNC, 0, NULL, 0, NULL), 1, &bar);
}

bool cg_is_barrier(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  return n->opcode == IR_BARRIER ||
         (n->opcode == IR_BAR_SYNC &&
          ir_res_int(&m->res.at[n->res[0]], IR_ATTR_id, 0) == COMPUTE_BAR);
}
