"""aoti_library: compiles a frozen program for C++, Python and stock PyTorch."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "AotiLibraryInfo", "TorchProgramInfo")
load(
    ":cc.bzl",
    "BINDING_COPTS",
    "KERNEL_COPTS",
    "STOCK_COPTS",
    "WRAPPER_COPTS",
    "cc_toolchain_of",
    "compile_sources",
    "dynamic_libraries",
    "dynamic_library",
    "library_on_libtorch",
    "make_cc_info",
    "merge_cc_infos",
    "static_libraries",
    "static_library",
)
load(":driver.bzl", "CODEGEN", "PACKAGE", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":isa.bzl", "DEFAULT_ISA", "ISAS", "in_order", "isa_error", "isas_error")
load(":names.bzl", "cc_class_name", "cc_namespace", "identifier", "model_label", "model_name", "program_id", "runfiles_path")
load(":provenance.bzl", "provenance_note", "write_provenance", "write_sbom")
load(":shim.bzl", "choose_shim", "fallback_program", "libtorch_folder", "linked_library", "program_library", "target_shim")
load(":weights.bzl", "embed_weights", "pack_weights", "replace_weights")

RUNTIME_TOOLCHAIN = Label("//toolchain:runtime_toolchain_type")

def _target_cpu(ctx):
    for cpu, constraint in [("x86_64", ctx.attr._x86_64), ("aarch64", ctx.attr._aarch64)]:
        if ctx.target_platform_has_constraint(constraint[platform_common.ConstraintValueInfo]):
            return cpu
    return ""

def _target_isas(ctx, label):
    """The instruction sets to build for, the lowest first."""
    cpu = _target_cpu(ctx)
    if ctx.attr.isa and ctx.attr.isas:
        fail("{}: give isa or isas, not both".format(label))
    if ctx.attr.isas:
        error = isas_error(ctx.attr.isas, cpu)
        isas = in_order(ctx.attr.isas)
    else:
        isa = ctx.attr.isa or ctx.attr._isa[BuildSettingInfo].value or _platform_isa(ctx) or DEFAULT_ISA.get(cpu, "")
        error = isa_error(isa, cpu)
        isas = [isa]
    if error:
        fail("{}: {}".format(label, error))
    return isas

def _platform_isa(ctx):
    for constraint in ctx.attr._isas:
        if ctx.target_platform_has_constraint(constraint[platform_common.ConstraintValueInfo]):
            return constraint.label.name
    return None

def _target_shim(ctx, torch, label):
    shim, error = target_shim(ctx.attr.shim or ctx.attr._shim[BuildSettingInfo].value, bool(torch.libtorch))
    if error:
        fail("{}: {}".format(label, error))
    return shim

def _variant(ctx, name, isa, lowest):
    """The files and names of the program for one instruction set."""
    suffix = "" if lowest else "." + identifier(isa)
    declare = ctx.actions.declare_file
    return struct(
        isa = isa,
        suffix = suffix,
        program_id = program_id(ctx.label) + suffix.replace(".", "_"),
        wrapper = declare(name + suffix + ".program.cpp"),
        # A folder. Bazel goes by its name too when it chooses flags for the files in it (--cxxopt).
        kernels = ctx.actions.declare_directory(name + suffix + ".kernels.cpp"),
        codegen_manifest = declare(name + suffix + ".codegen.json"),
    )

def _generate_code(ctx, program, variant):
    """Inductor's C++ for the program: never sees the weights."""
    out = variant
    spec = {
        "program_id": variant.program_id,
        "isa": variant.isa,
        "options": {name: json.decode(value, default = value) for name, value in ctx.attr.options.items()},
    }
    request = new_request(ctx, "codegen", spec, suffix = variant.suffix)
    request.args.add(program.graph, format = "--graph=%s")
    request.args.add(program.manifest, format = "--manifest=%s")
    request.args.add(out.wrapper, format = "--out_wrapper=%s")
    request.args.add_all([out.kernels], format_each = "--out_kernels=%s", expand_directories = False)
    request.args.add(out.codegen_manifest, format = "--out_manifest=%s")
    run_driver(
        ctx,
        mnemonic = "AotiCodegen",
        request = request,
        inputs = depset([program.graph, program.manifest]),
        outputs = [out.wrapper, out.kernels, out.codegen_manifest],
        progress_message = "Generating C++ for {} ({})".format(program.label, variant.isa),
    )

def _generate_bindings(ctx, program, namespace, class_name, weights, out):
    name = model_name(ctx.label)
    spec = {
        "namespace": namespace,
        "class_name": class_name,
        "header": "{}/{}.h".format(ctx.label.package, name).lstrip("/"),
        "py_module": name,
        "weights_runfile": runfiles_path(weights),
        "embedded": ctx.attr.embed_weights,
        "threads": ctx.attr.threads,
    }
    request = new_request(ctx, "bindings", spec)
    request.args.add(out.manifest, format = "--manifest=%s")
    request.args.add(out.header, format = "--out_header=%s")
    request.args.add(out.binding, format = "--out_cc=%s")
    request.args.add(out.python_source, format = "--out_pymodule=%s")
    request.args.add(out.python_stub, format = "--out_pyi=%s")
    run_driver(
        ctx,
        mnemonic = "AotiBindings",
        request = request,
        inputs = depset([out.manifest]),
        outputs = [out.header, out.binding, out.python_source, out.python_stub],
        progress_message = "Generating bindings for {}".format(program.label),
    )

def _package(ctx, program, manifest, library, provenance, package):
    request = new_request(ctx, "package")
    request.args.add(library, format = "--lib=%s")
    request.args.add(program.graph, format = "--graph=%s")
    request.args.add(program.weights, format = "--weights=%s")
    request.args.add(manifest, format = "--manifest=%s")
    request.args.add(provenance, format = "--provenance=%s")
    request.args.add(package, format = "--out=%s")
    run_driver(
        ctx,
        mnemonic = "AotiPackage",
        request = request,
        inputs = depset([library, program.graph, program.weights, manifest, provenance]),
        outputs = [package],
        progress_message = "Packaging {}".format(program.label),
    )

def _report(ctx, program, manifest, report):
    request = new_request(ctx, "report")
    request.args.add(manifest, format = "--manifest=%s")
    request.args.add(report, format = "--out=%s")
    run_driver(
        ctx,
        mnemonic = "AotiReport",
        request = request,
        inputs = depset([manifest]),
        outputs = [report],
        progress_message = "Reporting on {}".format(program.label),
    )

def _declare_outputs(ctx, name):
    declare = ctx.actions.declare_file
    return struct(
        manifest = declare(name + ".manifest.json"),
        shim_source = declare(name + ".shim.cc"),
        header = declare(name + ".h"),
        binding = declare(name + ".binding.cc"),
        python_source = declare(name + ".python.cc"),
        python_stub = declare(name + ".pyi"),
        python_module = declare(name + ".so"),
        package = declare(name + ".pt2"),
        report = declare(name + ".report.txt"),
        code_provenance = declare(name + ".code.provenance.json"),
        provenance = declare(name + ".provenance.json"),
        sbom = declare(name + ".cdx.json"),
    )

def _compile_variant(ctx, cc, torch, shim, name, variant, manifest):
    """Compiles the program for one instruction set.

    Returns:
        A struct: `slim`, `libtorch` (CompilationOutputs of the whole program for this shim, or None).
    """
    name = name + variant.suffix
    deps = [ctx.attr._runtime[CcInfo], torch.torch_headers]

    # Only the kernels may use the ISA: an inline function of the standard library, compiled for it
    # elsewhere, could be the copy that the linker keeps for the whole binary.
    _, kernels = compile_sources(ctx, cc, name + ".kernels", [variant.kernels], KERNEL_COPTS + ISAS[variant.isa].copts, deps)
    slim, libtorch = None, None
    if shim != "libtorch":
        _, slim = compile_sources(ctx, cc, name + ".slim", [variant.wrapper], WRAPPER_COPTS + ["-DAOTI_SLIM"], deps + [ctx.attr._slim[CcInfo]])
    if shim == "libtorch":
        _, libtorch = compile_sources(ctx, cc, name + ".program", [variant.wrapper], WRAPPER_COPTS, deps)
    if shim == "auto":
        # Not the wrapper itself: models that turn out to run on slim need not wait for its compilation.
        source = fallback_program(ctx, name, variant.wrapper, manifest)
        _, libtorch = compile_sources(ctx, cc, name + ".fallback", [source], WRAPPER_COPTS, deps)
    return struct(
        kernels = kernels,
        slim = [slim, kernels] if slim else [],
        libtorch = [libtorch, kernels] if libtorch else [],
        program_id = variant.program_id,
    )

def _link_program(ctx, cc, torch, shim, compiled):
    """What the program brings to whoever links it.

    Args:
        ctx: the rule's context.
        cc: what `cc_toolchain_of` returned.
        torch: TorchRuntimeToolchainInfo.
        shim: one of SHIMS.
        compiled: what `_compile_variant` returned, for each instruction set.

    Returns:
        A struct: `objects` (list of CompilationOutputs for the static library), `deps` (list of
        CcInfo), `folder_library` (File or None: what `auto` falls back to).
    """
    objects = [outputs for variant in compiled for outputs in variant.slim]
    linked = [ctx.attr._slim[CcInfo]] if objects else []
    library = None
    if shim != "slim":
        library = program_library(
            ctx,
            cc,
            {variant.program_id: variant.libtorch for variant in compiled},
            torch.libtorch,
            BINDING_COPTS,
            [ctx.attr._runtime[CcInfo]],
            ctx.attr._parallel_openmp[CcInfo],
            rpath = "$ORIGIN" if shim == "auto" else None,
        )
    if shim == "libtorch":
        linked = [linked_library(ctx, cc, library, torch.libtorch)]
    return struct(objects = objects, deps = linked, folder_library = library)

def _unavailable(ctx, output, why):
    """Declares an output that can't be made for the target platform: an error if somebody wants it."""
    ctx.actions.run_shell(
        mnemonic = "AotiUnavailable",
        command = """printf '%s\\n' "$1" >&2; exit 1""",
        arguments = ["{}: {}".format(model_label(ctx.label), why)],
        outputs = [output],
        progress_message = "Refusing to make {}".format(output.short_path),
        toolchain = None,
    )
    return output

def _stock_library(ctx, cc, torch, name, lowest, kernels, note):
    """What stock PyTorch loads, in a process that has libtorch already.

    It has no way to choose: the lowest instruction set.
    """
    if not torch.libtorch:
        return _unavailable(
            ctx,
            ctx.actions.declare_file("lib{}.so".format(name)),
            "what stock PyTorch loads (.so, .pt2) is linked with libtorch, and there is none for the target platform",
        )
    _, wrapper = compile_sources(ctx, cc, name + ".stock", [lowest.wrapper], STOCK_COPTS, [ctx.attr._runtime[CcInfo], torch.torch_headers])
    return library_on_libtorch(
        ctx,
        cc,
        name = name,
        outputs = [wrapper, kernels, note],
        libtorch = torch.libtorch,
        deps = [ctx.attr._container[CcInfo], ctx.attr._parallel_openmp[CcInfo]],
        exports = ctx.file._exports,
    )

def _python_extension(ctx, cc, torch, name, out, header_context, linking_context):
    """The Python module: a list of its files, the first of which is an error where it can't be made."""
    if not torch.python_headers:
        return [_unavailable(
            ctx,
            out.python_module,
            "no Python module, because the torch runtime toolchain has no Python headers for the target platform",
        )]
    python = ctx.attr._python_runtime[CcInfo]
    deps = [make_cc_info(header_context, ctx.attr._runtime[CcInfo].linking_context), python]
    _, objects = compile_sources(ctx, cc, name + ".python", [out.python_source], BINDING_COPTS + ["-fvisibility=hidden"], deps)
    extension = dynamic_library(
        ctx,
        cc,
        name = name + "_python",
        outputs = [objects],
        linking_contexts = [linking_context, python.linking_context],
        # The threads of the runtime's pool run until the process ends. Nothing but the module's
        # entry is exported: other modules bring their own copy of the runtime.
        linkopts = ["-Wl,-z,nodelete", "-Wl,--exclude-libs,ALL"],
    )
    ctx.actions.symlink(output = out.python_module, target_file = extension)
    return [out.python_module, extension, out.python_stub]

def carries_sources(py_info):
    """Does a py_binary have the sources of its deps in its runfiles by their PyInfo?

    So it is since rules_python has rules of its own, with a PyInfo that tells more: then C++ programs
    neither build nor carry the Python module. Bazel 7's rules know the deps' runfiles alone.

    Args:
        py_info: PyInfo.

    Returns:
        bool
    """
    return hasattr(py_info, "transitive_original_sources")

def _aoti_library_impl(ctx):
    program = ctx.attr.program[TorchProgramInfo]
    if ctx.file.weights:
        program = replace_weights(ctx, program, ctx.file.weights, ctx.attr.weights.label)
    torch = ctx.toolchains[RUNTIME_TOOLCHAIN].torch_runtime
    label = model_label(ctx.label)
    name = model_name(ctx.label)
    if identifier(name) != name:
        fail('{}: the name "{}" can\'t name a Python module or a C++ class; use letters, digits and "_"'.format(label, name))
    if ctx.attr.threads < 0:
        fail("{}: threads = {}: give the number of threads of a call, or 0 for all of the CPU".format(label, ctx.attr.threads))
    isas = _target_isas(ctx, label)
    shim = _target_shim(ctx, torch, label)
    namespace = ctx.attr.cc_namespace or cc_namespace(ctx.label)
    class_name = ctx.attr.cc_class or cc_class_name(name)

    out = _declare_outputs(ctx, name)
    variants = [_variant(ctx, name, isa, lowest = isa == isas[0]) for isa in isas]
    lowest = variants[0]
    libtorch_files = ctx.actions.declare_directory(name + ".libtorch") if shim == "auto" else None
    weights = program.weights
    if shim != "libtorch":
        weights = ctx.actions.declare_file(name + ".safetensors")
        pack_weights(ctx, program, out.manifest, out.code_provenance, weights)
    for variant in variants:
        _generate_code(ctx, program, variant)
    choose_shim(ctx, program, shim, bool(torch.libtorch), [variant.codegen_manifest for variant in variants], out.manifest, out.shim_source, libtorch_files)
    _generate_bindings(ctx, program, namespace, class_name, weights, out)

    # What compiled code carries says nothing of the weights: new ones must compile nothing.
    write_provenance(ctx, out.manifest, out.code_provenance)
    write_provenance(
        ctx,
        out.manifest,
        out.provenance,
        weights = program.weights,
        packed = weights if weights != program.weights else None,
    )

    cc = cc_toolchain_of(ctx)
    runtime = ctx.attr._runtime[CcInfo]

    compiled = [_compile_variant(ctx, cc, torch, shim, name, variant, out.manifest) for variant in variants]
    header_context, binding = compile_sources(ctx, cc, name, [out.binding, out.shim_source], BINDING_COPTS, [runtime], public_hdrs = [out.header])

    note = provenance_note(ctx, cc, out.code_provenance)
    linked = _link_program(ctx, cc, torch, shim, compiled)
    objects = [binding, note] + linked.objects
    if ctx.attr.embed_weights:
        objects.append(embed_weights(ctx, cc, weights))
    linking_context = static_library(ctx, cc, name, objects, [runtime] + linked.deps)
    cc_info = merge_cc_infos([make_cc_info(header_context, linking_context)])

    shared_library = _stock_library(ctx, cc, torch, name, lowest, compiled[0].kernels, note)
    python_files = _python_extension(ctx, cc, torch, name, out, header_context, linking_context)
    _package(ctx, program, out.manifest, shared_library, out.provenance, out.package)
    _report(ctx, program, out.manifest, out.report)
    shipped = [("weights", weights)]
    if torch.python_headers:
        shipped = [("python", python_files[1])] + shipped
    if torch.libtorch:
        shipped = [("library", shared_library), ("package", out.package)] + shipped
    else:
        shipped = [("library", file) for file in static_libraries(linking_context, ctx.label)] + shipped
    write_sbom(ctx, out.manifest, out.provenance, shipped, out.sbom)
    if libtorch_files:
        libtorch_folder(ctx, out.manifest, linked.folder_library, torch.libtorch, libtorch_files)

    sources = [file for v in variants for file in [v.wrapper, v.kernels]]
    sources += [out.header, out.binding, out.shim_source, out.python_source]

    py_info = PyInfo(
        transitive_sources = depset(python_files),
        imports = depset(),
        uses_shared_libraries = True,
    )

    # C++ and Python consumers collect the same runfiles: what both need, and no package.
    runfiles = [] if ctx.attr.embed_weights else [weights]
    if torch.python_headers and not carries_sources(py_info):
        runfiles = runfiles + python_files
    if libtorch_files:
        runfiles = runfiles + [libtorch_files]
    for dep in linked.deps:
        runfiles = runfiles + dynamic_libraries(dep.linking_context)
    files = [shared_library, out.package] if torch.libtorch else static_libraries(linking_context, ctx.label)
    return [
        DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files = runfiles)),
        cc_info,
        py_info,
        OutputGroupInfo(
            cpp = depset(sources),
            export = depset([program.package]),
            manifest = depset([out.manifest]),
            package = depset([out.package]),
            provenance = depset([out.provenance]),
            python = depset(python_files),
            report = depset([out.report]),
            sbom = depset([out.sbom]),
            weights = depset([program.weights]),
        ),
        AotiLibraryInfo(
            program = program,
            manifest = out.manifest,
            provenance = out.provenance,
            header = out.header,
            sources = sources,
            shared_library = shared_library,
            package = out.package,
            python_module = out.python_module,
            cc_namespace = namespace,
            cc_class = class_name,
            weights = weights,
            shim = shim,
            isa = lowest.isa,
            isas = isas,
        ),
    ]

aoti_library = rule(
    implementation = _aoti_library_impl,
    doc = """Compiles a frozen program with AOTInductor and the C++ toolchain of the build.

One target serves C++ (`cc_binary(deps = [":encoder"])`, `#include "models/encoder.h"`), Python
(`py_binary(deps = [":encoder"])`, `from models import encoder`) and stock PyTorch (`encoder.pt2`).

Default outputs: `lib<name>.so` and `<name>.pt2`, or the static library where the toolchain has no
libtorch for the target platform. Output groups: `export`, `manifest`, `cpp`,
`weights`, `package`, `python`, `report`, `provenance`, `sbom`.""",
    attrs = {
        "program": attr.label(
            doc = "The frozen program: a `torch_export` or `torch_import` target.",
            mandatory = True,
            providers = [TorchProgramInfo],
        ),
        "weights": attr.label(
            doc = """Other weights for the program, in place of those that it was exported with: a safetensors file with
the program's tensors by their names in the module's state dict. Names, shapes and dtypes are
checked. Nothing is exported, generated or compiled anew. See docs/frozen.md.""",
            allow_single_file = [".safetensors"],
        ),
        "isa": attr.string(
            doc = "The instruction set to generate code for: `x86-64`, `x86-64-v3`, `x86-64-v4` or `aarch64`. " +
                  "Default: the build setting `//toolchain:isa`, else what the target platform says " +
                  "(`//toolchain/isa`), else what every CPU of its kind has; never the build host's.",
        ),
        "isas": attr.string_list(
            doc = """In place of `isa`: several instruction sets, such as `["x86-64-v3", "x86-64-v4"]`.

The program is built for each, and loading the model takes the best that the CPU has; on a CPU that
has none of them it is an error that says what is needed. Name `x86-64` too for a program that runs
on all. Stock PyTorch (`<name>.pt2`) gets the lowest.""",
        ),
        "shim": attr.string(
            doc = """The implementation of AOTInductor's C ABI to link. Default: the build setting `//runtime:shim`.

`slim` is ours: static, small, without libtorch; a model that needs an operator that it lacks is an
error that names it. `libtorch` is PyTorch's own. `auto` takes slim where it has all that the model
needs and libtorch otherwise, and says so in the build's output and in the manifest.""",
        ),
        "threads": attr.int(
            doc = "How many threads one call of the model may use, unless the program that loads it says otherwise. 0: as many as the CPU has.",
            default = 0,
        ),
        "embed_weights": attr.bool(
            doc = "Whether the weights become a part of the binary, up to about 1.5 GB, in place of a file in the runfiles.",
            default = False,
        ),
        "options": attr.string_dict(
            doc = "Options of `torch._inductor.config`, with values in JSON: `{\"cpp.fallback_scatter_reduce_sum\": \"false\"}`.",
        ),
        "cc_namespace": attr.string(
            doc = "C++ namespace of the generated class. Default: the package, `a/b` as `a::b`.",
        ),
        "cc_class": attr.string(
            doc = "Name of the generated C++ class. Default: the target's name in camel case.",
        ),
        "_exports": attr.label(default = ":stock_library.lds", allow_single_file = True),
        "_container": attr.label(default = ":stock_container", providers = [CcInfo]),
        "_program_exports": attr.label(default = ":program_library.lds", allow_single_file = True),
        "_parallel_openmp": attr.label(default = "//runtime/libtorch:parallel_openmp", providers = [CcInfo]),
        "_slim": attr.label(default = "//runtime/slim", providers = [CcInfo]),
        "_slim_dtypes": attr.label(default = "//runtime/slim:dtypes.txt", allow_single_file = True),
        "_slim_functions": attr.label(default = "//runtime/slim:functions.txt", allow_single_file = True),
        "_aarch64": attr.label(default = "@platforms//cpu:aarch64"),
        "_x86_64": attr.label(default = "@platforms//cpu:x86_64"),
        "_runtime": attr.label(default = "//runtime", providers = [CcInfo]),
        "_python_runtime": attr.label(default = "//runtime/python", providers = [CcInfo]),
        "_shim": attr.label(default = "//runtime:shim", providers = [BuildSettingInfo]),
        "_isa": attr.label(default = "//toolchain:isa", providers = [BuildSettingInfo]),
        "_isas": attr.label_list(
            default = ["//toolchain/isa:" + isa for isa in ISAS],
            providers = [platform_common.ConstraintValueInfo],
        ),
    },
    provides = [AotiLibraryInfo, CcInfo, PyInfo],
    exec_groups = driver_exec_groups(CODEGEN, PACKAGE),
    fragments = ["cpp"],
    toolchains = [TORCH_TOOLCHAIN, RUNTIME_TOOLCHAIN] + use_cc_toolchain(),
)
