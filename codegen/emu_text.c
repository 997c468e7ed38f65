/* Emulator: what it tells people. */
#include "codegen/emu_impl.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_FRAMES 16 /* notes for the call stack of one diagnostic */

const char *emu_mode_name(enum emu_mode mode) {
  static const char *const names[EMU_MODES] = {"early", "late", "reversed", "seeded"};
  return names[mode];
}

void emu_choose_run(struct emu_options *opt, uint32_t k, uint64_t seed) {
  opt->mode = k < EMU_SEEDED ? (enum emu_mode)k : EMU_SEEDED;
  opt->seed = seed * EMU_RUNS + k;
}

const char *emu_agent_name(const struct emu_agent *a, char *out, size_t size) {
  if (a->name)
    snprintf(out, size, "%s", a->name);
  else if (a->unit->e->cluster > 1)
    snprintf(out, size, "warp %u of block %llu", a->warp, (unsigned long long)a->cta->index);
  else
    snprintf(out, size, "warp %u", a->warp);
  return out;
}

void emu_fail(struct emu_agent *a, const struct emu_insn *i, uint32_t lane, enum diag_id id,
              const char *fmt, ...) {
  struct emu_unit *u = a->unit;
  struct strbuf text = {.arena = u->arena};
  va_list ap;
  if (u->stopped)
    return;
  va_start(ap, fmt);
  sb_vprintf(&text, fmt, ap);
  va_end(ap);
  sb_printf(&text, " [block %llu, ", (unsigned long long)a->cta->index);
  if (a->name)
    sb_printf(&text, "%s]", a->name);
  else if (lane < EMU_LANES)
    sb_printf(&text, "thread %u]", a->warp * EMU_LANES + lane);
  else
    sb_printf(&text, "warp %u]", a->warp);
  const struct ir_module *m = u->e->m;
  const struct ir_loc *loc = &m->locs.at[i->op.id ? ir_op_at(m, i->op)->loc : 0];
  diag_report(u->diags, DIAG_ERROR, id, loc->at, "%s", sb_str(&text));
  for (int depth = 0; loc->up && depth < MAX_FRAMES; depth++) {
    loc = &m->locs.at[loc->up];
    diag_note(u->diags, loc->at, "called from here");
  }
  u->stopped = true;
}

void emu_also(struct emu_agent *a, uint32_t op, const char *fmt, ...) {
  const struct ir_module *m = a->unit->e->m;
  struct strbuf text = {.arena = a->unit->arena};
  va_list ap;
  va_start(ap, fmt);
  sb_vprintf(&text, fmt, ap);
  va_end(ap);
  diag_note(a->unit->diags, m->locs.at[op ? ir_op_at(m, (struct ir_op){op})->loc : 0].at, "%s",
            sb_str(&text));
}

void emu_check(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t wrong = a->active & ~emu_lanes(emu_in_bool(a, i, 0), a->active);
  const struct ir_attr *text = ir_get_attr(a->unit->e->m, i->op, IR_ATTR_message);
  const char *message = text ? ir_sym(a->unit->e->m, text->s) : "";
  if (emu_need(a, i, 0, a->active) && wrong)
    emu_fail(a, i, (uint32_t)__builtin_ctz(wrong), DIAG_ASSERT_FAILED, "assertion failed%s%s",
             *message ? ": " : "", message);
}

static void put_value(struct emu_agent *a, const struct emu_insn *i, uint32_t k, uint32_t lane) {
  enum dtype t = emu_dtype(a->unit->e, i->n->in[k]);
  const void *x = emu_cells(a, i->in[k]);
  struct strbuf *out = &a->line;
  int64_t p;
  switch (emu_cell(a->unit->e, t)) {
  case CELL_FLOAT: sb_printf(out, "%.9g", (double)((const float *)x)[lane]); break;
  case CELL_DOUBLE: sb_printf(out, "%.17g", ((const double *)x)[lane]); break;
  case CELL_INT: sb_printf(out, "%lld", (long long)((const int64_t *)x)[lane]); break;
  case CELL_BOOL: sb_puts(out, ((const uint8_t *)x)[lane] ? "true" : "false"); break;
  case CELL_PAYLOAD:
    p = ((const int64_t *)x)[lane];
    if (p == INTERP_NAN || p == INTERP_MINUS_INF || p == INTERP_PLUS_INF)
      sb_puts(out, p == INTERP_NAN ? "nan" : p == INTERP_PLUS_INF ? "inf" : "-inf");
    else
      sb_printf(out, "%lld", (long long)p);
  }
}

/* One thread prints, a line in several calls. */
void emu_gprint(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  uint32_t on = emu_lanes(emu_in_bool(a, i, 0), a->active);
  const char *text = ir_sym(e->m, ir_get_attr(e->m, i->op, IR_ATTR_message)->s);
  if (!emu_need(a, i, 0, a->active) || !e->opt->print)
    return;
  EMU_EACH_LANE (l, on) {
    uint32_t k = 1;
    for (const char *s = text; *s; s++) {
      if (s[0] == '{' && s[1] == '}' && k < i->n->n_in) {
        if (!emu_need(a, i, k, 1u << l))
          return;
        put_value(a, i, k++, l);
        s++;
      } else if (*s == '\n') {
        e->opt->print(e->opt->user, sb_str(&a->line));
        a->line = (struct strbuf){.arena = a->unit->arena};
      } else {
        sb_putc(&a->line, *s);
      }
    }
  }
}
