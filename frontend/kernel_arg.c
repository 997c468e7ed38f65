/* Argument declarations: tensor, out, inout, scalar, optional, and the dims they name. */
#include "frontend/dsl.h"

#include <ctype.h>

static const char meta_key = 0; /* its address: the registry key of the metatable */

const struct dsl_arg_spec *dsl_to_arg(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TUSERDATA || !lua_getmetatable(L, idx))
    return NULL;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? lua_touserdata(L, idx) : NULL;
}

static struct dsl_arg_spec *push_spec(lua_State *L) {
  struct dsl_arg_spec *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (struct dsl_arg_spec){0};
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  lua_setmetatable(L, -2);
  return s;
}

bool dsl_is_name(const char *s) {
  if (!isalpha((unsigned char)*s) && *s != '_')
    return false;
  for (; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '_')
      return false;
  return true;
}

/* "K/128" as an expression: a single `/` divides exactly. */
static const char *with_floor_division(struct fe_file *f, const char *text, bool *exact) {
  struct strbuf b = {.arena = fe_arena(f->fe)};
  *exact = false;
  for (const char *p = text; *p; p++) {
    sb_putc(&b, *p);
    if (*p != '/')
      continue;
    sb_putc(&b, '/');
    if (p[1] == '/')
      p++;
    else
      *exact = true;
  }
  return sb_str(&b);
}

static bool parse_dim(struct fe_file *f, const char *arg, uint32_t d, const char *text,
                      struct expr *out) {
  bool exact;
  const char *plain = with_floor_division(f, text, &exact), *error, *at;
  struct expr e = expr_parse(&f->exprs, plain, plain + strlen(plain), &error, &at);
  if (!e.id) {
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                  "dim %u of `%s`, \"%s\": %s; a dim is a name, a number or an expression like "
                  "\"K/128\"",
                  d, arg, text, error);
    return false;
  }
  if (exact) {
    const struct expr_node *n = expr_at(&f->exprs, e);
    int64_t by;
    if (n->op != EXPR_DIV || expr_at(&f->exprs, n->in[0])->op != EXPR_SYM ||
        !(expr_at(&f->exprs, n->in[1])->op == EXPR_SYM ||
          (expr_is_const(&f->exprs, n->in[1], &by) && by > 0))) {
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                    "dim %u of `%s`, \"%s\": `/` divides one dim exactly, as in \"K/128\"; "
                    "otherwise use // or cdiv(a, b)",
                    d, arg, text);
      return false;
    }
  }
  *out = e;
  return true;
}

static void read_dims(lua_State *L, struct fe_file *f, struct fe_arg *arg, const char *what,
                      int first) {
  int n = lua_gettop(L) - first + 1;
  if (n < 1 || n > IR_MAX_RANK) {
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s `%s` needs 1 to %d dims, got %d", what, arg->name,
                  IR_MAX_RANK, n < 0 ? 0 : n);
    n = n < 1 ? 0 : IR_MAX_RANK;
  }
  for (int i = 0; i < n; i++) {
    int idx = first + i, is_int = 0;
    uint32_t d = (uint32_t)i;
    lua_Integer value = 0;
    struct expr e = expr_const(&f->exprs, 1);
    const char *text = "1";
    if (lua_type(L, idx) == LUA_TNUMBER) {
      value = lua_tointegerx(L, idx, &is_int);
      if (!is_int || value < 0)
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                      "dim %u of `%s` is %s; it must be an integer of at "
                      "least 0",
                      d, arg->name, dsl_describe(f, idx) + strlen("number "));
      else
        e = expr_const(&f->exprs, value);
      text = arena_printf(fe_arena(f->fe), "%lld", (long long)value);
    } else if (lua_type(L, idx) == LUA_TSTRING) {
      text = arena_strdup(fe_arena(f->fe), lua_tostring(L, idx));
      parse_dim(f, arg->name, d, text, &e);
    } else {
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                    "dim %u of `%s` is %s; a dim is a name (\"M\"), a number or an expression "
                    "(\"K/128\")",
                    d, arg->name, dsl_describe(f, idx));
    }
    arg->dim[d] = e;
    arg->dim_text[d] = text;
  }
  arg->rank = (uint32_t)n;
}

static int declare(lua_State *L, const char *what, enum ir_arg_kind kind) {
  struct fe_file *f = dsl_of(L);
  struct fe_arg arg = {.kind = kind, .name = "?", .dtype = DT_F32, .loc = fe_where(f->fe)};
  lua_settop(L, lua_gettop(L) < 2 ? 2 : lua_gettop(L));
  if (lua_type(L, 1) != LUA_TSTRING || !dsl_is_name(lua_tostring(L, 1)))
    fe_soft_error(
        f->fe, DIAG_KERNEL_FIELD, "%s needs a name first, as %s(\"X\", ...); got %s", what, what,
        lua_type(L, 1) == LUA_TSTRING ? arena_printf(fe_arena(f->fe), "\"%s\"", lua_tostring(L, 1))
                                      : dsl_describe(f, 1));
  else
    arg.name = arena_strdup(fe_arena(f->fe), lua_tostring(L, 1));
  if (lua_type(L, 2) == LUA_TSTRING)
    arg.dtype_const = arena_strdup(fe_arena(f->fe), lua_tostring(L, 2));
  else if (!dsl_to_dtype(L, 2, &arg.dtype))
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                  "%s `%s` needs a dtype second (bf16, or \"T\" for a const T), got %s", what,
                  arg.name, dsl_describe(f, 2));
  if (!arg.dtype_const && arg.dtype == DT_INDEX)
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s `%s`: index is no type of memory; use s32 or s64",
                  what, arg.name);
  if (kind != IR_ARG_SCALAR)
    read_dims(L, f, &arg, what, 3);
  push_spec(L)->arg = arg;
  return 1;
}

int dsl_fn_global_tensor(lua_State *L) {
  return declare(L, "tensor", IR_ARG_IN);
}
int dsl_fn_global_out(lua_State *L) {
  return declare(L, "out", IR_ARG_OUT);
}
int dsl_fn_global_inout(lua_State *L) {
  return declare(L, "inout", IR_ARG_INOUT);
}
int dsl_fn_global_scalar(lua_State *L) {
  return declare(L, "scalar", IR_ARG_SCALAR);
}

int dsl_fn_global_optional(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 1);
  const struct dsl_arg_spec *s = dsl_to_arg(L, 1);
  if (!s)
    fe_error(f->fe, DIAG_KERNEL_FIELD,
             "optional takes a declaration, as optional(tensor(\"bias\", bf16, \"N\")), got %s",
             dsl_describe(f, 1));
  if (s->arg.kind == IR_ARG_SCRATCH)
    fe_error(f->fe, DIAG_KERNEL_FIELD, "scratch `%s` is not passed: it cannot be optional",
             s->arg.name);
  struct dsl_arg_spec *copy = push_spec(L);
  *copy = *s;
  copy->arg.optional = true;
  return 1;
}

/* scratch(name, dtype, dims... [, {zero = true}]) */
int dsl_fn_global_scratch(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L);
  bool zero = false;
  if (n > 3 && lua_type(L, n) == LUA_TTABLE) {
    bool known = true;
    lua_pushnil(L);
    while (lua_next(L, n)) {
      known &= lua_type(L, -2) == LUA_TSTRING && str_eq(lua_tostring(L, -2), "zero") &&
               lua_isboolean(L, -1);
      zero = lua_toboolean(L, -1);
      lua_pop(L, 1);
    }
    if (!known)
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "options of scratch are a table {zero = true}");
    lua_settop(L, n - 1);
  }
  declare(L, "scratch", IR_ARG_SCRATCH);
  struct dsl_arg_spec *s = lua_touserdata(L, -1);
  s->arg.zero = zero;
  return 1;
}

static int spec_tostring(lua_State *L) {
  const struct dsl_arg_spec *s = dsl_to_arg(L, 1);
  lua_pushfstring(L, "argument %s", s ? s->arg.name : "?");
  return 1;
}

void dsl_open_arg(lua_State *L, struct fe_file *f) {
  static const luaL_Reg meta[] = {{"__tostring", spec_tostring}, {NULL, NULL}};
  lua_newtable(L);
  dsl_register(L, f, meta);
  lua_pushliteral(L, "argument");
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
}
