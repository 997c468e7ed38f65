/* Messages between the runtime and kiln-worker: a fixed header, then tagged fields. Both ends run
 * on one machine, so numbers are in its byte order; a version that differs ends the
 * conversation. */
#ifndef KILN_RUNTIME_WIRE_H
#define KILN_RUNTIME_WIRE_H

#include "base/str.h"

#define WIRE_MAGIC   UINT32_C(0x4b4c4e57) /* "WNLK" */
#define WIRE_VERSION 1
/* No message is larger; what claims to be is refused before anything is allocated. */
#define WIRE_MAX_BYTES ((uint64_t)256 << 20)

enum wire_kind {
  WIRE_HELLO,  /* worker, once: NVRTC's version and path, or why there is none */
  WIRE_JOB,    /* runtime */
  WIRE_RESULT, /* worker, one per job */
};

enum wire_tag {
  WIRE_NAME = 1,
  WIRE_SOURCE,
  WIRE_ARCH,
  WIRE_OPTION, /* repeated */
  WIRE_FLAGS,  /* u32: bit 0 lineinfo, bit 1 want_ptx */
  WIRE_STATUS, /* u32: enum rt_status */
  WIRE_CUBIN,
  WIRE_PTX,
  WIRE_LOG,
  WIRE_ERROR,
  WIRE_MILLISECONDS, /* double */
  WIRE_NVRTC,        /* u32 major, u32 minor */
  WIRE_PATH,
};

struct wire_header {
  uint32_t magic, version, kind, zero;
  uint64_t length; /* of the fields that follow */
};

/* Appends fields to a message under construction; finish() puts the length in. */
void wire_begin(struct strbuf *m, enum wire_kind kind);
void wire_field(struct strbuf *m, enum wire_tag tag, const void *p, size_t n);
void wire_text(struct strbuf *m, enum wire_tag tag, const char *s); /* NULL: no field */
void wire_finish(struct strbuf *m);

/* NULL if the header is in order, else what is wrong with it. */
const char *wire_check(const struct wire_header *h);

struct wire_reader {
  const unsigned char *at, *end;
};
/* The next field; false at the end or at a damaged field (*damaged is then set). */
bool wire_next(struct wire_reader *r, uint32_t *tag, const void **p, size_t *n, bool *damaged);

#endif
