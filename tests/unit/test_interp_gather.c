/* gather, scatter and atomics of the interpreter: every dtype against plain loops, indices of every
 * shape and far out of range, views between; what conflicts and what does not. */
#include "help_interp.h"
#include "help_ref.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const enum dtype memory_types[] = {DT_BOOL, DT_S4,  DT_U4,  DT_S8,   DT_U8,
                                          DT_S32,  DT_S64, DT_F16, DT_BF16, DT_E4M3,
                                          DT_E5M2, DT_F32, DT_F64};

enum { BYTES = 4096, MAX_CELLS = 64 };
static unsigned char data[BYTES], flat[BYTES], want[BYTES];

static long double small(enum dtype t, uint64_t r) {
  return t == DT_BOOL ? (long double)(r & 1) : (long double)(r % 7);
}

/* One index operand: a scalar (rank 0) or a tile, and its values. */
struct index {
  uint32_t rank;
  int64_t dim[3];
  int64_t x[MAX_CELLS];
};

struct access {
  uint32_t rank; /* of the tensor */
  int64_t dim[3], stride[3], offset;
  struct index index[3];
  uint32_t out_rank;
  int64_t out[3], n; /* what is selected */
};

static uint64_t below(uint64_t *seed, uint64_t n) {
  return ref_random(seed) % n;
}

static void draw(struct access *a, uint64_t *seed, bool distinct) {
  static const int64_t far[] = {INT64_MIN, INT64_MAX, -1, 1 << 20};
  *a = (struct access){.rank = 1 + (uint32_t)below(seed, 3), .n = 1};
  a->out_rank = (uint32_t)below(seed, 4);
  for (uint32_t d = 0; d < a->out_rank; d++) {
    a->out[d] = 1;
  }
  int64_t s = 1;
  for (uint32_t k = a->rank; k-- > 0;) {
    a->dim[k] = 1 + (int64_t)below(seed, 6);
    a->stride[k] = s + (int64_t)below(seed, 2);
    s = a->stride[k] * a->dim[k];
    if (below(seed, 3) == 0) {
      a->offset += (a->dim[k] - 1) * a->stride[k];
      a->stride[k] = -a->stride[k];
    }
  }
  for (uint32_t k = 0; k < a->rank; k++) {
    struct index *x = &a->index[k];
    x->rank = below(seed, 3) ? a->out_rank : 0;
    int64_t n = 1;
    for (uint32_t d = 0; d < x->rank; d++) {
      int64_t size = a->out[d] > 1 ? a->out[d] : 2 + (int64_t)below(seed, 3);
      x->dim[d] = below(seed, 2) && !distinct ? 1 : size;
      a->out[d] = x->dim[d] > a->out[d] ? x->dim[d] : a->out[d];
      n *= x->dim[d];
    }
    for (int64_t i = 0; i < n; i++)
      x->x[i] = below(seed, 8) ? (int64_t)below(seed, (uint64_t)a->dim[k] + 2) - 1
                               : far[below(seed, COUNT(far))];
  }
  bool any = false;
  for (uint32_t k = 0; k < a->rank; k++)
    any |= a->index[k].rank > 0;
  if (!any)
    a->out_rank = 0;
  for (uint32_t d = 0; d < a->out_rank; d++)
    a->n *= a->out[d];
}

/* The element that cell i of what is selected stands for; -1 out of range. */
static int64_t element_of(const struct access *a, int64_t i) {
  int64_t at[3] = {0}, e = a->offset;
  for (uint32_t d = a->out_rank; d-- > 0;) {
    at[d] = i % a->out[d];
    i /= a->out[d];
  }
  for (uint32_t k = 0; k < a->rank; k++) {
    const struct index *x = &a->index[k];
    int64_t cell = 0;
    for (uint32_t d = 0; d < x->rank; d++)
      cell = cell * x->dim[d] + (x->dim[d] == 1 ? 0 : at[d]);
    if (x->x[cell] < 0 || x->x[cell] >= a->dim[k])
      return -1;
    e += x->x[cell] * a->stride[k];
  }
  return e;
}

/* Kernel (X, I0, I1, I2, O): the indices come from memory. */
struct kernel {
  struct hi h;
  struct ir_val in[2 + IR_MAX_RANK]; /* view, indices */
  struct ir_type t;
};

static const char *const names[] = {"A", "A,B", "A,B,C"};
static const int64_t ones[IR_MAX_RANK] = {1, 1, 1, 1, 1};

static void put_dims(char *text, uint32_t rank, const int64_t *dim) {
  size_t n = 0;
  strcpy(text, "1");
  for (uint32_t d = 0; d < rank; d++)
    n += (size_t)snprintf(text + n, 60 - n, "%s%lld", d ? "," : "", (long long)dim[d]);
}

static struct ir_val load_all(struct hi *h, uint32_t arg, uint32_t rank, const int64_t *dim) {
  struct ir_val zero[IR_MAX_RANK];
  for (uint32_t d = 0; d < (rank ? rank : 1); d++)
    zero[d] = hi_index(h, 0);
  struct ir_val v = hi_load(h, arg, zero, rank ? dim : ones);
  return rank ? v : hi_op1(h, IR_ITEM, v);
}

static void store_all(struct hi *h, uint32_t arg, struct ir_val v) {
  struct ir_val zero[IR_MAX_RANK];
  struct ir_type t = ir_type_of(h->m, v);
  if (t.kind == IR_SCALAR)
    v = hi_splat(h, v, 1, ones);
  for (uint32_t d = 0; d < (t.rank ? t.rank : 1); d++)
    zero[d] = hi_index(h, 0);
  hi_store(h, arg, zero, v);
}

static void start(struct kernel *k, struct access *a, enum dtype t, enum ir_arg_kind kind) {
  char dims[64];
  struct hi *h = &k->h;
  hi_init(h);
  hi_tensor(h, "X", kind, t, names[a->rank - 1]);
  for (uint32_t i = 0; i < 3; i++) {
    static const char *const index_names[] = {"I0", "I1", "I2"};
    put_dims(dims, a->index[i].rank, a->index[i].dim);
    hi_tensor(h, index_names[i], IR_ARG_IN, DT_S64, dims);
  }
  put_dims(dims, a->out_rank, a->out);
  hi_tensor(h, "O", IR_ARG_INOUT, t, dims);
  hi_begin(h, "1");
  k->in[0] = h->arg[0];
  for (uint32_t i = 0; i < a->rank; i++)
    k->in[1 + i] = hi_cast(h, DT_INDEX, load_all(h, 1 + i, a->index[i].rank, a->index[i].dim));
  k->t = a->out_rank ? ir_tile(t, a->out_rank, a->out) : ir_scalar(t);
}

static bool finish(struct kernel *k, struct access *a, enum dtype t) {
  struct hi *h = &k->h;
  hi_end(h);
  struct interp_tensor x = {.data = data, .dtype = t, .rank = a->rank, .offset = a->offset};
  memcpy(x.dim, a->dim, sizeof a->dim);
  memcpy(x.stride, a->stride, sizeof a->stride);
  h->value[0].tensor = x;
  for (uint32_t i = 0; i < 3; i++)
    h->value[1 + i].tensor =
        interp_dense(a->index[i].x, DT_S64, a->index[i].rank ? a->index[i].rank : 1,
                     a->index[i].rank ? a->index[i].dim : ones);
  h->value[4].tensor =
      interp_dense(flat, t, a->out_rank ? a->out_rank : 1, a->out_rank ? a->out : ones);
  return hi_run(h);
}

static void fill(enum dtype t, uint64_t seed) {
  memset(data, 0, sizeof data);
  memset(flat, 0, sizeof flat);
  for (int64_t i = 0; i < 500; i++)
    ref_put(t, data, i, small(t, ref_random(&seed)));
  for (int64_t i = 0; i < MAX_CELLS; i++)
    ref_put(t, flat, i, small(t, ref_random(&seed)));
}

static void test_gather(void **state) {
  (void)state;
  uint32_t inside = 0, outside = 0, scalars = 0;
  for (uint64_t s = 1; s <= 1500; s++) {
    uint64_t seed = s;
    enum dtype t = memory_types[s % COUNT(memory_types)];
    struct access a;
    struct kernel k;
    draw(&a, &seed, false);
    fill(t, s);
    start(&k, &a, t, IR_ARG_IN);
    struct ir_val v = ir_build1(&k.h.b, IR_GATHER, k.t, 1 + a.rank, k.in);
    if (s % 2)
      hi_set_pad(&k.h, v, 1);
    store_all(&k.h, 4, v);
    if (!finish(&k, &a, t))
      fail_msg("seed %llu: %s", (unsigned long long)s, help_last_message(&k.h.diags));
    hi_free(&k.h);
    for (int64_t i = 0; i < a.n; i++) {
      int64_t e = element_of(&a, i);
      long double x = e < 0 ? (s % 2 ? 1 : 0) : ref_get(t, data, e);
      if (ref_get(t, flat, i) != x)
        fail_msg("seed %llu: cell %lld of %s", (unsigned long long)s, (long long)i, dtype_name(t));
      inside += e >= 0;
      outside += e < 0;
    }
    scalars += !a.out_rank;
  }
  assert_true(inside > 1000 && outside > 1000 && scalars > 50);
}

/* Elements that several cells stand for take the last in order, where races are not checked. */
static void test_scatter(void **state) {
  (void)state;
  uint32_t repeated = 0;
  for (uint64_t s = 1; s <= 1500; s++) {
    uint64_t seed = s;
    enum dtype t = memory_types[s % COUNT(memory_types)];
    struct access a;
    struct kernel k;
    draw(&a, &seed, true);
    fill(t, s);
    memcpy(want, data, sizeof data);
    bool twice = false, seen[500] = {false};
    for (int64_t i = 0; i < a.n; i++) {
      int64_t e = element_of(&a, i);
      if (e < 0)
        continue;
      ref_put(t, want, e, ref_get(t, flat, i));
      twice |= seen[e];
      seen[e] = true;
    }
    repeated += twice;
    start(&k, &a, t, IR_ARG_INOUT);
    k.in[1 + a.rank] = load_all(&k.h, 4, a.out_rank, a.out);
    ir_build(&k.h.b, IR_SCATTER, 2 + a.rank, k.in, 0, NULL);
    k.h.opt.check_races = true;
    if (finish(&k, &a, t) != !twice)
      fail_msg("seed %llu: an element written twice is %sreported", (unsigned long long)s,
               twice ? "not " : "");
    if (twice)
      help_expect_diag(&k.h.diags, DIAG_RACE, "of 'X' more than once");
    hi_free(&k.h);
    if (memcmp(want, data, sizeof data) != 0)
      fail_msg("seed %llu: %s", (unsigned long long)s, dtype_name(t));
  }
  assert_true(repeated > 100);
}

/* ---- atomics ---- */

static const struct {
  const char *kind;
  enum dtype t[7];
} atomics[] = {
    {"add", {DT_F32, DT_F64, DT_F16, DT_BF16, DT_S32, DT_S64, DT_S32}},
    {"min", {DT_S32, DT_S64, DT_F32, DT_F32, DT_F32, DT_S32, DT_S64}},
    {"max", {DT_S32, DT_S64, DT_F32, DT_F32, DT_F32, DT_S32, DT_S64}},
    {"and", {DT_S32, DT_S64, DT_S32, DT_S64, DT_S32, DT_S64, DT_S32}},
    {"or", {DT_S32, DT_S64, DT_S32, DT_S64, DT_S32, DT_S64, DT_S32}},
    {"xor", {DT_S32, DT_S64, DT_S32, DT_S64, DT_S32, DT_S64, DT_S32}},
    {"exchange", {DT_S32, DT_S64, DT_F32, DT_F64, DT_F32, DT_S32, DT_S64}},
};

static long double extreme(bool largest, long double x, long double y) {
  if (isnan(x) || isnan(y))
    return NAN;
  if (x == y)
    return signbit(x) && !largest ? x : signbit(y) && !largest ? y : signbit(x) ? y : x;
  return (x < y) == largest ? y : x;
}

static long double combine(const char *kind, enum dtype t, long double x, long double y) {
  if (str_eq(kind, "add"))
    return dtype_is_float(t) ? x + y
                             : (long double)(int64_t)((uint64_t)(int64_t)x + (uint64_t)(int64_t)y);
  if (str_eq(kind, "min") || str_eq(kind, "max"))
    return extreme(str_eq(kind, "max"), x, y);
  if (str_eq(kind, "and"))
    return (long double)((int64_t)x & (int64_t)y);
  if (str_eq(kind, "or"))
    return (long double)((int64_t)x | (int64_t)y);
  if (str_eq(kind, "xor"))
    return (long double)((int64_t)x ^ (int64_t)y);
  return y;
}

static int64_t wrap(enum dtype t, long double x) {
  return t == DT_S32 ? (int32_t)(uint32_t)(int64_t)x : (int64_t)x;
}

static bool same(enum dtype t, const void *x, const void *y, int64_t i) {
  long double a = ref_get(t, x, i), b = ref_get(t, y, i);
  return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* Random bits: NaN, infinities, -0 and the ends of the integers are among them. */
static void fill_bits(enum dtype t, uint64_t seed, unsigned char *to, int64_t n) {
  static const double special[] = {0.0,        -0.0, 1.5, (double)INFINITY, -(double)INFINITY,
                                   (double)NAN};
  for (int64_t i = 0; i < n; i++) {
    uint64_t r = ref_random(&seed);
    if (dtype_is_float(t) && r % 4 == 0)
      ref_put(t, to, i, (long double)special[r / 4 % COUNT(special)]);
    else
      memcpy(to + i * dtype_bytes(t, 1), &r, (size_t)dtype_bytes(t, 1));
  }
}

static void test_atomics(void **state) {
  (void)state;
  static unsigned char old[BYTES], x[BYTES];
  for (uint64_t s = 1; s <= 2000; s++) {
    uint64_t seed = s;
    const char *kind = atomics[s % COUNT(atomics)].kind;
    enum dtype t = atomics[s % COUNT(atomics)].t[s / COUNT(atomics) % 7];
    struct access a;
    struct kernel k;
    draw(&a, &seed, s % 2);
    memset(data, 0, sizeof data);
    fill_bits(t, s, data, 400);
    fill_bits(t, s + 7, flat, MAX_CELLS);
    memcpy(want, data, sizeof data);
    memcpy(x, flat, sizeof flat);
    memset(old, 0, sizeof old);
    for (int64_t i = 0; i < a.n; i++) {
      int64_t e = element_of(&a, i);
      if (e < 0)
        continue;
      long double was = ref_get(t, want, e), y = combine(kind, t, was, ref_get(t, x, i));
      ref_put(t, old, i, was);
      if (dtype_is_float(t))
        ref_put(t, want, e, ref_round(t, y));
      else
        ref_put(t, want, e, (long double)wrap(t, y));
    }
    start(&k, &a, t, IR_ARG_INOUT);
    k.in[1 + a.rank] = load_all(&k.h, 4, a.out_rank, a.out);
    struct ir_val v = ir_build1(&k.h.b, IR_ATOMIC, k.t, 2 + a.rank, k.in);
    ir_set_attr(k.h.m, ir_value_at(k.h.m, v)->def,
                (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(k.h.m->syms, kind)});
    store_all(&k.h, 4, v);
    k.h.opt.check_races = true; /* one element several times is no conflict */
    if (!finish(&k, &a, t))
      fail_msg("seed %llu: %s", (unsigned long long)s, help_last_message(&k.h.diags));
    hi_free(&k.h);
    for (int64_t i = 0; i < a.n; i++)
      if (!same(t, old, flat, i))
        fail_msg("seed %llu: atomic %s of %s: old value %lld", (unsigned long long)s, kind,
                 dtype_name(t), (long long)i);
    for (int64_t i = 0; i < 400; i++)
      if (!same(t, want, data, i))
        fail_msg("seed %llu: atomic %s of %s: element %lld is %Lg, not %Lg", (unsigned long long)s,
                 kind, dtype_name(t), (long long)i, ref_get(t, data, i), ref_get(t, want, i));
  }
}

/* The other domains: f16 sums unrounded in double, payloads as the ring and the order have them. */
static void test_domains(void **state) {
  (void)state;
  static const char *const kinds[] = {"add", "min", "max", "exchange"};
  static const double sums[] = {1 + 0x1p-20 + 0x1p-20, 0x1p-20, 1, 0x1p-20};
  const int64_t x0 = (int64_t)1 << 62, v = x0 + 1;
  static const bool of_f32[] = {false, true, true, true};
  for (size_t k = 0; k < COUNT(kinds); k++)
    for (int payload = 0; payload < 2; payload++) {
      struct hi h;
      enum dtype t = of_f32[k] ? DT_F32 : DT_F16;
      double x[1] = {1}, value[2] = {0x1p-20, 0x1p-20};
      int64_t px[1] = {x0}, pvalue[2] = {v, v}, two = 2;
      hi_init(&h);
      h.opt.domain = payload ? INTERP_ALGEBRAIC : INTERP_DOUBLE;
      hi_tensor(&h, "X", IR_ARG_INOUT, t, "1");
      hi_tensor(&h, "V", IR_ARG_IN, t, "2");
      hi_begin(&h, "1");
      struct ir_val zero = hi_index(&h, 0);
      struct ir_val in[3] = {h.arg[0], hi_splat(&h, zero, 1, &two), hi_load1(&h, 1, zero, 2)};
      struct ir_val r = ir_build1(&h.b, IR_ATOMIC, ir_type_of(h.m, in[2]), 3, in);
      ir_set_attr(h.m, ir_value_at(h.m, r)->def,
                  (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(h.m->syms, kinds[k])});
      hi_end(&h);
      hi_bind_as(&h, 0, payload ? DT_S64 : DT_F64, payload ? (void *)px : x, (int64_t[]){1});
      hi_bind_as(&h, 1, payload ? DT_S64 : DT_F64, payload ? (void *)pvalue : value,
                 (int64_t[]){2});
      hi_run_ok(&h);
      hi_free(&h);
      const int64_t payloads[] = {(int64_t)((uint64_t)x0 + 2 * (uint64_t)v), x0, v, v};
      if (payload ? px[0] != payloads[k] : x[0] != sums[k])
        fail_msg("atomic %s: %.17g, %lld", kinds[k], x[0], (long long)px[0]);
    }
}

/* Indices beyond 2^31 and 2^32, in a tensor whose rows are all the same memory. */
static void test_far_indices(void **state) {
  (void)state;
  const int64_t rows = INT64_C(51200) * 51200;
  const int64_t at[5] = {0, rows - 1, rows, -1, INT64_C(1) << 33};
  float row[4] = {1, 2, 3, 4}, got[5 * 4];
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "M,N");
  hi_tensor(&h, "I", IR_ARG_IN, DT_S64, "5,1");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "5,4");
  hi_begin(&h, "1");
  struct ir_val zero = hi_index(&h, 0);
  struct ir_val in[3] = {h.arg[0], hi_cast(&h, DT_INDEX, hi_load2(&h, 1, zero, zero, 5, 1)),
                         hi_iota(&h, 1, 4)};
  struct ir_type t = ir_tile(DT_F32, 2, (int64_t[]){5, 4});
  hi_store2(&h, 2, zero, zero, ir_build1(&h.b, IR_GATHER, t, 3, in));
  hi_end(&h);
  hi_bind(&h, 0, row, (int64_t[]){rows, 4});
  h.value[0].tensor.stride[0] = 0;
  hi_bind(&h, 1, (void *)(uintptr_t)at, (int64_t[]){5, 1});
  hi_bind(&h, 2, got, (int64_t[]){5, 4});
  hi_run_ok(&h);
  hi_free(&h);
  for (int i = 0; i < 20; i++)
    assert_true(got[i] == (i < 8 ? row[i % 4] : 0));
}

/* A histogram over the programs of a grid: any order gives the same counts. */
static void test_histogram(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    struct hi h;
    int32_t x[100], counts[10] = {0}, naive[10] = {0};
    hi_init(&h);
    h.opt.check_races = true;
    h.opt.grid_seed = seed;
    hi_tensor(&h, "X", IR_ARG_IN, DT_S32, "N");
    hi_tensor(&h, "H", IR_ARG_INOUT, DT_S32, "B");
    hi_begin(&h, "cdiv(N, 8)");
    struct ir_val at = hi_op2(&h, IR_MUL, h.grid[0], hi_index(&h, 8));
    struct ir_val v = hi_load1(&h, 0, at, 8);
    hi_set_pad(&h, v, -1);
    int64_t eight = 8;
    struct ir_val in[3] = {h.arg[1], hi_cast(&h, DT_INDEX, v),
                           hi_splat(&h, ir_const_int(&h.b, DT_S32, 1), 1, &eight)};
    struct ir_val r = ir_build1(&h.b, IR_ATOMIC, ir_type_of(h.m, in[2]), 3, in);
    ir_set_attr(h.m, ir_value_at(h.m, r)->def,
                (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(h.m->syms, "add")});
    hi_end(&h);
    for (int i = 0; i < 100; i++) {
      x[i] = i * i % 11;
      if (x[i] < 10)
        naive[x[i]]++;
    }
    hi_bind(&h, 0, x, (int64_t[]){100});
    hi_bind(&h, 1, counts, (int64_t[]){10});
    hi_run_ok(&h);
    hi_free(&h);
    assert_memory_equal(counts, naive, sizeof naive);
  }
}

/* ---- conflicts between programs ---- */

enum touch { READS, WRITES, ATOMIC, GATHERS, SCATTERS };

static void touch(struct hi *h, enum touch what, struct ir_val at) {
  struct ir_val in[3] = {h->arg[0], at, ir_const_int(&h->b, DT_S32, 1)};
  struct ir_type t = ir_scalar(DT_S32);
  struct ir_val v = {0};
  switch (what) {
  case READS: v = hi_load1(h, 0, at, 1); break;
  case WRITES: hi_store1(h, 0, at, hi_splat(h, in[2], 1, ones)); break;
  case GATHERS: v = ir_build1(&h->b, IR_GATHER, t, 2, in); break;
  case SCATTERS: ir_build(&h->b, IR_SCATTER, 3, in, 0, NULL); break;
  case ATOMIC:
    v = ir_build1(&h->b, IR_ATOMIC, t, 3, in);
    ir_set_attr(h->m, ir_value_at(h->m, v)->def,
                (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(h->m->syms, "max")});
    break;
  }
  if (v.id)
    hi_message(h, IR_PRINT, NULL, 1, &v);
}

/* Program 0 does one thing to element 2, program 1 another, in either order of the programs. */
static void test_conflicts(void **state) {
  (void)state;
  static const char *const said[] = {"reads", "writes", "changes atomically", "reads", "writes"};
  for (unsigned first = READS; first <= SCATTERS; first++)
    for (unsigned second = READS; second <= SCATTERS; second++)
      for (uint64_t seed = 0; seed < 6; seed++) {
        bool reads = (first == READS || first == GATHERS) && (second == READS || second == GATHERS);
        bool fine = reads || (first == ATOMIC && second == ATOMIC);
        struct hi h;
        int32_t x[4] = {0};
        hi_init(&h);
        h.opt.check_races = true;
        h.opt.grid_seed = seed;
        hi_tensor(&h, "X", IR_ARG_INOUT, DT_S32, "N");
        hi_begin(&h, "2");
        touch(&h, WRITES, hi_op2(&h, IR_MUL, h.grid[0], hi_index(&h, 3))); /* its own */
        hi_if(&h, hi_op2(&h, IR_EQ, h.grid[0], hi_index(&h, 0)), 0, NULL);
        touch(&h, (enum touch)first, hi_index(&h, 2));
        hi_yield(&h, 0, NULL);
        touch(&h, (enum touch)second, hi_index(&h, 2));
        touch(&h, (enum touch)second, hi_index(&h, 2));
        hi_yield(&h, 0, NULL);
        hi_end(&h);
        hi_bind(&h, 0, x, (int64_t[]){4});
        if (hi_run(&h) != fine)
          fail_msg("%s against %s: %sreported", said[first], said[second], fine ? "" : "not ");
        if (!fine)
          help_expect_diag(&h.diags, DIAG_RACE, "element (2) of 'X', which another program");
        hi_free(&h);
      }
}

/* Within a program accesses keep their order: nothing conflicts. */
static void test_own_order(void **state) {
  (void)state;
  struct hi h;
  int32_t x[4] = {0};
  hi_init(&h);
  h.opt.check_races = true;
  hi_tensor(&h, "X", IR_ARG_INOUT, DT_S32, "N");
  hi_begin(&h, "2");
  for (unsigned a = READS; a <= SCATTERS; a++)
    for (unsigned b = READS; b <= SCATTERS; b++) {
      touch(&h, (enum touch)a, h.grid[0]);
      touch(&h, (enum touch)b, h.grid[0]);
    }
  hi_end(&h);
  hi_bind(&h, 0, x, (int64_t[]){4});
  hi_run_ok(&h);
  assert_int_equal(x[0], 1);
  assert_int_equal(x[1], 1);
  assert_int_equal(x[2], 0);
  hi_free(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gather),      cmocka_unit_test(test_scatter),
      cmocka_unit_test(test_atomics),     cmocka_unit_test(test_domains),
      cmocka_unit_test(test_far_indices), cmocka_unit_test(test_histogram),
      cmocka_unit_test(test_conflicts),   cmocka_unit_test(test_own_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
