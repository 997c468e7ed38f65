/* Interpreter: load, store and race checks.
 *
 * Which part of a tile lies inside its view is found per axis before any address is formed, in
 * arithmetic that cannot overflow; addresses inside a tensor were checked when it was bound. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"

#include <math.h>
#include <string.h>

/* The part of a tile that lies inside a tensor: elements [lo, hi) of each axis. */
struct window {
  uint32_t rank;
  bool empty;
  int64_t dim[IR_MAX_RANK]; /* of the tile */
  int64_t lo[IR_MAX_RANK], hi[IR_MAX_RANK];
  int64_t start[IR_MAX_RANK]; /* tensor coordinate of element 0; valid where not empty */
};

static struct window window_of(const struct interp *in, const struct interp_tensor *t,
                               const struct ir_type *tile, const struct ir_val *offsets) {
  struct window w = {.rank = tile->rank};
  for (uint32_t k = 0; k < tile->rank; k++) {
    int64_t off = val_int(in, offsets[k]), n = tile->dim[k];
    w.dim[k] = n;
    w.start[k] = off;
    /* Written so that nothing overflows for any offset: off > -n bounds -off and dim - off. */
    if (off >= t->dim[k] || off <= -n) {
      w.empty = true;
      continue;
    }
    w.lo[k] = off < 0 ? -off : 0;
    w.hi[k] = t->dim[k] - off < n ? t->dim[k] - off : n;
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

static void report_race(struct interp *in, struct ir_op o, const struct interp_bound *b,
                        const int64_t *coord, const char *what, uint32_t other_op,
                        const char *other_what) {
  if (in->n_races++ >= INTERP_MAX_RACES)
    return;
  const struct ir_arg *arg = &in->m->args.at[b - in->bound];
  struct strbuf text = {.arena = in->arena};
  for (uint32_t k = 0; k < b->t.rank; k++)
    sb_printf(&text, "%s%lld", k ? ", " : "", (long long)coord[k]);
  interp_report(in, o, DIAG_RACE, "'%s' %s element (%s) of '%s', which another program %s",
                ir_info(ir_op_at(in->m, o)->opcode)->name, what, sb_str(&text),
                ir_sym(in->m, arg->name), other_what);
  const struct ir_loc *loc = &in->m->locs.at[ir_op_at(in->m, (struct ir_op){other_op})->loc];
  diag_note(in->diags, loc->at, "the other access is this '%s'",
            ir_info(ir_op_at(in->m, (struct ir_op){other_op})->opcode)->name);
}

static void note_read(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element,
                      const int64_t *coord) {
  struct shadow *s = shadow_at(in, b, element);
  if (s->writer && s->writer != in->program)
    report_race(in, o, b, coord, "reads", s->writer_op, "writes");
  if (!s->reader) {
    s->reader = in->program;
    s->reader_op = o.id;
  }
}

static void note_write(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element,
                       const int64_t *coord) {
  struct shadow *s = shadow_at(in, b, element);
  if (s->writer && s->writer != in->program)
    report_race(in, o, b, coord, "writes", s->writer_op, "writes");
  else if (s->reader && s->reader != in->program)
    report_race(in, o, b, coord, "writes", s->reader_op, "reads");
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

/* Calls for each row of the window: cells [at, at + n) of the tile and elements `first`, first +
 * step, ... of the tensor. */
struct row {
  int64_t at, first, step, n;
  int64_t coord[IR_MAX_RANK]; /* tensor coordinates of the row's first element */
};

static bool next_row(const struct window *w, const struct interp_tensor *t, int64_t *i,
                     struct row *r) {
  uint32_t outer = w->rank ? w->rank - 1 : 0;
  r->at = 0;
  r->first = t->offset;
  for (uint32_t k = 0; k < w->rank; k++) {
    r->at = r->at * w->dim[k] + i[k];
    r->coord[k] = w->start[k] + i[k];
    r->first += r->coord[k] * t->stride[k];
  }
  r->n = w->rank ? w->hi[outer] - w->lo[outer] : 1;
  r->step = w->rank ? t->stride[outer] : 1;
  for (uint32_t k = outer; k-- > 0;) {
    if (++i[k] < w->hi[k])
      return true;
    i[k] = w->lo[k];
  }
  return false;
}

static void note_row(struct interp *in, struct ir_op o, struct interp_bound *b, struct row *r,
                     uint32_t rank, bool write) {
  for (int64_t j = 0; j < r->n; j++) {
    int64_t element = r->first + j * r->step;
    if (write)
      note_write(in, o, b, element, r->coord);
    else
      note_read(in, o, b, element, r->coord);
    if (rank)
      r->coord[rank - 1]++;
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
  struct interp_bound *b = &in->bound[in->view_arg[op->in[0].id]];
  const struct ir_type *tile = &ir_value_at(in->m, op->out[0])->type;
  enum cell c = cell_of(in, (enum dtype)tile->dtype);
  char *out = val_buf(in, op->out[0]);
  struct window w = window_of(in, &b->t, tile, op->in + 1);
  if (!covers_tile(&w))
    fill_pad(in, o, (enum dtype)tile->dtype, val_elems(in, op->out[0]), out);
  if (w.empty)
    return;
  int64_t i[IR_MAX_RANK];
  memcpy(i, w.lo, sizeof i);
  struct row r;
  bool more;
  do {
    more = next_row(&w, &b->t, i, &r);
    load_row(b->t.dtype, c, b->t.data, r.first, r.step, r.n, out + (size_t)r.at * cell_size(c));
    if (b->tracked)
      note_row(in, o, b, &r, w.rank, false);
  } while (more);
}

void interp_store(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  struct interp_bound *b = &in->bound[in->view_arg[op->in[0].id]];
  struct ir_val value = op->in[op->n_in - 1];
  const struct ir_type *tile = &ir_value_at(in->m, value)->type;
  enum cell c = cell_of(in, (enum dtype)tile->dtype);
  const char *x = val_buf(in, value);
  struct window w = window_of(in, &b->t, tile, op->in + 1);
  if (w.empty)
    return;
  int64_t i[IR_MAX_RANK];
  memcpy(i, w.lo, sizeof i);
  struct row r;
  bool more;
  do {
    more = next_row(&w, &b->t, i, &r);
    store_row(b->t.dtype, c, b->t.data, r.first, r.step, r.n, x + (size_t)r.at * cell_size(c));
    if (b->tracked)
      note_row(in, o, b, &r, w.rank, true);
  } while (more);
}
