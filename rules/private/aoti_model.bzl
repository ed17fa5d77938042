"""aoti_model: the macro that most users call."""

load(":aoti_library.bzl", "aoti_library")
load(":aoti_method.bzl", "aoti_method", "has_variants", "methods_arguments_error", "model_of_methods")
load(":aoti_test.bzl", "aoti_test")
load(":cuda.bzl", "devices_error", "model_tests")
load(":driver.bzl", "CODEGEN", "EXPORT", "PACKAGE")
load(":exec_properties.bzl", "TEST", "exec_properties_error", "properties_of_groups")
load(":frozen.bzl", "FREEZE_SUFFIX", "torch_freeze", "torch_frozen_test")
load(":names.bzl", "FROZEN_SUFFIX", "PROGRAM_SUFFIX")
load(":ops.bzl", "ops_lock_error", "ops_targets")
load(":provenance.bzl", "INFO_SUFFIX", "aoti_info")
load(":torch_export.bzl", "torch_export")
load(":torch_import.bzl", "torch_import")
load(":tune.bzl", "tune_targets", "tuning_arguments_error")

# What a macro hands on to every target that it makes.
_COMMON = ["compatible_with", "restricted_to", "target_compatible_with", "testonly"]

def _file_name(label):
    """The file's name of a Label, or of a label or path as a string."""
    return str(label).rpartition("/")[2].rpartition(":")[2]

def _arguments_error(name, kwargs, frozen, frozen_weights, exec_properties):
    """Why the macro can't be called so; None where it can."""
    for key in kwargs:
        if key not in _COMMON:
            return "unknown attribute `{}`; beside its own parameters it takes {}".format(key, ", ".join(_COMMON))
    if frozen_weights and not frozen:
        return "frozen_weights without frozen: run `bazel run //{}:{}`, then give its files: frozen = glob([\"{}.frozen/*\"])".format(
            native.package_name(),
            name + FREEZE_SUFFIX,
            name,
        )
    return exec_properties_error(exec_properties)

def _test_attributes(kwargs, exec_properties, tags):
    """What all tests of a model have in common."""
    return {key: value for key, value in kwargs.items() if key != "testonly"} | {
        "exec_properties": properties_of_groups(exec_properties, [TEST]),
        "tags": tags,
        "visibility": ["//visibility:private"],
    }

def _weights_of_source(program, frozen, attributes):
    """The weights that the source exports, as a target; None where the frozen folder has weights."""
    if [file for file in frozen if _file_name(file) == "weights.safetensors"]:
        return None
    native.filegroup(
        name = program + ".weights",
        srcs = [":" + program],
        output_group = "weights",
        visibility = ["//visibility:private"],
        **attributes
    )
    return program + ".weights"

def aoti_model(
        name,
        module,
        entry_point,
        method = "",
        weights = [],
        custom_ops = [],
        inputs = {},
        sample_inputs = "",
        dynamic_dims = {},
        strict = False,
        decompositions = [],
        precision = "float32",
        ops_lock = "",
        methods = {},
        variants = {},
        frozen = [],
        frozen_weights = None,
        isa = "",
        isas = [],
        device = "",
        devices = None,
        cuda_archs = [],
        tuning = None,
        shim = "",
        threads = 0,
        embed_weights = False,
        python = True,
        options = {},
        cc_namespace = "",
        cc_class = "",
        test_size = "medium",
        test_max_points = 16,
        test_tags = [],
        test_cuda_driver = None,
        rtol = "",
        atol = "",
        exec_properties = {},
        visibility = None,
        tags = [],
        **kwargs):
    """A PyTorch model as a build target: exported, compiled, and tested against eager PyTorch.

    Makes `NAME` (an `aoti_library`: depend on it from C++ and Python), `NAME.program` (a
    `torch_export`), `NAME.freeze` (run it to freeze the program in the source tree), `NAME.info`
    (run it to read what the model was made of), `NAME.ops` (run it to read which operators it calls) and `NAME_test` (an `aoti_test`). With `frozen`, `NAME` is built from the frozen program and there is
    `NAME.frozen_test`, which fails when the source exports another one; see docs/frozen.md.

    Args:
        name: the model's name: the header is `NAME.h`, the Python module `NAME`.
        module: the model's source: any target with PyInfo.
        entry_point: `package.module:callable`, returning an `nn.Module`; see `torch_export`.
        method: the method of the module, or the submodule, in place of `forward`; see `torch_export`.
        weights: weight files, handed to the entry point or loaded by name; see `torch_export`.
        custom_ops: `torch_custom_ops` and `torch_triton_ops` targets with operators that the model calls; see
            docs/custom_ops.md and docs/triton_op.md.
        inputs: sample inputs by `forward()`'s argument names, such as `"int64[batch, seq] in 0..30521"`.
        sample_inputs: `package.module:callable` that makes the sample inputs, for what `inputs` can't say.
        dynamic_dims: ranges or relations of the dims that vary, such as `{"batch": "1..64"}`; `"auto"` has the export find one.
        strict: `torch.export`'s `strict`.
        decompositions: which operators are replaced by simpler ones, such as `["core_aten", "-aten.silu"]`; see
            docs/operators.md.
        precision: `"bfloat16"` or `"int8"` for matrices of weights, and products with them, in that type; see docs/precision.md.
        ops_lock: a file of this package, `"NAME.ops.txt"`, that lists the operators of the program. `NAME.ops_test`
            fails when the program calls others, and `bazel run` of `NAME.ops.update` writes it; see docs/operators.md.
        methods: the methods of a model that has several, `{"encode": aoti_method(inputs = {...}), ...}`, in
            place of `inputs` and what else `aoti_method` has; see docs/methods.md.
        variants: several programs, `{"one": aoti_variant(...), ...}`, of which the arguments of a call choose
            one, beside those that alternatives in `inputs` ask for; see docs/variants.md.
        frozen: the files that `NAME.freeze` wrote, `glob(["NAME.frozen/*"])`: `NAME` is built from them.
        frozen_weights: the weights that the program was frozen with, where they are not among
            `frozen`: a file, or a target that fetches it. Default: those that the source exports.
        isa: the instruction set to generate code for; see `aoti_library`.
        isas: several instruction sets, of which the best is taken at load; see `aoti_library`.
        device: the only device, `"cpu"` or `"cuda"`: short for `devices` with one.
        devices: what the program is compiled for, `["cpu"]` if neither is given; `["cpu", "cuda"]` for both the CPU and NVIDIA
            GPUs, of which the program that loads the model chooses one. Then `NAME_test` is on the CPU and
            `NAME_cuda_test` on the GPU. See docs/cuda.md.
        cuda_archs: the GPU architectures to compile kernels for, such as `["sm_80", "sm_90"]`; see `aoti_library`.
        tuning: for CUDA, a file with the tiles of the model's matrix products, `"NAME.tuning.json"`: `bazel run` of
            `NAME.tune` measures them on a GPU and writes it. See docs/cuda_tuning.md.
        shim: the implementation of AOTInductor's C ABI; see `aoti_library`.
        threads: how many threads one call may use; see `aoti_library`.
        embed_weights: whether the weights become a part of the binary; see `aoti_library`.
        python: whether there is a Python module; see `aoti_library`.
        options: Inductor options; see `aoti_library`.
        cc_namespace: C++ namespace in place of the package's.
        cc_class: C++ class name in place of the target's name in camel case.
        test_size: the test's size.
        test_max_points: the largest number of combinations of dim sizes that the test runs.
        test_tags: more tags for the test.
        test_cuda_driver: for CUDA, the driver that the test runs the model with, in place of the machine's: a
            target with a `libcuda.so.1`, such as the emulator `"@rules_aoti//tools/ptx_emulator"`, for small models. Without it, the
            test needs a GPU, and has the tag `requires-gpu`.
        rtol: relative tolerance of the test, such as `"1e-4"`; the default depends on the dtype.
        atol: absolute tolerance of the test.
        exec_properties: where the steps run, such as `{"export.Pool": "large"}`; each target gets what
            is for its own exec groups. See docs/toolchain.md.
        visibility: visibility of `NAME` and `NAME.program`.
        tags: tags of every target.
        **kwargs: `testonly`, `target_compatible_with`, `compatible_with`, `restricted_to`, for every target.
    """
    error = _arguments_error(name, kwargs, frozen, frozen_weights, exec_properties) or ops_lock_error(ops_lock)
    if not error and type(device) == "string" and type(devices) in ["list", "NoneType"]:
        error = devices_error(device, devices)
    if error:
        fail("aoti_model {}: {}".format(name, error))
    hidden = dict(tags = tags + ["manual"], **kwargs)
    test = _test_attributes(kwargs, exec_properties, tags + test_tags)
    compared = model_tests(device, devices, test_cuda_driver, test)
    ops_targets(name, ops_lock, test = test, visibility = visibility, hidden = hidden)
    if methods:
        error = methods_arguments_error(methods, {
            "atol": atol,
            "decompositions": decompositions,
            "dynamic_dims": dynamic_dims,
            "inputs": inputs,
            "method": method,
            "options": options,
            "rtol": rtol,
            "sample_inputs": sample_inputs,
            "strict": strict,
            "variants": variants,
        })
        if error:
            fail("aoti_model {}: {}".format(name, error))
    single = not methods and has_variants(inputs, variants)
    if single:
        methods = {"forward": aoti_method(
            method = method,
            inputs = inputs,
            sample_inputs = sample_inputs,
            dynamic_dims = dynamic_dims,
            strict = strict,
            decompositions = decompositions,
            options = options,
            variants = variants,
            test_max_points = test_max_points,
            rtol = rtol,
            atol = atol,
        )}
    if methods:
        if tuning:
            fail("aoti_model {}: {}".format(name, tuning_arguments_error("variants" if single else "methods")))
        if frozen:
            fail("aoti_model {}: frozen together with {}: a model of several programs is built from its source".format(
                name,
                "variants" if single else "methods",
            ))
        model_of_methods(
            name,
            methods,
            source = dict(module = module, entry_point = entry_point, weights = weights, custom_ops = custom_ops, precision = precision),
            library = dict(isa = isa, isas = isas, device = device, devices = devices, cuda_archs = cuda_archs, shim = shim, threads = threads),
            model = dict(
                threads = threads,
                embed_weights = embed_weights,
                python = python,
                cc_namespace = cc_namespace,
                cc_class = cc_class,
                **kwargs
            ),
            tests = {suffix: dict(attributes, size = test_size) for suffix, attributes in compared.items()},
            exec_properties = exec_properties,
            visibility = visibility,
            hidden = hidden,
            tags = tags,
            single = single,
        )
        return
    program_properties = properties_of_groups(exec_properties, [EXPORT, PACKAGE])
    program = name + PROGRAM_SUFFIX

    torch_export(
        name = program,
        module = module,
        entry_point = entry_point,
        method = method,
        weights = weights,
        custom_ops = custom_ops,
        inputs = inputs,
        sample_inputs = sample_inputs,
        dynamic_dims = dynamic_dims,
        strict = strict,
        decompositions = decompositions,
        precision = precision,
        exec_properties = program_properties,
        visibility = visibility,
        **hidden
    )
    torch_freeze(name = name + FREEZE_SUFFIX, program = ":" + program, visibility = visibility, **hidden)
    if frozen:
        torch_import(
            name = name + FROZEN_SUFFIX,
            frozen = frozen,
            custom_ops = custom_ops,
            weights = frozen_weights or _weights_of_source(program, frozen, hidden),
            exec_properties = program_properties,
            visibility = visibility,
            **hidden
        )
        torch_frozen_test(name = name + ".frozen_test", program = ":" + program, frozen = frozen, size = "small", **test)
    compiled = ":" + (name + FROZEN_SUFFIX if frozen else program)
    tune_targets(
        name,
        compiled,
        device = device,
        devices = devices,
        cuda_archs = cuda_archs,
        options = options,
        exec_properties = properties_of_groups(exec_properties, [CODEGEN, PACKAGE]),
        max_points = test_max_points,
        rtol = rtol,
        atol = atol,
        visibility = visibility,
        hidden = hidden,
    )
    aoti_library(
        name = name,
        program = compiled,
        isa = isa,
        isas = isas,
        device = device,
        devices = devices,
        cuda_archs = cuda_archs,
        tuning = tuning,
        shim = shim,
        threads = threads,
        embed_weights = embed_weights,
        python = python,
        options = options,
        cc_namespace = cc_namespace,
        cc_class = cc_class,
        exec_properties = properties_of_groups(exec_properties, [CODEGEN, PACKAGE]),
        visibility = visibility,
        tags = tags,
        **kwargs
    )
    aoti_info(name = name + INFO_SUFFIX, library = ":" + name, visibility = visibility, **hidden)
    for suffix, attributes in compared.items():
        aoti_test(
            name = name + suffix,
            library = ":" + name,
            rtol = rtol,
            atol = atol,
            max_points = test_max_points,
            size = test_size,
            **attributes
        )
