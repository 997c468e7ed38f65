/* Methods of tiles (T, row, col, reshape), and the tables of methods; those of tensors:
 * dsl_view.c. */
#include "frontend/dsl.h"

static const char tile_key = 0, view_key = 0; /* addresses: registry keys of the method tables */

struct dsl_val *dsl_self_tile(struct fe_file *f, const char *what) {
  struct dsl_val *v = dsl_val_at(f, 1, what);
  if (v && v->t.kind != IR_TILE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes a tile, got %s", what, dsl_describe_type(f, v->t));
    return NULL;
  }
  return v;
}

int dsl_fn_tile_T(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_val *v = dsl_self_tile(f, ":T()");
  dsl_push(f, v ? dsl_transpose(f, v) : NULL);
  return 1;
}

static int make_rank_2(lua_State *L, bool row) {
  struct fe_file *f = dsl_of(L);
  const char *what = row ? ":row()" : ":col()";
  struct dsl_val *v = dsl_self_tile(f, what);
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
  struct dsl_val *v = dsl_self_tile(f, ":reshape(...)");
  uint32_t rank;
  int64_t dim[IR_MAX_RANK];
  bool ok = v && dsl_sizes_at(f, 2, lua_gettop(L), ":reshape(...)", &rank, dim);
  dsl_push(f, ok ? dsl_reshape(f, v, rank, dim) : NULL);
  return 1;
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
