"""Sessions in Python, over fake programs: one with a single program, one with methods."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.tests.fake_modules import load_module, write_weights

adder = load_module("fake_adder")
counter = load_module("fake_counter")
methods = load_module("fake_methods")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_weights(tmp_path / "w", {"count": [5], "total": [50]})


@pytest.fixture
def model(weights: Path) -> Any:
    return counter.load(weights, num_runners=2)


def count(called: Any) -> float:
    return float(called(np.zeros(1, np.float32)).count[0])


def test_each_has_a_state_of_its_own(model: Any) -> None:
    a, b = model.session(), model.session()
    assert [count(x) for x in (a, a, b, model, a)] == [6, 7, 6, 6, 8]
    assert repr(a) == "<Session //tests:counter>"
    del model
    assert count(b) == 7


def test_forks(model: Any) -> None:
    session = model.session()
    count(session)
    fork = session.fork()
    assert [count(x) for x in (session, session, fork)] == [7, 8, 7]
    assert [count(x) for x in (fork.fork(), fork)] == [8, 8]
    session.reset()
    assert count(session) == 6


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_saved_states(model: Any, weights: Path, wrap: Any) -> None:
    session = model.session()
    count(session)
    saved = session.save()
    assert isinstance(saved, bytes) and b'"count"' in saved
    count(session)
    session.load(wrap(saved))
    assert count(session) == 7
    other = counter.load(weights).session()
    other.load(saved)
    assert count(other) == 7


def test_wrong_states(model: Any) -> None:
    session = model.session()
    count(session)
    with pytest.raises(counter.Error) as caught:
        session.load(b"short")
    assert caught.value.code == "WeightsMalformed"
    assert str(caught.value).startswith("counter: the values of the saved state: not a valid")
    with pytest.raises(TypeError, match="bytes-like object is required"):
        session.load("text")
    assert count(session) == 7


def test_methods_share_a_session(weights: Path) -> None:
    model = methods.load(weights)
    session = model.session()
    assert count(session) == 6
    assert session.forward(np.zeros(1, np.float32)).count == 7
    fork = session.fork()
    assert [float(x.read().total[0]) for x in (model, session, fork)] == [50, 70, 70]
    assert methods.Session.forward.__doc__ == methods.Model.forward.__doc__


def test_models_without_state_have_no_sessions() -> None:
    assert not hasattr(adder, "Session")
    assert not hasattr(adder.Model, "session")


def test_sessions_come_from_models_alone(model: Any) -> None:
    session = model.session()
    with pytest.raises(TypeError, match="cannot create objects"):
        counter.Session()
    for make in (copy.copy, pickle.dumps):
        with pytest.raises(TypeError, match="a Session can't be made, copied or pickled"):
            make(session)
    with pytest.raises(TypeError):
        counter.Session.fork(None)


def test_threads(model: Any) -> None:
    prompt = model.session()
    count(prompt)
    seen: list[list[float]] = []

    def talk() -> None:
        forks = [prompt.fork() for _ in range(50)]
        seen.append([count(fork) for _ in range(3) for fork in forks])

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [[7.0] * 50 + [8.0] * 50 + [9.0] * 50] * 4
