"""Which planted families there are, without importing torch."""

from __future__ import annotations

TASK = "planted"
TWIN = "twin"

# Functions by the file that has them. A family is named like its function: c16_switched_branch is c16-switched-branch.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "host_values": (
        "c04_first_steps",
        "c04_after_a_day",
        "c04_by_a_file",
        "c06_step_number",
        "c07_buffer_made_anew",
        "c09_toggled_flag",
        "c11_statistics_moved",
        "c14_undefined_memory",
        "c16_switched_branch",
        "c17_kept_activation",
    ),
    "random_numbers": (
        "c19_dropout",
        "c21_reseeded",
        "c21_host_draw",
        "c21_own_generator",
        "c22_attention_dropout",
    ),
    "buffers": (
        "c26_same_memory",
        "c27_late_change",
        "c27_late_global",
        "c27_late_enclosed",
        "c27_late_class",
        "c27_late_iterator",
        "c32_staging_block",
        "c34_refilled_block",
        "c36_stream_ordered",
        "c37_growing_workspace",
        "c41_old_address",
        "c42_swapped_layer",
        "c46_kept_cast",
        "c49_left_over",
        "c52_first_input",
        "c52_input_written",
        "c54_kept_results",
        "c56_never_freed",
    ),
    "streams": (
        "c64_unseen_write",
        "c61_other_stream",
        "c62_first_stream",
        "c67_unjoined_stream",
        "c72_other_thread",
        "c72_thread_reads",
    ),
    "kernels": (
        "c82_capture_dispatch",
        "c84_left_out",
        "c86_other_process",
        "c87_atomics",
        "c89_other_order",
    ),
    "control_flow": (
        "c97_number",
        "c97_mask",
        "c97_branch",
        "c97_nonzero",
        "c97_list",
        "c97_numpy",
        "c97_made_tensor",
        "c97_unwatched",
        "c97_dlpack",
        "c99_growing_view",
        "c101_first_size",
        "c102_lazy_constant",
        "c104_device_schedule",
        "c104_host_index",
        "c106_never_captured",
        "c107_captured_once",
        "c111_own_graph",
        "c112_counting_hook",
        "c112_piled_hooks",
        "c114_inference_constant",
        "c114_traces_of_modes",
        "c116_metric",
        "c116_in_an_object",
    ),
}

# Families whose graphs must stand beside those of another image size.
OTHER_SIZES: dict[str, int] = {"c101_first_size": 16}


def family(function: str) -> str:
    """Give the name of the family that a function builds."""
    return function.replace("_", "-")
