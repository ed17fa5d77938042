"""Models with device = "cuda": what they build, what they alone need, and what they refuse."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:defs.bzl", "aoti_library", "aoti_model", "aoti_test", "torch_operator", "triton_kernel")
load("//rules:providers.bzl", "AotiLibraryInfo")

# buildifier: disable=bzl-visibility
load("//rules/private:cuda.bzl", "cuda_archs_in_order", "cuda_error", "devices_error", "tuning_error")
load("//rules/private:triton_kernel.bzl", "triton_kernel_error")  # buildifier: disable=bzl-visibility
load("//toolchain:torch_toolchain.bzl", "triton_toolchain")
load(":fake_toolchains.bzl", "FAKE_TOOLCHAINS", "FAKE_TOOLCHAINS_WITH_BROKEN_TRITON", "FAKE_TOOLCHAINS_WITH_OTHER_TRITON")

def _errors_impl(ctx):
    env = unittest.begin(ctx)
    for expected, changed in {
        'cuda_archs = ["sm_80"] without CUDA: the program is compiled for the CPU; add device = "cuda" or devices = ["cpu", "cuda"], or remove cuda_archs': dict(devices = ["cpu"], archs = ["sm_80"]),
        'cuda_archs names "sm_80" twice': dict(archs = ["sm_80", "sm_90", "sm_80"]),
        'cuda_archs: "sm_61" is not known; available: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120': dict(archs = ["sm_61"]),
        'isas = ["x86-64"] with device = "cuda": the kernels run on the GPU; name its architectures with cuda_archs, and remove isas': dict(isas = ["x86-64"]),
        'options: "cpp.threads" with device = "cuda": it is about code for the CPU; remove it': dict(options = {"cpp.threads": "1"}),
        'shim = "libtorch" with device = "cuda": CUDA programs run on the slim runtime alone; remove shim': dict(shim = "libtorch"),
        'shim = "libtorch" with devices = ["cpu", "cuda"]: CUDA programs run on the slim runtime alone; remove shim': dict(devices = ["cpu", "cuda"], shim = "libtorch"),
        'threads = 2 with device = "cuda": the program computes on the GPU; remove threads': dict(threads = 2),
    }.items():
        asked = dict(devices = ["cuda"], archs = [], isas = [], shim = "", threads = 0, options = {}) | changed
        asserts.equals(env, expected, cuda_error(**asked))
    asserts.equals(env, None, cuda_error(["cuda"], ["sm_90", "sm_80"], [], "auto", 0, {"max_autotune": "true"}))
    asserts.equals(env, None, cuda_error(["cpu"], [], ["x86-64"], "libtorch", 2, {"cpp.threads": "1"}))
    asserts.equals(env, None, cuda_error(["cpu", "cuda"], ["sm_90"], ["x86-64"], "slim", 2, {"cpp.threads": "1"}))
    for expected, (device, devices) in {
        'device = "cuda" together with devices = ["cpu", "cuda"]: the first is short for devices = ["cuda"]; remove device, or devices if that is all': ("cuda", ["cpu", "cuda"]),
        'device = "gpu" is not known; available: cpu, cuda': ("gpu", None),
        'devices names "cuda" twice': ("", ["cuda", "cpu", "cuda"]),
        'devices: "gpu" is not known; available: cpu, cuda': ("", ["cpu", "gpu"]),
        "devices is empty; name one or more of cpu, cuda": ("", []),
    }.items():
        asserts.equals(env, expected, devices_error(device, devices))
    asserts.equals(
        env,
        'tuning = "x.tuning.json" without CUDA: it is about kernels for GPUs; add device = "cuda" or devices = ["cpu", "cuda"], or remove tuning',
        tuning_error(["cpu"], "x.tuning.json"),
    )
    asserts.equals(env, None, tuning_error(["cpu"], ""))
    asserts.equals(env, None, tuning_error(["cpu", "cuda"], "x.tuning.json"))
    for device, devices in [("", None), ("cuda", None), ("", ["cuda", "cpu"])]:
        asserts.equals(env, None, devices_error(device, devices))
    return unittest.end(env)

_errors_test = unittest.make(_errors_impl)

def _order_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ["sm_80", "sm_90", "sm_100"], cuda_archs_in_order(["sm_100", "sm_80", "sm_90"]))
    asserts.equals(env, ["sm_80"], cuda_archs_in_order([]))
    return unittest.end(env)

_order_test = unittest.make(_order_impl)

def _kernel_errors_impl(ctx):
    env = unittest.begin(ctx)
    good = dict(
        fn = "scale",
        signature = {"x": "const float16*", "n": "int64", "factor": "float32"},
        constants = {"block": "128"},
        divisible_by_16 = ["x", "n"],
        grid = ["cdiv(n, block)"],
        num_warps = 4,
        num_stages = 3,
        archs = ["sm_80"],
    )
    asserts.equals(env, None, triton_kernel_error(**good))
    for start, changed in {
        'fn = "a.b" is not the name of a function': dict(fn = "a.b"),
        'signature["x"] = "*fp32" is not a type; expected a pointer to device memory, such as "const float32*" (read) or "float32*" (written)': dict(signature = {"x": "*fp32"}),
        'signature["x"] = "bfloat16" is not a type; expected a pointer': dict(signature = {"x": "bfloat16"}),
        'signature["x"] = "complex64*" is not a type; expected a pointer': dict(signature = {"x": "complex64*"}),
        '"n" is in signature and in constants': dict(constants = {"n": "16"}),
        'divisible_by_16 names "m", which is not in signature; it has x, n, factor': dict(divisible_by_16 = ["m"]),
        'divisible_by_16 names "factor", which is float32; expected pointers and integers': dict(divisible_by_16 = ["factor"]),
        "grid has 4 sizes; expected x, y and z at most": dict(grid = ["1", "1", "1", "1"]),
        "num_warps = 3 is not known; available: 1, 2, 4, 8, 16, 32": dict(num_warps = 3),
        "num_stages = 0 must be in 1..16": dict(num_stages = 0),
        'cuda_archs: "sm_61" is not known; available: sm_75': dict(archs = ["sm_61"]),
    }.items():
        error = triton_kernel_error(**(good | changed))
        asserts.true(env, error and error.startswith(start), "{}, not {}".format(error, start))
    return unittest.end(env)

_kernel_errors_test = unittest.make(_kernel_errors_impl)

def _kernel_impl(ctx):
    env = analysistest.begin(ctx)
    actions = analysistest.target_actions(env)
    (compile,) = [action for action in actions if action.mnemonic == "TritonKernel"]
    inputs = _basenames(compile.inputs.to_list())
    for name in ["triton.py", "kernels.py"]:
        asserts.true(env, name in inputs, "TritonKernel has no " + name)
    readers = [action.mnemonic for action in actions if "scale.cuda_images.bin" in _basenames(action.inputs.to_list())]
    asserts.true(env, "CppCompile" in readers, "no object holds the images: {}".format(readers))
    (spec,) = [
        json.decode(action.content)
        for action in actions
        if "scale.triton_kernel.spec.json" in _basenames(action.outputs.to_list())
    ]
    asserts.equals(env, ["sm_80", "sm_90"], spec["cuda_archs"])
    asserts.equals(env, "tests/analysis/scale.h", spec["header"])
    asserts.equals(env, "tests::analysis", spec["namespace"])
    asserts.equals(env, "scale", spec["py_module"])
    files = _basenames(analysistest.target_under_test(env)[PyInfo].transitive_sources.to_list())
    for name in ["scale.so", "scale.pyi"]:
        asserts.true(env, name in files, "{} is not among {}".format(name, files))
    return analysistest.end(env)

_kernel_test = analysistest.make(_kernel_impl, config_settings = FAKE_TOOLCHAINS)

# Who wants the Python module gets an error, and a C++ program does without.
def _no_module_impl(ctx):
    env = analysistest.begin(ctx)
    (refusal,) = [action for action in analysistest.target_actions(env) if action.mnemonic == "AotiUnavailable"]
    asserts.equals(env, "{}: no Python module, because {}".format(ctx.attr.label, ctx.attr.why), refusal.argv[-1])
    return analysistest.end(env)

_no_module_test = analysistest.make(
    _no_module_impl,
    attrs = {"label": attr.string(mandatory = True), "why": attr.string(mandatory = True)},
    config_settings = FAKE_TOOLCHAINS,
)

def _basenames(files):
    return [file.basename for file in files]

def _library_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[AotiLibraryInfo]
    asserts.equals(env, "cuda", info.device)
    asserts.equals(env, ["cuda"], info.devices)
    asserts.equals(env, ["sm_80", "sm_90"], info.cuda_archs)
    asserts.equals(env, "slim", info.shim)
    (codegen,) = [action for action in analysistest.target_actions(env) if action.mnemonic == "AotiCodegen"]
    asserts.true(env, "triton.py" in _basenames(codegen.inputs.to_list()), "AotiCodegen has no Triton")
    asserts.true(env, "on_cuda.cuda_images.bin" in _basenames(codegen.outputs.to_list()))
    readers = [
        action.mnemonic
        for action in analysistest.target_actions(env)
        if "on_cuda.cuda_images.bin" in _basenames(action.inputs.to_list())
    ]
    asserts.true(env, "CppCompile" in readers, "no object holds the images: {}".format(readers))
    for file in target[DefaultInfo].files.to_list():
        asserts.equals(env, "a", file.extension, "{} is among the default outputs".format(file.basename))
    specs = [
        json.decode(action.content)
        for action in analysistest.target_actions(env)
        if "on_cuda.codegen.spec.json" in _basenames(action.outputs.to_list())
    ]
    asserts.equals(env, ["cuda"], [spec["device"] for spec in specs])
    asserts.equals(env, [["sm_80", "sm_90"]], [spec["cuda_archs"] for spec in specs])
    return analysistest.end(env)

_library_test = analysistest.make(_library_impl, config_settings = FAKE_TOOLCHAINS)

def _without_id(spec):
    return {key: value for key, value in spec.items() if key != "program_id"}

def _both_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[AotiLibraryInfo]
    asserts.equals(env, "cpu", info.device)
    asserts.equals(env, ["cpu", "cuda"], info.devices)
    asserts.equals(env, "slim", info.shim)
    specs = {
        file.basename: json.decode(action.content)
        for action in analysistest.target_actions(env)
        for file in action.outputs.to_list()
        if file.basename.endswith(".spec.json")
    }

    # The code for the CPU is as without CUDA, and neither gets options that are about the other.
    cpu = {"isa": "x86-64", "options": {"cpp.max_horizontal_fusion_size": "8", "max_autotune": "false"}}
    asserts.equals(env, cpu, _without_id(specs["on_both.codegen.spec.json"]))
    cuda = {"cuda_archs": ["sm_80"], "device": "cuda", "isa": "x86-64", "options": {"max_autotune": "false"}}
    asserts.equals(env, cuda, _without_id(specs["on_both.codegen.cuda.spec.json"]))
    return analysistest.end(env)

_both_test = analysistest.make(_both_impl, config_settings = FAKE_TOOLCHAINS)

# A model for the CPU asks for no Triton: so Bazel fetches nothing of it. Here asking is an error.
def _cpu_impl(ctx):
    env = analysistest.begin(ctx)
    for action in analysistest.target_actions(env):
        for name in _basenames(action.inputs.to_list()):
            asserts.false(env, name == "triton.py" or "cuda_images" in name, "{} reads {}".format(action.mnemonic, name))
    return analysistest.end(env)

_cpu_test = analysistest.make(_cpu_impl, config_settings = FAKE_TOOLCHAINS_WITH_BROKEN_TRITON)

def _failure_impl(ctx):
    env = analysistest.begin(ctx)
    for phrase in ctx.attr.phrases:
        asserts.expect_failure(env, phrase)
    return analysistest.end(env)

_PHRASES = {"phrases": attr.string_list(mandatory = True)}
_failure_test = analysistest.make(_failure_impl, attrs = _PHRASES, config_settings = FAKE_TOOLCHAINS, expect_failure = True)
_other_triton_test = analysistest.make(
    _failure_impl,
    attrs = _PHRASES,
    config_settings = FAKE_TOOLCHAINS_WITH_OTHER_TRITON,
    expect_failure = True,
)
_elsewhere_test = analysistest.make(
    _failure_impl,
    attrs = _PHRASES,
    config_settings = {"//command_line_option:platforms": str(Label("//tests/analysis:elsewhere"))},
    expect_failure = True,
)

def _tags_impl(ctx):
    env = unittest.begin(ctx)
    tags = {name: native_tags for name, native_tags in ctx.attr.tags_of.items()}
    asserts.true(env, "requires-gpu" in tags["modelled_on_cuda_test"])
    asserts.false(env, "requires-gpu" in tags["modelled_on_emulator_test"])
    asserts.false(env, "requires-gpu" in tags["modelled_on_both_test"])
    asserts.true(env, "requires-gpu" in tags["modelled_on_both_cuda_test"])
    return unittest.end(env)

_tags_test = unittest.make(_tags_impl, attrs = {"tags_of": attr.string_list_dict()})

def _targets():
    aoti_library(
        name = "on_cuda",
        cuda_archs = ["sm_90", "sm_80"],
        device = "cuda",
        program = ":tiny.program",
        tags = ["manual"],
    )
    aoti_library(
        name = "on_both",
        devices = ["cuda", "cpu"],
        isa = "x86-64",
        options = {"cpp.max_horizontal_fusion_size": "8", "max_autotune": "false"},
        program = ":tiny.program",
        tags = ["manual"],
    )
    aoti_library(
        name = "device_and_devices",
        device = "cuda",
        devices = ["cpu", "cuda"],
        program = ":tiny.program",
        tags = ["manual"],
    )
    aoti_library(
        name = "device_and_default",
        device = "cuda",
        devices = ["cpu"],
        program = ":tiny.program",
        tags = ["manual"],
    )
    aoti_library(
        name = "operators_on_both",
        devices = ["cpu", "cuda"],
        program = ":on_tensor.program",
        tags = ["manual"],
    )
    aoti_test(
        name = "device_of_no_library",
        device = "cuda",
        library = ":tiny",
        tags = ["manual"],
    )
    aoti_library(
        name = "unknown_device",
        device = "gpu",
        program = ":tiny.program",
        tags = ["manual"],
    )
    aoti_library(
        name = "operators_on_cuda",
        device = "cuda",
        program = ":on_tensor.program",
        tags = ["manual"],
    )
    triton_kernel(
        name = "scale",
        src = "kernels.py",
        cuda_archs = ["sm_90", "sm_80"],
        fn = "scale",
        signature = {"x": "float32*"},
        tags = ["manual"],
    )
    triton_kernel(
        name = "scale-no-module",
        src = "kernels.py",
        fn = "scale",
        signature = {"x": "float32*"},
        tags = ["manual"],
    )
    triton_kernel(
        name = "scale_in_cpp",
        src = "kernels.py",
        fn = "scale",
        python = False,
        signature = {"x": "float32*"},
        tags = ["manual"],
    )
    triton_kernel(
        name = "scale_of_bad_type",
        src = "kernels.py",
        fn = "scale",
        signature = {"x": "*fp32"},
        tags = ["manual"],
    )
    torch_operator(
        name = "operator_on_cuda",
        library = ":on_cuda",
        tags = ["manual"],
    )
    aoti_test(
        name = "driver_without_cuda",
        cuda_driver = ":fake_cuda/libcuda.so.1",
        library = ":tiny",
        tags = ["manual"],
    )
    aoti_test(
        name = "driver_without_library",
        cuda_driver = ":main.cc",
        library = ":on_cuda",
        tags = ["manual"],
    )
    for name, driver in {"modelled_on_cuda": None, "modelled_on_emulator": ":fake_cuda/libcuda.so.1"}.items():
        aoti_model(
            name = name,
            device = "cuda",
            entry_point = "tiny:build",
            inputs = {"x": "float32[3]"},
            module = ":tiny_py",
            tags = ["manual"],
            test_cuda_driver = driver,
        )
    aoti_model(
        name = "modelled_on_both",
        devices = ["cpu", "cuda"],
        entry_point = "tiny:build",
        inputs = {"x": "float32[3]"},
        module = ":tiny_py",
        tags = ["manual"],
    )
    for suffix, version in {"": "3.11", "_of_other_python": "3.12", "_broken": "3.11"}.items():
        triton_toolchain(
            name = "fake_triton{}_impl".format(suffix),
            python_version = version,
            site = None if suffix == "_broken" else ":fake_site/triton.py",
            tags = ["manual"],
            version = "3.7.1",
        )
        native.toolchain(
            name = "fake_triton" + suffix,
            toolchain = ":fake_triton{}_impl".format(suffix),
            toolchain_type = "//toolchain:triton_toolchain_type",
        )
    native.platform(
        name = "elsewhere",
        constraint_values = ["@platforms//os:windows", "@platforms//cpu:x86_64"],
    )

def cuda_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """
    _targets()
    unittest.suite(name + "_errors", _errors_test, _order_test, _kernel_errors_test)
    _kernel_test(name = name + "_kernel", target_under_test = ":scale")
    _library_test(name = name + "_library", target_under_test = ":on_cuda")
    _both_test(name = name + "_both", target_under_test = ":on_both")
    _cpu_test(name = name + "_cpu", target_under_test = ":tiny")
    _tags_test(
        name = name + "_tags",
        tags_of = {test: native.existing_rule(test)["tags"] for test in [
            "modelled_on_both_cuda_test",
            "modelled_on_both_test",
            "modelled_on_cuda_test",
            "modelled_on_emulator_test",
        ]},
    )
    for suffix, (target, why) in {
        "_kernel_name": ("scale-no-module", "the target's name can't name one; use letters, digits and \"_\""),
        "_kernel_python": ("scale_in_cpp", "the target has python = False. Remove that for Python targets that depend on it"),
    }.items():
        _no_module_test(
            name = name + suffix,
            label = "//tests/analysis:" + target,
            target_under_test = ":" + target,
            why = why,
        )
    tests = ["_kernel_name", "_kernel_python", "_errors", "_kernel", "_library", "_both", "_cpu", "_tags", "_other_triton", "_elsewhere"]
    _other_triton_test(
        name = name + "_other_triton",
        phrases = ["//tests/analysis:on_cuda: Triton is for Python 3.12, but the torch toolchain has Python 3.11. Declare a triton_toolchain"],
        target_under_test = ":on_cuda",
    )
    _elsewhere_test(
        name = name + "_elsewhere",
        phrases = [
            "CUDA code is generated with Triton, and no triton_toolchain is registered for the machine that builds",
            'see "Triton" in docs/toolchain.md of rules_aoti',
        ],
        target_under_test = "//toolchain/private:triton",
    )
    for target, phrase in {
        "device_and_default": '//tests/analysis:device_and_default: device = "cuda" together with devices = ["cpu"]: the first is short for devices = ["cuda"]; remove device, or devices',
        "device_and_devices": '//tests/analysis:device_and_devices: device = "cuda" together with devices = ["cpu", "cuda"]: the first is short',
        "device_of_no_library": '//tests/analysis:device_of_no_library: device = "cuda", but //tests/analysis:tiny is compiled for cpu',
        "operators_on_both": '//tests/analysis:operators_on_both: devices = ["cpu", "cuda"], but the operators of //tests/analysis:operators_on_tensor are written for the CPU',
        "driver_without_cuda": '//tests/analysis:driver_without_cuda: cuda_driver, but //tests/analysis:tiny is tested on the device "cpu"; remove cuda_driver',
        "driver_without_library": 'cuda_driver = "@@//tests/analysis:main.cc" must have one file libcuda.so.1, it has main.cc',
        "operator_on_cuda.source": '//tests/analysis:on_cuda has device = "cuda", but operators of PyTorch are compiled for the CPU',
        "operators_on_cuda": '//tests/analysis:operators_on_cuda: device = "cuda", but the operators of //tests/analysis:operators_on_tensor are written for the CPU',
        "scale_of_bad_type": '//tests/analysis:scale_of_bad_type: signature["x"] = "*fp32" is not a type',
        "unknown_device": '//tests/analysis:unknown_device: device = "gpu" is not known; available: cpu, cuda',
    }.items():
        test = "_" + target.replace(".", "_")
        _failure_test(name = name + test, phrases = [phrase], target_under_test = ":" + target)
        tests.append(test)
    native.test_suite(name = name, tests = [name + test for test in tests])
