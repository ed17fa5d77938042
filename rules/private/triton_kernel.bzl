"""triton_kernel: one kernel that is written with Triton, as a C++ class and a Python module that launch it."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//toolchain:torch_toolchain.bzl", "TritonToolchainInfo")
load("//toolchain/tables:cuda_archs.bzl", "CUDA_ARCHS")
load("//toolchain/tables:dtypes.bzl", "DTYPES", "INSIDE_DTYPES")
load(":bindings.bzl", "carries_sources", "no_python_module", "python_module")
load(":cc.bzl", "BINDING_COPTS", "RUNTIME_TOOLCHAIN", "cc_toolchain_of", "compile_sources", "make_cc_info", "static_libraries", "static_library")
load(":cuda.bzl", "cuda_archs_in_order", "cuda_error", "embed_images")
load(":driver.bzl", "CODEGEN", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":module_info.bzl", "module_info")
load(":names.bzl", "cc_class_name", "cc_namespace", "identifier", "program_id", "runfiles_path", "user_label")
load(":unavailable.bzl", "unavailable")

# Dtypes of elements, to which pointers point.
_ELEMENTS = [name for name, row in (DTYPES | INSIDE_DTYPES).items() if row["kind"] != "complex"]

# Those that are passed as they are: a Triton kernel's numbers are floats of C++, or integers.
_SCALARS = [name for name in _ELEMENTS if name not in ["float16", "bfloat16"]]

_WARPS = [1, 2, 4, 8, 16, 32]

def _type_error(type):
    """Why a text of `signature` is no type; None where it is one."""
    if type.endswith("*"):
        element = type.removeprefix("const ").removesuffix("*")
        known = element in _ELEMENTS
    else:
        known = type in _SCALARS
    if known:
        return None
    return "is not a type; expected a pointer to device memory, such as \"const float32*\" (read) or \"float32*\" (written), or a number: {}. Pointers are to {}".format(
        ", ".join(_SCALARS),
        ", ".join(_ELEMENTS),
    )

def _names_error(fn, signature, constants, divisible_by_16):
    if not fn or not (fn[0].isalpha() or fn[0] == "_") or [c for c in fn.elems() if not (c.isalnum() or c == "_")]:
        return 'fn = "{}" is not the name of a function; give that of one in src with @triton.jit'.format(fn)
    for name, type in signature.items():
        error = _type_error(type)
        if error:
            return 'signature["{}"] = "{}" {}'.format(name, type, error)
        if name in constants:
            return '"{}" is in signature and in constants: a parameter is either passed or fixed; remove one'.format(name)
    for name in divisible_by_16:
        if name not in signature:
            return 'divisible_by_16 names "{}", which is not in signature; it has {}'.format(name, ", ".join(signature))
        if not signature[name].endswith("*") and "int" not in signature[name]:
            return 'divisible_by_16 names "{}", which is {}; expected pointers and integers'.format(name, signature[name])
    return None

def triton_kernel_error(fn, signature, constants, divisible_by_16, grid, num_warps, num_stages, archs):
    """Why a target's attributes can't be; None where they can.

    Args:
        fn: the attribute's value, as are the others.
        signature: dict
        constants: dict
        divisible_by_16: list of string
        grid: list of string
        num_warps: int
        num_stages: int
        archs: list of string: `cuda_archs`.

    Returns:
        A message, or None.
    """
    if num_warps not in _WARPS:
        return "num_warps = {} is not known; available: {}".format(num_warps, ", ".join([str(number) for number in _WARPS]))
    if num_stages < 1 or num_stages > 16:
        return "num_stages = {} must be in 1..16".format(num_stages)
    if len(grid) > 3:
        return "grid has {} sizes; expected x, y and z at most".format(len(grid))
    return _names_error(fn, signature, constants, divisible_by_16) or \
           cuda_error("cuda", archs, [], "", 0, {})

def _source_info(ctx):
    return module_info([ctx.file.src], ctx.attr.deps)

def _no_python(ctx, torch):
    """Why there is no Python module; None where there is one."""
    if identifier(ctx.label.name) != ctx.label.name:
        return "no Python module, because the target's name can't name one; use letters, digits and \"_\""
    return no_python_module(ctx, torch)

def _python(ctx, cc, kernel, out, cc_info):
    """As `python_module` returns it."""
    why = _no_python(ctx, kernel.torch)
    if why:
        return struct(files = [unavailable(ctx, kernel, out.python_module, why)], extension = None)
    return python_module(ctx, cc, kernel, out, cc_info)

def _generate(ctx, label, spec, archs):
    name = ctx.label.name
    has_python = bool(spec["py_module"])
    out = struct(
        cuda_images = ctx.actions.declare_file(name + ".cuda_images.bin"),
        header = ctx.actions.declare_file(name + ".h"),
        kernels = ctx.actions.declare_directory(name + ".images"),
        program_id = spec["program_id"],
        python_module = ctx.actions.declare_file(name + ".so"),
        python_source = ctx.actions.declare_file(name + ".python.cc") if has_python else None,
        python_stub = ctx.actions.declare_file(name + ".pyi") if has_python else None,
        source = ctx.actions.declare_file(name + ".kernel.cpp"),
    )
    request = new_request(ctx, "triton_kernel", spec | {
        # The header as it is included: below the root of its repository.
        "header": "/".join([part for part in [ctx.label.package, name + ".h"] if part]),
        "src": runfiles_path(ctx.file.src),
    })
    request.module(_source_info(ctx))
    request.output("--out_header", out.header)
    request.output("--out_source", out.source)
    request.output("--out_images", out.cuda_images)
    request.output("--out_kernels", out.kernels)
    if has_python:
        request.output("--out_pymodule", out.python_source)
        request.output("--out_pyi", out.python_stub)
    run_driver(
        ctx,
        mnemonic = "TritonKernel",
        request = request,
        progress_message = "Compiling the Triton kernel {} ({})".format(label, ", ".join(archs)),
        triton = ctx.attr._triton[TritonToolchainInfo],
    )
    return out

def _triton_kernel_impl(ctx):
    label = user_label(ctx.label)
    error = triton_kernel_error(
        ctx.attr.fn,
        ctx.attr.signature,
        ctx.attr.constants,
        ctx.attr.divisible_by_16,
        ctx.attr.grid,
        ctx.attr.num_warps,
        ctx.attr.num_stages,
        ctx.attr.cuda_archs,
    )
    if error:
        fail("{}: {}".format(label, error))
    archs = cuda_archs_in_order(ctx.attr.cuda_archs)
    kernel = struct(name = ctx.label.name, label = label, torch = ctx.toolchains[RUNTIME_TOOLCHAIN].torch_runtime)
    out = _generate(ctx, label, {
        "class_name": ctx.attr.cc_class or cc_class_name(ctx.label.name),
        "constants": ctx.attr.constants,
        "cuda_archs": archs,
        "divisible_by_16": ctx.attr.divisible_by_16,
        "fn": ctx.attr.fn,
        "grid": ctx.attr.grid,
        "label": label,
        "namespace": ctx.attr.cc_namespace or cc_namespace(ctx.label),
        "num_stages": ctx.attr.num_stages,
        "num_warps": ctx.attr.num_warps,
        "program_id": program_id(ctx.label),
        "py_module": "" if _no_python(ctx, kernel.torch) else ctx.label.name,
        "signature": ctx.attr.signature,
    }, archs)
    cc = cc_toolchain_of(ctx)
    runtime = ctx.attr._runtime[CcInfo]
    context, objects = compile_sources(ctx, cc, ctx.label.name, [out.source], BINDING_COPTS, [runtime], public_hdrs = [out.header])
    linking = static_library(ctx, cc, ctx.label.name, [objects, embed_images(ctx, cc, out)], [runtime])
    cc_info = make_cc_info(context, linking)
    python = _python(ctx, cc, kernel, out, cc_info)
    py_info = PyInfo(transitive_sources = depset(python.files), imports = depset(), uses_shared_libraries = True)
    return [
        DefaultInfo(
            files = depset(static_libraries(linking, ctx.label) + [out.header]),
            runfiles = ctx.runfiles(files = python.files if python.extension and not carries_sources(py_info) else []),
        ),
        cc_info,
        py_info,
        OutputGroupInfo(
            cpp = depset([file for file in [out.header, out.source, out.cuda_images, out.python_source] if file]),
            kernels = depset([out.kernels]),
            python = depset(python.files),
        ),
    ]

triton_kernel = rule(
    implementation = _triton_kernel_impl,
    doc = """Compiles one Triton kernel for NVIDIA GPUs, on a machine without one, and makes a C++ class and a Python module that launch it.

`cc_binary(deps = [":scale"])`, `#include "my/scale.h"`, `my::Scale::Load()` and `Launch(stream, x, y, n)`. The binary has
the kernel's machine code, and needs NVIDIA's driver: no libtorch, no CUDA runtime, no Python.

`py_binary(deps = [":scale"])`, `from my import scale`, `scale.load()` and a call of what that returns with tensors on the
GPU: no torch, no Triton, no compiler at run time. See docs/triton_kernel.md.

Default outputs: the static library and the header. Output groups: `cpp`, `python`, and `kernels`: a folder with a `.cubin`
for each architecture, and the `.ptx` of the lowest.""",
    attrs = {
        "src": attr.label(
            doc = "The Python file with the kernel. It runs in an action.",
            allow_single_file = [".py"],
            cfg = "exec",
            mandatory = True,
        ),
        "deps": attr.label_list(
            doc = "`py_library` targets that `src` imports. Triton and PyTorch need not be named.",
            cfg = "exec",
            providers = [PyInfo],
        ),
        "fn": attr.string(
            doc = "The name of the function, which has `@triton.jit` and no `@triton.autotune`: that needs a GPU.",
            mandatory = True,
        ),
        "signature": attr.string_dict(
            doc = """The type of each parameter that isn't `tl.constexpr`: `{"x": "const float32*", "y": "float32*", "n": "int64"}`.

A pointer is to memory of the GPU: `const` where the kernel reads alone, which Triton checks. The launcher has these parameters in the
function's order.""",
            mandatory = True,
        ),
        "constants": attr.string_dict(
            doc = "The value of each parameter that is `tl.constexpr` and has no default, as Python writes it: `{\"BLOCK\": \"1024\"}`.",
        ),
        "divisible_by_16": attr.string_list(
            doc = """Pointers and integers of `signature` that are always divisible by 16: Triton then loads many elements at once. A launch with
one that isn't is an error.""",
        ),
        "grid": attr.string_list(
            doc = """The numbers of programs, x, y and z, computed from integers of `signature` and of `constants`: `["cdiv(n, BLOCK)"]`, with
`+`, `-`, `*`, `//`, `%`, `cdiv`, `min` and `max`. Without it, the launcher takes a grid.""",
        ),
        "num_warps": attr.int(doc = "Warps, of 32 threads, of a program.", default = 4),
        "num_stages": attr.int(doc = "How many iterations of a loop Triton overlaps.", default = 3),
        "cuda_archs": attr.string_list(
            doc = "The GPU architectures, as of `aoti_model`: {}. Default: `sm_80`.".format(", ".join(["`{}`".format(name) for name in CUDA_ARCHS])),
        ),
        "cc_namespace": attr.string(doc = "C++ namespace of the class. Default: the package, `a/b` as `a::b`."),
        "cc_class": attr.string(doc = "Name of the C++ class. Default: the target's name in camel case."),
        "python": attr.bool(
            doc = """Whether there is a Python module. Without one, C++ programs neither build nor carry it, whichever rules
Python targets have: Bazel 7's own, and rules_python before 0.40, leave it in the runfiles of C++ programs.""",
            default = True,
        ),
        "_runtime": attr.label(default = "//runtime/cuda:kernel", providers = [CcInfo]),
        "_python_runtime": attr.label(default = "//runtime/cuda/python", providers = [CcInfo]),
        "_triton": attr.label(
            default = "//toolchain/private:triton",
            cfg = config.exec(CODEGEN),
            providers = [TritonToolchainInfo],
        ),
    },
    provides = [CcInfo, PyInfo],
    exec_groups = driver_exec_groups(CODEGEN),
    fragments = ["cpp"],
    toolchains = [TORCH_TOOLCHAIN, RUNTIME_TOOLCHAIN] + use_cc_toolchain(),
)
