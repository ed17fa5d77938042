"""A program for one instruction set, or for CUDA: generating its C++ and compiling it."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":cc.bzl", "KERNEL_COPTS", "WRAPPER_COPTS", "compile_sources")
load(":cuda.bzl", "embed_images")
load(":driver.bzl", "new_request", "run_driver")
load(":isa.bzl", "ISAS")
load(":names.bzl", "identifier", "program_id")
load(":shim.bzl", "fallback_program")
load(":torch_custom_ops.bzl", "operators_module")

def declare_variant(ctx, name, isa, lowest, device):
    """Declares the generated files of a program for one instruction set.

    Args:
        ctx: the rule's context.
        name: the model's name.
        isa: the instruction set.
        lowest: whether it is the lowest of the target's: its files have the model's name alone.
        device: one of DEVICES.

    Returns:
        A struct: `isa`, `suffix` (of names), `program_id`, and of File: `wrapper`, `kernels` (a folder),
        `cuda_images` (None for the CPU), `codegen_manifest`.
    """
    suffix = "" if lowest else "." + identifier(isa)
    return struct(
        isa = isa,
        suffix = suffix,
        program_id = program_id(ctx.label) + suffix.replace(".", "_"),
        wrapper = ctx.actions.declare_file(name + suffix + ".program.cpp"),
        # Bazel goes by the folder's name too when it chooses flags for the files in it (--cxxopt).
        kernels = ctx.actions.declare_directory(name + suffix + ".kernels.cpp"),
        cuda_images = ctx.actions.declare_file(name + suffix + ".cuda_images.bin") if device == "cuda" else None,
        codegen_manifest = ctx.actions.declare_file(name + suffix + ".codegen.json"),
    )

def generate_code(ctx, model, variant):
    """Declares the action that has Inductor write C++. It never sees the weights.

    Args:
        ctx: the context of aoti_library.
        model: what `requested_model` returned.
        variant: what `declare_variant` returned.
    """
    program = model.program
    on_cuda = {"device": model.device, "cuda_archs": model.cuda_archs} if model.device == "cuda" else {}
    request = new_request(ctx, "codegen", {
        "program_id": variant.program_id,
        "isa": variant.isa,
        "options": model.options,
    } | on_cuda, suffix = variant.suffix)
    request.input("--graph", program.graph)
    request.input("--manifest", program.manifest)
    if program.custom_ops:
        request.module(operators_module(program.custom_ops))
    request.output("--out_wrapper", variant.wrapper)
    request.output("--out_kernels", variant.kernels)
    if variant.cuda_images:
        request.output("--out_cuda_images", variant.cuda_images)
    request.output("--out_manifest", variant.codegen_manifest)
    run_driver(
        ctx,
        mnemonic = "AotiCodegen",
        request = request,
        progress_message = "Generating C++ for {} ({})".format(program.label, ", ".join(model.cuda_archs) or variant.isa),
        triton = model.triton,
    )

def compile_variant(ctx, cc, model, out, variant):
    """Compiles the program for one instruction set, for the runtimes that it may come to run on.

    Args:
        ctx: the context of aoti_library.
        cc: what `cc_toolchain_of` returned.
        model: what `requested_model` returned.
        out: what `declare_outputs` returned.
        variant: what `declare_variant` returned.

    Returns:
        A struct: `kernels` (CompilationOutputs), `slim` and `libtorch` (list of CompilationOutputs: the whole
        program for this runtime; empty where it can't come to run on it), `program_id`.
    """
    name = model.name + variant.suffix
    deps = [ctx.attr._runtime[CcInfo], model.torch.torch_headers]

    # Only the kernels may use the ISA: an inline function of the standard library, compiled for it
    # elsewhere, could be the copy that the linker keeps for the whole binary.
    _, kernels = compile_sources(ctx, cc, name + ".kernels", [variant.kernels], KERNEL_COPTS + ISAS[variant.isa].copts, deps)
    slim, libtorch = None, None
    if model.shim != "libtorch":
        runtimes = [ctx.attr._slim[CcInfo]] + ([ctx.attr._cuda_runtime[CcInfo]] if variant.cuda_images else [])
        _, slim = compile_sources(ctx, cc, name + ".slim", [variant.wrapper], WRAPPER_COPTS + ["-DAOTI_SLIM"], deps + runtimes)
    if model.shim == "libtorch":
        _, libtorch = compile_sources(ctx, cc, name + ".program", [variant.wrapper], WRAPPER_COPTS, deps)
    if model.shim == "auto":
        # Not the wrapper itself: models that turn out to run on slim need not wait for its compilation.
        source = fallback_program(ctx, name, variant.wrapper, out.manifest)
        _, libtorch = compile_sources(ctx, cc, name + ".fallback", [source], WRAPPER_COPTS, deps)
    images = [embed_images(ctx, cc, variant)] if variant.cuda_images else []
    return struct(
        kernels = kernels,
        slim = [slim, kernels] + images if slim else [],
        libtorch = [libtorch, kernels] if libtorch else [],
        program_id = variant.program_id,
    )
