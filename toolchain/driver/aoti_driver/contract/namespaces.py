"""The namespaces of PyTorch's own operators; all others are of programs' own."""

from __future__ import annotations

# Those that torch registers, including those of modules that it imports on demand.
OF_TORCH = frozenset(
    (
        "_c10d_functional",
        "_c10d_functional_autograd",
        "_dtensor",
        "_native",
        "_quantized",
        "aten",
        "c10d",
        "c10d_functional",
        "debugprims",
        "export",
        "flex_lib",
        "higher_order",
        "inductor",
        "inductor_prims",
        "mkl",
        "mkldnn",
        "mkldnn_prepacked",
        "onednn",
        "prim",
        "prims",
        "profiler",
        "quantization",
        "quantized",
        "quantized_decomposed",
        "rngprims",
        "sparse",
        "static_runtime",
        "symm_mem",
    )
)


def is_own(operator: str) -> bool:
    """Whether an operator is not one of PyTorch's.

    >>> is_own("aten::add.Tensor"), is_own("my::scale")
    (False, True)
    """
    namespace, separator, _ = operator.partition("::")
    return bool(separator) and namespace not in OF_TORCH
