"""benchmark_model and benchmark_suite: what `bazel run //benchmarks:runtime` measures."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_python//python:defs.bzl", "py_binary")
load("//rules:defs.bzl", "aoti_library", "torch_export")

_ISAS = {"v3": "x86-64-v3", "v4": "x86-64-v4"}
_SHIMS = ["slim", "libtorch"]

# Nothing here is built by `bazel build //...`.
_COMMON = {
    "tags": ["manual"],
    "target_compatible_with": ["@platforms//cpu:x86_64"],
}

def _optimized_transition_impl(_settings, _attr):
    return {"//command_line_option:compilation_mode": "opt"}

_optimized_transition = transition(
    implementation = _optimized_transition_impl,
    inputs = [],
    outputs = ["//command_line_option:compilation_mode"],
)

def _files_impl(ctx):
    runfiles = ctx.runfiles(files = ctx.files.srcs)
    runfiles = runfiles.merge_all([src[DefaultInfo].default_runfiles for src in ctx.attr.srcs])
    return [DefaultInfo(files = depset(ctx.files.srcs), runfiles = runfiles)]

files = rule(
    implementation = _files_impl,
    doc = "Files as the build makes them.",
    attrs = {"srcs": attr.label_list(doc = "The files.", allow_files = True)},
)

optimized_files = rule(
    implementation = _files_impl,
    doc = "Files as `-c opt` builds them, whatever the build: nobody measures anything else.",
    attrs = {
        "srcs": attr.label_list(doc = "The files.", cfg = _optimized_transition, allow_files = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def benchmark_model(
        name,
        title,
        family,
        entry_point,
        inputs,
        cases,
        module = "",
        weights = [],
        dynamic_dims = {},
        sample_inputs = "",
        program = None,
        case_inputs = "",
        start = "",
        onnx_variant = "",
        precision = "float32",
        build_precision = "float32",
        tolerance = 1e-3,
        tokens = {},
        past_bytes = {},
        unread_weights = [],
        capability = "",
        gguf = "",
        shims = _SHIMS,
        without = {},
        every_level = False,
        cuda_archs = []):
    """One model, compiled for each instruction set and shim, and its description for the benchmark.

    Args:
        name: the model's name.
        title: what it is called in the report.
        family: the group of the report that it belongs to (FAMILIES in harness/families.py).
        entry_point: `package.module:callable`, as in `aoti_model`.
        inputs: sample inputs, as in `aoti_model`.
        cases: name of each case -> size of each dynamic dim.
        module: the model's source; default: the library of the entry point's module in models/.
        weights: weight files, as in `aoti_model`.
        dynamic_dims: ranges of the dims that vary, as in `aoti_model`.
        sample_inputs: as in `aoti_model`.
        program: the program, where another package exports it already.
        case_inputs: `package.module:callable` from a case's name to its inputs by name, for what
            `inputs` can't say.
        start: the case whose first output is waited for after the start; default: the first one.
        onnx_variant: `package.module:callable` from the module and a case's name to the module and
            the inputs that are exported to ONNX in their place.
        precision: of the weights, for the report and the peers.
        build_precision: `precision` of the build; with `int8`, ONNX Runtime has its own dynamic quantization.
        tolerance: the largest error that passes for right, relative to the largest output.
        tokens: name of a case -> how many tokens a call takes; it is then reported as tokens per second.
        past_bytes: name of a case -> bytes of the keys and values of earlier tokens that a call reads.
        unread_weights: suffixes of the names of weights that a call doesn't read as a whole.
        capability: ATEN_CPU_CAPABILITY for everything that uses PyTorch's own kernels.
        gguf: the precision at which llama.cpp runs the model's weights (`F32`, `Q8_0`, `Q4_0`).
        shims: the shims to build it with; `without` says why not with others.
        without: contestant -> why it can't take part.
        every_level: build it for each instruction set, whatever //benchmarks:levels says: for the
            tests, which run on any CPU.
        cuda_archs: where there are some, there is also a model `NAME_cuda` for these GPUs, for //benchmarks:cuda.
    """
    if not program:
        program = ":" + name + ".program"
        torch_export(
            name = name + ".program",
            module = module or ":{}_py".format(entry_point.split(":")[0].removeprefix("benchmarks.models.")),
            entry_point = entry_point,
            weights = weights,
            inputs = inputs,
            sample_inputs = sample_inputs,
            dynamic_dims = dynamic_dims,
            precision = build_precision,
            **_COMMON
        )
    runners = {level: {} for level in _ISAS}
    for level, isa in _ISAS.items():
        for shim in shims:
            library = "{}_{}_{}".format(name, level, shim)
            aoti_library(
                name = library,
                cc_class = "Model",
                cc_namespace = "benchmarked",
                isa = isa,
                program = program,
                # Bazel 7 would build a Python module for each program, although none is used.
                python = False,
                shim = shim,
                **_COMMON
            )
            cc_binary(
                name = library + "_runner",
                srcs = ["runner_main.cc"],
                copts = ["-std=c++20"],
                # As it would be shipped. Slim needs nothing but itself, libtorch is a shared library.
                linkopts = ["-s"] + (["-static"] if shim == "slim" else []),
                linkstatic = True,
                local_defines = [
                    "MODEL_CLASS=::benchmarked::Model",
                    'MODEL_HEADER=\\"benchmarks/{}.h\\"'.format(library),
                ],
                deps = [
                    ":runner",
                    library,
                ] + ([":allocations"] if shim == "slim" else []),
                **_COMMON
            )
            runners[level]["{}-{}".format(shim, level)] = library + "_runner"

    described = {
        "build_precision": build_precision,
        "capability": capability,
        "case_inputs": case_inputs,
        "cases": cases,
        "entry_point": entry_point,
        "family": family,
        "gguf": gguf,
        "inputs": inputs,
        "onnx_variant": onnx_variant,
        "past_bytes": past_bytes,
        "precision": precision,
        "start": start or cases.keys()[0],
        "title": title,
        "tokens": tokens,
        "tolerance": tolerance,
        "unread_weights": unread_weights,
    }
    every = {}
    for of_level in runners.values():
        every = every | of_level
    chosen = {"//benchmarks:levels_{}".format(level): of_level for level, of_level in runners.items()}
    chosen["//conditions:default"] = every
    _described(
        name,
        {"//conditions:default": every} if every_level else chosen,
        weights,
        described | {"without": without},
    )
    if cuda_archs:
        _cuda_model(name + "_cuda", program, cuda_archs, weights, described | {"without": {}})

def _cuda_model(name, program, archs, weights, described):
    aoti_library(
        name = name,
        cc_class = "Model",
        cc_namespace = "benchmarked",
        cuda_archs = archs,
        device = "cuda",
        program = program,
        python = False,
        **_COMMON
    )
    cc_binary(
        name = name + "_runner",
        srcs = ["cuda_runner_main.cc"],
        copts = ["-std=c++20"],
        linkopts = ["-s"],
        linkstatic = True,
        local_defines = [
            "MODEL_CLASS=::benchmarked::Model",
            'MODEL_HEADER=\\"benchmarks/{}.h\\"'.format(name),
        ],
        # As it would be shipped: it needs the C library and NVIDIA's driver.
        deps = [
            ":runner",
            "//runtime/cuda:kernel",
            "//runtime:static_cxx_runtime",
            name,
        ],
        **_COMMON
    )
    runners = {contestant: name + "_runner" for contestant in ["cuda", "cuda-graphs"]}
    _described(name, {"//conditions:default": runners}, weights, described)

def _described(name, runners, weights, fields):
    """The programs and weights of a model, and its description for the benchmark.

    Args:
        name: the model's name.
        runners: condition of a select -> contestant -> its program.
        weights: the weight files.
        fields: what else the description has.
    """
    native.filegroup(
        name = name + "_runners",
        srcs = select({
            condition: {runner: None for runner in chosen.values()}.keys()
            for condition, chosen in runners.items()
        }),
        **_COMMON
    )
    native.filegroup(
        name = name + "_weights",
        srcs = weights,
        **_COMMON
    )
    descriptions = {
        condition: fields | {
            "name": name,
            "runners": {key: "_main/benchmarks/" + runner for key, runner in chosen.items()},
            "weights": ["$(rlocationpath {})".format(file) for file in weights],
        }
        for condition, chosen in runners.items()
    }
    native.genrule(
        name = name + "_description",
        srcs = weights,
        outs = [name + ".json"],
        cmd = select({
            condition: "cat > $@ <<'END'\n{}\nEND".format(json.encode_indent(description))
            for condition, description in descriptions.items()
        }),
        **_COMMON
    )

def profile_program(name, library):
    """A program that profiles the decoding of a language model.

    Args:
        name: the target's name.
        library: the model's aoti_library.
    """
    cc_binary(
        name = name,
        srcs = ["profile/main.cc"],
        copts = ["-std=c++20"],
        # It reads its own symbols, so it is not stripped.
        linkopts = ["-static"],
        linkstatic = True,
        local_defines = [
            "MODEL_CLASS=::benchmarked::Model",
            'MODEL_HEADER=\\"benchmarks/{}.h\\"'.format(library),
        ],
        deps = [
            ":profile",
            "//runtime",
            library,
        ],
        **_COMMON
    )

def benchmark_suite(name, models, deps, main = "harness/main.py", optimized = True, **kwargs):
    """The benchmark of some models, as a program to run.

    Args:
        name: the target's name.
        models: names of benchmark_model targets of this package.
        deps: Python packages that the contestants import, beside torch.
        main: the program that measures.
        optimized: whether everything is built with `-c opt`. Without, nothing should be measured.
        **kwargs: attributes of py_binary.
    """
    make_files = optimized_files if optimized else files
    make_files(
        name = name + "_files",
        srcs = [
            ":launcher",
            ":memory_rate",
        ] + [":" + model + suffix for model in models for suffix in [".json", "_runners", "_weights"]],
        **(_COMMON | kwargs)
    )
    native.genrule(
        name = name + "_models",
        outs = [name + ".models"],
        cmd = "echo {} > $@".format(" ".join(models)),
        **(_COMMON | kwargs)
    )
    py_binary(
        name = name,
        srcs = [main],
        data = [
            name + ".models",
            ":" + name + "_files",
        ],
        main = main,
        deps = [
            ":harness",
            ":peers",
            "@torch_site//:development_packages",
        ] + deps,
        **(_COMMON | kwargs)
    )
