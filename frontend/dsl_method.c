/* Methods of tiles (T, row, col, reshape) and of tensors (tile, store). */
#include "frontend/dsl.h"

#include <inttypes.h>
#include <stdio.h>

static const char tile_key = 0, view_key = 0; /* addresses: registry keys of the method tables */

static struct dsl_val *self_tile(struct fe_file *f, const char *what) {
  struct dsl_val *v = dsl_val_at(f, 1, what);
  if (v && v->t.kind != IR_TILE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes a tile, got %s", what, dsl_describe_type(f, v->t));
    return NULL;
  }
  return v;
}

int dsl_fn_tile_T(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_val *v = self_tile(f, ":T()");
  dsl_push(f, v ? dsl_transpose(f, v) : NULL);
  return 1;
}

static int make_rank_2(lua_State *L, bool row) {
  struct fe_file *f = dsl_of(L);
  const char *what = row ? ":row()" : ":col()";
  struct dsl_val *v = self_tile(f, what);
  if (v && v->t.rank != 1) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "%s takes a tile of rank 1, got %s", what,
                  dsl_describe_type(f, v->t));
    v = NULL;
  }
  if (!v) {
    dsl_push(f, NULL);
    return 1;
  }
  const int64_t dim[2] = {row ? 1 : v->t.dim[0], row ? v->t.dim[0] : 1};
  dsl_push(f, dsl_reshape(f, v, 2, dim));
  return 1;
}

int dsl_fn_tile_row(lua_State *L) {
  return make_rank_2(L, true);
}

int dsl_fn_tile_col(lua_State *L) {
  return make_rank_2(L, false);
}

int dsl_fn_tile_reshape(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_val *v = self_tile(f, ":reshape(...)");
  uint32_t rank;
  int64_t dim[IR_MAX_RANK];
  bool ok = v && dsl_sizes_at(f, 2, lua_gettop(L), ":reshape(...)", &rank, dim);
  dsl_push(f, ok ? dsl_reshape(f, v, rank, dim) : NULL);
  return 1;
}

/* ---- tensors ---- */

static struct dsl_view *self_view(lua_State *L, struct fe_file *f, const char *what) {
  struct fe_dev *h = fe_to_dev(L, 1);
  if (h && h->kind == FE_DEV_OBJECT)
    return (struct dsl_view *)h;
  if (!fe_is_unknown(h))
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes a tensor, got %s; call it as t:%s(...)", what,
                  fe_describe(f->fe, 1), what);
  return NULL;
}

static uint32_t view_rank(const struct fe_file *f, const struct dsl_view *v) {
  return f->m->args.at[v->arg].rank;
}

/* The list at idx must have one entry per dim of the tensor. */
static bool check_list(lua_State *L, struct fe_file *f, const struct dsl_view *v, int idx,
                       const char *what, const char *list) {
  if (fe_is_unknown(fe_to_dev(L, idx)))
    return false;
  const char *name = ir_sym(f->m, f->m->args.at[v->arg].name);
  uint32_t rank = view_rank(f, v);
  if (lua_type(L, idx) != LUA_TTABLE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s of `%s` needs a list of %" PRIu32 " %s%s, got %s", what,
                  name, rank, list, rank == 1 ? "" : "s", fe_describe(f->fe, idx));
    return false;
  }
  size_t n = lua_rawlen(L, idx);
  if (n != rank) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "%s of `%s` needs %" PRIu32 " %s%s, got %zu", what,
                  name, rank, list, rank == 1 ? "" : "s", n);
    return false;
  }
  return true;
}

static bool read_offsets(lua_State *L, struct fe_file *f, const struct dsl_view *v, int idx,
                         const char *what, struct dsl_val *out[IR_MAX_RANK]) {
  if (!check_list(L, f, v, idx, what, "offset"))
    return false;
  bool ok = true;
  for (uint32_t d = 0; d < view_rank(f, v); d++) {
    lua_rawgeti(L, idx, (lua_Integer)d + 1);
    int at = lua_gettop(L);
    fe_check_defined(f->fe, at);
    struct dsl_opnd o;
    char name[48];
    snprintf(name, sizeof name, "offset %" PRIu32 " of %s", d, what);
    out[d] = NULL;
    if (dsl_opnd_at(f, at, name, &o))
      out[d] = dsl_as_index(f, &o, name);
    ok &= out[d] != NULL;
    lua_settop(L, at - 1);
  }
  return ok;
}

static bool read_sizes(lua_State *L, struct fe_file *f, const struct dsl_view *v, int idx,
                       struct ir_type *t) {
  const struct ir_arg *arg = &f->m->args.at[v->arg];
  if (!check_list(L, f, v, idx, "tile", "size"))
    return false;
  uint32_t rank;
  int64_t dim[IR_MAX_RANK];
  if (!dsl_sizes_at(f, idx, idx, "tile", &rank, dim))
    return false;
  *t = ir_tile(arg->dtype, rank, dim);
  return true;
}

/* {pad = x} */
static bool read_options(lua_State *L, struct fe_file *f, int idx, bool *has_pad,
                         struct dsl_opnd *pad) {
  *has_pad = false;
  if (lua_isnoneornil(L, idx))
    return true;
  if (fe_is_unknown(fe_to_dev(L, idx)))
    return false;
  if (lua_type(L, idx) != LUA_TTABLE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "options of tile are a table {pad = x}, got %s",
                  fe_describe(f->fe, idx));
    return false;
  }
  int top = lua_gettop(L);
  bool ok = true;
  lua_pushnil(L);
  while (lua_next(L, idx)) {
    int at = lua_gettop(L);
    fe_check_defined(f->fe, at);
    if (lua_type(L, at - 1) != LUA_TSTRING || !str_eq(lua_tostring(L, at - 1), "pad")) {
      fe_soft_error(f->fe, DIAG_OPERAND, "tile has no option %s; it has pad",
                    lua_type(L, at - 1) == LUA_TSTRING ? lua_tostring(L, at - 1)
                                                       : fe_describe(f->fe, at - 1));
      ok = false;
    } else if (lua_type(L, at) != LUA_TNUMBER && lua_type(L, at) != LUA_TBOOLEAN) {
      if (!fe_is_unknown(fe_to_dev(L, at)))
        fe_soft_error(f->fe, DIAG_OPERAND, "pad is a plain number, got %s", fe_describe(f->fe, at));
      ok = false;
    } else {
      *has_pad = true;
      ok &= dsl_opnd_at(f, at, "pad", pad);
    }
    lua_settop(L, at - 1);
  }
  lua_settop(L, top);
  return ok;
}

int dsl_fn_tensor_tile(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "tile");
  lua_settop(L, 4);
  struct dsl_val *offset[IR_MAX_RANK];
  struct ir_type t;
  struct dsl_opnd pad = {0};
  bool has_pad;
  bool ok = v && read_offsets(L, f, v, 2, "tile", offset);
  ok = v && read_sizes(L, f, v, 3, &t) && ok;
  ok = read_options(L, f, 4, &has_pad, &pad) && ok;
  dsl_push(f, ok ? dsl_load(f, v, offset, t, has_pad, &pad) : NULL);
  return 1;
}

int dsl_fn_tensor_store(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "store");
  lua_settop(L, 3);
  struct dsl_val *offset[IR_MAX_RANK];
  bool ok = v && read_offsets(L, f, v, 2, "store", offset);
  struct dsl_opnd o;
  if (!v || !dsl_opnd_at(f, 3, "store", &o) || !ok)
    return 0;
  struct dsl_val *x = o.kind == DSL_DEV ? o.dev : dsl_const(f, f->m->args.at[v->arg].dtype, &o);
  if (x)
    dsl_store(f, v, offset, x);
  return 0;
}

static void open_table(lua_State *L, struct fe_file *f, enum dsl_owner owner, const char *key) {
  lua_newtable(L);
  dsl_register_all(L, f, owner);
  lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void dsl_open_methods(lua_State *L, struct fe_file *f) {
  open_table(L, f, DSL_OF_tile, &tile_key);
  open_table(L, f, DSL_OF_tensor, &view_key);
}

bool dsl_push_method(lua_State *L, bool view, int key) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, view ? &view_key : &tile_key);
  lua_pushvalue(L, key);
  if (lua_rawget(L, -2) == LUA_TNIL) {
    lua_pop(L, 2);
    return false;
  }
  lua_remove(L, -2);
  return true;
}
