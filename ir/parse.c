/* The text format back into a module; the grammar is in docs/ir.md, the inverse in print.c.
 *
 * Line by line: an error ends its line, not the text, so many come out at once. What a bad line
 * would have defined counts as defined, so that one mistake gives one error. Names must be unique
 * and defined before use; every other rule is the verifier's. */
#include "ir/parse.h"

#include "ir/table.h"
#include "ir/text.h"

/* The next line that is neither blank nor a comment. */
static bool next_line(struct ir_parser *p) {
  while (p->next < p->end) {
    const char *nl = memchr(p->next, '\n', (size_t)(p->end - p->next));
    p->x.start = p->x.p = p->next;
    p->x.end = nl ? nl : p->end;
    p->next = nl ? nl + 1 : p->end;
    p->x.line++;
    p->x.failed = false;
    if (!ir_lex_end(&p->x))
      return true;
  }
  return false;
}

/* ---- parts used by head and ops ---- */

bool ir_parse_layout_ref(struct ir_parser *p, uint32_t *out) {
  int64_t n;
  *out = 0;
  ir_lex_end(&p->x);
  const char *at = p->x.p;
  if (!ir_lex_take(&p->x, '#'))
    return true;
  if (!ir_lex_int(&p->x, 1, UINT32_MAX, &n))
    return false;
  uint32_t *index = map_get(&p->layouts, (uint64_t)n);
  if (!index)
    return ir_lex_fail(&p->x, at, "there is no layout #%lld", (long long)n);
  *out = *index;
  return true;
}

static bool read_ints(struct ir_parser *p, struct ir_attr *a) {
  VEC(int64_t) v = {0};
  if (!ir_lex_expect(&p->x, '[', "before a list of numbers"))
    return false;
  if (!ir_lex_take(&p->x, ']')) {
    do {
      int64_t n;
      if (!ir_lex_int(&p->x, INT64_MIN, INT64_MAX, &n))
        return false;
      VEC_PUSH(p->m->arena, &v, n);
    } while (ir_lex_take(&p->x, ','));
    if (!ir_lex_expect(&p->x, ']', "after a list of numbers"))
      return false;
  }
  a->ints = v.at;
  a->n_ints = v.n;
  return true;
}

static bool read_attr_value(struct ir_parser *p, struct ir_read_attr *r) {
  struct ir_attr *a = &r->a;
  switch (ir_attr_kind_of(a->key)) {
  case IR_AK_INT: return ir_lex_int(&p->x, INT64_MIN, INT64_MAX, &a->i);
  case IR_AK_NUM: return ir_lex_literal(&p->x, &r->literal);
  case IR_AK_INTS: return read_ints(p, a);
  case IR_AK_SYM: return ir_lex_name(&p->x, p->m, "a word", &a->s);
  case IR_AK_STR: return ir_lex_string(&p->x, p->m, &a->s);
  case IR_AK_DTYPE: return ir_lex_dtype(&p->x, &a->dtype);
  case IR_AK_EXPR: return ir_lex_expr(&p->x, p->m, '}', &a->e);
  }
  return false;
}

bool ir_parse_attrs(struct ir_parser *p) {
  const char *back = p->x.p;
  if (ir_lex_take_open(&p->x)) { /* the block's */
    p->x.p = back;
    return true;
  }
  if (!ir_lex_take(&p->x, '{'))
    return true;
  do {
    struct ir_span w;
    struct ir_read_attr r = {0};
    if (!ir_lex_word(&p->x, "an attribute", &w))
      return false;
    if (!ir_find_attr(w.s, w.n, &r.a.key))
      return ir_lex_fail(&p->x, w.s, "there is no attribute `%.*s`", IR_SPAN(w));
    for (uint32_t i = 0; i < p->attrs.n; i++)
      if (p->attrs.at[i].a.key == r.a.key)
        return ir_lex_fail(&p->x, w.s, "attribute `%.*s` is given twice", IR_SPAN(w));
    if (!ir_lex_expect(&p->x, '=', "after an attribute") || !read_attr_value(p, &r))
      return false;
    VEC_PUSH(p->m->arena, &p->attrs, r);
  } while (ir_lex_take(&p->x, ','));
  return ir_lex_expect(&p->x, '}', "after the attributes");
}

bool ir_fit_attrs(struct ir_parser *p, enum dtype t) {
  for (uint32_t i = 0; i < p->attrs.n; i++) {
    struct ir_read_attr *r = &p->attrs.at[i];
    if (ir_attr_kind_of(r->a.key) == IR_AK_NUM && !ir_literal_fit(&p->x, &r->literal, t, &r->a))
      return false;
  }
  return true;
}

/* ---- the module's head ---- */

static bool read_config(struct ir_parser *p) {
  p->m->at.config = ir_lex_at(&p->x, p->x.start);
  do {
    struct ir_config_entry e = {0};
    struct ir_literal l;
    enum dtype t;
    if (!ir_lex_name(&p->x, p->m, "a config key", &e.key) ||
        !ir_lex_expect(&p->x, '=', "after a config key"))
      return false;
    if (ir_lex_is(&p->x, '"')) {
      e.kind = IR_CFG_STR;
      if (!ir_lex_string(&p->x, p->m, &e.s))
        return false;
    } else if (ir_lex_take_dtype(&p->x, &t)) {
      e.kind = IR_CFG_DTYPE;
      e.i = t;
    } else {
      if (!ir_lex_literal(&p->x, &l))
        return false;
      e.kind = l.is_bool ? IR_CFG_BOOL : l.is_float ? IR_CFG_NUM : IR_CFG_INT;
      e.i = l.i;
      e.f = l.f;
    }
    VEC_PUSH(p->m->arena, &p->m->config, e);
  } while (ir_lex_take(&p->x, ','));
  return true;
}

static bool read_arg_dims(struct ir_parser *p, struct ir_arg *a) {
  if (ir_lex_take(&p->x, ']'))
    return true;
  do {
    if (a->rank == IR_MAX_RANK)
      return ir_lex_fail(&p->x, p->x.p, "more than %d dims", IR_MAX_RANK);
    if (!ir_lex_expr(&p->x, p->m, ']', &a->dim[a->rank++]))
      return false;
  } while (ir_lex_take(&p->x, ','));
  return ir_lex_expect(&p->x, ']', "after the dims");
}

static bool read_arg(struct ir_parser *p) {
  struct ir_arg a = {.present = true};
  ir_lex_end(&p->x);
  const char *at = p->x.p;
  a.at = ir_lex_at(&p->x, at);
  if (!ir_lex_name(&p->x, p->m, "an argument's name", &a.name) ||
      !ir_lex_expect(&p->x, ':', "after an argument's name"))
    return false;
  a.optional = ir_lex_take_word(&p->x, "optional");
  a.present = !ir_lex_take_word(&p->x, "absent");
  a.zero = ir_lex_take_word(&p->x, "zero");
  if (ir_lex_take_word(&p->x, "in"))
    a.kind = IR_ARG_IN;
  else if (ir_lex_take_word(&p->x, "out"))
    a.kind = IR_ARG_OUT;
  else if (ir_lex_take_word(&p->x, "inout"))
    a.kind = IR_ARG_INOUT;
  else if (ir_lex_take_word(&p->x, "scalar"))
    a.kind = IR_ARG_SCALAR;
  else if (ir_lex_take_word(&p->x, "scratch"))
    a.kind = IR_ARG_SCRATCH;
  else
    return ir_lex_fail(&p->x, p->x.p, "in, out, inout, scalar or scratch expected");
  if (!ir_lex_dtype(&p->x, &a.dtype))
    return false;
  if (ir_lex_take(&p->x, '[')) {
    if (!read_arg_dims(p, &a))
      return false;
  } else if (a.kind != IR_ARG_SCALAR) {
    return ir_lex_expect(&p->x, '[', "before the dims of a tensor");
  }
  if (map_get(&p->args, a.name.id))
    return ir_lex_fail(&p->x, at, "argument `%.40s` is there twice", ir_sym(p->m, a.name));
  map_put(&p->args, a.name.id, p->m->args.n);
  VEC_PUSH(p->m->arena, &p->m->args, a);
  return true;
}

static bool read_fact(struct ir_parser *p) {
  ir_lex_end(&p->x);
  struct ir_fact f = {.at = ir_lex_at(&p->x, p->x.p)};
  if (!ir_lex_name(&p->x, p->m, "a launch symbol", &f.sym))
    return false;
  f.is_value = ir_lex_take(&p->x, '=');
  if (!f.is_value && !ir_lex_take(&p->x, '%'))
    return ir_lex_fail(&p->x, p->x.p, "`%% divisor` or `= value` expected after the symbol");
  if (!ir_lex_int(&p->x, INT64_MIN, INT64_MAX, &f.n))
    return false;
  VEC_PUSH(p->m->arena, &p->m->facts, f);
  return true;
}

static bool read_grid(struct ir_parser *p) {
  if (p->m->n_grid)
    return ir_lex_fail(&p->x, p->x.p, "the grid is there twice");
  ir_lex_end(&p->x);
  p->m->at.grid = ir_lex_at(&p->x, p->x.p);
  do {
    if (p->m->n_grid == IR_MAX_GRID)
      return ir_lex_fail(&p->x, p->x.p, "a grid has at most %d axes", IR_MAX_GRID);
    if (!ir_lex_expr(&p->x, p->m, 0, &p->m->grid[p->m->n_grid]))
      return false;
    p->m->n_grid++;
  } while (ir_lex_take(&p->x, ','));
  return true;
}

static bool read_layout(struct ir_parser *p) {
  int64_t n;
  ir_lex_end(&p->x);
  const char *at = p->x.p, *error;
  if (!ir_lex_expect(&p->x, '#', "before the layout's number") ||
      !ir_lex_int(&p->x, 1, UINT32_MAX, &n) ||
      !ir_lex_expect(&p->x, '=', "after the layout's number"))
    return false;
  if (map_get(&p->layouts, (uint64_t)n))
    return ir_lex_fail(&p->x, at, "layout #%lld is there twice", (long long)n);
  const struct layout *l = layout_parse(p->m->arena, p->x.p, p->x.end, &p->x.p, &error);
  if (!l)
    return ir_lex_fail(&p->x, p->x.p, "%s", error);
  map_put(&p->layouts, (uint64_t)n, ir_add_layout(p->m, l));
  return true;
}

static bool read_res(struct ir_parser *p) {
  struct ir_res r = {0};
  struct ir_span w;
  if (!ir_lex_word(&p->x, "a kind of resource", &w))
    return false;
  if (!ir_find_res_kind(w.s, w.n, &r.kind))
    return ir_lex_fail(&p->x, w.s, "there is no resource kind `%.*s`", IR_SPAN(w));
  if (!ir_lex_expect(&p->x, '$', "before the resource's name"))
    return false;
  const char *at = p->x.p;
  if (!ir_lex_name(&p->x, p->m, "a resource's name", &r.name))
    return false;
  if (map_get(&p->res, r.name.id))
    return ir_lex_fail(&p->x, at, "resource $%.40s is there twice", ir_sym(p->m, r.name));
  if (ir_lex_take(&p->x, ':') && !ir_lex_type(&p->x, &r.type))
    return false;
  p->attrs.n = 0;
  if (!ir_parse_layout_ref(p, &r.layout) || !ir_parse_attrs(p) ||
      !ir_fit_attrs(p, ir_num_dtype(0, NULL, 1, &r)))
    return false;
  struct ir_attr *attrs = ARENA_ARRAY(p->m->arena, struct ir_attr, p->attrs.n);
  for (uint32_t i = 0; i < p->attrs.n; i++)
    attrs[i] = p->attrs.at[i].a;
  r.attrs = attrs;
  r.n_attrs = (uint16_t)p->attrs.n;
  map_put(&p->res, r.name.id, ir_add_res(p->m, r));
  return true;
}

/* `$name` of a resource that is there. */
static bool read_res_ref(struct ir_parser *p, uint32_t *out) {
  struct sym name;
  if (!ir_lex_expect(&p->x, '$', "before the resource's name"))
    return false;
  const char *at = p->x.p;
  if (!ir_lex_name(&p->x, p->m, "a resource's name", &name))
    return false;
  uint32_t *index = map_get(&p->res, name.id);
  if (!index)
    return ir_lex_fail(&p->x, at, "there is no resource $%.40s", ir_sym(p->m, name));
  *out = *index;
  return true;
}

static bool read_param(struct ir_parser *p) {
  struct ir_param x = {0};
  bool of_arg = false;
  if (ir_lex_take_word(&p->x, "ptr")) {
    x.kind = RECIPE_PARAM_PTR;
    of_arg = true;
  } else if (ir_lex_take_word(&p->x, "scalar")) {
    x.kind = RECIPE_PARAM_SCALAR;
    of_arg = true;
  } else if (ir_lex_take_word(&p->x, "workspace")) {
    x.kind = RECIPE_PARAM_WORKSPACE;
  } else if (ir_lex_take_word(&p->x, "i32")) {
    x.kind = RECIPE_PARAM_I32;
  } else if (ir_lex_take_word(&p->x, "i64")) {
    x.kind = RECIPE_PARAM_I64;
  } else if (ir_lex_take_word(&p->x, "tmap")) {
    x.kind = RECIPE_PARAM_TMAP;
    if (!read_res_ref(p, &x.res))
      return false;
  } else {
    return ir_lex_fail(&p->x, p->x.p, "ptr, scalar, tmap, workspace, i32 or i64 expected");
  }
  if (of_arg) {
    struct sym name;
    ir_lex_end(&p->x);
    const char *at = p->x.p;
    if (!ir_lex_name(&p->x, p->m, "an argument's name", &name))
      return false;
    uint32_t *index = map_get(&p->args, name.id);
    if (!index)
      return ir_lex_fail(&p->x, at, "there is no argument `%.40s`", ir_sym(p->m, name));
    x.arg = *index;
  }
  if (ir_lex_take(&p->x, '=') && !ir_lex_expr(&p->x, p->m, 0, &x.value))
    return false;
  VEC_PUSH(p->m->arena, &p->m->params, x);
  return true;
}

static size_t leading_blanks(const char *s, const char *end) {
  size_t n = 0;
  while (s + n < end && s[n] == ' ')
    n++;
  return n;
}

/* The recipe's lines, up to the `}` that is indented no further than `recipe {`; handed to its own
 * parser without that indentation and two columns more. */
static bool read_recipe(struct ir_parser *p) {
  uint32_t first_line = p->x.line;
  const char *opened = p->x.start;
  size_t column = leading_blanks(p->x.start, p->x.end);
  if (!ir_lex_take_open(&p->x))
    return ir_lex_fail(&p->x, p->x.p, "`{` expected after `recipe`");
  struct strbuf text = {.arena = p->m->arena};
  bool closed = false;
  while (!closed && p->next < p->end) {
    const char *nl = memchr(p->next, '\n', (size_t)(p->end - p->next));
    const char *start = p->next, *end = nl ? nl : p->end;
    size_t blanks = leading_blanks(start, end);
    p->next = nl ? nl + 1 : p->end;
    p->x.line++;
    closed = blanks <= column && start + blanks < end && start[blanks] == '}';
    size_t cut = blanks < column + 2 ? blanks : column + 2;
    if (!closed) {
      sb_put(&text, start + cut, (size_t)(end - start) - cut);
      sb_putc(&text, '\n');
    } else {
      p->x.start = start;
      p->x.p = start + blanks + 1;
      p->x.end = end;
    }
  }
  if (!closed) {
    p->x.line = first_line;
    p->x.start = p->x.p = p->x.end = opened;
    return ir_lex_fail(&p->x, opened, "the recipe that begins here has no end");
  }
  if (p->m->recipe)
    return ir_lex_fail(&p->x, p->x.start, "a second recipe ends here; there may be one");
  struct diag_sink *diags = p->x.diags;
  uint32_t first = diags->list.n, errors = diags->n_errors;
  p->m->recipe = recipe_parse(p->m->arena, p->m->syms, diags, p->x.file, sb_str(&text), text.n);
  for (uint32_t i = first; i < diags->list.n; i++)
    if (diags->list.at[i].loc.line) {
      diags->list.at[i].loc.line += first_line;
      if (diags->list.at[i].loc.col)
        diags->list.at[i].loc.col += (uint32_t)column + 2;
    }
  if (!p->m->recipe && diags->n_errors == errors)
    return ir_lex_fail(&p->x, p->x.start, "the recipe cannot be read");
  if (!p->m->recipe)
    p->x.any_failed = true;
  return true;
}

static bool read_names(struct ir_parser *p, const char *what,
                       void (*add)(struct ir_module *, struct sym)) {
  do {
    struct sym s;
    if (!ir_lex_name(&p->x, p->m, what, &s))
      return false;
    add(p->m, s);
  } while (ir_lex_take(&p->x, ','));
  return true;
}

static void add_dim(struct ir_module *m, struct sym s) {
  VEC_PUSH(m->arena, &m->dims, s);
}

/* `{warps = 8, regs = 240}` */
static bool read_role_attrs(struct ir_parser *p, struct ir_role *r) {
  if (!ir_lex_take(&p->x, '{'))
    return true;
  do {
    bool warps = ir_lex_take_word(&p->x, "warps");
    if (!warps && !ir_lex_take_word(&p->x, "regs"))
      return ir_lex_fail(&p->x, p->x.p, "`warps = N` or `regs = N` expected");
    uint32_t *to = warps ? &r->warps : &r->regs;
    const char *at = p->x.p;
    int64_t n;
    if (!ir_lex_expect(&p->x, '=', "after warps or regs") || !ir_lex_int(&p->x, 1, 1024, &n))
      return false;
    if (*to)
      return ir_lex_fail(&p->x, at, "`%s` is given twice", warps ? "warps" : "regs");
    *to = (uint32_t)n;
  } while (ir_lex_take(&p->x, ','));
  return ir_lex_expect(&p->x, '}', "after a role's warps and regs");
}

static bool read_target(struct ir_parser *p) {
  if (p->m->target.id)
    return ir_lex_fail(&p->x, p->x.p, "the target is there twice");
  return ir_lex_name(&p->x, p->m, "a target", &p->m->target);
}

static bool read_dims(struct ir_parser *p) {
  p->m->at.dims = ir_lex_at(&p->x, p->x.start);
  return read_names(p, "a dim's name", add_dim);
}

static bool read_roles(struct ir_parser *p) {
  p->m->at.roles = ir_lex_at(&p->x, p->x.start);
  do {
    struct ir_role r = {0};
    if (!ir_lex_name(&p->x, p->m, "a role's name", &r.name) || !read_role_attrs(p, &r))
      return false;
    VEC_PUSH(p->m->arena, &p->m->roles, r);
  } while (ir_lex_take(&p->x, ','));
  return true;
}

static const struct {
  const char *word;
  bool (*read)(struct ir_parser *p);
} head_lines[] = {
    {"target", read_target}, {"config", read_config}, {"arg", read_arg},
    {"dims", read_dims},     {"fact", read_fact},     {"grid", read_grid},
    {"roles", read_roles},   {"layout", read_layout}, {"res", read_res},
    {"param", read_param},   {"recipe", read_recipe},
};

static bool parse_head_line(struct ir_parser *p) {
  for (size_t i = 0; i < sizeof head_lines / sizeof head_lines[0]; i++)
    if (ir_lex_take_word(&p->x, head_lines[i].word))
      return head_lines[i].read(p) && ir_lex_expect_end(&p->x);
  return ir_lex_fail(&p->x, p->x.p,
                     "target, config, arg, dims, fact, grid, roles, layout, res, param, recipe or "
                     "body expected");
}

static bool parse_body_head(struct ir_parser *p) {
  ir_lex_end(&p->x);
  p->m->at.body = ir_lex_at(&p->x, p->x.p);
  if (!ir_parse_block_args(p))
    return false;
  if (!ir_lex_take_open(&p->x))
    return ir_lex_fail(&p->x, p->x.p, "`{` expected at the end of the line");
  return ir_enter_block(p, p->m->body, (struct ir_op){0}, 0);
}

/* ---- the text ---- */

static bool parse_first_line(struct ir_parser *p) {
  static const char *const stages[] = {"tile", "scheduled", "machine"};
  struct ir_lex *x = &p->x;
  int64_t version;
  if (!next_line(p) || x->line != 1)
    return ir_lex_fail(x, x->p, "line 1 must be `kiln-ir %d tile|scheduled|machine`", IR_VERSION);
  struct ir_lex word = *x;
  while (word.p < word.end && (ir_is_word_byte(*word.p) || *word.p == '-'))
    word.p++;
  if (word.p - x->p != 7 || memcmp(x->p, "kiln-ir", 7) != 0)
    return ir_lex_fail(x, x->p, "line 1 must be `kiln-ir %d tile|scheduled|machine`", IR_VERSION);
  x->p = word.p;
  if (!ir_lex_int(x, 0, INT64_MAX, &version))
    return false;
  if (version != IR_VERSION)
    return ir_lex_fail(x, x->p, "version %lld of the text format; this Kiln reads version %d",
                       (long long)version, IR_VERSION);
  for (unsigned i = 0; i < 3; i++)
    if (ir_lex_take_word(x, stages[i])) {
      p->m->stage = (enum ir_stage)i;
      return ir_lex_expect_end(x);
    }
  return ir_lex_fail(x, x->p, "tile, scheduled or machine expected");
}

static bool parse_kernel_line(struct ir_parser *p) {
  p->m->at.kernel = ir_lex_at(&p->x, p->x.start);
  if (!ir_lex_take_word(&p->x, "kernel"))
    return ir_lex_fail(&p->x, p->x.p, "`kernel NAME {` expected");
  if (!ir_lex_name(&p->x, p->m, "the kernel's name", &p->m->kernel))
    return false;
  return ir_lex_take_open(&p->x) ||
         ir_lex_fail(&p->x, p->x.p, "`{` expected after the kernel's name");
}

/* Lines up to and with the one that opens the body. False: there is no body. */
static bool parse_head(struct ir_parser *p) {
  bool kernel = false;
  while (next_line(p)) {
    if (!kernel) {
      kernel = true;
      parse_kernel_line(p); /* if it is wrong, what follows is read all the same */
    } else if (ir_lex_take_word(&p->x, "body")) {
      if (!parse_body_head(p))
        ir_parse_recover(p);
      return p->stack.n > 0;
    } else {
      parse_head_line(p);
    }
  }
  return ir_lex_fail(&p->x, p->x.p, "the text ends before the kernel's body");
}

static void parse_text(struct ir_parser *p) {
  if (!parse_first_line(p) || !parse_head(p))
    return;
  struct ir_open_block inner = VEC_LAST(&p->stack);
  while (p->stack.n && next_line(p)) {
    if (!ir_parse_body_line(p))
      ir_parse_recover(p);
    if (p->stack.n)
      inner = VEC_LAST(&p->stack);
  }
  if (p->stack.n) {
    p->x.failed = false;
    ir_lex_fail(&p->x, p->x.end, "the text ends inside the block opened on line %u", inner.line);
  } else if (!next_line(p)) {
    ir_lex_fail(&p->x, p->x.end, "`}` expected: the kernel has no end");
  } else if (!ir_lex_take(&p->x, '}')) {
    ir_lex_fail(&p->x, p->x.p, "`}` expected: the kernel ends after its body");
  } else if (ir_lex_expect_end(&p->x) && next_line(p)) {
    ir_lex_fail(&p->x, p->x.p, "the text goes on after the kernel's end");
  }
}

struct ir_module *ir_parse(struct arena *a, struct diag_sink *diags, uint32_t file,
                           const char *text, size_t n) {
  struct ir_parser p = {.m = ir_module_new(a, IR_TILE_STAGE), .next = text, .end = text + n};
  p.x = (struct ir_lex){.arena = a, .diags = diags, .file = file, .start = text, .p = text};
  p.x.end = text;
  map_init(&p.values, a);
  map_init(&p.layouts, a);
  map_init(&p.res, a);
  map_init(&p.args, a);
  parse_text(&p);
  return p.x.any_failed ? NULL : p.m;
}
