/* print: the line that the interpreter prints (ir/interp_text.c), from the first thread of the
 * block. Tiles go to shared memory, from which that thread takes the elements that are shown. A
 * line of many values is printed in pieces; what other blocks print may come between them. */
#include "base/check.h"
#include "codegen/lower.h"

#define MAX_ITEMS 8   /* elements shown per axis */
#define MAX_CELLS 512 /* of a line */
#define MAX_PIECE 31  /* values of one call of printf */

struct line {
  struct strbuf text;
  struct ir_val mask, value[MAX_PIECE];
  uint32_t n;
};

static void flush(struct lower *l, struct line *x) {
  struct ir_val in[1 + MAX_PIECE] = {x->mask};
  for (uint32_t i = 0; i < x->n; i++)
    in[1 + i] = x->value[i];
  struct ir_op o = ir_build(&l->b, IR_GPRINT, 1 + x->n, in, 0, NULL);
  struct ir_attr message = {.key = IR_ATTR_message, .s = symtab_get(l->m->syms, sb_str(&x->text))};
  ir_set_attr(l->m, o, message);
  x->text = (struct strbuf){.arena = l->m->arena};
  x->n = 0;
}

static void put_value(struct lower *l, struct line *x, struct ir_val v) {
  if (x->n == MAX_PIECE)
    flush(l, x);
  sb_puts(&x->text, "{}");
  x->value[x->n++] = v;
}

/* Axis k of a tile that lies at `at` of buffer s, packed; `n` elements. */
static void put_axis(struct lower *l, struct line *x, const struct cg_smem *s, struct ir_type t,
                     uint32_t k, int64_t at, int64_t n) {
  if (k == t.rank) {
    struct ir_val v;
    cg_sload(l, s, cg_s32(l, at * dtype_bytes((enum dtype)t.dtype, 1)), 1, &v);
    put_value(l, x, v);
    return;
  }
  int64_t each = n / t.dim[k];
  sb_putc(&x->text, '[');
  for (int64_t i = 0; i < t.dim[k]; i++) {
    if (i)
      sb_puts(&x->text, ", ");
    if (i == MAX_ITEMS) {
      sb_puts(&x->text, "...");
      break;
    }
    put_axis(l, x, s, t, k + 1, at + i * each, each);
  }
  sb_putc(&x->text, ']');
}

static int64_t cells(struct ir_type t) {
  int64_t n = 1;
  for (uint32_t d = 0; t.kind == IR_TILE && d < t.rank; d++)
    n *= t.dim[d] < MAX_ITEMS ? t.dim[d] : MAX_ITEMS;
  return n;
}

void cg_lower_print(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode n = *ir_op_at(m, o);
  const struct ir_attr *a = ir_get_attr(m, o, IR_ATTR_message);
  const char *message = a ? ir_sym(m, a->s) : "";
  struct line x = {.text = {.arena = m->arena}, .mask = cg_is_first_thread(l)};
  const struct cg_smem **tile = ARENA_ARRAY(l->a, const struct cg_smem *, n.n_in + 1);
  int64_t total = m->n_grid;
  for (uint32_t k = 0; k < n.n_in; k++)
    total += cells(ir_type_of(m, n.in[k]));
  if (total > MAX_CELLS) {
    cg_error(
        m, l->ctx->diags, o, DIAG_LIMIT,
        "print shows %lld elements; on the GPU a line has at most %d: print a part of the tile",
        (long long)total, MAX_CELLS);
    l->failed = true;
    return;
  }
  for (uint32_t k = 0; k < n.n_in; k++)
    if (ir_type_of(m, n.in[k]).kind == IR_TILE)
      tile[k] = cg_spill_tile(l, n.in[k]);
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  sb_puts(&x.text, "program (");
  for (uint32_t k = 0; k < m->n_grid; k++) {
    sb_puts(&x.text, k ? ", " : "");
    put_value(l, &x, cg_scalar(l, body->args.at[body->args.n - m->n_grid + k]));
  }
  sb_puts(&x.text, a ? "): " : "):");
  for (uint32_t k = 0; *message || k < n.n_in;) {
    bool here = message[0] == '{' && message[1] == '}' && k < n.n_in;
    if (*message && !here) {
      sb_putc(&x.text, *message++);
      continue;
    }
    if (!*message)
      sb_putc(&x.text, k ? '\t' : ' ');
    if (tile[k]) {
      struct ir_type t = ir_type_of(m, n.in[k]);
      put_axis(l, &x, tile[k], t, 0, 0, ir_elems(t));
    } else {
      put_value(l, &x, cg_scalar(l, n.in[k]));
    }
    k++;
    message += here ? 2 : 0;
  }
  sb_putc(&x.text, '\n');
  flush(l, &x);
}
