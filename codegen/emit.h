/* What the files of the emitter share. emit_cuda.c walks blocks and control flow, emit_scalar.c
 * writes scalar expressions, emit_memory.c fragments, memory and matrix ops, emit_async.c barriers,
 * pipes, copies and wgmma, emit_helpers.c the device helpers a kernel uses. The emitter decides
 * nothing: each op has one form. */
#ifndef KILN_CODEGEN_EMIT_H
#define KILN_CODEGEN_EMIT_H

#include "codegen/cg.h"

/* Device helpers, emitted only where used: emit_helpers.def. */
enum emit_helper {
#define HELPER(id, text) EMIT_##id,
#include "codegen/emit_helpers.def"
  EMIT_HELPER_COUNT
};

struct emit {
  const struct ir_module *m;
  struct cg_emit_options opt;
  struct arena *a;
  struct strbuf body; /* statements */
  int indent;
  bool used[EMIT_HELPER_COUNT];
  VEC(const char *) made; /* device functions made for one shape (emit_async.c): names, texts */
  struct strbuf makes;
  const char **value_name; /* per value; NULL until defined */
  const char **res_name;   /* per resource */
  uint32_t n_values;       /* numbered so far */
  uint32_t line, file;     /* of the last #line */
};

/* ---- emit_cuda.c ---- */

/* Starts a statement: indentation. */
void emit_line(struct emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text of an operand: a name, or a literal for constants. */
const char *emit_val(struct emit *e, struct ir_val v);
/* Names the value and returns its name. */
const char *emit_new_name(struct emit *e, struct ir_val v);
/* "int", "float", "bf16", "const bf16 *". */
const char *emit_type(struct emit *e, struct ir_type t);
const char *emit_dtype(enum dtype t);
/* Marks a helper as used and returns its name. */
const char *emit_use(struct emit *e, enum emit_helper h);
bool emit_is_const(const struct emit *e, struct ir_val v, int64_t *value);

/* ---- emit_scalar.c ---- */

/* Whether the op is a scalar computation with one result. */
bool emit_is_scalar(enum ir_opcode o);
/* Its right-hand side. */
const char *emit_scalar(struct emit *e, struct ir_op o);
const char *emit_const(struct emit *e, enum dtype t, int64_t i, double f);
/* `text` of dtype `from` as dtype `to` (ir cast semantics). */
const char *emit_cast(struct emit *e, enum dtype from, enum dtype to, const char *text);

/* ---- emit_memory.c ---- */

/* Declares a fragment. */
void emit_frag(struct emit *e, uint32_t res);
/* Emits a fragment, memory, copy, matrix or synchronisation op; false if it is none. */
bool emit_memory(struct emit *e, struct ir_op o);

/* Elements in a 32-bit register if the fragment is packed, else 1. */
/* Bytes of an element in fragments and shared memory: 4-bit elements take one each there. */
uint32_t emit_size(enum dtype t);
uint32_t emit_packed(const struct emit *e, const struct ir_res *frag);
/* index + k as text, folded where the index is constant. */
const char *emit_index(struct emit *e, struct ir_val index, int64_t k);
/* Register number of element index + k in a packed fragment; index is a multiple of per. */
const char *emit_reg(struct emit *e, struct ir_val index, int64_t k, uint32_t per);
/* Offset in shared memory of an offset in the op's res-th resource. */
const char *emit_shared_at(struct emit *e, struct ir_op o, uint32_t res, struct ir_val offset);

/* ---- emit_async.c ---- */

/* Declares a cursor: its slot and phase. */
void emit_cursor(struct emit *e, uint32_t res);
/* The right-hand side of in_role, slot_at, desc. */
const char *emit_place(struct emit *e, struct ir_op o);
/* Emits an op of the asynchronous hardware: barriers, pipes, copies, wgmma; false if it is none. */
bool emit_async(struct emit *e, struct ir_op o);

/* ---- emit_helpers.c ---- */

void emit_helpers(const struct emit *e, struct strbuf *out);

#endif
