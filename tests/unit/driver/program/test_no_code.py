"""Nothing in a program's file is run as code: each way that torch has is refused beforehand."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.export import import_pt2, state_dict
from aoti_driver.program import graph_file, loading, no_code

Edit = Callable[[Any], None]
MODEL = "models/model.json"


class Linear(torch.nn.Module):
    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        picked = torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))
        moved: torch.Tensor = self.linear(picked)
        return moved * self.scale + torch.tensor([1.0, 2, 3, 4]) * x.shape[0]


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stock") / "model.pt2"
    shapes = ({0: torch.export.Dim("n", min=2, max=9)},)
    ep = torch.export.export(Linear().eval(), (torch.ones(3, 4),), dynamic_shapes=shapes)
    torch.export.save(ep, path)
    return path


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    return tmp_path / "proof"


class Touch:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def edited(
    stock: Path, path: Path, members: dict[str, bytes] | None = None, /, **edit: Edit
) -> Path:
    """A copy of ``stock`` with other members, and with its JSON documents changed."""
    members = dict(members or {})
    with zipfile.ZipFile(stock) as source, zipfile.ZipFile(path, "w") as target:
        root = source.namelist()[0].split("/")[0]
        for info in source.infolist():
            name = info.filename.removeprefix(f"{root}/")
            content = members.pop(name, None) or source.read(info)
            if name.endswith(".json") and (change := edit.get(Path(name).stem)):
                document = json.loads(content)
                change(document)
                content = json.dumps(document).encode()
            target.writestr(f"{root}/{name}", content)
        for name, content in members.items():
            target.writestr(f"{root}/{name}", content)
    return path


def refused(path: Path, proof: Path) -> str:
    with pytest.raises(DriverError) as error:
        import_pt2.load(str(path), "//pkg:m")
    assert not proof.exists(), f"code ran: {error.value}"
    return str(error.value)


def test_plain_programs_are_read(stock: Path, tmp_path: Path) -> None:
    x = torch.randn(5, 4)
    expected = torch.export.load(stock).module()(x)
    same = edited(stock, tmp_path / "model.pt2", {"extra/note.txt": b"__import__('os')"})
    for path in (stock, same):
        ep = import_pt2.load(str(path), "//pkg:m")
        torch.testing.assert_close(ep.module()(x), expected, rtol=0, atol=0)


def test_sample_inputs(stock: Path, tmp_path: Path, proof: Path) -> None:
    member = "data/sample_inputs/model.pt"
    path = edited(stock, tmp_path / "model.pt2", {member: saved(((Touch(proof),), {}))})
    assert refused(path, proof) == (
        f'//pkg:m: program model.pt2: the member "model/{member}" is a pickle that can be read '
        'only by running it: it asks for "posix.system"; expected tensors, numbers, strings, '
        "tuples, lists and dicts alone. Save the program with plain tensors for its weights, "
        "constants and sample inputs. A program is read as data: rules_aoti runs no code that a "
        "file brings."
    )


@pytest.mark.parametrize("kind", ["weights", "constants"])
def test_pickled_tensors(stock: Path, tmp_path: Path, proof: Path, kind: str) -> None:
    names: list[str] = []

    def pickled(document: Any) -> None:
        entry = next(iter(document["config"].values()))
        entry["use_pickle"] = True
        names.append(entry["path_name"])

    table = {f"model_{kind}_config": pickled}
    edited(stock, tmp_path / "model.pt2", {}, **table)
    member = f"data/{kind}/{names[0]}"
    path = edited(stock, tmp_path / "model.pt2", {member: saved(Touch(proof))}, **table)
    message = refused(path, proof)
    assert f'the member "model/{member}" is a pickle' in message


@pytest.mark.parametrize("kind", ["weights", "constants"])
def test_whole_tables_of_older_files(stock: Path, tmp_path: Path, proof: Path, kind: str) -> None:
    member = f"data/{kind}/model.pt"
    path = edited(stock, tmp_path / "model.pt2", {member: saved({"w": Touch(proof)})})
    assert f'the member "model/{member}" is a pickle' in refused(path, proof)


@pytest.mark.parametrize("prefix", ["opaque_obj_0", "custom_obj_0"])
def test_objects(stock: Path, tmp_path: Path, proof: Path, prefix: str) -> None:
    def object_(document: Any) -> None:
        document["config"]["thing"] = {
            "path_name": prefix,
            "is_param": False,
            "use_pickle": True,
            "tensor_meta": None,
        }

    content = pickle.dumps(Touch(proof))
    path = edited(
        stock,
        tmp_path / "model.pt2",
        {f"data/constants/{prefix}": content},
        model_constants_config=object_,
    )
    assert f'the member "model/data/constants/{prefix}" is a pickle' in refused(path, proof)


def graph(document: Any) -> Any:
    return document["graph_module"]["graph"]


def size(text: str) -> Edit:
    def change(document: Any) -> None:
        def walk(value: Any) -> None:
            if isinstance(value, dict):
                if "expr_str" in value:
                    value["expr_str"] = text
                for item in value.values():
                    walk(item)
            elif isinstance(value, list):
                for item in value:
                    walk(item)

        walk(document)

    return change


def target(name: str) -> Edit:
    def change(document: Any) -> None:
        graph(document)["nodes"][0]["target"] = name

    return change


def placeholder(name: str) -> Edit:
    def change(document: Any) -> None:
        before = graph(document)["inputs"][-1]["as_tensor"]["name"]
        text = json.dumps(document).replace(json.dumps(before), json.dumps(name))
        document.update(json.loads(text))

    return change


def spec(kind: str, context: Any, *children: Any) -> dict[str, Any]:
    written = context if kind == "collections.defaultdict" else json.dumps(context)
    return {"type": kind, "context": written, "children_spec": list(children)}


def in_spec(kwargs: dict[str, Any]) -> Edit:
    def change(document: Any) -> None:
        tree = spec("builtins.tuple", None, spec("builtins.tuple", None), kwargs)
        signature = document["graph_module"]["module_call_graph"][0]["signature"]
        signature["in_spec"] = json.dumps([1, tree])

    return change


LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
FACTORY = {
    "default_factory_module": "antigravity",
    "default_factory_name": "fly",
    "dict_context": ["x"],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (size("__import__('os').system('touch {proof}')"), "it has the size \"__import__('os')"),
        (size("preview(Symbol)"), 'the size "preview(Symbol)", which is not an arithmetic'),
        (size("().__class__"), 'the size "().__class__", which is not an arithmetic expression'),
        (size("Symbol('x y')"), "not an arithmetic expression"),
        (size("Max('print()', Symbol('x', integer=True))"), "not an arithmetic expression"),
        (size("(" * 30_000), "not an arithmetic expression"),
        (target("torch.serialization.os.system"), 'it calls "torch.serialization.os.system"'),
        (target("torch.ops.load_library"), 'it calls "torch.ops.load_library", which is no'),
        (target("torch.ops.aten.from_file.default"), 'it calls "torch.ops.aten.from_file'),
        (target("_operator.methodcaller"), 'it calls "_operator.methodcaller"'),
        (
            placeholder("x=__import__('os').system('touch {proof}')"),
            "it has the name \"x=__import__('os').system(",
        ),
        (
            in_spec(spec("builtins.dict", ["x=print()"], LEAF)),
            'it has the name "x=print()", expected an identifier',
        ),
        (
            in_spec(spec("collections.defaultdict", FACTORY, LEAF)),
            'its inputs or outputs name the Python module "antigravity"',
        ),
        (
            in_spec(spec("builtins.dict", [{"__enum__": True, "fqn": "this:x", "name": "y"}])),
            'its inputs or outputs name the Python module "this"',
        ),
    ],
)
def test_texts_that_would_be_run(
    stock: Path, tmp_path: Path, proof: Path, change: Edit, message: str
) -> None:
    def with_proof(document: Any) -> None:
        change(document)
        text = json.dumps(document).replace("{proof}", str(proof))
        document.clear()
        document.update(json.loads(text))

    path = edited(stock, tmp_path / "model.pt2", model=with_proof)
    found = refused(path, proof)
    assert message in found and found.endswith("rules_aoti runs no code that a file brings.")


def test_a_compiled_program_that_the_list_of_members_does_not_show(
    stock: Path, tmp_path: Path, proof: Path
) -> None:
    path = edited(stock, tmp_path / "model.pt2", {"data/aotinductor/model/x.o": b"code"})
    assert 'it holds the compiled program "data/aotinductor/model"' in refused(path, proof)


def test_frozen_graphs(stock: Path, tmp_path: Path, proof: Path) -> None:
    path = tmp_path / "graph.json"
    graph_file.save_graph(torch.export.load(stock), path)
    document = json.loads(path.read_text(encoding="utf-8"))
    size(f"__import__('os').system('touch {proof}')")(document["program"])
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DriverError, match="the graph can't be loaded: it has the size"):
        loading.load_program(path)
    assert not proof.exists()


@pytest.mark.parametrize(
    "text",
    [
        "2*s1 + 1",
        "Add(Mul(Integer(2), Symbol('s1', positive=True, integer=True)), Integer(1))",
        "Float('1.5', precision=53)",
        "((s0//2))",
        "Max(1, s0) + FloorDiv(s1, 2)",
        "Eq(s0, 3) & (u0 >= 1)",
        "-int_oo",
        "CeilToInt(IntTrueDiv(s0, 2))",
        "Piecewise((s0, s0 > 2), (0, True))",
        "sqrt(s0) if s0 > 2 else 1.5",
    ],
)
def test_sizes_that_programs_have(text: str) -> None:
    no_code._check_expression(text)


@pytest.mark.parametrize("suffix", ["pt", "pth", "bin", "ckpt"])
def test_weights(tmp_path: Path, proof: Path, suffix: str) -> None:
    torch.save({"weight": Touch(proof)}, tmp_path / f"w.{suffix}")
    files = [(f"pkg/w.{suffix}", str(tmp_path / f"w.{suffix}"))]
    with pytest.raises(DriverError) as error:
        state_dict.load_by_name(torch.nn.Linear(2, 2), files, "//pkg:m")
    assert not proof.exists()
    assert str(error.value).startswith(
        f"//pkg:m: weights: pkg/w.{suffix} is not a plain state dict: it can be read only by "
        'running it as a pickle, which asks for "posix.system". Save it with '
    )


def test_torchscript_weights(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(tmp_path / "w.pt"))
    with pytest.raises(DriverError, match=r"pkg/w\.pt is not a plain state dict: ") as error:
        state_dict.load_by_name(
            torch.nn.Linear(2, 2), [("pkg/w.pt", str(tmp_path / "w.pt"))], "//p:m"
        )
    assert "weights_only" not in str(error.value)
