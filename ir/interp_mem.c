/* Interpreter: load and store.
 *
 * Which part of a tile lies inside its view is found per axis before any address is formed, in
 * arithmetic that cannot overflow; addresses inside a tensor were checked when it was bound. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"

#include <math.h>
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
void interp_load_cells(enum dtype t, enum cell c, const void *data, int64_t first, int64_t step,
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

void interp_store_cells(enum dtype t, enum cell c, void *data, int64_t first, int64_t step,
                        int64_t n, const void *x) {
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
      interp_note_write(in, o, b, r->first + j * r->step);
    else
      interp_note_read(in, o, b, r->first + j * r->step);
  }
}

void interp_fill_pad(const struct interp *in, struct ir_op o, enum dtype t, size_t n, void *out) {
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
    interp_fill_pad(in, o, (enum dtype)tile->dtype, val_elems(in, op->out[0]), out);
  struct walk k = start_walk(&w, v);
  for (struct run r; next_run(&k, &r);) {
    interp_load_cells(b->t.dtype, c, b->t.data, r.first, r.step, r.n,
                      out + (size_t)r.at * cell_size(c));
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
    interp_store_cells(b->t.dtype, c, b->t.data, r.first, r.step, r.n,
                       x + (size_t)r.at * cell_size(c));
    if (b->tracked)
      note_run(in, o, b, &r, true);
    for (int64_t j = 0; b->watched && j < r.n; j++)
      interp_note_watched(in, o, r.first + j * r.step, r.at + j);
  }
}
