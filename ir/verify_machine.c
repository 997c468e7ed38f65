/* Rules of machine modules that no single op shows: roles and registers, named barriers, pipes and
 * cursors, tensor maps, places in shared memory; that nobody touches a fragment while a wgmma in
 * flight has it, and that left operands in fragments do not live through a loop.
 *
 * Resources are checked for any module; the flow of wgmma groups only where every other rule holds.
 *
 * The flow: per fragment, how many groups were committed since the youngest one that writes it
 * (accumulator) or reads it (a). A group is done when a wait leaves fewer groups open than are
 * younger than it. Where paths join the younger one counts; the body is walked until no loop's
 * entry changes. */
#include "ir/verify_machine.h"

#include "ir/resource.h"
#include "ir/rules.h"

#include "base/str.h"

#include <stdarg.h>
#include <string.h>

struct machine {
  const struct ir_module *m;
  struct diag_sink *diags;
  struct arena *scratch;
  bool ok;
};

__attribute__((format(printf, 3, 4))) static void fail(struct machine *v, struct diag_loc at,
                                                       const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_vreport(v->diags, DIAG_ERROR, DIAG_IR_INVALID, at, fmt, ap);
  va_end(ap);
  v->ok = false;
}

/* Reports about a resource. */
#define FAIL_RES(v, r, fmt, ...)                                                                   \
  fail(v, (v)->m->at.kernel, "resource `%s`" fmt, ir_sym((v)->m, (r)->name), __VA_ARGS__)

static const struct recipe_step *only_launch(const struct ir_module *m) {
  const struct recipe_step *found = NULL;
  for (uint32_t i = 0; m->recipe && i < m->recipe->steps.n; i++)
    if (m->recipe->steps.at[i].kind == RECIPE_KERNEL) {
      if (found)
        return NULL;
      found = &m->recipe->steps.at[i];
    }
  return found;
}

/* ---- roles ---- */

/* Registers a thread may have when the kernel starts: an SM's quarter has 16384, given to warps in
 * units of 8 a thread. */
static uint32_t entry_regs(uint32_t warps) {
  uint32_t n = 16384 / (32 * ((warps + 3) / 4)) / 8 * 8;
  return n < 255 ? n : 255;
}

static void check_roles(struct machine *v) {
  const struct ir_module *m = v->m;
  const struct recipe_step *launch = only_launch(m);
  uint32_t warps = 0, counted = 0;
  uint64_t regs = 0;
  bool sets = false;
  for (uint32_t i = 0; i < m->roles.n; i++) {
    const struct ir_role *r = &m->roles.at[i];
    const char *name = ir_sym(m, r->name);
    warps += r->warps;
    counted += r->warps != 0;
    if (r->regs && (r->regs < 24 || r->regs > 256 || r->regs % 8))
      fail(v, m->at.roles, "role `%s`: regs is %u; it must be 24 to 256 in steps of 8", name,
           r->regs);
    if (r->regs && (!r->warps || r->warps % 4))
      fail(v, m->at.roles, "role `%s` has %u warps; registers are set by whole warpgroups of 4",
           name, r->warps);
    sets = sets || r->regs;
  }
  if (!counted) {
    if (m->roles.n > 1 && m->stage == IR_MACHINE_STAGE)
      fail(v, m->at.roles, "%u roles without a number of warps each", m->roles.n);
    return;
  }
  if (counted != m->roles.n) {
    fail(v, m->at.roles, "all roles or none must have a number of warps");
    return;
  }
  if (launch && launch->block[0] * launch->block[1] * launch->block[2] != 32 * warps)
    fail(v, m->at.roles, "the roles have %u warps, the launch has %u threads", warps,
         launch->block[0] * launch->block[1] * launch->block[2]);
  for (uint32_t i = 0; i < m->roles.n; i++)
    regs += (uint64_t)m->roles.at[i].warps * 32 *
            (m->roles.at[i].regs ? m->roles.at[i].regs : entry_regs(warps));
  uint64_t have = (uint64_t)warps * 32 * entry_regs(warps);
  if (sets && regs > have)
    fail(v, m->at.roles, "the roles have %llu registers, the block starts with %llu (%u x %u)",
         (unsigned long long)regs, (unsigned long long)have, warps * 32, entry_regs(warps));
}

/* ---- resources ---- */

static bool is_one_of(int64_t x, int64_t a, int64_t b, int64_t c, int64_t d) {
  return x == a || x == b || x == c || x == d;
}

static void check_bar(struct machine *v, uint32_t i) {
  const struct ir_res *r = &v->m->res.at[i];
  int64_t id = ir_res_int(r, IR_ATTR_id, 0), count = ir_res_int(r, IR_ATTR_count, 1);
  int64_t threads = ir_res_int(r, IR_ATTR_threads, 0);
  if (id < 1 || id > 15 || count < 1 || count > 16 - id) {
    FAIL_RES(v, r, ": barriers %lld to %lld; there are 1 to 15", (long long)id,
             (long long)(id + count - 1));
    return;
  }
  if (threads < 32 || threads > 1024 || threads % 32)
    FAIL_RES(v, r, ": threads is %lld; it must be 32 to 1024 in whole warps", (long long)threads);
  for (uint32_t k = 1; k < i; k++) {
    const struct ir_res *o = &v->m->res.at[k];
    int64_t from = ir_res_int(o, IR_ATTR_id, 0), n = ir_res_int(o, IR_ATTR_count, 1);
    if (o->kind == IR_RES_BAR && id < from + n && from < id + count)
      FAIL_RES(v, r, " shares barriers with `%s`", ir_sym(v->m, o->name));
  }
}

static void check_cursor(struct machine *v, const struct ir_res *r) {
  uint32_t pipe = ir_cursor_pipe(v->m, r);
  const char *side = ir_res_word(v->m, r, IR_ATTR_side);
  int64_t start = ir_res_int(r, IR_ATTR_start, 0);
  if (!pipe)
    FAIL_RES(v, r, ": there is no pipe `%s`", ir_res_word(v->m, r, IR_ATTR_pipe));
  else if (!ir_pipe_has_barriers(v->m, &v->m->res.at[pipe]))
    FAIL_RES(v, r, ": pipe `%s` has no mbarriers; kinds tma and role have",
             ir_sym(v->m, v->m->res.at[pipe].name));
  if (!str_eq(side, "producer") && !str_eq(side, "consumer"))
    FAIL_RES(v, r, ": side is `%s`; it must be producer or consumer", side);
  if (start < 0 || start > INT32_MAX)
    FAIL_RES(v, r, ": start is %lld", (long long)start);
}

/* The bytes of shared memory a resource has; false if it has none or no place yet. */
static bool place_of(const struct ir_module *m, const struct ir_res *r, int64_t *at,
                     int64_t *bytes) {
  const struct ir_attr *offset = ir_res_attr(r, IR_ATTR_offset);
  if (!offset)
    return false;
  *at = offset->i;
  if (r->kind == IR_RES_PIPE && ir_pipe_has_barriers(m, r))
    *bytes = 16 * ir_res_int(r, IR_ATTR_slots, 1);
  else if (r->kind == IR_RES_BUF && ir_res_attr(r, IR_ATTR_bytes))
    *bytes = ir_res_int(r, IR_ATTR_bytes, 0);
  else
    return false;
  return true;
}

/* Have buffers got their places? */
static bool is_placed(const struct ir_module *m) {
  for (uint32_t i = 1; i < m->res.n; i++)
    if (m->res.at[i].kind == IR_RES_BUF && !ir_res_attr(&m->res.at[i], IR_ATTR_offset))
      return false;
  return true;
}

static void check_pipe(struct machine *v, uint32_t i) {
  const struct ir_module *m = v->m;
  const struct ir_res *r = &m->res.at[i];
  const char *kind = ir_res_word(m, r, IR_ATTR_kind);
  int64_t slots = ir_res_int(r, IR_ATTR_slots, 0), bytes = ir_res_int(r, IR_ATTR_bytes, 0);
  int64_t at, n, other, m_bytes;
  if (!ir_pipe_has_barriers(m, r)) {
    if (*kind && !str_eq(kind, "cp_async") && !str_eq(kind, "staged"))
      FAIL_RES(v, r, ": kind is `%s`; it must be cp_async, staged, tma or role", kind);
    return;
  }
  if (slots < 1 || slots > 64)
    FAIL_RES(v, r, ": slots is %lld; it must be 1 to 64", (long long)slots);
  if (str_eq(kind, "tma") && (bytes < 16 || bytes >= 1 << 20 || bytes % 16))
    FAIL_RES(v, r, ": bytes is %lld; it must be 16 to 1048560 in steps of 16", (long long)bytes);
  if (str_eq(kind, "role") && ir_res_int(r, IR_ATTR_fills, 0) < 1)
    FAIL_RES(v, r, ": %s", "it needs fills, the arrivals that fill a slot");
  if (ir_res_int(r, IR_ATTR_arrivals, 0) < 1)
    FAIL_RES(v, r, ": %s", "it needs arrivals, how many empty a slot");
  if (!ir_res_attr(r, IR_ATTR_offset) && !is_placed(m))
    return;
  if (!place_of(m, r, &at, &n) || at < 0 || at % 8) {
    FAIL_RES(v, r, ": %s", "it needs an offset for its mbarriers, a multiple of 8");
    return;
  }
  for (uint32_t k = 1; k < m->res.n; k++) {
    const struct ir_res *o = &m->res.at[k];
    if (k == i || (o->kind == IR_RES_PIPE && k > i) || !place_of(m, o, &other, &m_bytes))
      continue;
    if (at < other + m_bytes && other < at + n)
      FAIL_RES(v, r, ": its mbarriers at %lld .. %lld lie in `%s`", (long long)at,
               (long long)(at + n - 1), ir_sym(m, o->name));
  }
}

static void check_buf(struct machine *v, const struct ir_res *r) {
  int64_t swizzle = ir_res_int(r, IR_ATTR_swizzle_bytes, 0);
  int64_t slots = ir_res_int(r, IR_ATTR_slots, 1), bytes = ir_res_int(r, IR_ATTR_bytes, 0);
  if (!is_one_of(swizzle, 0, 32, 64, 128)) {
    FAIL_RES(v, r, ": swizzle_bytes is %lld; it must be 0, 32, 64 or 128", (long long)swizzle);
    return;
  }
  if (slots < 1 || bytes % slots)
    FAIL_RES(v, r, ": %lld bytes are not %lld equal slots", (long long)bytes, (long long)slots);
  if (!ir_res_attr(r, IR_ATTR_swizzle_bytes) || slots < 1)
    return;
  int64_t unit = swizzle ? 8 * swizzle : 128; /* where the pattern repeats */
  if (ir_res_int(r, IR_ATTR_offset, 0) % unit || bytes / slots % unit)
    FAIL_RES(v, r, ": offset and slots must be multiples of %lld bytes", (long long)unit);
  for (int i = 0; i < 2; i++) {
    int64_t x = ir_res_int(r, i ? IR_ATTR_sbo : IR_ATTR_lbo, 0);
    if (x < 0 || x >= 1 << 18 || x % 16)
      FAIL_RES(v, r, ": %s is %lld; it must be 0 to 262128 in steps of 16", i ? "sbo" : "lbo",
               (long long)x);
  }
}

static void check_tmap(struct machine *v, uint32_t i) {
  const struct ir_module *m = v->m;
  const struct ir_res *r = &m->res.at[i];
  const struct ir_attr *perm = ir_res_attr(r, IR_ATTR_perm), *box = ir_res_attr(r, IR_ATTR_box);
  int64_t swizzle = ir_res_int(r, IR_ATTR_swizzle_bytes, 0), l2 = ir_res_int(r, IR_ATTR_l2, 0);
  const char *fill = ir_res_word(m, r, IR_ATTR_fill), *round = ir_res_word(m, r, IR_ATTR_round);
  uint32_t arg, seen = 0, n_params = 0;
  for (uint32_t k = 0; k < m->params.n; k++)
    n_params += m->params.at[k].kind == RECIPE_PARAM_TMAP && m->params.at[k].res == i;
  if (n_params != 1)
    FAIL_RES(v, r, ": %u params pass it; there must be one", n_params);
  if (!is_one_of(swizzle, 0, 32, 64, 128))
    FAIL_RES(v, r, ": swizzle_bytes is %lld; it must be 0, 32, 64 or 128", (long long)swizzle);
  if (!is_one_of(l2, 0, 64, 128, 256))
    FAIL_RES(v, r, ": l2 is %lld; it must be 0, 64, 128 or 256", (long long)l2);
  if (*fill && !str_eq(fill, "zero") && !str_eq(fill, "nan"))
    FAIL_RES(v, r, ": fill is `%s`; it must be zero or nan", fill);
  if (*round && (!str_eq(round, "tf32") || r->type.dtype != DT_F32))
    FAIL_RES(v, r, ": round is `%s` over %s; it must be tf32, over f32", round,
             dtype_name((enum dtype)r->type.dtype));
  if (str_eq(fill, "nan") &&
      (!dtype_is_float((enum dtype)r->type.dtype) || dtype_bits((enum dtype)r->type.dtype) < 16))
    FAIL_RES(v, r, ": fill nan is for floats of 16 bits and more, not %s",
             dtype_name((enum dtype)r->type.dtype));
  if (!ir_tmap_arg(m, r, &arg) || m->args.at[arg].kind == IR_ARG_SCALAR) {
    FAIL_RES(v, r, ": there is no tensor argument `%s`", ir_res_word(m, r, IR_ATTR_arg));
    return;
  }
  const struct ir_arg *a = &m->args.at[arg];
  if (r->type.kind != IR_TILE || r->type.dtype != a->dtype || r->type.rank != a->rank) {
    struct ir_type_text t;
    FAIL_RES(v, r, " is %s; argument `%s` has %u dims of %s", ir_type_text(r->type, &t),
             ir_sym(m, a->name), a->rank, dtype_name(a->dtype));
    return;
  }
  bool fits = perm && box && perm->n_ints == a->rank && box->n_ints == a->rank && a->rank > 0;
  for (uint32_t d = 0; fits && d < a->rank; d++) {
    int64_t p = perm->ints[d];
    fits = p >= 0 && p < a->rank && !(seen >> p & 1) && box->ints[d] >= 1 && box->ints[d] <= 256 &&
           r->type.dim[p] == box->ints[d];
    seen |= fits ? 1u << p : 0;
  }
  if (!fits) {
    FAIL_RES(v, r, ": perm must permute the %u dims, box give the type's dims so, 1 to 256 each",
             a->rank);
    return;
  }
  int64_t inner = box->ints[0] * dtype_bits(a->dtype) / 8;
  if (dtype_bits(a->dtype) < 8 || inner % 16 || (swizzle && inner > swizzle))
    FAIL_RES(v, r,
             ": rows of its box have %lld bytes; they must be a multiple of 16 and within "
             "the swizzle",
             (long long)inner);
}

static void check_resources(struct machine *v) {
  const struct ir_module *m = v->m;
  const struct recipe_step *launch = only_launch(m);
  for (uint32_t i = 1; i < m->res.n; i++) {
    const struct ir_res *r = &m->res.at[i];
    int64_t at, bytes;
    switch (r->kind) {
    case IR_RES_BAR: check_bar(v, i); break;
    case IR_RES_CURSOR: check_cursor(v, r); break;
    case IR_RES_PIPE: check_pipe(v, i); break;
    case IR_RES_BUF: check_buf(v, r); break;
    case IR_RES_TMAP: check_tmap(v, i); break;
    case IR_RES_FRAG:
    case IR_RES_KIND_COUNT: break;
    }
    if (launch && place_of(m, r, &at, &bytes) && (at < 0 || at + bytes > launch->smem_bytes))
      FAIL_RES(v, r, ": bytes %lld .. %lld of shared memory; the launch has %u", (long long)at,
               (long long)(at + bytes - 1), launch->smem_bytes);
  }
}

/* ---- parameters ---- */

static bool same_map(const struct ir_module *m, const struct ir_res *r,
                     const struct recipe_param *q) {
  const struct ir_attr *box = ir_res_attr(r, IR_ATTR_box);
  const struct recipe_tmap *t = q->tmap;
  bool same = q->arg < m->recipe->args.n &&
              str_eq(m->recipe->args.at[q->arg].name, ir_res_word(m, r, IR_ATTR_arg)) && box &&
              box->n_ints == t->rank && t->swizzle == ir_res_int(r, IR_ATTR_swizzle_bytes, 0) &&
              t->l2 == ir_res_int(r, IR_ATTR_l2, 0) &&
              t->fill_nan == str_eq(ir_res_word(m, r, IR_ATTR_fill), "nan") &&
              t->tf32 == str_eq(ir_res_word(m, r, IR_ATTR_round), "tf32");
  for (uint32_t d = 0; same && d < t->rank; d++)
    same = t->box[d] == box->ints[d];
  return same;
}

/* [A-Za-z_][A-Za-z0-9_]*: it becomes a function. */
static bool is_function_name(const char *s) {
  size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
  return n > 0 && s[n] == 0 && !(s[0] >= '0' && s[0] <= '9');
}

/* The launch passes what the function takes. */
static void check_params(struct machine *v) {
  const struct ir_module *m = v->m;
  const struct recipe_step *launch = only_launch(m);
  for (uint32_t i = 0; m->recipe && i < m->recipe->steps.n; i++) {
    const struct recipe_step *s = &m->recipe->steps.at[i];
    if (s->kind == RECIPE_KERNEL && !is_function_name(s->entry))
      fail(v, m->at.kernel, "the recipe launches `%s`, which is no name of a function", s->entry);
  }
  if (!launch)
    return;
  if (launch->params.n != m->params.n) {
    fail(v, m->at.kernel, "the kernel has %u params, its recipe passes %u", m->params.n,
         launch->params.n);
    return;
  }
  for (uint32_t i = 0; i < m->params.n; i++) {
    const struct ir_param *p = &m->params.at[i];
    const struct recipe_param *q = &launch->params.at[i];
    if (p->kind != q->kind)
      fail(v, m->at.kernel, "param %u: the recipe passes another kind", i);
    else if (p->kind == RECIPE_PARAM_TMAP && p->res < m->res.n &&
             !same_map(m, &m->res.at[p->res], q))
      fail(v, m->at.kernel, "param %u: the recipe describes another map than resource `%s`", i,
           ir_sym(m, m->res.at[p->res].name));
  }
}

/* A tensor map's body argument is there for the count alone. */
static void check_map_uses(struct machine *v) {
  const struct ir_module *m = v->m;
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  for (uint32_t o = 1; o < m->ops.n; o++) {
    const struct ir_opnode *n = ir_op_at(m, (struct ir_op){o});
    for (uint32_t i = 0; n->block.id && i < n->n_in; i++) {
      const struct ir_value *x = ir_value_at(m, n->in[i]);
      if (x->def.id || x->block.id != m->body.id || x->index >= m->params.n ||
          x->index >= body->args.n || m->params.at[x->index].kind != RECIPE_PARAM_TMAP)
        continue;
      struct ir_check c = {m, v->diags, {o}, n, ir_info(n->opcode), true};
      ir_rule_fail(&c, "operand %u stands for a tensor map; ops name its resource", i + 1);
      v->ok = false;
    }
  }
}

/* ---- wgmma in flight ---- */

enum { AGE_OPEN = 0, AGE_LAST = 9, AGE_NONE = 255 }; /* k + 1: k groups were committed since */

struct age {
  uint8_t writes, reads; /* of the fragment, by a wgmma */
};

struct flow {
  struct machine *v;
  const struct ir_module *m;
  struct age *now;
  struct age **back; /* per op: what came round to a loop's entry, or NULL */
  bool changed, report;
};

static struct age *copy_ages(struct flow *f) {
  return arena_copy(f->v->scratch, f->now, f->m->res.n * sizeof *f->now);
}

/* The younger of each; did `to` change? */
static bool join(struct flow *f, struct age *to, const struct age *from) {
  bool changed = false;
  for (uint32_t i = 0; i < f->m->res.n; i++) {
    if (from[i].writes < to[i].writes) {
      to[i].writes = from[i].writes;
      changed = true;
    }
    if (from[i].reads < to[i].reads) {
      to[i].reads = from[i].reads;
      changed = true;
    }
  }
  return changed;
}

static uint8_t committed(uint8_t age) {
  return age == AGE_NONE ? age : age < AGE_LAST ? (uint8_t)(age + 1) : (uint8_t)AGE_LAST;
}

/* A group with k younger ones is done if at most k may be open. */
static uint8_t waited(uint8_t age, int64_t pending) {
  return age != AGE_OPEN && age != AGE_NONE && age - 1 >= pending ? AGE_NONE : age;
}

static void touch(struct flow *f, struct ir_op o, uint32_t i) {
  const struct ir_opnode *n = ir_op_at(f->m, o);
  const struct ir_res *r = &f->m->res.at[n->res[i]];
  struct age *a = &f->now[n->res[i]];
  uint8_t access = ir_res_access(n, i);
  bool unit = n->opcode == IR_WGMMA, accumulates = unit && i == 0;
  if (r->kind != IR_RES_FRAG)
    return;
  bool written = a->writes != AGE_NONE && !accumulates;
  bool read = a->reads != AGE_NONE && (access & IR_ACCESS_WRITE);
  if (f->report && (written || read)) {
    struct ir_check c = {f->m, f->v->diags, o, n, ir_info(n->opcode), true};
    ir_rule_fail(&c, "fragment `%s` is %s by a wgmma that may be in flight: wgmma_wait comes first",
                 ir_sym(f->m, r->name), written ? "written" : "read");
    f->v->ok = false;
  }
  if (accumulates)
    a->writes = AGE_OPEN;
  else if (unit)
    a->reads = AGE_OPEN;
}

static void walk(struct flow *f, struct ir_block b);

static void walk_loop(struct flow *f, struct ir_op o, const struct ir_opnode *n) {
  if (!f->back[o.id]) {
    f->back[o.id] = copy_ages(f);
    f->changed = true;
  }
  join(f, f->now, f->back[o.id]);
  bool at_least_once = n->opcode == IR_EACH;
  walk(f, n->blocks[0]);
  struct age *out = n->opcode == IR_WHILE ? copy_ages(f) : NULL; /* left from the condition */
  if (n->opcode == IR_WHILE)
    walk(f, n->blocks[1]);
  if (join(f, f->back[o.id], f->now))
    f->changed = true;
  if (out)
    memcpy(f->now, out, f->m->res.n * sizeof *out);
  else if (!at_least_once)
    memcpy(f->now, f->back[o.id], f->m->res.n * sizeof *f->now);
}

static void walk_op(struct flow *f, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(f->m, o);
  for (uint32_t i = 0; i < n->n_res; i++)
    touch(f, o, i);
  if (n->opcode == IR_WGMMA_COMMIT || n->opcode == IR_WGMMA_WAIT) {
    int64_t pending = ir_attr_int(f->m, o, IR_ATTR_pending, 0);
    bool commit = n->opcode == IR_WGMMA_COMMIT;
    for (uint32_t i = 0; i < f->m->res.n; i++) {
      struct age *a = &f->now[i];
      a->writes = commit ? committed(a->writes) : waited(a->writes, pending);
      a->reads = commit ? committed(a->reads) : waited(a->reads, pending);
    }
  }
  if (n->opcode == IR_FOR || n->opcode == IR_WHILE || n->opcode == IR_EACH) {
    walk_loop(f, o, n);
  } else if (n->opcode == IR_IF) {
    struct age *before = copy_ages(f);
    walk(f, n->blocks[0]);
    struct age *after = copy_ages(f);
    memcpy(f->now, before, f->m->res.n * sizeof *before);
    walk(f, n->blocks[1]);
    join(f, f->now, after);
  }
}

static void walk(struct flow *f, struct ir_block b) {
  IR_EACH_OP (f->m, b, o)
    walk_op(f, o);
}

/* ---- left operands in registers ---- */

static bool fills(const struct ir_module *m, struct ir_block b, uint32_t frag) {
  IR_EACH_OP (m, b, o) {
    const struct ir_opnode *n = ir_op_at(m, o);
    bool keeps = n->opcode == IR_PIN || n->opcode == IR_RENEW;
    for (uint32_t i = 0; i < n->n_res && !keeps; i++)
      if (n->res[i] == frag && (ir_res_access(n, i) & IR_ACCESS_WRITE))
        return true;
    for (uint32_t i = 0; i < n->n_blocks; i++)
      if (fills(m, n->blocks[i], frag))
        return true;
  }
  return false;
}

/* A left operand that lives through a loop: ptxas 13.0 gives its registers to the loop's other left
 * operands, which overwrite it (on an H200 results were wrong). */
static void check_left_operand(struct machine *v, struct ir_op o) {
  const struct ir_module *m = v->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  if (!n->block.id || n->opcode != IR_WGMMA || m->res.at[n->res[1]].kind != IR_RES_FRAG)
    return;
  struct ir_op loop = ir_block_at(m, n->block)->parent;
  while (loop.id && ir_op_at(m, loop)->opcode != IR_FOR && ir_op_at(m, loop)->opcode != IR_WHILE)
    loop = ir_block_at(m, ir_op_at(m, loop)->block)->parent;
  if (!loop.id)
    return;
  const struct ir_opnode *around = ir_op_at(m, loop);
  for (uint32_t i = 0; i < around->n_blocks; i++)
    if (fills(m, around->blocks[i], n->res[1]))
      return;
  struct ir_check c = {m, v->diags, o, n, ir_info(n->opcode), true};
  ir_rule_fail(
      &c,
      "fragment `%s` is read by a wgmma in a loop that does not fill it, where ptxas gives "
      "its registers to others: copy it in the loop, and `renew` the copy",
      ir_sym(m, m->res.at[n->res[1]].name));
  v->ok = false;
}

static bool has_wgmma(const struct ir_module *m) {
  for (uint32_t o = 1; o < m->ops.n; o++)
    if (ir_op_at(m, (struct ir_op){o})->opcode == IR_WGMMA)
      return true;
  return false;
}

void ir_check_in_flight(const struct ir_module *m, struct diag_sink *diags, bool *ok) {
  if (!has_wgmma(m))
    return;
  struct machine v = {m, diags, m->arena, true};
  struct arena_mark mark = arena_get_mark(m->arena);
  struct flow f = {.v = &v, .m = m};
  f.now = ARENA_ARRAY(m->arena, struct age, m->res.n);
  f.back = ARENA_ARRAY(m->arena, struct age *, m->ops.n);
  do {
    f.changed = false;
    memset(f.now, AGE_NONE, m->res.n * sizeof *f.now);
    walk(&f, m->body);
  } while (f.changed);
  f.report = true;
  memset(f.now, AGE_NONE, m->res.n * sizeof *f.now);
  walk(&f, m->body);
  for (uint32_t o = 1; o < m->ops.n; o++)
    check_left_operand(&v, (struct ir_op){o});
  arena_reset(m->arena, mark);
  *ok = *ok && v.ok;
}

void ir_check_machine(const struct ir_module *m, struct diag_sink *diags, bool *ok) {
  struct machine v = {m, diags, m->arena, true};
  check_roles(&v);
  check_resources(&v);
  check_params(&v);
  check_map_uses(&v);
  *ok = *ok && v.ok;
}
