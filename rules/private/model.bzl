"""What a target of aoti_library builds, by its attributes, and the files that it declares."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//rules:providers.bzl", "TorchProgramInfo")
load(":cc.bzl", "RUNTIME_TOOLCHAIN")
load(":cuda.bzl", "devices_text", "target_devices")
load(":isa.bzl", "target_isas")
load(":names.bzl", "cc_class_name", "cc_namespace", "identifier", "model_label", "model_name")
load(":shim.bzl", "target_shim")
load(":variant.bzl", "declare_variants")
load(":weights.bzl", "replace_weights")

def _checked_name(ctx, label):
    name = model_name(ctx.label)
    if identifier(name) != name:
        fail('{}: the name "{}" can\'t name a Python module or a C++ class; use letters, digits and "_"'.format(label, name))
    return name

def _checked_threads(ctx, label):
    if ctx.attr.threads < 0:
        fail("{}: threads = {}: give the number of threads of a call, or 0 for all of the CPU".format(label, ctx.attr.threads))
    return ctx.attr.threads

def _checked_shim(ctx, label, torch, program, devices):
    if "cuda" in devices:
        in_cpp = [ops.label for ops in program.custom_ops if not ops.python.triton]
        if in_cpp:
            fail("{}: {}, but the operators of {} are written for the CPU: write them with Triton (torch_triton_ops), or compile the model for the CPU".format(
                label,
                devices_text(devices),
                ", ".join(in_cpp),
            ))
        return "slim"
    on_tensor = [ops.label for ops in program.custom_ops if not ops.slim]
    shim, error = target_shim(ctx.attr.shim or ctx.attr._shim[BuildSettingInfo].value, bool(torch.libtorch), on_tensor)
    if error:
        fail("{}: {}".format(label, error))
    return shim

def _program(ctx):
    program = ctx.attr.program[TorchProgramInfo]
    if ctx.file.weights:
        return replace_weights(ctx, program, ctx.file.weights, ctx.attr.weights.label)
    return program

def requested_model(ctx):
    """What the attributes ask for. Fails where they can't be fulfilled.

    Args:
        ctx: the context of aoti_library.

    Returns:
        A struct: `label` (string, as errors show it), `name` (string), `program` (TorchProgramInfo), `torch`
        (TorchRuntimeToolchainInfo), `isas` (list of string, the lowest first), `devices` (list of string, the CPU first), `cuda_archs` (list of string, the lowest first), `triton` (TritonToolchainInfo, or None for the CPU alone), `shim` (one of SHIMS), `threads` (int),
        `embed_weights` (bool), `options` (dict), `cc_namespace` (string), `cc_class` (string).
    """
    torch = ctx.toolchains[RUNTIME_TOOLCHAIN].torch_runtime
    label = model_label(ctx.label)
    name = _checked_name(ctx, label)
    program = _program(ctx)
    target = target_devices(ctx, label)
    return struct(
        label = label,
        name = name,
        program = program,
        torch = torch,
        isas = target_isas(ctx, label),
        devices = target.devices,
        cuda_archs = target.cuda_archs,
        triton = target.triton,
        shim = _checked_shim(ctx, label, torch, program, target.devices),
        threads = _checked_threads(ctx, label),
        embed_weights = ctx.attr.embed_weights,
        options = ctx.attr.options,
        cc_namespace = ctx.attr.cc_namespace or cc_namespace(ctx.label),
        cc_class = ctx.attr.cc_class or cc_class_name(name),
    )

def declare_outputs(ctx, model):
    """Declares the files that the driver and the shell write. Those of compilers and linkers have names by convention.

    Args:
        ctx: the context of aoti_library.
        model: what `requested_model` returned.

    Returns:
        A struct of File, with two exceptions: `variants` are what `declare_variant` returned, for each instruction set and CUDA;
        `libtorch_folder` is None unless the shim is `auto`. `weights` are the program's own where libtorch reads them.
    """
    name = model.name
    declare = ctx.actions.declare_file
    code_provenance = declare(name + ".code.provenance.json")
    return struct(
        variants = declare_variants(ctx, name, model.isas, model.devices),
        manifest = declare(name + ".manifest.json"),
        shim_source = declare(name + ".shim.cc"),
        libtorch_folder = ctx.actions.declare_directory(name + ".libtorch") if model.shim == "auto" else None,
        weights = model.program.weights if model.shim == "libtorch" else declare(name + ".safetensors"),
        header = declare(name + ".h"),
        binding = declare(name + ".binding.cc"),
        digest_source = declare(name + ".digest.cc"),
        python_source = declare(name + ".python.cc"),
        python_stub = declare(name + ".pyi"),
        python_module = declare(name + ".so"),
        package = declare(name + ".pt2"),
        report = declare(name + ".report.txt"),
        code_provenance = code_provenance,
        linked_provenance = declare(name + ".linked.provenance.json") if model.program.custom_ops else code_provenance,
        provenance = declare(name + ".provenance.json"),
        sbom = declare(name + ".cdx.json"),
    )
