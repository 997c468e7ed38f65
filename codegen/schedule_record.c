/* The schedule record: what the passes decided, by the labels of the ops. */
#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "ir/table.h"

#include <inttypes.h>

/* Attributes that say a decision, in the order they are printed. */
static const enum ir_attr_key decisions[] = {
    IR_ATTR_slots, IR_ATTR_path,  IR_ATTR_inst, IR_ATTR_a_path, IR_ATTR_b_path,
    IR_ATTR_warps, IR_ATTR_masks, IR_ATTR_vdim, IR_ATTR_vec,
};

static void put_decision(const struct ir_module *m, const struct ir_attr *a, struct strbuf *out) {
  sb_printf(out, "%s = ", ir_attr_name(a->key));
  if (a->s.id)
    sb_puts(out, ir_sym(m, a->s));
  else if (a->key == IR_ATTR_warps)
    sb_printf(out, "%" PRId64 "x%" PRId64, a->ints[0], a->ints[1]);
  else if (a->ints)
    for (uint32_t i = 0; i < a->n_ints; i++)
      sb_printf(out, "%s%" PRId64 "%s", i ? "," : "[", a->ints[i], i + 1 == a->n_ints ? "]" : "");
  else
    sb_printf(out, "%" PRId64, a->i);
}

static void put_block(const struct ir_module *m, struct ir_block b, int depth, struct strbuf *out) {
  struct ir_op around = ir_block_at(m, b)->parent;
  bool in_loop = around.id && ir_op_at(m, around)->opcode == IR_FOR;
  IR_EACH_OP (m, b, o) {
    const struct ir_opnode *n = ir_op_at(m, o);
    const char *label = cg_attr_word(m, o, IR_ATTR_label);
    if (*label) {
      const char *before = ": ";
      sb_printf(out, "%*s%s", depth * 2, "", label);
      for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        const struct ir_attr *a = ir_get_attr(m, o, decisions[i]);
        if (!a)
          continue;
        sb_puts(out, before);
        put_decision(m, a, out);
        before = ", ";
      }
      if (in_loop)
        sb_printf(out, "%sstage = %d, order = %d", before, n->sched.stage, n->sched.order);
      sb_putc(out, '\n');
    }
    for (uint32_t i = 0; i < n->n_blocks; i++)
      put_block(m, n->blocks[i], depth + (*label ? 1 : 0), out);
  }
}

void cg_print_schedule(const struct ir_module *m, struct strbuf *out) {
  sb_printf(out, "kiln-schedule 1\nkernel %s, %s\n", ir_sym(m, m->kernel), ir_sym(m, m->target));
  sb_puts(out, "knobs:");
  for (uint32_t i = 0; i < m->config.n; i++) {
    const struct ir_config_entry *e = &m->config.at[i];
    const char *key = ir_sym(m, e->key);
    if (!str_starts(key, CG_SCHEDULE_PREFIX) || !cg_is_knob(key + strlen(CG_SCHEDULE_PREFIX)))
      continue;
    sb_printf(out, "%s%s = %" PRId64, out->n && out->s[out->n - 1] == ':' ? " " : ", ",
              key + strlen(CG_SCHEDULE_PREFIX), e->i);
  }
  sb_putc(out, '\n');
  put_block(m, m->body, 0, out);
}
