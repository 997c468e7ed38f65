/* Random programs of plain Lua for the comparison with stock Lua; see help_lua.h.
 *
 * Valid by construction, always ending: every loop is bounded. Variables have a kind; what can fail
 * (an index of nil, a division by zero, error) does so inside pcall, and the message is printed.
 * The programs avoid what the manual leaves open and Kiln does otherwise: a call that assigns a
 * variable read in the same expression, the order of pairs, addresses, the caller's place after a
 * tail call. */
#include "help_lua.h"

enum kind { INT, FLOAT, STR, BOOL, LIST, FUNC, OBJ, N_KINDS };

#define MAX_VARS 200

struct var {
  enum kind kind;
  unsigned id;
  bool fixed; /* const, loop and parameter variables that nobody assigns */
};

struct gen {
  struct strbuf out;
  uint64_t rng;
  struct var vars[MAX_VARS];
  unsigned n_vars, next_id, indent, depth, budget, next_label;
  unsigned n_loops; /* plain loops around, in this function */
  bool in_function, has_varargs;
};

static unsigned pick(struct gen *g, unsigned n) {
  g->rng ^= g->rng << 13;
  g->rng ^= g->rng >> 7;
  g->rng ^= g->rng << 17;
  return (unsigned)((g->rng >> 11) % n);
}

static bool chance(struct gen *g, unsigned percent) {
  return pick(g, 100) < percent;
}

static void put(struct gen *g, const char *s) {
  sb_puts(&g->out, s);
}

static void begin_line(struct gen *g) {
  for (unsigned i = 0; i < g->indent; i++)
    put(g, "  ");
}

static const struct var *find_var(struct gen *g, enum kind kind, bool to_assign) {
  if (g->n_vars == 0)
    return NULL;
  unsigned start = pick(g, g->n_vars);
  for (unsigned i = 0; i < g->n_vars; i++) {
    const struct var *v = &g->vars[(start + i) % g->n_vars];
    if (v->kind == kind && !(to_assign && v->fixed))
      return v;
  }
  return NULL;
}

static unsigned add_var(struct gen *g, enum kind kind, bool fixed) {
  unsigned id = g->next_id++;
  if (g->n_vars < MAX_VARS)
    g->vars[g->n_vars++] = (struct var){kind, id, fixed};
  return id;
}

/* ---- expressions: no calls of functions that change variables ---- */

static void expr(struct gen *g, enum kind kind, unsigned depth);

static void variable(struct gen *g, enum kind kind) {
  const struct var *v = find_var(g, kind, false);
  if (v) {
    sb_printf(&g->out, "v%u", v->id);
    return;
  }
  switch (kind) {
  case INT: sb_printf(&g->out, "%d", (int)pick(g, 20) - 10); return;
  case FLOAT: sb_printf(&g->out, "%d.%d", (int)pick(g, 9) - 4, (int)pick(g, 4) * 25); return;
  case STR: sb_printf(&g->out, "'s%u'", pick(g, 9)); return;
  case BOOL: put(g, chance(g, 50) ? "true" : "false"); return;
  case LIST: sb_printf(&g->out, "({%u, %u, %u})", pick(g, 9), pick(g, 9), pick(g, 9)); return;
  case FUNC: put(g, "function(x) return x end"); return;
  case OBJ:
  case N_KINDS: sb_printf(&g->out, "obj(%u)", pick(g, 9)); return;
  }
}

static void binary(struct gen *g, enum kind kind, const char *const *ops, unsigned n,
                   unsigned depth) {
  put(g, "(");
  expr(g, kind, depth - 1);
  sb_printf(&g->out, " %s ", ops[pick(g, n)]);
  expr(g, kind, depth - 1);
  put(g, ")");
}

static void int_expr(struct gen *g, unsigned depth) {
  static const char *const ops[] = {"+", "-", "*", "&", "|", "~"};
  switch (pick(g, 9)) {
  case 0:
  case 1:
  case 2: binary(g, INT, ops, 6, depth); return;
  case 3:
    put(g, "(");
    expr(g, INT, depth - 1);
    sb_printf(&g->out, " %s %d)", chance(g, 50) ? "//" : "%", chance(g, 50) ? 3 : -7);
    return;
  case 4:
    put(g, "#");
    expr(g, chance(g, 50) ? LIST : STR, 0);
    return;
  case 5:
    put(g, "(");
    expr(g, LIST, 0);
    put(g, "[");
    expr(g, INT, depth - 1);
    sb_printf(&g->out, " %% 4] or %u)", pick(g, 9));
    return;
  case 6:
    put(g, "(");
    expr(g, BOOL, depth - 1);
    put(g, " and ");
    expr(g, INT, depth - 1);
    put(g, " or ");
    expr(g, INT, depth - 1);
    put(g, ")");
    return;
  case 7:
    put(g, chance(g, 50) ? "- " : "~");
    expr(g, INT, depth - 1);
    return;
  default:
    expr(g, OBJ, 0);
    put(g, ".n");
    return;
  }
}

static void expr(struct gen *g, enum kind kind, unsigned depth) {
  static const char *const float_ops[] = {"+", "-", "*", "/"};
  static const char *const orders[] = {"<", "<=", ">", ">=", "==", "~="};
  static const char *const logic[] = {"and", "or"};
  if (depth == 0 || chance(g, 15)) {
    variable(g, kind);
    return;
  }
  switch (kind) {
  case INT: int_expr(g, depth); return;
  case FLOAT:
    if (chance(g, 70)) {
      binary(g, FLOAT, float_ops, 4, depth);
    } else {
      put(g, "(");
      expr(g, INT, depth - 1);
      put(g, chance(g, 50) ? " / 4)" : " * 0.5)");
    }
    return;
  case STR:
    put(g, "(");
    expr(g, STR, depth - 1);
    put(g, " .. ");
    expr(g, chance(g, 50) ? INT : STR, depth - 1);
    put(g, chance(g, 30) ? " .. '!'):sub(-6)" : "):sub(1, 8)");
    return;
  case BOOL:
    if (chance(g, 40)) {
      binary(g, BOOL, logic, 2, depth);
    } else if (chance(g, 20)) {
      put(g, "not ");
      expr(g, BOOL, depth - 1);
    } else {
      enum kind of = chance(g, 60) ? INT : chance(g, 50) ? STR : OBJ;
      if (of == OBJ)
        depth = 1;
      binary(g, of, orders, 6, depth);
    }
    return;
  case LIST:
    put(g, "{");
    for (unsigned i = pick(g, 4); i > 0; i--) {
      expr(g, INT, depth - 1);
      put(g, ", ");
    }
    put(g, g->has_varargs && chance(g, 30) ? "...}" : "}");
    return;
  case OBJ:
    if (chance(g, 50)) {
      put(g, "(");
      expr(g, OBJ, depth - 1);
      put(g, chance(g, 50) ? " + " : " .. ");
      expr(g, OBJ, depth - 1);
      put(g, ")");
    } else {
      put(g, "obj(");
      expr(g, INT, depth - 1);
      put(g, ")");
    }
    return;
  case FUNC:
  case N_KINDS: variable(g, FUNC); return;
  }
}

/* ---- statements ---- */

static void statements(struct gen *g, unsigned n);

static void block(struct gen *g, unsigned n) {
  unsigned n_vars = g->n_vars;
  g->indent++;
  statements(g, n);
  g->indent--;
  g->n_vars = n_vars;
}

static void end_line(struct gen *g) {
  begin_line(g);
  put(g, "end\n");
}

static enum kind value_kind(struct gen *g) {
  static const enum kind kinds[] = {INT, INT, INT, FLOAT, STR, BOOL, LIST, OBJ};
  return kinds[pick(g, 8)];
}

static void declare(struct gen *g) {
  enum kind kind = value_kind(g);
  put(g, "local ");
  bool is_const = chance(g, 10);
  struct strbuf keep = g->out; /* the initialiser does not see the variable: write it first */
  g->out = (struct strbuf){.arena = keep.arena};
  expr(g, kind, 3);
  struct strbuf value = g->out;
  g->out = keep;
  sb_printf(&g->out, "v%u%s = %s\n", add_var(g, kind, is_const), is_const ? " <const>" : "",
            sb_str(&value));
}

static void assign(struct gen *g) {
  enum kind kind = value_kind(g);
  const struct var *v = find_var(g, kind, true), *w = find_var(g, kind, true);
  if (!v || !w) {
    put(g, "print(");
    expr(g, STR, 3);
    put(g, ")\n");
  } else if (chance(g, 20) && v != w) {
    sb_printf(&g->out, "v%u, v%u = v%u, ", v->id, w->id, w->id);
    expr(g, kind, 2);
    put(g, "\n");
  } else {
    sb_printf(&g->out, "v%u = ", v->id);
    expr(g, kind, 3);
    put(g, "\n");
  }
}

static void assign_field(struct gen *g) {
  if (chance(g, 60)) {
    const struct var *v = find_var(g, LIST, false);
    if (v) {
      sb_printf(&g->out, "v%u[#v%u + %u] = ", v->id, v->id, pick(g, 2));
      expr(g, INT, 2);
      put(g, "\n");
      return;
    }
  }
  const struct var *v = find_var(g, OBJ, false);
  sb_printf(&g->out, v ? "v%u.n = " : "glob%u = ", v ? v->id : pick(g, 3));
  expr(g, INT, 2);
  put(g, "\n");
}

static void conditional(struct gen *g) {
  put(g, "if ");
  expr(g, BOOL, 3);
  put(g, " then\n");
  block(g, 2);
  while (chance(g, 30)) {
    begin_line(g);
    put(g, "elseif ");
    expr(g, BOOL, 2);
    put(g, " then\n");
    block(g, 1);
  }
  if (chance(g, 50)) {
    begin_line(g);
    put(g, "else\n");
    block(g, 2);
  }
  end_line(g);
}

static void leave_loop(struct gen *g, unsigned label) {
  begin_line(g);
  put(g, "if ");
  expr(g, BOOL, 2);
  if (label)
    sb_printf(&g->out, " then goto l%u end\n", label);
  else
    put(g, " then break end\n");
}

/* `labels`: a label may end the body (in a `repeat`, locals would be in scope there). */
static void loop_body(struct gen *g, unsigned counter, bool labels) {
  unsigned n_vars = g->n_vars, label = labels && chance(g, 30) ? ++g->next_label : 0;
  g->indent++;
  g->n_loops++;
  if (counter) {
    begin_line(g);
    sb_printf(&g->out, "n%u = n%u + 1\n", counter, counter);
  }
  if (label)
    leave_loop(g, label);
  statements(g, 2);
  if (chance(g, 25))
    leave_loop(g, 0);
  if (label) {
    begin_line(g);
    sb_printf(&g->out, "::l%u::\n", label);
  }
  g->n_loops--;
  g->indent--;
  g->n_vars = n_vars;
}

static void loop(struct gen *g) {
  static const char *const heads[] = {"1, 4",      "5, 1, -2",
                                      "1, 2, 0.5", "1.0, 3.0",
                                      "3, 1",      "math.maxinteger - 1, math.maxinteger",
                                      "-0.5, 1.2"};
  unsigned n_vars = g->n_vars, n = ++g->next_label, id;
  switch (pick(g, 5)) {
  case 0: {
    unsigned head = pick(g, 7);
    bool is_float = head == 2 || head == 3 || head == 6;
    id = add_var(g, is_float ? FLOAT : INT, chance(g, 50));
    sb_printf(&g->out, "for v%u = %s do\n", id, heads[head]);
    loop_body(g, 0, true);
    break;
  }
  case 1:
    sb_printf(&g->out, "local n%u = 0\n", n);
    begin_line(g);
    sb_printf(&g->out, "while n%u < 4 and ", n);
    expr(g, BOOL, 2);
    put(g, " do\n");
    loop_body(g, n, true);
    break;
  case 2:
    sb_printf(&g->out, "local n%u = 0\n", n);
    begin_line(g);
    put(g, "repeat\n");
    loop_body(g, n, false);
    begin_line(g);
    sb_printf(&g->out, "until n%u > 3 or ", n);
    expr(g, BOOL, 2);
    put(g, "\n");
    return;
  case 3: /* a list of its own: the body may let others grow */
    sb_printf(&g->out, "for i%u, v%u in ipairs({", n, g->next_id);
    for (unsigned i = pick(g, 4); i > 0; i--) {
      expr(g, INT, 1);
      put(g, ", ");
    }
    put(g, "}) do\n");
    add_var(g, INT, true);
    loop_body(g, 0, true);
    break;
  default:
    id = add_var(g, INT, true);
    sb_printf(&g->out, "for v%u in upto(%u) do\n", id, pick(g, 5));
    loop_body(g, 0, true);
    break;
  }
  end_line(g);
  g->n_vars = n_vars;
}

/* A local function of one number; it may change what is around it, so it is only called alone. */
static void function(struct gen *g) {
  unsigned n_vars = g->n_vars, loops = g->n_loops;
  bool in_function = g->in_function, had_varargs = g->has_varargs, varargs = chance(g, 25);
  unsigned name = g->next_id++;
  sb_printf(&g->out, "local function v%u(p%u%s)\n", name, name, varargs ? ", ..." : "");
  g->n_loops = 0;
  g->in_function = true;
  g->has_varargs = varargs;
  g->indent++;
  begin_line(g);
  sb_printf(&g->out, "local v%u = p%u or 0\n", g->next_id, name);
  add_var(g, INT, false);
  statements(g, 3);
  begin_line(g);
  put(g, "return ");
  expr(g, INT, 3);
  if (varargs)
    put(g, chance(g, 50) ? ", ..." : ", select('#', ...)");
  put(g, "\n");
  g->indent--;
  end_line(g);
  g->n_vars = n_vars;
  g->n_loops = loops;
  g->in_function = in_function;
  g->has_varargs = had_varargs;
  if (g->n_vars < MAX_VARS)
    g->vars[g->n_vars++] = (struct var){FUNC, name, true};
}

static void call(struct gen *g) {
  const struct var *f = find_var(g, FUNC, false), *v = find_var(g, INT, true);
  if (!f) {
    function(g);
    return;
  }
  switch (pick(g, 4)) {
  case 0:
    if (v) {
      sb_printf(&g->out, "v%u = v%u(", v->id, f->id);
      break;
    }
    /* fall through */
  case 1: {
    unsigned id = g->next_id;
    sb_printf(&g->out, "local v%u, x%u = v%u(", id, id, f->id);
    expr(g, INT, 2);
    put(g, ", 'extra')\n");
    add_var(g, INT, false);
    return;
  }
  case 2: sb_printf(&g->out, "show(v%u(", f->id); break;
  default: sb_printf(&g->out, "show(pcall(v%u, ", f->id); break;
  }
  expr(g, INT, 2);
  put(g, ")");
}

static void close_call(struct gen *g) {
  size_t before = g->out.n;
  call(g);
  const char *line = sb_str(&g->out) + before;
  if (g->out.s[g->out.n - 1] == '\n')
    return;
  put(g, str_starts(line, "show(") ? ")\n" : "\n");
}

static void protected_call(struct gen *g) {
  static const char *const failures[] = {
      "local q q.x = 1",
      "return glob9.x",
      "return (nil)()",
      "error('boom')",
      "error('level 2', 2)",
      "error({})",
      "error('bare', 0)",
      "error(nil)",
      "error(true)",
      "local z = {} return z < z",
      "local z = 'a' return z + z",
      "local z = 1.5 return z & z",
      "local z return #z",
      "local z = {} return z .. z",
      "local t = {} t.a.b = 1",
      "obj(1):nope()",
      "return undefined_name()",
      "error()",
      "return ('x'):rep(-1)",
      "assert(false, 'no')",
      "assert(nil)",
      "for i = 1, {} do end",
      "for i = 1, 2, 0 do end",
      "local z = {} return -z",
      "local t = setmetatable({}, {__index = function() error('deep') end}) return t.x"};
  unsigned loops = g->n_loops;
  bool had_varargs = g->has_varargs;
  g->n_loops = 0;
  g->has_varargs = false;
  put(g, "show(pcall(function()\n");
  unsigned n_vars = g->n_vars;
  g->indent++;
  statements(g, 2);
  begin_line(g);
  sb_printf(&g->out, "%s\n", failures[pick(g, sizeof failures / sizeof *failures)]);
  g->indent--;
  g->n_vars = n_vars;
  g->n_loops = loops;
  g->has_varargs = had_varargs;
  begin_line(g);
  put(g, "end))\n");
}

static void closing(struct gen *g) {
  put(g, "do\n");
  g->indent++;
  begin_line(g);
  sb_printf(&g->out, "local c%u <close> = closer('c%u')\n", g->next_label, g->next_label);
  g->next_label++;
  g->indent--;
  block(g, 2);
  end_line(g);
}

static void statement(struct gen *g) {
  begin_line(g);
  if (g->depth > 4 || g->budget == 0) {
    assign(g);
    return;
  }
  g->budget--;
  g->depth++;
  switch (pick(g, 14)) {
  case 0:
  case 1:
  case 2: declare(g); break;
  case 3:
  case 4: assign(g); break;
  case 5: assign_field(g); break;
  case 6: conditional(g); break;
  case 7:
  case 8: loop(g); break;
  case 9: function(g); break;
  case 10: close_call(g); break;
  case 11: protected_call(g); break;
  case 12: closing(g); break;
  default:
    put(g, "show(");
    for (unsigned i = pick(g, 3); i > 0; i--) {
      expr(g, value_kind(g), 2);
      put(g, ", ");
    }
    expr(g, value_kind(g), 2);
    put(g, ")\n");
    break;
  }
  g->depth--;
}

static void statements(struct gen *g, unsigned n) {
  for (n += pick(g, 2); n > 0; n--)
    statement(g);
}

static const char prelude[] =
    "local M = {}\n"
    "M.__index = M\n"
    "local function obj(n) return setmetatable({n = n}, M) end\n"
    "M.__add = function(a, b) return obj(a.n + b.n) end\n"
    "M.__concat = function(a, b) return obj(a.n * 10 + b.n) end\n"
    "M.__eq = function(a, b) return a.n == b.n end\n"
    "M.__lt = function(a, b) return a.n < b.n end\n"
    "M.__le = function(a, b) return a.n <= b.n end\n"
    "M.__tostring = function(a) return 'obj ' .. a.n end\n"
    "local function text(v)\n"
    "  if type(v) ~= 'table' or getmetatable(v) == M then return tostring(v) end\n"
    "  local out = {}\n"
    "  for i = 1, #v do out[i] = text and tostring(v[i]) end\n"
    "  return '{' .. table.concat(out, ',') .. '}'\n"
    "end\n"
    "local function show(...)\n"
    "  local out = {...}\n"
    "  for i = 1, select('#', ...) do out[i] = text((select(i, ...))) end\n"
    "  print(table.concat(out, ' '))\n"
    "end\n"
    "local function upto(n) local i = 0 return function() i = i + 1 if i <= n then return i end "
    "end end\n"
    "local function closer(name) return setmetatable({}, {__close = function(_, e) show('close', "
    "name, "
    "e) end}) end\n"
    "glob0, glob1, glob2 = 0, 0, 0\n";

const char *hl_generate(struct arena *a, uint64_t seed) {
  struct gen g = {.out = {.arena = a}, .rng = seed * 0x9e3779b97f4a7c15u + 1, .budget = 60};
  for (int i = 0; i < 8; i++)
    pick(&g, 2);
  put(&g, prelude);
  for (int i = 0; i < 6; i++)
    declare(&g);
  statements(&g, 14);
  for (unsigned i = 0; i < g.n_vars; i++)
    if (g.vars[i].kind != FUNC)
      sb_printf(&g.out, "show('v%u', v%u)\n", g.vars[i].id, g.vars[i].id);
  return sb_str(&g.out);
}
