/* Named barriers, pipes with mbarriers, the tensor memory unit, wgmma, clusters, registers.
 *
 * A pipe at `offset` has full[slots], then empty[slots], 8 bytes each. A cursor is two variables,
 * NAME_slot and NAME_phase; the producer waits for the phase before its own, so that a fresh ring
 * counts as empty. Device functions for one shape (a wgmma of n columns, a copy of r dims) are made
 * here as text, once each. */
#include "codegen/emit.h"

#include "base/check.h"
#include "ir/resource.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct ir_res *res_at(const struct emit *e, struct ir_op o, uint32_t i) {
  return &e->m->res.at[ir_op_at(e->m, o)->res[i]];
}

static const char *res_name(const struct emit *e, struct ir_op o, uint32_t i) {
  return e->res_name[ir_op_at(e->m, o)->res[i]];
}

static int attr(const struct emit *e, struct ir_op o, enum ir_attr_key key) {
  return (int)ir_attr_int(e->m, o, key, 0);
}

static const char *attr_word(const struct emit *e, struct ir_op o, enum ir_attr_key key) {
  const struct ir_attr *a = ir_get_attr(e->m, o, key);
  return a ? ir_sym(e->m, a->s) : "";
}

/* Is this the first time that the device function is wanted? */
static bool make(struct emit *e, const char *name) {
  for (uint32_t i = 0; i < e->made.n; i++)
    if (str_eq(e->made.at[i], name))
      return false;
  VEC_PUSH(e->a, &e->made, name);
  return true;
}

/* ---- pipes ---- */

static const struct ir_res *pipe_of(const struct emit *e, const struct ir_res *cursor) {
  return &e->m->res.at[ir_cursor_pipe(e->m, cursor)];
}

static int64_t slots_of(const struct ir_res *pipe) {
  return ir_res_int(pipe, IR_ATTR_slots, 1);
}

void emit_cursor(struct emit *e, uint32_t res) {
  const struct ir_res *c = &e->m->res.at[res];
  int64_t slots = slots_of(pipe_of(e, c)), start = ir_res_int(c, IR_ATTR_start, 0);
  const char *name = e->res_name[res];
  emit_line(e, "unsigned %s_slot = %d, %s_phase = %d;", name, (int)(start % slots), name,
            (int)(start / slots % 2));
}

/* The address of an mbarrier of the cursor's slot. */
static const char *barrier_at(struct emit *e, struct ir_op o, uint32_t res, bool full) {
  const struct ir_res *pipe = pipe_of(e, res_at(e, o, res));
  int64_t at = ir_res_int(pipe, IR_ATTR_offset, 0) + (full ? 0 : 8 * slots_of(pipe));
  return slots_of(pipe) == 1
             ? arena_printf(e->a, "smem_at + %" PRId64, at)
             : arena_printf(e->a, "smem_at + %" PRId64 " + 8 * %s_slot", at, res_name(e, o, res));
}

/* Of the slot some places behind the cursor. */
static const char *empty_behind(struct emit *e, struct ir_op o, int64_t behind) {
  const struct ir_res *pipe = pipe_of(e, res_at(e, o, 0));
  int64_t slots = slots_of(pipe), at = ir_res_int(pipe, IR_ATTR_offset, 0) + 8 * slots;
  const char *name = res_name(e, o, 0);
  if (!behind)
    return barrier_at(e, o, 0, false);
  return arena_printf(e->a,
                      "smem_at + %" PRId64 " + 8 * (%s_slot < %" PRId64 " ? %s_slot + %" PRId64
                      " : %s_slot - %" PRId64 ")",
                      at, name, behind, name, slots - behind, name, behind);
}

static void pipe_init(struct emit *e, struct ir_op o) {
  const struct ir_res *r = res_at(e, o, 0);
  int64_t slots = slots_of(r), at = ir_res_int(r, IR_ATTR_offset, 0);
  const char *init = emit_use(e, EMIT_MBARRIER_INIT);
  emit_line(e, "for (int i = 0; i < %d; i++) {", (int)slots);
  emit_line(e, "  %s(smem_at + %" PRId64 " + 8 * i, %d);", init, at,
            (int)ir_res_int(r, IR_ATTR_fills, 1));
  emit_line(e, "  %s(smem_at + %" PRId64 " + 8 * i, %d);", init, at + 8 * slots,
            (int)ir_res_int(r, IR_ATTR_arrivals, 1));
  emit_line(e, "}");
}

static void slot_release(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const char *at = empty_behind(e, o, ir_attr_int(e->m, o, IR_ATTR_behind, 0));
  if (n->n_in)
    emit_line(e, "%s(%s, %s);", emit_use(e, EMIT_MBARRIER_ARRIVE_AT), at, emit_val(e, n->in[0]));
  else
    emit_line(e, "%s(%s);", emit_use(e, EMIT_MBARRIER_ARRIVE), at);
}

static void slot_move(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const char *name = res_name(e, o, 0);
  int64_t slots = slots_of(pipe_of(e, res_at(e, o, 0)));
  if (n->n_in) {
    const char *t = arena_printf(e->a, "t%u", e->n_values++);
    emit_line(e, "const unsigned %s = %s_slot + %s;", t, name, emit_val(e, n->in[0]));
    emit_line(e, "%s_phase ^= %s / %" PRId64 " & 1;", name, t, slots);
    emit_line(e, "%s_slot = %s %% %" PRId64 ";", name, t, slots);
  } else if (slots == 1) {
    emit_line(e, "%s_phase ^= 1;", name);
  } else {
    emit_line(e, "if (++%s_slot == %" PRId64 ") {", name, slots);
    emit_line(e, "  %s_slot = 0;", name);
    emit_line(e, "  %s_phase ^= 1;", name);
    emit_line(e, "}");
  }
}

/* ---- where am I ---- */

const char *emit_place(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  if (n->opcode == IR_IN_ROLE) {
    uint32_t role = 0, first = 0;
    bool found = ir_find_role(e->m, ir_get_attr(e->m, o, IR_ATTR_role)->s, &role);
    KILN_ASSERT(found);
    (void)found;
    for (uint32_t i = 0; i < role; i++)
      first += e->m->roles.at[i].warps;
    uint32_t end = first + e->m->roles.at[role].warps;
    if (!first)
      return arena_printf(e->a, "threadIdx.x < %u", 32 * end);
    if (role + 1 == e->m->roles.n)
      return arena_printf(e->a, "threadIdx.x >= %u", 32 * first);
    return arena_printf(e->a, "threadIdx.x >= %u && threadIdx.x < %u", 32 * first, 32 * end);
  }
  if (n->opcode == IR_SLOT_AT) {
    const struct ir_res *buf = res_at(e, o, 1);
    int64_t slots = ir_res_int(buf, IR_ATTR_slots, 1);
    return arena_printf(e->a, "(int)(%s_slot * %" PRId64 ")", res_name(e, o, 0),
                        ir_res_int(buf, IR_ATTR_bytes, 0) / slots);
  }
  int64_t lbo = ir_res_int(res_at(e, o, 0), IR_ATTR_lbo, 0);
  return arena_printf(e->a, "(int)((smem_at + %s & 0x3ffff) >> 4 | %" PRId64 " << 16)",
                      emit_shared_at(e, o, 0, n->in[0]), lbo >> 4);
}

/* ---- the tensor memory unit ---- */

static void put_regs(struct strbuf *b, const char *before, uint32_t first, uint32_t n,
                     const char *after) {
  for (uint32_t i = 0; i < n; i++)
    sb_printf(b, "%s%%%u", i ? ", " : before, first + i);
  sb_puts(b, after);
}

static const char *const axes[] = {"x", "y", "z", "w", "u"};

/* tma_load_2d_hint(to, map, full, x, y, ...) */
static const char *make_load(struct emit *e, uint32_t rank, bool hint, bool multicast) {
  const char *name = arena_printf(e->a, "tma_load_%ud%s%s", rank, multicast ? "_multicast" : "",
                                  hint ? "_hint" : "");
  struct strbuf *b = &e->makes;
  if (!make(e, name))
    return name;
  sb_printf(b,
            "__device__ __forceinline__ void %s(unsigned to, const tensor_map &map, unsigned full",
            name);
  for (uint32_t i = 0; i < rank; i++)
    sb_printf(b, ", int %s", axes[i]);
  sb_puts(b, multicast ? ", unsigned short mask" : "");
  sb_puts(b, hint ? ", unsigned long long policy" : "");
  sb_printf(b,
            ") {\n  asm volatile(\"cp.async.bulk.tensor.%ud.shared::cluster.global.tile"
            ".mbarrier::complete_tx::bytes%s%s\"\n               \" [%%0], [%%1, ",
            rank, multicast ? ".multicast::cluster" : "", hint ? ".L2::cache_hint" : "");
  put_regs(b, "{", 3, rank, "}], [%2]");
  if (multicast)
    sb_printf(b, ", %%%u", 3 + rank);
  if (hint)
    sb_printf(b, ", %%%u", 3 + rank + multicast);
  sb_puts(b, ";\" ::\"r\"(to), \"l\"(&map), \"r\"(full)");
  for (uint32_t i = 0; i < rank; i++)
    sb_printf(b, ", \"r\"(%s)", axes[i]);
  sb_puts(b, multicast ? ", \"h\"(mask)" : "");
  sb_puts(b, hint ? ", \"l\"(policy)" : "");
  sb_puts(b, "\n               : \"memory\");\n}\n\n");
  return name;
}

/* tma_store_2d(map, from, x, y) */
static const char *make_store(struct emit *e, uint32_t rank, bool add) {
  const char *name = arena_printf(e->a, "tma_%s_%ud", add ? "add" : "store", rank);
  struct strbuf *b = &e->makes;
  if (!make(e, name))
    return name;
  sb_printf(b, "__device__ __forceinline__ void %s(const tensor_map &map, unsigned from", name);
  for (uint32_t i = 0; i < rank; i++)
    sb_printf(b, ", int %s", axes[i]);
  sb_printf(b,
            ") {\n  asm volatile(\"cp.%sasync.bulk.tensor.%ud.global.shared::cta%s.tile"
            ".bulk_group\"\n               \" [%%0, ",
            add ? "reduce." : "", rank, add ? ".add" : "");
  put_regs(b, "{", 2, rank, "}], [%1];\" ::\"l\"(&map), \"r\"(from)");
  for (uint32_t i = 0; i < rank; i++)
    sb_printf(b, ", \"r\"(%s)", axes[i]);
  sb_puts(b, "\n               : \"memory\");\n}\n\n");
  return name;
}

static void put_coordinates(struct emit *e, const struct ir_opnode *n, uint32_t rank,
                            struct strbuf *b) {
  for (uint32_t i = 0; i < rank; i++)
    sb_printf(b, ", %s", emit_val(e, n->in[1 + i]));
}

static void tma_load(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const char *hint = attr_word(e, o, IR_ATTR_hint);
  bool multicast = attr(e, o, IR_ATTR_multicast) == 1;
  uint32_t rank = n->n_in - 1u - multicast;
  struct strbuf b = {.arena = e->a};
  put_coordinates(e, n, rank, &b);
  if (multicast)
    sb_printf(&b, ", (unsigned short)%s", emit_val(e, n->in[1 + rank]));
  if (*hint)
    sb_printf(&b, ", 0x%s",
              str_eq(hint, "evict_first") ? "12f0000000000000ull" : "14f0000000000000ull");
  emit_line(e, "%s(smem_at + %s, %s, %s%s);", make_load(e, rank, *hint != 0, multicast),
            emit_shared_at(e, o, 0, n->in[0]), res_name(e, o, 2), barrier_at(e, o, 1, true),
            sb_str(&b));
}

static void tma_store(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  struct strbuf b = {.arena = e->a};
  put_coordinates(e, n, n->n_in - 1u, &b);
  emit_line(e, "%s(%s, smem_at + %s%s);",
            make_store(e, n->n_in - 1u, *attr_word(e, o, IR_ATTR_reduce) != 0), res_name(e, o, 0),
            emit_shared_at(e, o, 1, n->in[0]), sb_str(&b));
}

/* ---- matrices ---- */

static void stmatrix(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  int64_t num = ir_attr_int(e->m, o, IR_ATTR_num, 4);
  bool trans = attr(e, o, IR_ATTR_trans) != 0;
  enum emit_helper h = num == 4   ? (trans ? EMIT_STMATRIX_X4_TRANS : EMIT_STMATRIX_X4)
                       : num == 2 ? (trans ? EMIT_STMATRIX_X2_TRANS : EMIT_STMATRIX_X2)
                                  : (trans ? EMIT_STMATRIX_X1_TRANS : EMIT_STMATRIX_X1);
  struct strbuf regs = {.arena = e->a};
  for (int64_t i = 0; i < num; i++)
    sb_printf(&regs, ", %s[%s]", res_name(e, o, 1), emit_reg(e, n->in[1], 2 * i, 2));
  emit_line(e, "%s(smem_at + %s%s);", emit_use(e, h), emit_shared_at(e, o, 0, n->in[0]),
            sb_str(&regs));
}

/* The high word of a descriptor: stride byte offset, swizzle mode. */
static uint32_t desc_high(const struct ir_res *buf) {
  int64_t swizzle = ir_res_int(buf, IR_ATTR_swizzle_bytes, 0);
  uint32_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return (uint32_t)(ir_res_int(buf, IR_ATTR_sbo, 0) >> 4) | mode << 30;
}

static const char *unit_dtype(enum dtype t) {
  return t == DT_F32 ? "tf32" : dtype_name(t);
}

/* wgmma_m64n256k16_f32_bf16_bf16(d, a, b, scale_d): d the first of n / 2 registers (of a packed
 * type: n / 4), a and b descriptors, or a four registers. */
static const char *make_wgmma(struct emit *e, struct ir_op o) {
  const struct ir_res *acc = res_at(e, o, 0), *ra = res_at(e, o, 1), *rb = res_at(e, o, 2);
  enum dtype d = (enum dtype)acc->type.dtype, a = (enum dtype)ra->type.dtype,
             b = (enum dtype)rb->type.dtype;
  const char *shape = attr_word(e, o, IR_ATTR_shape);
  bool regs = ra->kind == IR_RES_FRAG, turns = dtype_bits(a) == 16, whole = d == DT_S32;
  int ta = attr(e, o, IR_ATTR_trans_a), tb = attr(e, o, IR_ATTR_trans_b);
  uint32_t n = (uint32_t)strtoul(strchr(shape, 'n') + 1, NULL, 10) / (d == DT_F16 ? 4 : 2);
  const char *name =
      arena_printf(e->a, "wgmma_%s_%s_%s_%s%s%s%s", shape, dtype_name(d), unit_dtype(a),
                   unit_dtype(b), regs ? "_regs" : "", ta ? "_ta" : "", tb ? "_tb" : "");
  if (!make(e, name))
    return name;
  struct strbuf *out = &e->makes;
  const char *reg = d == DT_F32 ? "float" : whole ? "int" : "unsigned";
  const char *constraint = d == DT_F32 ? "+f" : "+r";
  sb_printf(out, "__device__ __forceinline__ void %s(%s *d, ", name, reg);
  sb_puts(out,
          regs ? "unsigned a0, unsigned a1, unsigned a2, unsigned a3, " : "unsigned long long a, ");
  sb_printf(out,
            "unsigned long long b,\n    bool scale_d) {\n"
            "  asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %%%u, 0;\"\n"
            "               \" wgmma.mma_async.sync.aligned.%s.%s.%s.%s \"\n               \"",
            n + (regs ? 5 : 2), shape, dtype_name(d), unit_dtype(a), unit_dtype(b));
  for (uint32_t i = 0; i < n; i++)
    sb_printf(out, "%s%%%u", i == 0 ? "{" : i % 16 ? ", " : ", \"\n               \"", i);
  sb_puts(out, "}, ");
  put_regs(out, regs ? "{" : "", n, regs ? 4 : 1, regs ? "}, " : ", ");
  sb_printf(out, "%%%u, p", n + (regs ? 4 : 1));
  sb_puts(out, whole ? "" : ", 1, 1");
  if (turns && !regs)
    sb_printf(out, ", %d", ta);
  if (turns)
    sb_printf(out, ", %d", tb);
  sb_puts(out, "; }\"\n               : ");
  for (uint32_t i = 0; i < n; i++)
    sb_printf(out, "%s\"%s\"(d[%u])",
              i == 0  ? ""
              : i % 8 ? ", "
                      : ",\n                 ",
              constraint, i);
  sb_puts(out, "\n               : ");
  sb_puts(out, regs ? "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3)" : "\"l\"(a)");
  sb_puts(out, ", \"l\"(b), \"r\"((int)scale_d));\n}\n\n");
  return name;
}

/* A descriptor from its low word. */
static const char *desc(struct emit *e, const struct ir_res *buf, struct ir_val low) {
  return arena_printf(e->a, "0x%08x00000000ull | (unsigned)%s", desc_high(buf), emit_val(e, low));
}

static void wgmma(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_res *acc = res_at(e, o, 0), *a = res_at(e, o, 1), *b = res_at(e, o, 2);
  struct strbuf text = {.arena = e->a};
  if (a->kind == IR_RES_FRAG) {
    uint32_t per = emit_packed(e, a);
    for (uint32_t i = 0; i < 4; i++)
      sb_printf(&text, "%s[%s], ", res_name(e, o, 1), emit_reg(e, n->in[1], i * per, per));
  } else {
    sb_printf(&text, "%s, ", desc(e, a, n->in[1]));
  }
  emit_line(e, "%s(%s + %s, %s%s, %s);", make_wgmma(e, o), res_name(e, o, 0),
            emit_reg(e, n->in[0], 0, emit_packed(e, acc)), sb_str(&text), desc(e, b, n->in[2]),
            emit_val(e, n->in[3]));
}

static void pin(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  for (uint32_t i = 0; i < n->n_res; i++) {
    const struct ir_res *r = res_at(e, o, i);
    uint32_t per = emit_packed(e, r), bits = dtype_bits((enum dtype)r->type.dtype);
    const char *constraint = r->type.dtype == DT_F32   ? "+f"
                             : r->type.dtype == DT_F64 ? "+d"
                             : per > 1 || bits == 32   ? "+r"
                             : bits == 64              ? "+l"
                                                       : "+h";
    emit_line(e, "#pragma unroll");
    emit_line(e, "for (int i = 0; i < %u; i++) asm volatile(\"\" : \"%s\"(%s[i])::\"memory\");",
              ir_frag_elems(e->m, r) / per, constraint, res_name(e, o, i));
  }
}

/* A zero that no compiler knows to be one is added to the bits. */
static void renew(struct emit *e, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const char *zero = emit_use(e, EMIT_UNKNOWN_ZERO);
  for (uint32_t i = 0; i < n->n_res; i++) {
    const struct ir_res *r = res_at(e, o, i);
    uint32_t count = ir_frag_elems(e->m, r) / emit_packed(e, r);
    const char *x = arena_printf(e->a, "%s[i]", res_name(e, o, i));
    const char *value = arena_printf(e->a, "%s ^ z", x);
    if (r->type.dtype == DT_F32)
      value = arena_printf(e->a, "__uint_as_float(__float_as_uint(%s) ^ z)", x);
    else if (r->type.dtype == DT_F64)
      value = arena_printf(e->a, "__longlong_as_double(__double_as_longlong(%s) ^ z)", x);
    emit_line(e, "#pragma unroll");
    emit_line(e, "for (unsigned i = 0, z = %s(); i < %u; i++) %s = %s;", zero, count, x, value);
  }
}

/* ---- all of them ---- */

static void named_barrier(struct emit *e, struct ir_op o, const char *what) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_res *r = res_at(e, o, 0);
  int id = (int)ir_res_int(r, IR_ATTR_id, 1), threads = (int)ir_res_int(r, IR_ATTR_threads, 32);
  if (n->n_in)
    emit_line(e, "asm volatile(\"bar.%s %%0, %d;\" ::\"r\"(%d + %s) : \"memory\");", what, threads,
              id, emit_val(e, n->in[0]));
  else
    emit_line(e, "asm volatile(\"bar.%s %d, %d;\" ::: \"memory\");", what, id, threads);
}

static void statement(struct emit *e, const char *text) {
  emit_line(e, "asm volatile(\"%s;\" ::: \"memory\");", text);
}

static void statement_n(struct emit *e, const char *text, int n) {
  emit_line(e, "asm volatile(\"%s %d;\" ::: \"memory\");", text, n);
}

bool emit_async(struct emit *e, struct ir_op o) {
  switch ((int)ir_op_at(e->m, o)->opcode) {
  case IR_BAR_SYNC: named_barrier(e, o, "sync"); return true;
  case IR_BAR_ARRIVE:
    emit_line(e, "__syncwarp();");
    named_barrier(e, o, "arrive");
    return true;
  case IR_CLUSTER_ARRIVE:
    emit_line(e, "__syncwarp();"); /* the aligned form is of whole warps */
    statement(e, str_eq(attr_word(e, o, IR_ATTR_sem), "relaxed")
                     ? "barrier.cluster.arrive.relaxed.aligned"
                     : "barrier.cluster.arrive.release.aligned");
    return true;
  case IR_CLUSTER_WAIT: statement(e, "barrier.cluster.wait.acquire.aligned"); return true;
  case IR_PIPE_INIT: pipe_init(e, o); return true;
  case IR_FENCE_INIT: statement(e, "fence.mbarrier_init.release.cluster"); return true;
  case IR_SLOT_ACQUIRE:
    emit_line(e, "%s(%s, %s_phase ^ 1);", emit_use(e, EMIT_MBARRIER_WAIT),
              barrier_at(e, o, 0, false), res_name(e, o, 0));
    return true;
  case IR_SLOT_EXPECT:
    emit_line(e, "%s(%s, %d);", emit_use(e, EMIT_MBARRIER_EXPECT), barrier_at(e, o, 0, true),
              (int)ir_res_int(pipe_of(e, res_at(e, o, 0)), IR_ATTR_bytes, 0));
    return true;
  case IR_SLOT_FILL:
    emit_line(e, "%s(%s);", emit_use(e, EMIT_MBARRIER_ARRIVE), barrier_at(e, o, 0, true));
    return true;
  case IR_SLOT_WAIT:
    emit_line(e, "%s(%s, %s_phase);", emit_use(e, EMIT_MBARRIER_WAIT), barrier_at(e, o, 0, true),
              res_name(e, o, 0));
    return true;
  case IR_SLOT_RELEASE: slot_release(e, o); return true;
  case IR_SLOT_NEXT:
  case IR_SLOT_SKIP: slot_move(e, o); return true;
  case IR_TMA_LOAD: tma_load(e, o); return true;
  case IR_TMA_STORE: tma_store(e, o); return true;
  case IR_BULK_COMMIT: statement(e, "cp.async.bulk.commit_group"); return true;
  case IR_BULK_WAIT:
    statement_n(
        e, attr(e, o, IR_ATTR_read) ? "cp.async.bulk.wait_group.read" : "cp.async.bulk.wait_group",
        attr(e, o, IR_ATTR_pending));
    return true;
  case IR_FENCE_ASYNC: statement(e, "fence.proxy.async.shared::cta"); return true;
  case IR_TMAP_PREFETCH:
    emit_line(e, "%s(&%s);", emit_use(e, EMIT_TMAP_PREFETCH), res_name(e, o, 0));
    return true;
  case IR_STMATRIX: stmatrix(e, o); return true;
  case IR_WGMMA: wgmma(e, o); return true;
  case IR_WGMMA_FENCE: statement(e, "wgmma.fence.sync.aligned"); return true;
  case IR_WGMMA_COMMIT: statement(e, "wgmma.commit_group.sync.aligned"); return true;
  case IR_WGMMA_WAIT:
    statement_n(e, "wgmma.wait_group.sync.aligned", attr(e, o, IR_ATTR_pending));
    return true;
  case IR_PIN: pin(e, o); return true;
  case IR_RENEW: renew(e, o); return true;
  case IR_SET_REGS:
    statement_n(e,
                attr(e, o, IR_ATTR_up) ? "setmaxnreg.inc.sync.aligned.u32"
                                       : "setmaxnreg.dec.sync.aligned.u32",
                attr(e, o, IR_ATTR_count));
    return true;
  case IR_PDL_WAIT: statement(e, "griddepcontrol.wait"); return true;
  case IR_PDL_LAUNCH: statement(e, "griddepcontrol.launch_dependents"); return true;
  default: return false;
  }
}
