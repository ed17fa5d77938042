"""What aoti_library gives, and what its actions read."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:defs.bzl", "aoti_model")
load("//rules:providers.bzl", "AotiLibraryInfo", "TorchProgramInfo")
load("//rules/private:bindings.bzl", "carries_sources")  # buildifier: disable=bzl-visibility
load(":fake_toolchains.bzl", "FAKE_TOOLCHAINS", "FAKE_TOOLCHAINS_WITHOUT_LIBTORCH")

# Actions that are not C++ compilation: each runs the driver.
_DRIVER_MNEMONICS = [
    "AotiBindings",
    "AotiCodegen",
    "AotiOperator",
    "AotiPackWeights",
    "AotiPackage",
    "AotiProvenance",
    "AotiReplaceWeights",
    "AotiReport",
    "AotiSbom",
    "AotiShim",
    "TorchDifferentiate",
    "TorchExport",
    "TorchImport",
    "TorchImportWeights",
    "TorchPackage",
]

def _basenames(files):
    return sorted([file.basename for file in files])

def _group(target, name):
    return _basenames(target[OutputGroupInfo][name].to_list())

def _outputs_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    asserts.equals(env, ["libtiny.so", "tiny.pt2"], _basenames(target[DefaultInfo].files.to_list()))
    asserts.equals(env, ["tiny.export.pt2"], _group(target, "export"))
    asserts.equals(env, ["tiny.manifest.json"], _group(target, "manifest"))
    asserts.equals(env, ["tiny.weights.safetensors"], _group(target, "weights"))
    asserts.equals(env, ["tiny.report.txt"], _group(target, "report"))
    asserts.equals(env, ["tiny.pt2"], _group(target, "package"))
    asserts.equals(env, ["tiny.provenance.json"], _group(target, "provenance"))
    asserts.equals(env, ["tiny.cdx.json"], _group(target, "sbom"))
    for name in ["tiny.h", "tiny.program.cpp", "tiny.kernels.cpp"]:
        asserts.true(env, name in _group(target, "cpp"), name + " is not in the group cpp")
    for name in ["tiny.so", "tiny.pyi"]:
        asserts.true(env, name in _group(target, "python"), name + " is not in the group python")
    return analysistest.end(env)

_outputs_test = analysistest.make(_outputs_impl, config_settings = FAKE_TOOLCHAINS)

def _providers_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    library = target[AotiLibraryInfo]
    asserts.equals(env, "tests::analysis", library.cc_namespace)
    asserts.equals(env, "Tiny", library.cc_class)
    asserts.equals(env, "auto", library.shim)
    asserts.equals(env, "libtiny.so", library.shared_library.basename)
    asserts.equals(env, "//tests/analysis:tiny", library.program.label)
    asserts.equals(env, "tiny", library.program.name)

    headers = target[CcInfo].compilation_context.headers.to_list()
    asserts.true(env, library.header in headers, "the generated header is not in CcInfo")

    sources = _basenames(target[PyInfo].transitive_sources.to_list())
    asserts.true(env, "tiny.so" in sources, "PyInfo has no extension module: {}".format(sources))
    return analysistest.end(env)

_providers_test = analysistest.make(_providers_impl, config_settings = FAKE_TOOLCHAINS)

def _names_impl(ctx):
    env = analysistest.begin(ctx)
    library = analysistest.target_under_test(env)[AotiLibraryInfo]
    asserts.equals(env, "vision::v2", library.cc_namespace)
    asserts.equals(env, "Eye", library.cc_class)
    asserts.equals(env, "x86-64-v3", library.isa)
    return analysistest.end(env)

_names_test = analysistest.make(_names_impl, config_settings = FAKE_TOOLCHAINS)

def _actions(env, mnemonic):
    return [a for a in analysistest.target_actions(env) if a.mnemonic == mnemonic]

def _one_action(env, mnemonic):
    actions = _actions(env, mnemonic)
    asserts.equals(env, 1, len(actions), "number of {} actions".format(mnemonic))
    return actions[0]

def _library_actions_impl(ctx):
    env = analysistest.begin(ctx)
    weights = analysistest.target_under_test(env)[AotiLibraryInfo].program.weights

    # New weights must regenerate and recompile nothing: only these hold them.
    readers = {
        action.mnemonic: None
        for action in analysistest.target_actions(env)
        if weights in action.inputs.to_list()
    }
    asserts.equals(env, ["AotiPackWeights", "AotiPackage", "AotiProvenance"], sorted([m for m in readers if m in _DRIVER_MNEMONICS + ["CppCompile"]]))

    codegen = _one_action(env, "AotiCodegen")
    inputs = _basenames(codegen.inputs.to_list())
    for name in ["tiny.graph.json", "tiny.program.json"]:
        asserts.true(env, name in inputs, "AotiCodegen does not read " + name)
    asserts.false(env, "tiny.py" in inputs, "AotiCodegen reads the model's source")
    for name in inputs:
        asserts.false(env, name in ["gcc", "g++", "clang"], "AotiCodegen has a C++ compiler: " + name)

    # Code carries where it comes from, but nothing of the weights.
    compiled = [a for a in _actions(env, "CppCompile")]
    read = [name for action in compiled for name in _basenames(action.inputs.to_list())]
    asserts.true(env, "tiny.code.provenance.json" in read, "no object holds the provenance")
    for name in ["tiny.provenance.json", "tiny.safetensors"]:
        asserts.false(env, name in read, "a compilation reads " + name)
    asserts.true(env, len(compiled) >= 4, "the C++ toolchain compiles the generated sources")
    return analysistest.end(env)

_library_actions_test = analysistest.make(_library_actions_impl, config_settings = FAKE_TOOLCHAINS)

def _environment_impl(ctx):
    env = analysistest.begin(ctx)
    found = 0
    for action in analysistest.target_actions(env):
        if action.mnemonic not in _DRIVER_MNEMONICS:
            continue
        found += 1

        # With nothing from the user's shell, an action has the same result for everybody.
        asserts.equals(env, {}, action.env, "{} has an environment".format(action.mnemonic))
    asserts.true(env, found > 0, "the target has no action of the driver")
    return analysistest.end(env)

_environment_test = analysistest.make(_environment_impl, config_settings = FAKE_TOOLCHAINS)

def _export_actions_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    inputs = _basenames(_one_action(env, "TorchExport").inputs.to_list())
    for name in ["tiny.py", "tiny_helper.py", "tiny.bin"]:
        asserts.true(env, name in inputs, "TorchExport does not read " + name)
    program = target[TorchProgramInfo]
    asserts.equals(env, ["tiny.bin"], _basenames(program.eager.weights))
    asserts.equals(env, "tiny:build", program.spec["entry_point"])
    return analysistest.end(env)

_export_actions_test = analysistest.make(_export_actions_impl, config_settings = FAKE_TOOLCHAINS)

def _import_actions_impl(ctx):
    env = analysistest.begin(ctx)
    program = analysistest.target_under_test(env)[TorchProgramInfo]
    inputs = _basenames(_one_action(env, "TorchImport").inputs.to_list())
    asserts.true(env, "frozen_file.pt2" in inputs, "TorchImport does not read its program")
    asserts.equals(env, None, program.eager)
    asserts.equals(env, None, program.spec)
    return analysistest.end(env)

_import_actions_test = analysistest.make(_import_actions_impl, config_settings = FAKE_TOOLCHAINS)

def _frozen_import_impl(ctx):
    env = analysistest.begin(ctx)
    program = analysistest.target_under_test(env)[TorchProgramInfo]
    asserts.equals(env, "//tests/analysis:thawed", program.label)
    asserts.equals(env, None, program.eager)

    graph = _one_action(env, "TorchImport")
    asserts.true(env, program.graph in graph.outputs.to_list(), "TorchImport does not write the graph")
    inputs = _basenames(graph.inputs.to_list())
    for name in ["graph.json", "manifest.json"]:
        asserts.true(env, name in inputs, "TorchImport does not read " + name)
    asserts.false(env, "tiny.bin" in inputs, "the graph waits for the weights")

    weights = _basenames(_one_action(env, "TorchImportWeights").inputs.to_list())
    for name in ["tiny.bin", "weights.json"]:
        asserts.true(env, name in weights, "TorchImportWeights does not read " + name)
    return analysistest.end(env)

_frozen_import_test = analysistest.make(_frozen_import_impl, config_settings = FAKE_TOOLCHAINS)

def _frozen_by_label_impl(ctx):
    env = analysistest.begin(ctx)
    inputs = _basenames(_one_action(env, "TorchImportWeights").inputs.to_list())

    # The folder has no weights, so they are those that the source exports.
    asserts.true(env, "frozen_by_label.weights.safetensors" in inputs, "not the source's weights: {}".format(inputs))
    return analysistest.end(env)

_frozen_by_label_test = analysistest.make(_frozen_by_label_impl, config_settings = FAKE_TOOLCHAINS)

def _replaced_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    program = target[AotiLibraryInfo].program
    asserts.equals(env, ["replaced.replaced.safetensors"], _group(target, "weights"))
    asserts.equals(env, None, program.eager)

    # The new file is checked, and nothing else reads it.
    readers = [a.mnemonic for a in analysistest.target_actions(env) if "new.safetensors" in _basenames(a.inputs.to_list())]
    asserts.equals(env, ["AotiReplaceWeights"], readers)
    readers = {a.mnemonic: None for a in analysistest.target_actions(env) if program.weights in a.inputs.to_list()}
    asserts.equals(
        env,
        ["AotiPackWeights", "AotiPackage", "AotiProvenance", "TorchPackage"],
        sorted(readers),
    )
    asserts.equals(env, 0, len(_actions(env, "TorchExport")))
    return analysistest.end(env)

_replaced_test = analysistest.make(_replaced_impl, config_settings = FAKE_TOOLCHAINS)

def _tool_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    files = _basenames(target[DefaultInfo].default_runfiles.files.to_list())
    for name in ctx.attr.reads:
        asserts.true(env, name in files, "{} is not in the runfiles".format(name))

    # Whoever only reads about a model must not compile it, nor unpack torch.
    for name in ["libtiny.so", "tiny.so", "tiny.pt2", "torch.py"]:
        asserts.false(env, name in files, "{} is in the runfiles".format(name))
    return analysistest.end(env)

_tool_test = analysistest.make(
    _tool_impl,
    attrs = {"reads": attr.string_list()},
    config_settings = FAKE_TOOLCHAINS,
)

def _cc_consumer_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)

    # A C++ program does not pay for what stock PyTorch or Python loads.
    packages = ["libtiny.so", "tiny.pt2", "tiny.export.pt2"]
    python = ["tiny.so", "tiny.pyi"]
    shipped = _basenames(target[DefaultInfo].default_runfiles.files.to_list())
    linked = [
        file.basename
        for action in _actions(env, "CppLink")
        for file in action.inputs.to_list()
    ]
    kernels = [name for name in linked if name.startswith("tiny.kernels")]
    asserts.true(env, bool(kernels), "the model is not linked: {}".format(linked))
    carried = [] if carries_sources(PyInfo(transitive_sources = depset())) else python
    asserts.equals(env, sorted(carried), sorted([name for name in python if name in shipped]))
    for name in packages:
        asserts.false(env, name in shipped, "{} is in the runfiles of a cc_binary".format(name))
    for name in packages + python:
        asserts.false(env, name in linked, "{} is linked into a cc_binary".format(name))
    asserts.true(env, "tiny.safetensors" in shipped, "the weights are not in the runfiles")
    asserts.false(env, "libtorch_cpu.so" in shipped + linked, "a model that may run without libtorch brings it")
    return analysistest.end(env)

_cc_consumer_test = analysistest.make(_cc_consumer_impl, config_settings = FAKE_TOOLCHAINS)

def _embedded_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    shipped = _basenames(target[DefaultInfo].default_runfiles.files.to_list())
    asserts.false(env, "embedded.safetensors" in shipped, "embedded weights are in the runfiles too")
    asserts.false(env, "embedded.libtorch" in shipped, "shim = slim has a folder for libtorch")
    asserts.equals(env, "slim", target[AotiLibraryInfo].shim)
    readers = [
        action
        for action in _actions(env, "CppCompile")
        if [name for name in _basenames(action.inputs.to_list()) if name.endswith(".weights.safetensors")]
    ]
    asserts.equals(env, 1, len(readers), "number of compilations that read the weights")

    # What the assembler reads names no folder of outputs, which the action may see elsewhere.
    texts = [action.content for action in analysistest.target_actions(env) if action.content and ".incbin" in action.content]
    asserts.equals(env, 2, len(texts), "number of sources with .incbin")
    for text in texts:
        asserts.false(env, "bazel-out" in text, text)
    return analysistest.end(env)

_embedded_test = analysistest.make(_embedded_impl, config_settings = FAKE_TOOLCHAINS)

def _libtorch_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    shipped = _basenames(target[DefaultInfo].default_runfiles.files.to_list())
    for name in ["libtorch_cpu.so", "tiny.weights.safetensors"]:
        asserts.true(env, name in shipped, "{} is not in the runfiles".format(name))
    packs = _actions(env, "AotiPackWeights")
    asserts.equals(env, 0, len(packs), "libtorch reads the weights as they are")
    return analysistest.end(env)

_libtorch_test = analysistest.make(_libtorch_impl, config_settings = FAKE_TOOLCHAINS)

def _py_consumer_impl(ctx):
    env = analysistest.begin(ctx)
    shipped = _basenames(analysistest.target_under_test(env)[DefaultInfo].default_runfiles.files.to_list())
    for name in ["tiny.so", "tiny.safetensors"]:
        asserts.true(env, name in shipped, "{} is not in the runfiles of a py_binary".format(name))
    for name in ["tiny.pt2", "site-packages"]:
        asserts.false(env, name in shipped, "{} is in the runfiles of a py_binary".format(name))
    return analysistest.end(env)

_py_consumer_test = analysistest.make(_py_consumer_impl, config_settings = FAKE_TOOLCHAINS)

def _without_libtorch_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    asserts.equals(env, "slim", target[AotiLibraryInfo].shim)
    asserts.equals(env, ["libtiny.a"], _basenames(target[DefaultInfo].files.to_list()))
    asserts.equals(env, ["tiny.safetensors"], _basenames(target[DefaultInfo].default_runfiles.files.to_list()))

    # Whoever wants these is told why there are none.
    refused = [output.basename for action in _actions(env, "AotiUnavailable") for output in action.outputs.to_list()]
    asserts.equals(env, ["libtiny.so", "tiny.so"], sorted(refused))
    return analysistest.end(env)

def _without_python_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    shipped = _basenames(target[DefaultInfo].default_runfiles.files.to_list())
    for name in ["without_python.so", "libwithout_python_python.so"]:
        asserts.false(env, name in shipped, name + " is in the runfiles")
    refused = [output.basename for action in _actions(env, "AotiUnavailable") for output in action.outputs.to_list()]
    asserts.equals(env, ["without_python.so"], refused)
    (sources,) = [action for action in _actions(env, "AotiBindings")]
    asserts.true(env, "without_python.h" in _basenames(sources.outputs.to_list()))
    asserts.equals(env, ["without_python.so"], _basenames(target[PyInfo].transitive_sources.to_list()))
    return analysistest.end(env)

_without_python_test = analysistest.make(_without_python_impl, config_settings = FAKE_TOOLCHAINS)

_without_libtorch_test = analysistest.make(_without_libtorch_impl, config_settings = FAKE_TOOLCHAINS_WITHOUT_LIBTORCH)

def library_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """

    # A macro of one's own gives Labels where a BUILD file gives strings.
    aoti_model(
        name = "frozen_by_label",
        entry_point = "tiny:build",
        frozen = [Label("//tests/analysis:frozen/" + file) for file in ["graph.json", "manifest.json", "weights.json"]],
        inputs = {"x": "float32[3]"},
        module = ":tiny_py",
        tags = ["manual"],
    )
    tests = {
        "cc_consumer": (_cc_consumer_test, ":tiny_cc"),
        "embedded": (_embedded_test, ":embedded"),
        "export_actions": (_export_actions_test, ":tiny.program"),
        "export_environment": (_environment_test, ":tiny.program"),
        "frozen_by_label": (_frozen_by_label_test, ":frozen_by_label.frozen_program"),
        "frozen_import": (_frozen_import_test, ":thawed.frozen_program"),
        "import_actions": (_import_actions_test, ":frozen"),
        "library_actions": (_library_actions_test, ":tiny"),
        "library_environment": (_environment_test, ":tiny"),
        "libtorch": (_libtorch_test, ":on_libtorch"),
        "names": (_names_test, ":renamed"),
        "outputs": (_outputs_test, ":tiny"),
        "providers": (_providers_test, ":tiny"),
        "py_consumer": (_py_consumer_test, ":tiny_py_bin"),
        "replaced": (_replaced_test, ":replaced"),
        "replaced_environment": (_environment_test, ":replaced"),
        "without_libtorch": (_without_libtorch_test, ":tiny"),
        "without_python": (_without_python_test, ":without_python"),
    }
    for test, (rule, target) in tests.items():
        rule(
            name = "{}_{}".format(name, test),
            target_under_test = target,
        )
    tools = {
        "freeze_tool": (":tiny.freeze", ["main.py", "tiny.graph.json", "tiny.weights.safetensors"]),
        "info_tool": (":tiny.info", ["main.py", "tiny.provenance.json"]),
        # Nothing that code generation or compilation makes.
        "ops_methods_test": (":two_methods.ops_test", ["main.py", "two_methods_first.graph.json", "two_methods_second.graph.json"]),
        "ops_test": (":pooled.ops_test", ["main.py", "pooled.graph.json", "pooled.program.json"]),
        "ops_update": (":pooled.ops.update", ["main.py", "pooled.graph.json", "pooled.program.json"]),
    }
    for test, (target, reads) in tools.items():
        _tool_test(
            name = "{}_{}".format(name, test),
            reads = reads,
            target_under_test = target,
        )
    native.test_suite(
        name = name,
        tests = ["{}_{}".format(name, test) for test in tests.keys() + tools.keys()],
    )
