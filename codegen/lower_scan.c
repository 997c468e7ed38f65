/* Running sums along an axis.
 *
 * The coordinate along the axis is a sum of digits: of registers, lanes and warps, each with its
 * step (ir/layout.h). Sorted by step they read like a number, and the scan goes through them from
 * the fastest on. After some levels a thread has, per register, S: the sum over the elements of its
 * group up to and with its own; and per group T: the whole group's sum. A group is what the levels
 * done so far run over. The next level joins groups: S += the T of those before, T = the sum of
 * their Ts.
 *
 *   registers   in order, in the thread
 *   lanes       a bit of the digit at a time, by butterfly shuffles
 *   warps       T through shared memory
 *
 * Elements beyond the tile's edge come after all others and go into no sum of theirs. */
#include "base/check.h"
#include "codegen/lower.h"

enum { MOST_MODES = 32 };

/* Some modes of a hardware index: a number whose digits they are, and what each digit adds to the
 * index. */
struct digits {
  int64_t map[2 * MOST_MODES];
  uint32_t n;
  uint32_t extent; /* of all of them together */
};

/* A mode that moves along the axis. */
struct level {
  uint32_t mode; /* of the layout */
  int64_t step;
};

struct scan {
  const struct layout *x;
  uint32_t axis;
  enum dtype type;
  uint32_t sum;           /* fragment S */
  uint32_t total;         /* fragment T, an element per value of `open`; 0: S is T */
  bool done[MOST_MODES];  /* per mode of the layout */
  struct digits open, in; /* registers: modes that groups differ by; modes inside a group */
  struct level level[MOST_MODES];
  uint32_t n_levels;
};

static struct digits no_digits(void) {
  return (struct digits){.extent = 1};
}

static void put_digit(struct digits *d, uint32_t extent, int64_t step) {
  d->map[d->n++] = extent;
  d->map[d->n++] = step;
  d->extent *= extent;
}

static struct ir_val read_digits(struct lower *l, struct ir_val x, const struct digits *d) {
  return d->n ? cg_digits(l, x, d->n, d->map) : cg_s32(l, 0);
}

static const struct layout_mode *mode_at(const struct scan *s, uint32_t i) {
  return &s->x->modes.at[i];
}

static void find_levels(struct scan *s) {
  KILN_ASSERT(s->x->modes.n <= MOST_MODES);
  for (uint32_t i = 0; i < s->x->modes.n; i++) {
    struct level v = {i, mode_at(s, i)->step[s->axis]};
    if (!v.step)
      continue;
    uint32_t k = s->n_levels++;
    for (; k && s->level[k - 1].step > v.step; k--)
      s->level[k] = s->level[k - 1];
    s->level[k] = v;
  }
  int64_t covered = 1;
  for (uint32_t k = 0; k < s->n_levels; k++) {
    KILN_ASSERT(s->level[k].step >= covered); /* digits of one number */
    covered = s->level[k].step * mode_at(s, s->level[k].mode)->extent;
  }
  (void)covered;
}

/* Which registers make a group, after `done` has changed. */
static void find_groups(struct scan *s) {
  int64_t stride = 1;
  s->open = s->in = no_digits();
  for (uint32_t i = 0; i < s->x->modes.n && mode_at(s, i)->hw == LAYOUT_REG; i++) {
    put_digit(s->done[i] ? &s->in : &s->open, mode_at(s, i)->extent, stride);
    stride *= mode_at(s, i)->extent;
  }
}

/* The register of group g that is number q in it. */
static struct ir_val reg_of(struct lower *l, const struct scan *s, struct ir_val g,
                            struct ir_val q) {
  struct ir_val at = read_digits(l, g, &s->open);
  return cg_add(l, at, read_digits(l, q, &s->in));
}

static struct ir_val plus(struct lower *l, const struct scan *s, struct ir_val a, struct ir_val b) {
  return ir_build1(&l->b, IR_ADD, ir_scalar(s->type), 2, (struct ir_val[]){a, b});
}

static uint32_t new_frag(struct lower *l, const struct scan *s, const char *name, uint32_t n) {
  struct layout *x = layout_new(l->a, 1, (int64_t[]){n});
  static const int64_t along[LAYOUT_MAX_RANK] = {1};
  if (n > 1)
    layout_add(l->a, x, LAYOUT_REG, n, along);
  return cg_new_frag(l, name, ir_tile(s->type, 1, x->shape), ir_add_layout(l->m, x));
}

/* frag[at] += v */
static struct ir_val add_to(struct lower *l, const struct scan *s, uint32_t frag, struct ir_val at,
                            struct ir_val v) {
  struct ir_val have = cg_fget(l, frag, at);
  struct ir_val y = plus(l, s, have, v);
  cg_fput(l, frag, at, 1, &y);
  return y;
}

/* Adds v to S all over group g. */
static void add_to_group(struct lower *l, const struct scan *s, struct ir_val g, struct ir_val v) {
  struct ir_builder saved;
  struct ir_val r = reg_of(l, s, g, cg_each(l, s->in.extent, &saved));
  add_to(l, s, s->sum, r, v);
  cg_end_each(l, saved);
}

/* The digits of the open groups are split by `mode`: those faster, its own, those slower. */
static void scan_registers(struct lower *l, struct scan *s, uint32_t mode, bool last) {
  uint32_t e = mode_at(s, mode)->extent, fast = 1, new_total = 0;
  for (uint32_t i = 0; i < mode; i++)
    if (mode_at(s, i)->hw == LAYOUT_REG && !s->done[i])
      fast *= mode_at(s, i)->extent;
  uint32_t slow = s->open.extent / (fast * e), run = new_frag(l, s, "run", 1);
  if (!last)
    new_total = new_frag(l, s, "total", fast * slow);
  struct ir_builder high, low, digit;
  struct ir_val zero = cg_s32(l, 0);
  struct ir_val h = cg_each(l, slow, &high), f = cg_each(l, fast, &low);
  struct ir_val first = cg_add(l, cg_muli(l, h, (int64_t)fast * e), f);
  struct ir_val start =
      s->total ? cg_fget(l, s->total, first) : cg_fget(l, s->sum, reg_of(l, s, first, zero));
  cg_fput(l, run, zero, 1, &start);
  struct ir_val d = cg_each(l, e - 1, &digit);
  struct ir_val g = cg_add(l, first, cg_muli(l, cg_addi(l, d, 1), fast));
  struct ir_val before = cg_fget(l, run, zero);
  if (s->total) {
    add_to_group(l, s, g, before);
    add_to(l, s, run, zero, cg_fget(l, s->total, g));
  } else {
    struct ir_val sum = add_to(l, s, s->sum, reg_of(l, s, g, zero), before);
    cg_fput(l, run, zero, 1, &sum);
  }
  cg_end_each(l, digit);
  if (new_total) {
    struct ir_val all = cg_fget(l, run, zero);
    cg_fput(l, new_total, cg_add(l, cg_muli(l, h, fast), f), 1, &all);
  }
  cg_end_each(l, low);
  cg_end_each(l, high);
  s->total = new_total;
}

/* Lanes and warps need T apart from S. */
static void split_total(struct lower *l, struct scan *s) {
  if (s->total)
    return;
  s->total = new_frag(l, s, "total", s->open.extent);
  struct ir_builder saved;
  struct ir_val r = cg_each(l, s->open.extent, &saved), v = cg_fget(l, s->sum, r);
  cg_fput(l, s->total, r, 1, &v);
  cg_end_each(l, saved);
}

static void scan_lanes(struct lower *l, struct scan *s, uint32_t mode) {
  int64_t stride = 1;
  for (uint32_t i = 0; i < mode; i++)
    stride *= mode_at(s, i)->hw == LAYOUT_LANE ? mode_at(s, i)->extent : 1;
  split_total(l, s);
  KILN_ASSERT((mode_at(s, mode)->extent & (mode_at(s, mode)->extent - 1)) == 0);
  for (uint32_t bit = 1; bit < mode_at(s, mode)->extent; bit *= 2) {
    struct ir_builder saved = cg_enter_top(l);
    struct ir_val mask = cg_s32(l, stride * bit), none = cg_zero_of(l, s->type);
    struct ir_val bits = cg_op2(l, IR_AND, l->lane, mask);
    struct ir_val is_after = cg_cmp(l, IR_NE, bits, cg_s32(l, 0));
    cg_leave_top(l, saved);
    struct ir_val g = cg_each(l, s->open.extent, &saved);
    struct ir_val mine = cg_fget(l, s->total, g);
    struct ir_val other = cg_shuffle(l, mine, stride * bit);
    add_to_group(l, s, g, cg_select(l, is_after, other, none));
    struct ir_val both = plus(l, s, mine, other);
    cg_fput(l, s->total, g, 1, &both);
    cg_end_each(l, saved);
  }
}

/* Number of a lane or warp among those that a level tells apart: not by modes done (but for warps,
 * whose copies would write over each other), nor by `mode` itself. `first`: those with 0 in the
 * digits left out. */
static struct ir_val number_of(struct lower *l, const struct scan *s, enum layout_hw hw,
                               uint32_t mode, int64_t scale, struct ir_val *first, uint32_t *n) {
  struct digits keep = no_digits(), left_out = no_digits();
  for (uint32_t i = 0; i < s->x->modes.n; i++) {
    const struct layout_mode *m = mode_at(s, i);
    if (m->hw != hw)
      continue;
    bool out = i == mode || s->done[i];
    int64_t at = keep.extent, other = left_out.extent;
    put_digit(&keep, m->extent, out ? 0 : at * scale);
    put_digit(&left_out, m->extent, out && i != mode ? other : 0);
    keep.extent = (uint32_t)(out ? at : at * m->extent);
    left_out.extent = (uint32_t)(out && i != mode ? other * m->extent : other);
  }
  struct ir_val hw_index = hw == LAYOUT_LANE ? l->lane : l->warp;
  *first = cg_cmp(l, IR_EQ, read_digits(l, hw_index, &left_out), cg_s32(l, 0));
  *n = keep.extent;
  return read_digits(l, hw_index, &keep);
}

/* This thread's digit of a mode. */
static struct ir_val digit_of(struct lower *l, const struct scan *s, uint32_t mode) {
  struct digits d = no_digits();
  for (uint32_t i = 0; i < s->x->modes.n; i++)
    if (mode_at(s, i)->hw == LAYOUT_WARP)
      put_digit(&d, mode_at(s, i)->extent, i == mode);
  return read_digits(l, l->warp, &d);
}

/* part[group][lane and warp, but for the digit][digit] */
static void scan_warps(struct lower *l, struct scan *s, uint32_t mode) {
  uint32_t parts = mode_at(s, mode)->extent, lanes, warps;
  int64_t bytes = dtype_bytes(s->type, 1);
  struct ir_val first_lane, first_warp;
  split_total(l, s);
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val lane = number_of(l, s, LAYOUT_LANE, mode, 1, &first_lane, &lanes);
  struct ir_val warp = number_of(l, s, LAYOUT_WARP, mode, lanes, &first_warp, &warps);
  struct ir_val writer = cg_op2(l, IR_AND, first_lane, first_warp);
  struct ir_val mine = digit_of(l, s, mode), none = cg_zero_of(l, s->type);
  struct ir_val place = cg_muli(l, cg_add(l, lane, warp), parts * bytes);
  cg_leave_top(l, saved);
  int64_t rows = (int64_t)lanes * warps, dims[2] = {s->open.extent * rows, parts};
  struct cg_smem b = {.dtype = s->type};
  b.buf = cg_new_buf(l, "partial", ir_tile(s->type, 2, dims), dims[0] * parts * bytes, 16);
  for (int pass = 0; pass < 2; pass++) {
    struct ir_val g = cg_each(l, s->open.extent, &saved);
    struct ir_val at = cg_add(l, cg_muli(l, g, rows * parts * bytes), place), v;
    struct ir_val before = none, all = none;
    if (pass == 0) {
      v = cg_fget(l, s->total, g);
      cg_sstore(l, &b, cg_add(l, at, cg_muli(l, mine, bytes)), writer, 1, &v);
    }
    for (uint32_t p = 0; pass == 1 && p < parts; p++) {
      cg_sload(l, &b, cg_addi(l, at, p * bytes), 1, &v);
      struct ir_val is_before = cg_cmp(l, IR_LT, cg_s32(l, p), mine);
      before = plus(l, s, before, cg_select(l, is_before, v, none));
      all = plus(l, s, all, v);
    }
    if (pass == 1) {
      add_to_group(l, s, g, before);
      cg_fput(l, s->total, g, 1, &all);
    }
    cg_end_each(l, saved);
  }
}

void cg_lower_scan(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, o)->in[0], to = ir_op_at(m, o)->out[0];
  struct ir_type t = ir_type_of(m, to), wide = t;
  uint32_t layout = cg_layout_of(l, to);
  struct scan s = {.x = cg_layout_at(l, layout)};
  s.axis = (uint32_t)ir_attr_int(m, o, IR_ATTR_axis, 0);
  s.type = cg_fold_type((enum dtype)t.dtype);
  wide.dtype = (uint8_t)s.type;
  s.sum = cg_new_frag(l, "sum", wide, layout);
  struct ir_builder saved;
  struct ir_val r = cg_each(l, cg_frag_elems(l, s.sum), &saved);
  cg_next_reg(l);
  struct ir_val e = cg_cast(l, cg_eval(l, v, r, layout), s.type);
  cg_fput(l, s.sum, r, 1, &e);
  cg_end_each(l, saved);
  find_levels(&s);
  find_groups(&s);
  for (uint32_t k = 0; k < s.n_levels; k++) {
    uint32_t mode = s.level[k].mode;
    if (mode_at(&s, mode)->hw == LAYOUT_REG)
      scan_registers(l, &s, mode, k + 1 == s.n_levels);
    else if (mode_at(&s, mode)->hw == LAYOUT_LANE)
      scan_lanes(l, &s, mode);
    else
      scan_warps(l, &s, mode);
    s.done[mode] = true;
    find_groups(&s);
  }
  l->val[to.id].kind = CG_LV_FRAG;
  l->val[to.id].frag = cg_narrow_sums(l, s.sum, t, true);
}
