/* Ops and blocks of the text format; see parse.h. No recursion: open blocks are on a stack. */
#include "ir/parse.h"

#include "ir/rules.h"
#include "ir/table.h"
#include "ir/text.h"

/* ---- values ---- */

/* Numbers are their own keys; other names are interned. */
static uint64_t value_key(struct ir_parser *p, struct ir_span name) {
  uint64_t n = 0;
  bool number = name.n <= 18 && (name.n == 1 || name.s[0] != '0');
  for (size_t i = 0; number && i < name.n; i++) {
    number = name.s[i] >= '0' && name.s[i] <= '9';
    n = n * 10 + (unsigned char)(name.s[i] - '0');
  }
  return number ? n : UINT64_C(1) << 63 | symtab_intern(p->m->syms, name.s, name.n).id;
}

static bool define(struct ir_parser *p, const struct ir_named *d, struct ir_val v) {
  uint64_t key = value_key(p, d->name);
  if (map_get(&p->values, key))
    return ir_lex_fail(&p->x, d->at, "value %%%.*s is defined twice", IR_SPAN(d->name));
  map_put(&p->values, key, v.id);
  if (v.id) {
    ir_value_at(p->m, v)->name = d->sym;
    ir_value_at(p->m, v)->layout = d->layout;
  }
  return true;
}

static bool read_use(struct ir_parser *p) {
  struct ir_span name;
  if (!ir_lex_value(&p->x, &name))
    return false;
  uint32_t *id = map_get(&p->values, value_key(p, name));
  if (!id)
    return ir_lex_fail(&p->x, name.s - 1, "value %%%.*s is not defined before its use",
                       IR_SPAN(name));
  struct ir_val v = {*id};
  VEC_PUSH(p->m->arena, &p->in, v);
  return true;
}

/* `%name "people's name"` */
static bool read_definition(struct ir_parser *p, struct ir_named *out) {
  *out = (struct ir_named){0};
  if (!ir_lex_value(&p->x, &out->name))
    return false;
  out->at = out->name.s - 1;
  return !ir_lex_is(&p->x, '"') || ir_lex_string(&p->x, p->m, &out->sym);
}

static bool read_type(struct ir_parser *p, struct ir_type *type, uint32_t *layout) {
  return ir_lex_type(&p->x, type) && ir_parse_layout_ref(p, layout);
}

/* `%name: type #layout`, with `= %init` if wanted. */
static bool read_block_arg(struct ir_parser *p, bool with_init) {
  struct ir_named d;
  if (!read_definition(p, &d) || !ir_lex_expect(&p->x, ':', "after a block argument") ||
      !read_type(p, &d.type, &d.layout))
    return false;
  VEC_PUSH(p->m->arena, &p->block_args, d);
  return !with_init ||
         (ir_lex_expect(&p->x, '=', "between a carried value and its initial value") &&
          read_use(p));
}

static bool read_block_args(struct ir_parser *p, bool with_inits) {
  if (!ir_lex_expect(&p->x, '(', "before the arguments"))
    return false;
  if (ir_lex_take(&p->x, ')'))
    return true;
  do {
    if (!read_block_arg(p, with_inits))
      return false;
  } while (ir_lex_take(&p->x, ','));
  return ir_lex_expect(&p->x, ')', "after the arguments");
}

bool ir_parse_block_args(struct ir_parser *p) {
  p->block_args.n = 0;
  return read_block_args(p, false);
}

bool ir_enter_block(struct ir_parser *p, struct ir_block b, struct ir_op owner, uint32_t index) {
  bool ok = true;
  for (uint32_t i = 0; i < p->block_args.n; i++) {
    const struct ir_named *d = &p->block_args.at[i];
    ok = define(p, d, ir_add_arg(p->m, b, d->type)) && ok;
  }
  struct ir_open_block open = {b, owner, index, p->x.line};
  VEC_PUSH(p->m->arena, &p->stack, open);
  if (p->stack.n > IR_MAX_DEPTH + 1 && !p->depth_reported) {
    p->depth_reported = true;
    return ir_lex_fail(&p->x, p->x.start, "blocks are nested deeper than %d", IR_MAX_DEPTH);
  }
  return ok;
}

/* ---- the parts of an op's line ---- */

static bool read_results(struct ir_parser *p) {
  if (!ir_lex_is(&p->x, '%'))
    return true;
  do {
    struct ir_named d;
    if (!read_definition(p, &d))
      return false;
    VEC_PUSH(p->m->arena, &p->results, d);
  } while (ir_lex_take(&p->x, ','));
  return ir_lex_expect(&p->x, '=', "after the results");
}

static bool read_opcode(struct ir_parser *p, enum ir_opcode *opcode, bool *general) {
  struct ir_span w;
  *general = ir_lex_take(&p->x, '"');
  if (!ir_lex_word(&p->x, "an op", &w))
    return false;
  if (!ir_find_opcode(w.s, w.n, opcode))
    return ir_lex_fail(&p->x, w.s, "there is no op `%.*s`", IR_SPAN(w));
  return !*general || ir_lex_expect(&p->x, '"', "after the quoted op");
}

static bool read_res_use(struct ir_parser *p) {
  struct sym name;
  const char *at = p->x.p++;
  if (!ir_lex_name(&p->x, p->m, "a resource's name", &name))
    return false;
  uint32_t *index = map_get(&p->res, name.id);
  if (!index)
    return ir_lex_fail(&p->x, at, "there is no resource $%.40s", ir_sym(p->m, name));
  VEC_PUSH(p->m->arena, &p->res_used, *index);
  return true;
}

/* `$res, ..., %value, ...` */
static bool read_operands(struct ir_parser *p) {
  if (!ir_lex_is(&p->x, '$') && !ir_lex_is(&p->x, '%'))
    return true;
  do {
    if (ir_lex_is(&p->x, '$')) {
      if (p->in.n)
        return ir_lex_fail(&p->x, p->x.p, "resources come before values");
      if (!read_res_use(p))
        return false;
    } else if (!read_use(p)) {
      return false;
    }
  } while (ir_lex_take(&p->x, ','));
  return true;
}

static bool read_const(struct ir_parser *p) {
  struct ir_read_attr a = {.a = {.key = IR_ATTR_value}};
  if (!ir_lex_literal(&p->x, &a.literal))
    return false;
  VEC_PUSH(p->m->arena, &p->attrs, a);
  return true;
}

/* `%i: index = %lo, %hi, %step carry(%a: type = %init, ...)` */
static bool read_for(struct ir_parser *p) {
  if (!read_block_arg(p, false) || !ir_lex_expect(&p->x, '=', "after the loop index") ||
      !read_use(p) || !ir_lex_expect(&p->x, ',', "between start and end of the range") ||
      !read_use(p) || !ir_lex_expect(&p->x, ',', "between end and step of the range") ||
      !read_use(p))
    return false;
  return !ir_lex_take_word(&p->x, "carry") || read_block_args(p, true);
}

static bool read_head(struct ir_parser *p, enum ir_opcode opcode, bool general) {
  if (!general && opcode == IR_FOR)
    return read_for(p);
  if (!general && opcode == IR_WHILE)
    return read_block_args(p, true);
  if (!general && opcode == IR_IF)
    return read_use(p);
  bool bare = ir_lex_end(&p->x) || strchr("{:<@$%", *p->x.p);
  if (opcode == IR_CONST && !bare)
    return read_const(p);
  return read_operands(p);
}

/* One role of a schedule: its name, or `#bit` where the module lists none. */
static bool read_role(struct ir_parser *p, uint32_t *mask) {
  const char *at = p->x.p;
  if (ir_lex_take(&p->x, '#')) {
    int64_t bit;
    if (!ir_lex_int(&p->x, 0, 31, &bit))
      return false;
    *mask |= UINT32_C(1) << bit;
    return true;
  }
  struct sym name;
  if (!ir_lex_name(&p->x, p->m, "a role", &name))
    return false;
  for (uint32_t i = 0; i < p->m->roles.n && i < 32; i++)
    if (p->m->roles.at[i].name.id == name.id) {
      *mask |= UINT32_C(1) << i;
      return true;
    }
  return ir_lex_fail(&p->x, at, "the module lists no role `%.40s`", ir_sym(p->m, name));
}

/* `<load|mma stage 1 order 0>` */
static bool read_sched(struct ir_parser *p, struct ir_sched *out) {
  int64_t stage, order;
  if (!ir_lex_take(&p->x, '<'))
    return true;
  if (!ir_lex_take(&p->x, '-'))
    do {
      if (!read_role(p, &out->role_mask))
        return false;
    } while (ir_lex_take(&p->x, '|'));
  if (!ir_lex_take_word(&p->x, "stage"))
    return ir_lex_fail(&p->x, p->x.p, "`stage N order N` expected after the roles");
  if (!ir_lex_int(&p->x, INT16_MIN, INT16_MAX, &stage))
    return false;
  if (!ir_lex_take_word(&p->x, "order"))
    return ir_lex_fail(&p->x, p->x.p, "`order N` expected after the stage");
  if (!ir_lex_int(&p->x, INT16_MIN, INT16_MAX, &order))
    return false;
  out->stage = (int16_t)stage;
  out->order = (int16_t)order;
  return ir_lex_expect(&p->x, '>', "after the schedule");
}

static bool read_types(struct ir_parser *p) {
  uint32_t n = 0;
  const char *at = p->x.p;
  if (ir_lex_take(&p->x, ':'))
    do {
      struct ir_named d = {0};
      at = p->x.p;
      if (!read_type(p, &d.type, &d.layout))
        return false;
      VEC_PUSH(p->m->arena, &p->types, d.type);
      if (n < p->results.n)
        p->results.at[n].layout = d.layout;
      n++;
    } while (ir_lex_take(&p->x, ','));
  if (n != p->results.n)
    return ir_lex_fail(&p->x, at, "%u results, %u types", p->results.n, n);
  return true;
}

/* ` @"file":line:col`, innermost first; without one, the op's place in this text. */
static bool read_locs(struct ir_parser *p, uint32_t *loc) {
  VEC(struct diag_loc) frames = {0};
  while (ir_lex_take(&p->x, '@')) {
    struct sym name;
    int64_t line, col;
    if (!ir_lex_string(&p->x, p->m, &name) || !ir_lex_expect(&p->x, ':', "between file and line") ||
        !ir_lex_int(&p->x, 0, UINT32_MAX, &line) ||
        !ir_lex_expect(&p->x, ':', "between line and column") ||
        !ir_lex_int(&p->x, 0, UINT32_MAX, &col))
      return false;
    if (name.id != p->last_loc_name.id) {
      p->last_loc_name = name;
      p->last_loc_file = diag_add_file(p->x.diags, ir_sym(p->m, name), NULL, 0);
    }
    struct diag_loc at = {name.id ? p->last_loc_file : 0, (uint32_t)line, (uint32_t)col};
    VEC_PUSH(p->m->arena, &frames, at);
  }
  while (frames.n) {
    *loc = ir_add_loc(p->m, frames.at[frames.n - 1], *loc);
    frames.n--;
  }
  return true;
}

/* ---- ops and blocks ---- */

static bool build_op(struct ir_parser *p, enum ir_opcode opcode, uint32_t loc,
                     const struct ir_sched *sched) {
  struct ir_module *m = p->m;
  if (p->in.n > UINT16_MAX || p->results.n > UINT16_MAX || p->res_used.n > UINT16_MAX)
    return ir_lex_fail(&p->x, p->x.start, "more than %d operands or results", UINT16_MAX);
  const struct ir_res *res = p->res_used.n ? &m->res.at[p->res_used.at[0]] : NULL;
  if (!ir_fit_attrs(p, ir_num_dtype(p->types.n, p->types.at, p->res_used.n, res)))
    return false;
  struct ir_builder b = {m, VEC_LAST(&p->stack).block, {0}, loc};
  struct ir_op o = ir_build(&b, opcode, p->in.n, p->in.at, p->types.n, p->types.at);
  for (uint32_t i = 0; i < p->attrs.n; i++)
    ir_set_attr(m, o, p->attrs.at[i].a);
  if (p->res_used.n)
    ir_set_res(m, o, p->res_used.n, p->res_used.at);
  ir_op_at(m, o)->sched = *sched;
  bool ok = true;
  for (uint32_t i = 0; i < p->results.n; i++)
    ok = define(p, &p->results.at[i], ir_op_at(m, o)->out[i]) && ok;
  if (ir_info(opcode)->n_blocks)
    ok = ir_enter_block(p, ir_op_at(m, o)->blocks[0], o, 0) && ok;
  return ok;
}

static bool parse_op(struct ir_parser *p) {
  p->results.n = p->block_args.n = p->types.n = p->in.n = p->res_used.n = p->attrs.n = 0;
  ir_lex_end(&p->x);
  uint32_t loc = 0;
  struct diag_loc here = ir_lex_at(&p->x, p->x.p);
  enum ir_opcode opcode;
  bool general;
  struct ir_sched sched = {0};
  if (!read_results(p) || !read_opcode(p, &opcode, &general) || !read_head(p, opcode, general) ||
      !ir_parse_attrs(p) || !read_sched(p, &sched) || !read_types(p))
    return false;
  if (ir_info(opcode)->n_blocks && ir_lex_is(&p->x, '(') && !read_block_args(p, false))
    return false;
  if (!read_locs(p, &loc))
    return false;
  if (!ir_info(opcode)->n_blocks) {
    if (!ir_lex_expect_end(&p->x))
      return false;
  } else if (!ir_lex_take_open(&p->x)) {
    return ir_lex_fail(&p->x, p->x.p, "`{` expected at the end of the line: %s owns a block",
                       ir_info(opcode)->name);
  }
  if (!loc)
    loc = ir_add_loc(p->m, here, 0);
  return build_op(p, opcode, loc, &sched);
}

/* `}`, or `} else (args) {` between two blocks of an op. */
static bool parse_block_end(struct ir_parser *p) {
  struct ir_open_block b = VEC_POP(&p->stack);
  ir_lex_take(&p->x, '}');
  if (!b.owner.id) {
    if (ir_lex_end(&p->x) || !p->stack.n)
      return ir_lex_expect_end(&p->x);
    return false; /* between blocks of an op that was already reported */
  }
  const struct ir_opnode *n = ir_op_at(p->m, b.owner);
  const char *joint = ir_block_joint(n->opcode);
  p->block_args.n = 0;
  if (b.index + 1 == n->n_blocks)
    return ir_lex_expect_end(&p->x);
  if (!ir_lex_take_word(&p->x, joint))
    return ir_lex_fail(&p->x, p->x.p, "`%s {` expected: %s owns %u blocks", joint,
                       ir_info(n->opcode)->name, n->n_blocks);
  if (ir_lex_is(&p->x, '(') && !read_block_args(p, false))
    return false;
  if (!ir_lex_take_open(&p->x))
    return ir_lex_fail(&p->x, p->x.p, "`{` expected at the end of the line");
  return ir_enter_block(p, n->blocks[b.index + 1], b.owner, b.index + 1);
}

bool ir_parse_body_line(struct ir_parser *p) {
  return ir_lex_is(&p->x, '}') ? parse_block_end(p) : parse_op(p);
}

/* Does the line end in a `{`, comments aside? Texts in quotes are passed over. */
static bool opens_block(const struct ir_lex *x) {
  bool quoted = false, open = false;
  for (const char *s = x->start; s < x->end; s++) {
    if (*s == '\\' && quoted && s + 1 < x->end)
      s++;
    else if (*s == '"')
      quoted = !quoted, open = false;
    else if (!quoted && *s == ';')
      break;
    else if (*s != ' ' && *s != '\t' && *s != '\r')
      open = !quoted && *s == '{';
  }
  return open;
}

static void poison(struct ir_parser *p, struct ir_span name) {
  uint64_t key = value_key(p, name);
  if (!map_get(&p->values, key))
    map_put(&p->values, key, 0);
}

void ir_parse_recover(struct ir_parser *p) {
  struct ir_lex *x = &p->x;
  /* Results stand before the first `=`, block arguments before a `:`. */
  bool results = memchr(x->start, '=', (size_t)(x->end - x->start)) != NULL;
  for (x->p = x->start; x->p < x->end;) {
    struct ir_span name;
    if (*x->p == '=')
      results = false;
    if (*x->p != '%') {
      x->p++;
      continue;
    }
    name = (struct ir_span){x->p + 1, 0};
    while (name.s + name.n < x->end && name.s[name.n] != '.' && ir_is_word_byte(name.s[name.n]))
      name.n++;
    x->p = name.s + name.n;
    const char *after = x->p;
    while (after < x->end && *after == ' ')
      after++;
    if (name.n && (results || (after < x->end && *after == ':')))
      poison(p, name);
  }
  if (opens_block(x)) {
    /* If the op got as far as opening it, its block is on the stack already. */
    if (p->stack.n && VEC_LAST(&p->stack).line == x->line)
      return;
    struct ir_open_block open = {ir_new_block(p->m, (struct ir_op){0}), {0}, 0, x->line};
    VEC_PUSH(p->m->arena, &p->stack, open);
  }
}
