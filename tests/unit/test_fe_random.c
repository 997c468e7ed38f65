/* Random staged programs: the same text is traced and interpreted, and run on plain numbers by
 * stock Lua; what they store must be equal. The strongest check of staging there is.
 *
 * Programs mix plain and device control (if, range loops, while, plain loops with break and
 * goto), swaps, closures with hidden state, shadowing, selects, masks and tiles. They avoid what
 * must be refused. Every program runs on 6 inputs: the programs of a 3 x 2 grid. Tiles are
 * uniform, so that a plain number stands for one.
 *
 * KILN_LONG=1 runs thousands; KILN_SEED=n runs the one program of that seed and prints it. */
#include "help_fe.h"
#include "ir/interp.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GRID_I   3
#define GRID_J   2
#define SLOTS    24
#define MAX_VARS 64

/* ---- the generator ---- */

enum kind {
  PLAIN,  /* an integer that is always plain */
  NUMBER, /* an integer, plain or device */
  FLAG,   /* a boolean, plain or device */
  TILE    /* a uniform tile */
};

struct var {
  enum kind kind;
  uint32_t id;
  uint32_t region; /* device regions around its declaration */
  bool fixed;      /* loop variables: never assigned */
};

struct gen {
  struct strbuf out;
  uint64_t rng;
  struct var vars[MAX_VARS];
  uint32_t n_vars, next_id;
  uint32_t region;      /* device regions around */
  uint32_t loop_region; /* those around the innermost plain loop; UINT32_MAX: none */
  uint32_t label;       /* of that loop */
  bool uses_label;
  uint32_t indent, depth, budget;
  uint32_t n_functions; /* pure helpers f1.. */
  bool in_function;     /* no captured state is touched there */
};

static uint32_t pick(struct gen *g, uint32_t n) {
  g->rng = g->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(g->rng >> 33) % n;
}

static void put(struct gen *g, const char *s) {
  sb_puts(&g->out, s);
}

static void line(struct gen *g) {
  for (uint32_t i = 0; i < g->indent; i++)
    put(g, "  ");
}

static const char *letter(enum kind k) {
  static const char *const names[] = {"p", "n", "b", "t"};
  return names[k];
}

static void put_var(struct gen *g, const struct var *v) {
  sb_printf(&g->out, "%s%u", letter(v->kind), v->id);
}

/* A variable of the kind, newest preferred; NULL if there is none. */
static const struct var *any_var(struct gen *g, enum kind k, bool assigned) {
  const struct var *found = NULL;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->n_vars; i++) {
    const struct var *v = &g->vars[i];
    if (v->kind != k || (assigned && v->fixed))
      continue;
    /* A plain variable stays plain only if no device region lies between. */
    if (assigned && k == PLAIN && v->region != g->region)
      continue;
    if (pick(g, ++seen) == 0)
      found = v;
  }
  return found;
}

static struct var *declare(struct gen *g, enum kind k) {
  struct var *v = &g->vars[g->n_vars];
  *v = (struct var){.kind = k, .id = ++g->next_id, .region = g->region};
  if (g->n_vars < MAX_VARS - 1)
    g->n_vars++;
  return v;
}

static void number(struct gen *g, uint32_t depth);
static void condition(struct gen *g, uint32_t depth);

static void literal(struct gen *g) {
  int32_t v = (int32_t)pick(g, 14) - 3;
  sb_printf(&g->out, v < 0 ? "(%d)" : "%d", v);
}

static void divisor(struct gen *g) {
  static const char *const by[] = {"2", "3", "5", "(-2)", "7", "(-3)"};
  put(g, by[pick(g, 6)]);
}

static void plain(struct gen *g, uint32_t depth) {
  const struct var *v = any_var(g, PLAIN, false);
  if (depth == 0 || pick(g, 3) == 0) {
    if (v && pick(g, 4))
      put_var(g, v);
    else
      literal(g);
    return;
  }
  static const char *const ops[] = {" + ", " - ", " * "};
  put(g, "(");
  plain(g, depth - 1);
  if (pick(g, 4) == 0) {
    put(g, pick(g, 2) ? " // " : " % ");
    divisor(g);
  } else {
    put(g, ops[pick(g, 3)]);
    plain(g, depth - 1);
  }
  put(g, ")");
}

static void leaf(struct gen *g) {
  static const char *const inputs[] = {"i", "j", "d.M", "d.N"};
  const struct var *v = any_var(g, NUMBER, false);
  switch (pick(g, 6)) {
  case 0: literal(g); return;
  case 1: plain(g, 1); return;
  case 2:
    if (!g->in_function) {
      put(g, inputs[pick(g, 4)]);
      return;
    }
    break;
  default: break;
  }
  if (v)
    put_var(g, v);
  else
    literal(g);
}

/* name(number, number) */
static void call2(struct gen *g, const char *name, uint32_t depth) {
  put(g, name);
  put(g, "(");
  number(g, depth);
  put(g, ", ");
  number(g, depth);
  put(g, ")");
}

static void number(struct gen *g, uint32_t depth) {
  if (depth == 0) {
    leaf(g);
    return;
  }
  depth--;
  char name[16];
  switch (pick(g, 13)) {
  case 0:
  case 1:
    put(g, "(");
    number(g, depth);
    put(g, " + ");
    number(g, depth);
    put(g, ")");
    return;
  case 2:
  case 3:
    put(g, "(");
    number(g, depth);
    put(g, " - ");
    number(g, depth);
    put(g, ")");
    return;
  case 4:
    put(g, "(");
    number(g, depth);
    put(g, " * ");
    number(g, depth);
    put(g, " % 1009)");
    return;
  case 5:
    put(g, "(");
    number(g, depth);
    put(g, pick(g, 2) ? " // " : " % ");
    divisor(g);
    put(g, ")");
    return;
  case 6: call2(g, "min", depth); return;
  case 7: call2(g, "max", depth); return;
  case 8:
    put(g, "where(");
    condition(g, depth);
    put(g, ", ");
    number(g, depth);
    put(g, ", ");
    number(g, depth);
    put(g, ")");
    return;
  case 9:
    put(g, "(");
    condition(g, depth);
    put(g, " and ");
    number(g, depth);
    put(g, " or ");
    number(g, depth);
    put(g, ")");
    return;
  case 10:
    put(g, "-(");
    number(g, depth);
    put(g, ")");
    return;
  case 11:
    if (g->n_functions && !g->in_function) {
      snprintf(name, sizeof name, "f%u", 1 + pick(g, g->n_functions));
      call2(g, name, depth);
      return;
    }
    leaf(g);
    return;
  default: leaf(g); return;
  }
}

static void comparison(struct gen *g, uint32_t depth) {
  static const char *const ops[] = {" < ", " <= ", " > ", " >= ", " == ", " ~= "};
  put(g, "(");
  number(g, depth);
  put(g, ops[pick(g, 6)]);
  number(g, depth);
  put(g, ")");
}

static void condition(struct gen *g, uint32_t depth) {
  const struct var *v = any_var(g, FLAG, false);
  if (depth == 0 || pick(g, 3) == 0) {
    comparison(g, depth ? depth - 1 : 0);
    return;
  }
  depth--;
  switch (pick(g, 7)) {
  case 0:
    put(g, "not ");
    condition(g, depth);
    return;
  case 1:
  case 2:
    put(g, "(");
    condition(g, depth);
    put(g, pick(g, 2) ? " and " : " or ");
    condition(g, depth);
    put(g, ")");
    return;
  case 3:
    put(g, "(");
    condition(g, depth);
    put(g, pick(g, 2) ? " and true)" : " or false)");
    return;
  case 4: {
    /* Both sides run on a device value: the division must be defined there. */
    const struct var *n = any_var(g, NUMBER, false);
    if (n) {
      put(g, "(");
      put_var(g, n);
      put(g, " ~= 0 and ");
      number(g, depth);
      put(g, " // ");
      put_var(g, n);
      put(g, " > ");
      literal(g);
      put(g, ")");
      return;
    }
    comparison(g, depth);
    return;
  }
  default:
    if (v)
      put_var(g, v);
    else
      comparison(g, depth);
  }
}

static void tile(struct gen *g, uint32_t depth);

static void mask(struct gen *g, uint32_t depth) {
  static const char *const ops[] = {" < ", " <= ", " > ", " >= ", " == ", " ~= "};
  switch (depth ? pick(g, 5) : 0) {
  case 1:
    put(g, "not ");
    mask(g, depth - 1);
    return;
  case 2:
    put(g, "(");
    mask(g, depth - 1);
    put(g, pick(g, 2) ? " and " : " or ");
    mask(g, depth - 1);
    put(g, ")");
    return;
  case 3:
    put(g, "(");
    condition(g, 0);
    put(g, pick(g, 2) ? " and " : " or ");
    mask(g, depth - 1);
    put(g, ")");
    return;
  default:
    put(g, "(");
    tile(g, depth ? depth - 1 : 0);
    put(g, ops[pick(g, 6)]);
    if (pick(g, 2))
      tile(g, depth ? depth - 1 : 0);
    else
      number(g, 0);
    put(g, ")");
  }
}

static void tile(struct gen *g, uint32_t depth) {
  const struct var *v = any_var(g, TILE, false);
  if (depth == 0 || !v) {
    if (v) {
      put_var(g, v);
    } else {
      put(g, "full(index, ");
      number(g, 0);
      put(g, ", 4)");
    }
    return;
  }
  depth--;
  switch (pick(g, 6)) {
  case 0:
    put(g, "(");
    tile(g, depth);
    put(g, pick(g, 2) ? " + " : " - ");
    tile(g, depth);
    put(g, ")");
    return;
  case 1:
    put(g, "(");
    number(g, depth);
    put(g, pick(g, 2) ? " + " : " - ");
    tile(g, depth);
    put(g, ")");
    return;
  case 2:
    put(g, "where(");
    mask(g, depth);
    put(g, ", ");
    tile(g, depth);
    put(g, ", ");
    tile(g, depth);
    put(g, ")");
    return;
  case 3:
    put(g, pick(g, 2) ? "max(" : "min(");
    tile(g, depth);
    put(g, ", ");
    number(g, depth);
    put(g, ")");
    return;
  case 4:
    put(g, "(");
    tile(g, depth);
    put(g, " % ");
    divisor(g);
    put(g, ")");
    return;
  default: put_var(g, v);
  }
}

static void value(struct gen *g, enum kind k) {
  switch (k) {
  case PLAIN: plain(g, 2); return;
  case NUMBER: number(g, 2); return;
  case FLAG: condition(g, 2); return;
  case TILE: tile(g, 2); return;
  }
}

static void statements(struct gen *g, uint32_t n);

/* A block one level in; what it declares goes out of scope. */
static void block(struct gen *g, uint32_t n) {
  uint32_t vars = g->n_vars;
  g->indent++;
  g->depth++;
  statements(g, n);
  g->depth--;
  g->indent--;
  g->n_vars = vars;
}

static void device_if(struct gen *g) {
  line(g);
  put(g, "if ");
  condition(g, 2);
  put(g, " then\n");
  g->region++;
  block(g, 1 + pick(g, 3));
  if (pick(g, 3) == 0) {
    line(g);
    put(g, "elseif ");
    condition(g, 1);
    put(g, " then\n");
    g->region++;
    block(g, 1 + pick(g, 2));
    g->region--;
  }
  if (pick(g, 2)) {
    line(g);
    put(g, "else\n");
    block(g, 1 + pick(g, 3));
  }
  g->region--;
  line(g);
  put(g, "end\n");
}

static void plain_if(struct gen *g) {
  line(g);
  put(g, "if ");
  plain(g, 2);
  put(g, pick(g, 2) ? " > " : " == ");
  plain(g, 1);
  put(g, " then\n");
  block(g, 1 + pick(g, 2));
  if (pick(g, 2)) {
    line(g);
    put(g, "else\n");
    block(g, 1 + pick(g, 2));
  }
  line(g);
  put(g, "end\n");
}

static void device_for(struct gen *g) {
  line(g);
  struct var v = {.kind = NUMBER, .id = ++g->next_id, .fixed = true};
  sb_printf(&g->out, "for n%u in range(", v.id);
  if (pick(g, 2)) {
    literal(g);
  } else {
    put(g, "(");
    number(g, 1);
    put(g, " % 3)");
  }
  put(g, ", ");
  number(g, 1);
  sb_printf(&g->out, " %% 5, %u) do\n", 1 + pick(g, 3));
  uint32_t vars = g->n_vars, loop = g->loop_region;
  g->region++;
  v.region = g->region;
  if (g->n_vars < MAX_VARS - 1)
    g->vars[g->n_vars++] = v;
  g->loop_region = UINT32_MAX;
  block(g, 1 + pick(g, 3));
  g->loop_region = loop;
  g->region--;
  g->n_vars = vars;
  line(g);
  put(g, "end\n");
}

static void plain_for(struct gen *g) {
  line(g);
  struct var v = {.kind = PLAIN, .id = ++g->next_id, .region = g->region, .fixed = true};
  sb_printf(&g->out, "for p%u = %u, %u do\n", v.id, pick(g, 2), 1 + pick(g, 3));
  uint32_t vars = g->n_vars, loop = g->loop_region, label = g->label;
  bool uses = g->uses_label;
  if (g->n_vars < MAX_VARS - 1)
    g->vars[g->n_vars++] = v;
  g->loop_region = g->region;
  g->label = v.id;
  g->uses_label = false;
  block(g, 1 + pick(g, 3));
  if (g->uses_label)
    sb_printf(&g->out, "::c%u::\n", v.id);
  g->loop_region = loop;
  g->label = label;
  g->uses_label = uses;
  g->n_vars = vars;
  line(g);
  put(g, "end\n");
}

/* Leaves a plain loop on a plain condition, with no device region between. */
static void leave(struct gen *g) {
  if (g->loop_region != g->region)
    return;
  line(g);
  put(g, "if ");
  plain(g, 1);
  put(g, " % 2 == 1 then ");
  if (pick(g, 2)) {
    put(g, "break");
  } else {
    sb_printf(&g->out, "goto c%u", g->label);
    g->uses_label = true;
  }
  put(g, " end\n");
}

static void while_loop(struct gen *g) {
  struct var v = {.kind = NUMBER, .id = ++g->next_id, .region = g->region, .fixed = true};
  line(g);
  sb_printf(&g->out, "local n%u = ", v.id);
  number(g, 1);
  put(g, " % 4\n");
  line(g);
  sb_printf(&g->out, "while n%u > 0 do\n", v.id);
  uint32_t vars = g->n_vars, loop = g->loop_region;
  if (g->n_vars < MAX_VARS - 1)
    g->vars[g->n_vars++] = v;
  g->loop_region = UINT32_MAX;
  g->region++;
  block(g, 1 + pick(g, 2));
  g->region--;
  g->loop_region = loop;
  g->indent++;
  line(g);
  sb_printf(&g->out, "n%u = n%u - 1\n", v.id, v.id);
  g->indent--;
  g->n_vars = vars;
  line(g);
  put(g, "end\n");
}

static void assign(struct gen *g, enum kind k) {
  const struct var *v = any_var(g, k, true);
  if (!v)
    return;
  line(g);
  put_var(g, v);
  put(g, " = ");
  value(g, k);
  put(g, "\n");
}

static void new_local(struct gen *g, enum kind k) {
  /* The value may not see the new name: declared after. */
  uint32_t id = g->next_id + 1;
  line(g);
  sb_printf(&g->out, "local %s%u = ", letter(k), id);
  g->next_id = id;
  value(g, k);
  put(g, "\n");
  struct var *v = declare(g, k);
  v->id = id;
}

static void swap(struct gen *g, enum kind k) {
  const struct var *a = any_var(g, k, true), *b = any_var(g, k, true);
  const struct var *c = any_var(g, NUMBER, true);
  if (!a || a == b || c == a || c == b)
    return;
  line(g);
  put_var(g, a);
  put(g, ", ");
  put_var(g, b);
  if (c) {
    put(g, ", ");
    put_var(g, c);
  }
  put(g, " = ");
  put_var(g, b);
  put(g, ", ");
  put_var(g, a);
  if (c) {
    put(g, ", ");
    number(g, 1);
  }
  put(g, "\n");
}

static void shadow(struct gen *g) {
  const struct var *v = any_var(g, pick(g, 2) ? NUMBER : TILE, true);
  if (!v)
    return;
  struct var copy = *v;
  line(g);
  put(g, "do\n");
  g->indent++;
  line(g);
  put(g, "local ");
  put_var(g, &copy);
  put(g, " = ");
  put_var(g, &copy);
  put(g, " + ");
  number(g, 1);
  put(g, "\n");
  g->indent--;
  block(g, 1 + pick(g, 2));
  line(g);
  put(g, "end\n");
}

/* A table that lives and dies here; its fields change in a device `if`, which merges them. */
static void scratch(struct gen *g) {
  const struct var *v = any_var(g, NUMBER, true);
  if (!v)
    return;
  uint32_t id = ++g->next_id;
  line(g);
  sb_printf(&g->out, "local s%u = {a = ", id);
  number(g, 1);
  put(g, ", ");
  number(g, 1);
  put(g, "}\n");
  line(g);
  sb_printf(&g->out, "s%u.a = s%u.a + s%u[1]\n", id, id, id);
  line(g);
  put(g, "if ");
  condition(g, 1);
  sb_printf(&g->out, " then s%u.a = ", id);
  number(g, 1);
  sb_printf(&g->out, " else s%u[1] = ", id);
  number(g, 1);
  put(g, " end\n");
  line(g);
  put_var(g, v);
  sb_printf(&g->out, " = s%u.a - s%u[1]\n", id, id);
}

static void closures(struct gen *g) {
  const struct var *v = any_var(g, NUMBER, true);
  line(g);
  switch (pick(g, 3)) {
  case 0:
    put(g, "bump(");
    number(g, 1);
    put(g, ")\n");
    return;
  default:
    if (!v) {
      put(g, "bump(1)\n");
      return;
    }
    put_var(g, v);
    sb_printf(&g->out, " = acc%u(", 1 + pick(g, 2));
    number(g, 1);
    put(g, ")\n");
  }
}

/* Ordinary Lua around device values: lists, varargs, closures over loop variables, protected
 * calls. */
static void plain_lua(struct gen *g) {
  const struct var *v = any_var(g, NUMBER, true);
  if (!v)
    return;
  uint32_t id = ++g->next_id;
  line(g);
  switch (pick(g, 5)) {
  case 0:
    sb_printf(&g->out, "for _, q%u in ipairs{", id);
    number(g, 1);
    put(g, ", ");
    number(g, 1);
    put(g, "} do ");
    put_var(g, v);
    put(g, " = ");
    put_var(g, v);
    sb_printf(&g->out, " - q%u end\n", id);
    return;
  case 1:
    put_var(g, v);
    put(g, " = vsum(");
    number(g, 1);
    put(g, ", ");
    number(g, 1);
    put(g, ", ");
    number(g, 1);
    put(g, ")\n");
    return;
  case 2:
    sb_printf(&g->out, "local q%u = {} for r = 1, 3 do q%u[r] = function() r = r + 1 return r * ",
              id, id);
    put_var(g, v);
    put(g, " % 1009 end end\n");
    line(g);
    put_var(g, v);
    sb_printf(&g->out, " = q%u[1]() + q%u[1]() - q%u[2]()\n", id, id, id);
    return;
  case 3:
    /* What an error leaves behind outside of device regions stays, as in Lua. */
    sb_printf(&g->out, "local q%u = pcall(function() ", id);
    put_var(g, v);
    put(g, " = ");
    number(g, 1);
    if (pick(g, 2))
      put(g, " error('x')");
    sb_printf(&g->out, " end)\n");
    line(g);
    put_var(g, v);
    put(g, " = ");
    put_var(g, v);
    sb_printf(&g->out, " + (q%u and 1 or 2)\n", id);
    return;
  default:
    sb_printf(&g->out, "local q%u = 0 repeat local r = q%u * 2 q%u = q%u + 1 ", id, id, id, id);
    put_var(g, v);
    put(g, " = ");
    put_var(g, v);
    put(g, " + ");
    number(g, 1);
    sb_printf(&g->out, " until r >= %u\n", pick(g, 4));
  }
}

static void store(struct gen *g) {
  line(g);
  sb_printf(&g->out, "a.O:store({i, j, %u}, ", pick(g, SLOTS / 2));
  number(g, 1);
  put(g, ")\n");
}

static void statement(struct gen *g) {
  bool deep = g->depth >= 4 || g->budget == 0;
  if (g->budget)
    g->budget--;
  switch (pick(g, deep ? 12 : 19)) {
  case 0: new_local(g, NUMBER); return;
  case 1: new_local(g, (enum kind)pick(g, 4)); return;
  case 2:
  case 3: assign(g, NUMBER); return;
  case 4: assign(g, (enum kind)pick(g, 4)); return;
  case 5: assign(g, TILE); return;
  case 6: swap(g, pick(g, 2) ? NUMBER : TILE); return;
  case 7: closures(g); return;
  case 8: store(g); return;
  case 9: leave(g); return;
  case 10: scratch(g); return;
  case 11: plain_lua(g); return;
  case 12: shadow(g); return;
  case 13:
  case 14: device_if(g); return;
  case 15: device_for(g); return;
  case 16: plain_for(g); return;
  case 17: while_loop(g); return;
  default: plain_if(g); return;
  }
}

static void statements(struct gen *g, uint32_t n) {
  while (n--)
    statement(g);
}

/* Pure helpers: a device branch that returns on both sides. */
static void function(struct gen *g) {
  sb_printf(&g->out, "  local function f%u(n1, n2)\n", g->n_functions + 1);
  uint32_t vars = g->n_vars;
  g->n_vars = 0;
  g->in_function = true;
  g->vars[g->n_vars++] = (struct var){.kind = NUMBER, .id = 1};
  g->vars[g->n_vars++] = (struct var){.kind = NUMBER, .id = 2};
  put(g, "    if ");
  condition(g, 1);
  put(g, " then\n      n1 = ");
  number(g, 1);
  put(g, "\n      return ");
  number(g, 1);
  put(g, "\n    else\n      return ");
  number(g, 1);
  put(g, "\n    end\n  end\n");
  g->in_function = false;
  g->n_vars = vars;
  g->n_functions++;
}

static const char *generate(struct arena *a, uint64_t seed) {
  struct gen g = {.out = {.arena = a}, .rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
  pick(&g, 2);
  pick(&g, 2);
  g.indent = 1;
  g.budget = 24;
  g.next_id = 2;
  g.loop_region = UINT32_MAX;
  put(&g, "  local function mk(s) return function(v) s = s + v return s end end\n"
          "  local acc1, acc2 = mk(0), mk(5)\n"
          "  local total = 1\n"
          "  local function bump(v) total = (total + v) % 997 end\n"
          "  local function vsum(...) local s = 0 for _, v in ipairs{...} do s = s + v end "
          "return s + select('#', ...) end\n");
  function(&g);
  function(&g);
  new_local(&g, NUMBER);
  new_local(&g, NUMBER);
  new_local(&g, FLAG);
  new_local(&g, TILE);
  new_local(&g, TILE);
  new_local(&g, PLAIN);
  statements(&g, 8);
  uint32_t slot = SLOTS / 2;
  put(&g, "  a.O:store({i, j, 0}, total)\n  a.O:store({i, j, 1}, acc1(0) + acc2(0))\n");
  for (uint32_t k = 0; k < g.n_vars && slot < SLOTS; k++, slot++) {
    sb_printf(&g.out, "  a.O:store({i, j, %u}, ", slot);
    if (g.vars[k].kind == TILE)
      put(&g, "sum(");
    put_var(&g, &g.vars[k]);
    put(&g, g.vars[k].kind == TILE ? "))\n" : g.vars[k].kind == FLAG ? " and 1 or 0)\n" : ")\n");
  }
  return sb_str(&g.out);
}

/* ---- running both ways ---- */

static const int64_t dim_m = 5, dim_n = 0;

static const char prelude[] = "index = 0\n"
                              "function full(_, v) return v end\n"
                              "function sum(x) return 4 * x end\n"
                              "function min(x, y) return x < y and x or y end\n"
                              "function max(x, y) return x > y and x or y end\n"
                              "function where(c, x, y) if c then return x else return y end end\n"
                              "function range(lo, hi, step)\n"
                              "  local k = lo - step\n"
                              "  return function() k = k + step if k < hi then return k end end\n"
                              "end\n";

static int stock_store(lua_State *L) {
  int64_t *out = lua_touserdata(L, lua_upvalueindex(1));
  int64_t at = 0;
  static const int64_t dim[3] = {GRID_I, GRID_J, SLOTS};
  for (int d = 0; d < 3; d++) {
    lua_rawgeti(L, 2, d + 1);
    at = at * dim[d] + luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  out[at] = luaL_checkinteger(L, 3);
  return 0;
}

static void run_stock(const char *body, struct arena *a, int64_t *out) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  struct strbuf text = {.arena = a};
  sb_printf(&text, "%sreturn function(a, d, c, i, j)\n%send\n", prelude, body);
  if (luaL_dostring(L, sb_str(&text)))
    fail_msg("stock Lua: %s\n%s", lua_tostring(L, -1), body);
  for (int i = 0; i < GRID_I; i++)
    for (int j = 0; j < GRID_J; j++) {
      lua_pushvalue(L, 1);
      lua_newtable(L);
      lua_newtable(L);
      lua_pushlightuserdata(L, out);
      lua_pushcclosure(L, stock_store, 1);
      lua_setfield(L, -2, "store");
      lua_setfield(L, -2, "O");
      lua_newtable(L);
      lua_pushinteger(L, dim_m);
      lua_setfield(L, -2, "M");
      lua_pushinteger(L, dim_n);
      lua_setfield(L, -2, "N");
      lua_newtable(L);
      lua_pushinteger(L, i);
      lua_pushinteger(L, j);
      if (lua_pcall(L, 5, 0, 0))
        fail_msg("stock Lua: %s\n%s", lua_tostring(L, -1), body);
    }
  lua_close(L);
}

static void run_staged(const char *body, struct hf *h, int64_t *out) {
  struct strbuf text = {.arena = &h->arena};
  sb_printf(&text,
            "return kernel { name = \"k\", args = { tensor(\"X\", f32, \"M\", \"N\"), "
            "out(\"O\", s64, %d, %d, %d) }, grid = function() return %d, %d end, "
            "body = function(a, d, c, i, j)\n%send }\n",
            GRID_I, GRID_J, SLOTS, GRID_I, GRID_J, body);
  if (!hf_load(h, "random.lua", sb_str(&text)))
    fail_msg("%s\n%s", hf_diags(h), body);
  struct ir_module *m = hf_trace(h, NULL, 0);
  if (!m)
    fail_msg("%s\n%s", hf_diags(h), body);
  struct interp_arg args[2];
  float none = 0;
  const int64_t x_dim[2] = {dim_m, dim_n}, o_dim[3] = {GRID_I, GRID_J, SLOTS};
  args[0] = (struct interp_arg){.tensor = interp_dense(&none, DT_F32, 2, x_dim)};
  args[1] = (struct interp_arg){.tensor = interp_dense(out, DT_S64, 3, o_dim)};
  struct interp_options opt = {.domain = INTERP_ROUNDED, .max_steps = 10000000};
  if (!interp_run(m, args, 2, &opt, &h->diags, &mem_libc))
    fail_msg("%s\n%s", hf_diags(h), body);
}

static void compare(uint64_t seed, bool show) {
  struct hf h;
  hf_init(&h);
  const char *body = generate(&h.arena, seed);
  if (show)
    printf("%s\n", body);
  int64_t want[GRID_I * GRID_J * SLOTS] = {0}, got[GRID_I * GRID_J * SLOTS] = {0};
  run_stock(body, &h.arena, want);
  run_staged(body, &h, got);
  for (size_t k = 0; k < GRID_I * GRID_J * SLOTS; k++)
    if (want[k] != got[k])
      fail_msg("seed %" PRIu64 ": program (%zu,%zu), slot %zu: stock Lua %" PRId64
               ", staged %" PRId64 "\n%s",
               seed, k / SLOTS / GRID_J, k / SLOTS % GRID_J, k % SLOTS, want[k], got[k], body);
  hf_free(&h);
}

static void test_random(void **state) {
  (void)state;
  const char *one = getenv("KILN_SEED");
  if (one) {
    compare(strtoull(one, NULL, 10), true);
    return;
  }
  uint64_t n = getenv("KILN_LONG") ? 5000 : 400;
  for (uint64_t seed = 1; seed <= n; seed++)
    compare(seed, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
  return cmocka_run_group_tests_name("random staged programs", tests, NULL, NULL);
}
