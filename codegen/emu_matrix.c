/* Emulator: the matrix unit of a warp. Which lane holds what is in emu_tables.h; what sums claim
 * stands there too. */
#include "codegen/cg.h"
#include "codegen/emu_impl.h"
#include "codegen/emu_tables.h"

#include <math.h>
#include <string.h>

/* ---- ldmatrix, stmatrix ---- */

static void note_hollow(struct emu_agent *a, const struct emu_insn *i, uint32_t lanes) {
  if (!lanes || a->any_hollow)
    return;
  a->any_hollow = true;
  a->hollow_op = i->op.id;
}

/* Addresses of the rows that lanes 0 .. 8 num - 1 give. */
static bool row_addresses(struct emu_agent *a, const struct emu_insn *i, const struct ir_res *buf,
                          uint32_t num, int64_t *address) {
  const int64_t *offset = emu_in_int(a, i, 0);
  if (!emu_need(a, i, 0, EMU_ALL))
    return false;
  for (uint32_t l = 0; l < 8 * num; l++)
    if ((address[l] = emu_buffer(a, i, l, buf, offset[l], 16)) < 0)
      return false;
  return true;
}

static uint32_t row_lanes(uint32_t num) {
  return num == 4 ? EMU_ALL : (1u << (8 * num)) - 1;
}

void emu_run_ldmatrix(struct emu_agent *a, const struct emu_insn *i) {
  struct emu_frag *f = emu_frag_of(a, i, 0);
  uint32_t num = (uint32_t)i->imm;
  uint32_t elem = f->cell == CELL_PAYLOAD ? emu_bytes(f->dtype) : 0;
  struct emu_ref row[EMU_LANES];
  int64_t address[EMU_LANES], to;
  if (!emu_need_all(a, i) || !emu_uniform(a, i, 1, &to) ||
      !row_addresses(a, i, i->res[1], num, address))
    return;
  /* What a row holds goes to all lanes: the warp reads it as one. */
  bool lean = emu_are_legal(a, f->dtype, address, row_lanes(num), 16);
  uint32_t found[EMU_LANES];
  if (lean && !emu_order_lanes(a, i, row_lanes(num), true, EMU_READ, address, 16, found))
    return;
  for (uint32_t l = 0; l < 8 * num && !lean; l++) {
    row[l] = emu_touch_shared(a, i, EMU_NO_LANE, EMU_GENERIC, EMU_READ, address[l], 16, elem);
    if (!row[l].at)
      return;
  }
  uint32_t size = emu_bytes(f->dtype), per = 4 / size;
  for (uint32_t k = 0; k < per * num; k++) {
    uint32_t hollow = 0, at = k % per * size; /* byte of the register */
    char *cells = emu_frag_write(a, i, f, to + k, 0);
    if (!cells)
      return;
    for (uint32_t l = 0; l < EMU_LANES && !a->unit->e->skeleton; l++) {
      struct emu_row p = emu_matrix_row(i->imm2 != 0, l, k / per, at / 2);
      const struct emu_ref *r = &row[p.from];
      uint32_t byte = p.byte + at % 2;
      interp_load_cells(f->dtype, f->cell, r->at, byte / size * r->step, 0, 1,
                        cells + l * cell_size(f->cell));
      hollow |= (uint32_t)((r->hollow >> byte & ((1u << size) - 1)) != 0) << l;
    }
    f->hollow[to + k] = hollow;
    note_hollow(a, i, hollow);
  }
  emu_count_banks(a, &a->unit->stats.ldmatrix, address, row_lanes(num), 16);
}

void emu_run_stmatrix(struct emu_agent *a, const struct emu_insn *i) {
  struct emu_frag *f = emu_frag_of(a, i, 1);
  uint32_t num = (uint32_t)i->imm;
  uint32_t elem = f->cell == CELL_PAYLOAD ? emu_bytes(f->dtype) : 0;
  struct emu_ref row[EMU_LANES];
  int64_t address[EMU_LANES], from;
  if (!emu_need_all(a, i) || !emu_uniform(a, i, 1, &from) ||
      !row_addresses(a, i, i->res[0], num, address))
    return;
  for (uint32_t l = 0; l < 8 * num; l++) {
    row[l] = emu_touch_shared(a, i, EMU_NO_LANE, EMU_GENERIC, EMU_WRITE, address[l], 16, elem);
    if (!row[l].at)
      return;
  }
  for (uint32_t k = 0; k < 2 * num; k++) {
    const char *cells = emu_frag_read(a, i, f, from + k);
    if (!cells)
      return;
    for (uint32_t l = 0; l < EMU_LANES; l++) {
      struct emu_row p = emu_matrix_row(i->imm2 != 0, l, k / 2, k % 2);
      const struct emu_ref *r = &row[p.from];
      interp_store_cells(f->dtype, f->cell, r->at, p.byte / 2 * r->step, 0, 1,
                         cells + l * cell_size(f->cell));
      if (f->hollow[from + k] >> l & 1)
        emu_store_hollow(a, (uint32_t)address[p.from] + p.byte, 2);
    }
  }
  emu_count_banks(a, &a->unit->stats.sstore, address, row_lanes(num), 16);
}

/* Elements at even places of a thread's first, then the others. */
void emu_run_unzip(struct emu_agent *a, const struct emu_insn *i) {
  struct emu_frag *f = emu_frag_of(a, i, 0);
  char cells[16][EMU_SLOT];
  uint32_t hollow[16], count = (uint32_t)i->imm;
  size_t size = cell_size(f->cell);
  int64_t at;
  if (!emu_uniform(a, i, 0, &at))
    return;
  for (uint32_t k = 0; k < count; k++) {
    const char *x = emu_frag_read(a, i, f, at + k);
    if (!x)
      return;
    memcpy(cells[k], x, EMU_LANES * size);
    hollow[k] = f->hollow[at + k];
  }
  for (uint32_t k = 0; k < count; k++) {
    uint32_t from = 2 * k % count + 2 * k / count;
    char *x = emu_frag_write(a, i, f, at + k, hollow[from]);
    EMU_EACH_LANE (l, a->active)
      memcpy(x + l * size, cells[from] + l * size, size);
  }
}

/* ---- mma ---- */

#define MAX_M 16u
#define MAX_N 8u
#define MAX_K 32u

/* Of an instruction: index of element [k][lane] of A (row * k + col), B (row * n + col), D. */
struct emu_mma_map {
  const struct emu_mma *what;
  bool short_sums; /* the target's unit keeps few bits of them */
  uint32_t n[3];
  uint16_t at[3][16][EMU_LANES];
};

const void *emu_plan_mma(const struct emu *e, struct ir_op o, struct arena *a) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_attr *shape = ir_get_attr(e->m, o, IR_ATTR_shape);
  unsigned size[3] = {0};
  const char *s = shape ? ir_sym(e->m, shape->s) : "";
  for (uint32_t k = 0; k < 3 && *s == "mnk"[k]; k++)
    for (s++; *s >= '0' && *s <= '9'; s++)
      size[k] = size[k] * 10 + (unsigned)(*s - '0');
  struct emu_mma_map *map = ARENA_NEW(a, struct emu_mma_map);
  map->what =
      emu_mma_find(size[0], size[1], size[2], (enum dtype)e->m->res.at[n->res[1]].type.dtype,
                   (enum dtype)e->m->res.at[n->res[2]].type.dtype,
                   (enum dtype)e->m->res.at[n->res[0]].type.dtype);
  if (!map->what)
    return NULL;
  const struct cg_target *t = cg_find_target(ir_sym(e->m, e->m->target));
  map->short_sums = t && cg_mma_sums_short(t, (enum dtype)e->m->res.at[n->res[1]].type.dtype);
  uint32_t width[3] = {map->what->k, map->what->n, map->what->n};
  for (int w = 0; w < 3; w++) {
    map->n[w] = emu_mma_elements(map->what, (enum emu_operand)w);
    for (uint32_t k = 0; k < map->n[w]; k++)
      for (uint32_t l = 0; l < EMU_LANES; l++) {
        struct emu_place p = emu_mma_place(map->what, (enum emu_operand)w, l, k);
        map->at[w][k][l] = (uint16_t)(p.row * width[w] + p.col);
      }
  }
  return map;
}

/* One operand: doubles (which hold every float), or integers and payloads. */
struct matrix {
  union {
    double f[MAX_M * MAX_K];
    int64_t i[MAX_M * MAX_K];
  } x;
  bool any_hollow;
  bool hollow[MAX_M * MAX_K];
};

/* operand: of the op: 0 D, 1 A, 2 B. */
static enum emu_operand table_of(uint32_t operand) {
  return operand == 0 ? EMU_D : operand == 1 ? EMU_A : EMU_B;
}

/* What the unit looks at of an f32 operand that counts as tf32. */
static double cut_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits &= ~UINT32_C(0x1fff);
  memcpy(&x, &bits, 4);
  return (double)x;
}

static void take(const struct emu_frag *f, const char *cells, const uint16_t *at, bool tf32,
                 struct matrix *x) {
  for (uint32_t l = 0; l < EMU_LANES; l++)
    switch (f->cell) {
    case CELL_FLOAT:
      x->x.f[at[l]] =
          tf32 ? cut_tf32(((const float *)cells)[l]) : (double)((const float *)cells)[l];
      break;
    case CELL_DOUBLE: x->x.f[at[l]] = ((const double *)cells)[l]; break;
    case CELL_INT:
    case CELL_PAYLOAD: x->x.i[at[l]] = ((const int64_t *)cells)[l]; break;
    case CELL_BOOL: break; /* no fragment of the matrix unit */
    }
}

static void give(const struct emu_frag *f, char *cells, const uint16_t *at,
                 const struct matrix *x) {
  for (uint32_t l = 0; l < EMU_LANES; l++)
    switch (f->cell) {
    case CELL_FLOAT: ((float *)cells)[l] = (float)x->x.f[at[l]]; break;
    case CELL_DOUBLE: ((double *)cells)[l] = x->x.f[at[l]]; break;
    case CELL_INT:
    case CELL_PAYLOAD: ((int64_t *)cells)[l] = x->x.i[at[l]]; break;
    case CELL_BOOL: break;
    }
}

static bool gather(struct emu_agent *a, const struct emu_insn *i, const struct emu_mma_map *map,
                   uint32_t operand, struct matrix *x) {
  struct emu_frag *f = emu_frag_of(a, i, operand);
  enum emu_operand w = table_of(operand);
  bool tf32 = operand != 0 && f->dtype == DT_F32;
  int64_t at;
  x->any_hollow = false;
  if (!emu_uniform(a, i, operand, &at))
    return false;
  for (uint32_t k = 0; k < map->n[w]; k++) {
    const char *cells = emu_frag_read(a, i, f, at + k);
    if (!cells)
      return false;
    if (a->unit->e->skeleton)
      continue;
    take(f, cells, map->at[w][k], tf32, x);
    x->any_hollow |= f->hollow[at + k] != 0;
  }
  if (a->unit->e->skeleton)
    return true;
  memset(x->hollow, 0, sizeof x->hollow);
  for (uint32_t k = 0; k < map->n[w] && x->any_hollow; k++)
    for (uint32_t l = 0; l < EMU_LANES; l++)
      x->hollow[map->at[w][k][l]] = f->hollow[at + k] >> l & 1;
  return true;
}

static void scatter(struct emu_agent *a, const struct emu_insn *i, const struct emu_mma_map *map,
                    struct matrix *x) {
  struct emu_frag *f = emu_frag_of(a, i, 0);
  int64_t at = *emu_in_int(a, i, 0);
  if (f->cell == CELL_FLOAT)
    for (uint32_t k = 0; k < (uint32_t)(map->what->m * map->what->n); k++)
      x->x.f[k] = (double)num_round_f32(f->dtype, (float)x->x.f[k]);
  for (uint32_t k = 0; k < map->n[EMU_D]; k++) {
    char *cells = emu_frag_write(a, i, f, at + k, 0);
    if (!cells)
      return;
    give(f, cells, map->at[EMU_D][k], x);
    for (uint32_t l = 0; l < EMU_LANES && x->any_hollow; l++)
      f->hollow[at + k] |= (uint32_t)x->hollow[map->at[EMU_D][k][l]] << l;
  }
}

/* d[r, c] is hollow if anything of row r of x or of column c of y is. */
static void follow(const struct emu_mma *w, const struct matrix *x, const struct matrix *y,
                   struct matrix *d) {
  if (!x->any_hollow && !y->any_hollow)
    return;
  d->any_hollow = true;
  for (uint32_t r = 0; r < w->m; r++)
    for (uint32_t c = 0; c < w->n; c++)
      for (uint32_t k = 0; k < w->k; k++)
        d->hollow[r * w->n + c] |= x->hollow[r * w->k + k] || y->hollow[k * w->n + c];
}

/* Products of floats of up to 32 bits are exact in double, and so are their sums on integers; they
 * are rounded once, at the end. f64: a chain of multiply-adds. */
static void multiply(const struct emu_mma *w, const double *x, const double *y, double *d) {
  for (uint32_t r = 0; r < w->m; r++) {
    double *sum = d + r * w->n;
    for (uint32_t k = 0; k < w->k; k++) {
      double v = x[r * w->k + k];
      for (uint32_t c = 0; c < w->n; c++)
        sum[c] = w->bits == 64 ? fma(v, y[k * w->n + c], sum[c]) : sum[c] + v * y[k * w->n + c];
    }
  }
}

static void multiply_short(const struct emu_mma *w, const double *x, const double *y, double *d) {
  double products[MAX_K];
  for (uint32_t r = 0; r < w->m; r++)
    for (uint32_t c = 0; c < w->n; c++) {
      for (uint32_t k = 0; k < w->k; k++)
        products[k] = x[r * w->k + k] * y[k * w->n + c];
      d[r * w->n + c] = emu_short_sum(w->k, products, d[r * w->n + c]);
    }
}

static void multiply_int(const struct emu_mma *w, const int64_t *x, const int64_t *y, int64_t *d) {
  for (uint32_t r = 0; r < w->m; r++)
    for (uint32_t c = 0; c < w->n; c++) {
      int64_t sum = d[r * w->n + c];
      for (uint32_t k = 0; k < w->k; k++)
        sum += x[r * w->k + k] * y[k * w->n + c];
      d[r * w->n + c] = (int32_t)(uint32_t)(uint64_t)sum; /* wraps */
    }
}

void emu_run_mma(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu_mma_map *map = i->data;
  const struct emu_mma *w = map->what;
  struct matrix x, y, d;
  if (!emu_need_all(a, i) || !gather(a, i, map, 1, &x) || !gather(a, i, map, 2, &y) ||
      !gather(a, i, map, 0, &d))
    return;
  if (a->unit->e->skeleton)
    return;
  follow(w, &x, &y, &d);
  switch (emu_frag_of(a, i, 0)->cell) {
  case CELL_PAYLOAD: {
    int64_t first[MAX_M * MAX_N];
    memcpy(first, d.x.i, sizeof first);
    interp_algebra_dot(w->m, w->k, w->n, x.x.i, y.x.i, first, d.x.i);
    break;
  }
  case CELL_INT: multiply_int(w, x.x.i, y.x.i, d.x.i); break;
  case CELL_FLOAT:
  case CELL_DOUBLE: (map->short_sums ? multiply_short : multiply)(w, x.x.f, y.x.f, d.x.f); break;
  case CELL_BOOL: break;
  }
  scatter(a, i, map, &d);
}
