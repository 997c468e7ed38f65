/* Views on the GPU's way: random chains of view ops over a tensor of any rank, loads and stores
 * through them at offsets that may lie outside, in and out of loops. What they are lowered to, run
 * on the host, gives the interpreter's bits, and fails where the interpreter does. */
#include "help_cg.h"
#include "help_gen_ir.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 1200

/* An index scalar of the text being written, and its value. */
struct index {
  int name;
  int64_t value;
};

struct gen {
  struct strbuf out;
  uint64_t state;
  int next; /* number of the next value */
  int indent;
  VEC(struct index) pool;
  struct arena *a;
};

struct view {
  int name;
  uint32_t rank;
  int64_t size[IR_MAX_RANK];
  bool is_const[IR_MAX_RANK]; /* the type says the size */
  bool repeats;
};

static int64_t below(struct gen *g, int64_t n) {
  return (int64_t)gen_below(&g->state, (uint64_t)n);
}

static void line(struct gen *g) {
  sb_printf(&g->out, "%*s", g->indent, "");
}

static struct index add_index(struct gen *g, int64_t value) {
  struct index x = {g->next++, value};
  VEC_PUSH(g->a, &g->pool, x);
  return x;
}

static struct index constant(struct gen *g, int64_t value) {
  line(g);
  sb_printf(&g->out, "%%%d = const %lld : index\n", g->next, (long long)value);
  return add_index(g, value);
}

static struct index arith(struct gen *g, const char *op, struct index a, struct index b,
                          int64_t value) {
  line(g);
  sb_printf(&g->out, "%%%d = %s %%%d, %%%d : index\n", g->next, op, a.name, b.name);
  return add_index(g, value);
}

/* An index of this value: a constant, one that is there, or one of those and some more. */
static struct index of_value(struct gen *g, int64_t value) {
  uint32_t n = g->pool.n;
  for (uint32_t i = 0; i < n && below(g, 4); i++) {
    struct index x = g->pool.at[(uint32_t)below(g, n)];
    if (x.value == value)
      return x;
    if (x.value && below(g, 2) && value % x.value == 0 && x.value > 0)
      return arith(g, "mul", x, constant(g, value / x.value), value);
    if (below(g, 3) == 0)
      return arith(g, "add", x, constant(g, value - x.value), value);
    if (value > 0 && x.value > 0 && x.value % value == 0 && below(g, 2))
      return arith(g, "floordiv", x, constant(g, x.value / value), value);
  }
  return constant(g, value);
}

static void put_type(struct gen *g, const struct view *v, const char *dtype) {
  sb_printf(&g->out, "view %s(", dtype);
  for (uint32_t d = 0; d < v->rank; d++) {
    if (v->is_const[d])
      sb_printf(&g->out, "%s%lld", d ? "," : "", (long long)v->size[d]);
    else
      sb_printf(&g->out, "%s?", d ? "," : "");
  }
  sb_puts(&g->out, ")");
}

static void view_at(struct gen *g, struct view *v, const char *dtype) {
  uint32_t axis = (uint32_t)below(g, v->rank);
  struct index x = of_value(g, below(g, v->size[axis] + 2) - (below(g, 8) == 0));
  int from = v->name;
  v->rank--;
  for (uint32_t d = axis; d < v->rank; d++) {
    v->size[d] = v->size[d + 1];
    v->is_const[d] = v->is_const[d + 1];
  }
  v->name = g->next++;
  line(g);
  sb_printf(&g->out, "%%%d = view_at %%%d, %%%d {axis = %u} : ", v->name, from, x.name, axis);
  put_type(g, v, dtype);
  sb_puts(&g->out, "\n");
}

static bool is_constant(const struct gen *g, struct index x) {
  const char *text = sb_str((struct strbuf *)&g->out);
  char head[40];
  snprintf(head, sizeof head, " %%%d = const ", x.name);
  return strstr(text, head) != NULL;
}

static void view_slice(struct gen *g, struct view *v, const char *dtype) {
  struct index offset[IR_MAX_RANK], size[IR_MAX_RANK];
  int from = v->name;
  for (uint32_t d = 0; d < v->rank; d++) {
    int64_t kind = below(g, 10), n = v->size[d];
    offset[d] = of_value(g, kind < 3 ? 0 : kind < 9 ? below(g, n + 1) : -below(g, 4));
    if (kind == 9 && below(g, 6) == 0) { /* not to be computed with: that would overflow */
      offset[d] = constant(g, below(g, 2) ? INT64_MAX - below(g, 2) : -(INT64_C(1) << 62));
      g->pool.n--;
    }
    n = kind < 2 ? n : kind < 7 && offset[d].value <= n ? n - offset[d].value : below(g, 20);
    size[d] = of_value(g, n - (below(g, 12) == 0 ? n + 3 : 0));
  }
  for (uint32_t d = 0; d < v->rank; d++) {
    v->is_const[d] = size[d].value >= 0 && is_constant(g, size[d]);
    v->size[d] = size[d].value < 0 ? 0 : size[d].value;
  }
  v->name = g->next++;
  line(g);
  sb_printf(&g->out, "%%%d = view_slice %%%d", v->name, from);
  for (uint32_t d = 0; d < v->rank; d++)
    sb_printf(&g->out, ", %%%d", offset[d].name);
  for (uint32_t d = 0; d < v->rank; d++)
    sb_printf(&g->out, ", %%%d", size[d].name);
  sb_puts(&g->out, " : ");
  put_type(g, v, dtype);
  sb_puts(&g->out, "\n");
}

static void view_transpose(struct gen *g, struct view *v, const char *dtype) {
  uint32_t perm[IR_MAX_RANK];
  struct view from = *v;
  for (uint32_t d = 0; d < v->rank; d++)
    perm[d] = d;
  for (uint32_t d = v->rank; d-- > 1;) {
    uint32_t k = (uint32_t)below(g, d + 1), t = perm[d];
    perm[d] = perm[k];
    perm[k] = t;
  }
  v->name = g->next++;
  line(g);
  sb_printf(&g->out, "%%%d = view_transpose %%%d {perm = [", v->name, from.name);
  for (uint32_t d = 0; d < v->rank; d++) {
    v->size[d] = from.size[perm[d]];
    v->is_const[d] = from.is_const[perm[d]];
    sb_printf(&g->out, "%s%u", d ? "," : "", perm[d]);
  }
  sb_puts(&g->out, "]} : ");
  put_type(g, v, dtype);
  sb_puts(&g->out, "\n");
}

static void view_every(struct gen *g, struct view *v, const char *dtype) {
  uint32_t axis = (uint32_t)below(g, v->rank);
  int64_t n = 1 + below(g, 5);
  int from = v->name;
  v->size[axis] *= n;
  v->repeats = true;
  v->name = g->next++;
  line(g);
  sb_printf(&g->out, "%%%d = view_every %%%d {axis = %u, count = %lld} : ", v->name, from, axis,
            (long long)n);
  put_type(g, v, dtype);
  sb_puts(&g->out, "\n");
}

/* Splits a dim, joins two, adds or drops a dim of one; rarely another number of elements. */
static void view_reshape(struct gen *g, struct view *v, const char *dtype) {
  struct view to = *v;
  uint32_t d = (uint32_t)below(g, v->rank);
  int64_t kind = below(g, 5);
  if (kind == 0 && v->rank < IR_MAX_RANK) {
    for (uint32_t k = to.rank++; k > d; k--)
      to.size[k] = to.size[k - 1];
    to.size[d] = 1;
  } else if (kind < 3 && v->rank > 1 && d + 1 < v->rank) {
    to.size[d] *= to.size[d + 1];
    for (uint32_t k = d + 1; k + 1 < to.rank; k++)
      to.size[k] = to.size[k + 1];
    to.rank--;
  } else if (v->rank < IR_MAX_RANK) {
    int64_t n = to.size[d], by = 1 + below(g, 6);
    while (n % by)
      by--;
    for (uint32_t k = to.rank++; k > d; k--)
      to.size[k] = to.size[k - 1];
    to.size[d] = below(g, 2) ? by : n / by;
    to.size[d + 1] = to.size[d] ? n / to.size[d] : n;
  }
  if (below(g, 15) == 0)
    to.size[0] += 1;
  struct index size[IR_MAX_RANK];
  for (uint32_t k = 0; k < to.rank; k++) {
    size[k] = of_value(g, to.size[k]);
    to.is_const[k] = is_constant(g, size[k]);
  }
  to.name = g->next++;
  line(g);
  sb_printf(&g->out, "%%%d = view_reshape %%%d", to.name, v->name);
  for (uint32_t k = 0; k < to.rank; k++)
    sb_printf(&g->out, ", %%%d", size[k].name);
  sb_puts(&g->out, " : ");
  put_type(g, &to, dtype);
  sb_puts(&g->out, "\n");
  *v = to;
}

static void chain(struct gen *g, struct view *v, const char *dtype, bool every) {
  for (int64_t n = below(g, 5); n > 0; n--) {
    switch (below(g, 6)) {
    case 0:
      if (v->rank > 1)
        view_at(g, v, dtype);
      break;
    case 1: view_slice(g, v, dtype); break;
    case 2: view_transpose(g, v, dtype); break;
    case 3:
      if (every)
        view_every(g, v, dtype);
      break;
    case 4: view_reshape(g, v, dtype); break;
    default:
      line(g);
      uint32_t axis = (uint32_t)below(g, v->rank);
      sb_printf(&g->out, "%%%d = dim %%%d {axis = %u} : index\n", g->next, v->name, axis);
      add_index(g, v->size[axis]);
    }
  }
}

static struct view argument(uint32_t rank, int name, const int64_t *size) {
  struct view v = {.name = name, .rank = rank};
  for (uint32_t d = 0; d < rank; d++)
    v.size[d] = size[d];
  return v;
}

/* Offsets of an access to a tile; loop: the index of the loop around, or -1. */
static void put_offsets(struct gen *g, const struct view *v, const int64_t *tile, int loop,
                        struct strbuf *out) {
  for (uint32_t d = 0; d < v->rank; d++) {
    int64_t kind = below(g, 8);
    int64_t at = kind < 4 ? 0 : kind < 7 ? tile[d] * below(g, 3) : below(g, 9) - 4;
    int name = loop >= 0 && below(g, 2) ? loop : of_value(g, at).name;
    sb_printf(out, ", %%%d", name);
  }
}

static void tile_type(struct strbuf *out, const char *dtype, uint32_t rank, const int64_t *tile) {
  sb_printf(out, "%s(", dtype);
  for (uint32_t d = 0; d < rank; d++)
    sb_printf(out, "%s%lld", d ? "," : "", (long long)tile[d]);
  sb_puts(out, ")");
}

/* A load through a view of A stored into B, whole or through a view of the same rank. */
static void copy(struct gen *g, const struct view *a, const struct view *b, const char *dtype,
                 int loop) {
  struct view from = *a, to;
  int64_t tile[IR_MAX_RANK] = {0};
  chain(g, &from, dtype, true);
  int tries = 0;
  size_t text = g->out.n;
  uint32_t known = g->pool.n;
  int next = g->next;
  do { /* a view of the same rank */
    g->out.n = text;
    g->pool.n = known;
    g->next = next;
    to = *b;
    chain(g, &to, dtype, false);
  } while (to.rank != from.rank && ++tries < 200);
  if (to.rank != from.rank) {
    g->out.n = text;
    g->pool.n = known;
    g->next = next;
    return;
  }
  for (uint32_t d = 0; d < from.rank; d++)
    tile[d] = 1 + below(g, from.rank > 3 ? 4 : from.rank > 1 ? 9 : 40);
  if (below(g, 2))
    for (uint32_t d = 0; d < from.rank; d++)
      tile[d] = INT64_C(1) << below(g, from.rank > 3 ? 3 : from.rank > 1 ? 4 : 6);
  struct strbuf at = {.arena = g->a}, type = {.arena = g->a};
  put_offsets(g, &from, tile, loop, &at);
  tile_type(&type, dtype, from.rank, tile);
  int x = g->next++;
  line(g);
  sb_printf(&g->out, "%%%d = load %%%d%s%s : %s\n", x, from.name, sb_str(&at),
            below(g, 3)       ? ""
            : dtype[0] == 's' ? " {pad = 7}"
                              : " {pad = 7.0}",
            sb_str(&type));
  at = (struct strbuf){.arena = g->a};
  put_offsets(g, &to, tile, loop, &at);
  line(g);
  sb_printf(&g->out, "store %%%d%s, %%%d\n", to.name, sb_str(&at), x);
}

static const char *program(struct gen *g, const char *dtype, uint32_t rank_a, uint32_t rank_b,
                           const int64_t *size) {
  static const char *const names[] = {"M", "N", "K", "L"};
  sb_printf(&g->out, "kiln-ir 1 tile\nkernel k {\n  arg A: in %s [", dtype);
  for (uint32_t d = 0; d < rank_a; d++)
    sb_printf(&g->out, "%s%s", d ? ", " : "", names[d]);
  sb_printf(&g->out, "]\n  arg B: out %s [", dtype);
  for (uint32_t d = 0; d < rank_b; d++)
    sb_printf(&g->out, "%s%s", d ? ", " : "", names[d]);
  uint32_t n_dims = rank_a > rank_b ? rank_a : rank_b;
  sb_puts(&g->out, "]\n  dims ");
  for (uint32_t d = 0; d < n_dims; d++)
    sb_printf(&g->out, "%s%s", d ? ", " : "", names[d]);
  sb_puts(&g->out, "\n  grid 1\n  body(");
  struct view a = argument(rank_a, 0, size), b = argument(rank_b, 1, size);
  sb_puts(&g->out, "%0: ");
  put_type(g, &a, dtype);
  sb_puts(&g->out, ", %1: ");
  put_type(g, &b, dtype);
  g->next = 2;
  for (uint32_t d = 0; d < n_dims; d++) {
    sb_printf(&g->out, ", %%%d: index", g->next);
    add_index(g, size[d]);
  }
  sb_printf(&g->out, ", %%%d: index) {\n", g->next);
  add_index(g, 0);
  g->indent = 4;
  for (int64_t n = 1 + below(g, 2); n > 0; n--)
    copy(g, &a, &b, dtype, -1);
  if (below(g, 2)) {
    int lo = constant(g, below(g, 3)).name, hi = of_value(g, below(g, 12)).name;
    int step = constant(g, 1 + below(g, 4)).name, k = g->next++;
    uint32_t known = g->pool.n;
    sb_printf(&g->out, "    for %%%d: index = %%%d, %%%d, %%%d {\n", k, lo, hi, step);
    g->indent = 6;
    copy(g, &a, &b, dtype, k);
    sb_puts(&g->out, "      yield\n    }\n");
    g->indent = 4;
    g->pool.n = known;
  }
  sb_puts(&g->out, "    return\n  }\n}\n");
  return sb_str(&g->out);
}

static void copies_through_views(void **state) {
  (void)state;
  static const char *const layouts[] = {"", "A=col", "A=pad3", "A=off1,B=pad1", "B=col"};
  static const char *const dtypes[] = {"s32", "f32", "bf16", "s8", "s64"};
  const char *only = getenv("KILN_SEED");
  unsigned ran = 0, failed = 0, refused = 0;
  for (uint64_t seed = only ? strtoull(only, NULL, 10) : 1; seed <= PROGRAMS || only; seed++) {
    struct cg_test t;
    struct help_arena mem;
    help_arena_init(&mem);
    struct gen g = {.state = seed * 977, .a = &mem.arena, .out = {.arena = &mem.arena}};
    int64_t size[4];
    char dims[80];
    for (int d = 0; d < 4; d++)
      size[d] = below(&g, 8) ? INT64_C(2) << below(&g, 4) : below(&g, 9);
    uint32_t rank_a = 1 + (uint32_t)below(&g, 4), rank_b = 1 + (uint32_t)below(&g, 3);
    const char *text = program(&g, dtypes[seed % 5], rank_a, rank_b, size);
    if (only)
      printf("%s", text);
    snprintf(dims, sizeof dims, "M=%lld,N=%lld,K=%lld,L=%lld", (long long)size[0],
             (long long)size[1], (long long)size[2], (long long)size[3]);
    cg_test_begin(&t, text);
    cg_test_args(&t, dims, layouts[below(&g, 5)], -3, 4);
    t.what = seed;
    if (!cg_test_lower(&t, "sm_90a", seed % 4 ? "" : "threads=64")) {
      /* Reshapes of what repeats, and tiles too large for the registers of a block. */
      for (uint32_t i = 0; i < t.diags.list.n; i++)
        if (t.diags.list.at[i].id != DIAG_LOWER_UNSUPPORTED)
          fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, cg_test_messages(&t), text);
      refused++;
    } else {
      struct interp_options opt = {.domain = INTERP_ROUNDED};
      struct diag_sink quiet;
      void *was[2];
      assert_true(diag_init(&quiet, &mem_libc));
      for (int k = 0; k < 2; k++) /* a trial run on memory of its own */
        was[k] = t.ref[k].tensor.data;
      void *copy_of = malloc(t.alloc[1] + 1);
      memcpy(copy_of, was[1], t.alloc[1]);
      bool ok = interp_run(t.tile, t.ref, 2, &opt, &quiet, &mem_libc);
      memcpy(was[1], copy_of, t.alloc[1]);
      free(copy_of);
      if (ok) {
        cg_test_compare(&t, 0);
        ran++;
      } else {
        struct mach_result r = cg_test_run(&t);
        if (r.ok || !strstr(r.error, "assertion"))
          fail_msg("seed %llu: the interpreter fails, the machine says `%s`\n%s",
                   (unsigned long long)seed, r.ok ? "fine" : r.error, text);
        failed++;
      }
      diag_free(&quiet);
    }
    cg_test_end(&t);
    arena_free(&mem.arena);
    if (only)
      break;
  }
  print_message("%u programs ran, %u failed as they must, %u refused\n", ran, failed, refused);
  if (!only) {
    assert_true(ran >= PROGRAMS * 2 / 3);
    assert_true(failed >= PROGRAMS / 40);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(copies_through_views)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
