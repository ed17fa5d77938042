from __future__ import annotations

import pytest
from aoti_driver.contract import naming
from torch.utils import _pytree as pytree


@pytest.mark.parametrize(
    ("value", "names", "texts"),
    [
        (0, ["output"], [""]),
        ((0,), ["output"], ["[0]"]),
        ((0, 0), ["output_0", "output_1"], ["[0]", "[1]"]),
        ({"a": 0, "b": [0, 0]}, ["a", "b_0", "b_1"], ["a", "b[0]", "b[1]"]),
        ({"a_0": 0, "a": [0]}, ["a_0", "a_0_2"], ["a_0", "a[0]"]),
        ({"class": 0, "x y": 0}, ["class_", "x_y"], ["class", '["x y"]']),
        ({"int": 0, "__a__b": 0}, ["int_", "a_b"], ["int", "__a__b"]),
        ({0: 0, 1: 0}, ["output_0", "output_1"], ["[0]", "[1]"]),
        (({"k": 0}, 0), ["output_0_k", "output_1"], ["[0].k", "[1]"]),
    ],
)
def test_results(value: object, names: list[str], texts: list[str]) -> None:
    paths = naming.result_paths(pytree.tree_structure(value))
    assert naming.output_names(paths) == names
    assert [naming.path_text(p) for p in paths] == texts


def test_a_container_without_key_paths_has_its_context_s_names() -> None:
    class Output(dict[str, object]):
        pass

    pytree.register_pytree_node(
        Output,
        lambda d: (list(d.values()), list(d.keys())),
        lambda values, keys: Output(zip(keys, values, strict=True)),
        serialized_type_name="aoti_test.Output",
    )
    paths = naming.result_paths(pytree.tree_structure(Output(logits=0, hidden=(0, 0))))
    assert naming.output_names(paths) == ["logits", "hidden_0", "hidden_1"]
