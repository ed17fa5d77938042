"""Which calls a model takes: those that eager takes, as far as they are declared, and no others.

What a program was not made for, because forward() decides by a size, is refused too: by a guard.

Models and declarations are drawn; every combination of sizes in and around the declared ranges is
tried. runtime/tests:check_fuzz_test says that the runtime accepts what the manifest says.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import torch
from aoti_driver.contract import conditions
from aoti_driver.contract.manifest import ProgramManifest
from hypothesis import HealthCheck, Phase, example, given, settings, strategies

from tests.unit.driver.harness import Export

LARGEST = 14
# x is float32[n, 4], y float32[m, 4] or of a size that follows from n and m, z float32[m], and k an
# int.
LINES = [
    "x * 2, y + 1",
    "x.view({a}, -1, 4).sum(0), y.sum()",
    "x.reshape(-1, {a}, 2), y",
    "x[:{a}] * 2, y[{b}:]",
    "x + y[: x.shape[0]].sum(0), y",
    "torch.cat([x, y]).view({a}, -1), x",
    "x.unfold(0, {a}, {b}), y",
    "x if x.shape[0] > {a} else x * 2, y",
    "x.mean(0) + y.amax(0), x.shape[0] + y.shape[0]",
    "torch.nn.functional.avg_pool1d(x.T, {a}), y",
    "x[-1:].sum(0) + y[:1].sum(0), x",
    "x @ y.T if x.shape[0] < y.shape[0] + {b} else x @ y.T * 2, x",
    "torch.cat([x, y]).view(-1, 8) if x.shape[0] > y.shape[0] else y + 1, x",
    "x.view(-1, 2, 2) * y.shape[0] if (x.shape[0] + y.shape[0]) % 2 == 0 else x, y",
    "x.roll(k, 0) * k, y + z.sum()",
    "x + k // {b}, y.roll(k - {a}, 1)",
    "torch.full((k + {a},), 1.5), torch.nn.functional.pad(y, (0, 0, {b}, k + 4))",
    "x[: x.shape[0] // {a}].sum(0) + k, y[(x.shape[0] + {b}) // 2 :]",
]
Y_SIZES = ["m", "m", "n + m", "n // 2", "(n + 1) // 2", "(n + m) // 3"]
NUMBERS = ["-2..2", "-3..-1", "0..1", "1..2", "0..3"]
RANGES = strategies.tuples(strategies.integers(0, 2), strategies.integers(3, 9)).map(
    lambda low_and_more: (low_and_more[0], low_and_more[0] + low_and_more[1] + 1)
)
DIMS = strategies.fixed_dictionaries(
    {
        "n": strategies.one_of(
            RANGES.map(lambda ends: "{}..{}".format(*ends)),
            RANGES.map(lambda ends: f"{2 * ends[0]}..{2 * ends[1]} step 2"),
            strategies.just("2*h"),
            strategies.just("m + 1"),
        ),
        "m": RANGES.map(lambda ends: "{}..{}".format(*ends)),
    }
)

# A slice that may end behind the end of its tensor is as long as the shorter of the two.
DECIDES = re.compile(r" if |\[: x")

Sizes = tuple[int, int, int]  # n, m and k


def source(line: str) -> str:
    return f"""
    import torch

    class Model(torch.nn.Module):
        def forward(self, x, y, z, k: int):
            return {line}

    build = Model
    """


def sizes(manifest: ProgramManifest, guards: bool) -> set[Sizes]:
    """The calls that the manifest declares, or that it accepts."""
    free = {dim.name: range(dim.min, dim.max + 1) for dim in manifest.dims if dim.alias is None}
    found = set()
    for values in itertools.product(*free.values()):
        dims = dict(zip(free, values))
        if not guards or conditions.all_hold(manifest.guards, dims):
            n, _, m = (int(item.shape[0].evaluate(dims)) for item in manifest.inputs[:3])
            found.add((n, m, dims["k"]))
    return found


def eager(line: str, arguments: Mapping[str, object]) -> object:
    """None if forward() refuses the inputs."""
    try:
        return eval(line, {"torch": torch, **arguments})
    except Exception:
        return None


_counts = {"refused builds": 0, "calls": 0, "refused calls": 0}


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    # An export takes a second: the first failure is shown as it is.
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
)
@given(
    line=strategies.sampled_from(LINES),
    dims=DIMS,
    a=strategies.integers(1, 4),
    b=strategies.integers(1, 3),
    y_size=strategies.sampled_from(Y_SIZES),
    numbers=strategies.sampled_from(NUMBERS),
)
# From 2 on, n is always less than m + 2.
@example(line=LINES[-3], dims={"n": "0..3", "m": "0..2"}, a=1, b=2, y_size="m", numbers="0..1")
# torch takes no range of a single size.
@example(line=LINES[3], dims={"n": "2*h", "m": "0..2"}, a=1, b=1, y_size="m", numbers="0..1")
def check(
    export: Export,
    line: str,
    dims: Mapping[str, str],
    a: int,
    b: int,
    y_size: str,
    numbers: str,
) -> None:
    line = line.format(a=a, b=b)
    declared = {**dims, "h": "1..5"} if dims["n"] == "2*h" else dict(dims)
    inputs = {
        "x": "float32[n, 4]",
        "y": f"float32[{y_size}, 4]",
        "z": "float32[m]",
        "k": f"int in {numbers}",
    }
    result = export(source(line), inputs, declared)
    if result.code != 0:
        _counts["refused builds"] += 1
        assert result.error.startswith("//pkg:m: "), result.error
        return
    # It has no weights. torch's own checks stay out: the runtime has others.
    program = result.program().graph_module
    accepted = sizes(result.manifest, guards=True)
    for n, m, k in sorted(sizes(result.manifest, guards=False)):
        if max(n, m) > LARGEST or (k != int(numbers.split("..")[0]) and "k" not in line):
            continue
        rows = eval(y_size, {"n": n, "m": m})
        arguments = {"x": torch.rand(n, 4), "y": torch.rand(rows, 4), "z": torch.rand(m), "k": k}
        expected = eager(line, arguments)
        call = f"{line}, {inputs}, {declared}: n = {n}, m = {m}, k = {k}"
        if (n, m, k) not in accepted:
            _counts["refused calls"] += 1
            assert DECIDES.search(line) or expected is None, f"{call} is refused, eager takes it"
            continue
        _counts["calls"] += 1
        assert expected is not None, f"{call} is accepted, eager refuses it"
        for one, two in zip(
            torch.utils._pytree.tree_leaves(program(*arguments.values())),
            torch.utils._pytree.tree_leaves(expected),
            strict=True,
        ):
            torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(two))


def test_what_is_accepted_is_what_eager_takes(export: Export) -> None:
    check(export)
    # The test is worth little if most builds are refused, or no call is.
    assert _counts["calls"] > 100 and _counts["refused calls"] > 10
