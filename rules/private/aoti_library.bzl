"""aoti_library: compiles a frozen program for C++, Python and stock PyTorch."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "AotiLibraryInfo", "TorchProgramInfo")
load(":bindings.bzl", "carries_sources", "compile_bindings", "generate_bindings", "python_module")
load(":cc.bzl", "RUNTIME_TOOLCHAIN", "cc_toolchain_of", "dynamic_libraries", "make_cc_info", "merge_cc_infos", "static_libraries", "static_library")
load(":cuda.bzl", "CUDA_ATTRS")
load(":driver.bzl", "CODEGEN", "PACKAGE", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":isa.bzl", "ISA_ATTRS")
load(":model.bzl", "declare_outputs", "requested_model")
load(":provenance.bzl", "provenance_note", "write_provenance", "write_sbom")
load(":shim.bzl", "choose_shim", "libtorch_folder", "link_program")
load(":stock.bzl", "has_stock_library", "package_library", "stock_library")
load(":variant.bzl", "compile_variant", "generate_code")
load(":weights.bzl", "embed_weights", "pack_weights")

def _aoti_library_impl(ctx):
    model = requested_model(ctx)
    out = declare_outputs(ctx, model)
    cc = cc_toolchain_of(ctx)

    # What the driver writes from the program.
    for variant in out.variants:
        generate_code(ctx, model, variant)
    choose_shim(ctx, model, out)
    generate_bindings(ctx, model, out)
    _write_provenances(ctx, model, out)
    if model.shim != "libtorch":
        pack_weights(ctx, model.program, out.manifest, out.code_provenance, out.weights)

    # What the C++ toolchain makes of it.
    variants = [compile_variant(ctx, cc, model, out, variant) for variant in out.variants]
    note = provenance_note(ctx, cc, out.linked_provenance)
    linked = link_program(ctx, cc, model, variants)
    cc_info = _cc_library(ctx, cc, model, out, linked, note)
    python = python_module(ctx, cc, model, out, cc_info)
    library = stock_library(ctx, cc, model, out, variants[0].kernels, note)

    # What is made of both.
    package_library(ctx, model, out, library)
    if out.libtorch_folder:
        libtorch_folder(ctx, model, out, linked.folder_library)
    _report(ctx, model, out)
    archives = static_libraries(cc_info.linking_context, ctx.label)
    write_sbom(ctx, out.manifest, out.provenance, _shipped(model, out, archives, library, python), out.sbom)

    py_info = PyInfo(transitive_sources = depset(python.files), imports = depset(), uses_shared_libraries = True)
    sources = _sources(out)
    return [
        DefaultInfo(
            files = depset([library, out.package] if has_stock_library(model) else archives),
            runfiles = ctx.runfiles(files = _runfiles(model, out, linked, python, py_info)),
        ),
        cc_info,
        py_info,
        _output_groups(model, out, sources, python),
        _library_info(model, out, sources, library),
    ]

def _write_provenances(ctx, model, out):
    """Two: what compiled code carries says nothing of the weights, since new ones must compile nothing.

    With operators of its own there is a third: packed weights don't depend on their sources.
    """
    weights = model.program.weights
    custom_ops = model.program.custom_ops
    triton = model.triton
    write_provenance(ctx, out.manifest, out.code_provenance, triton = triton)
    if custom_ops:
        write_provenance(ctx, out.manifest, out.linked_provenance, custom_ops = custom_ops)
    write_provenance(
        ctx,
        out.manifest,
        out.provenance,
        weights = weights,
        packed = out.weights if out.weights != weights else None,
        custom_ops = custom_ops,
        triton = triton,
    )

def _report(ctx, model, out):
    request = new_request(ctx, "report")
    request.input("--manifest", out.manifest)
    request.output("--out", out.report)
    run_driver(
        ctx,
        mnemonic = "AotiReport",
        request = request,
        progress_message = "Reporting on {}".format(model.program.label),
    )

def _cc_library(ctx, cc, model, out, linked, note):
    """The model as a C++ library: its static library, with all that this is linked with, and its header."""
    header_context, binding = compile_bindings(ctx, cc, model, out)
    objects = [binding, note] + linked.objects
    if model.embed_weights:
        objects.append(embed_weights(ctx, cc, out.weights))
    linking_context = static_library(ctx, cc, model.name, objects, [ctx.attr._runtime[CcInfo]] + linked.deps)
    return merge_cc_infos([make_cc_info(header_context, linking_context)])

def _shipped(model, out, archives, library, python):
    """What the bill of materials lists: (role, File)."""
    if has_stock_library(model):
        shipped = [("library", library), ("package", out.package)]
    else:
        shipped = [("library", archive) for archive in archives]
    if python.extension:
        shipped.append(("python", python.extension))
    return shipped + [("weights", out.weights)]

def _runfiles(model, out, linked, python, py_info):
    """C++ and Python consumers collect the same runfiles: what both need, and no package."""
    runfiles = [] if model.embed_weights else [out.weights]
    if python.extension and not carries_sources(py_info):
        runfiles = runfiles + python.files
    if out.libtorch_folder:
        runfiles = runfiles + [out.libtorch_folder]
    for dep in linked.deps:
        runfiles = runfiles + dynamic_libraries(dep.linking_context)
    for ops in model.program.custom_ops:
        runfiles = runfiles + ops.data.to_list()
    return runfiles

def _sources(out):
    sources = [file for variant in out.variants for file in [variant.wrapper, variant.kernels]]
    sources.extend([variant.cuda_images for variant in out.variants if variant.cuda_images])
    return sources + [out.header, out.binding, out.digest_source, out.shim_source, out.python_source]

def _output_groups(model, out, sources, python):
    return OutputGroupInfo(
        cpp = depset(sources),
        export = depset([model.program.package]),
        manifest = depset([out.manifest]),
        package = depset([out.package]),
        provenance = depset([out.provenance]),
        python = depset(python.files),
        report = depset([out.report]),
        sbom = depset([out.sbom]),
        weights = depset([model.program.weights]),
    )

def _library_info(model, out, sources, library):
    return AotiLibraryInfo(
        program = model.program,
        manifest = out.manifest,
        provenance = out.provenance,
        header = out.header,
        sources = sources,
        shared_library = library,
        package = out.package,
        python_module = out.python_module,
        cc_namespace = model.cc_namespace,
        cc_class = model.cc_class,
        weights = out.weights,
        shim = model.shim,
        isa = model.isas[0],
        isas = model.isas,
        device = model.devices[0],
        devices = model.devices,
        cuda_archs = model.cuda_archs,
    )

aoti_library = rule(
    implementation = _aoti_library_impl,
    doc = """Compiles a frozen program with AOTInductor and the C++ toolchain of the build.

One target serves C++ (`cc_binary(deps = [":encoder"])`, `#include "models/encoder.h"`), Python
(`py_binary(deps = [":encoder"])`, `from models import encoder`) and stock PyTorch (`encoder.pt2`).

Default outputs: `lib<name>.so` and `<name>.pt2`, or the static library where the toolchain has no
libtorch for the target platform, or with `device = "cuda"`. Output groups: `export`, `manifest`, `cpp`,
`weights`, `package`, `python`, `report`, `provenance`, `sbom`.""",
    attrs = ISA_ATTRS | CUDA_ATTRS | {
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
        "shim": attr.string(
            doc = """The implementation of AOTInductor's C ABI to link. Default: the build setting `//runtime:shim`.

`slim` is rules_aoti's own: static, small, without libtorch; a model that needs an operator that it lacks is an
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
        "python": attr.bool(
            doc = """Whether there is a Python module. Without one, C++ programs neither build nor carry it, whichever rules
Python targets have: Bazel 7's own, and rules_python before 0.40, leave it in the runfiles of C++ programs.""",
            default = True,
        ),
        "options": attr.string_dict(
            doc = "Options of `torch._inductor.config`, with values in JSON or as Python writes them: `{\"cpp.fallback_scatter_reduce_sum\": \"false\"}`.",
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
        "_runtime": attr.label(default = "//runtime", providers = [CcInfo]),
        "_python_runtime": attr.label(default = "//runtime/python", providers = [CcInfo]),
        "_shim": attr.label(default = "//runtime:shim", providers = [BuildSettingInfo]),
    },
    provides = [AotiLibraryInfo, CcInfo, PyInfo],
    exec_groups = driver_exec_groups(CODEGEN, PACKAGE),
    fragments = ["cpp"],
    toolchains = [TORCH_TOOLCHAIN, RUNTIME_TOOLCHAIN] + use_cc_toolchain(),
)
