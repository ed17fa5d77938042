"""One or two calls of every operator of the slim runtime, for tensors of any dtype.

Each is a call of an operator of PyTorch, whose schema determines how slim is called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from samples import make
from torch import Tensor

ALL = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint16, torch.uint32, torch.uint64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64, torch.complex128, torch.bool,
]  # fmt: skip
INDICES = [torch.int64, torch.int32]


@dataclasses.dataclass
class Maker:
    """Makes the tensors of a call: of dtype ``t``, and others of ``u`` or of the indices' ``i``."""

    t: torch.dtype
    u: torch.dtype
    i: torch.dtype
    layout: str
    made: int = 0

    def __call__(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        self.made += 1
        own = self.t if dtype is None else dtype
        return make(shape, own, self.layout, seed=self.made, special=False)

    def other(self, *shape: int) -> Tensor:
        return self(*shape, dtype=self.u)

    def indices(self, *values: int) -> Tensor:
        return torch.tensor(values, dtype=self.i)

    def long(self, *shape: int, below: int) -> Tensor:
        return make(shape, torch.int64, self.layout, seed=3).remainder(below)

    def mask(self, *shape: int) -> Tensor:
        return self(*shape, dtype=torch.bool)

    def positive(self, *shape: int) -> Tensor:
        return (make(shape, torch.float64, self.layout, seed=5, special=False).abs() + 0.25).to(
            self.t
        )

    def probabilities(self, *shape: int) -> Tensor:
        values = make(shape, torch.float64, self.layout, seed=6, special=False).abs() / 4
        return values.to(self.t)

    def definite(self, size: int) -> Tensor:
        """A positive definite matrix."""
        a = make((size, size), torch.float64, self.layout, seed=8, special=False) / 8
        return (a @ a.t() + 2 * torch.eye(size, dtype=torch.float64)).to(self.t)

    def lower(self, size: int) -> Tensor:
        return self.definite(size).tril()

    def sorted(self, size: int) -> Tensor:
        return torch.arange(-4, size - 4).to(self.t).sort().values


Arguments = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Call:
    """function: the name in functions.txt. operator: PyTorch's; those of other packages have their
    namespace ("torchvision::nms.default"). arguments: without defaults.

    dtypes: which dtypes vary: ``t``, ``tu``, ``ti``. compared: the results that must equal
    PyTorch's; the others are only determined up to a sign or an order, and have tests of their own.
    reference: gives the expected results in place of the operator, if the dtypes that it takes
    depend on the CPU.
    """

    function: str
    operator: str
    arguments: Callable[[Maker], Arguments]
    dtypes: str = "t"
    compared: tuple[int, ...] | None = None
    options: Callable[[Maker], dict[str, Any]] = lambda _: {}
    reference: Callable[[Maker], list[Tensor]] | None = None


def _of(function: str) -> str:
    """The operator that a function is named after, if its name follows the pattern.

    >>> _of("aoti_torch_cpu_topk"), _of("aoti_torch_aten_amax"), _of("aoti_slim_op_aten_cos")
    ('topk.default', 'amax.default', 'cos.default')
    """
    for prefix in ("aoti_torch_cpu_", "aoti_torch_aten_", "aoti_slim_op_aten_"):
        function = function.removeprefix(prefix)
    return function + ".default"


def _plain(function: str, arguments: Callable[[Maker], Arguments], **more: Any) -> Call:
    return Call(function, _of(function), arguments, **more)


def _cpu(name: str, arguments: Callable[[Maker], Arguments], **more: Any) -> Call:
    return _plain(f"aoti_torch_cpu_{name}", arguments, **more)


def _cpu_of(name: str, operator: str, arguments: Callable[[Maker], Arguments], **more: Any) -> Call:
    return Call(f"aoti_torch_cpu_{name}", operator, arguments, **more)


def _aten(name: str, arguments: Callable[[Maker], Arguments], **more: Any) -> Call:
    return _plain(f"aoti_torch_aten_{name}", arguments, **more)


def _aten_of(
    name: str, operator: str, arguments: Callable[[Maker], Arguments], **more: Any
) -> Call:
    return Call(f"aoti_torch_aten_{name}", operator, arguments, **more)


def _named(name: str, arguments: Callable[[Maker], Arguments], **more: Any) -> Call:
    return _plain(f"aoti_slim_op_aten_{name}", arguments, **more)


def _named_of(
    name: str, operator: str, arguments: Callable[[Maker], Arguments], **more: Any
) -> Call:
    return Call(f"aoti_slim_op_aten_{name}", operator, arguments, **more)


def _dtype(m: Maker) -> dict[str, Any]:
    return {"dtype": m.t}


# Distinct indices: with equal ones, the result would depend on the order.
_STEPS = torch.tensor([[[0, 2], [9, 15]]]).expand(1, 2, 2)
_ONCE = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 1], [2, 3, 0, 1, 2]])

_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"


def _packed_int4(group: int) -> Tensor:
    weight = torch.arange(6 * 32).to(torch.uint8).view(6, 32)
    scales = torch.arange(6 * 64 // group).float() / 8
    packed: Tensor = torch.ops.aten._dyn_quant_pack_4bit_weight(weight, scales, None, group, 64, 6)
    return packed


_PRODUCTS = [
    _cpu_of("mm_out", "mm.default", lambda m: (m(3, 4), m(4, 5))),
    _cpu_of("addmm_out", "addmm.default", lambda m: (m(5), m(3, 4), m(4, 5))),
    _cpu_of("bmm_out", "bmm.default", lambda m: (m(2, 3, 4), m(2, 4, 5))),
    _cpu_of("baddbmm_out", "baddbmm.default", lambda m: (m(2, 3, 5), m(2, 3, 4), m(2, 4, 5))),
    _cpu_of("_int_mm_out", "_int_mm.default", lambda m: (m(3, 4), m.other(4, 5)), dtypes="tu"),
    _cpu("_addmm_activation", lambda m: (m(5), m(3, 4), m(4, 5))),
    _cpu("addbmm", lambda m: (m(3, 5), m(2, 3, 4), m(2, 4, 5))),
    _cpu("addmv", lambda m: (m(3), m(3, 4), m(4))),
    _cpu(
        "_grouped_mm",
        lambda m: (m(8, 16), m(2, 16, 8), torch.tensor([3, 8], dtype=torch.int32)),
    ),
    _cpu("_weight_int8pack_mm", lambda m: (m(3, 32), m.other(16, 32), m(16)), dtypes="tu"),
    _cpu(
        "_trilinear",
        lambda m: (m(2, 3), m(5, 3, 4), m(2, 4), [1, 3], [0], [1, 2], [2, 3]),
    ),
    _named("mm", lambda m: (m(3, 4), m(4, 5))),
    _named("bmm", lambda m: (m(2, 3, 4), m(2, 4, 5))),
    # PyTorch's operator requires a contiguous last dim.
    _cpu(
        _ATTENTION,
        lambda m: tuple(m(1, 2, n, 8).contiguous() for n in (5, 6, 6)),
        compared=(0,),
    ),
    _cpu(
        _ATTENTION,
        lambda m: tuple(m(1, 2, n, 8).contiguous() for n in (5, 6, 6)),
        dtypes="tu",
        compared=(0,),
        options=lambda m: {"attn_mask": m.other(1, 1, 5, 6).contiguous()},
    ),
]

_NETWORKS = [
    _cpu(
        "convolution",
        lambda m: (m(2, 4, 6, 7), m(3, 4, 3, 2), m(3), [1, 1], [0, 1], [1, 1], False, [0, 0], 1),
    ),
    _cpu(
        "convolution",
        lambda m: (m(2, 4, 9), m(4, 1, 3), None, [2], [1], [1], False, [0], 4),
    ),
    _cpu(
        "convolution",
        lambda m: (m(2, 4, 5), m(4, 3, 3), m(3), [2], [1], [1], True, [1], 1),
    ),
    _cpu("_adaptive_avg_pool2d", lambda m: (m(2, 3, 7, 8), [3, 4])),
    _cpu("_adaptive_avg_pool3d", lambda m: (m(1, 2, 5, 6, 7), [2, 3, 4])),
    _cpu("adaptive_max_pool2d", lambda m: (m(2, 3, 7, 8), [3, 4])),
    _cpu("adaptive_max_pool3d", lambda m: (m(1, 2, 5, 6, 7), [2, 3, 4])),
    _cpu("avg_pool2d", lambda m: (m(2, 3, 7, 8), [3, 2])),
    _cpu("avg_pool3d", lambda m: (m(1, 2, 5, 6, 7), [2, 3, 2])),
    _cpu("max_pool2d_with_indices", lambda m: (m(2, 3, 7, 8), [3, 2])),
    _cpu("max_pool3d_with_indices", lambda m: (m(1, 2, 5, 6, 7), [2, 3, 2])),
    _cpu("max_unpool2d", lambda m: (m(1, 2, 2), m.long(1, 2, 2, below=1) + _STEPS, [4, 4])),
    _cpu(
        "max_unpool3d",
        lambda m: (m(1, 1, 2, 2), _STEPS.view(1, 1, 2, 2), [1, 4, 4], [1, 2, 2], [0, 0, 0]),
    ),
    _cpu(
        "fractional_max_pool2d",
        lambda m: (m(1, 2, 7, 8), [2, 2], [3, 4], m.probabilities(1, 2, 2).clamp(0, 0.9)),
    ),
    _cpu(
        "fractional_max_pool3d",
        lambda m: (m(1, 2, 5, 6, 7), [2, 2, 2], [2, 3, 4], m.probabilities(1, 2, 3).clamp(0, 0.9)),
    ),
    _cpu("grid_sampler_3d", lambda m: (m(1, 2, 3, 4, 5), m(1, 2, 3, 4, 3), 0, 0, False)),
    _cpu("pad", lambda m: (m(2, 3, 5), [1, 2])),
    _cpu("pad", lambda m: (m(2, 3, 5), [1, 2], "reflect")),
    _cpu("_fused_rms_norm", lambda m: (m(3, 4), [4], m(4), 1e-5)),
    _cpu(
        "_embedding_bag",
        lambda m: (m(10, 4), m.indices(1, 3, 9, 0, 3, 5), m.indices(0, 2, 4)),
        dtypes="ti",
        compared=(0,),
    ),
    _cpu(
        "_embedding_bag_forward_only",
        lambda m: (m(10, 4), m.indices(1, 3, 9, 0, 3, 5), m.indices(0, 2, 4)),
        dtypes="ti",
        compared=(0,),
    ),
    _named("embedding_renorm", lambda m: (m(10, 4), m.indices(1, 3, 9, 0), 1.0, 2.0), dtypes="ti"),
    _named("_upsample_bicubic2d_aa", lambda m: (m(1, 2, 5, 6), [3, 4], False)),
    _named("_upsample_bilinear2d_aa", lambda m: (m(1, 2, 5, 6), [3, 4], False)),
    _cpu("_cdist_forward", lambda m: (m(4, 3), m(5, 3), 2.0, None)),
    _cpu("_pdist_forward", lambda m: (m(4, 3),)),
    _cpu(
        "_dyn_quant_pack_4bit_weight",
        lambda m: (m(6, 32, dtype=torch.uint8), m(6, 2), None, 32, 64, 6),
    ),
    _cpu(
        "_dyn_quant_pack_4bit_weight",
        lambda m: (m(6, 32, dtype=torch.uint8), m(6, 2), m.other(6), 32, 64, 6),
        dtypes="tu",
    ),
    # PyTorch's operator reads activations without their strides.
    *(
        _cpu(
            "_dyn_quant_matmul_4bit",
            lambda m, group=group: (m(3, 64).contiguous(), _packed_int4(group), group, 64, 6),  # type: ignore[misc]
        )
        for group in (32, 64)
    ),
    _named_of(
        "_weight_int4pack_mm_for_cpu",
        "_weight_int4pack_mm_for_cpu.default",
        lambda m: (m(3, 64), m(16, 32, dtype=torch.uint8), 32, m(2, 16, 2)),
        compared=(),
    ),
]


def _boxes(m: Maker) -> Tensor:
    corners = m.probabilities(4, 2) * 3
    return torch.cat([corners, corners + 2], 1)


def _rois(m: Maker) -> Tensor:
    return torch.cat([torch.tensor([[0], [1], [1], [0]]).to(m.t), _boxes(m)], 1)


def _deformed(m: Maker) -> Arguments:
    offsets, mask = m(2, 12, 6, 6), m.positive(2, 6, 6, 6)
    return (m(2, 4, 6, 7), m(4, 2, 3, 2), offsets, mask, m(4), 1, 1, 1, 0, 1, 1, 2, 1, True)


def _vision(name: str, arguments: Callable[[Maker], Arguments], **more: Any) -> Call:
    return Call(
        f"aoti_slim_op_torchvision_{name}", f"torchvision::{name}.default", arguments, **more
    )


_DETECTION = [
    _vision("nms", lambda m: (_boxes(m), m.other(4), 0.25), dtypes="tu"),
    _vision("roi_align", lambda m: (m(2, 3, 6, 7), _rois(m), 0.5, 3, 2, 2, True)),
    _vision("deform_conv2d", _deformed),
]

_ELEMENTS = [
    *(_cpu(name, lambda m: (m(3, 5),)) for name in ("abs", "angle", "nonzero")),
    *(
        _named(name, lambda m: (m(3, 5),))
        for name in ("neg", "conj_physical", "sgn", "exp", "sin", "cos", "tanh", "_conj", "sqrt")
    ),
    *(_named(name, lambda m: (m.positive(3, 5),)) for name in ("log", "reciprocal")),
    _named_of("div_Tensor", "div.Tensor", lambda m: (m(3, 5), m.other(5) + 11), dtypes="tu"),
    # Scalars affect a result's dtype less than other tensors do.
    _named_of("div_Tensor", "div.Tensor", lambda m: (m(3, 5), m.other(1)[0] + 11), dtypes="tu"),
    _cpu_of("add_Tensor", "add.Tensor", lambda m: (m(3, 5), m.other(1)[0]), dtypes="tu"),
    _cpu_of("mul_Tensor", "mul.Tensor", lambda m: (m(3, 5), m.other(1)[0]), dtypes="tu"),
    _cpu_of(
        "pow_Tensor_Tensor",
        "pow.Tensor_Tensor",
        lambda m: (m.positive(3, 5), m.other(1)[0] * 0 + 2),
        dtypes="tu",
    ),
    _named_of(
        "where_self",
        "where.self",
        lambda m: (m.mask(3, 5), m(3, 5), m.other(1)[0]),
        dtypes="tu",
    ),
    _named("complex", lambda m: (m(3, 5), m(5))),
    _named_of("_to_copy", "_to_copy.default", lambda m: (m(3, 5),), dtypes="tu",
              options=lambda m: {"dtype": m.u}),
    _named_of("where_self", "where.self", lambda m: (m.mask(3, 5), m(3, 5), m.other(5)),
              dtypes="tu"),
    _cpu_of("add_Scalar", "add.Scalar", lambda m: (m(3, 5), 2.0)),
    _cpu_of("add_Tensor", "add.Tensor", lambda m: (m(3, 5), m.other(5)), dtypes="tu"),
    _cpu_of("mul_Scalar", "mul.Scalar", lambda m: (m(3, 5), 3.0)),
    _cpu_of("mul_Tensor", "mul.Tensor", lambda m: (m(3, 5), m.other(5)), dtypes="tu"),
    _cpu_of("pow_Scalar", "pow.Scalar", lambda m: (2.0, m.positive(3, 5))),
    _cpu_of("pow_Tensor_Scalar", "pow.Tensor_Scalar", lambda m: (m(3, 5), 2.0)),
    _cpu_of(
        "pow_Tensor_Tensor",
        "pow.Tensor_Tensor",
        lambda m: (m.positive(3, 5), (m.other(5).abs() if m.u.is_signed else m.other(5) // 64)),
        dtypes="tu",
    ),
    _cpu("gcd", lambda m: (m(3, 5), m.other(5)), dtypes="tu"),
    _cpu("polar", lambda m: (m.positive(3, 5), m(3, 5))),
    _cpu_of("fill__Scalar", "fill_.Scalar", lambda m: (m(3, 5), 2)),
]  # fmt: skip

_SELECTIONS = [
    _cpu("cat", lambda m: ([m(2, 5), m(3, 5)],)),
    _cpu("cat", lambda m: ([m(2, 5), m.other(3, 5)],), dtypes="tu"),
    _cpu_of("index_Tensor", "index.Tensor", lambda m: (m(4, 5), [m.indices(1, 3, 0)]), dtypes="ti"),
    _cpu_of("index_Tensor", "index.Tensor", lambda m: (m(4, 5), [m.mask(4, 5)])),
    _cpu("index_put", lambda m: (m(4, 5), [m.indices(1, 3, 0)], m(5)), dtypes="ti"),
    _cpu("index_put", lambda m: (m(4, 5), [m.indices(1, 1, 0)], m(5), True), dtypes="ti"),
    _cpu("index_put", lambda m: (m(4, 5), [m.mask(4, 5)], m(1)[0])),
    Call(
        "aoti_torch_index_put_out",
        "index_put.default",
        lambda m: (m(4, 5), [m.indices(1, 3, 0)], m(5)),
        dtypes="ti",
    ),
    Call(
        "aoti_torch_index_put_out",
        "index_put.default",
        lambda m: (m(4, 5), [m.mask(4, 5)], m(1)[0]),
    ),
    *(
        _cpu(
            "index_reduce",
            lambda m, how=how: (m(4, 5), 0, m.indices(1, 3, 1), m(3, 5), how),  # type: ignore[misc]
            dtypes="ti",
        )
        for how in ("prod", "mean", "amax", "amin")
    ),
    *(
        _cpu_of(
            "scatter_reduce_two_out",
            "scatter_reduce.two",
            lambda m, how=how: (m(4, 5), 0, m.long(3, 5, below=4), m(3, 5), how),  # type: ignore[misc]
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
    ),
    *(
        Call(
            "aoti_torch_scatter_reduce_out",
            "scatter_reduce.two",
            lambda m, how=how: (m(4, 5), 0, m.long(3, 5, below=4), m(3, 5), how),  # type: ignore[misc]
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
    ),
    _cpu_of("scatter_src_out", "scatter.src", lambda m: (m(4, 5), 0, _ONCE, m(3, 5))),
    Call("aoti_torch_scatter_out", "scatter.src", lambda m: (m(4, 5), 0, _ONCE, m(3, 5))),
    _cpu_of(
        "scatter_value_out", "scatter.value", lambda m: (m(4, 5), 0, m.long(3, 5, below=4), 1)
    ),
    *(
        _cpu(
            "segment_reduce",
            lambda m, how=how: (m(4, 5), how),  # type: ignore[misc]
            dtypes="ti",
            options=lambda m, which=which: {which: m.indices(1, 3)},
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for which in ("lengths", "offsets")
    ),
    _cpu("masked_scatter", lambda m: (m(4, 5), m.mask(4, 5), m(25))),
    _cpu("masked_select", lambda m: (m(4, 5), m.mask(4, 5))),
    _cpu("nonzero_static", lambda m: (m(3, 5),), options=lambda _: {"size": 20}),
    _cpu_of(
        "repeat_interleave_Tensor", "repeat_interleave.Tensor", lambda m: (m.indices(1, 0, 3),),
        dtypes="i",
    ),
    _cpu_of(
        "bucketize_Tensor", "bucketize.Tensor", lambda m: (m(3, 5), m.sorted(8)),
    ),
    _cpu_of(
        "bucketize_Tensor", "bucketize.Tensor", lambda m: (m(3, 5), m.sorted(8)),
        options=lambda _: {"out_int32": True},
    ),
    *(
        _cpu_of(
            "searchsorted_Tensor", "searchsorted.Tensor", lambda m: (m.sorted(8), m(3, 5)),
            options=lambda _, small=small: {"out_int32": small},
        )
        for small in (False, True)
    ),
    _cpu_of("searchsorted_Scalar", "searchsorted.Scalar", lambda m: (m.sorted(8), 1)),
    _cpu("histc", lambda m: (m(30), 5, -2, 2)),
    _named("bincount", lambda m: (m.positive(30),)),
    _named(
        "bincount",
        lambda m: (m.other(30).abs().to(m.u) if m.u.is_signed else m.other(30), m(30)),
        dtypes="tu",
    ),
]  # fmt: skip

_SORTING = [
    _cpu("sort", lambda m: (m(3, 5),), compared=(0,)),
    _cpu_of("sort_stable", "sort.stable", lambda m: (m(3, 5),), options=lambda _: {"stable": True}),
    _cpu("topk", lambda m: (m(3, 5), 2), compared=(0,)),
    _cpu("kthvalue", lambda m: (m(3, 5), 2), compared=(0,)),
    _cpu("mode", lambda m: (m(3, 5),), compared=(0,)),
    _cpu("median", lambda m: (m(3, 5),)),
    _cpu("nanmedian", lambda m: (m(3, 5),)),
    _named_of("median_dim", "median.dim", lambda m: (m(3, 5), 1), compared=(0,)),
    _named_of("nanmedian_dim", "nanmedian.dim", lambda m: (m(3, 5), 1), compared=(0,)),
    _cpu("cummax", lambda m: (m(3, 5), 1)),
    _cpu("cummin", lambda m: (m(3, 5), 1)),
    *(
        _cpu(name, lambda m: (m(3, 5), 1), dtypes="tu", options=lambda m: {"dtype": m.u})
        for name in ("cumsum", "cumprod")
    ),
    *(_cpu(name, lambda m: (m(3, 5), 1)) for name in ("cumsum", "cumprod", "logcumsumexp")),
    _named("_unique2", lambda m: (m(3, 5), True, True, True)),
    _named("unique_consecutive", lambda m: (m(3, 5), True, True)),
    _named("unique_dim", lambda m: (m(5, 2), 0, True, True, True)),
    _named("unique_dim_consecutive", lambda m: (m(5, 2), 0, True, True)),
    _named("sum", lambda m: (m(3, 5),)),
    _named("mean", lambda m: (m(3, 5),)),
    _named_of("sum_dim_IntList", "sum.dim_IntList", lambda m: (m(3, 5), [1])),
    _named_of("mean_dim", "mean.dim", lambda m: (m(3, 5), [1])),
]

# Those that torch/csrc/stable/ops.h calls: the operators that programs bring use them.
_STABLE = [
    _named("contiguous", lambda m: (m(3, 5),)),
    _named("copy_", lambda m: (m(3, 5), m.other(5)), dtypes="tu"),
    _named("empty_like", lambda m: (m(3, 5),), compared=()),
    _named_of(
        "empty_memory_format",
        "empty.memory_format",
        lambda m: ([3, 5],),
        options=_dtype,
        compared=(),
    ),
    _named_of("flatten_using_ints", "flatten.using_ints", lambda m: (m(2, 3, 5), 1)),
    _named("matmul", lambda m: (m(2, 3, 4), m(4, 5))),
    _named("matmul", lambda m: (m(2, 1, 3, 4), m(7, 4, 5))),
    _named("matmul", lambda m: (m(4), m(2, 4, 5))),
    _named("matmul", lambda m: (m(3, 4), m(4))),
    _named("new_empty", lambda m: (m(2), [3, 5]), compared=()),
    _named("new_zeros", lambda m: (m(2), [3, 5])),
    _named("reshape", lambda m: (m(3, 4), [2, -1])),
    _named_of("squeeze_dim", "squeeze.dim", lambda m: (m(3, 1, 5), 1)),
    _named_of(
        "sum_IntList_out",
        "sum.IntList_out",
        lambda m: (m(3, 5), [1]),
        options=lambda m: {"out": m(3)},
    ),
    _named_of("to_dtype_layout", "to.dtype_layout", lambda m: (m(3, 5),), options=_dtype),
    _named_of("transpose_int", "transpose.int", lambda m: (m(3, 5), 0, -1)),
    _named("zero_", lambda m: (m(3, 5),)),
    _aten("amax", lambda m: (m(3, 5), [1])),
    _aten_of("fill__Scalar", "fill_.Scalar", lambda m: (m(3, 5), 2)),
    _aten("full", lambda _: ([3, 5], 2), options=_dtype),
    _aten("narrow", lambda m: (m(3, 5), 1, 1, 2)),
    _aten("new_empty", lambda m: (m(2), [3, 5]), compared=()),
    _aten("new_zeros", lambda m: (m(2), [3, 5])),
    _aten("pad", lambda m: (m(2, 3, 5), [1, 2])),
    _aten_of("subtract_Tensor", "subtract.Tensor", lambda m: (m(3, 5), m.other(5)), dtypes="tu"),
]

_VIEWS = [
    _cpu("narrow", lambda m: (m(3, 5), 1, 1, 2)),
    _cpu("permute", lambda m: (m(3, 5), [1, 0])),
    _cpu("reshape", lambda m: (m(3, 5), [5, 3])),
    _cpu_of("slice_Tensor", "slice.Tensor", lambda m: (m(3, 5), 1, 1, 4, 2)),
    _cpu_of("squeeze_dim", "squeeze.dim", lambda m: (m(3, 1, 5), 1)),
    _cpu("view_as_complex", lambda m: (m(3, 2),)),
    _cpu("view_as_real", lambda m: (m(3, 5),)),
    _cpu_of("view_dtype", "view.dtype", lambda m: (m(3, 4), m.u), dtypes="tu"),
    _named("clone", lambda m: (m(3, 5),)),
    _named("expand", lambda m: (m(5), [3, 5])),
    _named("flip", lambda m: (m(3, 5), [1])),
    _named_of("select_int", "select.int", lambda m: (m(3, 5), 1, 2)),
    _named("unsqueeze", lambda m: (m(3, 5), 1)),
    _named("view", lambda m: (m(3, 5), [5, 3])),
    _named("as_strided", lambda m: (m(3, 5), [2, 3], [1, 2])),
    _named("diagonal", lambda m: (m(3, 5), 1)),
    _named("copy", lambda m: (m(3, 5), m.other(5)), dtypes="tu"),
    _named("select_scatter", lambda m: (m(3, 5), m.other(3), 1, 2), dtypes="tu"),
    _named("slice_scatter", lambda m: (m(3, 5), m.other(3, 2), 1, 0, 4, 2), dtypes="tu"),
]

_LINEAR_ALGEBRA = [
    _cpu("cholesky_inverse", lambda m: (m.lower(3),)),
    _cpu("cholesky_solve", lambda m: (m(3, 2), m.lower(3))),
    _cpu("geqrf", lambda m: (m(4, 3),)),
    _cpu("lu_unpack", lambda m: (m(3, 3), torch.tensor([2, 2, 3], dtype=torch.int32))),
    _cpu("ormqr", lambda m: (m(4, 3), m(3), m(4, 2))),
    _cpu("triangular_solve", lambda m: (m(3, 2), m.definite(3))),
    _named(
        "_linalg_check_errors", lambda m: (m(3) * 0, "x"), options=lambda _: {"is_matrix": False}
    ),
    _named("_linalg_det", lambda m: (m.definite(3),)),
    _named("_linalg_eigh", lambda m: (m.definite(3),), compared=(0,)),
    _named("_linalg_slogdet", lambda m: (m.definite(3),)),
    _named("_linalg_solve_ex", lambda m: (m.definite(3), m(3, 2))),
    _named("_linalg_svd", lambda m: (m(4, 3),), compared=(1,)),
    _named("linalg_cholesky_ex", lambda m: (m.definite(3),)),
    _named("linalg_eig", lambda m: (m.definite(3),), compared=(0,)),
    _named("linalg_householder_product", lambda m: (m(4, 3), m(2))),
    _named("linalg_inv_ex", lambda m: (m.definite(3),)),
    _named("linalg_ldl_factor_ex", lambda m: (m.definite(3),)),
    _named(
        "linalg_ldl_solve",
        lambda m: (m.definite(3), torch.tensor([1, -3, -3], dtype=torch.int32), m(3, 2)),
    ),
    _named("linalg_lu", lambda m: (m.definite(3),)),
    _named("linalg_lu_factor_ex", lambda m: (m.definite(3),)),
    _named(
        "linalg_lu_solve",
        lambda m: (m.definite(3), torch.tensor([2, 2, 3], dtype=torch.int32), m(3, 2)),
    ),
    _named("linalg_matrix_exp", lambda m: (m(3, 3) / 4 if m.t.is_floating_point else m(3, 3),)),
    _named("linalg_qr", lambda m: (m.definite(3),), compared=()),
    _named(
        "linalg_solve_triangular", lambda m: (m.definite(3), m(3, 2)),
        options=lambda _: {"upper": True},
    ),
    _cpu("_fft_c2c", lambda m: (m(4, 6), [1], 0, True)),
    _cpu("_fft_r2c", lambda m: (m(4, 6), [1], 0, True)),
    _named("_fft_c2r", lambda m: (m(4, 4), [1], 0, 6)),
    _cpu("hann_window", lambda _: (7,), options=_dtype),
]  # fmt: skip

_RANDOM = [
    _cpu("rand", lambda _: ([3, 5],), options=_dtype),
    _cpu("randn", lambda _: ([3, 5],), options=_dtype),
    _cpu_of("rand_generator", "rand.generator", lambda _: ([3, 5],), options=lambda m: {
        "generator": None, "dtype": m.t}),
    _cpu_of("randn_generator", "randn.generator", lambda _: ([3, 5],), options=lambda m: {
        "generator": None, "dtype": m.t}),
    _cpu("rand_like", lambda m: (m(3, 5),)),
    _cpu("randn_like", lambda m: (m(3, 5),)),
    _cpu_of("rand_like_generator", "rand_like.generator", lambda m: (m(3, 5),), options=lambda _: {
        "generator": None}),
    _cpu_of("randn_like_generator", "randn_like.generator", lambda m: (m(3, 5),),
            options=lambda _: {"generator": None}),
    _cpu("randint", lambda _: (2, [3, 5]), options=_dtype),
    _cpu_of("randint_generator", "randint.generator", lambda _: (2, [3, 5]), options=lambda m: {
        "generator": None, "dtype": m.t}),
    _cpu_of("randint_low", "randint.low", lambda _: (0, 2, [3, 5]), options=_dtype),
    _cpu("randint_like", lambda m: (m(3, 5), 2)),
    _cpu_of("randint_like_low_dtype", "randint_like.low_dtype", lambda m: (m(3, 5), 0, 2)),
    _cpu_of("randint_low_out", "randint.low", lambda _: (0, 2, [3, 5]), options=_dtype),
    _cpu("randperm", lambda _: (7,), options=_dtype),
    _cpu("uniform", lambda m: (m(3, 5),)),
    _cpu("exponential", lambda m: (m(3, 5),)),
    _cpu("normal_functional", lambda m: (m(3, 5),)),
    _cpu("native_dropout", lambda m: (m(3, 5), 0.5, True)),
    _cpu_of("bernoulli__float", "bernoulli_.float", lambda m: (m(3, 5), 0.5)),
    _cpu_of("bernoulli__Tensor", "bernoulli_.Tensor", lambda m: (
        m(3, 5), m.other(3, 5).abs().clamp(0, 1)), dtypes="tu"),
    _named("multinomial", lambda m: (m.positive(3, 5), 2)),
    _named_of(
        "normal_Tensor_Tensor", "normal.Tensor_Tensor", lambda m: (m(3, 5), m.positive(3, 5))
    ),
    _named_of("normal_Tensor_float", "normal.Tensor_float", lambda m: (m(3, 5), 2.0)),
    _named_of("normal_float_Tensor", "normal.float_Tensor", lambda m: (1.0, m.positive(3, 5))),
]  # fmt: skip


def _lstm(m: Maker) -> Arguments:
    weights = (m(32, 4), m(32, 8), m(32), m(32))
    state = (m(1, 2, 8), m(1, 2, 8))
    return (m(5, 2, 4), *weights, *state, False, [], 2, 8, 1, True, False, False, False)


def _lstm_by_modules(m: Maker) -> list[Tensor]:
    if m.t not in (torch.float16, torch.bfloat16, torch.float32):
        raise TypeError("oneDNN has no LSTM of this dtype")
    x, *rest = (t.double() for t in _lstm(m)[:7])
    module = torch.nn.LSTM(4, 8).double()
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), rest[:4], strict=True):
            parameter.copy_(value)
        output, (h, c) = module(x, (rest[4], rest[5]))
    return [t.to(m.t) for t in (output, h, c)]


def _whole(name: str, gates: int) -> Call:
    """Two layers of a recurrent network in both directions."""

    def arguments(m: Maker) -> Arguments:
        states = m(4, 2, 8)
        weights = [
            tensor
            for features in (4, 16)
            for _ in range(2)
            for tensor in (m(gates * 8, features), m(gates * 8, 8), m(gates * 8), m(gates * 8))
        ]
        given = [states, m(4, 2, 8)] if name == "lstm" else states
        return m(2, 5, 4), given, weights, True, 2, 0.0, False, True, True

    def reference(m: Maker) -> list[Tensor]:
        if not m.t.is_floating_point:
            raise TypeError("recurrent layers take floats")
        wide = torch.utils._pytree.tree_map_only(Tensor, Tensor.double, arguments(m))
        return [t.to(m.t) for t in getattr(torch.ops.aten, name).input(*wide)]

    return _named_of(f"{name}_input", f"{name}.input", arguments, reference=reference)


_RECURRENT = [
    _cpu("mkldnn_rnn_layer", _lstm, compared=(0, 1, 2), reference=_lstm_by_modules),
    _whole("lstm", 4), _whole("gru", 3), _whole("rnn_tanh", 1), _whole("rnn_relu", 1),
]  # fmt: skip

CALLS = [
    *_PRODUCTS, *_NETWORKS, *_DETECTION, *_ELEMENTS, *_SELECTIONS, *_SORTING, *_STABLE, *_VIEWS,
    *_LINEAR_ALGEBRA, *_RANDOM, *_RECURRENT,
]  # fmt: skip
