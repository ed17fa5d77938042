"""Models in a process that exits or forks while threads call them, and in other interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runtime.tests.fake_modules import write_weights

_PRELUDE = """
import sys, threading
import numpy as np
from runtime.tests.fake_modules import load_module

x = np.zeros((1, 2), np.float32)

def model():
    return load_module("fake_adder").load(sys.argv[1])
"""


def run(tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    weights = write_weights(tmp_path / "w", {"bias": [10, 20]})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-c", _PRELUDE + textwrap.dedent(script), str(weights)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


# The arguments of the daemon threads: each kind enters the interpreter in its own way.
_INPUTS = {
    "numpy": "x",
    "dlpack": """type("Exporter", (), {
        "__dlpack__": lambda self, **kwargs: x.__dlpack__(**kwargs),
        "__dlpack_device__": lambda self: (1, 0),
    })()""",
    "refused": "np.zeros((1, 3), np.float32)",
}


@pytest.mark.parametrize("given", _INPUTS)
def test_the_interpreter_ends_while_daemon_threads_call(tmp_path: Path, given: str) -> None:
    script = f"""
    adder, given = model(), {_INPUTS[given]}
    calls = threading.Semaphore(0)

    def forever():
        while True:
            try:
                adder(given)
            except ValueError:
                pass
            calls.release()

    for _ in range(4):
        threading.Thread(target=forever, daemon=True).start()
    for _ in range(400):
        calls.acquire()
    print("ends")
    """
    for _ in range(3):
        done = run(tmp_path, script)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_the_interpreter_ends_while_daemon_threads_load(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        model()
        loads = threading.Semaphore(0)

        def forever():
            while True:
                model()
                loads.release()

        for _ in range(4):
            threading.Thread(target=forever, daemon=True).start()
        for _ in range(100):
            loads.acquire()
        print("ends")
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_children_of_fork(tmp_path: Path) -> None:
    # With the only runner, one of the four threads nearly always runs a call.
    done = run(
        tmp_path,
        """
        import os, signal
        adder = load_module("fake_adder").load(sys.argv[1], num_runners=1)
        stop = threading.Event()

        def call():
            while not stop.is_set():
                adder(x)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        results = []
        for _ in range(30):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                os._exit(0 if adder(x).y.tolist() == [[10, 20]] and model()(x) else 1)
            results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        for thread in threads:
            thread.join()
        print(set(results))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{0}\n"


@pytest.mark.parametrize("before", [False, True], ids=["first", "later"])
def test_only_the_main_interpreter_is_supported(tmp_path: Path, before: bool) -> None:
    script = """
        try:
            import _interpreters as interpreters  # 3.13
        except ImportError:
            import _xxsubinterpreters as interpreters
        from runtime.tests import fake_modules
        path = str(fake_modules.HERE / "fake_adder.so")
        code = "\\n".join([  # without NumPy, which refuses subinterpreters too
            "import importlib.util",
            f"spec = importlib.util.spec_from_file_location('fake_adder', {path!r})",
            "module = importlib.util.module_from_spec(spec)",
            "try:",
            "    spec.loader.exec_module(module)",
            "except ImportError as e:",
            "    print(e, flush=True)",
        ])
        if BEFORE:
            model()
        interpreters.run_string(interpreters.create(), code)
        print(model()(x).y.tolist(), flush=True)
        """
    done = run(tmp_path, script.replace("BEFORE", str(before)))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "adder: models work in the main interpreter alone; import the module there\n"
        "[[10.0, 20.0]]\n"
    )


def test_a_module_imported_anew(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        first = load_module("fake_adder")
        del sys.modules["fake_adder"]
        second = load_module("fake_adder")
        assert second is not first and second.Model is first.Model
        assert second.__doc__ == "A fake.\\n"
        print(second.load(sys.argv[1])(x).y.tolist(), second.__spec__ is not first.__spec__)
        """,
    )
    assert (done.returncode, done.stdout) == (0, "[[10.0, 20.0]] True\n"), done.stderr


def test_a_model_in_atexit_and_in_a_global(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import atexit
        adder = model()
        out = adder(x)
        atexit.register(lambda: print(adder(x).y.tolist()))

        class Last:
            def __del__(self, adder=adder, x=x):
                print(adder(x).y.tolist())

        last = Last()
        """,
    )
    assert (done.returncode, done.stdout) == (0, "[[10.0, 20.0]]\n" * 2), done.stderr
