/* Interpreter: load, store and race checks.
 *
 * Which part of a tile lies inside its view is found per axis before any address is formed, in
 * arithmetic that cannot overflow; addresses inside a tensor were checked when it was bound. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part of a tile that lies inside a view: elements [lo, hi) of each axis. */
struct window {
  uint32_t rank;
  bool empty;
  int64_t dim[IR_MAX_RANK]; /* of the tile */
  int64_t lo[IR_MAX_RANK], hi[IR_MAX_RANK];
  int64_t start[IR_MAX_RANK]; /* view coordinate of element 0; valid where not empty */
};

static struct window window_of(const struct interp *in, const struct interp_view *v,
                               const struct ir_type *tile, const struct ir_val *offsets) {
  struct window w = {.rank = tile->rank, .empty = v->empty};
  for (uint32_t k = 0; k < tile->rank; k++) {
    int64_t off = val_int(in, offsets[k]), n = tile->dim[k];
    const struct interp_view_dim *d = &v->dim[k];
    w.dim[k] = n;
    w.start[k] = off;
    /* Written so that nothing overflows for any offset: off > -n bounds lo - off and hi - off. */
    if (off >= d->hi || off <= -n) {
      w.empty = true;
      continue;
    }
    w.lo[k] = off < d->lo ? d->lo - off : 0;
    w.hi[k] = d->hi - off < n ? d->hi - off : n;
    if (w.lo[k] >= w.hi[k])
      w.empty = true;
  }
  return w;
}

/* ---- race checks ---- */

static struct shadow *shadow_at(struct interp *in, struct interp_bound *b, int64_t element) {
  int64_t key = element >= 0 ? element / SHADOW_PAGE : -1 - (-1 - element) / SHADOW_PAGE;
  if (!b->last_page || b->last_key != key) {
    uint32_t *found = map_get(&b->pages, (uint64_t)key);
    if (!found) {
      VEC_PUSH(in->arena, &b->page, ARENA_ARRAY(in->arena, struct shadow, SHADOW_PAGE));
      map_put(&b->pages, (uint64_t)key, b->page.n - 1);
      b->last_page = VEC_LAST(&b->page);
    } else {
      b->last_page = b->page.at[*found];
    }
    b->last_key = key;
  }
  return &b->last_page[element - key * SHADOW_PAGE];
}

static int64_t reach(const struct interp_tensor *t, uint32_t k) {
  return t->dim[k] > 1 ? llabs(t->stride[k]) : 0;
}

/* The coordinates of an element of the tensor, largest stride first; false if they do not follow
 * from its place (strides that overlap). */
static bool find_coord(const struct interp_tensor *t, int64_t element, int64_t *coord) {
  bool done[IR_MAX_RANK] = {false};
  int64_t rest = element - t->offset;
  for (uint32_t k = 0; k < t->rank; k++) {
    coord[k] = 0;
    if (t->stride[k] < 0) /* counted from the other end */
      rest -= (t->dim[k] - 1) * t->stride[k];
  }
  for (uint32_t i = 0; i < t->rank; i++) {
    uint32_t best = t->rank;
    for (uint32_t k = 0; k < t->rank; k++)
      if (!done[k] && (best == t->rank || reach(t, k) > reach(t, best)))
        best = k;
    int64_t s = reach(t, best), c = s ? rest / s : 0;
    done[best] = true;
    if (c >= t->dim[best])
      c = t->dim[best] - 1;
    rest -= c * s;
    coord[best] = t->stride[best] < 0 ? t->dim[best] - 1 - c : c;
  }
  return rest == 0;
}

static void report_race(struct interp *in, struct ir_op o, const struct interp_bound *b,
                        int64_t element, const char *what, uint32_t other_op,
                        const char *other_what) {
  if (in->n_races++ >= INTERP_MAX_RACES)
    return;
  const struct ir_arg *arg = &in->m->args.at[b - in->bound];
  struct strbuf text = {.arena = in->arena};
  int64_t coord[IR_MAX_RANK];
  if (find_coord(&b->t, element, coord)) {
    for (uint32_t k = 0; k < b->t.rank; k++)
      sb_printf(&text, "%s%lld", k ? ", " : "(", (long long)coord[k]);
    sb_putc(&text, ')');
  } else {
    sb_printf(&text, "at offset %lld", (long long)(element - b->t.offset));
  }
  interp_report(in, o, DIAG_RACE, "'%s' %s element %s of '%s', which another program %s",
                ir_info(ir_op_at(in->m, o)->opcode)->name, what, sb_str(&text),
                ir_sym(in->m, arg->name), other_what);
  const struct ir_loc *loc = &in->m->locs.at[ir_op_at(in->m, (struct ir_op){other_op})->loc];
  diag_note(in->diags, loc->at, "the other access is this '%s'",
            ir_info(ir_op_at(in->m, (struct ir_op){other_op})->opcode)->name);
}

static void note_read(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element) {
  struct shadow *s = shadow_at(in, b, element);
  if (s->writer && s->writer != in->program)
    report_race(in, o, b, element, "reads", s->writer_op, "writes");
  if (!s->reader) {
    s->reader = in->program;
    s->reader_op = o.id;
  }
}

static void note_write(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element) {
  struct shadow *s = shadow_at(in, b, element);
  if (s->writer && s->writer != in->program)
    report_race(in, o, b, element, "writes", s->writer_op, "writes");
  else if (s->reader && s->reader != in->program)
    report_race(in, o, b, element, "writes", s->reader_op, "reads");
  s->writer = in->program;
  s->writer_op = o.id;
}

/* ---- rows of elements ---- */

#define ROW(from_type, to_type, expr)                                                              \
  for (int64_t i = 0; i < n; i++) {                                                                \
    from_type v;                                                                                   \
    memcpy(&v, base + (first + i * step) * (int64_t)sizeof v, sizeof v);                           \
    ((to_type *)o)[i] = (to_type)(expr);                                                           \
  }                                                                                                \
  return

static inline float bf16_value(uint16_t bits) {
  uint32_t u = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* n elements from `first` on, `step` apart, to cells. Types that GEMMs and row kernels are made of
 * have a loop of their own; NaNs need no care there: their payload is lost at the store. */
static void load_row(enum dtype t, enum cell c, const void *data, int64_t first, int64_t step,
                     int64_t n, void *o) {
  const char *base = data;
  if (t == DT_F32 && c == CELL_FLOAT) {
    ROW(float, float, v);
  } else if (t == DT_BF16 && c == CELL_FLOAT) {
    ROW(uint16_t, float, bf16_value(v));
  } else if (t == DT_F32 && c == CELL_DOUBLE) {
    ROW(float, double, v);
  } else if (t == DT_BF16 && c == CELL_DOUBLE) {
    ROW(uint16_t, double, bf16_value(v));
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t e = first + i * step;
    switch (c) {
    case CELL_FLOAT: ((float *)o)[i] = (float)num_load(t, base, e); break;
    case CELL_DOUBLE: ((double *)o)[i] = num_load(t, base, e); break;
    case CELL_INT: ((int64_t *)o)[i] = num_load_int(t, base, e); break;
    case CELL_BOOL: ((uint8_t *)o)[i] = num_load_int(t, base, e) != 0; break;
    case CELL_PAYLOAD: memcpy((int64_t *)o + i, (const int64_t *)data + e, 8); break;
    }
  }
}

/* A cell of type t is a value of t already: storing it moves bits. Only e5m2's infinities need a
 * word, as num_store would clamp what is not clamped when it is merely moved. */
static void store_float(enum dtype t, void *data, int64_t e, float x) {
  if (t == DT_E5M2 && isinf(x))
    ((uint8_t *)data)[e] = signbit(x) ? 0xfc : 0x7c;
  else
    num_store(t, data, e, (double)x);
}

static void store_row(enum dtype t, enum cell c, void *data, int64_t first, int64_t step, int64_t n,
                      const void *x) {
  for (int64_t i = 0; i < n; i++) {
    int64_t e = first + i * step;
    switch (c) {
    case CELL_FLOAT: store_float(t, data, e, ((const float *)x)[i]); break;
    case CELL_DOUBLE: num_store(t, data, e, ((const double *)x)[i]); break;
    case CELL_INT: num_store_int(t, data, e, ((const int64_t *)x)[i]); break;
    case CELL_BOOL: num_store_int(t, data, e, ((const uint8_t *)x)[i]); break;
    case CELL_PAYLOAD: memcpy((int64_t *)data + e, (const int64_t *)x + i, 8); break;
    }
  }
}

/* A walk over the window in runs: cells [at, at + n) of the tile are elements `first`,
 * first + step, ... of the tensor. A run is a row; in a dim that repeats elements, the repeats of
 * one. */
struct walk {
  const struct window *w;
  const struct interp_view *v;
  int64_t i[IR_MAX_RANK];
  bool done;
};
struct run {
  int64_t at, first, step, n;
};

static struct walk start_walk(const struct window *w, const struct interp_view *v) {
  struct walk k = {.w = w, .v = v, .done = w->empty};
  memcpy(k.i, w->lo, sizeof k.i);
  return k;
}

static bool next_run(struct walk *k, struct run *r) {
  const struct window *w = k->w;
  uint32_t last = w->rank - 1;
  if (k->done)
    return false;
  uint64_t first = k->v->base;
  r->at = 0;
  for (uint32_t d = 0; d < w->rank; d++) {
    r->at = r->at * w->dim[d] + k->i[d];
    first += interp_view_step(&k->v->dim[d], w->start[d] + k->i[d]);
  }
  const struct interp_view_dim *inner = &k->v->dim[last];
  r->first = (int64_t)first;
  r->n = w->hi[last] - k->i[last];
  r->step = inner->stride;
  if (inner->div > 1) {
    int64_t repeats = inner->div - (w->start[last] + k->i[last] + inner->phase) % inner->div;
    r->n = repeats < r->n ? repeats : r->n;
    r->step = 0;
  }
  k->i[last] += r->n;
  for (uint32_t d = last; k->i[d] >= w->hi[d]; d--) {
    k->i[d] = w->lo[d];
    if (!d) {
      k->done = true;
      break;
    }
    k->i[d - 1]++;
  }
  return true;
}

static void note_run(struct interp *in, struct ir_op o, struct interp_bound *b, const struct run *r,
                     bool write) {
  for (int64_t j = 0; j < r->n; j++) {
    if (write)
      note_write(in, o, b, r->first + j * r->step);
    else
      note_read(in, o, b, r->first + j * r->step);
  }
}

static void fill_pad(const struct interp *in, struct ir_op o, enum dtype t, size_t n, void *out) {
  const struct ir_attr *pad = ir_get_attr(in->m, o, IR_ATTR_pad);
  double f = pad ? pad->f : 0;
  int64_t v = pad ? pad->i : 0;
  switch (cell_of(in, t)) {
  case CELL_FLOAT:
    for (size_t i = 0; i < n; i++)
      ((float *)out)[i] = (float)f;
    break;
  case CELL_DOUBLE:
    for (size_t i = 0; i < n; i++)
      ((double *)out)[i] = f;
    break;
  case CELL_INT:
    for (size_t i = 0; i < n; i++)
      ((int64_t *)out)[i] = v;
    break;
  case CELL_BOOL: memset(out, v != 0, n); break;
  case CELL_PAYLOAD:
    for (size_t i = 0; i < n; i++)
      ((int64_t *)out)[i] = interp_embed(f);
    break;
  }
}

static bool covers_tile(const struct window *w) {
  for (uint32_t k = 0; k < w->rank; k++)
    if (w->lo[k] != 0 || w->hi[k] != w->dim[k])
      return false;
  return !w->empty;
}

void interp_load(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  const struct interp_view *v = val_view(in, op->in[0]);
  struct interp_bound *b = &in->bound[v->arg];
  const struct ir_type *tile = &ir_value_at(in->m, op->out[0])->type;
  enum cell c = cell_of(in, (enum dtype)tile->dtype);
  char *out = val_buf(in, op->out[0]);
  if (!interp_view_ok(in, o, v))
    return;
  struct window w = window_of(in, v, tile, op->in + 1);
  if (!covers_tile(&w))
    fill_pad(in, o, (enum dtype)tile->dtype, val_elems(in, op->out[0]), out);
  struct walk k = start_walk(&w, v);
  for (struct run r; next_run(&k, &r);) {
    load_row(b->t.dtype, c, b->t.data, r.first, r.step, r.n, out + (size_t)r.at * cell_size(c));
    if (b->tracked)
      note_run(in, o, b, &r, false);
  }
}

void interp_store(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  const struct interp_view *v = val_view(in, op->in[0]);
  struct interp_bound *b = &in->bound[v->arg];
  struct ir_val value = op->in[op->n_in - 1];
  const struct ir_type *tile = &ir_value_at(in->m, value)->type;
  enum cell c = cell_of(in, (enum dtype)tile->dtype);
  const char *x = val_buf(in, value);
  if (!interp_view_ok(in, o, v))
    return;
  struct window w = window_of(in, v, tile, op->in + 1);
  struct walk k = start_walk(&w, v);
  for (struct run r; next_run(&k, &r);) {
    store_row(b->t.dtype, c, b->t.data, r.first, r.step, r.n, x + (size_t)r.at * cell_size(c));
    if (b->tracked)
      note_run(in, o, b, &r, true);
  }
}
