/* Modules as text; the grammar is in docs/ir.md, the exact inverse in parse.c.
 *
 * Needs nothing of a module but sound links: a module that breaks verifier rules is printed as it
 * is (the runner shows it when a pass went wrong). Not recursive. */
#include "ir/text.h"

#include "base/check.h"
#include "base/dtype.h"
#include "ir/table.h"
#include "ir/verify.h"

#include <math.h>

struct printer {
  const struct ir_module *m;
  struct ir_print_options opt;
  struct strbuf *out;
  uint32_t *number; /* per value: its number in the text + 1, 0 = not yet seen */
  uint32_t n_numbers;
  uint32_t depth;
  const struct ir_notes *notes; /* NULL: none */
};

bool ir_is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

bool ir_is_word(const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!ir_is_word_byte(s[i]))
      return false;
  return n > 0 && s[0] != '.' && !(s[0] >= '0' && s[0] <= '9');
}

/* Bytes of the well-formed UTF-8 sequence at s, 0 if there is none. */
static size_t utf8_length(const unsigned char *s) {
  static const unsigned least[5] = {0, 0, 0x80, 0x800, 0x10000};
  size_t len = s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
  unsigned c = s[0] & (0xffu >> (len + 1));
  for (size_t i = 1; i < len; i++) {
    if (s[i] >> 6 != 2)
      return 0;
    c = c << 6 | (s[i] & 0x3fu);
  }
  return len && (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) ? 0 : len;
}

void ir_put_quoted(struct strbuf *out, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  sb_putc(out, '"');
  while (*s) {
    size_t n = *s >= 0x80 ? utf8_length(s) : 0;
    if (n) {
      sb_put(out, (const char *)s, n);
      s += n;
      continue;
    }
    if (*s == '"' || *s == '\\')
      sb_printf(out, "\\%c", *s);
    else if (*s == '\n')
      sb_puts(out, "\\n");
    else if (*s == '\t')
      sb_puts(out, "\\t");
    else if (*s < 0x20 || *s >= 0x7f)
      sb_printf(out, "\\x%02x", *s);
    else
      sb_putc(out, (char)*s);
    s++;
  }
  sb_putc(out, '"');
}

void ir_put_name(struct strbuf *out, const char *s) {
  if (ir_is_word(s, strlen(s)))
    sb_puts(out, s);
  else
    ir_put_quoted(out, s);
}

void ir_put_double(struct strbuf *out, double x) {
  uint64_t bits, canonical;
  double quiet = (double)NAN;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&canonical, &quiet, sizeof canonical);
  if (isnan(x) && bits != canonical)
    sb_printf(out, "nan:0x%llx", (unsigned long long)bits);
  else
    sb_put_double(out, x);
}

const char *ir_block_joint(enum ir_opcode opcode) {
  return opcode == IR_IF ? "else" : opcode == IR_WHILE ? "do" : "next";
}

enum dtype ir_num_dtype(uint32_t n_out, const struct ir_type *first_out, uint32_t n_res,
                        const struct ir_res *first_res) {
  if (n_out)
    return (enum dtype)first_out->dtype;
  if (n_res && first_res->type.kind != IR_NONE)
    return (enum dtype)first_res->type.dtype;
  return DT_F64;
}

static void put_sym(struct printer *p, struct sym s) {
  ir_put_name(p->out, ir_sym(p->m, s));
}

static void put_expr(struct printer *p, struct expr e) {
  if (e.id)
    expr_print(&p->m->exprs, e, p->out);
  else
    sb_putc(p->out, '?');
}

static void indent(struct printer *p) {
  uint32_t n = p->depth < IR_TEXT_MAX_INDENT ? p->depth : IR_TEXT_MAX_INDENT;
  for (uint32_t i = 0; i < n; i++)
    sb_puts(p->out, "  ");
}

/* ---- values, types, attributes ---- */

static void put_value(struct printer *p, struct ir_val v) {
  if (!v.id || v.id >= p->m->values.n) {
    sb_puts(p->out, "%none");
    return;
  }
  if (!p->number[v.id])
    p->number[v.id] = ++p->n_numbers;
  sb_printf(p->out, "%%%u", p->number[v.id] - 1);
}

static void put_values(struct printer *p, uint32_t n, const struct ir_val *v) {
  for (uint32_t i = 0; i < n; i++) {
    if (i)
      sb_puts(p->out, ", ");
    put_value(p, v[i]);
  }
}

/* Where a value is defined: with its name, if wanted. */
static void put_definition(struct printer *p, struct ir_val v) {
  put_value(p, v);
  struct sym name = ir_value_at(p->m, v)->name;
  if (p->opt.names && name.id) {
    sb_putc(p->out, ' ');
    ir_put_quoted(p->out, ir_sym(p->m, name));
  }
}

static void put_layout(struct printer *p, uint32_t layout) {
  if (layout)
    sb_printf(p->out, " #%u", layout);
}

static void put_type_of(struct printer *p, struct ir_val v) {
  const struct ir_value *x = ir_value_at(p->m, v);
  ir_type_describe(x->type, p->out);
  put_layout(p, x->layout);
}

/* `(%8: index, %9: f32(4))`, with `= init` after each where inits is given. */
static void put_block_args(struct printer *p, uint32_t n, const struct ir_val *args,
                           const struct ir_val *inits) {
  sb_putc(p->out, '(');
  for (uint32_t i = 0; i < n; i++) {
    if (i)
      sb_puts(p->out, ", ");
    put_definition(p, args[i]);
    sb_puts(p->out, ": ");
    put_type_of(p, args[i]);
    if (inits) {
      sb_puts(p->out, " = ");
      put_value(p, inits[i]);
    }
  }
  sb_putc(p->out, ')');
}

static void put_num(struct printer *p, const struct ir_attr *a, enum dtype t) {
  if (dtype_is_float(t))
    ir_put_double(p->out, a->f);
  else if (t == DT_BOOL && (a->i == 0 || a->i == 1))
    sb_puts(p->out, a->i ? "true" : "false");
  else
    sb_printf(p->out, "%lld", (long long)a->i);
}

static void put_attr(struct printer *p, const struct ir_attr *a, enum dtype t) {
  switch (ir_attr_kind_of(a->key)) {
  case IR_AK_INT: sb_printf(p->out, "%lld", (long long)a->i); return;
  case IR_AK_NUM: put_num(p, a, t); return;
  case IR_AK_INTS:
    sb_putc(p->out, '[');
    for (uint32_t i = 0; i < a->n_ints; i++)
      sb_printf(p->out, i ? ",%lld" : "%lld", (long long)a->ints[i]);
    sb_putc(p->out, ']');
    return;
  case IR_AK_SYM: put_sym(p, a->s); return;
  case IR_AK_STR: ir_put_quoted(p->out, ir_sym(p->m, a->s)); return;
  case IR_AK_DTYPE: sb_puts(p->out, dtype_name(a->dtype)); return;
  case IR_AK_EXPR: put_expr(p, a->e); return;
  }
}

/* ` {axis = 0, pad = 1.0}`; attribute `skip` is left out. */
static void put_attrs(struct printer *p, uint32_t n, const struct ir_attr *attrs, enum dtype t,
                      enum ir_attr_key skip) {
  const char *before = " {";
  for (uint32_t i = 0; i < n; i++) {
    if (attrs[i].key == skip)
      continue;
    sb_printf(p->out, "%s%s = ", before, ir_attr_name(attrs[i].key));
    put_attr(p, &attrs[i], t);
    before = ", ";
  }
  if (before[0] == ',')
    sb_putc(p->out, '}');
}

static void put_sched(struct printer *p, const struct ir_sched *s) {
  if (!s->role_mask && !s->stage && !s->order)
    return;
  sb_puts(p->out, " <");
  const char *before = "";
  for (uint32_t i = 0; i < 32; i++) {
    if (!(s->role_mask >> i & 1))
      continue;
    sb_puts(p->out, before);
    if (i < p->m->roles.n)
      put_sym(p, p->m->roles.at[i].name);
    else
      sb_printf(p->out, "#%u", i);
    before = "|";
  }
  if (!s->role_mask)
    sb_putc(p->out, '-');
  sb_printf(p->out, " stage %d order %d>", s->stage, s->order);
}

static void put_locs(struct printer *p, uint32_t loc) {
  while (p->opt.locs && loc && loc < p->m->locs.n) {
    const struct ir_loc *l = &p->m->locs.at[loc];
    sb_puts(p->out, " @");
    ir_put_quoted(p->out, p->opt.files ? diag_file_name(p->opt.files, l->at.file) : "");
    sb_printf(p->out, ":%u:%u", l->at.line, l->at.col);
    if (l->up >= loc) /* callers are recorded before their callees */
      return;
    loc = l->up;
  }
}

/* ---- ops ---- */

static void put_res_name(struct printer *p, uint32_t res) {
  sb_putc(p->out, '$');
  if (res && res < p->m->res.n)
    put_sym(p, p->m->res.at[res].name);
  else
    sb_puts(p->out, "none");
}

/* Resources, then operands. */
static void put_operands(struct printer *p, const struct ir_opnode *n) {
  for (uint32_t i = 0; i < n->n_res; i++) {
    sb_puts(p->out, i ? ", " : " ");
    put_res_name(p, n->res[i]);
  }
  for (uint32_t i = 0; i < n->n_in; i++) {
    sb_puts(p->out, i || n->n_res ? ", " : " ");
    put_value(p, n->in[i]);
  }
}

static const struct ir_blocknode *block_of(const struct printer *p, const struct ir_opnode *n,
                                           uint32_t i) {
  return ir_block_at(p->m, n->blocks[i]);
}

/* Do the operands and the block's arguments match one to one, so that the op's own form can show
 * them beside each other? What does not is shown in the general form, its name in quotes. */
static bool has_own_form(const struct printer *p, const struct ir_opnode *n) {
  if (n->n_res)
    return false;
  if (n->opcode == IR_FOR)
    return n->n_in >= 3 && block_of(p, n, 0)->args.n == n->n_in - 2u;
  if (n->opcode == IR_WHILE)
    return block_of(p, n, 0)->args.n == n->n_in;
  return n->opcode == IR_IF && n->n_in == 1 && !block_of(p, n, 0)->args.n;
}

static enum ir_attr_key put_head(struct printer *p, const struct ir_opnode *n, enum dtype t) {
  const char *name = ir_info(n->opcode)->name;
  if (n->opcode == IR_CONST && n->n_attrs && n->attrs[0].key == IR_ATTR_value && !n->n_in &&
      !n->n_res) {
    sb_printf(p->out, "%s ", name);
    put_num(p, &n->attrs[0], t);
    return IR_ATTR_value;
  }
  if (n->opcode != IR_FOR && n->opcode != IR_WHILE && n->opcode != IR_IF) {
    sb_puts(p->out, name);
    put_operands(p, n);
  } else if (!has_own_form(p, n)) {
    sb_printf(p->out, "\"%s\"", name);
    put_operands(p, n);
  } else if (n->opcode == IR_IF) {
    sb_printf(p->out, "%s ", name);
    put_value(p, n->in[0]);
  } else if (n->opcode == IR_WHILE) {
    sb_printf(p->out, "%s ", name);
    put_block_args(p, n->n_in, block_of(p, n, 0)->args.at, n->in);
  } else {
    const struct ir_blocknode *b = block_of(p, n, 0);
    sb_printf(p->out, "%s ", name);
    put_definition(p, b->args.at[0]);
    sb_puts(p->out, ": ");
    put_type_of(p, b->args.at[0]);
    sb_puts(p->out, " = ");
    put_values(p, 3, n->in);
    if (b->args.n > 1) {
      sb_puts(p->out, " carry");
      put_block_args(p, b->args.n - 1, b->args.at + 1, n->in + 3);
    }
  }
  return IR_ATTR_NONE;
}

/* The op's line without indentation and line end; up to ` {` of its first block. */
static void put_op(struct printer *p, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (i)
      sb_puts(p->out, ", ");
    put_definition(p, n->out[i]);
  }
  if (n->n_out)
    sb_puts(p->out, " = ");
  const struct ir_value *first = n->n_out ? ir_value_at(p->m, n->out[0]) : NULL;
  uint32_t res = n->n_res && n->res[0] < p->m->res.n ? n->res[0] : 0;
  enum dtype t = ir_num_dtype(n->n_out, first ? &first->type : NULL, n->n_res, &p->m->res.at[res]);
  enum ir_attr_key shown = put_head(p, n, t);
  put_attrs(p, n->n_attrs, n->attrs, t, shown);
  put_sched(p, &n->sched);
  for (uint32_t i = 0; i < n->n_out; i++) {
    sb_puts(p->out, i ? ", " : " : ");
    put_type_of(p, n->out[i]);
  }
  bool own = n->n_blocks && has_own_form(p, n);
  if (n->n_blocks && !own && block_of(p, n, 0)->args.n) {
    sb_putc(p->out, ' ');
    put_block_args(p, block_of(p, n, 0)->args.n, block_of(p, n, 0)->args.at, NULL);
  }
  put_locs(p, n->loc);
  if (n->n_blocks)
    sb_puts(p->out, " {");
}

/* `} else (args) {` or `}` where block `b` ends. Returns the op's next block, or 0. */
static struct ir_block put_block_end(struct printer *p, struct ir_block b) {
  const struct ir_opnode *n = ir_op_at(p->m, ir_block_at(p->m, b)->parent);
  uint32_t i = 0;
  while (n->blocks[i].id != b.id)
    i++;
  sb_putc(p->out, '}');
  if (++i == n->n_blocks)
    return (struct ir_block){0};
  sb_printf(p->out, " %s", ir_block_joint(n->opcode));
  const struct ir_blocknode *next = ir_block_at(p->m, n->blocks[i]);
  if (next->args.n) {
    sb_putc(p->out, ' ');
    put_block_args(p, next->args.n, next->args.at, NULL);
  }
  sb_puts(p->out, " {");
  return n->blocks[i];
}

/* Findings about an op, as comments below it. */
static void put_notes(struct printer *p, struct ir_op o) {
  for (uint32_t i = 0; p->notes && i < p->notes->list.n; i++)
    if (p->notes->list.at[i].op.id == o.id)
      sb_printf(p->out, "; ^ %s\n", p->notes->list.at[i].text);
}

static void print_body(struct printer *p) {
  const struct ir_module *m = p->m;
  struct ir_block b = m->body;
  struct ir_op o = ir_block_at(m, b)->first;
  while (o.id || b.id != m->body.id) {
    if (o.id) {
      const struct ir_opnode *n = ir_op_at(m, o);
      indent(p);
      put_op(p, o);
      sb_putc(p->out, '\n');
      put_notes(p, o);
      if (n->n_blocks) {
        p->depth++;
        b = n->blocks[0];
        o = ir_block_at(m, b)->first;
      } else {
        o = n->next;
      }
      continue;
    }
    p->depth--;
    indent(p);
    struct ir_block next = put_block_end(p, b);
    sb_putc(p->out, '\n');
    if (next.id) {
      p->depth++;
      b = next;
      o = ir_block_at(m, b)->first;
    } else {
      const struct ir_opnode *n = ir_op_at(m, ir_block_at(m, b)->parent);
      b = n->block;
      o = n->next;
    }
  }
}

/* ---- the module's head ---- */

static void print_config(struct printer *p) {
  const struct ir_module *m = p->m;
  for (uint32_t i = 0; i < m->config.n; i++) {
    const struct ir_config_entry *e = &m->config.at[i];
    sb_puts(p->out, i ? ", " : "  config ");
    put_sym(p, e->key);
    sb_puts(p->out, " = ");
    switch (e->kind) {
    case IR_CFG_INT: sb_printf(p->out, "%lld", (long long)e->i); break;
    case IR_CFG_NUM: ir_put_double(p->out, e->f); break;
    case IR_CFG_BOOL: sb_puts(p->out, e->i ? "true" : "false"); break;
    case IR_CFG_DTYPE: sb_puts(p->out, dtype_name((enum dtype)e->i)); break;
    case IR_CFG_STR: ir_put_quoted(p->out, ir_sym(m, e->s)); break;
    }
  }
  if (m->config.n)
    sb_putc(p->out, '\n');
}

static void print_args(struct printer *p) {
  static const char *const kinds[] = {"in", "out", "inout", "scalar", "scratch"};
  for (uint32_t i = 0; i < p->m->args.n; i++) {
    const struct ir_arg *a = &p->m->args.at[i];
    sb_puts(p->out, "  arg ");
    put_sym(p, a->name);
    sb_printf(p->out, ": %s%s%s%s %s", a->optional ? "optional " : "", a->present ? "" : "absent ",
              a->zero ? "zero " : "", kinds[a->kind], dtype_name(a->dtype));
    if (a->kind != IR_ARG_SCALAR || a->rank) {
      sb_puts(p->out, " [");
      for (uint32_t k = 0; k < a->rank; k++) {
        if (k)
          sb_puts(p->out, ", ");
        put_expr(p, a->dim[k]);
      }
      sb_putc(p->out, ']');
    }
    sb_putc(p->out, '\n');
  }
}

static void print_syms(struct printer *p, const char *head, uint32_t n, const struct sym *syms) {
  for (uint32_t i = 0; i < n; i++) {
    sb_puts(p->out, i ? ", " : head);
    put_sym(p, syms[i]);
  }
  if (n)
    sb_putc(p->out, '\n');
}

/* `consumer {warps = 8, regs = 240}, producer {warps = 4}` */
static void print_roles(struct printer *p) {
  for (uint32_t i = 0; i < p->m->roles.n; i++) {
    const struct ir_role *r = &p->m->roles.at[i];
    sb_puts(p->out, i ? ", " : "  roles ");
    put_sym(p, r->name);
    if (r->warps)
      sb_printf(p->out, " {warps = %u", r->warps);
    if (r->regs)
      sb_printf(p->out, "%sregs = %u", r->warps ? ", " : " {", r->regs);
    sb_puts(p->out, r->warps || r->regs ? "}" : "");
  }
  if (p->m->roles.n)
    sb_putc(p->out, '\n');
}

static void print_resources(struct printer *p) {
  const struct ir_module *m = p->m;
  for (uint32_t i = 1; i < m->layouts.n; i++) {
    sb_printf(p->out, "  layout #%u = ", i);
    layout_print(m->layouts.at[i], p->out);
    sb_putc(p->out, '\n');
  }
  for (uint32_t i = 1; i < m->res.n; i++) {
    const struct ir_res *r = &m->res.at[i];
    sb_printf(p->out, "  res %s ", ir_res_kind_name(r->kind));
    put_res_name(p, i);
    if (r->type.kind != IR_NONE) {
      sb_puts(p->out, ": ");
      ir_type_describe(r->type, p->out);
    }
    put_layout(p, r->layout);
    put_attrs(p, r->n_attrs, r->attrs, ir_num_dtype(0, NULL, 1, r), IR_ATTR_NONE);
    sb_putc(p->out, '\n');
  }
}

static void print_params(struct printer *p) {
  const struct ir_module *m = p->m;
  for (uint32_t i = 0; i < m->params.n; i++) {
    const struct ir_param *x = &m->params.at[i];
    bool of_arg = false;
    sb_puts(p->out, "  param ");
    switch (x->kind) {
    case RECIPE_PARAM_PTR:
      sb_puts(p->out, "ptr");
      of_arg = true;
      break;
    case RECIPE_PARAM_WORKSPACE: sb_puts(p->out, "workspace"); break;
    case RECIPE_PARAM_I32: sb_puts(p->out, "i32"); break;
    case RECIPE_PARAM_I64: sb_puts(p->out, "i64"); break;
    case RECIPE_PARAM_SCALAR:
      sb_puts(p->out, "scalar");
      of_arg = true;
      break;
    case RECIPE_PARAM_TMAP:
      sb_puts(p->out, "tmap ");
      put_res_name(p, x->res);
      break;
    }
    if (of_arg) {
      sb_putc(p->out, ' ');
      if (x->arg < m->args.n)
        put_sym(p, m->args.at[x->arg].name);
      else
        sb_printf(p->out, "%u", x->arg);
    }
    if (x->value.id) {
      sb_puts(p->out, " = ");
      put_expr(p, x->value);
    }
    sb_putc(p->out, '\n');
  }
}

/* The recipe's own text, four columns in; its end is the `}` two columns in. */
static void print_recipe(struct printer *p) {
  if (!p->m->recipe)
    return;
  struct strbuf text = {.arena = p->out->arena};
  recipe_print(p->m->recipe, &text);
  sb_puts(p->out, "  recipe {\n");
  for (const char *s = sb_str(&text); *s;) {
    size_t n = strcspn(s, "\n");
    sb_puts(p->out, n ? "    " : "");
    sb_put(p->out, s, n);
    sb_putc(p->out, '\n');
    s += n + (s[n] == '\n');
  }
  sb_puts(p->out, "  }\n");
}

void ir_print(const struct ir_module *m, struct ir_print_options opt, struct strbuf *out) {
  ir_print_notes(m, opt, NULL, out);
}

void ir_print_notes(const struct ir_module *m, struct ir_print_options opt,
                    const struct ir_notes *notes, struct strbuf *out) {
  static const char *const stages[] = {"tile", "scheduled", "machine"};
  struct printer p = {.m = m, .opt = opt, .out = out, .depth = 2, .notes = notes};
  p.number = ARENA_ARRAY(out->arena, uint32_t, m->values.n);
  sb_printf(out, "kiln-ir %d %s\nkernel ", IR_VERSION, stages[m->stage]);
  put_sym(&p, m->kernel);
  sb_puts(out, " {\n");
  put_notes(&p, (struct ir_op){0});
  print_syms(&p, "  target ", m->target.id != 0, &m->target);
  print_config(&p);
  print_args(&p);
  print_syms(&p, "  dims ", m->dims.n, m->dims.at);
  for (uint32_t i = 0; i < m->facts.n; i++) {
    const struct ir_fact *f = &m->facts.at[i];
    sb_puts(out, "  fact ");
    put_sym(&p, f->sym);
    sb_printf(out, f->is_value ? " = %lld\n" : " %% %lld\n", (long long)f->n);
  }
  for (uint32_t i = 0; i < m->n_grid; i++) {
    sb_puts(out, i ? ", " : "  grid ");
    put_expr(&p, m->grid[i]);
  }
  if (m->n_grid)
    sb_putc(out, '\n');
  print_roles(&p);
  print_resources(&p);
  print_params(&p);
  print_recipe(&p);
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  sb_puts(out, "  body");
  put_block_args(&p, body->args.n, body->args.at, NULL);
  sb_puts(out, " {\n");
  print_body(&p);
  sb_puts(out, "  }\n}\n");
}
