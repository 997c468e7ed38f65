/* Tensor maps of prepared launches (tmap.c). */
#ifndef KILN_RUNTIME_TMAP_H
#define KILN_RUNTIME_TMAP_H

#include "runtime/abi_cuda.h"
#include "runtime/bind.h"

/* Encodes parameter `q` (kind TMAP) for the bound arguments into *out, which must be aligned to 64
 * bytes; all zeros for an argument that is absent. Reports what the hardware would refuse.
 * Allocates nothing. */
enum rt_status rt_encode_map(const struct rt_bindings *b, const struct recipe_param *q,
                             CUtensorMap *out);

#endif
