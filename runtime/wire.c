/* See wire.h. A field is u32 tag, u32 zero, u64 length, bytes. */
#include "runtime/wire.h"

struct field_header {
  uint32_t tag, zero;
  uint64_t length;
};

void wire_begin(struct strbuf *m, enum wire_kind kind) {
  struct wire_header h = {WIRE_MAGIC, WIRE_VERSION, (uint32_t)kind, 0, 0};
  sb_put(m, (const char *)&h, sizeof h);
}

void wire_field(struct strbuf *m, enum wire_tag tag, const void *p, size_t n) {
  struct field_header h = {(uint32_t)tag, 0, n};
  sb_put(m, (const char *)&h, sizeof h);
  sb_put(m, p, n);
}

void wire_text(struct strbuf *m, enum wire_tag tag, const char *s) {
  if (s)
    wire_field(m, tag, s, strlen(s));
}

void wire_finish(struct strbuf *m) {
  struct wire_header h;
  memcpy(&h, m->s, sizeof h);
  h.length = m->n - sizeof h;
  memcpy(m->s, &h, sizeof h);
}

const char *wire_check(const struct wire_header *h) {
  if (h->magic != WIRE_MAGIC)
    return "not a message of Kiln's";
  if (h->version != WIRE_VERSION)
    return "the other side is of another version of Kiln";
  if (h->length > WIRE_MAX_BYTES)
    return "message too large";
  return NULL;
}

bool wire_next(struct wire_reader *r, uint32_t *tag, const void **p, size_t *n, bool *damaged) {
  struct field_header h;
  *damaged = false;
  if (r->at == r->end)
    return false;
  if ((size_t)(r->end - r->at) < sizeof h) {
    *damaged = true;
    return false;
  }
  memcpy(&h, r->at, sizeof h);
  r->at += sizeof h;
  if (h.length > (uint64_t)(r->end - r->at)) {
    *damaged = true;
    return false;
  }
  *tag = h.tag;
  *p = r->at;
  *n = (size_t)h.length;
  r->at += h.length;
  return true;
}
