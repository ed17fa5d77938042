"""aoti_methods_library: one class of the programs of several methods, over one weights file."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "AotiLibraryInfo", "AotiMethodsInfo")
load(":bindings.bzl", "carries_sources", "python_module")
load(":cc.bzl", "BINDING_COPTS", "RUNTIME_TOOLCHAIN", "cc_toolchain_of", "compile_sources", "make_cc_info", "merge_cc_infos", "static_libraries", "static_library")
load(":driver.bzl", "PACKAGE", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":methods.bzl", "methods_error")
load(":names.bzl", "cc_class_name", "cc_namespace", "identifier", "model_label", "program_id", "runfiles_path")
load(":weights.bzl", "embed_weights")

# Of these output groups, each method's library has its own files.
_GROUPS_OF_METHODS = ["export", "manifest", "package", "provenance", "report", "sbom"]

def _requested(ctx):
    """What the attributes ask for; fails where they can't be fulfilled."""
    label = model_label(ctx.label)
    name = ctx.label.name
    if identifier(name) != name:
        fail('{}: the name "{}" can\'t name a C++ class; use letters, digits and "_"'.format(label, name))
    libraries = {}
    for target, method in ctx.attr.libraries.items():
        if method in libraries:
            fail('{}: two libraries are called "{}": {} and {}'.format(label, method, libraries[method].label, target.label))
        libraries[method] = target

    # Bazel sorts the dict by label; users read the methods in this order.
    libraries = {method: libraries[method] for method in ctx.attr.order or sorted(libraries)}
    names = {}
    for key in libraries:
        method, _, variant = key.partition(".")
        names.setdefault(method, []).append(variant)
    error = methods_error([] if ctx.attr.single else names)
    for method, variants in names.items():
        if "" in variants and len(variants) > 1:
            error = 'methods: "{}" is a method, and has variants'.format(method)
        if not error and variants != [""]:
            error = methods_error(variants)
    if error:
        fail("{}: {}".format(label, error))
    return struct(
        label = label,
        name = name,
        program_id = program_id(ctx.label),
        libraries = libraries,
        torch = ctx.toolchains[RUNTIME_TOOLCHAIN].torch_runtime,
        cc_namespace = ctx.attr.cc_namespace or cc_namespace(ctx.label),
        cc_class = ctx.attr.cc_class or cc_class_name(name),
    )

def _merge_weights(ctx, model, infos, weights):
    request = new_request(ctx, "merge_weights", {"label": model.label, "methods": infos.keys()})
    for info in infos.values():
        request.input("--manifest", info.manifest)
        request.input("--weights", info.weights)
    request.output("--out", weights)
    run_driver(
        ctx,
        mnemonic = "AotiMergeWeights",
        request = request,
        progress_message = "Merging the weights of the methods of {}".format(model.label),
    )

def _generate_bindings(ctx, model, infos, out):
    request = new_request(ctx, "method_bindings", {
        "label": model.label,
        "program_id": model.program_id,
        "methods": infos.keys(),
        "single": ctx.attr.single,
        "spaces": json.decode(ctx.attr.spaces or "{}"),
        "names": {
            "namespace": model.cc_namespace,
            "class_name": model.cc_class,
            "header": "{}/{}.h".format(ctx.label.package, model.name).lstrip("/"),
            "py_module": model.name,
            "weights_runfile": runfiles_path(out.weights),
            "embedded": ctx.attr.embed_weights,
            "threads": ctx.attr.threads,
        },
    })
    for info in infos.values():
        request.input("--manifest", info.manifest)
    request.output("--out_header", out.header)
    request.output("--out_cc", out.binding)
    request.output("--out_digest", out.digest_source)
    request.output("--out_pymodule", out.python_source)
    request.output("--out_pyi", out.python_stub)
    run_driver(
        ctx,
        mnemonic = "AotiMethodBindings",
        request = request,
        progress_message = "Generating bindings for the methods of {}".format(model.label),
    )

def _runfiles(ctx, model, weights, python):
    """What the methods need when they run, such as libtorch, but none of their own weights."""
    own = {target[AotiLibraryInfo].weights: None for target in model.libraries.values()}
    files = [
        file
        for target in model.libraries.values()
        for file in target[DefaultInfo].default_runfiles.files.to_list()
        if file not in own
    ]
    return ctx.runfiles(files = files + ([] if ctx.attr.embed_weights else [weights]) + python)

def _aoti_methods_library_impl(ctx):
    model = _requested(ctx)
    cc = cc_toolchain_of(ctx)
    infos = {method: target[AotiLibraryInfo] for method, target in model.libraries.items()}
    declare = ctx.actions.declare_file
    out = struct(
        weights = declare(model.name + ".safetensors"),
        header = declare(model.name + ".h"),
        binding = declare(model.name + ".binding.cc"),
        digest_source = declare(model.name + ".digest.cc"),
        python_source = declare(model.name + ".python.cc"),
        python_stub = declare(model.name + ".pyi"),
        python_module = declare(model.name + ".so"),
    )
    _merge_weights(ctx, model, infos, out.weights)
    _generate_bindings(ctx, model, infos, out)

    runtime = ctx.attr._runtime[CcInfo]
    header_context, objects = compile_sources(ctx, cc, model.name, [out.binding, out.digest_source], BINDING_COPTS, [runtime], public_hdrs = [out.header])
    outputs = [objects]
    if ctx.attr.embed_weights:
        outputs.append(embed_weights(ctx, cc, out.weights))

    # The classes of the methods' own libraries stay out of programs: nothing refers to them.
    deps = [target[CcInfo] for target in model.libraries.values()] + [runtime]
    cc_info = merge_cc_infos([make_cc_info(header_context, static_library(ctx, cc, model.name, outputs, deps))])
    python = python_module(ctx, cc, model, out, cc_info)
    py_info = PyInfo(transitive_sources = depset(python.files), imports = depset(), uses_shared_libraries = True)
    in_runfiles = python.files if python.extension and not carries_sources(py_info) else []

    groups = {
        group: depset(transitive = [target[OutputGroupInfo][group] for target in model.libraries.values()])
        for group in _GROUPS_OF_METHODS
    }
    return [
        DefaultInfo(
            files = depset(
                static_libraries(cc_info.linking_context, ctx.label) + [out.weights],
                transitive = [target[DefaultInfo].files for target in model.libraries.values()],
            ),
            runfiles = _runfiles(ctx, model, out.weights, in_runfiles),
        ),
        cc_info,
        py_info,
        OutputGroupInfo(
            cpp = depset([out.header, out.binding, out.digest_source, out.python_source]),
            python = depset(python.files),
            weights = depset([out.weights]),
            **groups
        ),
        AotiMethodsInfo(
            methods = infos,
            header = out.header,
            python_module = out.python_module,
            cc_namespace = model.cc_namespace,
            cc_class = model.cc_class,
            weights = out.weights,
        ),
    ]

_aoti_methods_library = rule(
    implementation = _aoti_methods_library_impl,
    attrs = {
        "libraries": attr.label_keyed_string_dict(
            doc = "The compiled methods, `aoti_library` targets, and their names.",
            mandatory = True,
            allow_empty = False,
            providers = [AotiLibraryInfo, CcInfo],
        ),
        "single": attr.bool(doc = "Whether the only method is what a call of the model calls.", default = False),
        "spaces": attr.string(doc = "What calls of methods with variants may pass, and what each variant takes, as JSON."),
        "order": attr.string_list(doc = "The names of the methods, in the order of the BUILD file."),
        "threads": attr.int(doc = "How many threads one call may use.", default = 0),
        "embed_weights": attr.bool(doc = "Whether the weights become a part of the binary.", default = False),
        "python": attr.bool(doc = "Whether there is a Python module.", default = True),
        "cc_namespace": attr.string(doc = "C++ namespace of the generated class."),
        "cc_class": attr.string(doc = "Name of the generated C++ class."),
        "_runtime": attr.label(default = "//runtime", providers = [CcInfo]),
        "_python_runtime": attr.label(default = "//runtime/python", providers = [CcInfo]),
    },
    provides = [AotiMethodsInfo, CcInfo, PyInfo],
    exec_groups = driver_exec_groups(PACKAGE),
    fragments = ["cpp"],
    toolchains = [TORCH_TOOLCHAIN, RUNTIME_TOOLCHAIN] + use_cc_toolchain(),
)

def aoti_methods_library(name, methods, **kwargs):
    """One class of several compiled programs: a model with methods.

    `deps = [":whisper"]` gives a C++ program the class `Whisper` with the functions `Encode()` and
    `Decode()`, and a Python program the module `whisper`, whose `load()` returns a model with
    `encode()` and `decode()`. The methods share one weights file, in which a tensor that several of them read is
    stored once, and one state. Tensors are shared by name; two programs that disagree about one are
    an error. See docs/methods.md.

    Default outputs: the weights file, and those of the methods' libraries. Output groups: `cpp`,
    `python`, `weights`, and those of the libraries: `export`, `manifest`, `package`, `provenance`, `report`,
    `sbom`.

    Args:
        name: the model's name: the header is `NAME.h`, the Python module `NAME`.
        methods: the compiled methods, `aoti_library` targets, by the names that they get:
            `{"encode": ":encode_lib", "decode": ":decode_lib"}`.
        **kwargs: `threads`, `embed_weights`, `python`, `cc_namespace` and `cc_class`, which are as those of
            `aoti_library`, and the attributes that all rules have.
    """
    libraries = {}
    for method, library in methods.items():
        if library in libraries:
            fail('aoti_methods_library {}: "{}" and "{}" are the same library, {}; a library can be one method'.format(
                name,
                libraries[library],
                method,
                library,
            ))
        libraries[library] = method
    _aoti_methods_library(name = name, libraries = libraries, order = methods.keys(), **kwargs)
