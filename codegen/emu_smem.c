/* Shared memory as wgmma and TMA address it, after the PTX ISA 9.0, "Asynchronous warpgroup level
 * matrix shared memory layout", "Tensors" and "Swizzling modes". See emu_tables.h. */
#include "codegen/emu_tables.h"

#include "base/check.h"
#include "base/num.h"

#include <string.h>

uint32_t emu_swizzle(uint32_t span, uint32_t address) {
  KILN_ASSERT(span == 0 || span == 32 || span == 64 || span == 128);
  return span ? address ^ ((address >> 7 & (span / 16 - 1)) << 4) : address;
}

/* ---- descriptors ---- */

struct emu_desc emu_desc_decode(uint64_t bits) {
  static const uint8_t spans[4] = {0, 128, 64, 32};
  return (struct emu_desc){.start = (uint32_t)(bits & 0x3fff) << 4,
                           .lbo = (uint32_t)(bits >> 16 & 0x3fff) << 4,
                           .sbo = (uint32_t)(bits >> 32 & 0x3fff) << 4,
                           .base_offset = (uint32_t)(bits >> 49 & 7),
                           .span = spans[bits >> 62]};
}

const char *emu_desc_refuse(uint64_t bits) {
  /* 14-15, 30-31, 46-48, 52-61 */
  const uint64_t unused =
      3ull << 14 | 3ull << 30 | 7ull << 46 | ((1ull << 62) - 1 - ((1ull << 52) - 1));
  if (bits & unused)
    return "a matrix descriptor has bits set outside its fields (address 0-13, leading offset "
           "16-29, stride offset 32-45, base offset 49-51, swizzle 62-63)";
  if (bits >> 49 & 7)
    return "a matrix descriptor has a base offset: align the operand to its swizzle's pattern "
           "(1024, 512 or 256 bytes) and leave it 0";
  return NULL;
}

/* Both orders are made of rows of `span` bytes (16 without a swizzle), 8 rows to a pattern:
 *
 *   K-major    a row is one mn; along k: within the row, then `lbo` (without a swizzle alone: an
 *              instruction's k is 32 bytes and lies within a span); 8 rows on: `sbo`
 *   MN-major   a row is one k; along mn: within the row, then `lbo`; 8 rows on: `sbo`; without a
 *              swizzle the two offsets change places
 *
 * The swizzle permutes the bits of the sum, so an operand may begin anywhere in a pattern. */
uint32_t emu_desc_address(const struct emu_desc *d, uint32_t bytes, bool mn_major, uint32_t mn,
                          uint32_t k) {
  uint32_t row = mn_major ? k : mn, along = (mn_major ? mn : k) * bytes;
  uint32_t width = d->span ? d->span : 16;
  bool swap = mn_major && !d->span;
  uint32_t next = swap ? d->sbo : d->lbo, down = swap ? d->lbo : d->sbo;
  uint32_t sum = d->start + row / 8 * down + row % 8 * width + along / width * next + along % width;
  return emu_swizzle(d->span, sum);
}

/* ---- tensor maps ---- */

const char *emu_tmap_refuse(const struct emu_tmap *t) {
  if (t->rank < 1 || t->rank > EMU_TMAP_RANK)
    return "a tensor map has 1 to 5 dims";
  if (t->bytes != 1 && t->bytes != 2 && t->bytes != 4 && t->bytes != 8)
    return "a tensor map's elements have 1, 2, 4 or 8 bytes";
  if (t->span != 0 && t->span != 32 && t->span != 64 && t->span != 128)
    return "a tensor map's swizzle is 0, 32, 64 or 128 bytes";
  if (t->base % 16)
    return "a tensor map's address is a multiple of 16 bytes";
  for (uint32_t d = 0; d < t->rank; d++) {
    if (t->dim[d] < 1 || t->dim[d] > 1ull << 32)
      return "a tensor map's dims are 1 to 2^32 elements";
    if (d > 0 && (t->stride[d] < 0 || t->stride[d] % 16 || t->stride[d] >= 1ll << 40))
      return "a tensor map's strides are multiples of 16 bytes below 2^40";
    if (t->box[d] < 1 || t->box[d] > 256)
      return "a tensor map's box is 1 to 256 elements along each dim";
  }
  if (t->box[0] * t->bytes % 16)
    return "the inner extent of a tensor map's box is a multiple of 16 bytes";
  if (t->span && t->box[0] * t->bytes > t->span)
    return "the inner extent of a tensor map's box is at most the swizzle's bytes";
  if (t->span && t->box[0] * t->bytes < t->span)
    return "the inner extent of a tensor map's box is less than the swizzle's bytes: no dump has "
           "pinned how its rows lie then";
  return NULL;
}

const char *emu_tmap_refuse_coord(const struct emu_tmap *t, const int32_t *coord, bool store) {
  if ((int64_t)coord[0] * t->bytes % 16)
    return "a box starts at a multiple of 16 bytes of the innermost dim";
  for (uint32_t d = 0; d < t->rank && store; d++)
    if (coord[d] < 0)
      return "a box to store starts at no negative coordinate";
  return NULL;
}

const char *emu_tmap_refuse_shared(const struct emu_tmap *t, uint32_t shared) {
  if (shared % 128)
    return "a box lies at a multiple of 128 bytes of shared memory";
  if (t->span && shared % (8 * t->span))
    return "a box lies at a multiple of its swizzle's pattern: 256, 512 or 1024 bytes for 32, 64 "
           "or 128";
  return NULL;
}

uint32_t emu_tmap_tf32(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  x = num_round_tf32(x);
  memcpy(&bits, &x, sizeof x);
  return bits;
}

uint32_t emu_tmap_box_bytes(const struct emu_tmap *t) {
  uint32_t n = t->bytes;
  for (uint32_t d = 0; d < t->rank; d++)
    n *= t->box[d];
  return n;
}

/* Bytes from a row of a box to the next. */
static uint32_t pitch(const struct emu_tmap *t) {
  uint32_t inner = t->box[0] * t->bytes;
  return inner < t->span ? t->span : inner;
}

uint32_t emu_tmap_shared_bytes(const struct emu_tmap *t) {
  return emu_tmap_box_bytes(t) / (t->box[0] * t->bytes) * pitch(t);
}

struct emu_piece emu_tmap_piece(const struct emu_tmap *t, uint32_t shared, const int32_t *coord,
                                uint32_t i) {
  uint32_t inner = t->box[0] * t->bytes / 16, row = i / inner, at = i % inner * 16;
  struct emu_piece p = {.shared = emu_swizzle(t->span, shared + row * pitch(t) + at)};
  KILN_ASSERT(i < emu_tmap_box_bytes(t) / 16);
  int64_t offset = 0;
  for (uint32_t d = 1; d < t->rank; d++) {
    int64_t c = coord[d] + (int64_t)(row % t->box[d]);
    row /= t->box[d];
    if (c < 0 || c >= (int64_t)t->dim[d])
      return p;
    offset += c * t->stride[d];
  }
  /* Bytes of the tensor's innermost row that the piece covers. */
  int64_t begin = (int64_t)coord[0] * t->bytes + at, end = (int64_t)t->dim[0] * t->bytes;
  int64_t first = begin < 0 ? -begin : 0, last = end - begin < 16 ? end - begin : 16;
  if (first >= last)
    return p;
  p.first = (uint8_t)first;
  p.last = (uint8_t)last;
  p.stored = 16;
  p.global = t->base + (uint64_t)(offset + begin + first);
  return p;
}
