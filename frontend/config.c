/* Configs: the choice of one value per const and tune list; defaults, text, legality. */
#include "base/check.h"
#include "base/num.h"
#include "frontend/dsl.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- values ---- */

void fe_value_print(struct fe_value v, struct strbuf *out) {
  switch (v.kind) {
  case FE_NONE: sb_puts(out, "none"); return;
  case FE_INT: sb_printf(out, "%" PRId64, v.i); return;
  case FE_NUM: sb_put_double(out, v.f); return;
  case FE_BOOL: sb_puts(out, v.i ? "true" : "false"); return;
  case FE_DTYPE: sb_puts(out, dtype_name((enum dtype)v.i)); return;
  case FE_STR: sb_put_json(out, v.s, strlen(v.s)); return;
  }
}

bool fe_value_eq(struct fe_value a, struct fe_value b) {
  if (a.kind != b.kind)
    return false;
  switch (a.kind) {
  case FE_NONE: return true;
  case FE_NUM: return a.f == b.f;
  case FE_STR: return str_eq(a.s, b.s);
  case FE_INT:
  case FE_BOOL:
  case FE_DTYPE: return a.i == b.i;
  }
  KILN_UNREACHABLE();
}

static bool is_number(struct fe_value v) {
  return v.kind == FE_INT || v.kind == FE_NUM;
}

static const char *kind_name(struct fe_value v) {
  switch (v.kind) {
  case FE_INT:
  case FE_NUM: return "a number";
  case FE_BOOL: return "true or false";
  case FE_DTYPE: return "a dtype";
  case FE_STR: return "a string";
  case FE_NONE: break;
  }
  return "nothing";
}

void fe_config_print(const struct fe_kernel *k, const struct fe_config *config,
                     struct strbuf *out) {
  for (uint32_t i = 0; i < k->n_choices; i++) {
    sb_printf(out, "%s%s=", i ? " " : "", k->choices[i].name);
    fe_value_print(config->at[i], out);
  }
}

const struct fe_value *fe_config_get(const struct fe_kernel *k, const struct fe_config *config,
                                     const char *name) {
  for (uint32_t i = 0; i < k->n_choices; i++)
    if (str_eq(k->choices[i].name, name))
      return &config->at[i];
  return NULL;
}

enum dtype fe_arg_dtype(const struct fe_kernel *k, const struct fe_config *config,
                        const struct fe_arg *arg) {
  if (!arg->dtype_const)
    return arg->dtype;
  return (enum dtype)fe_config_get(k, config, arg->dtype_const)->i;
}

bool dsl_const_int_of(const struct fe_kernel *k, const struct fe_config *config, const char *name,
                      int64_t *value) {
  for (uint32_t i = 0; i < k->n_choices; i++)
    if (k->choices[i].is_const && str_eq(k->choices[i].name, name) &&
        config->at[i].kind == FE_INT) {
      *value = config->at[i].i;
      return true;
    }
  return false;
}

/* The same of a const or a meta-parameter. */
static bool choice_int(const struct fe_kernel *k, const struct fe_config *config, const char *name,
                       int64_t *value) {
  for (uint32_t i = 0; i < k->n_choices; i++)
    if (str_eq(k->choices[i].name, name) && config->at[i].kind == FE_INT) {
      *value = config->at[i].i;
      return true;
    }
  return false;
}

static bool is_dim(const struct fe_kernel *k, const char *name) {
  for (uint32_t i = 0; i < k->n_dims; i++)
    if (str_eq(k->dims[i], name))
      return true;
  return false;
}

struct expr dsl_import_dim(struct expr_pool *to, const struct fe_kernel *k,
                           const struct fe_config *config, struct expr e) {
  const struct expr_node *n = expr_at(k->exprs, e);
  if (n->op == EXPR_CONST)
    return expr_const(to, n->value);
  if (n->op == EXPR_SYM) {
    const char *name = symtab_str(k->exprs->syms, n->sym);
    int64_t value;
    if (!is_dim(k, name) && choice_int(k, config, name, &value))
      return expr_const(to, value);
    return expr_sym(to, name);
  }
  struct expr in[3] = {{0}};
  uint32_t arity = 0;
  while (arity < 3 && n->in[arity].id) {
    in[arity] = dsl_import_dim(to, k, config, n->in[arity]);
    arity++;
  }
  return arity == 1   ? expr_op1(to, n->op, in[0])
         : arity == 2 ? expr_op2(to, n->op, in[0], in[1])
                      : expr_op3(to, n->op, in[0], in[1], in[2]);
}

/* ---- from Lua's side ---- */

void dsl_push_config(lua_State *L, const struct fe_kernel *k, const struct fe_config *config) {
  lua_createtable(L, 0, (int)k->n_choices);
  for (uint32_t i = 0; i < k->n_choices; i++) {
    dsl_value_to_lua(L, config->at[i]);
    lua_setfield(L, -2, k->choices[i].name);
  }
}

struct legal_call {
  struct fe_file *f;
  const struct fe_kernel *k;
  const struct fe_config *config;
  bool legal;
};

static void run_legal(struct fe_state *fe, void *user) {
  struct legal_call *c = user;
  lua_State *L = fe_lua(fe);
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->f->kernels.at[c->k->index]->ref_legal);
  dsl_push_config(L, c->k, c->config);
  fe_call(fe, 1, 1);
  if (lua_type(L, -1) != LUA_TBOOLEAN) {
    struct strbuf b = {.arena = fe_arena(fe)};
    fe_config_print(c->k, c->config, &b);
    fe_error_at(fe, DIAG_KERNEL_FIELD, c->k->loc,
                "legal of kernel `%s` gives %s for %s; it must give true or false", c->k->name,
                fe_describe(fe, lua_gettop(L)), sb_str(&b));
  }
  c->legal = lua_toboolean(L, -1);
  lua_pop(L, 1);
}

enum fe_legal fe_is_legal(struct fe_file *f, const struct fe_kernel *k,
                          const struct fe_config *config) {
  struct legal_call c = {f, k, config, true};
  if (!k->has_legal)
    return FE_LEGAL;
  if (fe_protect(f->fe, run_legal, &c) != FE_DONE)
    return FE_FAILED;
  return c.legal ? FE_LEGAL : FE_ILLEGAL;
}

static void report_illegal(struct fe_state *fe, void *user) {
  const struct legal_call *c = user;
  struct strbuf b = {.arena = fe_arena(fe)};
  fe_config_print(c->k, c->config, &b);
  fe_soft_error_at(fe, DIAG_CONFIG, c->k->loc, "kernel `%s`: `legal` refuses the config %s",
                   c->k->name, sb_str(&b));
}

bool fe_check_config(struct fe_file *f, const struct fe_kernel *k, const struct fe_config *config) {
  enum fe_legal legal = fe_is_legal(f, k, config);
  if (legal == FE_ILLEGAL)
    fe_protect(f->fe, report_illegal, &(struct legal_call){f, k, config, false});
  return legal == FE_LEGAL;
}

/* ---- defaults ---- */

struct fe_config fe_empty_config(const struct fe_kernel *k, struct arena *a) {
  return (struct fe_config){ARENA_ARRAY(a, struct fe_value, k->n_choices + 1), k->n_choices};
}

static void report_none_legal(struct fe_state *fe, void *user) {
  const struct legal_call *c = user;
  struct strbuf b = {.arena = fe_arena(fe)};
  for (uint32_t i = 0; i < c->k->n_choices; i++)
    if (c->config->at[i].kind != FE_NONE) {
      sb_printf(&b, "%s%s=", b.n ? " " : " with ", c->k->choices[i].name);
      fe_value_print(c->config->at[i], &b);
    }
  fe_soft_error_at(fe, DIAG_CONFIG, c->k->loc, "kernel `%s`: `legal` refuses every config%s",
                   c->k->name, sb_str(&b));
}

struct default_call {
  struct fe_file *f;
  const struct fe_kernel *k;
  const struct fe_config *given;
  uint32_t *at; /* index of the value in hand, per choice */
  struct fe_config *out;
  bool found;
};

/* One run under one set of limits: there may be more configs than anyone can wait for. */
static void run_default(struct fe_state *fe, void *user) {
  struct default_call *c = user;
  const struct fe_kernel *k = c->k;
  fe_set_place(fe, k->loc); /* of the limits, which are also reached between two calls */
  for (;;) {
    struct legal_call legal = {c->f, k, c->out, true};
    fe_charge(fe, k->n_choices + 1);
    if (k->has_legal)
      run_legal(fe, &legal);
    if (legal.legal) {
      c->found = true;
      return;
    }
    /* The next config: the last name varies fastest; consts and what was set stay. */
    uint32_t i = k->n_choices;
    while (i-- > 0) {
      const struct fe_choice *choice = &k->choices[i];
      if (choice->is_const || c->given->at[i].kind != FE_NONE)
        continue;
      c->at[i] = (c->at[i] + 1) % choice->n_values;
      c->out->at[i] = choice->values[c->at[i]];
      if (c->at[i])
        break;
    }
    if (i == UINT32_MAX) {
      report_none_legal(fe, &(struct legal_call){c->f, k, c->given, false});
      return;
    }
  }
}

bool fe_default_config(struct fe_file *f, const struct fe_kernel *k, struct arena *a,
                       const struct fe_config *fixed, struct fe_config *out) {
  struct fe_config free_config = fe_empty_config(k, a);
  struct default_call c = {f, k, fixed ? fixed : &free_config, NULL, out, false};
  c.at = ARENA_ARRAY(a, uint32_t, k->n_choices + 1);
  *out = fe_empty_config(k, a);
  for (uint32_t i = 0; i < k->n_choices; i++)
    out->at[i] = c.given->at[i].kind != FE_NONE ? c.given->at[i] : k->choices[i].values[0];
  return fe_protect(f->fe, run_default, &c) == FE_DONE && c.found;
}

/* ---- from text ---- */

struct set_call {
  struct fe_file *f;
  const struct fe_kernel *k;
  enum fe_set which;
  const char *origin, *text, *name;
  struct fe_value value;
  struct fe_config *config;
};

static const char *list_text(struct fe_file *f, const struct fe_choice *c) {
  struct strbuf b = {.arena = fe_arena(f->fe)};
  for (uint32_t i = 0; i < c->n_values; i++) {
    if (i)
      sb_puts(&b, ", ");
    fe_value_print(c->values[i], &b);
  }
  if (c->open)
    sb_puts(&b, ", or any other");
  return sb_str(&b);
}

static void refuse_name(const struct set_call *c, const char *name) {
  struct fe_file *f = c->f;
  bool is_const = c->which == FE_SET_CONST;
  const char **names = ARENA_ARRAY(fe_arena(f->fe), const char *, c->k->n_choices + 1);
  uint32_t n = 0;
  const struct fe_choice *other = NULL;
  for (uint32_t i = 0; i < c->k->n_choices; i++) {
    if (c->k->choices[i].is_const == is_const)
      names[n++] = c->k->choices[i].name;
    else if (str_eq(c->k->choices[i].name, name))
      other = &c->k->choices[i];
  }
  if (other)
    fe_soft_error_at(f->fe, DIAG_CONFIG, DIAG_NOWHERE, "%s: `%s` is a %s of kernel `%s`: use %s",
                     c->origin, name, is_const ? "tune list" : "const", c->k->name,
                     is_const ? "--set" : "--const");
  else
    fe_soft_error_at(f->fe, DIAG_CONFIG, DIAG_NOWHERE,
                     "%s: kernel `%s` has no %s `%s`%s; it has %s", c->origin, c->k->name,
                     is_const ? "const" : "meta-parameter", name, dsl_nearest(f, name, names, n),
                     dsl_join(f, names, n));
}

/* Sets one entry; reports what does not fit. */
static void set_one(const struct set_call *c, const char *name, struct fe_value v) {
  for (uint32_t i = 0; i < c->k->n_choices; i++) {
    const struct fe_choice *x = &c->k->choices[i];
    if (!str_eq(x->name, name) || x->is_const != (c->which == FE_SET_CONST))
      continue;
    bool in_list = false;
    for (uint32_t j = 0; j < x->n_values; j++)
      in_list |= fe_value_eq(x->values[j], v);
    bool same_kind = x->values[0].kind == v.kind || (is_number(x->values[0]) && is_number(v));
    if (in_list || (same_kind && (!x->is_const || x->open))) {
      c->config->at[i] = v;
      return;
    }
    struct strbuf b = {.arena = fe_arena(c->f->fe)};
    fe_value_print(v, &b);
    if (!same_kind)
      fe_soft_error_at(c->f->fe, DIAG_CONFIG, DIAG_NOWHERE,
                       "%s: `%s` of kernel `%s` needs %s, got %s; its list is %s", c->origin, name,
                       c->k->name, kind_name(x->values[0]), sb_str(&b), list_text(c->f, x));
    else
      fe_soft_error_at(c->f->fe, DIAG_CONFIG, DIAG_NOWHERE,
                       "%s: %s is no value of const `%s` of kernel `%s`; its list is %s", c->origin,
                       sb_str(&b), name, c->k->name, list_text(c->f, x));
    return;
  }
  refuse_name(c, name);
}

/* The value that text stands for: a number, true, false, a dtype; otherwise a string. */
static struct fe_value value_of_text(struct arena *a, const char *text) {
  struct fe_value v = {0};
  char *end;
  enum dtype t;
  if (str_eq(text, "true") || str_eq(text, "false"))
    return (struct fe_value){.kind = FE_BOOL, .i = *text == 't'};
  if (dtype_find(text, &t))
    return (struct fe_value){.kind = FE_DTYPE, .i = t};
  if (isdigit((unsigned char)*text) || *text == '-' || *text == '.') {
    double x = strtod(text, &end);
    if (!*end && end != text) {
      if (x >= -0x1p53 && x <= 0x1p53 && x == (double)(int64_t)x)
        return (struct fe_value){.kind = FE_INT, .i = (int64_t)x};
      return (struct fe_value){.kind = FE_NUM, .f = x};
    }
  }
  size_t n = strlen(text);
  v.kind = FE_STR;
  v.s = n >= 2 && text[0] == '"' && text[n - 1] == '"' ? arena_strndup(a, text + 1, n - 2) : text;
  return v;
}

static void run_set_text(struct fe_state *fe, void *user) {
  const struct set_call *c = user;
  struct arena *a = fe_arena(fe);
  for (const char *p = c->text; *p;) {
    size_t n = strcspn(p, ",");
    char *part = arena_strndup(a, p, n);
    p += n + (p[n] == ',');
    char *eq = strchr(part, '=');
    if (!eq || eq == part || !eq[1]) {
      fe_soft_error_at(fe, DIAG_CONFIG, DIAG_NOWHERE, "%s: \"%s\" is not of the form NAME=VALUE",
                       c->origin, part);
      continue;
    }
    *eq = 0;
    set_one(c, part, value_of_text(a, eq + 1));
  }
}

static void run_set_value(struct fe_state *fe, void *user) {
  const struct set_call *c = user;
  (void)fe;
  set_one(c, c->name, c->value);
}

/* Strings move to the caller's arena outside of fe_protect: that arena's trap is the caller's. */
static bool run_set(struct set_call *c, void (*fn)(struct fe_state *, void *), struct arena *a) {
  if (fe_protect(c->f->fe, fn, c) != FE_DONE)
    return false;
  for (uint32_t i = 0; i < c->config->n; i++)
    if (c->config->at[i].kind == FE_STR)
      c->config->at[i].s = arena_strdup(a, c->config->at[i].s);
  return true;
}

bool fe_set_config(struct fe_file *f, const struct fe_kernel *k, struct arena *a, enum fe_set which,
                   const char *origin, const char *text, struct fe_config *config) {
  struct set_call c = {
      .f = f, .k = k, .which = which, .origin = origin, .text = text, .config = config};
  return run_set(&c, run_set_text, a);
}

bool fe_set_value(struct fe_file *f, const struct fe_kernel *k, struct arena *a, enum fe_set which,
                  const char *origin, const char *name, struct fe_value v,
                  struct fe_config *config) {
  struct set_call c = {
      .f = f, .k = k, .which = which, .origin = origin, .name = name, .value = v, .config = config};
  return run_set(&c, run_set_value, a);
}
