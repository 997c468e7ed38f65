/* The passes from tile IR to machine IR (pipeline_portable.c says in which order and why), and what
 * they share: uses of values, errors at ops, what kind an op is. */
#ifndef KILN_CODEGEN_PASS_H
#define KILN_CODEGEN_PASS_H

#include "codegen/cg.h"
#include "codegen/layouts.h"
#include "ir/mma.h"

/* One use of a value. */
struct cg_use {
  struct ir_op op;
  uint32_t operand;
  uint32_t next; /* index of the next use of the same value, 0 = none */
};

struct cg_uses {
  uint32_t *first; /* per value */
  uint32_t *count;
  VEC(struct cg_use) list; /* list.at[0] is none */
  struct arena *arena;
};

struct cg_uses cg_collect_uses(struct ir_module *m, struct arena *a);

/* Reports an error at an op with its Lua call stack. */
void cg_error(const struct ir_module *m, struct diag_sink *diags, struct ir_op op, enum diag_id id,
              const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Does the lowering know this tile op? */
bool cg_has_lowering(enum ir_opcode o);
/* Each element of the result depends on the same element of the operands alone: arithmetic, math,
 * bits, comparisons, select, cast, random numbers (of a counter). */
bool cg_is_elementwise(enum ir_opcode o);
bool cg_is_reduce(enum ir_opcode o);
/* gather, scatter, atomic: a view, an index per dim of it, then the value that is written. */
bool cg_takes_indices(enum ir_opcode o);
/* Of one of these, what is selected: the result or the value that is written. */
struct ir_val cg_selected(const struct ir_module *m, struct ir_op o);
/* A tile that costs nothing to compute again wherever it is needed, in whatever layout: splats,
 * iotas and arithmetic on these alone. */
bool cg_is_free(const struct ir_module *m, struct ir_val v);

/* The roles of a scheduled module: one, or (knob `warpgroups`) those that compute, `consumer`, and
 * the one that issues copies, `producer`. */
void cg_add_roles(struct ir_module *m);
/* Was the dot given to the matrix unit of warpgroups? And does that take its a from registers? */
bool cg_is_wgmma(const struct ir_module *m, struct ir_op dot);
bool cg_has_a_in_registers(const struct ir_module *m, struct ir_op dot);
/* Does a dot take operand i (0, 1) from shared memory, as it was loaded? */
bool cg_takes_loaded(const struct ir_module *m, struct ir_op dot, uint32_t i);
/* k of one of its instructions of operands of dtype t: 32 bytes. */
int64_t cg_wgmma_k(enum dtype t);
/* Are sums of at most IR_PROMOTED_K of k added in f32, each begun anew? */
bool cg_wgmma_promotes(const struct ir_module *m, struct ir_op dot);
/* The instruction of the matrix unit that a dot was given (inst), or NULL; and how it lies. */
const struct ir_mma *cg_mma_of(const struct ir_module *m, struct ir_op dot);
struct cg_mma_atom cg_mma_atom_of(const struct ir_module *m, struct ir_op dot);
/* Is mma.sync of operands of dtype a made of conversions to f16 and of those instructions? So it is
 * for 8-bit floats on sm_90 and sm_100, which have instructions of a warpgroup for them. */
bool cg_mma_converts(const struct ir_module *m, enum dtype a);
/* Does operand i of a dot lie in shared memory with its rows (0: a) or columns (1: b) contiguous,
 * not k? */
bool cg_is_mn_inner(const struct ir_module *m, struct ir_op dot, int i);

/* A dot operand traced through transposes and unit reshapes. */
struct cg_operand_source {
  struct ir_op load; /* or gather; 0: computed */
  int dim[2];        /* dims of the loaded tile that are the operand's dims 0 and 1 */
};
struct cg_operand_source cg_trace_operand(const struct ir_module *m, struct ir_val v);
/* The loads that v is computed from, element by element and through broadcasts, transposes,
 * reshapes and bitcasts: each once, in the order of a walk over operands. What anything else makes
 * (dots, reductions, loops) has an end there. */
struct cg_loads {
  VEC(struct ir_op) list;
};
void cg_find_loads(const struct ir_module *m, struct arena *a, struct ir_val v,
                   struct cg_loads *out);
/* Bytes of shared memory for a dot's a in registers, where its elements change their threads on the
 * way: another dot's result transposed, or with its columns over several warpgroups. */
int64_t cg_crossing_bytes(const struct ir_module *m, struct ir_op dot);
/* Does a load whose path is chosen end in registers, not in shared memory for dots? */
bool cg_goes_to_registers(const struct ir_module *m, struct ir_op load);
/* The dot one of whose operands is computed from the load, element by element, if nothing else
 * reads it and nothing is written in between; or none. Such a load may be read where that is
 * computed. */
struct ir_op cg_only_computes(const struct ir_module *m, const struct cg_uses *u,
                              struct ir_op load);
/* Is v read by dots alone (through transposes and unit reshapes), as loaded? Such values have no
 * fragment. */
bool cg_is_smem_only(const struct ir_module *m, const struct cg_uses *u, struct ir_val v);

/* ---- long_tiles.c ---- */

#define CG_BUSY_THREADS 1024 /* of an SM: enough loads on their way to keep memory busy */
#define CG_ROOM_REGS    26   /* of a thread, for what it needs besides tiles */
#define CG_LONG_TILE    16   /* elements of a thread, in a tile worth a word about it */
/* Would a kernel without dots have half of CG_BUSY_THREADS or fewer on an SM if long tiles are kept
 * as compilers like, and all of them if not; or else none but so? Accesses have their paths;
 * `threads` are a block's. */
bool cg_wants_recompute(struct ir_module *m, struct arena *scratch, int64_t threads);

/* Is v zero in every element, and written as a constant? (pass_split_loops.c) */
bool cg_is_zero(const struct ir_module *m, struct ir_val v);
/* Shared memory for accumulators that come from other blocks of the cluster (lower_parts.c). */
int64_t cg_parts_bytes(const struct ir_module *m);
/* ---- pass_choose_warpgroups.c ---- */

/* Is v, a scalar or a view, what a producer computes by itself: from arguments, dims, indices of
 * the grid and of loops? */
bool cg_is_replayed(const struct ir_module *m, struct ir_val v);

/* May split_k cut the kernel's main loop? Says which one that is. */
bool cg_may_split(const struct ir_module *m, struct arena *a, struct ir_op *loop);
/* Can any op of the kernel change what this load reads? Then it must not run ahead. */
bool cg_is_stored(const struct ir_module *m, struct ir_op load);

/* ---- matrix.c: operands of dots in shared memory, as loaded ---- */

/* k rounded up to what the dot's instruction takes. */
int64_t cg_dot_k_pad(const struct ir_module *m, struct ir_op dot, int64_t k);
/* Bytes from a row of `inner` elements to the next, of a matrix of such rows. */
int64_t cg_matrix_pitch(enum dtype t, int64_t inner);
int64_t cg_matrix_bytes(enum dtype t, int64_t outer, int64_t inner);
struct cg_matrix {
  int64_t outer, inner;           /* elements, padding included */
  int outer_dim, inner_dim;       /* dims of the loaded tile; -1: a unit dim */
  int64_t fill_outer, fill_inner; /* what a copy writes: the tile, and zeros up to k's padding */
};
/* The dot that reads a load of shared memory, through transposes and reshapes. */
struct cg_use cg_dot_of_load(const struct ir_module *m, const struct cg_uses *u, struct ir_op load);
/* Of such a load; acc: the layout of the dot's accumulator. */
struct cg_matrix cg_matrix_of_load(const struct ir_module *m, struct ir_op load, struct cg_use use,
                                   const struct layout *acc);
/* The layout of a dot's accumulator, once it is cut over warps (pass_assign_layouts.c). */
const struct layout *cg_dot_layout(struct ir_module *m, struct arena *a, struct ir_op dot);
/* The layout in which a dot takes operand i from registers as it is; NULL: not from there. */
const struct layout *cg_operand_layout(struct ir_module *m, struct arena *a, struct ir_op dot,
                                       uint32_t i);

const struct cg_target *cg_target_of(const struct ir_module *m);
/* The word a SYM attribute holds, or "". */
const char *cg_attr_word(const struct ir_module *m, struct ir_op o, enum ir_attr_key key);
void cg_set_word(struct ir_module *m, struct ir_op o, enum ir_attr_key key, const char *word);
void cg_set_int(struct ir_module *m, struct ir_op o, enum ir_attr_key key, int64_t value);
void cg_set_ints(struct ir_module *m, struct ir_op o, enum ir_attr_key key, uint32_t n,
                 const int64_t *v);

/* A barrier of all threads that compute: of the block, or with roles a named one of theirs. */
void cg_put_barrier(struct ir_builder *b);
bool cg_is_barrier(const struct ir_module *m, struct ir_op o);

#define PASS(name) bool name(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed)
PASS(cg_pass_apply_pins);
PASS(cg_pass_bound_accesses);
PASS(cg_pass_split_loops);
PASS(cg_pass_choose_warpgroups);
PASS(cg_pass_peel_loops);
PASS(cg_pass_choose_paths);
PASS(cg_pass_fill_schedule);
PASS(cg_pass_assign_layouts);
PASS(cg_pass_load_early);
PASS(cg_pass_pipeline_loops);
PASS(cg_pass_lower_machine);
PASS(cg_pass_place_storage);
PASS(cg_pass_insert_barriers);
PASS(cg_pass_check_budgets);
#undef PASS

#endif
