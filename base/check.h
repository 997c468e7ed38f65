/* KILN_ASSERT: "we are wrong", never "the caller is wrong". On in debug, test and fuzz builds
 * (no NDEBUG); in release builds the verifier still runs before code generation. */
#ifndef KILN_BASE_CHECK_H
#define KILN_BASE_CHECK_H

#include <assert.h>

#define KILN_ASSERT(cond) assert(cond)
/* Marks code that cannot be reached whatever the input. */
#define KILN_UNREACHABLE() (assert(0 && "unreachable"), __builtin_unreachable())

#endif
