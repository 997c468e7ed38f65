/* The report of kiln_diff, for people and as JSON. */
#include "api/diff.h"

#include <string.h>

static const char *copy(struct arena *a, const char *s) {
  return s && *s ? arena_strdup(a, s) : NULL;
}

static const char *list_needed(const struct diff *d, struct arena *a) {
  struct strbuf b = {.arena = a};
  for (uint32_t i = 0; i < d->n_knobs; i++)
    if (d->knobs[i].needed)
      sb_printf(&b, "%s%s=%lld", b.n ? "," : "", d->knobs[i].name, (long long)d->knobs[i].value);
  return sb_str(&b);
}

static void fill(const struct diff *d, const char *domain, struct kiln_diff_report *r,
                 struct arena *a) {
  const struct diff_element *e = &d->first.at;
  *r = (struct kiln_diff_report){.same = d->first.state == DIFF_SAME,
                                 .on = d->on,
                                 .domain = domain,
                                 .ulps = -1,
                                 .program = {-1, -1, -1},
                                 .runs = d->runs};
  if (r->same)
    return;
  if (d->first.state == DIFF_FAILS) {
    r->error = copy(a, d->first.why);
  } else {
    const struct api_arg *arg = &d->p.args[e->arg];
    r->output = arena_strdup(a, arg->name);
    r->rank = arg->rank;
    memcpy(r->coord, e->coord, sizeof r->coord);
    r->expected = arena_strdup(a, e->want);
    r->found = arena_strdup(a, e->got);
    r->ulps = e->ulps;
    r->n_differ = e->n_differ;
    r->n_elements = e->n_elements;
  }
  if (d->has_writer) {
    int64_t left = d->writer.cell;
    r->tile_rank = d->writer_rank;
    memcpy(r->program, d->writer.program, sizeof r->program); /* as traced: of three axes */
    for (uint32_t k = d->writer_rank; k-- > 0; left /= d->writer_dim[k])
      r->tile_coord[k] = left % d->writer_dim[k];
  }
  if (d->origin.found) {
    const struct diff_origin *o = &d->origin;
    r->op = arena_strdup(a, o->op);
    r->op_label = copy(a, o->label);
    r->op_value = copy(a, o->value);
    r->op_file = o->loc.file ? copy(a, diag_file_name(&d->ctx->diags, o->loc.file)) : NULL;
    r->op_line = o->loc.line;
    r->op_column = o->loc.col;
    r->at_store = o->at_store;
    r->op_differs = copy(a, o->differs);
  }
  r->pass = copy(a, d->pass);
  r->pass_changes_meaning = d->pass_of_interpretation;
  r->without = copy(a, d->without);
  if (d->plainest) {
    r->needed = list_needed(d, a);
    r->plainest = copy(a, d->plainest);
  }
}

/* ---- for people ---- */

static void put_list(struct strbuf *b, const char *open, const char *close, const int64_t *x,
                     uint32_t n) {
  sb_puts(b, open);
  for (uint32_t k = 0; k < n; k++)
    sb_printf(b, k ? ", %lld" : "%lld", (long long)x[k]);
  sb_puts(b, close);
}

static void put_place(const struct diff *d, struct strbuf *b, struct diag_loc loc) {
  if (loc.file)
    sb_printf(b, " at %s:%u:%u", diag_file_name(&d->ctx->diags, loc.file), loc.line, loc.col);
}

static void put_element(const struct diff *d, const struct kiln_diff_report *r, struct strbuf *b) {
  const struct diff_element *e = &d->first.at;
  sb_printf(b, "  element  %s", r->output);
  put_list(b, "[", "]", r->coord, r->rank);
  sb_printf(b, ": expected %s, found %s", r->expected, r->found);
  if (r->ulps >= 0)
    sb_printf(b, ", %.6g ulp apart", r->ulps);
  if (e->rule[0])
    sb_printf(b, "\n           %s", e->rule);
  else
    sb_printf(b, "; %lld of %lld elements differ", (long long)r->n_differ,
              (long long)r->n_elements);
  sb_putc(b, '\n');
  if (!d->has_writer) {
    sb_puts(b, "  tile     no program writes this element in the interpreter\n");
    return;
  }
  sb_puts(b, "  tile     of program ");
  put_list(b, "(", ")", r->program, d->v->traced->n_grid);
  if (r->tile_rank) {
    sb_puts(b, ", element ");
    put_list(b, "[", "]", r->tile_coord, r->tile_rank);
    put_list(b, " of (", ")", d->writer_dim, r->tile_rank);
  }
  sb_printf(b, ", written by the %s", d->writer_op);
  put_place(d, b, d->writer_loc);
  sb_putc(b, '\n');
}

static void put_op(const struct diff *d, const struct kiln_diff_report *r, struct strbuf *b) {
  const struct diff_origin *o = &d->origin;
  if (!o->found) {
    sb_puts(b, "  op       not found\n");
    return;
  }
  sb_printf(b, "  op       %s", o->op);
  if (o->value)
    sb_printf(b, " `%s`", o->value);
  if (o->label)
    sb_printf(b, " (%s)", o->label);
  put_place(d, b, o->loc);
  for (uint32_t i = 0; i < o->place.n_loops; i++)
    sb_printf(b, "%s%lld", i ? "." : ", iteration ", (long long)o->place.iteration[i]);
  sb_putc(b, '\n');
  if (o->differs) {
    sb_printf(b, "           the first of the text that is not as Kiln lowers the kernel: %s\n",
              o->differs);
  } else if (r->at_store) {
    sb_puts(b,
            "           what it stores agrees: the difference is in where it goes, or whether\n");
  } else if (o->is_store) {
    sb_puts(b, "           the first that can be seen to differ is what it leaves in memory\n");
  } else {
    sb_printf(b, "           its operands agree%s, its value does not",
              o->unseen ? " as far as can be seen" : "");
    if (o->tile_rank)
      put_list(b, ": at [", "]", o->at.coord, o->tile_rank);
    sb_printf(b, "%s expected %s, found %s\n", o->tile_rank ? "" : ":", o->at.want, o->at.got);
  }
  if (o->unseen)
    sb_printf(b, "           %s\n", o->unseen);
}

static void put_pass(const struct diff *d, struct strbuf *b) {
  if (d->given) {
    sb_printf(b, "  pass     none: Kiln's own lowering %s\n",
              d->own_agrees ? "agrees with the interpreter"
                            : "differs, too: compare without the text");
    return;
  }
  if (d->pass_of_interpretation)
    sb_printf(b, "  pass     %s: what the kernel means is another after it\n", d->pass);
  else
    sb_puts(b, "  pass     on the way to machine code: up to there each pass keeps what the kernel "
               "means\n");
  if (d->without)
    sb_printf(b, "           left out, each alone, the difference goes: %s\n", d->without);
  else
    sb_puts(b, "           no optional pass is needed for it\n");
}

static void put_knobs(const struct diff *d, const struct kiln_diff_report *r, struct strbuf *b) {
  if (!d->plainest) {
    sb_printf(b, "  knobs    not compared: %s\n", d->no_knobs ? d->no_knobs : "");
    return;
  }
  if (d->any_schedule)
    sb_puts(b, "  knobs    none is needed: the plainest schedule shows it\n");
  else if (!*r->needed)
    sb_puts(b, "  knobs    none alone: each that is left could not be made plainer\n");
  bool first = true;
  for (uint32_t i = 0; i < d->n_knobs; i++) {
    const struct diff_knob *k = &d->knobs[i];
    if (!k->needed)
      continue;
    sb_printf(b, "%s%s = %lld is needed (given %lld): with less the difference goes\n",
              first ? "  knobs    " : "           ", k->name, (long long)k->value,
              (long long)k->given);
    first = false;
  }
  sb_printf(b, "           plainest: --set %s\n", d->plainest);
}

static const char *text_of(const struct diff *d, const struct kiln_diff_report *r,
                           struct arena *a) {
  struct strbuf b = {.arena = a};
  sb_printf(&b, "%s, %s\n", d->p.text, d->v->target->name);
  if (d->agreed)
    sb_printf(&b, "  same     interpreter and %s\n", d->agreed);
  if (r->same)
    return sb_str(&b);
  const char *side = d->on == KILN_ON_GPU ? "GPU" : "emulator";
  struct emu_options mode = {0};
  emu_choose_run(&mode, d->emu_run, d->p.seed);
  sb_printf(&b, "  differs  %s from interpreter (%s%s%s)\n", side, r->domain,
            d->on == KILN_ON_EMU ? ", mode " : "",
            d->on == KILN_ON_EMU ? emu_mode_name(mode.mode) : "");
  if (r->error)
    sb_printf(&b, "  error    the %s reports: %s\n", side, r->error);
  else {
    put_element(d, r, &b);
    put_op(d, r, &b);
  }
  put_pass(d, &b);
  put_knobs(d, r, &b);
  sb_printf(&b, "  runs     %u\n", r->runs);
  return sb_str(&b);
}

/* ---- JSON ---- */

static void put_string(struct strbuf *b, const char *key, const char *value) {
  sb_printf(b, ",\"%s\":", key);
  if (value)
    sb_put_json(b, value, strlen(value));
  else
    sb_puts(b, "null");
}

static void put_json_list(struct strbuf *b, const char *key, const int64_t *x, uint32_t n) {
  sb_printf(b, ",\"%s\":[", key);
  for (uint32_t k = 0; k < n; k++)
    sb_printf(b, k ? ",%lld" : "%lld", (long long)x[k]);
  sb_putc(b, ']');
}

static void put_json_op(const struct diff *d, const struct kiln_diff_report *r, struct strbuf *b) {
  const struct diff_origin *o = &d->origin;
  sb_puts(b, ",\"op\":{\"name\":");
  sb_put_json(b, r->op, strlen(r->op));
  put_string(b, "label", r->op_label);
  put_string(b, "value", r->op_value);
  put_string(b, "file", r->op_file);
  sb_printf(b, ",\"line\":%u,\"column\":%u,\"at_store\":%s", r->op_line, r->op_column,
            r->at_store ? "true" : "false");
  put_json_list(b, "iteration", o->place.iteration, o->place.n_loops);
  put_string(b, "differs", o->differs);
  put_string(b, "unseen", o->unseen);
  sb_putc(b, '}');
}

static const char *json_of(const struct diff *d, const struct kiln_diff_report *r,
                           struct arena *a) {
  struct strbuf b = {.arena = a};
  sb_puts(&b, "{\"kernel\":");
  sb_put_json(&b, d->p.name, strlen(d->p.name));
  sb_printf(&b, ",\"target\":\"%s\",\"same\":%s", d->v->target->name, r->same ? "true" : "false");
  put_string(&b, "agreed", d->agreed);
  if (!r->same) {
    put_string(&b, "on", d->on == KILN_ON_GPU ? "gpu" : "emu");
    put_string(&b, "domain", r->domain);
    put_string(&b, "error", r->error);
  }
  if (r->output) {
    put_string(&b, "output", r->output);
    put_json_list(&b, "element", r->coord, r->rank);
    put_string(&b, "expected", r->expected);
    put_string(&b, "found", r->found);
    sb_printf(&b, ",\"differ\":%lld,\"elements\":%lld", (long long)r->n_differ,
              (long long)r->n_elements);
    if (r->ulps >= 0)
      sb_printf(&b, ",\"ulps\":%.17g", r->ulps);
    if (d->has_writer) {
      put_json_list(&b, "program", r->program, d->v->traced->n_grid);
      put_json_list(&b, "tile_element", r->tile_coord, r->tile_rank);
    }
  }
  if (r->op)
    put_json_op(d, r, &b);
  if (!r->same) {
    put_string(&b, "pass", r->pass);
    sb_printf(&b, ",\"pass_changes_meaning\":%s", r->pass_changes_meaning ? "true" : "false");
    put_string(&b, "without", r->without);
    put_string(&b, "needed_knobs", r->needed);
    put_string(&b, "plainest_knobs", r->plainest);
  }
  sb_printf(&b, ",\"runs\":%u}", r->runs);
  return sb_str(&b);
}

void diff_report(const struct diff *d, const char *domain, struct kiln_diff_report *out,
                 struct arena *a) {
  fill(d, domain, out, a);
  out->text = text_of(d, out, a);
  out->json = json_of(d, out, a);
}
