"""The modules that a worker imports once, so that its requests need not.

Importing has no effect on what a step writes: a worker's first requests run without most of them.
"""

from __future__ import annotations

# The first request is usually an export.
FIRST = ("torch", "torch.export", "safetensors.torch")

# Imported while requests run, in this order, as far as there is time: what steps of a small model
# would spend a third of their time on. Inductor itself imports most of its own when it first runs.
LATER = (
    "torch._inductor.compile_fx",
    "aoti_driver.inductor.codegen",
    "aoti_driver.export.export",
    "aoti_driver.artifacts.choose_runtime",
    "aoti_driver.artifacts.packed_weights",
    "aoti_driver.artifacts.provenance",
    "aoti_driver.bindings.bindings",
    "torch.export._trace",
    "torch._export.passes.replace_autocast_with_hop_pass",
    "torch._export.passes.replace_set_grad_with_hop_pass",
    "torch._inductor.bounds",
    "torch._inductor.choices",
    "torch._inductor.compiler_bisector",
    "torch._inductor.extern_node_serializer",
    *(
        f"torch._inductor.codegen.{name}"
        for name in (
            "cpp_wrapper_cpu_array_ref",
            "cpp_wrapper_mps",
            "cpu_device_op_overrides",
            "cuda.device_op_overrides",
            "cuda_combined_scheduling",
            "halide",
            "mps",
            "mps_device_op_overrides",
            "mtia.device_op_overrides",
            "pallas",
            "python_wrapper_mtia",
            "segmented_tree",
            "wrapper_fxir",
            "xpu.device_op_overrides",
            "xpu.xpu_combined_scheduling",
        )
    ),
    *(
        f"torch._inductor.fx_passes.{name}"
        for name in (
            "apply_gumbel_max_trick",
            "efficient_conv_bn_eval",
            "fuse_attention",
            "mkldnn_fusion",
            "pad_mm",
        )
    ),
    "torch._subclasses.schema_check_mode",
    "torch.fx.experimental.validator",
    "torchgen.aoti.fallback_ops",
    "sympy.physics.units",
    "sympy.tensor.tensor",
)
