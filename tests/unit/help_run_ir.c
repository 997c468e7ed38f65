/* See help_run_ir.h. */
#include "help_run_ir.h"

#include "help_gen_ir.h"
#include "help_rt.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

void hm_print_diags(const struct diag_sink *d) {
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf out = {.arena = &h.arena};
  for (uint32_t i = 0; i < d->list.n; i++)
    diag_render_text(d, &d->list.at[i], &out);
  fputs(sb_str(&out), stderr);
  arena_free(&h.arena);
}

const char *hm_text(const struct ir_module *m, struct arena *a) {
  struct strbuf out = {.arena = a};
  ir_print(m, (struct ir_print_options){.names = true}, &out);
  return sb_str(&out);
}

void hm_fill(const struct ir_module *m, struct hm_memory *x, uint64_t seed, bool integers) {
  memset(x->args, 0, sizeof x->args);
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *a = &m->args.at[i];
    int64_t dim[IR_MAX_RANK], elems = 1;
    for (uint32_t k = 0; k < a->rank; k++) {
      if (!expr_is_const(&m->exprs, a->dim[k], &dim[k]))
        dim[k] = expr_at(&m->exprs, a->dim[k])->sym.id == m->dims.at[0].id ? 7 : 9;
      elems *= dim[k];
    }
    assert_true(dtype_bytes(a->dtype, elems) <= HM_MAX_BYTES);
    x->args[i].tensor = interp_dense(x->bytes[i], a->dtype, a->rank, dim);
    x->args[i].i = (int64_t)gen_below(&seed, 7) - 3;
    x->args[i].f = (double)x->args[i].i;
    if (a->kind == IR_ARG_OUT) {
      memset(x->bytes[i], 0x5a, HM_MAX_BYTES);
      continue;
    }
    for (int64_t k = 0; k < elems && integers; k++)
      num_store(a->dtype, x->bytes[i], k, (double)gen_below(&seed, 5) - 2);
    for (int64_t k = 0; k < dtype_bytes(a->dtype, elems) && !integers; k++)
      x->bytes[i][k] = (unsigned char)gen_below(&seed, 256);
    static const double special[] = {
        0.0, -0.0, 1.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 0x1p-140, -3.0};
    for (int64_t k = 0; k < elems && !integers && dtype_is_float(a->dtype); k++)
      if (gen_below(&seed, 2))
        num_store(a->dtype, x->bytes[i], k, special[gen_below(&seed, COUNT(special))]);
    if (a->dtype == DT_E5M2 && !integers)
      x->bytes[i][0] = 0x7c; /* the infinity that a store would saturate */
  }
}

bool hm_run(const struct ir_module *m, struct hm_memory *x, struct diag_sink *diags) {
  struct interp_options opt = {.domain = INTERP_ROUNDED, .max_steps = 10000000};
  return interp_run(m, x->args, m->args.n, &opt, diags, &mem_libc);
}

bool hm_same_elem(enum dtype t, const void *x, const void *y, int64_t i) {
  if (!dtype_is_float(t))
    return num_load_int(t, x, i) == num_load_int(t, y, i);
  double a = num_load(t, x, i), b = num_load(t, y, i);
  return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

void hm_compare(const struct ir_module *before, const struct ir_module *after,
                const struct hm_memory *x, const struct hm_memory *y, uint64_t seed,
                struct arena *a) {
  for (uint32_t i = 0; i < before->args.n; i++) {
    const struct interp_tensor *t = &x->args[i].tensor;
    int64_t elems = 1;
    for (uint32_t k = 0; k < t->rank; k++)
      elems *= t->dim[k];
    for (int64_t k = 0; before->args.at[i].rank && k < elems; k++)
      if (!hm_same_elem(t->dtype, x->bytes[i], y->bytes[i], k))
        fail_msg("seed %llu: argument %s, element %lld: %.17g before, %.17g after\n%s\n---- after"
                 "\n%s",
                 (unsigned long long)seed, ir_sym(before, before->args.at[i].name), (long long)k,
                 num_load(t->dtype, x->bytes[i], k), num_load(t->dtype, y->bytes[i], k),
                 hm_text(before, a), hm_text(after, a));
  }
}
