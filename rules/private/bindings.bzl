"""The typed interfaces of a model: the C++ header and its implementation, and the Python module."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":cc.bzl", "BINDING_COPTS", "compile_sources", "dynamic_library", "make_cc_info")
load(":driver.bzl", "new_request", "run_driver")
load(":names.bzl", "runfiles_path")
load(":unavailable.bzl", "unavailable")

def generate_bindings(ctx, model, out):
    """Declares the action that writes the header and the sources of both interfaces, from the manifest alone.

    Args:
        ctx: the context of aoti_library.
        model: what `requested_model` returned.
        out: what `declare_outputs` returned.
    """
    request = new_request(ctx, "bindings", {
        "namespace": model.cc_namespace,
        "class_name": model.cc_class,
        "header": "{}/{}.h".format(ctx.label.package, model.name).lstrip("/"),
        "py_module": model.name,
        "weights_runfile": runfiles_path(out.weights),
        "embedded": model.embed_weights,
        "threads": model.threads,
    })
    request.input("--manifest", out.manifest)
    request.output("--out_header", out.header)
    request.output("--out_cc", out.binding)
    request.output("--out_digest", out.digest_source)
    request.output("--out_pymodule", out.python_source)
    request.output("--out_pyi", out.python_stub)
    run_driver(
        ctx,
        mnemonic = "AotiBindings",
        request = request,
        progress_message = "Generating bindings for {}".format(model.program.label),
    )

def compile_bindings(ctx, cc, model, out):
    """Compiles the implementation of the header.

    Args:
        ctx: the context of aoti_library.
        cc: what `cc_toolchain_of` returned.
        model: what `requested_model` returned.
        out: what `declare_outputs` returned.

    Returns:
        (CompilationContext with the header, CompilationOutputs)
    """
    return compile_sources(
        ctx,
        cc,
        model.name,
        [out.binding, out.digest_source, out.shim_source],
        BINDING_COPTS,
        [ctx.attr._runtime[CcInfo]],
        public_hdrs = [out.header],
    )

def no_python_module(ctx, torch):
    """Why a target has no Python module; None where it has one.

    Args:
        ctx: the context of a rule with the attribute `python`.
        torch: TorchRuntimeToolchainInfo.

    Returns:
        A message, or None.
    """
    if not ctx.attr.python:
        return "no Python module, because the target has python = False. Remove that for Python targets that depend on it"
    if not torch.python_headers:
        return "no Python module, because the torch runtime toolchain has no Python headers for the target platform"
    return None

def python_module(ctx, cc, model, out, cc_info):
    """Compiles and links the Python module.

    Args:
        ctx: the context of a rule with the attributes `python`, `_python_runtime` and `_runtime`.
        cc: what `cc_toolchain_of` returned.
        model: what `requested_model` returned, or another struct with its `name`, `label` and `torch`.
        out: what `declare_outputs` returned, or another struct with its `python_source`, `python_stub` and `python_module`.
        cc_info: CcInfo: the model as a C++ library.

    Returns:
        A struct: `files` (list of File), `extension` (File or None: the linked module). Where the module can't be made,
        the only file is an error for whoever wants it, and there is no `extension`.
    """
    why = no_python_module(ctx, model.torch)
    if why:
        return struct(files = [unavailable(ctx, model, out.python_module, why)], extension = None)
    python = ctx.attr._python_runtime[CcInfo]
    deps = [make_cc_info(cc_info.compilation_context, ctx.attr._runtime[CcInfo].linking_context), python]
    _, objects = compile_sources(ctx, cc, model.name + ".python", [out.python_source], BINDING_COPTS + ["-fvisibility=hidden"], deps)
    extension = dynamic_library(
        ctx,
        cc,
        name = model.name + "_python",
        outputs = [objects],
        linking_contexts = [cc_info.linking_context, python.linking_context],
        # The threads of the runtime's pool run until the process ends. Nothing but the module's
        # entry is exported: other modules bring their own copy of the runtime.
        linkopts = ["-Wl,-z,nodelete", "-Wl,--exclude-libs,ALL"],
    )
    ctx.actions.symlink(output = out.python_module, target_file = extension)
    return struct(files = [out.python_module, extension, out.python_stub], extension = extension)

def carries_sources(py_info):
    """Whether a py_binary has the sources of its deps in its runfiles by their PyInfo.

    So it is since rules_python has rules of its own, with a PyInfo that tells more: then C++ programs
    neither build nor carry the Python module. Bazel 7's rules know the deps' runfiles alone.

    Args:
        py_info: PyInfo.

    Returns:
        bool
    """
    return hasattr(py_info, "transitive_original_sources")
