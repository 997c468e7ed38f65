/* The machine modules of tests/machine on a GPU of compute capability 9.0: verified, then timed
 * launch by launch beside a prototype's cubins of the same configurations and beside cuBLAS. Run it
 * from the root of the source tree:
 *
 *   time_machine [--prototype DIR] [--variants DIR] [--json FILE] [--only NAME] [--quick]
 *   time_machine --dry       reads the modules and recipes and evaluates every launch: needs no GPU
 *
 * --prototype: the prototype's cubins (default build/prototype/cubin; without one only cuBLAS is
 * compared). --variants: other texts (*.tir) of kernels of the same name, judged and timed in the
 * same rounds; only kernels that have one are run, and a table of all ends the output. --quick:
 * short timings. Exit code: 0, or 1 if a result is wrong, 77 without a GPU.
 *
 * Products are judged by rt_gemm_oracle (double precision, cuBLAS' error as the measure, and exact
 * sums of integers), attentions against attention.cu in double precision; outputs are poisoned,
 * guard bands looked at, odd sizes done first. Times: medians over rounds in which all run once, in
 * an order that rotates; L2 flushed before each, then as graphs of back-to-back launches.
 */
#include "base/num.h"
#include "codegen/cg.h"
#include "runtime/rt.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BF16(x) num_bf16_value(x)

struct program {
  const char *name, *prototype;
  bool attention, causal;
  const char *recipe; /* how the prototype's cubin is launched */
};

#define GEMM_ARGS "arg in \"A\" bf16 [M, K]\narg in \"B\" bf16 [N, K]\narg out \"C\" bf16 [M, N]\n"
#define ATTENTION_ARGS                                                                             \
  "arg in \"Q\" bf16 [BH, S, 128]\narg in \"K\" bf16 [BH, S, 128]\n"                               \
  "arg in \"V\" bf16 [BH, S, 128]\n"                                                               \
  "arg out \"O\" bf16 [BH, S, 128]\narg scalar \"scale\" f32\n"
#define MAP2(arg, name, inner, outer, rows, l2)                                                    \
  "  param tmap " arg " [" inner ", " outer "] strides [2, 2 * " name ".stride0] box [64, " rows   \
  "] swizzle 128 l2 " l2 " fill zero\n"
#define MAP3(arg, name, rows)                                                                      \
  "  param tmap " arg " [128, S, BH] strides [2, 2 * " name ".stride1, 2 * " name                  \
  ".stride0] box [64, " rows ", 1] swizzle 128 l2 256 fill zero\n"
#define HEAD "kiln-recipe 1\nkernel \"prototype\"\ntarget \"sm_90a\"\n"
#define ATTENTION                                                                                  \
  HEAD ATTENTION_ARGS                                                                              \
      "launch \"attn\"\n  grid min(cdiv(S, 128) * BH, sm_count), 1, 1\n"                           \
      "  block 384, 1, 1\n  cluster 1, 1, 1\n  smem 197888\n  regs 0\n" MAP3("0", "Q", "128")      \
          MAP3("1", "K", "128") MAP3("2", "V", "128")                                              \
              MAP3("3", "O", "64") "  param ptr 3\n  param i32 S\n  param i32 BH\n"                \
                                   "  param scalar 4\n  param i32 min(BH, 33)\nend\n"

static const struct program programs[] = {
    {"gemm_128x256", "g128x256_s3_c111_w21_e4", false, false,
     HEAD GEMM_ARGS
     "launch \"gemm\"\n  grid min(cdiv(M, 128) * cdiv(N, 256), sm_count), 1, 1\n"
     "  block 384, 1, 1\n  cluster 1, 1, 1\n  smem 214064\n  regs 0\n" MAP2(
         "0", "A", "K", "M", "128", "256") MAP2("1", "B", "K", "N", "256", "256")
         MAP2("2", "C", "N", "M", "64",
              "0") "  param ptr 2\n  param i32 M\n  param i32 N\n  param i32 K\n  param i32 8\n"
                   "  param i32 0\n  param i64 0\nend\n"},
    {"gemm_split2", "g64x64_s12_c112_w11_e2_h01", false, false,
     HEAD GEMM_ARGS
     "launch \"gemm\"\n  grid 2 * cdiv(M, 64) * cdiv(N, 64), 1, 1\n"
     "  block 256, 1, 1\n  cluster 2, 1, 1\n  smem 197824\n  regs 0\n" MAP2(
         "0", "A", "K", "M", "64", "256") MAP2("1", "B", "K", "N", "64", "256")
         MAP2("2", "C", "N", "M", "64",
              "0") "  param ptr 2\n  param i32 M\n  param i32 N\n  param i32 K\n  param i32 8\n"
                   "  param i32 0\n  param i64 0\nend\n"},
    {"attention_full", "a128x128_n_k2_o1_r0_p0_ord1", true, false, ATTENTION},
    {"attention_causal", "a128x128_c_k2_o1_r0_p1_ord1", true, true, ATTENTION},
};
#define N_PROGRAMS (sizeof programs / sizeof programs[0])

/* Products: M, N, K; attentions: heads of all batches, keys. */
struct size {
  const char *program;
  bool timed;
  int64_t d[3];
};
static const struct size sizes[] = {
    {"gemm_128x256", false, {1000, 1096, 1048}}, {"gemm_128x256", false, {1, 8, 8}},
    {"gemm_128x256", false, {129, 264, 72}},     {"gemm_128x256", false, {2049, 2056, 200}},
    {"gemm_split2", false, {33, 100, 1048}},     {"gemm_split2", false, {1, 4, 72}},
    {"gemm_split2", false, {65, 1000, 2056}},    {"attention_full", false, {3, 1000}},
    {"attention_full", false, {1, 1}},           {"attention_full", false, {2, 129}},
    {"attention_causal", false, {3, 1000}},      {"attention_causal", false, {1, 1}},
    {"attention_causal", false, {40, 385}},      {"gemm_128x256", true, {4096, 4096, 4096}},
    {"gemm_128x256", true, {8192, 8192, 8192}},  {"gemm_128x256", true, {4096, 10240, 8192}},
    {"gemm_128x256", true, {2048, 28672, 4096}}, {"gemm_split2", true, {64, 4096, 14336}},
    {"gemm_split2", true, {16, 6144, 4096}},     {"attention_full", true, {256, 1024}},
    {"attention_full", true, {64, 4096}},        {"attention_full", true, {16, 16384}},
    {"attention_causal", true, {256, 1024}},     {"attention_causal", true, {64, 4096}},
    {"attention_causal", true, {16, 16384}},
};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static struct {
  struct arena arena;
  struct oom_trap trap;
  struct diag_sink diags;
  struct rt_ctx *ctx;
  struct rt_device *dev;
  struct rt_module *reference;
  rt_stream stream;
  const char *prototypes, *variants, *only;
  bool quick;
  FILE *json;
  unsigned wrong, slow, n_json;
} f;

static void die(const char *what, const char *more) __attribute__((noreturn));
static void die(const char *what, const char *more) {
  fprintf(stderr, "time_machine: %s: %s\n", what, more);
  exit(1);
}

static const char *why(void) {
  uint32_t n = f.diags.list.n;
  return n ? f.diags.list.at[n - 1].message : "no message";
}

#define OK(call)                                                                                   \
  do {                                                                                             \
    if ((call) != RT_OK)                                                                           \
      die(#call, why());                                                                           \
  } while (0)

static const char *read_file(const char *path, size_t *n) {
  FILE *in = fopen(path, "rb");
  if (!in)
    return NULL;
  size_t room = 1 << 20;
  char *text = arena_get0(&f.arena, room);
  *n = fread(text, 1, room - 1, in);
  fclose(in);
  return text;
}

static void out_of_memory(void *user) {
  (void)user;
  die("memory", "there is not enough");
}

/* ---- kernels ---- */

#define MAX_TEXTS 24

struct text {
  const char *name;
  const struct recipe *recipe;
  struct rt_module *module;
  uint32_t regs;
};

struct kernel {
  const struct program *p;
  struct text text[MAX_TEXTS]; /* first the one of tests/machine, then its variants */
  uint32_t n_texts;
  const struct recipe *theirs;
  struct rt_module *prototype; /* NULL where its cubin is not there */
};

static struct kernel kernels[N_PROGRAMS];

static struct rt_module *compile(const char *name, const char *source, uint32_t *regs) {
  struct rt_compile_job job = {.name = name, .source = source, .arch = "sm_90a"};
  struct rt_compiled out;
  struct rt_module *m;
  if (rt_compile(f.ctx, &job, &out) != RT_OK)
    die(name, why());
  OK(rt_module_load(f.dev, out.cubin, out.cubin_size, &m));
  if (regs && out.n_kernels)
    *regs = out.kernels[0].regs;
  rt_compiled_free(&out);
  return m;
}

/* The module at `path`, compiled where there is a device; NULL if it is not there. */
static const struct ir_module *load_text(const char *path, const char *name, struct text *out) {
  size_t n;
  const char *text = read_file(path, &n);
  if (!text)
    return NULL;
  struct ir_module *m = ir_parse(&f.arena, &f.diags, 0, text, n);
  if (!m || !ir_verify(m, &f.diags))
    die(path, why());
  *out = (struct text){.name = name, .recipe = m->recipe};
  if (f.dev) {
    struct strbuf cuda = {.arena = &f.arena};
    cg_emit(m, (struct cg_emit_options){0}, &cuda);
    out->module = compile(name, sb_str(&cuda), &out->regs);
  }
  return m;
}

static void load(struct kernel *k, const struct program *p) {
  char path[400];
  size_t n;
  k->p = p;
  snprintf(path, sizeof path, "tests/machine/%s.tir", p->name);
  if (!load_text(path, p->name, &k->text[0]))
    die(path, "cannot be read; run this from the root of the source tree");
  k->n_texts = 1;
  struct symtab *syms = symtab_new(&f.arena);
  k->theirs = recipe_parse(&f.arena, syms, &f.diags, 0, p->recipe, strlen(p->recipe));
  if (!k->theirs)
    die(p->prototype, why());
  if (!f.dev)
    return;
  snprintf(path, sizeof path, "%s/%s.cubin", f.prototypes, p->prototype);
  const char *cubin = read_file(path, &n);
  if (cubin)
    OK(rt_module_load(f.dev, cubin, n, &k->prototype));
  else
    printf("SKIP: %s is not there: %s is not compared with it\n", path, p->name);
}

static int is_text(const struct dirent *d) {
  size_t n = strlen(d->d_name);
  return n > 4 && str_eq(d->d_name + n - 4, ".tir");
}

/* Each text of the folder goes to the program that its kernel is named after. */
static void load_variants(const char *folder) {
  struct dirent **names;
  int n = scandir(folder, &names, is_text, alphasort);
  if (n < 1)
    die(folder, "has no .tir files");
  for (int i = 0; i < n; i++) {
    char path[600];
    struct text text;
    struct kernel *k = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    char *name = arena_strndup(&f.arena, names[i]->d_name, strlen(names[i]->d_name) - 4);
    const struct ir_module *m = load_text(path, name, &text);
    for (size_t j = 0; m && j < N_PROGRAMS; j++)
      if (str_eq(kernels[j].p->name, ir_sym(m, m->kernel)))
        k = &kernels[j];
    if (!k || k->n_texts == MAX_TEXTS)
      die(path, !m  ? "cannot be read"
                : k ? "is one variant too many"
                    : "is a variant of no program: its kernel has another name");
    k->text[k->n_texts++] = text;
    free(names[i]);
  }
  free(names);
}

/* ---- one size ---- */

#define MAX_ARGS 5

struct problem {
  const struct kernel *k;
  const struct size *size;
  struct rt_tensor t[4];
  struct rt_buffer *b[4];
  uint32_t n_tensors;
  struct rt_arg args[MAX_ARGS], their_args[MAX_ARGS];
  uint32_t n_args;
  double flops;
};

static const struct kernel *kernel_of(const char *name) {
  for (size_t i = 0; i < N_PROGRAMS; i++)
    if (str_eq(programs[i].name, name))
      return &kernels[i];
  die(name, "no such program");
}

static int64_t elements(const struct rt_tensor *t) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++)
    n *= t->dim[d];
  return n;
}

static void shape(struct problem *p, const struct size *s) {
  *p = (struct problem){.k = kernel_of(s->program), .size = s};
  const int64_t *d = s->d;
  p->n_tensors = p->k->p->attention ? 4 : 3;
  for (uint32_t i = 0; i < p->n_tensors; i++) {
    struct rt_tensor t = {.dtype = DT_BF16};
    if (p->k->p->attention) {
      t.rank = 3;
      t.dim[0] = d[0];
      t.dim[1] = d[1];
      t.dim[2] = 128;
    } else {
      t.rank = 2;
      t.dim[0] = i == 1 ? d[1] : d[0];
      t.dim[1] = i == 2 ? d[1] : d[2];
    }
    rt_tensor_contiguous(&t);
    t.data = (void *)(uintptr_t)((i + 1) << 20); /* until there is memory */
    p->t[i] = t;
  }
  p->n_args = p->k->p->attention ? 5 : 3;
  p->flops = p->k->p->attention ? 4.0 * (double)d[0] * (double)d[1] * (double)d[1] * 128 /
                                      (p->k->p->causal ? 2 : 1)
                                : 2.0 * (double)d[0] * (double)d[1] * (double)d[2];
}

static void bind(struct problem *p) {
  for (uint32_t i = 0; i < p->n_tensors; i++)
    p->args[i].tensor = p->t[i];
  double scale = 1 / sqrt(128.0);
  p->args[4].f64 = scale;
  memcpy(p->their_args, p->args, sizeof p->args);
  p->their_args[4].f64 = scale * 1.4426950408889634;
}

static void allocate(struct problem *p, enum rt_fill fill) {
  static const char *const names[] = {"the first argument", "the second argument",
                                      "the third argument", "the fourth argument"};
  for (uint32_t i = 0; i < p->n_tensors; i++) {
    int64_t n = elements(&p->t[i]);
    if (!p->b[i])
      OK(rt_buffer_new(f.dev, names[i], (size_t)n * 2, &p->b[i]));
    p->t[i].data = rt_buffer_data(p->b[i]);
    if (i + 1 < p->n_tensors)
      OK(rt_random_fill_device(p->b[i], fill, 17 + i, 1, DT_BF16, n));
  }
  bind(p);
}

static struct rt_buffer *result(struct problem *p) {
  return p->b[p->n_tensors - 1];
}

static void release(struct problem *p) {
  for (uint32_t i = 0; i < p->n_tensors; i++)
    rt_buffer_free(p->b[i]);
}

static void run_once(struct problem *p, struct rt_prepared *launch) {
  OK(rt_buffer_poison(result(p), DT_BF16, f.stream));
  OK(rt_launch(launch, f.stream));
  OK(rt_stream_sync(f.dev, f.stream));
  OK(rt_buffer_check_guards(result(p)));
}

static const char *size_text(const struct problem *p) {
  static char text[80];
  if (p->k->p->attention)
    snprintf(text, sizeof text, "%lldx%lld", (long long)p->size->d[0], (long long)p->size->d[1]);
  else
    snprintf(text, sizeof text, "%lldx%lldx%lld", (long long)p->size->d[0],
             (long long)p->size->d[1], (long long)p->size->d[2]);
  return text;
}

static void verdict(const struct problem *p, const char *text, bool ok, const char *what) {
  f.wrong += !ok;
  if (!ok || !p->size->timed)
    printf("%s %-17s %-18s %s\n", ok ? "PASS" : "FAIL", text, size_text(p), what);
}

/* ---- products ---- */

static struct rt_tensor transposed(const struct rt_tensor *t) {
  struct rt_tensor x = *t;
  x.dim[0] = t->dim[1];
  x.dim[1] = t->dim[0];
  x.stride[0] = t->stride[1];
  x.stride[1] = t->stride[0];
  return x;
}

static void judge_product(struct problem *p, const char *name, struct rt_prepared *launch,
                          bool exact) {
  struct rt_tensor b = transposed(&p->t[1]);
  struct rt_gemm_oracle *oracle;
  struct rt_verdict v;
  OK(rt_gemm_oracle_new(f.dev, &p->t[0], &b, &p->t[2], exact, &oracle));
  run_once(p, launch);
  OK(rt_gemm_oracle_judge(oracle, &p->t[2], &v));
  struct strbuf text = {.arena = &f.arena};
  rt_verdict_text(&v, &text);
  verdict(p, name, v.passed, sb_str(&text));
  rt_gemm_oracle_free(oracle);
}

/* ---- attentions ---- */

static const char reference_recipe[] =
    "kiln-recipe 1\nkernel \"reference\"\ntarget \"sm_90a\"\n" ATTENTION_ARGS
    "arg out \"X\" f64 [R, 128]\narg in \"rows\" s32 [R]\narg scalar \"causal\" s32\n"
    "launch \"reference\"\n  grid R, 1, 1\n  block 128, 1, 1\n  cluster 1, 1, 1\n  smem 65536\n"
    "  regs 0\n  param ptr 0\n  param ptr 1\n  param ptr 2\n  param ptr 5\n  param ptr 6\n"
    "  param i32 S\n  param scalar 7\n  param scalar 4\nend\n";

/* All rows of small problems, 256 of large ones. */
static int64_t pick_rows(const struct problem *p, int32_t *rows) {
  int64_t all = p->size->d[0] * p->size->d[1], n = all <= 4096 ? all : 256;
  for (int64_t i = 0; i < n; i++)
    rows[i] = (int32_t)(n == all ? i : (i * (all / n) + i * 37 % (all / n)));
  rows[n - 1] = (int32_t)(all - 1);
  return n;
}

static double *attention_reference(struct problem *p, const int32_t *rows, int64_t n) {
  struct symtab *syms = symtab_new(&f.arena);
  struct recipe *r =
      recipe_parse(&f.arena, syms, &f.diags, 0, reference_recipe, strlen(reference_recipe));
  struct rt_buffer *x, *list;
  struct rt_prepared *launch;
  if (!r)
    die("reference", why());
  OK(rt_buffer_new(f.dev, "the reference", (size_t)n * 128 * 8, &x));
  OK(rt_buffer_new(f.dev, "its rows", (size_t)n * 4, &list));
  OK(rt_buffer_upload(list, 0, rows, (size_t)n * 4));
  struct rt_arg args[8] = {{.absent = false}};
  memcpy(args, p->args, sizeof p->args);
  args[5].tensor = (struct rt_tensor){.data = rt_buffer_data(x), DT_F64, 2, {n, 128}, {128, 1}};
  args[6].tensor = (struct rt_tensor){.data = rt_buffer_data(list), DT_S32, 1, {n}, {1}};
  args[7].i64 = p->k->p->causal;
  OK(rt_prepare(f.reference, r, args, 8, NULL, &launch));
  OK(rt_launch(launch, f.stream));
  OK(rt_stream_sync(f.dev, f.stream));
  double *out = arena_get0(&f.arena, (size_t)n * 128 * 8);
  OK(rt_buffer_download(x, 0, out, (size_t)n * 128 * 8));
  rt_prepared_free(launch);
  rt_buffer_free(x);
  rt_buffer_free(list);
  return out;
}

/* |o - ref| / |ref| over the rows, 1e9 where anything is not a number; *worst: the largest absolute
 * error. */
static double attention_error(struct problem *p, const int32_t *rows, int64_t n, const double *ref,
                              double *worst) {
  double diff = 0, norm = 0;
  uint16_t line[128];
  *worst = 0;
  for (int64_t i = 0; i < n; i++) {
    OK(rt_buffer_download(result(p), (size_t)rows[i] * 256, line, sizeof line));
    for (int d = 0; d < 128; d++) {
      double e = fabs(BF16(line[d]) - ref[i * 128 + d]);
      if (!(e < 1e9))
        return 1e9;
      diff += e * e;
      norm += ref[i * 128 + d] * ref[i * 128 + d];
      *worst = e > *worst ? e : *worst;
    }
  }
  return norm > 0 ? sqrt(diff / norm) : sqrt(diff);
}

static void judge_attention(struct problem *p, const char *name, struct rt_prepared *ours,
                            struct rt_prepared *theirs) {
  int32_t *rows = arena_get0(&f.arena, 4096 * sizeof *rows);
  int64_t n = pick_rows(p, rows);
  const double *ref = attention_reference(p, rows, n);
  double worst, their_worst = 0, their_error = -1;
  run_once(p, ours);
  double error = attention_error(p, rows, n, ref, &worst);
  if (theirs) {
    run_once(p, theirs);
    their_error = attention_error(p, rows, n, ref, &their_worst);
  }
  char text[160];
  snprintf(text, sizeof text, "relative error %.2e, worst %.2e; the prototype's %.2e, %.2e", error,
           worst, their_error, their_worst);
  /* P is rounded to bf16 before the second product, O after it: about 2^-8. */
  bool ok = error < 5e-3 && (!theirs || error < 1.2 * their_error + 1e-6);
  verdict(p, name, ok, text);
}

/* ---- times ---- */

static enum rt_status run_prepared(void *user, rt_stream stream, uint32_t round) {
  (void)round;
  return rt_launch(user, stream);
}

struct lt {
  struct rt_lt_matmul *m;
  uint32_t fastest;
};

static enum rt_status run_lt(void *user, rt_stream stream, uint32_t round) {
  struct lt *x = user;
  (void)round;
  return rt_lt_run(x->m, x->fastest, stream);
}

/* The median of the time of `a` over that of `b`, round by round. */
static struct rt_interval ratio(const struct rt_timing_set *t, uint32_t a, uint32_t b) {
  double *x = arena_get0(&f.arena, t->rounds * sizeof *x),
         *scratch = arena_get0(&f.arena, t->rounds * sizeof *x);
  for (uint32_t i = 0; i < t->rounds; i++)
    x[i] = t->at[a].rounds_us[i] / t->at[b].rounds_us[i];
  return rt_median_interval(x, scratch, t->rounds);
}

/* Ratios of the prototype's time to a text's, for the table at the end. */
struct summary_row {
  const struct kernel *k;
  char label[60];
  double x[MAX_TEXTS];
};
static VEC(struct summary_row) summary;

/* One line of output and of JSON: candidate `i`, beside the peers at first .. n - 1. */
static void time_line(const struct problem *p, const struct text *text, bool graph,
                      const struct rt_timing_set *t, const struct rt_candidate *c, uint32_t i,
                      uint32_t first, uint32_t n, const struct rt_gpu_state *state) {
  double us = t->at[i].us.median;
  printf("%-17s %-17s %s %9.2f us %7.1f TFLOP/s", text->name, size_text(p),
         graph ? "graph" : "flush", us, p->flops / us * 1e-6);
  if (f.json)
    fprintf(f.json,
            "%s\n {\"kernel\":\"%s\",\"size\":\"%s\",\"mode\":\"%s\",\"us\":%.3f,\"tflops\":%.2f,"
            "\"registers\":%u,\"rounds\":%u,\"sm_mhz\":%d,\"power_w\":%.0f",
            f.n_json++ ? "," : "", text->name, size_text(p), graph ? "graph" : "flush", us,
            p->flops / us * 1e-6, text->regs, t->rounds, state->sm_mhz, state->power_w);
  for (uint32_t j = first; j < n; j++) {
    struct rt_interval x = ratio(t, j, i);
    printf("  x %s %.3f [%.3f, %.3f]", c[j].name, x.median, x.lo, x.hi);
    if (f.json)
      fprintf(f.json, ",\"%s_us\":%.3f,\"x_%s\":%.4f,\"x_%s_low\":%.4f,\"x_%s_high\":%.4f",
              c[j].name, t->at[j].us.median, c[j].name, x.median, c[j].name, x.lo, c[j].name, x.hi);
  }
  printf("  %d MHz %.0f W\n", state->sm_mhz, state->power_w);
  if (f.json)
    fprintf(f.json, "}");
}

static void time_all(struct problem *p, struct rt_prepared **ours, struct rt_prepared *theirs,
                     struct lt *lt) {
  const struct kernel *k = p->k;
  struct rt_candidate c[MAX_TEXTS + 2];
  uint32_t n = 0;
  for (; n < k->n_texts; n++)
    c[n] = (struct rt_candidate){k->text[n].name, run_prepared, ours[n]};
  if (theirs)
    c[n++] = (struct rt_candidate){"prototype", run_prepared, theirs};
  if (lt)
    c[n++] = (struct rt_candidate){"cuBLAS", run_lt, lt};
  for (int graph = 0; graph < 2; graph++) {
    struct rt_timing_options o = {.rounds = f.quick ? 10
                                            : graph ? 25
                                                    : 60,
                                  .graph = graph,
                                  .keep_l2 = graph,
                                  .time_limit_us = (f.quick ? 400000 : 1700000) * (uint64_t)n};
    struct rt_timing_set t;
    struct rt_gpu_state state = {.sm_mhz = -1, .power_w = -1};
    struct summary_row row = {.k = k};
    OK(rt_time(f.dev, c, n, &o, &t));
    rt_gpu_state(f.dev, &state);
    snprintf(row.label, sizeof row.label, "%s %s", size_text(p), graph ? "graph" : "flush");
    for (uint32_t i = 0; i < k->n_texts; i++) {
      time_line(p, &k->text[i], graph, &t, c, i, k->n_texts, n, &state);
      if (theirs) {
        row.x[i] = ratio(&t, k->n_texts, i).median;
        f.slow += row.x[i] < 0.98;
      }
    }
    if (theirs && k->n_texts > 1)
      VEC_PUSH(&f.arena, &summary, row);
    rt_timing_free(&t);
  }
}

/* What a text's speed is, as part of the prototype's: a line a text, a column a size and mode. */
static void print_summary(void) {
  for (size_t p = 0; p < N_PROGRAMS; p++) {
    const struct kernel *k = &kernels[p];
    uint32_t columns = 0;
    for (uint32_t r = 0; r < summary.n; r++)
      if (summary.at[r].k == k) {
        printf("%s[%u] %s", columns ? ", " : "\nx prototype: ", columns + 1, summary.at[r].label);
        columns++;
      }
    if (!columns)
      continue;
    printf("\n%-26s", "");
    for (uint32_t c = 0; c < columns; c++)
      printf("    [%u]", c + 1);
    printf("  geometric mean\n");
    for (uint32_t i = 0; i < k->n_texts; i++) {
      double logs = 0;
      printf("%-26s", k->text[i].name);
      for (uint32_t r = 0; r < summary.n; r++)
        if (summary.at[r].k == k) {
          printf(" %6.3f", summary.at[r].x[i]);
          logs += log(summary.at[r].x[i]);
        }
      printf(" %7.4f\n", exp(logs / columns));
    }
  }
}

/* ---- all of it ---- */

static void do_size(const struct size *s) {
  struct problem p;
  shape(&p, s);
  const struct kernel *k = p.k;
  bool product = !k->p->attention;
  struct rt_prepared *ours[MAX_TEXTS], *theirs = NULL;
  allocate(&p, RT_FILL_NORMAL);
  for (uint32_t i = 0; i < k->n_texts; i++)
    OK(rt_prepare(k->text[i].module, k->text[i].recipe, p.args, p.n_args, NULL, &ours[i]));
  /* The prototype's maps refuse some sizes that ours take. */
  if (k->prototype && (s->timed || !product))
    OK(rt_prepare(k->prototype, k->theirs, p.their_args, p.n_args, NULL, &theirs));
  for (int exact = 0; exact < (product && !s->timed ? 2 : 1); exact++) {
    if (exact)
      allocate(&p, RT_FILL_SMALL);
    for (uint32_t i = 0; i < k->n_texts; i++) {
      struct arena_mark mark = arena_get_mark(&f.arena);
      if (product)
        judge_product(&p, k->text[i].name, ours[i], exact);
      else
        judge_attention(&p, k->text[i].name, ours[i], theirs);
      arena_reset(&f.arena, mark);
    }
  }
  if (s->timed) {
    struct lt lt;
    struct rt_tensor b = transposed(&p.t[1]);
    if (product) {
      OK(rt_lt_new(f.dev, &p.t[0], &b, &p.t[2], NULL, &lt.m));
      OK(rt_lt_fastest(lt.m, &lt.fastest));
    }
    time_all(&p, ours, theirs, product ? &lt : NULL);
    if (product)
      rt_lt_free(lt.m);
  }
  for (uint32_t i = 0; i < k->n_texts; i++)
    rt_prepared_free(ours[i]);
  rt_prepared_free(theirs);
  release(&p);
  fflush(stdout);
}

static void dry(void) {
  for (size_t i = 0; i < N_SIZES; i++) {
    struct problem p;
    struct rt_bindings *b;
    shape(&p, &sizes[i]);
    for (uint32_t k = 0; k < p.n_tensors; k++)
      p.t[k].data = (void *)(uintptr_t)((uint64_t)(k + 1) << 36);
    bind(&p);
    for (uint32_t r = 0; r <= p.k->n_texts; r++) {
      const struct recipe *recipe = r < p.k->n_texts ? p.k->text[r].recipe : p.k->theirs;
      int64_t grid = 0;
      OK(rt_bind(f.ctx, recipe, p.args, p.n_args, 132, false, &b));
      if (!rt_bound_value(b, recipe->steps.at[0].grid[0], &grid, NULL) || grid < 1)
        die(p.k->p->name, "has no grid");
      rt_bindings_free(b);
    }
  }
  printf("%zu launches of %zu kernels read and evaluated\n", N_SIZES, N_PROGRAMS);
}

static void options(int argc, char **argv, bool *is_dry) {
  f.prototypes = "build/prototype/cubin";
  for (int i = 1; i < argc; i++) {
    bool more = i + 1 < argc;
    if (str_eq(argv[i], "--dry")) {
      *is_dry = true;
    } else if (str_eq(argv[i], "--quick")) {
      f.quick = true;
    } else if (more && str_eq(argv[i], "--prototype")) {
      f.prototypes = argv[++i];
    } else if (more && str_eq(argv[i], "--variants")) {
      f.variants = argv[++i];
    } else if (more && str_eq(argv[i], "--only")) {
      f.only = argv[++i];
    } else if (more && str_eq(argv[i], "--json")) {
      if (!(f.json = fopen(argv[++i], "wb")))
        die(argv[i], "cannot be written");
    } else {
      die(argv[i], "unknown option; see the head of time_machine.c");
    }
  }
}

int main(int argc, char **argv) {
  bool is_dry = false;
  size_t n;
  options(argc, argv, &is_dry);
  f.trap.raise = out_of_memory;
  arena_init(&f.arena, &mem_libc, &f.trap);
  if (!diag_init(&f.diags, &mem_libc) || rt_ctx_new(&mem_libc, &f.diags, NULL, &f.ctx) != RT_OK)
    die("start", "no memory");
  if (!is_dry && rt_device_open(f.ctx, 0, &f.dev) != RT_OK) {
    printf("SKIP: %s\n", why());
    return 77;
  }
  if (f.dev && !str_eq(rt_device_info(f.dev)->arch, "sm_90a")) {
    printf("SKIP: %s is %s, not sm_90a\n", rt_device_info(f.dev)->name,
           rt_device_info(f.dev)->arch);
    return 77;
  }
  for (size_t i = 0; i < N_PROGRAMS; i++)
    load(&kernels[i], &programs[i]);
  if (f.variants)
    load_variants(f.variants);
  if (is_dry) {
    dry();
    return 0;
  }
  OK(rt_device_stream(f.dev, &f.stream));
  const char *source = read_file("tests/gpu/machine/attention.cu", &n);
  if (!source)
    die("tests/gpu/machine/attention.cu", "cannot be read");
  f.reference = compile("attention.cu", source, NULL);
  if (f.json)
    fprintf(f.json, "{\"device\":\"%s\",\"rows\":[", rt_device_info(f.dev)->name);
  for (size_t i = 0; i < N_SIZES; i++)
    if ((!f.only || strstr(sizes[i].program, f.only)) &&
        (!f.variants || kernel_of(sizes[i].program)->n_texts > 1))
      do_size(&sizes[i]);
  print_summary();
  if (f.json) {
    fprintf(f.json, "\n],\"wrong\":%u,\"below_prototype\":%u}\n", f.wrong, f.slow);
    fclose(f.json);
  }
  printf("%u wrong, %u times below 0.98 of the prototype\n", f.wrong, f.slow);
  return f.wrong != 0;
}
