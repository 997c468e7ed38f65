/* See help_hopper.h. */
#include "help_hopper.h"

#include "base/num.h"
#include "base/str.h"
#include "ir/verify.h"

#include <math.h>
#include <string.h>

const char *hopper_text(struct arena *a, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/machine/%s.tir", KILN_SRC_DIR, name);
  FILE *f = fopen(path, "rb");
  if (!f)
    fail_msg("%s is not there", path);
  char *text = arena_get(a, 1 << 17);
  size_t n = fread(text, 1, (1 << 17) - 1, f);
  text[n] = 0;
  fclose(f);
  return text;
}

void hopper_begin(struct hopper_run *r) {
  *r = (struct hopper_run){.n = 0};
  help_arena_init(&r->mem);
  assert_true(diag_init(&r->diags, &mem_libc));
}

void hopper_end(struct hopper_run *r) {
  diag_free(&r->diags);
  arena_free(&r->mem.arena);
}

bool hopper_parse(struct hopper_run *r, const char *text) {
  uint32_t file = diag_add_file(&r->diags, "test.tir", text, strlen(text));
  r->m = ir_parse(&r->mem.arena, &r->diags, file, text, strlen(text));
  return r->m && ir_verify(r->m, &r->diags);
}

const char *hopper_messages(struct hopper_run *r) {
  struct strbuf b = {.arena = &r->mem.arena};
  for (uint32_t k = 0; k < r->diags.list.n; k++)
    diag_render_text(&r->diags, &r->diags.list.at[k], &b);
  return sb_str(&b);
}

void *hopper_tensor(struct hopper_run *r, enum dtype t, uint32_t rank, const int64_t *dim) {
  struct interp_arg *a = &r->args[r->n++];
  uint32_t bytes = dtype_bits(t) / 8;
  int64_t step = 1;
  a->tensor = (struct interp_tensor){.dtype = t, .rank = rank};
  for (uint32_t d = rank; d-- > 0;) {
    a->tensor.dim[d] = dim[d];
    a->tensor.stride[d] = step;
    step = d + 1 == rank ? (dim[d] * bytes + 15) / 16 * 16 / bytes : step * dim[d];
  }
  char *data = arena_get0(&r->mem.arena, (size_t)step * bytes + 64);
  a->tensor.data = data + (-(uintptr_t)data & 63);
  return a->tensor.data;
}

int hopper_value(uint64_t seed, int64_t i) {
  uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xd1342543de82ef95u;
  return (int)((x ^ x >> 29) * 0xbf58476d1ce4e5b9u >> 61) % 5;
}

bool hopper_emulate(struct hopper_run *r, uint32_t mode) {
  struct emu_options opt = {.domain = INTERP_ROUNDED,
                            .mode = mode < EMU_MODES ? (enum emu_mode)mode : EMU_SEEDED,
                            .seed = mode,
                            .threads = 1,
                            .max_steps = 200 * 1000 * 1000,
                            .sm_count = 3};
  return emu_run(r->m, r->args, r->n, &opt, &r->stats, &r->diags, &mem_libc);
}

/* ---- products ---- */

static void bind_product(struct hopper_run *r, const struct hopper_case *c) {
  void *a = hopper_tensor(r, DT_BF16, 2, (int64_t[]){c->m, c->k});
  void *b = hopper_tensor(r, DT_BF16, 2, (int64_t[]){c->n, c->k});
  hopper_tensor(r, DT_BF16, 2, (int64_t[]){c->m, c->n});
  const int64_t pitch = r->args[0].tensor.stride[0];
  for (int64_t i = 0; i < c->m * c->k; i++)
    num_store(DT_BF16, a, i / c->k * pitch + i % c->k, hopper_value(1, i));
  for (int64_t i = 0; i < c->n * c->k; i++)
    num_store(DT_BF16, b, i / c->k * pitch + i % c->k, hopper_value(2, i));
}

static bool product_is_right(const struct hopper_run *r, const struct hopper_case *c, char *wrong,
                             size_t size) {
  const struct interp_tensor *out = &r->args[2].tensor;
  for (int64_t i = 0; i < c->m * c->n; i++) {
    double sum = 0;
    for (int64_t k = 0; k < c->k; k++)
      sum += hopper_value(1, i / c->n * c->k + k) * hopper_value(2, i % c->n * c->k + k);
    double want = num_round(DT_BF16, sum);
    double found = num_load(DT_BF16, out->data, i / c->n * out->stride[0] + i % c->n);
    if (found == want)
      continue;
    snprintf(wrong, size, "C[%d, %d]: expected %g, found %g", (int)(i / c->n), (int)(i % c->n),
             want, found);
    return false;
  }
  return true;
}

/* ---- attention ---- */

#define SCALE 0.0625
enum { COLS = 128, MAX_KEYS = 1024 };

static void bind_attention(struct hopper_run *r, const struct hopper_case *c) {
  for (uint64_t k = 0; k < 4; k++) {
    void *x = hopper_tensor(r, DT_BF16, 3, (int64_t[]){c->bh, c->s, COLS});
    for (int64_t i = 0; k < 3 && i < c->bh * c->s * COLS; i++)
      num_store(DT_BF16, x, i, hopper_value(k, i) - 2);
  }
  r->args[r->n++].f = SCALE;
}

static double at(const struct hopper_run *r, int arg, int64_t i) {
  return num_load(DT_BF16, r->args[arg].tensor.data, i);
}

/* Row q of head b, in double precision. */
static void attention_row(const struct hopper_case *c, int64_t b, int64_t q, double *out) {
  double sum = 0, most = -INFINITY, score[MAX_KEYS];
  int64_t keys = c->causal ? q + 1 : c->s;
  for (int64_t k = 0; k < keys; k++) {
    score[k] = 0;
    for (int64_t d = 0; d < COLS; d++)
      score[k] += (hopper_value(0, (b * c->s + q) * COLS + d) - 2) *
                  (hopper_value(1, (b * c->s + k) * COLS + d) - 2);
    score[k] *= SCALE;
    most = score[k] > most ? score[k] : most;
  }
  memset(out, 0, COLS * sizeof *out);
  for (int64_t k = 0; k < keys; k++) {
    double e = exp(score[k] - most);
    sum += e;
    for (int64_t d = 0; d < COLS; d++)
      out[d] += e * (hopper_value(2, (b * c->s + k) * COLS + d) - 2);
  }
  for (int64_t d = 0; d < COLS; d++)
    out[d] /= sum;
}

/* P is rounded to bf16, and so is O. Every seventh row. */
static bool attention_is_right(const struct hopper_run *r, const struct hopper_case *c, char *wrong,
                               size_t size) {
  double want[COLS];
  for (int64_t i = 0; i < c->bh * c->s; i += 7) {
    attention_row(c, i / c->s, i % c->s, want);
    for (int64_t d = 0; d < COLS; d++) {
      double found = at(r, 3, i * COLS + d);
      if (fabs(found - want[d]) < 0.02)
        continue;
      snprintf(wrong, size, "O[%d, %d, %d]: expected %g, found %g", (int)(i / c->s),
               (int)(i % c->s), (int)d, want[d], found);
      return false;
    }
  }
  return true;
}

/* ---- multicast_sum ---- */

enum { SUM_COLS = 32, SUM_TILE = 64 * SUM_COLS };

static void bind_sum(struct hopper_run *r, const struct hopper_case *c) {
  float *x = hopper_tensor(r, DT_F32, 2, (int64_t[]){c->rows, SUM_COLS});
  float *y = hopper_tensor(r, DT_F32, 2, (int64_t[]){2 * c->rows, SUM_COLS});
  float *s = hopper_tensor(r, DT_F32, 2, (int64_t[]){64, SUM_COLS});
  for (int64_t i = 0; i < c->rows * SUM_COLS; i++) {
    x[i] = (float)hopper_value(3, i);
    y[i] = y[c->rows * SUM_COLS + i] = -1;
  }
  for (int64_t i = 0; i < SUM_TILE; i++)
    s[i] = (float)hopper_value(4, i);
}

static bool sum_is_right(const struct hopper_run *r, const struct hopper_case *c, char *wrong,
                         size_t size) {
  const float *x = r->args[0].tensor.data, *y = r->args[1].tensor.data;
  const float *s = r->args[2].tensor.data;
  for (int64_t i = 0; i < 2 * c->rows * SUM_COLS; i++)
    if (y[i] != x[i % (c->rows * SUM_COLS)]) {
      snprintf(wrong, size, "Y at %d: found %g", (int)i, (double)y[i]);
      return false;
    }
  for (int64_t i = 0; i < SUM_TILE; i++) {
    float want = (float)hopper_value(4, i);
    for (int64_t t = 0; t < c->rows * SUM_COLS; t += SUM_TILE)
      want += 2 * x[t + i];
    if (s[i] != want) {
      snprintf(wrong, size, "S at %d: expected %g, found %g", (int)i, (double)want, (double)s[i]);
      return false;
    }
  }
  return true;
}

/* ---- role_pipe ---- */

static void bind_role(struct hopper_run *r, const struct hopper_case *c) {
  float *x = hopper_tensor(r, DT_F32, 2, (int64_t[]){c->rows, COLS});
  hopper_tensor(r, DT_F32, 2, (int64_t[]){2, COLS});
  for (int64_t i = 0; i < c->rows * COLS; i++)
    x[i] = (float)hopper_value(5, i);
}

static bool role_is_right(const struct hopper_run *r, const struct hopper_case *c, char *wrong,
                          size_t size) {
  const float *y = r->args[1].tensor.data;
  for (int64_t i = 0; i < 2 * COLS; i++) {
    float want = 0;
    for (int64_t row = 1 - i / COLS; row < c->rows; row += 2)
      want += (float)hopper_value(5, row * COLS + COLS - 1 - i % COLS);
    if (y[i] != want) {
      snprintf(wrong, size, "Y at %d: expected %g, found %g", (int)i, (double)want, (double)y[i]);
      return false;
    }
  }
  return true;
}

void hopper_bind(struct hopper_run *r, const struct hopper_case *c) {
  if (c->m)
    bind_product(r, c);
  else if (c->role)
    bind_role(r, c);
  else if (c->rows)
    bind_sum(r, c);
  else
    bind_attention(r, c);
}

bool hopper_is_right(const struct hopper_run *r, const struct hopper_case *c, char *wrong,
                     size_t size) {
  return c->m      ? product_is_right(r, c, wrong, size)
         : c->role ? role_is_right(r, c, wrong, size)
         : c->rows ? sum_is_right(r, c, wrong, size)
                   : attention_is_right(r, c, wrong, size);
}
