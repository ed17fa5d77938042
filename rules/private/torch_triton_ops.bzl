"""torch_triton_ops: operators that are written with Triton, for models on GPUs."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "TorchCustomOpsInfo")
load("//toolchain:torch_toolchain.bzl", "TritonToolchainInfo")
load(":module_info.bzl", "module_info")
load(":names.bzl", "user_label")

def _torch_triton_ops_impl(ctx):
    python = module_info(
        ctx.files.srcs,
        ctx.attr.deps,
        triton_modules = ctx.files.srcs,
        triton = ctx.attr._triton[TritonToolchainInfo],
    )
    return [
        DefaultInfo(files = depset(ctx.files.srcs)),
        TorchCustomOpsInfo(
            label = user_label(ctx.label),
            # The kernels become a part of each program that calls them: nothing is linked.
            slim = CcInfo(),
            library = None,
            exec_library = None,
            python = python,
            programs = [],
            data = depset(),
            sources = ctx.files.srcs,
        ),
    ]

torch_triton_ops = rule(
    implementation = _torch_triton_ops_impl,
    doc = """Operators that are written with Triton, for `aoti_model(custom_ops = [...])`.

The files define operators with `torch.library.triton_op`, whose kernels are launched through
`torch.library.wrap_triton`. In a model for CUDA they are compiled like the kernels that Inductor writes, for
each of `cuda_archs`. A model for the CPU has what `register_kernel("cpu")` registers for the operator. See
docs/triton_op.md.""",
    attrs = {
        "srcs": attr.label_list(
            doc = "Python files, each of which defines operators. They are imported before the model's source.",
            allow_empty = False,
            allow_files = [".py"],
            cfg = "exec",
            mandatory = True,
        ),
        "deps": attr.label_list(
            doc = "`py_library` targets that the files import, beside torch and Triton, which are there.",
            cfg = "exec",
            providers = [PyInfo],
        ),
        "_triton": attr.label(
            default = "//toolchain/private:triton",
            cfg = "exec",
            providers = [TritonToolchainInfo],
        ),
    },
    provides = [TorchCustomOpsInfo],
)
