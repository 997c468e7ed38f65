/* A tracer that only writes down what it is asked to do; see help_record.h. */
#include "help_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct fake {
  struct fe_dev h;
  const char *name; /* "%3" */
  struct diag_loc made;
};

enum { T_INDEX = 1, T_F32, T_TILE, T_BOOL, T_MASK };
static const char *const type_texts[] = {"", "index", "f32", "f32(4)", "bool", "bool(4)"};

/* ---- the tracer ---- */

static struct fake *new_value(struct hr *t, int type) {
  struct fake *v = arena_get0(fe_trace_arena(t->fe), sizeof *v);
  v->h = (struct fe_dev){
      .kind = FE_DEV_VALUE, .region = fe_value_region(t->fe), .type = {(uint32_t)type}};
  if (type == T_BOOL || type == T_MASK)
    v->h.flags |= FE_DEV_MASK;
  if (type != T_TILE && type != T_MASK)
    v->h.flags |= FE_DEV_SCALAR;
  if (type == T_INDEX)
    v->h.flags |= FE_DEV_INT;
  v->name = arena_printf(fe_trace_arena(t->fe), "%%%u", ++t->n_values);
  v->made = fe_where(t->fe);
  return v;
}

static struct fake *push_new(struct hr *t, int type) {
  struct fake *v = new_value(t, type);
  lua_pushlightuserdata(t->L, v);
  return v;
}

static const char *text_at(struct hr *t, int idx) {
  struct fe_dev *d = fe_to_dev(t->L, idx);
  if (fe_is_unknown(d))
    return "unknown";
  if (d) {
    struct fake *v = (struct fake *)d;
    return fe_check_open(t->fe, d, v->made) ? v->name : "closed";
  }
  luaL_tolstring(t->L, idx, NULL);
  const char *s = arena_strdup(fe_trace_arena(t->fe), lua_tostring(t->L, -1));
  lua_pop(t->L, 1);
  return s;
}

static void line(struct hr *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(struct hr *t, const char *fmt, ...) {
  va_list ap;
  for (unsigned i = 0; i < t->indent; i++)
    sb_puts(&t->lines, " ");
  va_start(ap, fmt);
  sb_vprintf(&t->lines, fmt, ap);
  va_end(ap);
  sb_putc(&t->lines, '\n');
}

static int type_at(struct hr *t, int idx) {
  struct fe_dev *d = fe_to_dev(t->L, idx);
  return d ? (int)d->type.id : 0;
}

static void on_binary(void *user, enum fe_op op, int a, int b) {
  struct hr *t = user;
  int ta = type_at(t, a), tb = type_at(t, b), type = ta > tb ? ta : tb;
  if ((ta == T_F32 || tb == T_F32) && ta != T_TILE && tb != T_TILE)
    type = T_F32;
  if (op >= FE_OP_EQ && op <= FE_OP_GE)
    type = ta == T_TILE || tb == T_TILE ? T_MASK : T_BOOL;
  const char *x = text_at(t, a), *y = text_at(t, b);
  struct fake *v = push_new(t, type);
  line(t, "%s = %s %s %s", v->name, x, fe_op_text(op), y);
}

static void on_unary(void *user, enum fe_op op, int a) {
  struct hr *t = user;
  const char *x = text_at(t, a);
  struct fake *v = push_new(t, type_at(t, a));
  line(t, "%s = %s %s", v->name, fe_op_text(op), x);
}

static void on_select(void *user, int mask, int yes, int no) {
  struct hr *t = user;
  int type = type_at(t, yes) ? type_at(t, yes) : type_at(t, no) ? type_at(t, no) : T_INDEX;
  const char *m = text_at(t, mask), *x = text_at(t, yes), *y = text_at(t, no);
  struct fake *v = push_new(t, type);
  line(t, "%s = where %s %s %s", v->name, m, x, y);
}

static void on_index(void *user, int obj, int key) {
  struct hr *t = user;
  fe_soft_error(t->fe, DIAG_OPERAND, "%s has no '%s'", text_at(t, obj), text_at(t, key));
  fe_push_unknown(t->fe);
}

static const char *describe(void *user, const struct fe_dev *dev) {
  (void)user;
  return dev->kind == FE_DEV_RANGE ? "range" : type_texts[dev->type.id];
}

static const char *type_name(void *user, const struct fe_dev *dev) {
  (void)user;
  return dev->flags & FE_DEV_SCALAR ? "scalar" : "tile";
}

static const char *describe_type(void *user, struct fe_type type) {
  (void)user;
  return type_texts[type.id];
}

static bool fits(void *user, struct fe_type type, int idx) {
  struct hr *t = user;
  if (lua_isboolean(t->L, idx))
    return type.id == T_BOOL;
  return type.id == T_F32 || (type.id == T_INDEX && lua_isinteger(t->L, idx));
}

static bool is_scalar_type(void *user, struct fe_type type) {
  (void)user;
  return type.id == T_INDEX || type.id == T_F32 || type.id == T_BOOL;
}

static const char *const kinds[] = {"root", "loop", "then", "else", "short", "probe"};

static bool has_block(const struct fe_region *r) {
  return r->kind == FE_REGION_LOOP || r->kind == FE_REGION_THEN || r->kind == FE_REGION_ELSE;
}

static void on_open(void *user, struct fe_region *r) {
  struct hr *t = user;
  r->user[0] = (void *)(uintptr_t)(t->lines.n + 1);
  r->user[1] = NULL;
  if (r->kind == FE_REGION_LOOP)
    t->n_passes++;
  if (has_block(r)) {
    line(t, "%s {", kinds[r->kind]);
    t->indent++;
  }
  t->n_open++;
}

static void on_close(void *user, struct fe_region *r, bool keep) {
  struct hr *t = user;
  t->n_open--;
  t->indent -= has_block(r);
  if (!keep && r->user[0]) {
    t->lines.n = (size_t)(uintptr_t)r->user[0] - 1;
    if (t->lines.s)
      t->lines.s[t->lines.n] = 0;
  } else if (has_block(r)) {
    line(t, "}");
  }
}

static const char *effect(void *user, struct fe_region *r) {
  struct hr *t = user;
  return t->lines.s && strstr(t->lines.s + ((uintptr_t)r->user[0] - 1), "!") ? "op" : NULL;
}

static void loop_index(void *user, struct fe_region *r, int range) {
  struct hr *t = user;
  (void)r;
  (void)range;
  struct fake *v = push_new(t, T_INDEX);
  line(t, "index %s", v->name);
}

static void loop_arg(void *user, struct fe_region *r, const struct fe_slot *slot) {
  struct hr *t = user;
  (void)r;
  const char *init = text_at(t, slot->first);
  struct fake *v = push_new(t, (int)slot->type.id);
  line(t, "arg %s `%s`%s: %s from %s", v->name, slot->name, slot->is_captured ? " captured" : "",
       type_texts[slot->type.id], init);
}

static void while_cond(void *user, struct fe_region *r, int mask, uint32_t n,
                       const struct fe_slot *slots) {
  struct hr *t = user;
  (void)r;
  line(t, "condition %s", text_at(t, mask));
  for (uint32_t i = 0; i < n; i++) {
    const char *x = text_at(t, slots[i].first);
    line(t, "body %s from %s", push_new(t, (int)slots[i].type.id)->name, x);
  }
}

static void build(struct hr *t, const char *what, uint32_t n, const struct fe_slot *slots) {
  line(t, "%s", what);
  for (uint32_t i = 0; i < n; i++) {
    /* values of the closed blocks: no check that they are open */
    const char *texts[2];
    for (int k = 0; k < 2; k++) {
      int idx = k ? slots[i].second : slots[i].first;
      struct fe_dev *d = fe_to_dev(t->L, idx);
      texts[k] = d ? ((struct fake *)d)->name : text_at(t, idx);
    }
    struct fake *v = push_new(t, (int)slots[i].type.id);
    line(t, "%s `%s`%s: %s = %s, %s", v->name, slots[i].name,
         slots[i].is_captured ? " captured" : "", type_texts[slots[i].type.id], texts[0], texts[1]);
  }
}

static void build_if(void *user, struct fe_region *a, struct fe_region *b, int cond, uint32_t n,
                     const struct fe_slot *slots) {
  struct hr *t = user;
  assert_int_equal(a->kind, FE_REGION_THEN);
  assert_int_equal(b->kind, FE_REGION_ELSE);
  build(t, arena_printf(fe_trace_arena(t->fe), "if %s", text_at(t, cond)), n, slots);
}

static void build_for(void *user, struct fe_region *r, int range, uint32_t n,
                      const struct fe_slot *slots) {
  (void)r;
  (void)range;
  build(user, "for", n, slots);
}

static void build_while(void *user, struct fe_region *r, uint32_t n, const struct fe_slot *slots) {
  (void)r;
  build(user, "while", n, slots);
}

static void named(void *user, struct fe_dev *dev, const char *name) {
  (void)user;
  assert_non_null(dev);
  assert_non_null(name);
}

static int dev_assert(void *user, lua_State *L) {
  struct hr *t = user;
  line(t, "assert! %s", text_at(t, 1));
  return lua_gettop(L);
}

static int dev_print(void *user, lua_State *L) {
  struct hr *t = user;
  (void)L;
  line(t, "print! %s", text_at(t, 1));
  return 0;
}

/* ---- globals ---- */

static struct hr *test_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}

static int g_range(lua_State *L) {
  struct hr *t = test_of(L);
  struct fake *v = new_value(t, 0);
  v->h.kind = FE_DEV_RANGE;
  lua_pushlightuserdata(L, v);
  return 1;
}

static int g_op(lua_State *L) {
  struct hr *t = test_of(L);
  struct strbuf b = {.arena = fe_trace_arena(t->fe)};
  for (int i = 2; i <= lua_gettop(L); i++)
    sb_printf(&b, " %s", text_at(t, i));
  line(t, "%s!%s", luaL_checkstring(L, 1), sb_str(&b));
  return 0;
}

static int g_peek(lua_State *L) {
  struct hr *t = test_of(L);
  lua_pushstring(L, fe_describe(t->fe, 1));
  return 1;
}

static int g_make(lua_State *L) {
  struct hr *t = test_of(L);
  int type = (int)luaL_checkinteger(L, 1);
  struct fake *v = push_new(t, type);
  line(t, "%s = make %s", v->name, type_texts[type]);
  return 1;
}

static void add_globals(struct hr *t) {
  static const struct {
    const char *name;
    int type;
  } values[] = {{"idx", T_INDEX}, {"f", T_F32}, {"t", T_TILE}, {"m", T_BOOL}, {"tm", T_MASK}};
  static const luaL_Reg functions[] = {
      {"range", g_range}, {"op", g_op}, {"peek", g_peek}, {"make", g_make}, {NULL, NULL}};
  lua_pushglobaltable(t->L);
  lua_pushlightuserdata(t->L, t);
  luaL_setfuncs(t->L, functions, 1);
  lua_pop(t->L, 1);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    struct fake *v = new_value(t, values[i].type);
    v->h.region = 0;
    v->name = values[i].name;
    lua_pushlightuserdata(t->L, v);
    lua_setglobal(t->L, values[i].name);
  }
  t->n_values = 0;
}

/* ---- running ---- */

static void *counting_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  struct hr *t = user;
  if (new_size == 0) {
    t->alive -= p != NULL;
    free(p);
    return NULL;
  }
  if (new_size > old_size || !p) {
    t->n_allocs++;
    if (t->fail_at && (t->n_allocs == t->fail_at || (t->sticky && t->n_allocs > t->fail_at)))
      return NULL;
  }
  void *q = realloc(p, new_size);
  t->alive += !p;
  return q;
}

static void take_print(void *user, const char *text, size_t n) {
  struct hr *t = user;
  sb_put(&t->out, text, n);
}

/* The chunk's function is called inside a trace; what it returns is printed. */
void hr_trace_text(struct fe_state *fe, void *user) {
  struct hr *t = user;
  fe_load_text(fe, "k.lua", t->text, strlen(t->text));
  fe_trace_begin(fe);
  add_globals(t);
  fe_call(fe, 0, 0);
  fe_trace_end(fe, true);
}

void hr_init(struct hr *t) {
  memset(t, 0, sizeof *t);
  arena_init(&t->arena, &mem_libc, &t->trap);
  assert_true(diag_init(&t->diags, &mem_libc));
  t->lines.arena = t->out.arena = &t->arena;
  t->mem = (struct mem_alloc){counting_alloc, t};
  t->tracer = (struct fe_tracer){.user = t,
                                 .binary = on_binary,
                                 .unary = on_unary,
                                 .select = on_select,
                                 .index = on_index,
                                 .describe = describe,
                                 .type_name = type_name,
                                 .describe_type = describe_type,
                                 .fits = fits,
                                 .is_scalar_type = is_scalar_type,
                                 .index_type = {T_INDEX},
                                 .bool_type = {T_BOOL},
                                 .open = on_open,
                                 .close = on_close,
                                 .effect = effect,
                                 .loop_index = loop_index,
                                 .loop_arg = loop_arg,
                                 .while_cond = while_cond,
                                 .build_if = build_if,
                                 .build_for = build_for,
                                 .build_while = build_while,
                                 .named = named,
                                 .dev_assert = dev_assert,
                                 .dev_print = dev_print};
}

bool hr_make_state(struct hr *t) {
  struct fe_host host = {
      .mem = &t->mem, .diags = &t->diags, .root = "", .print = take_print, .user = t};
  host.limits.seconds = 120;
  t->fe = fe_state_new(&host);
  if (!t->fe)
    return false;
  t->L = fe_lua(t->fe);
  fe_set_tracer(t->fe, &t->tracer);
  return true;
}

void hr_done(struct hr *t) {
  fe_state_free(t->fe);
  assert_int_equal(t->alive, 0);
  diag_free(&t->diags);
  arena_free(&t->arena);
}

/* Printed text, then diagnostics as "line:col: text", then the record. */
const char *hr_result(struct hr *t) {
  struct strbuf b = {.arena = &t->arena};
  sb_puts(&b, sb_str(&t->out));
  for (uint32_t i = 0; i < t->diags.list.n; i++) {
    const struct diag *d = &t->diags.list.at[i];
    sb_printf(&b, "%u:%u: %s%s\n", d->loc.line, d->loc.col,
              d->severity == DIAG_WARNING ? "warning: " : "", d->message);
  }
  if (t->diags.n_errors == 0)
    sb_puts(&b, sb_str(&t->lines));
  return sb_str(&b);
}

const char *hr_run(struct hr *t, const char *text) {
  hr_init(t);
  assert_true(hr_make_state(t));
  t->text = text;
  enum fe_status s = fe_protect(t->fe, hr_trace_text, t);
  assert_int_equal(s == FE_DONE, t->diags.n_errors == 0);
  assert_int_equal(t->n_open, 0);
  return hr_result(t);
}
