/* Lowers texts, runs them on the host and compares with the interpreter; see help_cg.h. */
#include "help_cg.h"

#include "base/num.h"
#include "ir/range.h"

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

/* Writes ops with numbered values. */
struct writer {
  struct strbuf *out;
  int n;
  char type[40]; /* f32(BM,BN) */
};

static int op(struct writer *w, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int op(struct writer *w, const char *type, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  sb_printf(w->out, "    %%%d = ", w->n);
  sb_vprintf(w->out, fmt, ap);
  va_end(ap);
  sb_printf(w->out, " : %s\n", type);
  return w->n++;
}

static int splat(struct writer *w, const char *value) {
  return op(w, w->type, "splat %%%d", op(w, "f32", "const %s", value));
}

static int activation(struct writer *w, const char *act, int x) {
  const char *t = w->type;
  if (!act)
    return x;
  if (str_eq(act, "relu"))
    return op(w, t, "max %%%d, %%%d", x, splat(w, "0.0"));
  if (str_eq(act, "silu"))
    return op(w, t, "mul %%%d, %%%d", x, op(w, t, "sigmoid %%%d", x));
  int half = splat(w, "0.5"), one = splat(w, "1.0"), y;
  if (str_eq(act, "gelu")) {
    y = op(w, t, "erf %%%d", op(w, t, "mul %%%d, %%%d", x, splat(w, "0.70710676908493042")));
  } else {
    int cube = op(w, t, "mul %%%d, %%%d", op(w, t, "mul %%%d, %%%d", x, x), x);
    y = op(w, t, "fma %%%d, %%%d, %%%d", cube, splat(w, "0.044714998453855515"), x);
    y = op(w, t, "tanh %%%d", op(w, t, "mul %%%d, %%%d", y, splat(w, "0.79788458347320557")));
  }
  x = op(w, t, "mul %%%d, %%%d", x, half);
  return op(w, t, "mul %%%d, %%%d", x, op(w, t, "add %%%d, %%%d", y, one));
}

void cg_gemm_text(struct strbuf *out, const struct cg_gemm *g) {
  struct writer w = {.out = out};
  const char *t = dtype_name(g->t);
  bool f32 = g->t == DT_F32;
  char a[40], b[40], bt[40], c[40], row[40], row32[40], vec[40];
  snprintf(a, sizeof a, "%s(%d,%d)", t, g->bm, g->bk);
  snprintf(b, sizeof b, "%s(%d,%d)", t, g->bn, g->bk);
  snprintf(bt, sizeof bt, "%s(%d,%d)", t, g->bk, g->bn);
  snprintf(c, sizeof c, "%s(%d,%d)", t, g->bm, g->bn);
  snprintf(row, sizeof row, "%s(1,%d)", t, g->bn);
  snprintf(row32, sizeof row32, "f32(1,%d)", g->bn);
  snprintf(vec, sizeof vec, "%s(%d)", t, g->bn);
  snprintf(w.type, sizeof w.type, "f32(%d,%d)", g->bm, g->bn);
  sb_puts(out, "kiln-ir 1 tile\nkernel gemm {\n");
  sb_printf(out, "  arg A: in %s [M, K]\n  arg B: in %s [N, K]\n", t, t);
  if (g->bias)
    sb_printf(out, "  arg bias: in %s [N]\n", t);
  if (g->residual)
    sb_printf(out, "  arg R: in %s [M, N]\n", t);
  sb_printf(out, "  arg C: out %s [M, N]\n  dims M, K, N\n  grid cdiv(M, %d), cdiv(N, %d)\n", t,
            g->bm, g->bn);
  sb_puts(out, "  body(");
  int va = w.n++, vb = w.n++, vbias = g->bias ? w.n++ : 0, vr = g->residual ? w.n++ : 0;
  int vc = w.n++;
  for (int i = 0; i <= vc; i++)
    sb_printf(out, g->bias && i == vbias ? "%%%d: view %s(?), " : "%%%d: view %s(?,?), ", i, t);
  int vk = vc + 2, vi = vc + 4, vj = vc + 5;
  w.n = vc + 6;
  for (int i = vc + 1; i < w.n; i++)
    sb_printf(out, i + 1 < w.n ? "%%%d: index, " : "%%%d: index) {\n", i);
  int m = op(&w, "index", "mul %%%d, %%%d", vi, op(&w, "index", "const %d", g->bm));
  int n = op(&w, "index", "mul %%%d, %%%d", vj, op(&w, "index", "const %d", g->bn));
  int lo = op(&w, "index", "const 0"), step = op(&w, "index", "const %d", g->bk);
  int zero = splat(&w, "0.0"), x = w.n, k = w.n + 1, acc = w.n + 2;
  w.n += 3;
  sb_printf(out, "    %%%d = for %%%d: index = %%%d, %%%d, %%%d carry(%%%d: %s = %%%d) : %s {\n", x,
            k, lo, vk, step, acc, w.type, zero, w.type);
  int ta = op(&w, a, "load %%%d, %%%d, %%%d", va, m, k);
  int tb =
      op(&w, bt, "transpose %%%d {perm = [1,0]}", op(&w, b, "load %%%d, %%%d, %%%d", vb, n, k));
  if (g->computed & 1)
    ta = op(&w, a, "max %%%d, %%%d", ta, ta);
  if (g->computed & 2)
    tb = op(&w, bt, "max %%%d, %%%d", tb, tb);
  int d = op(&w, w.type, "dot %%%d, %%%d, %%%d", ta, tb, acc);
  sb_printf(out, "    yield %%%d\n    }\n", d);
  if (g->bias) {
    int v = op(&w, row, "reshape %%%d", op(&w, vec, "load %%%d, %%%d", vbias, n));
    v = f32 ? v : op(&w, row32, "cast %%%d", v);
    x = op(&w, w.type, "add %%%d, %%%d", x, op(&w, w.type, "broadcast %%%d", v));
  }
  if (g->residual) {
    int v = op(&w, c, "load %%%d, %%%d, %%%d", vr, m, n);
    x = op(&w, w.type, "add %%%d, %%%d", x, f32 ? v : op(&w, w.type, "cast %%%d", v));
  }
  x = activation(&w, g->act, x);
  x = f32 ? x : op(&w, c, "cast %%%d", x);
  sb_printf(out, "    store %%%d, %%%d, %%%d, %%%d\n    return\n  }\n}\n", vc, m, n, x);
}

void cg_add_text(struct strbuf *out, enum dtype t, int tile) {
  struct writer w = {.out = out, .n = 5};
  const char *name = dtype_name(t);
  char type[40];
  snprintf(type, sizeof type, "%s(%d)", name, tile);
  snprintf(w.type, sizeof w.type, "f32(%d)", tile);
  sb_puts(out, "kiln-ir 1 tile\nkernel vector_add {\n");
  sb_printf(out, "  arg X: in %s [N]\n  arg Z: in %s [N]\n  arg Y: out %s [N]\n", name, name, name);
  sb_printf(out, "  dims N\n  grid cdiv(N, %d)\n  body(%%0: view %s(?), %%1: view %s(?), ", tile,
            name, name);
  sb_printf(out, "%%2: view %s(?), %%3: index, %%4: index) {\n", name);
  int at = op(&w, "index", "mul %%4, %%%d", op(&w, "index", "const %d", tile));
  int x = op(&w, type, "load %%0, %%%d", at), z = op(&w, type, "load %%1, %%%d", at);
  if (t != DT_F32) {
    x = op(&w, w.type, "cast %%%d", x);
    z = op(&w, w.type, "cast %%%d", z);
  }
  int y = op(&w, w.type, "add %%%d, %%%d", x, z);
  y = t == DT_F32 ? y : op(&w, type, "cast %%%d", y);
  sb_printf(out, "    store %%2, %%%d, %%%d\n    return\n  }\n}\n", at, y);
}

/* Head of a row kernel over X [M, N], Y [M, N]: returns the tile's offsets. */
static void row_head(struct writer *w, const char *name, enum dtype t, int rows, int cols,
                     bool weight, int *at_row, int *at_col) {
  const char *type = dtype_name(t);
  sb_printf(w->out, "kiln-ir 1 tile\nkernel %s {\n  arg X: in %s [M, N]\n", name, type);
  if (weight)
    sb_printf(w->out, "  arg W: in %s [N]\n  arg eps: scalar f32\n", type);
  sb_printf(w->out, "  arg Y: out %s [M, N]\n  dims M, N\n  fact N = %d\n  grid cdiv(M, %d)\n",
            type, cols, rows);
  sb_printf(w->out, "  body(%%0: view %s(?,%d), ", type, cols);
  w->n = 1;
  if (weight) {
    sb_printf(w->out, "%%1: view %s(%d), %%2: f32, ", type, cols);
    w->n = 3;
  }
  sb_printf(w->out, "%%%d: view %s(?,%d), %%%d: index, %%%d: index, %%%d: index) {\n", w->n, type,
            cols, w->n + 1, w->n + 2, w->n + 3);
  int i = w->n + 3;
  w->n += 4;
  snprintf(w->type, sizeof w->type, "f32(%d,%d)", rows, cols);
  *at_row = op(w, "index", "mul %%%d, %%%d", i, op(w, "index", "const %d", rows));
  *at_col = op(w, "index", "const 0");
}

void cg_softmax_text(struct strbuf *out, enum dtype t, int rows, int cols) {
  struct writer w = {.out = out};
  char type[40], col[40];
  int i, j;
  snprintf(type, sizeof type, "%s(%d,%d)", dtype_name(t), rows, cols);
  snprintf(col, sizeof col, "f32(%d,1)", rows);
  row_head(&w, "softmax", t, rows, cols, false, &i, &j);
  int x = op(&w, type, "load %%0, %%%d, %%%d {pad = -inf}", i, j);
  x = t == DT_F32 ? x : op(&w, w.type, "cast %%%d", x);
  x = op(&w, w.type, "mul %%%d, %%%d", x, splat(&w, "1.4426950216293335"));
  int top = op(&w, w.type, "broadcast %%%d", op(&w, col, "reduce_max %%%d {axis = 1}", x));
  int p = op(&w, w.type, "exp2 %%%d", op(&w, w.type, "sub %%%d, %%%d", x, top));
  int sum = op(&w, w.type, "broadcast %%%d", op(&w, col, "reduce_sum %%%d {axis = 1}", p));
  int y = op(&w, w.type, "div %%%d, %%%d", p, sum);
  y = t == DT_F32 ? y : op(&w, type, "cast %%%d", y);
  sb_printf(out, "    store %%1, %%%d, %%%d, %%%d\n    return\n  }\n}\n", i, j, y);
}

void cg_rmsnorm_text(struct strbuf *out, enum dtype t, int rows, int cols) {
  struct writer w = {.out = out};
  char type[40], col[40], vec[40], row[40], row32[40], scale[40];
  int i, j;
  snprintf(type, sizeof type, "%s(%d,%d)", dtype_name(t), rows, cols);
  snprintf(col, sizeof col, "f32(%d,1)", rows);
  snprintf(vec, sizeof vec, "%s(%d)", dtype_name(t), cols);
  snprintf(row, sizeof row, "%s(1,%d)", dtype_name(t), cols);
  snprintf(row32, sizeof row32, "f32(1,%d)", cols);
  snprintf(scale, sizeof scale, "%.9g", (double)(1.0f / (float)cols));
  row_head(&w, "rmsnorm", t, rows, cols, true, &i, &j);
  int x = op(&w, type, "load %%0, %%%d, %%%d", i, j);
  x = t == DT_F32 ? x : op(&w, w.type, "cast %%%d", x);
  int v = op(&w, row, "reshape %%%d", op(&w, vec, "load %%1, %%%d", j));
  v = t == DT_F32 ? v : op(&w, row32, "cast %%%d", v);
  int sum = op(&w, col, "reduce_sum %%%d {axis = 1}", op(&w, w.type, "mul %%%d, %%%d", x, x));
  int c = op(&w, col, "splat %%%d",
             op(&w, "f32", "const %s", strchr(scale, '.') || strchr(scale, 'e') ? scale : "1.0"));
  int mean = op(&w, col, "mul %%%d, %%%d", sum, c);
  mean = op(&w, col, "add %%%d, %%%d", mean, op(&w, col, "splat %%2"));
  int r = op(&w, w.type, "broadcast %%%d", op(&w, col, "rsqrt %%%d", mean));
  int y = op(&w, w.type, "mul %%%d, %%%d", op(&w, w.type, "mul %%%d, %%%d", x, r),
             op(&w, w.type, "broadcast %%%d", v));
  y = t == DT_F32 ? y : op(&w, type, "cast %%%d", y);
  sb_printf(out, "    store %%3, %%%d, %%%d, %%%d\n    return\n  }\n}\n", i, j, y);
}

/* ---- runs ---- */

const char *cg_test_messages(struct cg_test *t) {
  struct strbuf b = {.arena = &t->mem.arena};
  for (uint32_t i = 0; i < t->diags.list.n; i++)
    diag_render_text(&t->diags, &t->diags.list.at[i], &b);
  return sb_str(&b);
}

void cg_test_begin_module(struct cg_test *t, const char *text) {
  memset(t, 0, sizeof *t);
  help_arena_init(&t->mem);
  assert_true(diag_init(&t->diags, &mem_libc));
  t->seed = 1;
  if (!text)
    return;
  uint32_t file = diag_add_file(&t->diags, "test.tir", text, strlen(text));
  t->tile = ir_parse(&t->mem.arena, &t->diags, file, text, strlen(text));
  if (!t->tile)
    fail_msg("%s\n%s", cg_test_messages(t), text);
}

void cg_test_simplify(struct cg_test *t) {
  uint32_t n;
  const struct ir_pass *p = ir_tile_pipeline(&n);
  if (!ir_run_passes(t->tile, p, n, &t->diags, NULL))
    fail_msg("%s", cg_test_messages(t));
}

void cg_test_begin(struct cg_test *t, const char *text) {
  cg_test_begin_module(t, text);
  cg_test_simplify(t);
}

void cg_test_end(struct cg_test *t) {
  for (uint32_t i = 0; t->tile && i < t->tile->args.n; i++) {
    free(t->base[i]);
    if (t->ref[i].tensor.data != t->arg[i].tensor.data)
      free(t->ref[i].tensor.data);
  }
  diag_free(&t->diags);
  arena_free(&t->mem.arena);
}

/* Value of `name` in "a=1,b=2"; the text after `=`, or NULL. */
static const char *setting(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
    if (strncmp(p, name, n) == 0 && p[n] == '=')
      return p + n + 1;
  return NULL;
}

static bool dim_value(void *user, const char *name, int64_t *value) {
  const char *text = setting(user, name);
  if (text)
    *value = atoll(text);
  return text != NULL;
}

static int next_int(struct cg_test *t, int lo, int hi) {
  t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
  return lo + (int)((t->seed >> 33) % (uint64_t)(hi - lo + 1));
}

static void fill(struct cg_test *t, uint32_t k, enum dtype d, size_t elems, int lo, int hi) {
  for (size_t i = 0; i < elems; i++)
    num_store(d, t->base[k], (int64_t)i, next_int(t, lo, hi));
}

void cg_test_args(struct cg_test *t, const char *dims, const char *layout, int lo, int hi) {
  struct ir_module *m = t->tile;
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *a = &m->args.at[k];
    const char *name = ir_sym(m, a->name), *how = setting(layout, name), *why;
    struct interp_tensor *x = &t->arg[k].tensor;
    if (!a->present)
      continue;
    if (a->kind == IR_ARG_SCALAR) {
      t->arg[k].i = 3;
      t->arg[k].f = 0.5;
      t->ref[k] = t->arg[k];
      continue;
    }
    int64_t pad = how && str_starts(how, "pad") ? atoll(how + 3) : 0, elems = 1;
    int64_t offset = how && str_starts(how, "off") ? atoll(how + 3) : 0;
    bool col = how && str_starts(how, "col");
    x->dtype = a->dtype;
    x->rank = a->rank;
    for (uint32_t d = 0; d < a->rank; d++)
      assert_true(expr_eval(&m->exprs, a->dim[d], dim_value, (void *)dims, &x->dim[d], &why));
    for (uint32_t i = 0; i < a->rank; i++) {
      uint32_t d = col ? i : a->rank - 1 - i;
      x->stride[d] = elems;
      elems *= x->dim[d] + (i == 0 ? pad : 0);
    }
    size_t bytes = (size_t)(dtype_bytes(a->dtype, elems) + dtype_bytes(a->dtype, offset));
    t->alloc[k] = bytes;
    t->base[k] = aligned_alloc(64, (bytes + 64) / 64 * 64 + 64);
    fill(t, k, a->dtype, (size_t)(elems + offset), lo, hi);
    x->data = (char *)t->base[k] + dtype_bytes(a->dtype, offset);
    t->ref[k] = t->arg[k];
    if (a->kind != IR_ARG_IN) {
      t->ref[k].tensor.data = malloc(bytes + 1);
      memcpy(t->ref[k].tensor.data, x->data, bytes - (size_t)dtype_bytes(a->dtype, offset));
    }
  }
}

void cg_test_facts(struct cg_test *t) {
  struct cg_arg_value v[16] = {{0}};
  for (uint32_t k = 0; k < t->tile->args.n; k++) {
    const struct interp_tensor *x = &t->arg[k].tensor;
    v[k].present = x->rank > 0;
    v[k].addr = (uint64_t)(uintptr_t)x->data;
    for (uint32_t d = 0; d < x->rank; d++) {
      v[k].dim[d] = x->dim[d];
      v[k].stride[d] = x->stride[d];
    }
  }
  cg_facts_from_args(t->tile, v);
}

static struct ir_module *lower(struct cg_test *t, const char *target, const char *knobs,
                               enum ir_stage stop) {
  cg_test_facts(t);
  struct cg_options opt = {.target = cg_find_target(target), .schedule = cg_schedule_auto()};
  opt.stop = stop;
  for (const char *p = knobs; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
    char key[40];
    const char *eq = strchr(p, '='), *error;
    snprintf(key, sizeof key, "%.*s", (int)(eq - p), p);
    if (strchr(key, '.')) {
      char word[20];
      snprintf(word, sizeof word, "%.*s", (int)strcspn(eq + 1, ","), eq + 1);
      bool number = word[strspn(word, "-0123456789")] == 0;
      cg_schedule_pin(&opt.schedule, (struct cg_pin){key, number ? NULL : word, atoll(word)},
                      &t->mem.arena);
    } else if (!cg_schedule_set(&opt.schedule, key, atoll(eq + 1), &t->mem.arena, &error)) {
      fail_msg("%s", error);
    }
  }
  /* Products are for the path that all targets share, unless the test names the other. */
  for (struct ir_op o = {1}; o.id < t->tile->ops.n; o.id++)
    if (ir_op_at(t->tile, o)->opcode == IR_DOT &&
        opt.schedule.knob[CG_KNOB_WARPGROUPS] == CG_AUTO && (opt.target->features & CG_WGMMA))
      opt.schedule.knob[CG_KNOB_WARPGROUPS] = 0;
  struct ir_run_options run = {.debug = "roundtrip"};
  opt.run = &run;
  return cg_lower(t->tile, &opt, &t->mem.arena, &t->diags);
}

struct ir_module *cg_test_schedule(struct cg_test *t, const char *target, const char *knobs) {
  return lower(t, target, knobs, IR_SCHEDULED_STAGE);
}

bool cg_test_lower(struct cg_test *t, const char *target, const char *knobs) {
  t->machine = lower(t, target, knobs, IR_MACHINE_STAGE);
  return t->machine != NULL;
}

static void compare_output(struct cg_test *t, uint32_t k, double tolerance) {
  const struct interp_tensor *x = &t->arg[k].tensor, *y = &t->ref[k].tensor;
  const char *name = ir_sym(t->tile, t->tile->args.at[k].name);
  size_t head = (size_t)((char *)x->data - (char *)t->base[k]);
  size_t size = (size_t)dtype_bytes(x->dtype, 1), n = (t->alloc[k] - head) / size;
  if (dtype_bits(x->dtype) == 4) {
    for (size_t i = 0; i < n; i++)
      if (((uint8_t *)x->data)[i] != ((uint8_t *)y->data)[i])
        fail_msg("program %llu, %s: byte %zu is 0x%02x, the interpreter says 0x%02x",
                 (unsigned long long)t->what, name, i, ((uint8_t *)x->data)[i],
                 ((uint8_t *)y->data)[i]);
    return;
  }
  /* The whole allocation: what lies between and beyond the view's elements must not change. */
  for (size_t i = 0; i < n; i++) {
    double a = num_load(x->dtype, x->data, (int64_t)i), b = num_load(y->dtype, y->data, (int64_t)i);
    double scale = fabs(b) > 1 ? fabs(b) : 1;
    bool same = memcmp((char *)x->data + i * size, (char *)y->data + i * size, size) == 0 ||
                (dtype_is_float(x->dtype) && isnan(a) && isnan(b)) ||
                fabs(a - b) <= tolerance * scale;
    if (!same || (tolerance == 0 && a != b && !isnan(a))) {
      if (getenv("KILN_SHOW")) {
        struct strbuf text = {.arena = &t->mem.arena};
        ir_print(t->tile, (struct ir_print_options){0}, &text);
        fputs(sb_str(&text), stderr);
      }
      fail_msg("program %llu, %s: element %zu of the allocation is %g, the interpreter says %g",
               (unsigned long long)t->what, name, i, a, b);
    }
  }
}

struct mach_result cg_test_run(struct cg_test *t) {
  struct mach_args args = {.arg = t->arg, .n = t->tile->args.n};
  memcpy(args.base, t->base, sizeof args.base);
  memcpy(args.alloc, t->alloc, sizeof args.alloc);
  return mach_run(t->machine, &args);
}

struct cg_emulation cg_test_emulate(struct cg_test *t, enum emu_mode mode, uint64_t seed) {
  struct emu_options opt = {.mode = mode, .seed = seed};
  struct cg_emulation r = {.error = ""};
  diag_clear(&t->diags);
  if (!emu_run(t->machine, t->arg, t->tile->args.n, &opt, &r.stats, &t->diags, &mem_libc))
    r.error = cg_test_messages(t);
  return r;
}

static void compare_outputs(struct cg_test *t, double tolerance) {
  for (uint32_t k = 0; k < t->tile->args.n; k++) {
    enum ir_arg_kind kind = t->tile->args.at[k].kind;
    if (t->base[k] && (kind == IR_ARG_OUT || kind == IR_ARG_INOUT))
      compare_output(t, k, tolerance);
  }
}

static void fail_run(struct cg_test *t, const char *who, const char *error) {
  struct strbuf text = {.arena = &t->mem.arena};
  if (getenv("KILN_SHOW"))
    ir_print(t->machine, (struct ir_print_options){0}, &text);
  fputs(sb_str(&text), stderr);
  fail_msg("program %llu, %s: %s", (unsigned long long)t->what, who, error);
}

void cg_test_compare(struct cg_test *t, double tolerance) {
  struct interp_options opt = {.domain = INTERP_ROUNDED, .check_races = true};
  void *before[16] = {NULL};
  for (uint32_t k = 0; k < t->tile->args.n; k++)
    if (t->base[k])
      before[k] = arena_copy(&t->mem.arena, t->base[k], t->alloc[k]);
  bool racy = !interp_run(t->tile, t->ref, t->tile->args.n, &opt, &t->diags, &mem_libc);
  for (uint32_t i = 0; i < t->diags.list.n && racy; i++)
    if (t->diags.list.at[i].id != DIAG_RACE)
      fail_msg("%s", cg_test_messages(t));
  struct mach_result r = cg_test_run(t);
  if (!r.ok)
    fail_run(t, "executor", r.error);
  compare_outputs(t, tolerance);
  if (racy) /* right only where programs run in order, as they do in the executor */
    return;
  for (uint32_t k = 0; k < t->tile->args.n; k++)
    if (t->base[k])
      memcpy(t->base[k], before[k], t->alloc[k]);
  enum emu_mode mode = (enum emu_mode)(t->what % EMU_MODES);
  struct cg_emulation e = cg_test_emulate(t, mode, t->what);
  if (*e.error)
    fail_run(t, emu_mode_name(mode), e.error);
  compare_outputs(t, tolerance);
}

/* A tensor's memory as payloads, in the same strides; ints as they are. */
static void payloads(struct cg_test *t, uint32_t k, struct interp_arg *out) {
  struct arena *a = &t->mem.arena;
  *out = t->arg[k];
  struct interp_tensor *x = &out->tensor;
  if (!t->base[k])
    return;
  size_t head = (size_t)((char *)x->data - (char *)t->base[k]);
  if (!dtype_is_float(x->dtype)) {
    x->data = (char *)arena_copy(a, t->base[k], t->alloc[k]) + head;
    return;
  }
  size_t size = (size_t)dtype_bytes(x->dtype, 1), n = t->alloc[k] / size;
  int64_t *p = ARENA_ARRAY(a, int64_t, n + 1);
  for (size_t i = 0; i < n; i++) {
    t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
    p[i] = (int64_t)(t->seed ^ t->seed >> 29);
    if (next_int(t, 0, 3) == 0)
      p[i] = next_int(t, -2, 2);
  }
  x->data = p + head / size;
  x->dtype = DT_S64;
}

void cg_test_compare_algebra(struct cg_test *t, uint32_t runs) {
  uint32_t n = t->tile->args.n;
  struct interp_arg ref[16], arg[16];
  struct interp_options opt = {.domain = INTERP_ALGEBRAIC};
  uint64_t seed = t->seed;
  for (uint32_t k = 0; k < n; k++)
    payloads(t, k, &ref[k]);
  if (!interp_run(t->tile, ref, n, &opt, &t->diags, &mem_libc))
    fail_msg("%s", cg_test_messages(t));
  for (uint32_t r = 0; r < runs; r++) {
    struct emu_options e = {
        .domain = INTERP_ALGEBRAIC, .mode = (enum emu_mode)(r % EMU_MODES), .seed = r};
    t->seed = seed;
    for (uint32_t k = 0; k < n; k++)
      payloads(t, k, &arg[k]);
    if (!emu_run(t->machine, arg, n, &e, NULL, &t->diags, &mem_libc))
      fail_run(t, emu_mode_name(e.mode), cg_test_messages(t));
    for (uint32_t k = 0; k < n; k++) {
      if (!t->base[k])
        continue;
      size_t head = (size_t)((char *)t->arg[k].tensor.data - (char *)t->base[k]);
      size_t size = (size_t)dtype_bytes(t->arg[k].tensor.dtype, 1);
      size_t each = arg[k].tensor.dtype == t->arg[k].tensor.dtype ? size : 8;
      for (size_t i = 0; i < (t->alloc[k] - head) / size; i++)
        if (memcmp((char *)arg[k].tensor.data + i * each, (char *)ref[k].tensor.data + i * each,
                   each) != 0)
          fail_msg("%s, %s: element %zu of the allocation is another payload than the "
                   "interpreter's",
                   ir_sym(t->tile, t->tile->args.at[k].name), emu_mode_name(e.mode), i);
    }
  }
}

void cg_check(const char *text, const char *dims, const char *layout, const char *knobs,
              double tolerance) {
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, dims, layout, -3, 4);
  if (!cg_test_lower(&t, "sm_90a", knobs))
    fail_msg("refused: %s", cg_test_messages(&t));
  cg_test_compare(&t, tolerance);
  cg_test_end(&t);
}
