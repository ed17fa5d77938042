"""What stock PyTorch loads: `lib<name>.so`, and the AOTInductor package `<name>.pt2` around it."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":cc.bzl", "STOCK_COPTS", "compile_sources", "library_on_libtorch")
load(":cuda.bzl", "NO_STOCK")
load(":driver.bzl", "new_request", "run_driver")
load(":unavailable.bzl", "unavailable")

def has_stock_library(model):
    """Whether there is anything for stock PyTorch.

    Args:
        model: what `requested_model` returned.

    Returns:
        bool
    """
    return bool(model.torch.libtorch) and "cpu" in model.devices

def stock_library(ctx, cc, model, out, kernels, note):
    """Compiles and links the library that stock PyTorch loads, in a process that has libtorch already.

    It has no way to choose: the lowest instruction set.

    Args:
        ctx: the context of aoti_library.
        cc: what `cc_toolchain_of` returned.
        model: what `requested_model` returned.
        out: what `declare_outputs` returned.
        kernels: CompilationOutputs, for the lowest instruction set.
        note: CompilationOutputs: the provenance.

    Returns:
        File; an error for whoever wants it where there is no libtorch for the target platform, or the program is for CUDA
    """
    if not has_stock_library(model):
        return unavailable(
            ctx,
            model,
            ctx.actions.declare_file("lib{}.so".format(model.name)),
            NO_STOCK if "cpu" not in model.devices else "what stock PyTorch loads (.so, .pt2) is linked with libtorch, and there is none for the target platform",
        )
    deps = [ctx.attr._runtime[CcInfo], model.torch.torch_headers]
    _, wrapper = compile_sources(ctx, cc, model.name + ".stock", [out.variants[0].wrapper], STOCK_COPTS, deps)
    return library_on_libtorch(
        ctx,
        cc,
        name = model.name,
        outputs = [wrapper, kernels, note],
        libtorch = model.torch.libtorch,
        deps = [ctx.attr._container[CcInfo], ctx.attr._parallel_openmp[CcInfo]],
        exports = ctx.file._exports,
    )

def package_library(ctx, model, out, library):
    """Declares the action that writes the AOTInductor package.

    Args:
        ctx: the context of aoti_library.
        model: what `requested_model` returned.
        out: what `declare_outputs` returned.
        library: File, what `stock_library` linked.
    """
    program = model.program
    request = new_request(ctx, "package")
    request.input("--lib", library)
    request.input("--graph", program.graph)
    request.input("--weights", program.weights)
    request.input("--manifest", out.manifest)
    request.input("--provenance", out.provenance)
    request.output("--out", out.package)
    run_driver(
        ctx,
        mnemonic = "AotiPackage",
        request = request,
        progress_message = "Packaging {}".format(program.label),
    )
