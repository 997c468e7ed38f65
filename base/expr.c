/* Integer expressions; see expr.h. Construction is the only place where expressions are simplified,
 * and simplifying a simplified expression changes nothing: that is what makes parse(print(e)) ==
 * e. */
#include "base/expr.h"

#include "base/check.h"
#include "base/hash.h"

#include <inttypes.h>

static const struct {
  const char *text;
  uint32_t arity;
} op_info[] = {{"const", 0},
               {"sym", 0},
#define X(op, text, arity) {text, arity},
               EXPR_OPS(X)
#undef X
};

void expr_pool_init(struct expr_pool *p, struct arena *a, struct symtab *syms) {
  memset(p, 0, sizeof *p);
  p->arena = a;
  p->syms = syms;
  map_init(&p->by_hash, a);
  VEC_PUSH(a, &p->nodes, ((struct expr_node){.op = EXPR_CONST})); /* id 0: no expression */
}

static uint64_t node_hash(const struct expr_node *n) {
  uint64_t h = hash_mix((uint64_t)n->op, (uint64_t)n->value);
  h = hash_mix(h, n->sym.id);
  for (int i = 0; i < 3; i++)
    h = hash_mix(h, n->in[i].id);
  return h;
}

static bool node_eq(const struct expr_node *a, const struct expr_node *b) {
  return a->op == b->op && a->value == b->value && a->sym.id == b->sym.id &&
         a->in[0].id == b->in[0].id && a->in[1].id == b->in[1].id && a->in[2].id == b->in[2].id;
}

static struct expr cons(struct expr_pool *p, struct expr_node n) {
  uint64_t h = node_hash(&n);
  uint32_t pos = 0, id;
  while (map_find_from(&p->by_hash, h, &pos, &id))
    if (node_eq(&p->nodes.at[id], &n))
      return (struct expr){id};
  uint64_t size = 1;
  for (int i = 0; i < 3; i++)
    size += n.in[i].id ? p->nodes.at[n.in[i].id].size : 0;
  n.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
  id = p->nodes.n;
  VEC_PUSH(p->arena, &p->nodes, n);
  map_add(&p->by_hash, h, id);
  return (struct expr){id};
}

struct expr expr_const(struct expr_pool *p, int64_t value) {
  return cons(p, (struct expr_node){.op = EXPR_CONST, .value = value});
}

struct expr expr_sym(struct expr_pool *p, const char *name) {
  return cons(p, (struct expr_node){.op = EXPR_SYM, .sym = symtab_get(p->syms, name)});
}

bool expr_is_const(const struct expr_pool *p, struct expr e, int64_t *value) {
  const struct expr_node *n = expr_at(p, e);
  if (e.id == 0 || n->op != EXPR_CONST)
    return false;
  *value = n->value;
  return true;
}

static const char overflow_text[] = "integer overflow";
static const char zero_text[] = "division by zero";

/* One op on values (not the lazy ones); NULL or why it has no value. */
static const char *apply(enum expr_op op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
  case EXPR_ADD: return __builtin_add_overflow(a, b, out) ? overflow_text : NULL;
  case EXPR_SUB: return __builtin_sub_overflow(a, b, out) ? overflow_text : NULL;
  case EXPR_MUL: return __builtin_mul_overflow(a, b, out) ? overflow_text : NULL;
  case EXPR_DIV:
  case EXPR_MOD:
  case EXPR_CDIV: {
    if (b == 0)
      return zero_text;
    if (a == INT64_MIN && b == -1) {
      *out = 0;
      return op == EXPR_MOD ? NULL : overflow_text;
    }
    int64_t q = a / b, r = a % b; /* towards zero */
    bool inexact = r != 0, opposite = (r < 0) != (b < 0);
    if (op == EXPR_DIV)
      *out = q - (inexact && opposite);
    else if (op == EXPR_CDIV)
      *out = q + (inexact && !opposite);
    else
      *out = inexact && opposite ? r + b : r;
    return NULL;
  }
  case EXPR_MIN: *out = a < b ? a : b; return NULL;
  case EXPR_MAX: *out = a > b ? a : b; return NULL;
  case EXPR_EQ: *out = a == b; return NULL;
  case EXPR_NE: *out = a != b; return NULL;
  case EXPR_LT: *out = a < b; return NULL;
  case EXPR_LE: *out = a <= b; return NULL;
  case EXPR_AND: *out = a && b; return NULL;
  case EXPR_OR: *out = a || b; return NULL;
  case EXPR_NOT: *out = !a; return NULL;
  case EXPR_CONST:
  case EXPR_SYM:
  case EXPR_SELECT: break;
  }
  KILN_UNREACHABLE();
}

/* The value is known to be 0 or 1. */
static bool is_truth(const struct expr_pool *p, struct expr e) {
  const struct expr_node *n = expr_at(p, e);
  switch (n->op) {
  case EXPR_CONST: return n->value == 0 || n->value == 1;
  case EXPR_EQ:
  case EXPR_NE:
  case EXPR_LT:
  case EXPR_LE:
  case EXPR_AND:
  case EXPR_OR:
  case EXPR_NOT: return true;
  case EXPR_SYM:
  case EXPR_ADD:
  case EXPR_SUB:
  case EXPR_MUL:
  case EXPR_DIV:
  case EXPR_MOD:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_CDIV:
  case EXPR_SELECT: break;
  }
  return false;
}

struct expr expr_op1(struct expr_pool *p, enum expr_op op, struct expr a) {
  KILN_ASSERT(op_info[op].arity == 1 && a.id);
  int64_t v;
  if (expr_is_const(p, a, &v))
    return expr_const(p, !v);
  const struct expr_node *n = expr_at(p, a);
  if (n->op == EXPR_NOT && is_truth(p, n->in[0]))
    return n->in[0];
  return cons(p, (struct expr_node){.op = op, .in = {a}});
}

/* Both operands the same expression. */
static bool fold_same(struct expr_pool *p, enum expr_op op, struct expr a, struct expr *out) {
  switch (op) {
  case EXPR_SUB:
  case EXPR_NE:
  case EXPR_LT: *out = expr_const(p, 0); return true;
  case EXPR_EQ:
  case EXPR_LE: *out = expr_const(p, 1); return true;
  case EXPR_MIN:
  case EXPR_MAX: *out = a; return true;
  case EXPR_AND:
  case EXPR_OR: *out = a; return is_truth(p, a);
  case EXPR_CONST:
  case EXPR_SYM:
  case EXPR_ADD:
  case EXPR_MUL:
  case EXPR_DIV:
  case EXPR_MOD:
  case EXPR_CDIV:
  case EXPR_NOT:
  case EXPR_SELECT: break;
  }
  return false;
}

/* One operand a constant: x op c (right) or c op x. */
static bool fold_const(struct expr_pool *p, enum expr_op op, struct expr x, int64_t c, bool right,
                       struct expr *out) {
  *out = x;
  switch (op) {
  case EXPR_ADD: return c == 0;
  case EXPR_SUB: return right && c == 0;
  case EXPR_MUL:
    if (c == 0)
      *out = expr_const(p, 0);
    return c == 0 || c == 1;
  case EXPR_DIV:
  case EXPR_CDIV: return right && c == 1;
  case EXPR_MOD:
    if (right && c == 1)
      *out = expr_const(p, 0);
    return right && c == 1;
  case EXPR_AND:
    if (c == 0)
      *out = expr_const(p, 0);
    return c == 0 || is_truth(p, x);
  case EXPR_OR:
    if (c != 0)
      *out = expr_const(p, 1);
    return c != 0 || is_truth(p, x);
  case EXPR_CONST:
  case EXPR_SYM:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_EQ:
  case EXPR_NE:
  case EXPR_LT:
  case EXPR_LE:
  case EXPR_NOT:
  case EXPR_SELECT: break;
  }
  return false;
}

struct expr expr_op2(struct expr_pool *p, enum expr_op op, struct expr a, struct expr b) {
  KILN_ASSERT(op_info[op].arity == 2 && a.id && b.id);
  int64_t va, vb, v;
  bool ca = expr_is_const(p, a, &va), cb = expr_is_const(p, b, &vb);
  struct expr e;
  if (ca && cb) {
    if (!apply(op, va, vb, &v))
      return expr_const(p, v);
  } else if (cb ? fold_const(p, op, a, vb, true, &e) : ca && fold_const(p, op, b, va, false, &e)) {
    return e;
  } else if (a.id == b.id && fold_same(p, op, a, &e)) {
    return e;
  }
  return cons(p, (struct expr_node){.op = op, .in = {a, b}});
}

struct expr expr_op3(struct expr_pool *p, enum expr_op op, struct expr a, struct expr b,
                     struct expr c) {
  KILN_ASSERT(op == EXPR_SELECT && a.id && b.id && c.id);
  int64_t v;
  if (expr_is_const(p, a, &v))
    return v ? b : c;
  if (b.id == c.id)
    return b;
  return cons(p, (struct expr_node){.op = op, .in = {a, b, c}});
}

struct expr expr_import(struct expr_pool *to, const struct expr_pool *from, struct expr e) {
  if (e.id == 0)
    return e;
  /* Operands come before their users, so one sweep up to e does; only what e reaches is copied. */
  struct map done;
  map_init(&done, to->arena);
  bool *need = ARENA_ARRAY(to->arena, bool, e.id + 1);
  need[e.id] = true;
  for (uint32_t id = e.id; id > 0; id--)
    if (need[id])
      for (int i = 0; i < 3; i++)
        need[from->nodes.at[id].in[i].id] = true;
  struct expr last = {0};
  for (uint32_t id = 1; id <= e.id; id++) {
    if (!need[id])
      continue;
    const struct expr_node *n = &from->nodes.at[id];
    struct expr in[3] = {{0}, {0}, {0}};
    for (int i = 0; i < 3; i++)
      if (n->in[i].id)
        in[i].id = *map_get(&done, n->in[i].id);
    if (n->op == EXPR_CONST)
      last = expr_const(to, n->value);
    else if (n->op == EXPR_SYM)
      last = expr_sym(to, symtab_str(from->syms, n->sym));
    else if (op_info[n->op].arity == 1)
      last = expr_op1(to, n->op, in[0]);
    else if (op_info[n->op].arity == 2)
      last = expr_op2(to, n->op, in[0], in[1]);
    else
      last = expr_op3(to, n->op, in[0], in[1], in[2]);
    map_put(&done, id, last.id);
  }
  return last;
}

/* Precedence as in Lua; calls and leaves bind tightest. */
enum { PREC_OR = 1, PREC_AND, PREC_COMPARE, PREC_SUM, PREC_PRODUCT, PREC_NOT, PREC_LEAF };

static int precedence(enum expr_op op) {
  switch (op) {
  case EXPR_OR: return PREC_OR;
  case EXPR_AND: return PREC_AND;
  case EXPR_EQ:
  case EXPR_NE:
  case EXPR_LT:
  case EXPR_LE: return PREC_COMPARE;
  case EXPR_ADD:
  case EXPR_SUB: return PREC_SUM;
  case EXPR_MUL:
  case EXPR_DIV:
  case EXPR_MOD: return PREC_PRODUCT;
  case EXPR_NOT: return PREC_NOT;
  case EXPR_CONST:
  case EXPR_SYM:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_CDIV:
  case EXPR_SELECT: break;
  }
  return PREC_LEAF;
}

static void print_at(const struct expr_pool *p, struct expr e, int least, struct strbuf *out) {
  const struct expr_node *n = expr_at(p, e);
  int prec = precedence(n->op);
  if (prec < least)
    sb_putc(out, '(');
  if (n->op == EXPR_CONST) {
    sb_printf(out, "%" PRId64, n->value);
  } else if (n->op == EXPR_SYM) {
    sb_puts(out, symtab_str(p->syms, n->sym));
  } else if (n->op == EXPR_NOT) {
    sb_puts(out, "not ");
    print_at(p, n->in[0], PREC_NOT, out);
  } else if (prec == PREC_LEAF) {
    sb_printf(out, "%s(", op_info[n->op].text);
    for (uint32_t i = 0; i < op_info[n->op].arity; i++) {
      if (i)
        sb_puts(out, ", ");
      print_at(p, n->in[i], PREC_OR, out);
    }
    sb_putc(out, ')');
  } else { /* left associative */
    print_at(p, n->in[0], prec, out);
    sb_printf(out, " %s ", op_info[n->op].text);
    print_at(p, n->in[1], prec + 1, out);
  }
  if (prec < least)
    sb_putc(out, ')');
}

void expr_print(const struct expr_pool *p, struct expr e, struct strbuf *out) {
  KILN_ASSERT(e.id);
  if (expr_size(p, e) > EXPR_MAX_SIZE)
    sb_puts(out, "<too large>");
  else
    print_at(p, e, PREC_OR, out);
}

struct parser {
  struct expr_pool *pool;
  const char *at, *end;
  const char *error, *error_at;
  int depth;
};

#define MAX_DEPTH 200

static struct expr fail(struct parser *s, const char *why) {
  if (!s->error) {
    s->error = why;
    s->error_at = s->at;
  }
  return (struct expr){0};
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static void skip_space(struct parser *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
    s->at++;
}

/* Length of the name at the cursor. */
static size_t name_length(const struct parser *s) {
  size_t n = 0;
  if (s->at < s->end && is_letter(*s->at))
    while (s->at + n < s->end && (is_letter(s->at[n]) || is_digit(s->at[n]) || s->at[n] == '.'))
      n++;
  return n;
}

static bool take(struct parser *s, const char *text) {
  skip_space(s);
  size_t n = strlen(text);
  if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
    return false;
  if (is_letter(text[0]) && name_length(s) != n)
    return false;
  s->at += n;
  return true;
}

static struct expr parse_level(struct parser *s, int least);

static struct expr parse_number(struct parser *s) {
  const char *start = s->at;
  bool negative = take(s, "-");
  if (s->at == s->end || !is_digit(*s->at)) {
    s->at = start;
    return fail(s, "expected a number after `-`");
  }
  int64_t v = 0;
  for (; s->at < s->end && is_digit(*s->at); s->at++) {
    int64_t digit = *s->at - '0';
    if (__builtin_mul_overflow(v, 10, &v) ||
        (negative ? __builtin_sub_overflow(v, digit, &v) : __builtin_add_overflow(v, digit, &v))) {
      s->at = start;
      return fail(s, "number does not fit in 64 bits");
    }
  }
  if (name_length(s))
    return fail(s, "a number may not run into a name");
  return expr_const(s->pool, v);
}

static struct expr parse_call(struct parser *s, enum expr_op op) {
  struct expr in[3] = {{0}, {0}, {0}};
  for (uint32_t i = 0; i < op_info[op].arity; i++) {
    if (i && !take(s, ","))
      return fail(s, "expected `,`: too few operands");
    in[i] = parse_level(s, PREC_OR);
    if (s->error)
      return in[i];
  }
  if (!take(s, ")"))
    return fail(s, "expected `)`");
  return op == EXPR_SELECT ? expr_op3(s->pool, op, in[0], in[1], in[2])
                           : expr_op2(s->pool, op, in[0], in[1]);
}

static struct expr parse_leaf(struct parser *s) {
  skip_space(s);
  if (s->at == s->end)
    return fail(s, "expected an expression");
  if (*s->at == '-' || is_digit(*s->at))
    return parse_number(s);
  if (take(s, "(")) {
    struct expr e = parse_level(s, PREC_OR);
    if (!s->error && !take(s, ")"))
      return fail(s, "expected `)`");
    return e;
  }
  size_t n = name_length(s);
  if (n == 0)
    return fail(s, "expected a number, a name or `(`");
  static const enum expr_op calls[] = {EXPR_MIN, EXPR_MAX, EXPR_CDIV, EXPR_SELECT};
  const char *name = s->at;
  s->at += n;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    const char *text = op_info[calls[i]].text;
    if (strlen(text) == n && memcmp(text, name, n) == 0 && take(s, "("))
      return parse_call(s, calls[i]);
  }
  if ((n == 3 && (memcmp(name, "and", 3) == 0 || memcmp(name, "not", 3) == 0)) ||
      (n == 2 && memcmp(name, "or", 2) == 0)) {
    s->at = name;
    return fail(s, "expected an operand");
  }
  return cons(s->pool,
              (struct expr_node){.op = EXPR_SYM, .sym = symtab_intern(s->pool->syms, name, n)});
}

/* The infix operator at the cursor, if it binds at least as tightly as `least`. */
static bool take_operator(struct parser *s, int least, enum expr_op *op) {
  /* `//` and `<=` before their prefixes. */
  static const enum expr_op infix[] = {EXPR_OR,  EXPR_AND, EXPR_EQ,  EXPR_NE,  EXPR_LE, EXPR_LT,
                                       EXPR_ADD, EXPR_SUB, EXPR_MUL, EXPR_DIV, EXPR_MOD};
  for (size_t i = 0; i < sizeof infix / sizeof infix[0]; i++)
    if (precedence(infix[i]) >= least && take(s, op_info[infix[i]].text)) {
      *op = infix[i];
      return true;
    }
  return false;
}

static struct expr parse_level(struct parser *s, int least) {
  if (++s->depth > MAX_DEPTH)
    return fail(s, "expression is nested too deep");
  struct expr e;
  if (take(s, "not")) {
    e = parse_level(s, PREC_NOT);
    if (!s->error)
      e = expr_op1(s->pool, EXPR_NOT, e);
  } else {
    e = parse_leaf(s);
  }
  enum expr_op op;
  while (!s->error && take_operator(s, least, &op)) {
    struct expr b = parse_level(s, precedence(op) + 1);
    if (s->error)
      break;
    e = expr_op2(s->pool, op, e, b);
    if (expr_size(s->pool, e) > EXPR_MAX_SIZE)
      fail(s, "expression is too large");
  }
  s->depth--;
  return e;
}

struct expr expr_parse(struct expr_pool *p, const char *text, const char *end, const char **error,
                       const char **at) {
  struct parser s = {.pool = p, .at = text, .end = end};
  struct expr e = parse_level(&s, PREC_OR);
  skip_space(&s);
  if (!s.error && s.at < s.end)
    fail(&s, "expected the end of the expression");
  if (!s.error && expr_size(p, e) > EXPR_MAX_SIZE)
    fail(&s, "expression is too large");
  *error = s.error;
  *at = s.error ? s.error_at : s.at;
  return s.error ? (struct expr){0} : e;
}

struct evaluation {
  const struct expr_pool *pool;
  expr_lookup lookup;
  void *user;
  const char *why;
};

static bool eval(struct evaluation *v, struct expr e, int64_t *out) {
  const struct expr_node *n = expr_at(v->pool, e);
  int64_t a, b = 0;
  if (n->op == EXPR_CONST) {
    *out = n->value;
    return true;
  }
  if (n->op == EXPR_SYM) {
    const char *name = symtab_str(v->pool->syms, n->sym);
    if (v->lookup && v->lookup(v->user, name, out))
      return true;
    v->why = name;
    return false;
  }
  if (!eval(v, n->in[0], &a))
    return false;
  if (n->op == EXPR_SELECT)
    return eval(v, n->in[a ? 1 : 2], out);
  if ((n->op == EXPR_AND && !a) || (n->op == EXPR_OR && a)) {
    *out = a != 0;
    return true;
  }
  if (op_info[n->op].arity == 2 && !eval(v, n->in[1], &b))
    return false;
  v->why = apply(n->op, a, b, out);
  return !v->why;
}

bool expr_eval(const struct expr_pool *p, struct expr e, expr_lookup lookup, void *user,
               int64_t *value, const char **why) {
  KILN_ASSERT(e.id);
  struct evaluation v = {p, lookup, user, NULL};
  bool ok = false;
  if (expr_size(p, e) > EXPR_MAX_SIZE)
    v.why = "expression is too large";
  else
    ok = eval(&v, e, value);
  if (why)
    *why = v.why;
  return ok;
}
