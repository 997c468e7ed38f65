/* Host images of arguments: the bytes of a tensor with its strides, between guard bands, poisoned
 * before use, so that what a kernel must not touch can be told afterwards. */
#include "api/api.h"

#include "base/threads.h"

#include <string.h>

struct rt_tensor api_rt_tensor(const struct api_arg *arg, void *origin) {
  struct rt_tensor t = {.data = origin, .dtype = arg->dtype, .rank = arg->rank};
  memcpy(t.dim, arg->dim, sizeof t.dim);
  memcpy(t.stride, arg->stride, sizeof t.stride);
  return t;
}

int64_t api_elements(const struct api_arg *arg) {
  int64_t n = 1;
  for (uint32_t d = 0; d < arg->rank; d++)
    n *= arg->dim[d];
  return n;
}

int64_t api_scalar_int(enum dtype t, double number) {
  return dtype_is_float(t) ? 0 : number < 0x1p63 ? (int64_t)number : INT64_MAX;
}

/* Where the element of that row-major number lies: its indices, its element offset from the
 * origin. */
static int64_t locate(const struct api_arg *arg, int64_t number, int64_t *index) {
  int64_t offset = 0;
  for (uint32_t d = arg->rank; d-- > 0;) {
    index[d] = number % arg->dim[d];
    number /= arg->dim[d];
    offset += index[d] * arg->stride[d];
  }
  return offset;
}

/* Runs `body` for the elements first .. end - 1: n is an element's row-major number, offset its
 * element offset from the origin. */
#define EACH_ELEMENT(arg, first, end, n, offset, body)                                             \
  do {                                                                                             \
    int64_t at_[IR_MAX_RANK] = {0}, end_ = (end);                                                  \
    int64_t offset = (first) < end_ ? locate(arg, first, at_) : 0;                                 \
    for (int64_t n = (first); n < end_; n++) {                                                     \
      body;                                                                                        \
      for (uint32_t d_ = (arg)->rank; d_-- > 0;) {                                                 \
        offset += (arg)->stride[d_];                                                               \
        if (++at_[d_] < (arg)->dim[d_])                                                            \
          break;                                                                                   \
        offset -= (arg)->stride[d_] * at_[d_];                                                     \
        at_[d_] = 0;                                                                               \
      }                                                                                            \
    }                                                                                              \
  } while (0)

static uint64_t size_of_stride(const struct api_arg *arg, uint32_t d) {
  return arg->stride[d] < 0 ? 0 - (uint64_t)arg->stride[d] : (uint64_t)arg->stride[d];
}

struct reach {
  uint64_t low, all; /* elements before the origin, from the first to the last */
  bool zero, apart;  /* a stride of 0; each stride is beyond the reach of the smaller ones */
};

/* Of a tensor that is not empty. */
static struct reach reach_of(const struct api_arg *arg) {
  uint32_t order[IR_MAX_RANK], n = 0;
  struct reach r = {.apart = true};
  for (uint32_t d = 0; d < arg->rank; d++) {
    if (arg->dim[d] == 1)
      continue;
    uint32_t i = n++;
    for (; i > 0 && size_of_stride(arg, order[i - 1]) > size_of_stride(arg, d); i--)
      order[i] = order[i - 1];
    order[i] = d;
  }
  for (uint32_t i = 0; i < n; i++) {
    uint64_t s = size_of_stride(arg, order[i]), span = s * (uint64_t)(arg->dim[order[i]] - 1);
    r.zero |= s == 0;
    r.apart = r.apart && s > r.all;
    r.all += span;
    r.low += arg->stride[order[i]] < 0 ? span : 0;
  }
  return r;
}

static bool strides_are_apart(const struct api_arg *arg) {
  return api_elements(arg) == 0 || reach_of(arg).apart;
}

/* Where strides do not say that no two elements meet, they are laid out to see. */
bool api_overlaps_itself(const struct api_arg *arg, struct arena *a) {
  if (api_elements(arg) == 0)
    return false;
  struct reach r = reach_of(arg);
  if (r.zero || r.apart)
    return r.zero;
  struct arena_mark mark = arena_get_mark(a);
  bool *seen = ARENA_ARRAY(a, bool, r.all + 1), twice = false;
  EACH_ELEMENT(arg, 0, api_elements(arg), e, offset, {
    uint64_t at = r.low + (uint64_t)offset;
    twice |= seen[at];
    seen[at] = true;
  });
  arena_reset(a, mark);
  return twice;
}

bool api_image_extent(const struct api_arg *arg, int64_t *origin, int64_t *bytes) {
  struct rt_tensor t = api_rt_tensor(arg, NULL);
  int64_t low, offset;
  if (!rt_tensor_extent(&t, &low, bytes) || arg->offset > INT64_MAX / 8)
    return false;
  offset = dtype_bytes(arg->dtype, arg->offset);
  *origin = offset - low;
  return !__builtin_add_overflow(*bytes, offset, bytes) && *bytes <= INT64_MAX / 16;
}

bool api_image_new(struct kiln_context *ctx, struct arena *a, const struct api_arg *arg,
                   struct api_image *out) {
  int64_t origin, bytes;
  if (!api_image_extent(arg, &origin, &bytes)) {
    API_ERROR(ctx, SHAPE_BINDING, "argument `%s` has more elements than memory can hold",
              arg->name);
    return false;
  }
  out->bytes = (size_t)bytes;
  out->origin = (size_t)origin;
  out->memory = arena_get(a, out->bytes + 2 * (size_t)RT_GUARD_BYTES);
  api_image_poison(out, arg);
  return true;
}

void api_image_poison(struct api_image *im, const struct api_arg *arg) {
  memset(im->memory, rt_poison_byte(arg->dtype), im->bytes + 2 * (size_t)RT_GUARD_BYTES);
}

static unsigned char poison_byte(const struct api_arg *arg, bool other) {
  unsigned char byte = rt_poison_byte(arg->dtype);
  return other ? (unsigned char)~byte : byte;
}

unsigned char *api_image_other_poison(struct api_image *im, const struct api_arg *arg,
                                      struct arena *a) {
  unsigned char *inner = im->memory + RT_GUARD_BYTES, *kept = arena_get(a, im->bytes + 1);
  memcpy(kept, inner, im->bytes);
  memset(inner, poison_byte(arg, true), im->bytes);
  return kept;
}

void api_image_restore(struct api_image *im, const unsigned char *kept) {
  memcpy(im->memory + RT_GUARD_BYTES, kept, im->bytes);
}

static bool is_poison(const struct api_arg *arg, const unsigned char *origin, int64_t offset,
                      const unsigned char *poison) {
  int64_t size = dtype_bits(arg->dtype) / 8;
  if (size == 0)
    return num_load_int(arg->dtype, origin, offset) == num_load_int(arg->dtype, poison, offset & 1);
  return memcmp(origin + offset * size, poison, (size_t)size) == 0;
}

int64_t api_image_mark_poison(const struct api_image *im, const struct api_arg *arg, bool other,
                              bool *marks) {
  const unsigned char *origin = im->memory + RT_GUARD_BYTES + im->origin;
  unsigned char poison[8];
  int64_t left = 0;
  memset(poison, poison_byte(arg, other), sizeof poison);
  EACH_ELEMENT(arg, 0, api_elements(arg), n, offset, {
    marks[n] = marks[n] && is_poison(arg, origin, offset, poison);
    left += marks[n];
  });
  return left;
}

/* ---- whole tensors ---- */

struct copying {
  const struct api_arg *arg;
  unsigned char *origin;
  double *values;
  void *packed;
};

/* Copies in parts, side by side if no two elements share a byte, or nothing is written to them. */
static void copy(const struct api_image *im, const struct api_arg *arg, double *values,
                 void *packed, bool apart, void (*part)(void *user, int64_t first, int64_t end)) {
  struct copying c = {arg, im->memory + RT_GUARD_BYTES + im->origin, values, packed};
  int64_t n = api_elements(arg);
  threads_split(n, apart && dtype_bits(arg->dtype) >= 8 ? 1 << 16 : n, part, &c);
}

static void store_part(void *user, int64_t first, int64_t end) {
  const struct copying *c = user;
  EACH_ELEMENT(c->arg, first, end, n, offset,
               num_store(c->arg->dtype, c->origin, offset, c->values[n]));
}

static void load_part(void *user, int64_t first, int64_t end) {
  const struct copying *c = user;
  EACH_ELEMENT(c->arg, first, end, n, offset,
               c->values[n] = num_load(c->arg->dtype, c->origin, offset));
}

static void pack_part(void *user, int64_t first, int64_t end) {
  const struct copying *c = user;
  size_t size = dtype_bits(c->arg->dtype) / 8;
  if (size == 0)
    EACH_ELEMENT(
        c->arg, first, end, n, offset,
        num_store_int(c->arg->dtype, c->packed, n, num_load_int(c->arg->dtype, c->origin, offset)));
  else
    EACH_ELEMENT(
        c->arg, first, end, n, offset,
        memcpy((char *)c->packed + (size_t)n * size, c->origin + offset * (int64_t)size, size));
}

void api_image_store(struct api_image *im, const struct api_arg *arg, const double *dense) {
  copy(im, arg, (double *)(uintptr_t)dense, NULL, strides_are_apart(arg), store_part);
}

void api_image_load(const struct api_image *im, const struct api_arg *arg, double *dense) {
  copy(im, arg, dense, NULL, true, load_part);
}

void api_image_pack(const struct api_image *im, const struct api_arg *arg, void *dense) {
  copy(im, arg, NULL, dense, true, pack_part);
}

enum kiln_status api_image_check(struct kiln_context *ctx, const struct api_image *im,
                                 const struct api_arg *arg) {
  unsigned char poison = rt_poison_byte(arg->dtype);
  const unsigned char *inner = im->memory + RT_GUARD_BYTES;
  bool ok = true;
  for (ptrdiff_t i = 0; i < RT_GUARD_BYTES && ok; i++) {
    bool before = inner[-1 - i] != poison, after = inner[(ptrdiff_t)im->bytes + i] != poison;
    ok = !before && !after;
    if (!ok)
      API_ERROR(ctx, GUARD, "memory %s argument `%s` was written, %td bytes away",
                before ? "before" : "after", arg->name, i + 1);
  }
  struct rt_tensor t = api_rt_tensor(arg, NULL);
  int64_t pad = ok ? rt_check_pads(&ctx->mem, &t, inner, im->bytes, im->origin, poison) : -1;
  if (pad == -2)
    return api_no_memory(ctx);
  if (pad >= 0)
    API_ERROR(ctx, GUARD,
              "memory between the elements of argument `%s` was written, %lld bytes from its start",
              arg->name, (long long)pad);
  return ok && pad == -1 ? KILN_OK : KILN_WRONG;
}
