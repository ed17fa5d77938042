"""What the two torch toolchains hand to rules, and what they say when they are declared wrongly."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:defs.bzl", "py_library")
load("@rules_python//python:py_runtime.bzl", "py_runtime")
load("//toolchain:torch_toolchain.bzl", "TorchRuntimeToolchainInfo", "TorchToolchainInfo", "add_site_arguments", "torch_runtime_toolchain", "torch_toolchain")

_LIBRARIES = ["libc10.so", "libgomp-1.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so"]

def _site_toolchain_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TorchToolchainInfo]
    asserts.equals(env, "1.2.3+cpu", info.version)
    asserts.equals(env, "3.11", info.python_version)
    asserts.equals(env, "python3", info.python.basename)
    asserts.equals(env, ["site"], [directory.basename for directory in info.site_directories])
    asserts.equals(env, [], info.site_paths)
    inputs = info.inputs.to_list()
    for needed in [info.python, info.driver_main, info.site_directories[0]]:
        asserts.true(env, needed in inputs, "{} is not an input".format(needed))
    return analysistest.end(env)

def _worker_files_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TorchToolchainInfo]
    asserts.equals(env, ctx.attr.expected, [file.basename for file in info.worker_files.to_list()])
    for file in info.worker_files.to_list():
        asserts.true(env, file in info.inputs.to_list(), "{} is not an input".format(file))
    return analysistest.end(env)

_worker_files_test = analysistest.make(
    _worker_files_test_impl,
    attrs = {"expected": attr.string_list()},
)

_site_toolchain_test = analysistest.make(_site_toolchain_test_impl)

def _packages_toolchain_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TorchToolchainInfo]
    asserts.equals(env, [], info.site_directories)
    asserts.equals(env, [ctx.attr.site_path], info.site_paths)
    asserts.true(env, "fake_torch.py" in [file.basename for file in info.inputs.to_list()])
    return analysistest.end(env)

_packages_toolchain_test = analysistest.make(
    _packages_toolchain_test_impl,
    attrs = {"site_path": attr.string()},
)

def _unpacked_toolchain_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TorchToolchainInfo]

    # An action made it, so that only the artifact knows its path.
    asserts.equals(env, ["unpacked"], [directory.basename for directory in info.site_directories])
    asserts.equals(env, [], info.site_paths)
    return analysistest.end(env)

_unpacked_toolchain_test = analysistest.make(_unpacked_toolchain_test_impl)

def _inside_toolchain_test_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[TorchToolchainInfo]
    asserts.equals(env, ["wheel"], [place.directory.basename for place in info.site_inside])
    asserts.equals(env, ["lib/python3.11/100%/site-packages"], [place.path for place in info.site_inside])
    asserts.equals(env, [], info.site_directories)
    asserts.equals(env, [], info.site_paths)
    return analysistest.end(env)

_inside_toolchain_test = analysistest.make(_inside_toolchain_test_impl)

def _directory_impl(ctx):
    directory = ctx.actions.declare_directory(ctx.attr.folder)
    ctx.actions.run_shell(command = "mkdir -p $1", arguments = [directory.path], outputs = [directory])
    return [DefaultInfo(files = depset([directory]))]

_directory = rule(
    implementation = _directory_impl,
    attrs = {"folder": attr.string(default = "unpacked")},
)

def _site_arguments_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    args = ctx.actions.args()
    add_site_arguments(args, ctx.attr.toolchain[TorchToolchainInfo])
    ctx.actions.write(out, args)
    return [DefaultInfo(files = depset([out]))]

# Writes what the driver is called with.
_site_arguments = rule(
    implementation = _site_arguments_impl,
    attrs = {"toolchain": attr.label(providers = [TorchToolchainInfo])},
)

def _site_arguments_test_impl(ctx):
    env = analysistest.begin(ctx)
    (write,) = analysistest.target_actions(env)
    lines = [line.strip("'") for line in write.content.strip().split("\n")]
    asserts.equals(env, 1, len(lines))
    asserts.true(env, lines[0].startswith("--site="), lines[0])
    asserts.true(env, lines[0].endswith("/tests/unit/toolchain/wheel/lib/python3.11/100%/site-packages"), lines[0])
    return analysistest.end(env)

_site_arguments_test = analysistest.make(_site_arguments_test_impl)

def _runtime_toolchain_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TorchRuntimeToolchainInfo]
    asserts.equals(env, "1.2.3", info.version)
    headers = [file.basename for file in info.torch_headers.compilation_context.headers.to_list()]
    asserts.equals(env, ["fake.h"], headers)
    return analysistest.end(env)

_runtime_toolchain_test = analysistest.make(_runtime_toolchain_test_impl)

def _package_runtime_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TorchRuntimeToolchainInfo]
    (headers,) = info.torch_headers.compilation_context.headers.to_list()
    asserts.true(env, headers.is_directory)
    libraries = info.libtorch.linking_context.linker_inputs.to_list()[0].libraries if info.libtorch else []
    found = sorted([library.resolved_symlink_dynamic_library.basename for library in libraries])
    asserts.equals(env, ctx.attr.libraries, found)
    asserts.equals(env, bool(ctx.attr.has_python), bool(info.pybind11))
    (action,) = [a for a in analysistest.target_actions(env) if a.mnemonic == "TorchHeaders"]
    unused = [f.basename for f in action.inputs.to_list() if f.basename in ["fake_torch.py", "libtorch_cpu.so"]]
    asserts.equals(env, [], unused, "files that are not read are inputs")
    return analysistest.end(env)

_package_runtime_test = analysistest.make(
    _package_runtime_test_impl,
    attrs = {
        "has_python": attr.bool(),
        "libraries": attr.string_list(),
    },
)

def _headers_folder_impl(ctx):
    info = ctx.attr.toolchain[TorchRuntimeToolchainInfo]
    return [DefaultInfo(files = depset(transitive = [
        info.stable_headers.compilation_context.headers,
        info.pybind11.compilation_context.headers,
    ]))]

_headers_folder = rule(
    implementation = _headers_folder_impl,
    attrs = {"toolchain": attr.label(providers = [TorchRuntimeToolchainInfo])},
)

def _platform_interpreter_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TorchToolchainInfo]
    asserts.equals(env, "/opt/python3", info.python)
    asserts.equals(env, "required", info.barrier)
    return analysistest.end(env)

_platform_interpreter_test = analysistest.make(_platform_interpreter_test_impl)

def _failure_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.message)
    return analysistest.end(env)

_failure_test = analysistest.make(
    _failure_test_impl,
    attrs = {"message": attr.string(mandatory = True)},
    expect_failure = True,
)

def _declare(name, rule = torch_toolchain, **kwargs):
    rule(name = name, python_version = "3.11", tags = ["manual"], **kwargs)
    return ":" + name

def toolchain_test_suite(name):
    """All tests of this file.

    Args:
      name: the suite's name.
    """
    py_library(name = "fake_packages", srcs = ["fake_torch.py"], imports = ["."], tags = ["manual"])
    cc_library(name = "fake_cc", hdrs = ["fake.h"], tags = ["manual"])

    _site_toolchain_test(
        name = name + "_site",
        target_under_test = _declare("site_toolchain", python = "python3", site = "site", version = "1.2.3+cpu"),
    )
    for test, expected, kwargs in [
        ("_worker_files", ["fake_torch.py"], {"worker_files": ["fake_torch.py"]}),
        ("_worker_files_by_default", ["fake.h"], {}),
    ]:
        _worker_files_test(
            name = name + test,
            expected = expected,
            target_under_test = _declare(
                test[1:] + "_toolchain",
                python = "python3",
                python_files = ["fake.h"],
                site = "site",
                version = "1.2.3",
                **kwargs
            ),
        )
    _packages_toolchain_test(
        name = name + "_packages",
        site_path = native.package_name(),
        target_under_test = _declare(
            "packages_toolchain",
            packages = [":fake_packages"],
            python = "python3",
            version = "1.2.3",
        ),
    )
    _directory(name = "unpacked_directory", tags = ["manual"])
    py_library(name = "unpacked_packages", data = [":unpacked_directory"], imports = ["unpacked"], tags = ["manual"])
    _unpacked_toolchain_test(
        name = name + "_unpacked",
        target_under_test = _declare(
            "unpacked_toolchain",
            packages = [":unpacked_packages"],
            python = "python3",
            version = "1.2.3",
        ),
    )

    # As aspect_rules_py and rules_pycross have it: a wheel's directory, and the imports inside of that.
    _directory(name = "wheel_directory", folder = "wheel", tags = ["manual"])
    py_library(
        name = "wheel_packages",
        data = [":wheel_directory"],
        imports = ["wheel/lib/python3.11/100%/site-packages"],
        tags = ["manual"],
    )
    _inside_toolchain_test(
        name = name + "_inside",
        target_under_test = _declare(
            "inside_toolchain",
            packages = [":wheel_packages"],
            python = "python3",
            version = "1.2.3",
        ),
    )
    _site_arguments(name = "site_arguments", tags = ["manual"], toolchain = ":inside_toolchain")
    _site_arguments_test(name = name + "_site_arguments", target_under_test = ":site_arguments")
    _runtime_toolchain_test(
        name = name + "_runtime",
        target_under_test = _declare(
            "runtime_toolchain",
            rule = torch_runtime_toolchain,
            libtorch = ":fake_cc",
            pybind11 = ":fake_cc",
            python_headers = ":fake_cc",
            torch_headers = ":fake_cc",
            version = "1.2.3",
        ),
    )

    # The files of a package by name, as rules_python has them.
    native.genrule(
        name = "fake_wheel",
        outs = ["wheel_of_files/torch/lib/" + library for library in _LIBRARIES],
        cmd = "touch $(OUTS)",
        tags = ["manual"],
    )
    py_library(
        name = "file_packages",
        srcs = ["fake_torch.py"],
        data = [":fake_wheel"],
        imports = ["wheel_of_files"],
        tags = ["manual"],
    )
    cc_library(name = "fake_python", tags = ["manual"])
    for test, package, libraries, kwargs in [
        ("_files", ":file_packages", ["libc10.so", "libgomp-1.so", "libtorch.so", "libtorch_cpu.so"], {}),
        ("_directory", ":directory_packages", [], {"testonly": True, "python_headers": ":fake_python"}),
    ]:
        _package_runtime_test(
            name = name + "_runtime_of" + test,
            has_python = bool(kwargs),
            libraries = libraries,
            target_under_test = _declare(
                "runtime_toolchain_of" + test,
                rule = torch_runtime_toolchain,
                packages = [package],
                version = "2.13.0",
                **kwargs
            ),
        )
    _headers_folder(
        name = "headers_folder",
        testonly = True,
        tags = ["manual"],
        toolchain = ":runtime_toolchain_of_directory",
        visibility = ["//tests:__subpackages__"],
    )
    for test, message, kwargs in [
        (
            "_with_two_headers",
            "set exactly one of `packages` (targets that hold torch) and `torch_headers`",
            {"packages": [":file_packages"], "torch_headers": ":fake_cc"},
        ),
        (
            "_without_headers",
            "set exactly one of `packages` (targets that hold torch) and `torch_headers`",
            {},
        ),
        (
            "_with_two_libtorches",
            "`libtorch` comes from `packages`. Set one of them.",
            {"packages": [":file_packages"], "libtorch": ":fake_cc"},
        ),
    ]:
        _failure_test(
            name = name + "_runtime" + test,
            message = message,
            target_under_test = _declare("runtime_toolchain" + test, rule = torch_runtime_toolchain, version = "1.2.3", **kwargs),
        )
    py_runtime(
        name = "fake_runtime",
        interpreter_path = "/opt/python3",
        python_version = "PY3",
        tags = ["manual"],
    )
    _platform_interpreter_test(
        name = name + "_platform_interpreter",
        target_under_test = _declare(
            "platform_interpreter_toolchain",
            barrier = "required",
            python = ":fake_runtime",
            site = "site",
            version = "1.2.3",
        ),
    )
    native.filegroup(name = "two_files", srcs = ["fake.h", "python3"], tags = ["manual"])
    _failure_test(
        name = name + "_with_two_interpreters",
        message = "must be one file or a py_runtime, but it is 2 files. Set its other files in `python_files`.",
        target_under_test = _declare("two_pythons_toolchain", python = ":two_files", site = "site", version = "1.2.3"),
    )
    message = "set exactly one of `site` (a site-packages directory) and `packages` (py_library targets)"
    _failure_test(
        name = name + "_without_torch",
        message = "bare_toolchain: " + message,
        target_under_test = _declare("bare_toolchain", python = "python3", version = "1.2.3"),
    )
    _failure_test(
        name = name + "_with_two_torches",
        message = "double_toolchain: " + message,
        target_under_test = _declare(
            "double_toolchain",
            packages = [":fake_packages"],
            python = "python3",
            site = "site",
            version = "1.2.3",
        ),
    )
    native.test_suite(
        name = name,
        tests = [name + suffix for suffix in [
            "_site",
            "_worker_files",
            "_worker_files_by_default",
            "_packages",
            "_unpacked",
            "_inside",
            "_site_arguments",
            "_runtime",
            "_runtime_of_files",
            "_runtime_of_directory",
            "_runtime_with_two_headers",
            "_runtime_with_two_libtorches",
            "_runtime_without_headers",
            "_platform_interpreter",
            "_with_two_interpreters",
            "_without_torch",
            "_with_two_torches",
        ]],
    )
