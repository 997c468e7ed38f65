/* Lookups in resources and in the table of their uses; see resource.h. */
#include "ir/resource.h"

#include "base/str.h"

const struct ir_attr *ir_res_attr(const struct ir_res *r, enum ir_attr_key key) {
  for (uint32_t i = 0; i < r->n_attrs; i++)
    if (r->attrs[i].key == key)
      return &r->attrs[i];
  return NULL;
}

int64_t ir_res_int(const struct ir_res *r, enum ir_attr_key key, int64_t otherwise) {
  const struct ir_attr *a = ir_res_attr(r, key);
  return a ? a->i : otherwise;
}

const char *ir_res_word(const struct ir_module *m, const struct ir_res *r, enum ir_attr_key key) {
  const struct ir_attr *a = ir_res_attr(r, key);
  return a ? ir_sym(m, a->s) : "";
}

uint32_t ir_find_res(const struct ir_module *m, enum ir_res_kind kind, struct sym name) {
  for (uint32_t i = 1; i < m->res.n; i++)
    if (m->res.at[i].kind == kind && m->res.at[i].name.id == name.id)
      return i;
  return 0;
}

uint32_t ir_frag_elems(const struct ir_module *m, const struct ir_res *frag) {
  if (!frag->layout || frag->layout >= m->layouts.n)
    return 0;
  return layout_extent(m->layouts.at[frag->layout], LAYOUT_REG);
}

uint32_t ir_cursor_pipe(const struct ir_module *m, const struct ir_res *cursor) {
  const struct ir_attr *a = ir_res_attr(cursor, IR_ATTR_pipe);
  return a ? ir_find_res(m, IR_RES_PIPE, a->s) : 0;
}

bool ir_cursor_produces(const struct ir_module *m, const struct ir_res *cursor) {
  return str_eq(ir_res_word(m, cursor, IR_ATTR_side), "producer");
}

bool ir_pipe_has_barriers(const struct ir_module *m, const struct ir_res *pipe) {
  const char *kind = ir_res_word(m, pipe, IR_ATTR_kind);
  return str_eq(kind, "tma") || str_eq(kind, "role");
}

bool ir_tmap_arg(const struct ir_module *m, const struct ir_res *tmap, uint32_t *arg) {
  const struct ir_attr *a = ir_res_attr(tmap, IR_ATTR_arg);
  for (uint32_t i = 0; a && i < m->args.n; i++)
    if (m->args.at[i].name.id == a->s.id) {
      *arg = i;
      return true;
    }
  return false;
}

bool ir_find_role(const struct ir_module *m, struct sym name, uint32_t *role) {
  for (uint32_t i = 0; i < m->roles.n; i++)
    if (m->roles.at[i].name.id == name.id) {
      *role = i;
      return true;
    }
  return false;
}

/* ---- uses ---- */

#define FRAG   (1u << IR_RES_FRAG)
#define BUF    (1u << IR_RES_BUF)
#define PIPE   (1u << IR_RES_PIPE)
#define CURSOR (1u << IR_RES_CURSOR)
#define BAR    (1u << IR_RES_BAR)
#define TMAP   (1u << IR_RES_TMAP)
#define N      IR_ACCESS_NONE
#define R      IR_ACCESS_READ
#define W      IR_ACCESS_WRITE
#define RW     (IR_ACCESS_READ | IR_ACCESS_WRITE)

#define U(kinds, access)    +1
#define OPT(kinds, access)  +1
#define MANY(kinds, access) +1
enum {
#define USES(op, uses, text) N_USES_##op = 0 uses,
#include "ir/res_uses.def"
};
#define USES(op, uses, text) _Static_assert(N_USES_##op <= IR_MAX_USES, "too many uses of " #op);
#include "ir/res_uses.def"
#undef U
#undef OPT
#undef MANY

#define U(kinds, access)    {kinds, access, false, false},
#define OPT(kinds, access)  {kinds, access, true, false},
#define MANY(kinds, access) {kinds, access, false, true},
static const struct ir_res_uses uses_of[IR_OPCODE_COUNT] = {
#define USES(op, uses, text) [IR_##op] = {text, N_USES_##op, {uses}},
#include "ir/res_uses.def"
};

const struct ir_res_uses *ir_uses(enum ir_opcode opcode) {
  return uses_of[opcode].n ? &uses_of[opcode] : NULL;
}

uint8_t ir_res_access(const struct ir_opnode *n, uint32_t i) {
  const struct ir_res_uses *u = ir_uses(n->opcode);
  if (!u)
    return IR_ACCESS_NONE;
  const struct ir_res_use *last = &u->use[u->n - 1];
  return i < u->n ? u->use[i].access : last->many ? last->access : (uint8_t)IR_ACCESS_NONE;
}
