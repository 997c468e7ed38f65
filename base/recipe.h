/* The launch recipe: everything `runtime` needs to launch one variant, as data.
 *
 * codegen fills it, runtime alone evaluates it; it is a variant's metadata, versioned text. Symbols
 * of its expressions, bound at launch:
 *   each dim by name ("M"); for tensor argument A: "A.dim0".., "A.stride0".. (elements), "A.addr"
 *   (the address as an integer: for alignment predicates); each integer scalar argument by name;
 *   "sm_count" of the device.
 */
#ifndef KILN_BASE_RECIPE_H
#define KILN_BASE_RECIPE_H

#include "base/diag.h"
#include "base/dtype.h"
#include "base/expr.h"

#define RECIPE_VERSION  1
#define RECIPE_MAX_RANK 5

enum recipe_arg_kind { RECIPE_IN, RECIPE_OUT, RECIPE_INOUT, RECIPE_SCALAR };

/* One argument of the kernel as its caller sees it. A tensor's dims are expressions: a plain symbol
 * binds the dim at launch, anything else is checked. */
struct recipe_arg {
  const char *name;
  enum recipe_arg_kind kind;
  enum dtype dtype;
  uint32_t rank; /* 0 for scalars */
  struct expr dim[RECIPE_MAX_RANK];
  bool optional; /* may be absent: its pointer is then NULL */
};

enum recipe_param_kind {
  RECIPE_PARAM_PTR,       /* address of tensor argument `arg` */
  RECIPE_PARAM_WORKSPACE, /* workspace base + value */
  RECIPE_PARAM_I32,       /* value, which must fit */
  RECIPE_PARAM_I64,       /* value */
  RECIPE_PARAM_SCALAR,    /* scalar argument `arg` in its own dtype */
  RECIPE_PARAM_TMAP,      /* tensor map over tensor argument `arg` */
};

/* What a tensor map says besides the argument's address and dtype. Dims are innermost first; the
 * innermost one must be contiguous. The runtime checks at each binding what the hardware demands:
 * address and outer strides multiples of 16 bytes, strides below 2^40, dims 1 to 2^32. */
struct recipe_tmap {
  uint32_t rank;
  struct expr dim[RECIPE_MAX_RANK];    /* elements */
  struct expr stride[RECIPE_MAX_RANK]; /* bytes */
  uint32_t box[RECIPE_MAX_RANK];       /* elements, 1..256 */
  uint32_t swizzle;                    /* bytes: 0, 32, 64, 128 */
  uint32_t l2;                         /* bytes: 0, 64, 128, 256 */
  bool fill_nan;                       /* what lies outside reads as NaN, not 0 */
  bool tf32;                           /* f32 elements are rounded to tf32 on their way */
};

struct recipe_param {
  enum recipe_param_kind kind;
  uint32_t arg;
  struct expr value;
  const struct recipe_tmap *tmap; /* of TMAP */
};

enum recipe_step_kind { RECIPE_MEMSET, RECIPE_KERNEL };

struct recipe_step {
  enum recipe_step_kind kind;
  /* RECIPE_MEMSET: `bytes` bytes of workspace from `offset` to 0. */
  struct expr offset, bytes;
  /* RECIPE_KERNEL */
  const char *entry; /* function name in the cubin */
  struct expr grid[3];
  uint32_t block[3];
  uint32_t cluster[3]; /* 1,1,1: none */
  uint32_t smem_bytes; /* dynamic shared memory */
  uint32_t max_regs;   /* 0: as compiled */
  bool pdl; /* may start before the kernel before it has ended: it waits itself (pdl_wait) */
  VEC(struct recipe_param) params;
};

/* The variant may be launched only where `cond` is non-zero; `message` says why not. */
struct recipe_check {
  struct expr cond;
  const char *message;
};

struct recipe {
  struct arena *arena;
  struct expr_pool exprs;
  const char *kernel; /* the kernel's name */
  const char *target; /* "sm_90a" */
  VEC(struct recipe_arg) args;
  VEC(struct recipe_check) checks;
  struct expr workspace_bytes; /* {0}: none */
  VEC(struct recipe_step) steps;
};

struct recipe *recipe_new(struct arena *a, struct symtab *syms);
/* Canonical text; line 1 is `kiln-recipe 1`. */
void recipe_print(const struct recipe *r, struct strbuf *out);
/* Exact inverse. Checks all that can be checked without arguments (indices, limits of CUDA, unique
 * names), so that data from a file cannot make a launch misbehave. Reports the first error to
 * `diags` with file index `file` and returns NULL. */
struct recipe *recipe_parse(struct arena *a, struct symtab *syms, struct diag_sink *diags,
                            uint32_t file, const char *text, size_t n);

#endif
