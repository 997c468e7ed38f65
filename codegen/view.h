/* Views while lowering: what is known of one before the launch (view_facts.c), and one as values of
 * the machine module (lower_view.c). Both follow ir/interp_view.c, which says what a view is. */
#ifndef KILN_CODEGEN_VIEW_H
#define KILN_CODEGEN_VIEW_H

#include "ir/access.h"

struct lower;

/* Of one dim. Coordinates start <= x < end of 0..size-1 are in range; x is ((x + phase) / div) *
 * stride elements from the base. Divisors: 0 is divisible by everything, 1 nothing is known. */
struct cg_dim_fact {
  struct expr size, end, stride; /* {0}: no launch expression that is known */
  int64_t stride_div;
  int64_t start_div, end_div;
  int64_t end_least; /* end is that at least */
  bool from_zero;    /* start is 0 */
  bool bounded;      /* the size is no larger than what memory can hold */
  int64_t div;
  bool phase; /* the phase may be other than 0 */
};

struct cg_view_fact {
  uint32_t arg, rank;
  int64_t base_div; /* of the base, in elements from the argument's first */
  bool inside;      /* no index of a view_at on the way is out of range */
  struct cg_dim_fact dim[IR_MAX_RANK];
};

/* Intervals may be NULL: then less is known. */
struct cg_view_fact cg_view_facts(struct ir_module *m, const struct ir_intervals *r,
                                  struct ir_val view);
/* Are coordinates offset .. offset + extent - 1 before d's end; is offset at or past its start? */
bool cg_fits(struct ir_module *m, const struct ir_intervals *r, const struct cg_dim_fact *d,
             struct ir_val offset, int64_t extent);
bool cg_starts(struct ir_module *m, const struct ir_intervals *r, const struct cg_dim_fact *d,
               struct ir_val offset);
/* Is the product of a[0..n) surely that of b[0..k)? */
bool cg_same_product(struct ir_module *m, uint32_t n, const struct expr *a, uint32_t k,
                     const struct expr *b);

/* Is a size surely not 1? */
bool cg_is_many(struct ir_module *m, struct expr e);

/* ---- lower_view.c ---- */

struct cg_view_dim {
  struct ir_val start, stride, phase; /* index scalars */
  struct ir_val size, end;            /* index scalars; 0: of size_expr, not asked for yet */
  int64_t div;
  struct expr size_expr; /* or {0} */
  bool one;              /* the size is surely 1 */
};

struct cg_view {
  uint32_t arg, rank;
  struct ir_val base;   /* elements from the argument's first; index */
  struct ir_val inside; /* bool: false, no coordinate is in range */
  struct ir_val ok;     /* bool: false, an access fails */
  const char *fault;    /* and says so */
  struct cg_view_dim dim[IR_MAX_RANK];
};

/* The view that a value of the scheduled module is; it was lowered before. */
const struct cg_view *cg_view_at(struct lower *l, struct ir_val v);
/* A dim's size and end, asked for here. */
struct ir_val cg_view_size(struct lower *l, const struct cg_view_dim *d);
struct ir_val cg_view_end(struct lower *l, const struct cg_view_dim *d);
/* Lowers an op that makes a view of a view; `in`: its scalar operands, lowered. */
const struct cg_view *cg_make_view(struct lower *l, struct ir_op o, const struct cg_view *from,
                                   const struct ir_val *in);
/* Lowers such an op where it stands. */
void cg_lower_view(struct lower *l, struct ir_op o);
/* What an access through the view needs before it: a check where the view may have no strides. */
void cg_check_view(struct lower *l, const struct cg_view *v);
/* Elements from the base to coordinate x, an index scalar in range. */
struct ir_val cg_view_step(struct lower *l, const struct cg_view_dim *d, struct ir_val x);

#endif
