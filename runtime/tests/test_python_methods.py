"""Python modules of models with several methods, over fake programs."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.tests.fake_modules import load_module, write_weights

methods = load_module("fake_methods")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_weights(tmp_path / "w", {"count": [5], "total": [50]})


@pytest.fixture
def model(weights: Path) -> Any:
    return methods.load(weights)


def cache() -> Any:
    return np.zeros(1, np.float32)


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_signatures() -> None:
    assert methods.__doc__ == "Fakes.\n"
    assert methods.forward.inputs == {"cache": "float32[1]"}
    assert methods.forward.outputs == {"count": "float32[1]", "total": "float32[1]"}
    assert methods.read.inputs == {} and methods.read.dims == {}
    assert methods.read.__provenance__ is None  # a fake was made of nothing
    assert repr(methods.read_all) == "<Method fake_methods.read_all>"
    assert methods.Model.forward.__doc__ == methods.Model.__call__.__doc__ == "Counts.\n"
    # These are each method's own.
    for name in ("inputs", "outputs", "dims", "Outputs"):
        assert not hasattr(methods, name)


def test_methods_share_the_state(model: Any, weights: Path) -> None:
    other = methods.load(weights)
    assert [model.forward(cache()).count, model.forward(cache=cache()).count] == [6, 7]
    assert model.read().total == 70
    assert other.read().total == 50
    assert repr(model) == "<Model //tests:fake_methods>"


def test_a_call_of_the_model_is_one_of_forward(model: Any) -> None:
    out = model(cache())
    assert type(out) is methods.ForwardOutputs
    assert (out.count, model(cache=cache()).count) == (6, 7)


def test_structures(model: Any) -> None:
    one, many = model.read(), model.read_all()
    assert type(one) is type(many["all"]) is methods.Total
    assert (many["all"].total, many["seven"]) == (50, 7)
    assert pickle.loads(pickle.dumps(many))["all"].total == 50
    assert type(pickle.loads(pickle.dumps(model.forward(cache())))) is methods.ForwardOutputs


def test_an_output_is_passed_on_without_a_copy(model: Any) -> None:
    given = model.read().total
    assert model.locate(given).address == address(given)
    model.forward(cache=given)  # writes to the input's memory
    assert given.tolist() == [150.0]


def test_calls_release_the_interpreter(model: Any) -> None:
    results: list[float] = []
    barrier = threading.Barrier(4)

    def count() -> None:
        barrier.wait()
        results.extend(float(model.forward(cache()).count[0]) for _ in range(50))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(6, 206))  # one after the other: none is lost
    assert model.read().total == 50 + 10 * 200


def test_errors_name_the_method(model: Any, tmp_path: Path) -> None:
    with pytest.raises(methods.InputError) as wrong:
        model.forward(np.zeros(2, np.float32))
    assert str(wrong.value) == 'fake_methods.forward: input "cache": dim 0 is 2, must be 1'
    with pytest.raises(TypeError) as unknown:
        model.forward(cash=cache())
    assert str(unknown.value) == (
        'fake_methods.forward: there is no input "cash"; its inputs are cache'
    )
    with pytest.raises(TypeError) as many:
        model.read(cache())
    assert str(many.value) == "fake_methods.read: got 1 positional inputs, must be at most 0"
    with pytest.raises(methods.Error) as missing:
        methods.load(tmp_path / "gone")
    assert missing.value.code == "WeightsNotFound"
    with pytest.raises(methods.Error) as empty:
        methods.load("")
    assert str(empty.value).startswith("fake_methods: weights is '', must be the path of ")
    with pytest.raises(methods.Error) as runners:
        methods.load(num_runners=-1)
    assert "num_runners" in str(runners.value)


def test_only_a_loaded_model_is_called() -> None:
    with pytest.raises(TypeError) as unloaded:
        methods.read()
    assert str(unloaded.value) == (
        "fake_methods.read: a method of a loaded model: call load() first, then read() of what it "
        "returns"
    )


def test_sealed(model: Any) -> None:
    for sealed in (model, methods.read):
        with pytest.raises(TypeError, match="can't be made, copied or pickled"):
            copy.copy(sealed)
        with pytest.raises(TypeError):
            type(sealed)()


def test_swapped_weights_are_of_all_methods(weights: Path, tmp_path: Path) -> None:
    model = methods.load(weights)
    model.swap_weights(write_weights(tmp_path / "new", {"count": [7], "total": [70]}))
    session = model.session()
    assert session.read().total == 70
    assert session.forward(cache()).count == 8
    with pytest.raises(methods.Error) as caught:
        model.swap_weights("/does/not/exist")
    assert caught.value.code == "WeightsNotFound"
