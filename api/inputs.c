/* Inputs of a case: what the kernel's own `inputs` give, else random numbers by seed, as the dtypes
 * round them; and the poisoned images of all arguments. */
#include "api/api.h"

#include "base/threads.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* Refuses a case that no memory of this machine could hold, before any of it is taken: the sum
 * below is less than what is needed. */
static bool check_size(const struct api_problem *p, bool referenced) {
  struct kiln_context *ctx = p->file->own.ctx;
  double need = 0, have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    int64_t origin, bytes = 0;
    if (!api_is_tensor(arg))
      continue;
    if (!api_image_extent(arg, &origin, &bytes)) {
      API_ERROR(ctx, SHAPE_BINDING, "argument `%s` reaches further than memory can", arg->name);
      return false;
    }
    /* Inputs, and the reference's outputs, are held in double besides. */
    bool held = api_is_read(arg) || referenced;
    need += (double)bytes + (held ? 8 * (double)api_elements(arg) : 0);
  }
  if (need <= have || have <= 0)
    return true;
  API_ERROR(ctx, SHAPE_BINDING,
            "this case needs more than %.1f GiB of host memory; the machine has %.1f GiB",
            need / (1 << 30), have / (1 << 30));
  return false;
}

enum kiln_status api_inputs_new(const struct api_problem *p, bool referenced, struct arena *a,
                                struct api_inputs *out) {
  struct kiln_context *ctx = p->file->own.ctx;
  out->images = ARENA_ARRAY(a, struct api_image, p->n_args + 1);
  out->values = ARENA_ARRAY(a, double *, p->n_args + 1);
  if (!check_size(p, referenced))
    return KILN_INVALID;
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    if (arg->absent)
      continue;
    if (api_is_written(arg) && api_overlaps_itself(arg, a)) {
      API_ERROR(ctx, SHAPE_BINDING,
                "argument `%s` is written, but its strides make elements share memory", arg->name);
      return KILN_INVALID;
    }
    if (api_is_tensor(arg) && !api_image_new(ctx, a, arg, &out->images[i]))
      return KILN_INVALID;
    size_t bytes = sizeof(double) * ((size_t)api_elements(arg) + 1);
    if (arg->kind != IR_ARG_OUT) /* the kernel's own function may add to zeros */
      out->values[i] =
          p->kernel && p->kernel->has_inputs ? arena_get0(a, bytes) : arena_get(a, bytes);
  }
  return KILN_OK;
}

/* The kernel's own inputs, bit per argument in *given. */
static enum kiln_status ask_kernel(const struct api_problem *p, struct api_inputs *in,
                                   uint64_t *given, struct arena *a) {
  struct kiln_context *ctx = p->file->own.ctx;
  struct api_mark before = api_mark(ctx);
  struct fe_array *arrays = ARENA_ARRAY(a, struct fe_array, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    arrays[i].rank = p->args[i].rank;
    memcpy(arrays[i].dim, p->args[i].dim, sizeof arrays[i].dim);
    arrays[i].data = in->values[i];
  }
  struct fe_problem fp = {.config = &p->config,
                          .dim = api_dim_lookup,
                          .dim_user = (void *)(uintptr_t)p,
                          .absent = p->absent};
  return fe_inputs(p->file->fe, p->kernel, &fp, p->seed, arrays, given)
             ? KILN_OK
             : api_failure_since(ctx, before);
}

struct filling {
  double *values;
  enum rt_fill fill;
  uint64_t seed;
};

static void fill_part(void *user, int64_t first, int64_t end) {
  const struct filling *f = user;
  for (int64_t i = first; i < end; i++)
    f->values[i] = rt_random(f->fill, f->seed, (uint64_t)i);
}

enum kiln_status api_inputs_make(const struct api_problem *p, struct api_inputs *in, bool small,
                                 struct arena *a) {
  uint64_t given = 0;
  enum rt_fill fill = small ? RT_FILL_SMALL : RT_FILL_NORMAL;
  if (p->kernel && p->kernel->has_inputs) {
    enum kiln_status st = ask_kernel(p, in, &given, a);
    if (st != KILN_OK)
      return st;
  }
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    double *x = in->values[i];
    bool made = i < 64 && (given >> i & 1);
    if (x && arg->kind == IR_ARG_SCALAR)
      x[0] = num_round(arg->dtype, small ? nearbyint(arg->number) : arg->number);
    if (!api_is_tensor(arg))
      continue;
    struct filling f = {x, fill, p->seed * 64 + i};
    if (x && !made)
      threads_split(api_elements(arg), 1 << 16, fill_part, &f);
    api_image_poison(&in->images[i], arg);
    if (x) { /* and back: rounded, and elements that share memory (stride 0) have one value */
      api_image_store(&in->images[i], arg, x);
      api_image_load(&in->images[i], arg, x);
    }
  }
  return KILN_OK;
}

bool api_inputs_whole(const struct api_problem *p, const struct api_inputs *in) {
  for (uint32_t i = 0; i < p->n_args; i++)
    for (int64_t e = 0, n = in->values[i] ? api_elements(&p->args[i]) : 0; e < n; e++)
      if (in->values[i][e] != nearbyint(in->values[i][e]))
        return false;
  return true;
}
