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
    "WRAPPER_COPTS",
    "cc_toolchain_of",
    "compile_sources",
    "dynamic_libraries",
    "dynamic_library",
    "library_on_libtorch",
    "make_cc_info",
    "merge_cc_infos",
    "static_library",
)
load(":driver.bzl", "TORCH_TOOLCHAIN", "new_request", "run_driver")
load(":isa.bzl", "DEFAULT_ISA", "ISAS", "isa_error")
load(":names.bzl", "cc_class_name", "cc_namespace", "identifier", "model_label", "model_name", "program_id", "runfiles_path")
load(":shim.bzl", "SHIMS", "choose_shim", "fallback_program", "libtorch_folder", "linked_library", "program_library")
load(":weights.bzl", "embed_weights", "pack_weights")

RUNTIME_TOOLCHAIN = "//toolchain:runtime_toolchain_type"

def _target_cpu(ctx):
    for cpu, constraint in [("x86_64", ctx.attr._x86_64), ("aarch64", ctx.attr._aarch64)]:
        if ctx.target_platform_has_constraint(constraint[platform_common.ConstraintValueInfo]):
            return cpu
    return ""

def _target_isa(ctx, label):
    cpu = _target_cpu(ctx)
    isa = ctx.attr.isa or DEFAULT_ISA.get(cpu, "")
    error = isa_error(isa, cpu)
    if error:
        fail("{}: {}".format(label, error))
    return isa

def _target_shim(ctx, label):
    shim = ctx.attr.shim or ctx.attr._shim[BuildSettingInfo].value
    if shim not in SHIMS:
        fail('{}: shim = "{}" is not known; available: {}'.format(label, shim, ", ".join(SHIMS)))
    return shim

def _generate_code(ctx, program, isa, out):
    """Inductor's C++ for the program: never sees the weights."""
    spec = {
        "program_id": program_id(ctx.label),
        "isa": isa,
        "options": {name: json.decode(value, default = value) for name, value in ctx.attr.options.items()},
        "preload": [],
    }
    request = new_request(ctx, "codegen", spec)
    request.args.add(program.graph, format = "--graph=%s")
    request.args.add(program.manifest, format = "--manifest=%s")
    request.args.add(out.wrapper, format = "--out_wrapper=%s")
    request.args.add(out.kernels, format = "--out_kernels=%s")
    request.args.add(out.interface, format = "--out_interface=%s")
    request.args.add(out.codegen_manifest, format = "--out_manifest=%s")
    run_driver(
        ctx,
        mnemonic = "AotiCodegen",
        request = request,
        inputs = depset([program.graph, program.manifest]),
        outputs = [out.wrapper, out.kernels, out.interface, out.codegen_manifest],
        progress_message = "Generating C++ for {}".format(program.label),
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

def _package(ctx, program, manifest, library, package):
    request = new_request(ctx, "package")
    request.args.add(library, format = "--lib=%s")
    request.args.add(program.graph, format = "--graph=%s")
    request.args.add(program.weights, format = "--weights=%s")
    request.args.add(manifest, format = "--manifest=%s")
    request.args.add(package, format = "--out=%s")
    run_driver(
        ctx,
        mnemonic = "AotiPackage",
        request = request,
        inputs = depset([library, program.graph, program.weights, manifest]),
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
        wrapper = declare(name + ".program.cpp"),
        kernels = declare(name + ".kernels.cpp"),
        interface = declare(name + ".interface.cpp"),
        codegen_manifest = declare(name + ".codegen.json"),
        manifest = declare(name + ".manifest.json"),
        shim_source = declare(name + ".shim.cc"),
        header = declare(name + ".h"),
        binding = declare(name + ".binding.cc"),
        python_source = declare(name + ".python.cc"),
        python_stub = declare(name + ".pyi"),
        python_module = declare(name + ".so"),
        package = declare(name + ".pt2"),
        report = declare(name + ".report.txt"),
    )

def _link_program(ctx, cc, torch, shim, name, out, wrapper, kernels):
    """What the program brings to whoever links it.

    Returns:
        A struct: `objects` (list of CompilationOutputs for the static library), `deps` (list of
        CcInfo), `folder_library` (File or None: what `auto` falls back to).
    """
    runtime = ctx.attr._runtime[CcInfo]
    deps = [runtime, torch.torch_headers]
    objects, linked = [], []
    on_libtorch = wrapper if shim == "libtorch" else None
    if shim != "libtorch":
        slim = ctx.attr._slim[CcInfo]
        _, program = compile_sources(ctx, cc, name + ".slim", [out.wrapper], WRAPPER_COPTS + ["-DAOTI_SLIM"], deps + [slim])
        objects, linked = [program, kernels], [slim]
    if shim == "auto":
        # Not `wrapper`: models that turn out to run on slim need not wait for its compilation.
        source = fallback_program(ctx, name, out.wrapper, out.manifest)
        _, on_libtorch = compile_sources(ctx, cc, name + ".fallback", [source], WRAPPER_COPTS, deps)
    library = None
    if on_libtorch:
        library = program_library(
            ctx,
            cc,
            [on_libtorch, kernels],
            torch.libtorch,
            BINDING_COPTS,
            [runtime],
            ctx.attr._parallel_openmp[CcInfo],
            rpath = "$ORIGIN" if shim == "auto" else None,
        )
    if shim == "libtorch":
        linked = [linked_library(ctx, cc, library, torch.libtorch)]
    return struct(objects = objects, deps = linked, folder_library = library)

def _aoti_library_impl(ctx):
    program = ctx.attr.program[TorchProgramInfo]
    torch = ctx.toolchains[RUNTIME_TOOLCHAIN].torch_runtime
    label = model_label(ctx.label)
    name = model_name(ctx.label)
    if identifier(name) != name:
        fail('{}: the name "{}" can\'t name a Python module or a C++ class; use letters, digits and "_"'.format(label, name))
    if ctx.attr.threads < 0:
        fail("{}: threads = {}: give the number of threads of a call, or 0 for all of the CPU".format(label, ctx.attr.threads))
    isa = _target_isa(ctx, label)
    shim = _target_shim(ctx, label)
    namespace = ctx.attr.cc_namespace or cc_namespace(ctx.label)
    class_name = ctx.attr.cc_class or cc_class_name(name)

    out = _declare_outputs(ctx, name)
    libtorch_files = ctx.actions.declare_directory(name + ".libtorch") if shim == "auto" else None
    weights = program.weights
    if shim != "libtorch":
        weights = ctx.actions.declare_file(name + ".safetensors")
        pack_weights(ctx, program, out.manifest, weights)
    _generate_code(ctx, program, isa, out)
    choose_shim(ctx, program, shim, out.codegen_manifest, out.manifest, out.shim_source, libtorch_files)
    _generate_bindings(ctx, program, namespace, class_name, weights, out)

    cc = cc_toolchain_of(ctx)
    runtime = ctx.attr._runtime[CcInfo]
    code_deps = [runtime, torch.torch_headers]

    # Only the kernels may use the ISA: an inline function of the standard library, compiled for it
    # elsewhere, could be the copy that the linker keeps for the whole binary.
    _, kernels = compile_sources(ctx, cc, name + ".kernels", [out.kernels], KERNEL_COPTS + ISAS[isa].copts, code_deps)
    header_context, binding = compile_sources(ctx, cc, name, [out.binding, out.shim_source], BINDING_COPTS, [runtime], public_hdrs = [out.header])
    _, wrapper = compile_sources(ctx, cc, name + ".program", [out.wrapper], WRAPPER_COPTS, code_deps)
    _, interface = compile_sources(ctx, cc, name + ".interface", [out.interface], WRAPPER_COPTS, code_deps)
    python_deps = [make_cc_info(header_context, runtime.linking_context), ctx.attr._python_runtime[CcInfo]]
    _, python_objects = compile_sources(ctx, cc, name + ".python", [out.python_source], BINDING_COPTS + ["-fvisibility=hidden"], python_deps)

    linked = _link_program(ctx, cc, torch, shim, name, out, wrapper, kernels)
    objects = [binding] + linked.objects
    if ctx.attr.embed_weights:
        objects.append(embed_weights(ctx, cc, weights))
    linking_context = static_library(ctx, cc, name, objects, [runtime] + linked.deps)
    cc_info = merge_cc_infos([make_cc_info(header_context, linking_context)])

    # What stock PyTorch loads, in a process that has libtorch already.
    shared_library = library_on_libtorch(
        ctx,
        cc,
        name = name,
        outputs = [wrapper, kernels, interface],
        libtorch = torch.libtorch,
        parallel = ctx.attr._parallel_openmp[CcInfo],
        exports = ctx.file._exports,
    )
    extension = dynamic_library(
        ctx,
        cc,
        name = name + "_python",
        outputs = [python_objects],
        linking_contexts = [linking_context, ctx.attr._python_runtime[CcInfo].linking_context],
        # The threads of the runtime's pool run until the process ends. Nothing but the module's
        # entry is exported: other modules bring their own copy of the runtime.
        linkopts = ["-Wl,-z,nodelete", "-Wl,--exclude-libs,ALL"],
    )
    ctx.actions.symlink(output = out.python_module, target_file = extension)
    _package(ctx, program, out.manifest, shared_library, out.package)
    _report(ctx, program, out.manifest, out.report)
    if libtorch_files:
        libtorch_folder(ctx, out.manifest, linked.folder_library, torch.libtorch, libtorch_files)

    sources = [out.wrapper, out.kernels, out.interface, out.header, out.binding, out.shim_source, out.python_source]

    # C++ and Python consumers collect the same runfiles, so both carry the (small) Python module;
    # neither builds the packages.
    python_files = [out.python_module, extension, out.python_stub]
    runfiles = list(python_files)
    if not ctx.attr.embed_weights:
        runfiles.append(weights)
    if libtorch_files:
        runfiles.append(libtorch_files)
    for dep in linked.deps:
        runfiles += dynamic_libraries(dep.linking_context)
    return [
        DefaultInfo(files = depset([shared_library, out.package]), runfiles = ctx.runfiles(files = runfiles)),
        cc_info,
        PyInfo(
            transitive_sources = depset(python_files),
            imports = depset(),
            uses_shared_libraries = True,
        ),
        OutputGroupInfo(
            cpp = depset(sources),
            export = depset([program.package]),
            manifest = depset([out.manifest]),
            package = depset([out.package]),
            python = depset(python_files),
            report = depset([out.report]),
            weights = depset([program.weights]),
        ),
        AotiLibraryInfo(
            program = program,
            manifest = out.manifest,
            header = out.header,
            sources = sources,
            shared_library = shared_library,
            package = out.package,
            python_module = out.python_module,
            cc_namespace = namespace,
            cc_class = class_name,
            weights = weights,
            shim = shim,
            isa = isa,
        ),
    ]

aoti_library = rule(
    implementation = _aoti_library_impl,
    doc = """Compiles a frozen program with AOTInductor and the C++ toolchain of the build.

One target serves C++ (`cc_binary(deps = [":encoder"])`, `#include "models/encoder.h"`), Python
(`py_binary(deps = [":encoder"])`, `from models import encoder`) and stock PyTorch (`encoder.pt2`).

Default outputs: `lib<name>.so` and `<name>.pt2`. Output groups: `export`, `manifest`, `cpp`,
`weights`, `package`, `python`, `report`.""",
    attrs = {
        "program": attr.label(
            doc = "The frozen program: a `torch_export` or `torch_import` target.",
            mandatory = True,
            providers = [TorchProgramInfo],
        ),
        "isa": attr.string(
            doc = "The instruction set to generate code for: `x86-64`, `x86-64-v3`, `x86-64-v4` or `aarch64`. " +
                  "Default: what every CPU of the target platform has; never the build host's.",
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
        "_program_exports": attr.label(default = ":program_library.lds", allow_single_file = True),
        "_parallel_openmp": attr.label(default = "//runtime/libtorch:parallel_openmp", providers = [CcInfo]),
        "_slim": attr.label(default = "//runtime/slim", providers = [CcInfo]),
        "_slim_functions": attr.label(default = "//runtime/slim:functions.txt", allow_single_file = True),
        "_aarch64": attr.label(default = "@platforms//cpu:aarch64"),
        "_x86_64": attr.label(default = "@platforms//cpu:x86_64"),
        "_runtime": attr.label(default = "//runtime", providers = [CcInfo]),
        "_python_runtime": attr.label(default = "//runtime/python", providers = [CcInfo]),
        "_shim": attr.label(default = "//runtime:shim", providers = [BuildSettingInfo]),
    },
    provides = [AotiLibraryInfo, CcInfo, PyInfo],
    fragments = ["cpp"],
    toolchains = [TORCH_TOOLCHAIN, RUNTIME_TOOLCHAIN] + use_cc_toolchain(),
)
