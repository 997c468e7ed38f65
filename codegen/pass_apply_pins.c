/* Names the ops that a schedule decides about, and writes what the author pinned into them.
 *
 * Before: tile IR; pins are entries "schedule.<label>.<field>" of the config. After: loops, loads,
 * stores and dots have a label, stable under changes of the config: `loop`, `dot`, `load.A`,
 * `store.C`, and `.2`, `.3` for further ones of the same name, in program order. Pinned fields
 * (pins.def) are attributes of their ops, which the passes that follow keep, or refuse where they
 * are not legal. */
#include "base/check.h"
#include "base/map.h"
#include "codegen/pass.h"
#include "codegen/schedule.h"

#include <stdio.h>

enum kind { WORD, SLOTS, PAIR };

struct field {
  enum ir_opcode opcode;
  const char *name;
  enum ir_attr_key attr;
  enum kind kind;
  const char *words, *meaning;
};

static const struct field fields[] = {
#define PIN(id, op, field, kind, words, meaning)                                                   \
  {IR_##op, #field, IR_ATTR_##field, kind, words, meaning},
#include "codegen/pins.def"
};
#define N_FIELDS (sizeof fields / sizeof *fields)

/* ---- labels ---- */

struct namer {
  struct arena *a;
  struct map seen; /* label without its number -> how many so far */
  VEC(struct ir_op) ops;
};

static const char *base_name(const struct ir_module *m, struct ir_op o, struct arena *a) {
  const struct ir_opnode *n = ir_op_at(m, o);
  uint32_t arg;
  switch ((int)n->opcode) {
  case IR_FOR: return "loop";
  case IR_DOT: return "dot";
  case IR_LOAD:
  case IR_STORE:
    if (ir_view_arg(m, n->in[0], &arg))
      return arena_printf(a, "%s.%s", n->opcode == IR_LOAD ? "load" : "store",
                          ir_sym(m, m->args.at[arg].name));
  }
  return NULL;
}

static void name_op(void *user, struct ir_module *m, struct ir_op o) {
  struct namer *x = user;
  const char *label = base_name(m, o, x->a);
  if (!label)
    return;
  uint64_t key = symtab_get(m->syms, label).id;
  const uint32_t *seen = map_get(&x->seen, key);
  uint32_t count = seen ? *seen + 1 : 1;
  map_put(&x->seen, key, count);
  if (count > 1)
    label = arena_printf(x->a, "%s.%u", label, count);
  cg_set_word(m, o, IR_ATTR_label, label);
  VEC_PUSH(x->a, &x->ops, o);
}

/* ---- pins ---- */

static bool has_word(const char *words, const char *word) {
  size_t n = strlen(word);
  for (const char *p = words; *p;) {
    size_t k = strcspn(p, " ");
    if (k == n && memcmp(p, word, n) == 0)
      return true;
    p += k + (p[k] == ' ');
  }
  return false;
}

/* "frag cp_async staged" as people read it. */
static const char *list_words(struct arena *a, const char *words) {
  struct strbuf b = {.arena = a};
  for (const char *p = words; *p; p++)
    sb_puts(&b, *p == ' ' ? ", " : arena_printf(a, "%c", *p));
  return sb_str(&b);
}

static struct ir_op find_label(const struct ir_module *m, const struct namer *x, const char *label,
                               size_t n) {
  for (uint32_t i = 0; i < x->ops.n; i++) {
    const char *l = cg_attr_word(m, x->ops.at[i], IR_ATTR_label);
    if (strlen(l) == n && memcmp(l, label, n) == 0)
      return x->ops.at[i];
  }
  return (struct ir_op){0};
}

static void refuse_label(const struct ir_module *m, struct ir_pass_ctx *ctx, const struct namer *x,
                         const char *key) {
  struct strbuf names = {.arena = ctx->scratch};
  for (uint32_t i = 0; i < x->ops.n; i++)
    sb_printf(&names, i ? ", %s" : "%s", cg_attr_word(m, x->ops.at[i], IR_ATTR_label));
  diag_report(ctx->diags, DIAG_ERROR, DIAG_CONFIG, m->at.kernel,
              "schedule `%s`: neither a knob nor a field of an op; ops are %s", key,
              names.n ? sb_str(&names) : "none");
}

/* The field of an op, or NULL after saying what there is. */
static const struct field *find_field(const struct ir_module *m, struct ir_pass_ctx *ctx,
                                      struct ir_op o, const char *key, const char *name) {
  enum ir_opcode opcode = ir_op_at(m, o)->opcode;
  struct strbuf names = {.arena = ctx->scratch};
  for (size_t i = 0; i < N_FIELDS; i++) {
    if (fields[i].opcode != opcode)
      continue;
    if (str_eq(fields[i].name, name))
      return &fields[i];
    sb_printf(&names, names.n ? ", %s" : "%s", fields[i].name);
  }
  cg_error(m, ctx->diags, o, DIAG_CONFIG, "schedule `%s`: %s has no field `%s`; it has %s", key,
           cg_attr_word(m, o, IR_ATTR_label), name, sb_str(&names));
  return NULL;
}

/* "2x4" */
static bool read_pair(const char *text, int64_t pair[2]) {
  int end = 0, m, n;
  if (sscanf(text, "%2dx%2d%n", &m, &n, &end) != 2 || text[end] || m < 1 || n < 1)
    return false;
  pair[0] = m;
  pair[1] = n;
  return true;
}

/* Writes the value into the op; false where it is not one of the field. */
static bool put_value(struct ir_module *m, struct ir_op o, const struct field *f,
                      const struct ir_config_entry *e) {
  int64_t pair[2];
  const char *word = e->kind == IR_CFG_STR ? ir_sym(m, e->s) : NULL;
  switch (f->kind) {
  case WORD:
    if (!word || !has_word(f->words, word))
      return false;
    cg_set_word(m, o, f->attr, word);
    return true;
  case SLOTS:
    if (e->kind != IR_CFG_INT || e->i < 1 || e->i > 8)
      return false;
    cg_set_int(m, o, f->attr, e->i);
    return true;
  case PAIR:
    if (!word || !read_pair(word, pair))
      return false;
    cg_set_ints(m, o, f->attr, 2, pair);
    return true;
  }
  KILN_UNREACHABLE();
}

static const char *what_is_legal(struct arena *a, const struct field *f) {
  return f->kind == WORD    ? list_words(a, f->words)
         : f->kind == SLOTS ? "a whole number, 1 to 8"
                            : "two numbers, as \"2x4\"";
}

static bool apply(struct ir_module *m, struct ir_pass_ctx *ctx, const struct namer *x,
                  const struct ir_config_entry *e, const char *key) {
  const char *dot = strrchr(key, '.');
  struct ir_op o = dot ? find_label(m, x, key, (size_t)(dot - key)) : (struct ir_op){0};
  if (!o.id) {
    refuse_label(m, ctx, x, key);
    return false;
  }
  const struct field *f = find_field(m, ctx, o, key, dot + 1);
  if (!f)
    return false;
  if (put_value(m, o, f, e))
    return true;
  cg_error(m, ctx->diags, o, DIAG_CONFIG, "schedule `%s` (%s) must be %s", key, f->meaning,
           what_is_legal(ctx->scratch, f));
  return false;
}

bool cg_pass_apply_pins(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct namer x = {.a = ctx->scratch};
  bool ok = true;
  map_init(&x.seen, x.a);
  ir_walk(m, m->body, name_op, &x);
  for (uint32_t i = 0; i < m->config.n; i++) {
    const char *key = ir_sym(m, m->config.at[i].key);
    if (str_starts(key, CG_SCHEDULE_PREFIX) && !cg_is_knob(key + strlen(CG_SCHEDULE_PREFIX)))
      ok = apply(m, ctx, &x, &m->config.at[i], key + strlen(CG_SCHEDULE_PREFIX)) && ok;
  }
  *changed = true;
  return ok;
}
