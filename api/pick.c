/* The choice of meta-parameters that nobody gave: by the cost model, among the legal ones.
 *
 * A kernel's `tune` lists are combined, in their order (names in byte order, the last varying
 * fastest); each legal combination is traced and costed (codegen/cost_model.c). The cheapest is
 * taken; of equal ones the first. Where the model says nothing of any, the first legal one stays,
 * and what was chosen says why.
 *
 * What is chosen depends on the specialisation class alone: on the facts, as all of the lowering,
 * and on the sizes rounded up to 4 significant bits. So the number of variants of a kernel is
 * bounded, whatever sizes come, and a size of a class that was seen costs one look-up. */
#include "api/api.h"

#include "base/hash.h"

#include <string.h>

#define MOST_COMBOS  1024 /* more are not tried */
#define MOST_CHOICES 16   /* of a choice that is remembered */
#define MEMO         256  /* choices that a file remembers */
#define SHOWN        5
#define LEAST_SIZE   16 /* one class below: a tile has more rows anyway */

struct api_memo {
  struct hash128 key;
  bool set;
  uint16_t at[MOST_CHOICES]; /* per choice of the kernel: which value of its list */
  struct api_pick pick;      /* but for its text */
  char *text;
  size_t size; /* of text, in bytes */
};

int64_t api_size_class(int64_t n) {
  int64_t step = 1;
  if (n <= LEAST_SIZE)
    return n > 0 ? LEAST_SIZE : 0;
  while (n - 1 >= 16 * step)
    step *= 2;
  return n > INT64_MAX - step ? n : (n + step - 1) / step * step;
}

bool api_class_lookup(void *problem, const char *name, int64_t *value) {
  if (!api_dim_lookup(problem, name, value))
    return false;
  *value = api_size_class(*value);
  return true;
}

struct candidate {
  struct fe_config config;
  struct cg_cost cost;
};

struct picker {
  struct api_problem *p;
  struct kiln_context *ctx;
  const struct cg_target *target;
  const struct cg_gpu *gpu;
  struct arena *a;
  uint32_t *at; /* per choice: the value in hand */
  struct fe_config config;
  struct candidate best[SHOWN + 1]; /* by cost; one more to work in */
  uint32_t n_best, n_legal;
  const char *why; /* of the first combination that the model says nothing of */
};

static bool is_free(const struct picker *k, uint32_t i) {
  return !k->p->kernel->choices[i].is_const && k->p->fixed.at[i].kind == FE_NONE;
}

/* The next combination; false: that was the last one. */
static bool step(struct picker *k) {
  for (uint32_t i = k->p->kernel->n_choices; i-- > 0;) {
    const struct fe_choice *c = &k->p->kernel->choices[i];
    if (!is_free(k, i))
      continue;
    k->at[i] = (k->at[i] + 1) % c->n_values;
    k->config.at[i] = c->values[k->at[i]];
    if (k->at[i])
      return true;
  }
  return false;
}

static void keep(struct picker *k, struct cg_cost cost) {
  uint32_t at = k->n_best;
  struct fe_value *values = k->best[SHOWN].config.at;
  while (at > 0 && cost.us < k->best[at - 1].cost.us)
    at--;
  if (at == SHOWN)
    return;
  memcpy(values, k->config.at, k->config.n * sizeof *values);
  uint32_t last = k->n_best < SHOWN ? k->n_best++ : SHOWN - 1;
  struct fe_value *freed = k->best[last].config.at;
  memmove(&k->best[at + 1], &k->best[at], (last - at) * sizeof k->best[0]);
  k->best[at] = (struct candidate){{values, k->config.n}, cost};
  k->best[SHOWN].config.at = freed;
}

/* The combination in hand; what it fails of is none of the caller's business. */
static enum kiln_status try_one(struct picker *k) {
  struct kiln_context *ctx = k->ctx;
  struct api_mark before = api_mark(ctx);
  struct arena_mark mark = arena_get_mark(k->a);
  uint32_t said = ctx->diags.list.n, n;
  struct cg_cost cost = {.why = "it cannot be traced"};
  struct fe_config was = k->p->config;
  k->p->config = k->config;
  struct ir_module *m = api_trace(k->p, k->a);
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  struct ir_run_options run = {0};
  if (m && ir_run_passes(m, passes, n, &ctx->diags, &run)) {
    struct cg_options opt = {.target = k->target, .schedule = k->p->schedule};
    cost = cg_model_cost(m, &opt, k->gpu, api_class_lookup, k->p, k->a, &ctx->diags);
  }
  k->p->config = was;
  enum kiln_status st = api_failure_since(ctx, before);
  diag_truncate(&ctx->diags, said);
  if (st == KILN_NO_MEMORY || st == KILN_INTERRUPTED)
    return st;
  if (cost.why && !k->why)
    k->why = cost.why; /* a literal */
  if (!cost.why)
    keep(k, cost);
  arena_reset(k->a, mark);
  return KILN_OK;
}

static enum kiln_status try_all(struct picker *k) {
  const struct fe_kernel *kernel = k->p->kernel;
  k->at = ARENA_ARRAY(k->a, uint32_t, kernel->n_choices + 1);
  k->config = fe_empty_config(kernel, k->a);
  for (uint32_t i = 0; i <= SHOWN; i++)
    k->best[i].config = fe_empty_config(kernel, k->a);
  for (uint32_t i = 0; i < kernel->n_choices; i++)
    k->config.at[i] = is_free(k, i) ? kernel->choices[i].values[0] : k->p->config.at[i];
  do {
    enum fe_legal legal = fe_is_legal(k->p->file->fe, kernel, &k->config);
    if (legal == FE_FAILED)
      return KILN_INVALID;
    k->n_legal += legal == FE_LEGAL;
    enum kiln_status st = legal == FE_LEGAL ? try_one(k) : KILN_OK;
    if (st != KILN_OK)
      return st;
  } while (step(k));
  return KILN_OK;
}

/* ---- what is remembered ---- */

static struct hash128 key_of(struct picker *k, const struct ir_module *first) {
  const struct api_problem *p = k->p;
  struct hasher h;
  struct strbuf config = {.arena = k->a};
  hash_begin(&h);
  hash_field_int(&h, "kernel", p->kernel->index);
  hash_field_str(&h, "target", k->target->name);
  fe_config_print(p->kernel, &p->fixed, &config);
  fe_config_print(p->kernel, &p->config, &config); /* consts; the rest follows from `fixed` */
  hash_field_str(&h, "config", sb_str(&config));
  hash_field_int(&h, "absent", (int64_t)p->absent);
  for (uint32_t i = 0; i < CG_KNOB_COUNT; i++)
    hash_field_int(&h, "knob", p->schedule.knob[i]);
  for (uint32_t i = 0; i < p->schedule.n_pins; i++) {
    hash_field_str(&h, "pin", p->schedule.pins[i].key);
    hash_field_str(&h, "word", p->schedule.pins[i].word ? p->schedule.pins[i].word : "");
    hash_field_int(&h, "number", p->schedule.pins[i].number);
  }
  for (uint32_t i = 0; i < first->facts.n; i++) {
    hash_field_str(&h, "fact", symtab_str(first->syms, first->facts.at[i].sym));
    hash_field_int(&h, "is", first->facts.at[i].is_value);
    hash_field_int(&h, "n", first->facts.at[i].n);
  }
  for (uint32_t i = 0; i < p->n_dims; i++)
    hash_field_int(&h, p->dims[i].name, api_size_class(p->dims[i].value));
  return hash_end(&h);
}

static struct api_memo *memo_of(struct kiln_file *file, struct hash128 key) {
  if (!file->memo)
    file->memo = mem_get0(&file->own.ctx->mem, MEMO * sizeof *file->memo);
  return file->memo ? &file->memo[key.lo % MEMO] : NULL;
}

static void forget(struct kiln_context *ctx, struct api_memo *e) {
  if (e->text)
    mem_drop(&ctx->mem, e->text, e->size);
  *e = (struct api_memo){0};
}

void api_pick_free(struct kiln_file *file) {
  for (uint32_t i = 0; file->memo && i < MEMO; i++)
    forget(file->own.ctx, &file->memo[i]);
  if (file->memo)
    mem_drop(&file->own.ctx->mem, file->memo, MEMO * sizeof *file->memo);
  file->memo = NULL;
}

/* Without memory for it nothing is remembered. */
static void remember(struct picker *k, struct hash128 key) {
  struct api_memo *e = memo_of(k->p->file, key);
  const struct fe_kernel *kernel = k->p->kernel;
  if (!e || kernel->n_choices > MOST_CHOICES)
    return;
  forget(k->ctx, e);
  size_t size = strlen(k->p->pick.text) + 1;
  char *text = mem_get0(&k->ctx->mem, size);
  if (!text)
    return;
  memcpy(text, k->p->pick.text, size);
  *e = (struct api_memo){.key = key, .set = true, .pick = k->p->pick, .text = text, .size = size};
  for (uint32_t i = 0; i < kernel->n_choices; i++)
    while (is_free(k, i) && !fe_value_eq(kernel->choices[i].values[e->at[i]], k->p->config.at[i]))
      e->at[i]++;
}

static bool recall(struct picker *k, struct hash128 key) {
  const struct api_memo *e = memo_of(k->p->file, key);
  const struct fe_kernel *kernel = k->p->kernel;
  if (!e || !e->set || e->key.hi != key.hi || e->key.lo != key.lo)
    return false;
  for (uint32_t i = 0; i < kernel->n_choices; i++)
    if (is_free(k, i))
      k->p->config.at[i] = kernel->choices[i].values[e->at[i]];
  k->p->pick = e->pick;
  k->p->pick.text = arena_strdup(k->a, e->text);
  return true;
}

/* ---- what is said ---- */

static void put_values(const struct picker *k, const struct fe_config *config, struct strbuf *out) {
  const struct fe_kernel *kernel = k->p->kernel;
  const char *before = "";
  for (uint32_t i = 0; i < kernel->n_choices; i++) {
    if (kernel->choices[i].is_const)
      continue;
    sb_printf(out, "%s%s = ", before, kernel->choices[i].name);
    fe_value_print(config->at[i], out);
    before = ", ";
  }
}

static void say(struct picker *k, const char *why) {
  struct strbuf out = {.arena = k->a};
  sb_puts(&out, "tiles: ");
  put_values(k, &k->p->config, &out);
  if (why)
    sb_printf(&out, ", what was given and the first legal values: %s\n", why);
  else
    sb_printf(&out, ", the cheapest of %u legal for %u SMs (microseconds, modelled):\n", k->n_legal,
              k->gpu->sm_count);
  for (uint32_t i = 0; i < k->n_best && !why; i++) {
    const struct cg_cost *c = &k->best[i].cost;
    sb_printf(&out, "  %.1f: ", c->us);
    put_values(k, &k->best[i].config, &out);
    sb_printf(&out,
              ", split_k = %lld%s: %.2f waves, matrix %.1f, L2 %.1f, memory %.1f, ends %.1f, "
              "merge %.1f\n",
              (long long)c->split_k, c->split_cluster ? " in a cluster" : "", c->waves,
              c->matrix_us, c->l2_us, c->dram_us, c->ends_us, c->merge_us);
  }
  k->p->pick.text = sb_str(&out);
}

static bool has_dot(const struct ir_module *m) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    if (ir_op_at(m, o)->block.id && ir_op_at(m, o)->opcode == IR_DOT)
      return true;
  return false;
}

enum kiln_status api_pick_config(struct api_problem *p, const struct cg_target *target,
                                 struct arena *a) {
  struct kiln_context *ctx = p->file->own.ctx;
  struct picker k = {.p = p, .ctx = ctx, .target = target, .gpu = cg_target_gpu(target), .a = a};
  struct api_mark before = api_mark(ctx);
  int64_t combos = 1;
  uint32_t n_tune = 0;
  if (!p->kernel || !p->shaped)
    return KILN_OK;
  for (uint32_t i = 0; i < p->kernel->n_choices; i++) {
    n_tune += !p->kernel->choices[i].is_const;
    if (is_free(&k, i) && combos <= MOST_COMBOS)
      combos *= p->kernel->choices[i].n_values;
  }
  if (!n_tune || (combos == 1 && p->schedule.knob[CG_KNOB_SPLIT_K] != CG_AUTO))
    return KILN_OK;
  const char *why = !k.gpu || !(target->features & CG_WGMMA)
                        ? "the cost model knows targets with warpgroup instructions alone"
                    : combos > MOST_COMBOS ? "there are more than 1024 combinations"
                                           : NULL;
  if (why) {
    say(&k, why);
    return KILN_OK;
  }
  struct ir_module *first = api_trace(p, a);
  if (!first)
    return api_failure_since(ctx, before);
  if (!has_dot(first)) {
    say(&k, "the cost model knows kernels with dots alone");
    return KILN_OK;
  }
  struct hash128 key = key_of(&k, first);
  if (recall(&k, key))
    return KILN_OK;
  enum kiln_status st = try_all(&k);
  if (st != KILN_OK)
    return st;
  if (k.n_best) {
    for (uint32_t i = 0; i < p->kernel->n_choices; i++)
      p->config.at[i] = k.best[0].config.at[i];
    const struct cg_cost *best = &k.best[0].cost;
    p->pick = (struct api_pick){best->split_k, best->split_cluster, best->stream_axis, NULL};
  }
  say(&k, k.n_best ? NULL : k.why);
  remember(&k, key);
  return KILN_OK;
}
