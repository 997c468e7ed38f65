/* Parser of Lua 5.4; see ast.h. One function per rule of the grammar, as in lparser.c, whose
 * messages it gives. Stops at the first error. Names and labels are resolved by scope.c on the
 * way. */
#include "frontend/ast.h"

#include "frontend/stage.h"

#include <string.h>

#define UNARY_PRIORITY 12

typedef VEC(struct fe_node *) node_list;

static struct fe_node *parse_expr(struct fe_parser *p, int limit);
static void parse_block(struct fe_parser *p, struct fe_node *block);
static struct fe_node *parse_function(struct fe_parser *p, bool is_method, const char *name,
                                      uint32_t line, uint32_t col);

/* ---- helpers ---- */

static struct fe_node *new_node_at(struct fe_parser *p, enum fe_kind kind, uint32_t line,
                                   uint32_t col) {
  struct fe_node *n = ARENA_NEW(p->lex.arena, struct fe_node);
  n->kind = (uint8_t)kind;
  n->line = line;
  n->col = col;
  return n;
}

static struct fe_node *new_node(struct fe_parser *p, enum fe_kind kind) {
  return new_node_at(p, kind, p->lex.now.line, p->lex.now.col);
}

static int now(const struct fe_parser *p) {
  return p->lex.now.type;
}

static void next(struct fe_parser *p) {
  fe_lex_next(&p->lex);
}

static bool accept(struct fe_parser *p, int type) {
  if (now(p) != type)
    return false;
  next(p);
  return true;
}

static _Noreturn void expected(struct fe_parser *p, int type) {
  fe_near_error(&p->lex, arena_printf(p->lex.arena, "%s expected", fe_token_name(&p->lex, type)));
}

static void expect(struct fe_parser *p, int type) {
  if (!accept(p, type))
    expected(p, type);
}

/* Expects what closes `open`, seen at line. */
static void expect_match(struct fe_parser *p, int close, int open, uint32_t line) {
  if (accept(p, close))
    return;
  if (line == p->lex.line)
    expected(p, close);
  fe_near_error(&p->lex,
                arena_printf(p->lex.arena, "%s expected (to close %s at line %u)",
                             fe_token_name(&p->lex, close), fe_token_name(&p->lex, open), line));
}

static struct fe_name *expect_name(struct fe_parser *p) {
  if (now(p) != FE_T_NAME)
    expected(p, FE_T_NAME);
  struct fe_name *name = p->lex.now.u.name;
  next(p);
  return name;
}

static void check_depth(struct fe_parser *p) {
  if (fe_stack_over(p->stack_base, p->stack_limit))
    fe_lex_error(&p->lex, DIAG_DEPTH_LIMIT, p->lex.now.line, p->lex.now.col,
                 "nesting deeper than the C stack of %zu KiB allows", p->stack_limit >> 10);
}

static bool is_multi(const struct fe_node *n) {
  return n->kind == FE_CALL || n->kind == FE_METHOD || n->kind == FE_VARARG;
}

/* Copies a list built on the side into a node. */
static void set_list(struct fe_parser *p, struct fe_node *n, const node_list *l) {
  n->n = l->n;
  n->list = arena_copy(p->lex.arena, l->at, sizeof *l->at * l->n);
}

static void parse_expr_list(struct fe_parser *p, node_list *l) {
  do
    VEC_PUSH(p->lex.arena, l, parse_expr(p, 0));
  while (accept(p, ','));
}

/* ---- expressions ---- */

static struct fe_node *string_node(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_STRING);
  n->u.name = p->lex.now.u.name;
  next(p);
  return n;
}

static void name_function(struct fe_node *value, const struct fe_name *name) {
  if (value->kind == FE_FUNCTION && !value->u.func->name)
    value->u.func->name = name->s;
}

static struct fe_node *parse_table(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_TABLE);
  uint32_t line = p->lex.now.line;
  node_list keys = {0}, values = {0};
  expect(p, '{');
  while (now(p) != '}') {
    struct fe_node *key = NULL, *value;
    if (now(p) == FE_T_NAME && fe_lex_peek(&p->lex) == '=') {
      key = string_node(p);
      next(p);
      value = parse_expr(p, 0);
      name_function(value, key->u.name);
    } else if (now(p) == '[') {
      uint32_t bracket_line = p->lex.now.line, col = p->lex.now.col;
      next(p);
      struct fe_node *inner = parse_expr(p, 0);
      expect(p, ']');
      expect(p, '=');
      value = parse_expr(p, 0);
      key = new_node_at(p, FE_PAREN, bracket_line, col); /* carries the place of the bracket */
      key->a = inner;
    } else {
      value = parse_expr(p, 0);
    }
    VEC_PUSH(p->lex.arena, &keys, key);
    VEC_PUSH(p->lex.arena, &values, value);
    if (!accept(p, ',') && !accept(p, ';'))
      break;
  }
  expect_match(p, '}', '{', line);
  set_list(p, n, &values);
  n->list2 = arena_copy(p->lex.arena, keys.at, sizeof *keys.at * keys.n);
  n->n2 = 0; /* positional ones */
  for (uint32_t i = 0; i < keys.n; i++)
    n->n2 += keys.at[i] == NULL;
  return n;
}

static void parse_args(struct fe_parser *p, struct fe_node *call) {
  node_list l = {0};
  uint32_t line = p->lex.now.line;
  if (now(p) == FE_T_STRING) {
    VEC_PUSH(p->lex.arena, &l, string_node(p));
  } else if (now(p) == '{') {
    VEC_PUSH(p->lex.arena, &l, parse_table(p));
  } else if (accept(p, '(')) {
    if (now(p) != ')')
      parse_expr_list(p, &l);
    expect_match(p, ')', '(', line);
  } else {
    fe_near_error(&p->lex, "function arguments expected");
  }
  set_list(p, call, &l);
}

static struct fe_node *parse_primary(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_GLOBAL);
  if (now(p) == FE_T_NAME) {
    struct fe_name *name = expect_name(p);
    fe_scope_resolve(p, n, name);
    return n;
  }
  if (now(p) != '(')
    fe_near_error(&p->lex, "unexpected symbol");
  uint32_t line = p->lex.now.line;
  next(p);
  struct fe_node *inner = parse_expr(p, 0);
  expect_match(p, ')', '(', line);
  if (!is_multi(inner)) {
    inner->parens = true;
    return inner;
  }
  n->kind = FE_PAREN;
  n->a = inner;
  return n;
}

/* Where the text of an expression begins. */
static void first_token(const struct fe_node *n, uint32_t *line, uint32_t *col) {
  while (n->kind == FE_FIELD || n->kind == FE_INDEX || n->kind == FE_METHOD)
    n = n->a;
  *line = n->line;
  *col = n->col;
}

static struct fe_node *parse_suffixed(struct fe_parser *p) {
  struct fe_node *n = parse_primary(p), *m;
  for (;;) {
    switch (now(p)) {
    case '.':
      next(p);
      m = new_node(p, FE_FIELD);
      m->u.name = expect_name(p);
      break;
    case '[':
      m = new_node(p, FE_INDEX);
      next(p);
      m->b = parse_expr(p, 0);
      expect(p, ']');
      break;
    case ':':
      next(p);
      m = new_node(p, FE_METHOD);
      m->u.name = expect_name(p);
      parse_args(p, m);
      break;
    case '(':
    case '{':
    case FE_T_STRING:
      m = new_node(p, FE_CALL);
      first_token(n, &m->line, &m->col);
      parse_args(p, m);
      break;
    default: return n;
    }
    m->a = n;
    n = m;
  }
}

static struct fe_node *literal(struct fe_parser *p, enum fe_kind kind) {
  struct fe_node *n = new_node(p, kind);
  if (kind == FE_INTEGER)
    n->u.i = p->lex.now.u.i;
  else if (kind == FE_NUMBER)
    n->u.f = p->lex.now.u.f;
  next(p);
  return n;
}

static struct fe_node *parse_simple(struct fe_parser *p) {
  uint32_t line = p->lex.now.line, col = p->lex.now.col;
  switch (now(p)) {
  case FE_T_INTEGER: return literal(p, FE_INTEGER);
  case FE_T_NUMBER: return literal(p, FE_NUMBER);
  case FE_T_STRING: return string_node(p);
  case FE_T_NIL: return literal(p, FE_NIL);
  case FE_T_TRUE: return literal(p, FE_TRUE);
  case FE_T_FALSE: return literal(p, FE_FALSE);
  case FE_T_DOTS:
    if (!p->fs->func->is_vararg)
      fe_near_error(&p->lex, "cannot use '...' outside a vararg function");
    return literal(p, FE_VARARG);
  case '{': return parse_table(p);
  case FE_T_FUNCTION: next(p); return parse_function(p, false, NULL, line, col);
  default: return parse_suffixed(p);
  }
}

struct binary {
  enum fe_kind kind;
  int op;
  int left, right; /* priorities */
};

/* left 0: not a binary operator. */
static struct binary binary_of(int token) {
  switch (token) {
  case FE_T_OR: return (struct binary){FE_OR, FE_OP_OR, 1, 1};
  case FE_T_AND: return (struct binary){FE_AND, FE_OP_AND, 2, 2};
  case '<': return (struct binary){FE_COMPARE, FE_OP_LT, 3, 3};
  case '>': return (struct binary){FE_COMPARE, FE_OP_GT, 3, 3};
  case FE_T_LE: return (struct binary){FE_COMPARE, FE_OP_LE, 3, 3};
  case FE_T_GE: return (struct binary){FE_COMPARE, FE_OP_GE, 3, 3};
  case FE_T_NE: return (struct binary){FE_COMPARE, FE_OP_NE, 3, 3};
  case FE_T_EQ: return (struct binary){FE_COMPARE, FE_OP_EQ, 3, 3};
  case '|': return (struct binary){FE_BINARY, FE_OP_BOR, 4, 4};
  case '~': return (struct binary){FE_BINARY, FE_OP_BXOR, 5, 5};
  case '&': return (struct binary){FE_BINARY, FE_OP_BAND, 6, 6};
  case FE_T_SHL: return (struct binary){FE_BINARY, FE_OP_SHL, 7, 7};
  case FE_T_SHR: return (struct binary){FE_BINARY, FE_OP_SHR, 7, 7};
  case FE_T_CONCAT: return (struct binary){FE_CONCAT, 0, 9, 8}; /* right associative */
  case '+': return (struct binary){FE_BINARY, FE_OP_ADD, 10, 10};
  case '-': return (struct binary){FE_BINARY, FE_OP_SUB, 10, 10};
  case '*': return (struct binary){FE_BINARY, FE_OP_MUL, 11, 11};
  case '/': return (struct binary){FE_BINARY, FE_OP_DIV, 11, 11};
  case FE_T_IDIV: return (struct binary){FE_BINARY, FE_OP_IDIV, 11, 11};
  case '%': return (struct binary){FE_BINARY, FE_OP_MOD, 11, 11};
  case '^': return (struct binary){FE_BINARY, FE_OP_POW, 14, 13}; /* right associative */
  default: return (struct binary){FE_NIL, 0, 0, 0};
  }
}

static int unary_of(int token) {
  switch (token) {
  case FE_T_NOT: return FE_OP_NOT;
  case '-': return FE_OP_NEG;
  case '~': return FE_OP_BNOT;
  case '#': return FE_LENGTH;
  default: return -1;
  }
}

/* A minus in front of a numeral is folded, so that -1 is a constant in messages too. */
static bool fold_negative(struct fe_node *n) {
  if (n->kind == FE_INTEGER && !n->parens) {
    n->u.i = (lua_Integer)(0 - (lua_Unsigned)n->u.i);
    return true;
  }
  if (n->kind == FE_NUMBER && !n->parens) {
    n->u.f = -n->u.f;
    return true;
  }
  return false;
}

static struct fe_node *parse_expr(struct fe_parser *p, int limit) {
  check_depth(p);
  struct fe_node *n;
  int op = unary_of(now(p));
  if (op >= 0) {
    struct fe_node *u = new_node(p, FE_UNARY);
    u->op = (uint8_t)op;
    next(p);
    u->a = parse_expr(p, UNARY_PRIORITY);
    n = op == FE_OP_NEG && fold_negative(u->a) ? u->a : u;
  } else {
    n = parse_simple(p);
  }
  for (struct binary b; (b = binary_of(now(p))).left > limit;) {
    struct fe_node *m = new_node(p, b.kind);
    m->op = (uint8_t)b.op;
    next(p);
    m->a = n;
    m->b = parse_expr(p, b.right);
    n = m;
  }
  return n;
}

static void parse_params(struct fe_parser *p, struct fe_func *f, bool is_method) {
  VEC(struct fe_var *) params = {0};
  if (is_method)
    VEC_PUSH(p->lex.arena, &params,
             fe_scope_var(p, fe_name_get(p->lex.names, "self", 4), f->line, f->col));
  if (now(p) != ')')
    do {
      if (now(p) == FE_T_NAME) {
        uint32_t line = p->lex.now.line, col = p->lex.now.col;
        VEC_PUSH(p->lex.arena, &params, fe_scope_var(p, expect_name(p), line, col));
      } else if (accept(p, FE_T_DOTS)) {
        f->is_vararg = true;
      } else {
        fe_near_error(&p->lex, "<name> or '...' expected");
      }
    } while (!f->is_vararg && accept(p, ','));
  for (uint32_t i = 0; i < params.n; i++)
    fe_scope_activate(p, params.at[i]);
  f->params = params.at;
  f->n_params = params.n;
}

/* At the parameter list; line:col is that of `function`. */
static struct fe_node *parse_function(struct fe_parser *p, bool is_method, const char *name,
                                      uint32_t line, uint32_t col) {
  struct fe_node *n = new_node_at(p, FE_FUNCTION, line, col);
  struct fe_func *f = ARENA_NEW(p->lex.arena, struct fe_func);
  struct fe_funcstate fs;
  struct fe_scope scope;
  n->u.func = f;
  f->name = name;
  f->line = line;
  f->col = col;
  fe_func_open(p, &fs, f);
  f->body = new_node(p, FE_BLOCK);
  fe_scope_open(p, &scope, f->body, false);
  expect(p, '(');
  parse_params(p, f, is_method);
  expect(p, ')');
  parse_block(p, f->body);
  expect_match(p, FE_T_END, FE_T_FUNCTION, line);
  fe_scope_close(p);
  fe_func_close(p);
  return n;
}

/* ---- statements ---- */

static bool ends_block(const struct fe_parser *p, bool until_too) {
  switch (now(p)) {
  case FE_T_ELSE:
  case FE_T_ELSEIF:
  case FE_T_END:
  case FE_T_EOF: return true;
  case FE_T_UNTIL: return until_too;
  default: return false;
  }
}

/* A block with a scope of its own. */
static struct fe_node *scoped_block(struct fe_parser *p, bool is_loop) {
  struct fe_node *block = new_node(p, FE_BLOCK);
  struct fe_scope scope;
  fe_scope_open(p, &scope, block, is_loop);
  parse_block(p, block);
  fe_scope_close(p);
  return block;
}

/* At `if` or `elseif`. */
static struct fe_node *parse_arm(struct fe_parser *p) {
  struct fe_node *arm = new_node(p, FE_ARM);
  next(p);
  arm->a = parse_expr(p, 0);
  expect(p, FE_T_THEN);
  arm->body = scoped_block(p, false);
  return arm;
}

static struct fe_node *parse_if(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_IF);
  node_list arms = {0};
  do
    VEC_PUSH(p->lex.arena, &arms, parse_arm(p));
  while (now(p) == FE_T_ELSEIF);
  if (accept(p, FE_T_ELSE))
    n->body = scoped_block(p, false);
  expect_match(p, FE_T_END, FE_T_IF, n->line);
  set_list(p, n, &arms);
  return n;
}

static struct fe_node *parse_while(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_WHILE);
  next(p);
  n->a = parse_expr(p, 0);
  expect(p, FE_T_DO);
  n->body = scoped_block(p, true);
  expect_match(p, FE_T_END, FE_T_WHILE, n->line);
  return n;
}

static struct fe_node *parse_repeat(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_REPEAT);
  struct fe_scope scope;
  next(p);
  n->body = new_node(p, FE_BLOCK);
  fe_scope_open(p, &scope, n->body, true);
  parse_block(p, n->body);
  expect_match(p, FE_T_UNTIL, FE_T_REPEAT, n->line);
  n->a = parse_expr(p, 0); /* sees the block's locals */
  fe_scope_close(p);
  return n;
}

/* The body of a `for`, whose variables it declares, up to and with `end`. */
static void parse_for_body(struct fe_parser *p, struct fe_node *n) {
  struct fe_scope scope;
  expect(p, FE_T_DO);
  n->body = new_node(p, FE_BLOCK);
  fe_scope_open(p, &scope, n->body, true);
  for (uint32_t i = 0; i < n->n_vars; i++)
    fe_scope_activate(p, n->vars[i]);
  parse_block(p, n->body);
  fe_scope_close(p);
  expect_match(p, FE_T_END, FE_T_FOR, n->line);
}

static struct fe_node *parse_for(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_FOR_NUM);
  next(p);
  VEC(struct fe_var *) vars = {0};
  do {
    uint32_t line = p->lex.now.line, col = p->lex.now.col;
    VEC_PUSH(p->lex.arena, &vars, fe_scope_var(p, expect_name(p), line, col));
  } while (accept(p, ','));
  n->vars = vars.at;
  n->n_vars = vars.n;
  if (vars.n == 1 && accept(p, '=')) {
    n->a = parse_expr(p, 0);
    expect(p, ',');
    n->b = parse_expr(p, 0);
    if (accept(p, ','))
      n->c = parse_expr(p, 0);
    parse_for_body(p, n);
    return n;
  }
  n->kind = FE_FOR_IN;
  if (!accept(p, FE_T_IN))
    fe_near_error(&p->lex, vars.n == 1 ? "'=' or 'in' expected" : "'in' expected");
  node_list l = {0};
  parse_expr_list(p, &l);
  set_list(p, n, &l);
  struct fe_scope scope; /* keeps the hidden slots below those of the body */
  fe_scope_open(p, &scope, NULL, false);
  n->index = fe_scope_hidden(p, 4);
  parse_for_body(p, n);
  fe_scope_close(p);
  return n;
}

static struct fe_node *parse_function_stat(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_ASSIGN);
  uint32_t line = n->line, col = n->col;
  next(p);
  struct fe_node *target = new_node(p, FE_GLOBAL);
  struct fe_name *name = expect_name(p);
  struct strbuf text = {.arena = p->lex.arena};
  sb_puts(&text, name->s);
  fe_scope_resolve(p, target, name);
  bool is_method = false;
  while (!is_method && (now(p) == '.' || now(p) == ':')) {
    is_method = now(p) == ':';
    next(p);
    struct fe_node *field = new_node(p, FE_FIELD);
    field->u.name = expect_name(p);
    field->a = target;
    sb_printf(&text, "%c%s", is_method ? ':' : '.', field->u.name->s);
    target = field;
  }
  struct fe_node *value = parse_function(p, is_method, sb_str(&text), line, col);
  fe_scope_assign(p, target);
  n->n = n->n2 = 1;
  n->list = arena_copy(p->lex.arena, &target, sizeof target);
  n->list2 = arena_copy(p->lex.arena, &value, sizeof value);
  return n;
}

static struct fe_node *parse_local_function(struct fe_parser *p, struct fe_node *n) {
  n->kind = FE_LOCAL_FUNC;
  uint32_t line = p->lex.now.line, col = p->lex.now.col;
  next(p);
  struct fe_name *name = expect_name(p);
  n->u.var = fe_scope_var(p, name, n->line, n->col);
  fe_scope_activate(p, n->u.var);
  n->a = parse_function(p, false, name->s, line, col);
  return n;
}

static void parse_attribute(struct fe_parser *p, struct fe_var *v) {
  if (!accept(p, '<'))
    return;
  uint32_t line = p->lex.now.line, col = p->lex.now.col;
  struct fe_name *name = expect_name(p);
  expect(p, '>');
  v->is_const = true;
  if (str_eq(name->s, "close"))
    v->is_close = true;
  else if (!str_eq(name->s, "const"))
    fe_lex_error(&p->lex, DIAG_SYNTAX, line, col, "unknown attribute '%s'", name->s);
}

static struct fe_node *parse_local(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_LOCAL_STAT);
  next(p);
  if (now(p) == FE_T_FUNCTION)
    return parse_local_function(p, n);
  VEC(struct fe_var *) vars = {0};
  bool has_close = false;
  do {
    uint32_t line = p->lex.now.line, col = p->lex.now.col;
    struct fe_var *v = fe_scope_var(p, expect_name(p), line, col);
    parse_attribute(p, v);
    if (v->is_close && has_close)
      fe_lex_error(&p->lex, DIAG_SYNTAX, line, col,
                   "multiple to-be-closed variables in local list");
    has_close |= v->is_close;
    VEC_PUSH(p->lex.arena, &vars, v);
  } while (accept(p, ','));
  node_list l = {0};
  if (accept(p, '='))
    parse_expr_list(p, &l);
  set_list(p, n, &l);
  n->vars = vars.at;
  n->n_vars = vars.n;
  n->has_close = has_close;
  p->fs->scope->block->has_close |= has_close;
  for (uint32_t i = 0; i < vars.n; i++) {
    fe_scope_activate(p, vars.at[i]);
    if (i < l.n)
      name_function(l.at[i], vars.at[i]->name);
  }
  return n;
}

static struct fe_node *parse_return(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_RETURN);
  node_list l = {0};
  next(p);
  if (!ends_block(p, true) && now(p) != ';')
    parse_expr_list(p, &l);
  accept(p, ';');
  set_list(p, n, &l);
  return n;
}

static struct fe_node *parse_goto(struct fe_parser *p) {
  struct fe_node *n = new_node(p, FE_GOTO);
  next(p);
  fe_scope_goto(p, n, expect_name(p));
  return n;
}

static void skip_void_statements(struct fe_parser *p, node_list *out);

/* At `::`. Labels and semicolons that follow are read first: whether this label ends its block
 * depends on what comes after them. */
static void parse_label(struct fe_parser *p, node_list *out) {
  struct fe_node *n = new_node(p, FE_LABEL);
  next(p);
  struct fe_label *label = ARENA_NEW(p->lex.arena, struct fe_label);
  label->line = p->lex.now.line;
  label->col = p->lex.now.col;
  label->name = expect_name(p);
  label->block = p->fs->scope->block;
  label->index = out->n;
  n->u.label = label;
  expect(p, FE_T_DBCOLON);
  VEC_PUSH(p->lex.arena, out, n);
  skip_void_statements(p, out);
  fe_scope_label(p, label, ends_block(p, false));
}

static void skip_void_statements(struct fe_parser *p, node_list *out) {
  check_depth(p);
  while (now(p) == ';' || now(p) == FE_T_DBCOLON)
    if (!accept(p, ';'))
      parse_label(p, out);
}

static struct fe_node *parse_expr_stat(struct fe_parser *p) {
  uint32_t line = p->lex.now.line, col = p->lex.now.col;
  struct fe_node *e = parse_suffixed(p);
  if (now(p) != '=' && now(p) != ',') {
    if ((e->kind != FE_CALL && e->kind != FE_METHOD) || e->parens)
      fe_near_error(&p->lex, "syntax error");
    struct fe_node *n = new_node_at(p, FE_CALL_STAT, line, col);
    n->a = e;
    return n;
  }
  node_list targets = {0}, values = {0};
  for (;;) {
    if (e->parens || (e->kind != FE_LOCAL && e->kind != FE_UPVALUE && e->kind != FE_GLOBAL &&
                      e->kind != FE_INDEX && e->kind != FE_FIELD))
      fe_near_error(&p->lex, "syntax error");
    fe_scope_assign(p, e);
    VEC_PUSH(p->lex.arena, &targets, e);
    if (!accept(p, ','))
      break;
    check_depth(p);
    e = parse_suffixed(p);
  }
  expect(p, '=');
  parse_expr_list(p, &values);
  struct fe_node *n = new_node_at(p, FE_ASSIGN, line, col);
  set_list(p, n, &values);
  n->list2 = n->list;
  n->n2 = n->n;
  set_list(p, n, &targets);
  for (uint32_t i = 0; i < targets.n && i < values.n; i++) {
    const struct fe_node *t = targets.at[i];
    if (t->kind != FE_INDEX)
      name_function(values.at[i],
                    t->kind == FE_LOCAL || t->kind == FE_UPVALUE ? t->u.var->name : t->u.name);
  }
  return n;
}

static void parse_statement(struct fe_parser *p, node_list *out) {
  struct fe_node *n;
  uint32_t line = p->lex.now.line;
  check_depth(p);
  switch (now(p)) {
  case ';': next(p); return;
  case FE_T_DBCOLON: parse_label(p, out); return;
  case FE_T_IF: n = parse_if(p); break;
  case FE_T_WHILE: n = parse_while(p); break;
  case FE_T_DO:
    n = new_node(p, FE_DO);
    next(p);
    n->body = scoped_block(p, false);
    expect_match(p, FE_T_END, FE_T_DO, line);
    break;
  case FE_T_FOR: n = parse_for(p); break;
  case FE_T_REPEAT: n = parse_repeat(p); break;
  case FE_T_FUNCTION: n = parse_function_stat(p); break;
  case FE_T_LOCAL: n = parse_local(p); break;
  case FE_T_RETURN: n = parse_return(p); break;
  case FE_T_BREAK:
    n = new_node(p, FE_BREAK);
    if (!fe_scope_in_loop(p))
      fe_lex_error(&p->lex, DIAG_SYNTAX, n->line, n->col, "break outside loop at line %u", n->line);
    next(p);
    break;
  case FE_T_GOTO: n = parse_goto(p); break;
  default: n = parse_expr_stat(p); break;
  }
  VEC_PUSH(p->lex.arena, out, n);
}

static void parse_block(struct fe_parser *p, struct fe_node *block) {
  node_list l = {0};
  while (!ends_block(p, true)) {
    bool is_return = now(p) == FE_T_RETURN;
    parse_statement(p, &l);
    if (is_return)
      break;
  }
  block->n = l.n; /* the list stays where it grew: labels index it */
  block->list = l.at;
}

struct fe_func *fe_parse(struct fe_parser *p, uint32_t file, const char *text, size_t n) {
  struct fe_func *f = ARENA_NEW(p->lex.arena, struct fe_func);
  struct fe_funcstate fs;
  struct fe_scope scope;
  p->env = fe_name_get(p->lex.names, "_ENV", 4);
  p->lex.file = file;
  fe_func_open(p, &fs, f);
  f->is_vararg = true;
  f->line = f->col = 1;
  fe_lex_init(&p->lex, file, text, n);
  f->body = new_node(p, FE_BLOCK);
  fe_scope_open(p, &scope, f->body, false);
  parse_block(p, f->body);
  if (now(p) != FE_T_EOF)
    expected(p, FE_T_EOF);
  fe_scope_close(p);
  fe_func_close(p);
  return f;
}
