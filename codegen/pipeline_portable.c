/* From tile IR to machine IR on every target: what runs, in which order, and why there.
 *
 * Before: tile IR that went through ir_tile_pipeline (sums with dots are accumulators, constants
 * are folded); other tile IR is lowered too, only not as well.
 * The portable path needs cp.async, ldmatrix and mma.sync: sm_80 and up. */
#include "codegen/pass.h"
#include "ir/passes.h"

static const struct ir_pass passes[] = {
    /* Labels, and what the author pinned: the passes that decide keep it. */
    {"apply_pins", cg_pass_apply_pins, false},
    /* Edges and alignment, while offsets are still whole expressions of grid, loops and dims. */
    {"bound_accesses", cg_pass_bound_accesses, false},
    /* Parts of a loop for more programs, and what follows it for the last of them: while results
     * are values, and after bounds, which hold for every iteration whoever runs it. */
    {"split_loops", cg_pass_split_loops, false},
    /* Kernels for the matrix unit of warpgroups: instructions, and paths of what feeds them. */
    {"choose_warpgroups", cg_pass_choose_warpgroups, false},
    /* Instruction and operand paths; alignment decides between asynchronous and staged copies. From
     * here on the module is scheduled IR. */
    {"choose_paths", cg_pass_choose_paths, false},
    /* Knobs the caller left open: warps and stages follow from dots and what they load. */
    {"fill_schedule", cg_pass_fill_schedule, false},
    /* Loops without the masks that most iterations do not need; after split_loops, which wants a
     * loop whole, and when it is known which loads run ahead and how many registers there are. */
    {"peel_loops", cg_pass_peel_loops, true},
    /* Layouts from anchors, given warps; conflicts become converts. */
    {"assign_layouts", cg_pass_assign_layouts, false},
    /* What follows dots is loaded while they run: when layouts say in how many registers, or that
     * a store's shared memory can take it. */
    {"load_early", cg_pass_load_early, false},
    /* (stage, order), given the slots; last of the decisions. */
    {"pipeline_loops", cg_pass_pipeline_loops, false},
    /* Decisions become machine IR. */
    {"lower_machine", cg_pass_lower_machine, false},
    /* Addresses that several accesses share: each access was lowered by itself. */
    {"machine_cse", ir_pass_cse, true},
    {"machine_dce", ir_pass_dce, true},
    /* Places in shared memory: when all buffers are known. */
    {"place_storage", cg_pass_place_storage, false},
    /* Barriers: when it is known which buffers share bytes. */
    {"insert_barriers", cg_pass_insert_barriers, false},
    /* Limits, before anything is compiled. */
    {"check_budgets", cg_pass_check_budgets, false},
};

const struct ir_pass *cg_pipeline(uint32_t *n) {
  *n = sizeof passes / sizeof passes[0];
  return passes;
}
