"""A program for one instruction set, or for CUDA: generating its C++ and compiling it."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":cc.bzl", "KERNEL_COPTS", "WRAPPER_COPTS", "compile_sources")
load(":cuda.bzl", "embed_images")
load(":driver.bzl", "new_request", "run_driver")
load(":isa.bzl", "ISAS")
load(":names.bzl", "identifier", "program_id")
load(":shim.bzl", "fallback_program")
load(":torch_custom_ops.bzl", "operators_module")

def declare_variant(ctx, name, isa, suffix, device):
    """Declares the generated files of a program for one instruction set, or for CUDA.

    Args:
        ctx: the rule's context.
        name: the model's name.
        isa: the instruction set.
        suffix: what tells its files from those of the target's other variants, such as ".x86_64_v4"; "" for the first.
        device: one of DEVICES.

    Returns:
        A struct: `isa`, `device`, `suffix` (of names), `program_id`, and of File: `wrapper`, `kernels` (a folder),
        `cuda_images` (None for the CPU), `codegen_manifest`.
    """
    return struct(
        isa = isa,
        device = device,
        suffix = suffix,
        program_id = program_id(ctx.label) + suffix.replace(".", "_"),
        wrapper = ctx.actions.declare_file(name + suffix + ".program.cpp"),
        # Bazel goes by the folder's name too when it chooses flags for the files in it (--cxxopt).
        kernels = ctx.actions.declare_directory(name + suffix + ".kernels.cpp"),
        cuda_images = ctx.actions.declare_file(name + suffix + ".cuda_images.bin") if device == "cuda" else None,
        codegen_manifest = ctx.actions.declare_file(name + suffix + ".codegen.json"),
    )

def declare_variants(ctx, name, isas, devices):
    """Declares those of all variants.

    Args:
        ctx: the rule's context.
        name: the model's name.
        isas: list of string: the instruction sets, the lowest first.
        devices: list of string, the CPU first.

    Returns:
        list of what `declare_variant` returned: the lowest instruction set first, CUDA last
    """
    variants = []
    if "cpu" in devices:
        for isa in isas:
            variants.append(declare_variant(ctx, name, isa, "." + identifier(isa) if variants else "", "cpu"))
    if "cuda" in devices:
        # Of the CPU it asks for no more than the others do.
        variants.append(declare_variant(ctx, name, isas[0], ".cuda" if variants else "", "cuda"))
    return variants

def generate_code(ctx, model, variant):
    """Declares the action that has Inductor write C++. It never sees the weights.

    Args:
        ctx: the context of aoti_library.
        model: what `requested_model` returned.
        variant: what `declare_variant` returned.
    """
    program = model.program
    on_cuda = {"device": "cuda", "cuda_archs": model.cuda_archs} if variant.device == "cuda" else {}
    if on_cuda and ctx.attr.measured:
        on_cuda["measured"] = True
    request = new_request(ctx, "codegen", {
        "program_id": variant.program_id,
        "isa": variant.isa,
        "options": {name: value for name, value in model.options.items() if not on_cuda or not name.startswith("cpp.")},
    } | on_cuda, suffix = variant.suffix)
    request.input("--graph", program.graph)
    request.input("--manifest", program.manifest)
    if program.custom_ops:
        operators = operators_module(program.custom_ops)
        request.module(operators)
        if operators.triton and not on_cuda and program.locations:
            # For the error of an operator that the CPU lacks alone: a new line in the model's source generates nothing anew.
            request.input("--locations", program.locations)
            request.unused_inputs_list("--out_unused", ctx.actions.declare_file(variant.codegen_manifest.basename + ".unused"))
    request.output("--out_wrapper", variant.wrapper)
    request.output("--out_kernels", variant.kernels)
    if variant.cuda_images:
        request.output("--out_cuda_images", variant.cuda_images)
        if ctx.file.tuning:
            request.input("--tuning", ctx.file.tuning)
    request.output("--out_manifest", variant.codegen_manifest)
    run_driver(
        ctx,
        mnemonic = "AotiCodegen",
        request = request,
        progress_message = "Generating C++ for {} ({})".format(program.label, ", ".join(model.cuda_archs) if on_cuda else variant.isa),
        triton = model.triton if on_cuda else None,
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
