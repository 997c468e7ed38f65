/* Tensor maps of a launch: what the recipe says and the bound argument has, checked against what
 * the hardware demands and encoded by the driver into 128 bytes that the kernel takes by value.
 *
 * Encoding is host work of a microsecond; it happens at each binding, never at a launch. */
#include "runtime/tmap.h"

#include "runtime/internal.h"

#include <inttypes.h>
#include <string.h>

#define MAX_STRIDE (INT64_C(1) << 40) /* bytes, exclusive */
#define MAX_DIM    (INT64_C(1) << 32)

/* The map's name of a dtype: what has none of its own travels as bits, as copies are bits. */
static int data_type(enum dtype t) {
  switch (t) {
  case DT_F16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  case DT_BF16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  case DT_F32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  case DT_F64: return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
  case DT_S32: return CU_TENSOR_MAP_DATA_TYPE_INT32;
  case DT_S64:
  case DT_INDEX: return CU_TENSOR_MAP_DATA_TYPE_INT64;
  case DT_BOOL:
  case DT_S4:
  case DT_U4:
  case DT_S8:
  case DT_U8:
  case DT_E4M3:
  case DT_E5M2:
  case DT_COUNT: break;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

static int swizzle(uint32_t bytes) {
  return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
         : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                       : CU_TENSOR_MAP_SWIZZLE_NONE;
}

static int promotion(uint32_t bytes) {
  return bytes == 256   ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
         : bytes == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
         : bytes == 64  ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B
                        : CU_TENSOR_MAP_L2_PROMOTION_NONE;
}

/* Reports what the hardware refuses of an argument; false. */
#define BAD(b, name, fmt, ...)                                                                     \
  (rt_fail((b)->ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,                                             \
           "argument %s cannot be copied by the tensor memory unit: " fmt, name, __VA_ARGS__),     \
   false)

/* Dims and strides (bytes), innermost first, of a map that the hardware takes. */
static bool check(const struct rt_bindings *b, const char *name, int64_t size, uint32_t rank,
                  const int64_t *dim, int64_t *stride, uint64_t address) {
  if (address % 16)
    return BAD(b, name, "its address 0x%" PRIx64 " must be a multiple of 16", address);
  for (uint32_t d = 0; d < rank; d++) {
    if (dim[d] < 1 || dim[d] > MAX_DIM)
      return BAD(b, name, "dim %u from the innermost is %" PRId64 "; it must be 1 to 2^32", d,
                 dim[d]);
    if (dim[d] == 1) /* never taken: any legal number */
      stride[d] = d ? 16 : size;
    if (d == 0 && stride[0] != size)
      return BAD(b, name,
                 "its innermost elements lie %" PRId64
                 " bytes apart; they must be contiguous (%" PRId64 ")",
                 stride[0], size);
    if (d > 0 && (stride[d] < 0 || stride[d] >= MAX_STRIDE || stride[d] % 16))
      return BAD(b, name,
                 "the stride of dim %u from the innermost is %" PRId64
                 " bytes; it must be a multiple of 16 from 0 to 2^40",
                 d, stride[d]);
  }
  return true;
}

enum rt_status rt_encode_map(const struct rt_bindings *b, const struct recipe_param *q,
                             CUtensorMap *out) {
  const struct recipe_tmap *t = q->tmap;
  const struct recipe_arg *a = &b->recipe->args.at[q->arg];
  const struct rt_arg *arg = &b->args[q->arg];
  int64_t dim[RECIPE_MAX_RANK], stride[RECIPE_MAX_RANK];
  memset(out, 0, sizeof *out);
  if (arg->absent) /* the kernel does not touch it */
    return RT_OK;
  for (uint32_t d = 0; d < t->rank; d++)
    if (!rt_evaluate(b, t->dim[d], "a dim of a tensor map", &dim[d]) ||
        !rt_evaluate(b, t->stride[d], "a stride of a tensor map", &stride[d]))
      return RT_BAD_INPUT;
  if (!check(b, a->name, dtype_bits(a->dtype) / 8, t->rank, dim, stride,
             (uint64_t)(uintptr_t)arg->tensor.data))
    return RT_BAD_INPUT;
  uint64_t dims[RECIPE_MAX_RANK], strides[RECIPE_MAX_RANK] = {0};
  uint32_t box[RECIPE_MAX_RANK], steps[RECIPE_MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) {
    dims[d] = (uint64_t)dim[d];
    box[d] = t->box[d];
    steps[d] = 1;
    if (d)
      strides[d - 1] = (uint64_t)stride[d];
  }
  CUresult r = b->ctx->cuda.cuTensorMapEncodeTiled(
      out, t->tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : data_type(a->dtype), t->rank,
      arg->tensor.data, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle(t->swizzle), promotion(t->l2),
      t->fill_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                  : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r == CUDA_SUCCESS)
    return RT_OK;
  return rt_fail(b->ctx, RT_BAD_INPUT, DIAG_DRIVER,
                 "argument %s: cuTensorMapEncodeTiled refuses its tensor map (error %d)", a->name,
                 r);
}
