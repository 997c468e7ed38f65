/* Fragments, global and shared memory, copies, matrix ops, synchronisation.
 *
 * A fragment of a type narrower than 32 bits is packed, element 0 lowest, where its elements fill
 * whole registers; otherwise it is an array of elements. Memory is accessed in one piece: the piece
 * is unsigned char, unsigned short, unsigned, uint2 or uint4. */
#include "codegen/emit.h"

#include "base/check.h"
#include "base/num.h"
#include "ir/mma.h"
#include "ir/resource.h"

#include <inttypes.h>

static const struct ir_res *res_at(const struct emit *e, struct ir_op o, uint32_t i) {
  return &e->m->res.at[ir_op_at(e->m, o)->res[i]];
}

static const char *res_name(const struct emit *e, struct ir_op o, uint32_t i) {
  return e->res_name[ir_op_at(e->m, o)->res[i]];
}

/* Elements in a 32-bit register if the fragment is packed, else 1. */
uint32_t emit_packed(const struct emit *e, const struct ir_res *r) {
  uint32_t size = emit_size((enum dtype)r->type.dtype);
  uint32_t n = layout_extent(e->m->layouts.at[r->layout], LAYOUT_REG);
  return size < 4 && r->type.dtype != DT_BOOL && n % (4 / size) == 0 ? 4 / size : 1;
}

uint32_t emit_size(enum dtype t) {
  return dtype_bits(t) < 8 ? 1 : dtype_bits(t) / 8;
}

void emit_frag(struct emit *e, uint32_t res) {
  const struct ir_res *r = &e->m->res.at[res];
  uint32_t n = layout_extent(e->m->layouts.at[r->layout], LAYOUT_REG), per = emit_packed(e, r);
  emit_line(e, "%s %s[%u];", per > 1 ? "unsigned" : emit_dtype((enum dtype)r->type.dtype),
            e->res_name[res], n / per);
}

/* Four-byte registers or smaller pieces as one 32-bit word: `n` element texts of dtype t starting
 * at x[0]; values wider than t are rounded. */
static const char *pack(struct emit *e, const struct ir_val *v, uint32_t n, enum dtype t) {
  enum dtype from = (enum dtype)ir_type_of(e->m, v[0]).dtype;
  const char *x[4] = {"0", "0", "0", "0"};
  for (uint32_t i = 0; i < n; i++)
    x[i] = emit_val(e, v[i]);
  if (dtype_bits(t) == 16 && n == 2) {
    if (from == DT_F32)
      return arena_printf(e->a, "%s(%s, %s)",
                          emit_use(e, t == DT_BF16 ? EMIT_PACK_BF16 : EMIT_PACK_F16), x[0], x[1]);
    return arena_printf(e->a, "%s(%s, %s)", emit_use(e, EMIT_PACK_16), emit_cast(e, from, t, x[0]),
                        emit_cast(e, from, t, x[1]));
  }
  if (emit_size(t) == 1 && n == 4)
    return arena_printf(e->a, "%s(%s, %s, %s, %s)", emit_use(e, EMIT_PACK_8),
                        emit_cast(e, from, t, x[0]), emit_cast(e, from, t, x[1]),
                        emit_cast(e, from, t, x[2]), emit_cast(e, from, t, x[3]));
  KILN_UNREACHABLE();
}

/* index + k as text, folded where the index is constant. */
const char *emit_index(struct emit *e, struct ir_val index, int64_t k) {
  int64_t c;
  if (emit_is_const(e, index, &c))
    return arena_printf(e->a, "%" PRId64, c + k);
  return k ? arena_printf(e->a, "%s + %" PRId64, emit_val(e, index), k) : emit_val(e, index);
}

/* Register number of element index + k in a packed fragment; index is a multiple of per. */
const char *emit_reg(struct emit *e, struct ir_val index, int64_t k, uint32_t per) {
  int64_t c;
  if (per == 1)
    return emit_index(e, index, k);
  if (emit_is_const(e, index, &c))
    return arena_printf(e->a, "%" PRId64, (c + k) / per);
  return k ? arena_printf(e->a, "%s / %u + %" PRId64, emit_val(e, index), per, k / per)
           : arena_printf(e->a, "%s / %u", emit_val(e, index), per);
}

static void define(struct emit *e, struct ir_val v, const char *text) {
  const char *type = emit_type(e, ir_type_of(e->m, v)), *name = emit_new_name(e, v);
  emit_line(e, "const %s %s = %s;", type, name, text);
}

static void ffill(struct emit *e, struct ir_op o) {
  const struct ir_res *r = res_at(e, o, 0);
  struct ir_val v = ir_op_at(e->m, o)->in[0];
  uint32_t per = emit_packed(e, r);
  uint32_t n = layout_extent(e->m->layouts.at[r->layout], LAYOUT_REG) / per;
  struct ir_val all[4] = {v, v, v, v};
  const char *value = per > 1 ? pack(e, all, per, (enum dtype)r->type.dtype) : emit_val(e, v);
  emit_line(e, "#pragma unroll");
  emit_line(e, "for (int r = 0; r < %u; r++) %s[r] = %s;", n, res_name(e, o, 0), value);
}

static void fget(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_res *r = res_at(e, o, 0);
  uint32_t per = emit_packed(e, r), bits = 8 * emit_size((enum dtype)r->type.dtype);
  const char *frag = res_name(e, o, 0);
  for (uint32_t i = 0; i < n->n_out; i++) {
    const char *at = emit_index(e, n->in[0], i);
    int64_t c;
    const char *text;
    if (per == 1)
      text = arena_printf(e->a, "%s[%s]", frag, at);
    else if (emit_is_const(e, n->in[0], &c))
      text = arena_printf(e->a, "(%s)(%s[%" PRId64 "] >> %" PRId64 ")",
                          emit_dtype((enum dtype)r->type.dtype), frag, (c + i) / per,
                          (c + i) % per * bits);
    else
      text = arena_printf(e->a, "(%s)(%s[(%s) / %u] >> (%s) %% %u * %u)",
                          emit_dtype((enum dtype)r->type.dtype), frag, at, per, at, per, bits);
    define(e, n->out[i], text);
  }
}

static void fput(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_res *r = res_at(e, o, 0);
  enum dtype t = (enum dtype)r->type.dtype;
  uint32_t per = emit_packed(e, r);
  for (uint32_t i = 0; i + 1 < n->n_in; i += per) {
    enum dtype from = (enum dtype)ir_type_of(e->m, n->in[1 + i]).dtype;
    const char *value =
        per > 1 ? pack(e, &n->in[1 + i], per, t) : emit_cast(e, from, t, emit_val(e, n->in[1 + i]));
    emit_line(e, "%s[%s] = %s;", res_name(e, o, 0), emit_reg(e, n->in[0], i, per), value);
  }
}

/* ---- pieces of memory ---- */

static const char *piece_type(uint32_t bytes) {
  switch (bytes) {
  case 1: return "unsigned char";
  case 2: return "unsigned short";
  case 4: return "unsigned";
  case 8: return "uint2";
  case 16: return "uint4";
  default: KILN_UNREACHABLE();
  }
}

static const char *const lanes[] = {"x", "y", "z", "w"};

/* Defines the results as the elements of the piece named `piece`. */
static void split(struct emit *e, const struct ir_opnode *n, enum dtype t, const char *piece) {
  uint32_t size = emit_size(t), bytes = n->n_out * size;
  for (uint32_t i = 0; i < n->n_out; i++) {
    uint32_t at = i * size;
    const char *word =
        bytes > 4 ? arena_printf(e->a, "%s.%s", piece, lanes[at / 4]) : arena_strdup(e->a, piece);
    const char *text;
    if (size == 8)
      text = t == DT_F64
                 ? arena_printf(e->a, "__hiloint2double((int)%s.%s, (int)%s.%s)", piece,
                                lanes[at / 4 + 1], piece, lanes[at / 4])
                 : arena_printf(e->a, "(%s)((unsigned long long)%s.%s << 32 | %s.%s)",
                                emit_dtype(t), piece, lanes[at / 4 + 1], piece, lanes[at / 4]);
    else if (t == DT_F32)
      text = arena_printf(e->a, "__uint_as_float(%s)", word);
    else if (t == DT_BOOL)
      text = arena_printf(e->a, "(%s >> %u & 255) != 0", word, at % 4 * 8);
    else if (bytes < 4 || size == 4)
      text = at % 4 ? arena_printf(e->a, "(%s)(%s >> %u)", emit_dtype(t), word, at % 4 * 8)
                    : arena_printf(e->a, "(%s)%s", emit_dtype(t), word);
    else
      text = arena_printf(e->a, "(%s)(%s >> %u)", emit_dtype(t), word, at % 4 * 8);
    define(e, n->out[i], text);
  }
}

/* The word of a piece that holds elements v[0..] of dtype t (one 4-byte register). */
static const char *word_of(struct emit *e, const struct ir_val *v, enum dtype t) {
  enum dtype from = (enum dtype)ir_type_of(e->m, v[0]).dtype;
  if (t == DT_F32)
    return arena_printf(e->a, "__float_as_uint(%s)", emit_cast(e, from, t, emit_val(e, v[0])));
  if (dtype_bits(t) == 32)
    return arena_printf(e->a, "(unsigned)%s", emit_val(e, v[0]));
  return pack(e, v, 4 / emit_size(t), t);
}

/* The two words of an 8-byte element. */
static void words_of_wide(struct emit *e, struct ir_val v, enum dtype t, const char *out[2]) {
  const char *x = emit_val(e, v);
  if (t == DT_F64) {
    out[0] = arena_printf(e->a, "(unsigned)__double2loint(%s)", x);
    out[1] = arena_printf(e->a, "(unsigned)__double2hiint(%s)", x);
  } else {
    out[0] = arena_printf(e->a, "(unsigned)%s", x);
    out[1] = arena_printf(e->a, "(unsigned)(%s >> 32)", x);
  }
}

/* n values as one piece of memory: an expression of its type. */
static const char *join(struct emit *e, const struct ir_val *v, uint32_t n, enum dtype t) {
  uint32_t size = emit_size(t), bytes = n * size;
  if (bytes == size && size <= 2) {
    enum dtype from = (enum dtype)ir_type_of(e->m, v[0]).dtype;
    return arena_printf(e->a, "(%s)%s", piece_type(bytes),
                        emit_cast(e, from, t, emit_val(e, v[0])));
  }
  if (bytes == 2) /* two bytes */
    return arena_printf(e->a, "(unsigned short)((unsigned char)%s | (unsigned char)%s << 8)",
                        emit_val(e, v[0]), emit_val(e, v[1]));
  const char *words[4];
  for (uint32_t w = 0; w < bytes / 4; w++) {
    if (size == 8) {
      words_of_wide(e, v[w / 2], t, &words[w]);
      w++;
    } else {
      words[w] = word_of(e, &v[w * 4 / size], t);
    }
  }
  if (bytes == 4)
    return words[0];
  if (bytes == 8)
    return arena_printf(e->a, "make_uint2(%s, %s)", words[0], words[1]);
  return arena_printf(e->a, "make_uint4(%s, %s, %s, %s)", words[0], words[1], words[2], words[3]);
}

const char *emit_shared_at(struct emit *e, struct ir_op o, uint32_t res, struct ir_val offset) {
  int64_t base = ir_res_int(res_at(e, o, res), IR_ATTR_offset, 0), c;
  if (emit_is_const(e, offset, &c))
    return arena_printf(e->a, "%" PRId64, base + c);
  return base ? arena_printf(e->a, "%" PRId64 " + %s", base, emit_val(e, offset))
              : emit_val(e, offset);
}

/* ---- elements of 4 bits in global memory: two to a byte, low bits first ---- */

/* Element i of a word as a value of dtype t. */
static const char *nibble(struct emit *e, enum dtype t, const char *word, uint32_t i) {
  return t == DT_S4 ? arena_printf(e->a, "(signed char)((int)((unsigned)%s << %u) >> 28)", word,
                                   28 - 4 * i)
                    : arena_printf(e->a, "(unsigned char)(%s >> %u & 15)", word, 4 * i);
}

static void gload_nibbles(struct emit *e, const struct ir_opnode *n, enum dtype t) {
  const char *from = emit_val(e, n->in[0]), *piece = arena_printf(e->a, "p%u", e->n_values++);
  const char *mask = emit_val(e, n->in[1]), *other = emit_val(e, n->in[2]);
  uint32_t count = n->n_out, bytes = count > 1 ? count / 2 : 1;
  int64_t c;
  bool always = emit_is_const(e, n->in[1], &c) && c;
  const char *type = bytes > 4 ? piece_type(bytes) : "unsigned";
  emit_line(e, "%s %s%s;", type, piece, bytes > 4 ? " = make_uint2(0, 0)" : " = 0");
  emit_line(e, "%s%s%s%s = *(const %s *)(%s >> 1)%s;", always ? "" : "if (", always ? "" : mask,
            always ? "" : ") ", piece, piece_type(bytes), from,
            count > 1 ? "" : arena_printf(e->a, " >> ((int)%s & 1) * 4", from));
  for (uint32_t i = 0; i < count; i++) {
    const char *word = bytes > 4 ? arena_printf(e->a, "%s.%s", piece, lanes[i / 8]) : piece;
    const char *x = nibble(e, t, word, i % 8);
    define(e, n->out[i], always ? x : arena_printf(e->a, "%s ? %s : %s", mask, x, other));
  }
}

static void gstore_nibbles(struct emit *e, const struct ir_opnode *n, bool always) {
  const char *to = emit_val(e, n->in[0]), *mask = emit_val(e, n->in[1]), *words[2] = {"0", "0"};
  uint32_t count = n->n_in - 2u, bytes = count / 2;
  const char *open = always ? "" : arena_printf(e->a, "if (%s) ", mask);
  if (count == 1) {
    emit_line(e, "%s%s(%s, %s);", open, emit_use(e, EMIT_STORE_4), to, emit_val(e, n->in[2]));
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    const char *x = arena_printf(e->a, "(unsigned)(%s & 15)", emit_val(e, n->in[2 + i]));
    words[i / 8] = i % 8 ? arena_printf(e->a, "%s | %s << %u", words[i / 8], x, i % 8 * 4) : x;
  }
  const char *value = bytes > 4 ? arena_printf(e->a, "make_uint2(%s, %s)", words[0], words[1])
                                : arena_printf(e->a, "(%s)(%s)", piece_type(bytes), words[0]);
  emit_line(e, "%s*(%s *)(%s >> 1) = %s;", open, piece_type(bytes), to, value);
}

static void gload(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  enum dtype t = (enum dtype)ir_type_of(e->m, n->in[0]).dtype;
  if (dtype_bits(t) == 4) {
    gload_nibbles(e, n, t);
    return;
  }
  const char *type = piece_type(n->n_out * dtype_bits(t) / 8), *from = emit_val(e, n->in[0]);
  const char *piece = arena_printf(e->a, "p%u", e->n_values++);
  int64_t mask;
  if (emit_is_const(e, n->in[1], &mask) && mask) {
    emit_line(e, "const %s %s = *(const %s *)(%s);", type, piece, type, from);
  } else {
    struct ir_val other[16];
    for (uint32_t i = 0; i < n->n_out; i++)
      other[i] = n->in[2];
    emit_line(e, "%s %s = %s;", type, piece, join(e, other, n->n_out, t));
    emit_line(e, "if (%s) %s = *(const %s *)(%s);", emit_val(e, n->in[1]), piece, type, from);
  }
  split(e, n, t, piece);
}

/* Stores of 8 and 16 bytes are instructions of their own: of an assignment the compiler may make
 * one for each word. Floats stay floats. */
static const char *wide_store(struct emit *e, const struct ir_opnode *n, enum dtype t) {
  uint32_t count = n->n_in - 2u;
  bool pair = count * dtype_bits(t) == 64;
  const char *to = emit_val(e, n->in[0]);
  if (t != DT_F32)
    return arena_printf(e->a, "%s(%s, %s)",
                        emit_use(e, pair ? EMIT_STORE_8_BYTES : EMIT_STORE_16_BYTES), to,
                        join(e, &n->in[2], count, t));
  struct strbuf text = {.arena = e->a};
  sb_printf(&text, "%s(%s", emit_use(e, pair ? EMIT_STORE_2_F32 : EMIT_STORE_4_F32), to);
  for (uint32_t i = 0; i < count; i++) {
    enum dtype from = (enum dtype)ir_type_of(e->m, n->in[2 + i]).dtype;
    sb_printf(&text, ", %s", emit_cast(e, from, t, emit_val(e, n->in[2 + i])));
  }
  return arena_printf(e->a, "%s)", sb_str(&text));
}

static void gstore(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  enum dtype t = (enum dtype)ir_type_of(e->m, n->in[0]).dtype;
  uint32_t count = n->n_in - 2u;
  int64_t mask;
  bool always = emit_is_const(e, n->in[1], &mask) && mask;
  if (dtype_bits(t) == 4) {
    gstore_nibbles(e, n, always);
    return;
  }
  const char *open = always ? "" : arena_printf(e->a, "if (%s) ", emit_val(e, n->in[1]));
  uint32_t bytes = count * dtype_bits(t) / 8;
  if (bytes >= 8 && count > 1)
    emit_line(e, "%s%s;", open, wide_store(e, n, t));
  else
    emit_line(e, "%s*(%s *)(%s) = %s;", open, piece_type(bytes), emit_val(e, n->in[0]),
              join(e, &n->in[2], count, t));
}

/* Atomics that are a call of one function on pointers and values of one C type. */
static const struct {
  const char *kind;
  enum dtype t;
  const char *call, *type; /* type: NULL, the dtype's own */
} atomic_calls[] = {
    {"add", DT_S32, "atomicAdd", NULL},
    {"min", DT_S32, "atomicMin", NULL},
    {"max", DT_S32, "atomicMax", NULL},
    {"and", DT_S32, "atomicAnd", NULL},
    {"or", DT_S32, "atomicOr", NULL},
    {"xor", DT_S32, "atomicXor", NULL},
    {"exchange", DT_S32, "atomicExch", NULL},
    {"add", DT_S64, "atomicAdd", "unsigned long long"},
    {"min", DT_S64, "atomicMin", NULL},
    {"max", DT_S64, "atomicMax", NULL},
    {"and", DT_S64, "atomicAnd", "unsigned long long"},
    {"or", DT_S64, "atomicOr", "unsigned long long"},
    {"xor", DT_S64, "atomicXor", "unsigned long long"},
    {"exchange", DT_S64, "atomicExch", "unsigned long long"},
    {"add", DT_F32, "atomicAdd", NULL},
    {"exchange", DT_F32, "atomicExch", NULL},
    {"add", DT_F64, "atomicAdd", NULL},
};

/* The others; sm_90 and up have an instruction for bf16. */
static const char *atomic_helper(struct emit *e, const char *kind, enum dtype t) {
  const struct cg_target *target = cg_find_target(ir_sym(e->m, e->m->target));
  bool add = str_eq(kind, "add"), has_bf16 = target && target->cc_major >= 9;
  if (t == DT_F16)
    return emit_use(e, EMIT_ATOMIC_ADD_F16);
  if (t == DT_BF16 && add && has_bf16)
    return emit_use(e, EMIT_ATOMIC_ADD_BF16);
  if (t == DT_BF16) {
    emit_use(e, EMIT_BF16_TO_F32);
    emit_use(e, EMIT_F32_TO_BF16);
    return emit_use(e, EMIT_ATOMIC_ADD_BF16_SWAP);
  }
  if (t == DT_F64)
    return emit_use(e, EMIT_ATOMIC_EXCH_F64);
  bool least = str_eq(kind, "min");
  emit_use(e, least ? EMIT_MIN_F32 : EMIT_MAX_F32);
  return emit_use(e, least ? EMIT_ATOMIC_MIN_F32 : EMIT_ATOMIC_MAX_F32);
}

static void gatomic(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  enum dtype t = (enum dtype)ir_type_of(e->m, n->in[0]).dtype;
  const char *kind = ir_sym(e->m, ir_get_attr(e->m, o, IR_ATTR_kind)->s), *call = NULL;
  const char *ptr = emit_val(e, n->in[0]), *value = emit_val(e, n->in[2]);
  for (size_t i = 0; i < sizeof atomic_calls / sizeof atomic_calls[0] && !call; i++) {
    const char *as = atomic_calls[i].type;
    if (atomic_calls[i].t != t || !str_eq(atomic_calls[i].kind, kind))
      continue;
    call =
        as ? arena_printf(e->a, "%s((%s *)(%s), (%s)%s)", atomic_calls[i].call, as, ptr, as, value)
           : arena_printf(e->a, "%s(%s, %s)", atomic_calls[i].call, ptr, value);
  }
  if (ir_get_attr(e->m, o, IR_ATTR_sem)) /* verified: the sum of an s32 */
    call = arena_printf(e->a, "%s(%s, %s)", emit_use(e, EMIT_ATOMIC_ADD_ACQ_REL), ptr, value);
  if (!call)
    call = arena_printf(e->a, "%s(%s, %s)", atomic_helper(e, kind, t), ptr, value);
  const char *mask = emit_val(e, n->in[1]);
  int64_t c;
  bool always = emit_is_const(e, n->in[1], &c) && c;
  if (!n->n_out) {
    emit_line(e, "%s%s%s%s;", always ? "" : "if (", always ? "" : mask, always ? "" : ") ", call);
    return;
  }
  const char *type = emit_type(e, ir_type_of(e->m, n->out[0])), *name = emit_new_name(e, n->out[0]);
  emit_line(e, "%s %s = 0;", type, name);
  emit_line(e, "%s%s%s%s = (%s)%s;", always ? "" : "if (", always ? "" : mask, always ? "" : ") ",
            name, type, call);
}

static void sload(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  enum dtype t = (enum dtype)res_at(e, o, 0)->type.dtype;
  const char *type = piece_type(n->n_out * emit_size(t));
  const char *piece = arena_printf(e->a, "p%u", e->n_values++);
  emit_line(e, "const %s %s = *(const %s *)(smem + (%s));", type, piece, type,
            emit_shared_at(e, o, 0, n->in[0]));
  split(e, n, t, piece);
}

static void sstore(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  enum dtype t = (enum dtype)res_at(e, o, 0)->type.dtype;
  uint32_t count = n->n_in - 2u;
  int64_t mask;
  bool always = emit_is_const(e, n->in[1], &mask) && mask;
  emit_line(e, "%s%s%s*(%s *)(smem + (%s)) = %s;", always ? "" : "if (",
            always ? "" : emit_val(e, n->in[1]), always ? "" : ") ",
            piece_type(count * emit_size(t)), emit_shared_at(e, o, 0, n->in[0]),
            join(e, &n->in[2], count, t));
}

/* `smem_at + 1024 + v5` in block `rank` of the cluster. */
static const char *cluster_at(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  return arena_printf(e->a, "%s(smem_at + %s, %s)", emit_use(e, EMIT_CLUSTER_ADDRESS),
                      emit_shared_at(e, o, 0, n->in[0]), emit_val(e, n->in[1]));
}

/* The helper for an access of 1, 2, 4, 8 or 16 bytes: `first` and the four after it. */
static const char *by_width(struct emit *e, enum emit_helper first, uint32_t bytes) {
  return emit_use(e, (enum emit_helper)((int)first + __builtin_ctz(bytes)));
}
_Static_assert(EMIT_CLUSTER_LOAD_16 == EMIT_CLUSTER_LOAD_1 + 4 &&
                   EMIT_CLUSTER_STORE_16 == EMIT_CLUSTER_STORE_1 + 4,
               "by_width follows the order of emit_helpers.def");

static void rload(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  enum dtype t = (enum dtype)res_at(e, o, 0)->type.dtype;
  uint32_t bytes = n->n_out * dtype_bits(t) / 8;
  const char *piece = arena_printf(e->a, "p%u", e->n_values++);
  emit_line(e, "const %s %s = %s(%s);", piece_type(bytes), piece,
            by_width(e, EMIT_CLUSTER_LOAD_1, bytes), cluster_at(e, o));
  split(e, n, t, piece);
}

static void rstore(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  enum dtype t = (enum dtype)res_at(e, o, 0)->type.dtype;
  uint32_t count = n->n_in - 3u;
  int64_t mask;
  bool always = emit_is_const(e, n->in[2], &mask) && mask;
  emit_line(e, "%s%s%s%s(%s, %s);", always ? "" : "if (", always ? "" : emit_val(e, n->in[2]),
            always ? "" : ") ", by_width(e, EMIT_CLUSTER_STORE_1, count * dtype_bits(t) / 8),
            cluster_at(e, o), join(e, &n->in[3], count, t));
}

static void cp_async(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  int64_t bytes = ir_attr_int(e->m, o, IR_ATTR_bytes, 16), valid, mask;
  uint32_t size = dtype_bits((enum dtype)res_at(e, o, 0)->type.dtype) / 8;
  const char *to = arena_printf(e->a, "smem_at + %s", emit_shared_at(e, o, 0, n->in[1]));
  const char *from = emit_val(e, n->in[0]);
  bool always = emit_is_const(e, n->in[3], &mask) && mask;
  if (bytes == 16 && emit_is_const(e, n->in[2], &valid) && valid * size == bytes) {
    if (always)
      emit_line(e, "%s(%s, %s);", emit_use(e, EMIT_CP_ASYNC_16), to, from);
    else
      emit_line(e, "%s(%s, %s, %s);", emit_use(e, EMIT_CP_ASYNC_16_IF), to, from,
                emit_val(e, n->in[3]));
    return;
  }
  enum emit_helper h = bytes == 16  ? EMIT_CP_ASYNC_16_PART
                       : bytes == 8 ? EMIT_CP_ASYNC_8_PART
                                    : EMIT_CP_ASYNC_4_PART;
  emit_line(e, "%s%s%s%s(%s, %s, %s * %u);", always ? "" : "if (",
            always ? "" : emit_val(e, n->in[3]), always ? "" : ") ", emit_use(e, h), to, from,
            emit_val(e, n->in[2]), size);
}

static void ldmatrix(struct emit *e, struct ir_op o) {
  static const enum emit_helper helpers[2][3] = {
      {EMIT_LDMATRIX_X1, EMIT_LDMATRIX_X2, EMIT_LDMATRIX_X4},
      {EMIT_LDMATRIX_X1_TRANS, EMIT_LDMATRIX_X2_TRANS, EMIT_LDMATRIX_X4_TRANS}};
  static const enum emit_helper floats[3] = {EMIT_LDMATRIX_X1_F32, EMIT_LDMATRIX_X2_F32,
                                             EMIT_LDMATRIX_X4_F32};
  const struct ir_opnode *n = ir_op_at(e->m, o);
  int64_t num = ir_attr_int(e->m, o, IR_ATTR_num, 4);
  bool trans = ir_attr_int(e->m, o, IR_ATTR_trans, 0) != 0;
  const struct ir_res *r = res_at(e, o, 0);
  int k = num == 4 ? 2 : num == 2 ? 1 : 0;
  enum emit_helper h = r->type.dtype == DT_F32 ? floats[k] : helpers[trans][k];
  struct strbuf regs = {.arena = e->a};
  uint32_t per = emit_packed(e, r);
  for (int64_t i = 0; i < num; i++)
    sb_printf(&regs, "%s[%s], ", res_name(e, o, 0), emit_reg(e, n->in[1], per * i, per));
  emit_line(e, "%s(%ssmem_at + %s);", emit_use(e, h), sb_str(&regs),
            emit_shared_at(e, o, 1, n->in[0]));
}

/* The registers of a fragment that hold `elems` elements from an index on, as arguments. */
static void put_regs(struct emit *e, struct strbuf *out, struct ir_op o, uint32_t res,
                     struct ir_val index, uint32_t elems) {
  uint32_t per = emit_packed(e, res_at(e, o, res));
  for (uint32_t i = 0; i < elems; i += per)
    sb_printf(out, "%s%s[%s]", out->n ? ", " : "", res_name(e, o, res), emit_reg(e, index, i, per));
}

static void mma(struct emit *e, struct ir_op o) {
  static const enum emit_helper helpers[] = {
#define MMA(id, m, k, acc, a, b) EMIT_MMA_##id,
#include "ir/mma.def"
  };
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_mma *x =
      ir_mma_find((enum dtype)res_at(e, o, 0)->type.dtype, (enum dtype)res_at(e, o, 1)->type.dtype,
                  (enum dtype)res_at(e, o, 2)->type.dtype);
  struct strbuf regs = {.arena = e->a};
  put_regs(e, &regs, o, 0, n->in[0], ir_mma_elems(x, 2));
  put_regs(e, &regs, o, 1, n->in[1], ir_mma_elems(x, 0));
  put_regs(e, &regs, o, 2, n->in[2], ir_mma_elems(x, 1));
  emit_line(e, "%s(%s);", emit_use(e, helpers[x->id]), sb_str(&regs));
}

static void unzip(struct emit *e, struct ir_op o) {
  int64_t count = ir_attr_int(e->m, o, IR_ATTR_count, 8);
  struct strbuf regs = {.arena = e->a};
  put_regs(e, &regs, o, 0, ir_op_at(e->m, o)->in[0], (uint32_t)count);
  emit_line(e, "%s(%s);", emit_use(e, count == 8 ? EMIT_UNZIP_8 : EMIT_UNZIP_16), sb_str(&regs));
}

/* A string literal: printable ASCII as it is, the rest in octal; % doubled for printf. */
static const char *literal(struct emit *e, const char *s) {
  struct strbuf b = {.arena = e->a};
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '%')
      sb_puts(&b, "%%");
    else if (c < 32 || c > 126 || c == '"' || c == '\\')
      sb_printf(&b, "\\%03o", c);
    else
      sb_putc(&b, (char)c);
  }
  return sb_str(&b);
}

static void check(struct emit *e, struct ir_op o) {
  const struct ir_attr *message = ir_get_attr(e->m, o, IR_ATTR_message);
  emit_line(e, "if (!(%s)) {", emit_val(e, ir_op_at(e->m, o)->in[0]));
  emit_line(e, "  printf(\"%s\\n\");",
            literal(e, message ? ir_sym(e->m, message->s) : "assertion failed"));
  emit_line(e, "  __trap();");
  emit_line(e, "}");
}

/* printf takes doubles, 64-bit integers and strings. */
static void gprint(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const char *s = ir_sym(e->m, ir_get_attr(e->m, o, IR_ATTR_message)->s);
  struct strbuf text = {.arena = e->a}, args = {.arena = e->a}, part = {.arena = e->a};
  uint32_t k = 1;
  for (; *s; s++) {
    if (s[0] != '{' || s[1] != '}' || k == n->n_in) {
      sb_putc(&part, *s);
      continue;
    }
    enum dtype t = (enum dtype)ir_type_of(e->m, n->in[k]).dtype;
    const char *x = emit_val(e, n->in[k++]);
    sb_puts(&text, literal(e, sb_str(&part)));
    part = (struct strbuf){.arena = e->a};
    sb_puts(&text, t == DT_BOOL        ? "%s"
                   : t == DT_F64       ? "%.17g"
                   : dtype_is_float(t) ? "%.9g"
                                       : "%lld");
    if (t == DT_BOOL)
      sb_printf(&args, ", %s ? \"true\" : \"false\"", x);
    else if (dtype_is_float(t))
      sb_printf(&args, ", (double)%s", emit_cast(e, t, t == DT_F64 ? t : DT_F32, x));
    else
      sb_printf(&args, ", (long long)%s", x);
    s++;
  }
  sb_puts(&text, literal(e, sb_str(&part)));
  emit_line(e, "if (%s) printf(\"%s\"%s);", emit_val(e, n->in[0]), sb_str(&text), sb_str(&args));
}

bool emit_memory(struct emit *e, struct ir_op o) {
  switch ((int)ir_op_at(e->m, o)->opcode) {
  case IR_FFILL: ffill(e, o); return true;
  case IR_FGET: fget(e, o); return true;
  case IR_FPUT: fput(e, o); return true;
  case IR_GLOAD: gload(e, o); return true;
  case IR_GSTORE: gstore(e, o); return true;
  case IR_GATOMIC: gatomic(e, o); return true;
  case IR_SLOAD: sload(e, o); return true;
  case IR_SSTORE: sstore(e, o); return true;
  case IR_CP_ASYNC: cp_async(e, o); return true;
  case IR_PIPE_COMMIT: emit_line(e, "asm volatile(\"cp.async.commit_group;\");"); return true;
  case IR_PIPE_WAIT:
    emit_line(e, "asm volatile(\"cp.async.wait_group %d;\" ::: \"memory\");",
              (int)ir_attr_int(e->m, o, IR_ATTR_pending, 0));
    return true;
  case IR_BARRIER: emit_line(e, "__syncthreads();"); return true;
  case IR_LDMATRIX: ldmatrix(e, o); return true;
  case IR_MMA: mma(e, o); return true;
  case IR_UNZIP: unzip(e, o); return true;
  case IR_CHECK: check(e, o); return true;
  case IR_GPRINT: gprint(e, o); return true;
  case IR_RLOAD: rload(e, o); return true;
  case IR_RSTORE: rstore(e, o); return true;
  default: return emit_async(e, o);
  }
}
