"""While code for a GPU is generated, on a machine without one."""

from __future__ import annotations

from aoti_driver.torch_internals.entries import Change, Option

_INDUCTOR = "torch._inductor"
_CODEGEN = f"{_INDUCTOR}.codegen"
_INTERFACE = "torch._dynamo.device_interface:CudaInterface"
_TEST = "cuda/test_cuda_codegen.py::test_it_is_needed"
_SCATTER = "Scatters that add or find the largest are kernels: see cuda/scatters.py"
_DEVICE = "PyTorch and Inductor ask the device while they generate code: see pretended_device.py"
_LAUNCH = "The runtime loads and launches kernels: see cuda/launches.py"

CHANGES = (
    *(
        Change(place, instead=instead, reason=_DEVICE, test=_TEST)
        for place, instead in (
            ("torch.cuda:is_available", "returns True"),
            ("torch.cuda:get_rng_state", "returns a state that nobody reads"),
            ("torch.cuda:get_device_properties", "returns those of cuda/archs.py"),
            ("torch.cuda:is_bf16_supported", "returns the architecture's"),
            (f"{_INDUCTOR}.runtime.triton_helpers:set_driver_to_gpu", "does nothing"),
            (f"{_INTERFACE}.is_bf16_supported", "returns the architecture's"),
            (f"{_INTERFACE}.get_device_properties", "returns those of cuda/archs.py"),
            (f"{_INTERFACE}.Worker.get_device_properties", "returns those of cuda/archs.py"),
        )
    ),
    *(
        Change(place, instead="returns 0", reason=_DEVICE, test=_TEST, by_build=True)
        for place in ("torch.cuda:_exchange_device", "torch.cuda:_maybe_exchange_device")
    ),
    Change(
        f"{_INDUCTOR}.fx_passes.joint_graph:lazy_init",
        instead="does nothing",
        reason="It makes real tensors on the device, for patterns that need cuDNN's attention",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.select_algorithm:AlgorithmSelectorCache.__call__",
        instead="takes a template, for the tiles of cuda/tiles.py",
        reason="It measures kernels on the device",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.select_algorithm:TritonTemplateKernel.additional_call_args_and_types",
        instead="passes the grid of each tile of a product, and the number of rows",
        reason="A product whose rows vary has several kernels: see cuda/tiled_kernels.py",
        test=_TEST,
    ),
    *(
        Change(
            f"{_INDUCTOR}.select_algorithm:{name}",
            kind="object",
            instead="is that of a tile of cuda/tiles.py",
            reason="Inductor offers templates with tiles of its own: see cuda/tiled_kernels.py",
            test="cuda/test_tiled_kernels.py::test_several_kernels_of_a_product",
        )
        for name in (
            "TritonTemplateCaller.make_kernel_render",
            "TritonTemplateKernel.defines",
            "TritonTemplateKernel.meta",
            "TritonTemplateKernel.num_stages",
            "TritonTemplateKernel.num_warps",
        )
    ),
    Change(
        f"{_INDUCTOR}.kernel.mm_plus_mm:tuned_mm_plus_mm",
        instead="makes two products of small ones",
        reason="The template for the sum of two products is for deep ones: see plain_products.py",
        test=_TEST,
    ),
    Change(
        f"{_CODEGEN}.triton:TritonKernelOverrides.constant",
        instead="is a number in the kernel of a template, not a tensor of one dim",
        reason="Triton does not broadcast a tensor of one dim to a matrix: see cuda/prologues.py",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.graph:is_same_tensor",
        instead="compares the stored tensors that fake ones stand for",
        reason="All fake tensors begin at address 0",
        test=_TEST,
    ),
    Change(
        "torch._decomp.decompositions_for_rng:extra_random_decomps",
        kind="table",
        instead="entries of cuda/random_numbers.py",
        reason="torch's for bernoulli returns bool",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.ir:ComputedBuffer.data",
        kind="object",
        instead="stores the larger number",
        reason=_SCATTER,
        test=_TEST,
    ),
    Change(
        f"{_CODEGEN}.triton:TritonKernel.store",
        instead="stores the larger number atomically, too",
        reason=_SCATTER,
        test=_TEST,
    ),
    *(
        Change(
            f"{_INDUCTOR}.lowering:{name}",
            instead=instead,
            reason=_SCATTER,
            test=_TEST,
        )
        for name, instead in (
            (
                "needs_fallback_due_to_atomic_add_limitations",
                "returns False for int64, whose atomic addition Triton has",
            ),
            ("use_scatter_fallback", "returns False for stores and for sums of int64"),
        )
    ),
    *(
        Change(
            f"{_CODEGEN}.wrapper:PythonWrapperCodegen.{name}",
            instead="writes nothing for the word of index_checks.py",
            reason="It is the runtime's",
            test=_TEST,
        )
        for name in ("generate_workspace_allocation", "generate_workspace_deallocation")
    ),
    *(
        Change(place, instead=instead, reason=_LAUNCH, test=_TEST)
        for place, instead in (
            (
                f"{_CODEGEN}.cpp_wrapper_gpu:DeferredTritonCallWrapper._get_cpp_param_type",
                "is double for a number that is no integer, where Inductor has int64_t",
            ),
            (
                f"{_CODEGEN}.cpp_wrapper_gpu:DeferredTritonCallWrapper.generate",
                "compiles the kernel before",
            ),
            (
                f"{_CODEGEN}.cpp_wrapper_gpu:DeferredTritonCallWrapper.generate_load_kernel",
                "writes nothing",
            ),
            (
                f"{_CODEGEN}.cpp_wrapper_gpu:DeferredTritonCallWrapper.generate_launch_kernel",
                "names the kernel by its number in the table",
            ),
            (
                f"{_CODEGEN}.wrapper:PythonWrapperCodegen.generate_and_run_autotune_block",
                "runs nothing",
            ),
            (
                f"{_CODEGEN}.cpp_wrapper_cpu:CppWrapperCpu.get_device_include_path_aot",
                "is the CPU's",
            ),
            (
                f"{_CODEGEN}.cuda.device_op_overrides:CUDADeviceOpOverrides.kernel_driver",
                "declares what generated code uses of NVIDIA's headers",
            ),
        )
    ),
    Change(
        f"{_INDUCTOR}.codecache:CudaKernelParamCache.cache",
        kind="table",
        instead="an entry for a kernel while its launch is written",
        reason=_LAUNCH,
        test=_TEST,
    ),
)

OPTIONS = tuple(
    Option(f"{_INDUCTOR}.config:{name}", reason)
    for name, reason in (
        ("aot_inductor.embed_kernel_binary", "the kernels are no files: see cuda/images.py"),
        ("triton.autotune_at_compile_time", "one pass; nothing is tuned"),
        ("triton.unique_kernel_names", "errors and profiles name the kernel"),
        ("max_autotune_gemm", "products are Triton kernels, none of cuBLAS"),
        ("max_autotune_gemm_backends", "products are Triton kernels, none of cuBLAS"),
        ("max_autotune_conv_backends", "convolutions are Triton kernels, none of cuDNN"),
        ("shape_padding", "it measures"),
        ("inplace_buffers", "kernels that are measured run again: see runtime/cuda/measuring.h"),
        ("triton.decompose_sort_ops", "topk and longer sorts are Triton kernels: cuda/sorts.py"),
    )
)
