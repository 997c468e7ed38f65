/* Scopes of the parser: variables, upvalues, labels; see ast.h. The rules are stock Lua's, the
 * limit of 200 locals aside. A variable that a closure holds and that is assigned after its
 * declaration lives in a box; what is captured but never assigned is copied into the closure. */
#include "frontend/ast.h"

#define MAX_SLOTS 50000 /* of one function */

/* Names are searched for from end to end; a file with very many must not take for ever. */
static void count_work(struct fe_parser *p, uint32_t comparisons) {
  p->work += comparisons;
  if (p->work > 10000) {
    p->charge(p->lex.user, p->work / 16);
    p->work = 0;
  }
}

static void refuse_env(struct fe_parser *p, struct fe_name *name, uint32_t line, uint32_t col) {
  if (name == p->env)
    fe_lex_error(&p->lex, DIAG_NOT_AVAILABLE, line, col, "`_ENV` is not available in kernels");
}

static uint32_t take_slots(struct fe_parser *p, uint32_t n) {
  struct fe_funcstate *fs = p->fs;
  uint32_t slot = fs->next_slot;
  fs->next_slot += n;
  if (fs->next_slot > MAX_SLOTS)
    fe_lex_error(&p->lex, DIAG_SYNTAX, p->lex.now.line, p->lex.now.col,
                 "too many local variables (limit is %d)", MAX_SLOTS);
  if (fs->next_slot > fs->func->n_slots)
    fs->func->n_slots = fs->next_slot;
  return slot;
}

void fe_scope_open(struct fe_parser *p, struct fe_scope *s, struct fe_node *block, bool is_loop) {
  struct fe_funcstate *fs = p->fs;
  *s = (struct fe_scope){.up = fs->scope,
                         .block = block,
                         .n_active = fs->active.n,
                         .n_labels = fs->labels.n,
                         .n_gotos = fs->gotos.n,
                         .first_slot = fs->next_slot,
                         .is_loop = is_loop};
  fs->scope = s;
}

void fe_scope_close(struct fe_parser *p) {
  struct fe_funcstate *fs = p->fs;
  struct fe_scope *s = fs->scope;
  for (uint32_t i = s->n_active; i < fs->active.n; i++)
    fs->active.at[i]->boxed = fs->active.at[i]->captured && fs->active.at[i]->assigned;
  fs->active.n = s->n_active;
  fs->labels.n = s->n_labels;
  for (uint32_t i = s->n_gotos; i < fs->gotos.n; i++)
    if (fs->gotos.at[i].n_active > s->n_active)
      fs->gotos.at[i].n_active = s->n_active;
  fs->next_slot = s->first_slot;
  fs->scope = s->up;
}

struct fe_var *fe_scope_var(struct fe_parser *p, struct fe_name *name, uint32_t line,
                            uint32_t col) {
  refuse_env(p, name, line, col);
  struct fe_var *v = ARENA_NEW(p->lex.arena, struct fe_var);
  v->name = name;
  v->func = p->fs->func;
  v->seq = p->n_vars++;
  v->line = line;
  v->col = col;
  return v;
}

void fe_scope_activate(struct fe_parser *p, struct fe_var *v) {
  v->slot = take_slots(p, 1);
  VEC_PUSH(p->lex.arena, &p->fs->active, v);
}

uint32_t fe_scope_hidden(struct fe_parser *p, uint32_t n) {
  return take_slots(p, n);
}

void fe_func_open(struct fe_parser *p, struct fe_funcstate *fs, struct fe_func *f) {
  *fs = (struct fe_funcstate){.up = p->fs, .func = f};
  f->up = p->fs ? p->fs->func : NULL;
  f->file = p->lex.file;
  f->depth = f->up ? f->up->depth + 1 : 0;
  p->fs = fs;
}

void fe_func_close(struct fe_parser *p) {
  struct fe_funcstate *fs = p->fs;
  if (fs->gotos.n) {
    const struct fe_goto *g = &fs->gotos.at[0];
    fe_lex_error(&p->lex, DIAG_SYNTAX, g->node->line, g->node->col,
                 "no visible label '%s' for <goto> at line %u", g->name->s, g->node->line);
  }
  fs->func->upvalues = fs->upvalues.at;
  fs->func->n_upvalues = fs->upvalues.n;
  p->fs = fs->up;
}

static struct fe_var *find_local(struct fe_parser *p, const struct fe_funcstate *fs,
                                 const struct fe_name *name) {
  count_work(p, fs->active.n);
  for (uint32_t i = fs->active.n; i-- > 0;)
    if (fs->active.at[i]->name == name)
      return fs->active.at[i];
  return NULL;
}

/* Index of v among the upvalues of fs, in which v is not a local. */
static uint32_t upvalue_index(struct fe_parser *p, struct fe_funcstate *fs, struct fe_var *v) {
  for (uint32_t i = 0; i < fs->upvalues.n; i++)
    if (fs->upvalues.at[i].var == v)
      return i;
  struct fe_upvalue u = {.var = v, .from_local = v->func == fs->up->func};
  if (!u.from_local)
    u.index = upvalue_index(p, fs->up, v);
  if (fs->upvalues.n == FE_MAX_UPVALUES)
    fe_lex_error(&p->lex, DIAG_SYNTAX, p->lex.now.line, p->lex.now.col,
                 "the function at line %u uses more than %d variables of the functions around it",
                 fs->func->line, FE_MAX_UPVALUES);
  VEC_PUSH(p->lex.arena, &fs->upvalues, u);
  return fs->upvalues.n - 1;
}

void fe_scope_resolve(struct fe_parser *p, struct fe_node *node, struct fe_name *name) {
  refuse_env(p, name, node->line, node->col);
  struct fe_var *v = find_local(p, p->fs, name);
  if (v) {
    node->kind = FE_LOCAL;
    node->u.var = v;
    return;
  }
  for (struct fe_funcstate *fs = p->fs->up; fs; fs = fs->up)
    if ((v = find_local(p, fs, name)) != NULL) {
      v->captured = true;
      node->kind = FE_UPVALUE;
      node->u.var = v;
      node->index = upvalue_index(p, p->fs, v);
      return;
    }
  node->kind = FE_GLOBAL;
  node->u.name = name;
}

void fe_scope_assign(struct fe_parser *p, struct fe_node *target) {
  if (target->kind != FE_LOCAL && target->kind != FE_UPVALUE)
    return;
  if (target->u.var->is_const)
    fe_lex_error(&p->lex, DIAG_SYNTAX, target->line, target->col,
                 "attempt to assign to const variable '%s'", target->u.var->name->s);
  target->u.var->assigned = true;
}

static void link_goto(struct fe_parser *p, const struct fe_goto *g, struct fe_label *label,
                      uint32_t n_active) {
  if (g->n_active < n_active)
    fe_lex_error(&p->lex, DIAG_SYNTAX, g->node->line, g->node->col,
                 "<goto %s> at line %u jumps into the scope of local '%s'", g->name->s,
                 g->node->line, p->fs->active.at[g->n_active]->name->s);
  g->node->u.label = label;
}

void fe_scope_goto(struct fe_parser *p, struct fe_node *node, struct fe_name *name) {
  struct fe_funcstate *fs = p->fs;
  count_work(p, fs->labels.n);
  for (uint32_t i = fs->labels.n; i-- > 0;)
    if (fs->labels.at[i]->name == name) {
      node->u.label = fs->labels.at[i];
      return;
    }
  struct fe_goto g = {node, name, fs->active.n};
  VEC_PUSH(p->lex.arena, &fs->gotos, g);
}

void fe_scope_label(struct fe_parser *p, struct fe_label *label, bool last) {
  struct fe_funcstate *fs = p->fs;
  count_work(p, fs->labels.n + fs->gotos.n);
  for (uint32_t i = 0; i < fs->labels.n; i++)
    if (fs->labels.at[i]->name == label->name)
      fe_lex_error(&p->lex, DIAG_SYNTAX, label->line, label->col,
                   "label '%s' already defined on line %u", label->name->s, fs->labels.at[i]->line);
  /* Locals of the block are taken to be out of scope at a label that ends it. */
  uint32_t n_active = last ? fs->scope->n_active : fs->active.n;
  label->slots = last ? fs->scope->first_slot : fs->next_slot;
  label->at_end = last;
  VEC_PUSH(p->lex.arena, &fs->labels, label);
  uint32_t kept = fs->scope->n_gotos;
  for (uint32_t i = kept; i < fs->gotos.n; i++)
    if (fs->gotos.at[i].name == label->name)
      link_goto(p, &fs->gotos.at[i], label, n_active);
    else
      fs->gotos.at[kept++] = fs->gotos.at[i];
  fs->gotos.n = kept;
}

bool fe_scope_in_loop(const struct fe_parser *p) {
  for (const struct fe_scope *s = p->fs->scope; s; s = s->up)
    if (s->is_loop)
      return true;
  return false;
}
