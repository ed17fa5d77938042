"""Which sources the compiler reads together: half of the time for a file of its own goes into headers.

A source that no group names is compiled alone, so a new one works wherever it is. Sources of a group
share one anonymous namespace. Groups follow what a program links together: an operator that puts
itself into the dispatcher's table stays in each program that links its object file, so it shares one
with its relatives only.
"""

load("@bazel_skylib//rules:write_file.bzl", "write_file")

GROUPS = {
    "abi": [
        "abi_errors.cc",
        "abi_scalars.cc",
        "abi_tensor.cc",
        "abi_types.cc",
        "cpu.cc",
        "dispatcher.cc",
        "dtype.cc",
        "generator.cc",
        "memory.cc",
    ],
    "attention": [
        "attention_mask.cc",
        "attention_problem.cc",
        "ops/attention.cc",
    ],
    "convolution": [
        "conv_float.cc",
        "conv_layout.cc",
        "conv_pack.cc",
        "conv_plain.cc",
        "ops/convolution.cc",
    ],
    "fourier": [
        "fourier.cc",
        "ops/fft.cc",
    ],
    "index": [
        "ops/index.cc",
        "ops/nonzero.cc",
    ],
    "kernels_of_blocks": [
        "kernels/attention.cc",
        "kernels/embedding.cc",
        "kernels/rnn.cc",
    ],
    "kernels_of_numbers": [
        "kernels/gemm.cc",
        "kernels/linalg.cc",
        "kernels/quantized.cc",
        "kernels/random.cc",
        "kernels/search.cc",
    ],
    "linalg": [
        "linalg_cholesky.cc",
        "linalg_eigh.cc",
        "linalg_exp.cc",
        "linalg_lu.cc",
        "linalg_matrix.cc",
        "linalg_qr.cc",
        "linalg_svd.cc",
        "linalg_triangular.cc",
    ],
    "linalg_factors": [
        "ops/linalg_cholesky.cc",
        "ops/linalg_eigh.cc",
        "ops/linalg_exp.cc",
        "ops/linalg_qr.cc",
        "ops/linalg_svd.cc",
    ],
    "linalg_solvers": [
        "ops/linalg.cc",
        "ops/linalg_det.cc",
        "ops/linalg_lu.cc",
        "ops/linalg_product.cc",
        "ops/linalg_solve.cc",
        "ops/linalg_triangular.cc",
    ],
    "matmul": [
        "gemm.cc",
        "gemm_parts.cc",
        "gemm_tiled.cc",
        "ops/matmul.cc",
    ],
    "pooling": [
        "ops/adaptive_pooling.cc",
        "ops/grid_sampler.cc",
        "ops/pooling.cc",
        "ops/unpooling.cc",
    ],
    "random_samples": [
        "ops/multinomial.cc",
        "ops/random_normal.cc",
    ],
    "sort": [
        "ops/select.cc",
        "ops/sort.cc",
        "ops/sort_keys.cc",
    ],
    "views": [
        "ops/broadcast.cc",
        "ops/cat.cc",
        "ops/views.cc",
    ],
}

def _group_file(group):
    return "groups/{}.cc".format(group)

def group_files():
    """Declares the files that are compiled in place of the groups' sources."""
    for group, sources in GROUPS.items():
        write_file(
            name = group + "_group",
            out = _group_file(group),
            content = ["#include \"{}/{}\"".format(native.package_name(), source) for source in sources] + [""],
            visibility = ["//visibility:private"],
        )

def grouped(sources):
    """What to compile in place of some sources.

    Args:
        sources: names of files of this package; all of a group, or none.

    Returns:
        list of files to compile.
    """
    alone = {source: None for source in sources}
    files = []
    for group, members in GROUPS.items():
        present = [member for member in members if member in alone]
        if not present:
            continue
        if present != members:
            fail("group {}: not there: {}".format(group, ", ".join([m for m in members if m not in alone])))
        for member in members:
            alone.pop(member)
        files.append(_group_file(group))
    return alone.keys() + files
