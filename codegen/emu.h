/* The emulator of machine IR: what the hardware would do, from the module and its recipe alone.
 *
 * It launches as the runtime does (checks, grid, parameters, workspace) and executes every block:
 * byte addresses in one array of shared memory per block, fragments as registers of each thread,
 * matrix instructions as the PTX ISA lays them out. It knows nothing of layouts, nor of how the
 * module came about. docs/ir.md says what it finds.
 *
 * Agents are warps (and, where the hardware works by itself, what it works on). Which of them runs
 * on when several could, and when an asynchronous copy lands, is for the mode to say; whatever is
 * legal gives the same results in every mode. Accesses are ordered by vector clocks, so that a
 * missing barrier is found in whatever order the agents happen to run. */
#ifndef KILN_CODEGEN_EMU_H
#define KILN_CODEGEN_EMU_H

#include "ir/interp.h"

enum emu_mode {
  EMU_EARLY,    /* first agent first; copies land at once: finds writes before the last read */
  EMU_LATE,     /* copies land when they are waited for, over poison: finds reads too early */
  EMU_REVERSED, /* as LATE, last agent first */
  EMU_SEEDED,   /* both by seed; agents change places between any two instructions */
};
#define EMU_MODES 4

struct emu_options {
  enum interp_domain domain; /* ROUNDED or ALGEBRAIC: each float argument is then an s64 array */
  enum emu_mode mode;
  uint64_t seed;
  /* Addresses and what orders threads, but no values: floats are not computed, memory is not read
   * (integers from there are 0) nor written, tensors need no data. Three clusters are run, loops no
   * longer than a pipe has slots and two more. For schedules that are to be checked quickly; the
   * domain must be ROUNDED. What hollow values and tensors that are written would show is not
   * found. */
  bool skeleton;
  uint32_t threads;   /* 0: as many as processors; results do not depend on it */
  uint64_t max_steps; /* instructions of warps over all blocks; 0: no limit (DIAG_STEP_LIMIT) */
  int64_t sm_count;   /* of the device that is emulated; 0: 132 */
  /* Asked every few milliseconds; true stops the run (DIAG_INTERRUPTED). May be NULL. */
  bool (*interrupted)(void *user);
  /* Receives what the kernel prints: one line, without the newline. May be NULL. */
  void (*print)(void *user, const char *line);
  void *user;
};

/* Passes over the banks of shared memory that a kind of access takes: as few as its width allows,
 * and how many come on top because lanes hit different words of one bank. */
struct emu_banks {
  uint64_t best, extra;
};

/* steps: of all blocks. The rest is of block 0, or the cluster that it is in. */
struct emu_stats {
  uint64_t steps, blocks;
  uint64_t barriers;
  struct emu_banks sload, sstore, ldmatrix, copy;
};

/* Launches a verified machine module with its recipe. args: one per module argument, in order, as
 * for interp_run; tensors are taken where and as they lie. Memory outside a tensor's extent,
 * shared memory outside the op's buffer, unaligned addresses, uninitialised reads, races between
 * threads and blocks, divergence where an instruction needs the whole warp and deadlocks are
 * errors, reported to `diags`; then it returns false, and outputs may be partly written. stats may
 * be NULL. */
bool emu_run(const struct ir_module *m, const struct interp_arg *args, uint32_t n_args,
             const struct emu_options *opt, struct emu_stats *stats, struct diag_sink *diags,
             const struct mem_alloc *mem);

/* The interleavings that a check of a kernel goes through: each mode once, the seeded one twice.
 * Number k of a check with this seed, and what people call its mode: "early", "late", ... */
#define EMU_RUNS 5
void emu_choose_run(struct emu_options *opt, uint32_t k, uint64_t seed);
const char *emu_mode_name(enum emu_mode mode);

#endif
