/* Binding of arguments to a recipe, shared by dry runs (rt_bind) and prepared launches. */
#ifndef KILN_RUNTIME_BIND_H
#define KILN_RUNTIME_BIND_H

#include "runtime/rt.h"

struct bound_dim {
  const char *name;
  int64_t value;
  uint32_t arg, dim; /* where it was taken from */
};

struct rt_bindings {
  struct rt_ctx *ctx;
  const struct recipe *recipe;
  struct rt_arg *args; /* a copy; absent optional tensors get dims and strides, and no memory */
  struct bound_dim *dims;
  uint32_t n_args, n_dims;
  int sm_count;
  bool allow_overlap;
};

/* Room for the recipe's arguments; NULL without memory. */
struct rt_bindings *rt_bindings_new(struct rt_ctx *ctx, const struct recipe *recipe, int sm_count,
                                    bool allow_overlap);
/* Binds, replacing what was bound; allocates nothing. Reports every error found. */
enum rt_status rt_bindings_set(struct rt_bindings *b, const struct rt_arg *args, uint32_t n_args);
/* Evaluates, or reports why `what` has no value. */
bool rt_evaluate(const struct rt_bindings *b, struct expr e, const char *what, int64_t *value);

#endif
