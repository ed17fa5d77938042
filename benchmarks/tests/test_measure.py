from __future__ import annotations

import dataclasses
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import contestants, preparation, process
from benchmarks.harness.budget import Budget
from benchmarks.harness.config import Input, Model
from benchmarks.harness.contestants import steps_for
from benchmarks.harness.measure import dissimilarity, far_behind, read_outputs, relative_error
from benchmarks.harness.preparation import fingerprint, why_unneeded
from benchmarks.harness.process import ContestantError, Worker
from benchmarks.models.smollm2 import pack_int4
from benchmarks.peers.protocol import Array, explain, read_safetensors, write_safetensors
from benchmarks.tests.example import MODEL

ANSWERS = """
import sys
print("{}", flush=True)
for line in sys.stdin:
    said = '{"error": "no"}' if "fail" in line else '{"said": "' + line.strip() + '"}'
    print(said, flush=True)
"""


def python(program: str) -> Worker:
    return Worker([sys.executable, "-c", program], {}, {min(os.sched_getaffinity(0))}, 30)


def test_worker_answers_and_fails() -> None:
    worker = python(ANSWERS)
    assert worker.ask("hello", 10) == {"said": "hello"}
    with pytest.raises(ContestantError, match=r"^no$"):
        worker.ask("fail", 10)
    worker.close()


def test_worker_that_ends_tells_how() -> None:
    with pytest.raises(ContestantError, match=r"exit status 3: out of luck"):
        python("import sys; print('out of luck', file=sys.stderr); sys.exit(3)")


def test_worker_that_is_silent_is_not_waited_for() -> None:
    worker = python("print('{}', flush=True); import time; time.sleep(60)")
    with pytest.raises(ContestantError, match="no answer"):
        worker.ask("hello", 0.2)
    worker.close()


def test_worker_is_closed_with_the_processes_that_it_has_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    program = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(40)"])
open({str(child)!r}, "w").write(str(child.pid))
print("{{}}", flush=True)
sys.stdin.read()
"""
    worker = python(program)
    begun = time.monotonic()
    worker.close()
    assert time.monotonic() - begun < 30
    stat = Path(f"/proc/{child.read_text(encoding='ascii')}/stat")

    def runs() -> bool:
        try:
            return stat.read_text(encoding="utf-8").split()[2] != "Z"
        except OSError:  # it has ended, even while the file was read
            return False

    while runs() and time.monotonic() - begun < 30:  # a signal may take a moment
        time.sleep(0.01)
    assert not runs()


def test_worker_is_stopped_between_commands() -> None:
    program = """
import sys, threading
def spin():
    while True:
        pass
threading.Thread(target=spin, daemon=True).start()
print("{}", flush=True)
for line in sys.stdin:
    print('{"said": 1}', flush=True)
"""

    def ticks() -> int:
        fields = Path(f"/proc/{worker._process.pid}/stat").read_text(encoding="utf-8").split()
        return int(fields[13])

    worker = python(program)
    for _ in range(2):
        time.sleep(0.1)  # a signal may take a moment
        before = ticks()
        time.sleep(0.3)
        assert ticks() == before
        assert worker.ask("hello", 10) == {"said": 1}
    worker.close()


def test_program_that_does_not_end_after_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "SECONDS_TO_END", 0.2)
    program = f"""
import os, time
child = os.fork()
if child:
    open({str(tmp_path / "pid")!r}, "w").write(str(child))
    print(2_000_000_000, os.getpid(), "{{}}", flush=True)
time.sleep(600)
"""
    cpus = {min(os.sched_getaffinity(0))}
    started = process.start(sys.executable, ["-c", program], {}, cpus, 30)
    assert started.seconds == 2
    status = Path("/proc") / (tmp_path / "pid").read_text(encoding="utf-8") / "stat"
    end = time.monotonic() + 30
    while status.exists() and " Z " not in status.read_text(encoding="utf-8"):
        assert time.monotonic() < end, "what the program started still runs"
        time.sleep(0.05)


def test_peak_memory_of_a_worker() -> None:
    program = """
import sys
print("{}", flush=True)
for line in sys.stdin:
    block = bytearray(int(line) << 20)
    block = None
    print("{}", flush=True)
"""
    worker = python(program)
    before = worker.own_memory()
    worker.reset_peak()
    worker.ask("64", 10)
    # Pages of files count as they are afterwards, and some come late.
    assert 60 << 20 <= worker.peak_memory() - before < 96 << 20
    worker.reset_peak()
    worker.ask("0", 10)
    assert worker.peak_memory() - before < 32 << 20
    worker.close()


def test_budget_is_shared_and_what_is_left_goes_to_later_parts() -> None:
    now = 0.0
    budget = Budget(10, [1, 1, 2], lambda: now)
    assert budget.deadline() == 150
    now = 50.0  # a third of its share
    assert budget.deadline() == pytest.approx(50 + 550 / 3)
    now = 1000.0  # longer than all
    assert budget.deadline() == 1000
    assert Budget(None, [1]).deadline() == math.inf


def test_those_far_behind_stop_if_their_calls_are_slow() -> None:
    rounds = {"slim-v4": [(0.2, 0.3)], "eager": [(3.0, 3.1)], "openvino": [(2.0, 2.9)]}
    assert far_behind(rounds) == {"eager"}
    assert far_behind({"slim-v4": [(2e-6, 2e-6)], "eager": [(3e-5, 3e-5)]}) == set()
    assert far_behind({"slim-v4": [], "eager": []}) == set()


def test_one_disturbed_round_leaves_nobody_behind() -> None:
    disturbed = [(0.1, 0.2)]
    assert far_behind({"slim-v4": disturbed, "onnxruntime": [(0.01, 0.01)]}) == set()
    assert far_behind({"slim-v4": [*disturbed, (0.01, 0.01)], "eager": [(0.01, 0.01)]}) == set()
    assert far_behind({"slim-v4": [(0.01, 0.01)], "eager": [*disturbed, (0.2, 0.2)]}) == {"eager"}


def test_cases_are_in_the_order_of_their_sizes() -> None:
    cases: dict[str, dict[str, int]] = {name: {} for name in ("batch1", "batch32", "batch8")}
    model = Model.from_json(MODEL | {"cases": cases})
    assert list(model.cases) == ["batch1", "batch8", "batch32"]


def test_contestants_are_those_that_all_models_are_built_for() -> None:
    names = ("slim-v4", "slim-v3", "libtorch-v4", "eager")
    built = [{"runners": {"slim-v4": "", "slim-v3": ""}}, {"runners": {"slim-v4": ""}}]
    assert contestants.chosen(names, [], built, "x86-64-v4") == ["slim-v4", "libtorch-v4", "eager"]
    assert contestants.chosen(names, ["slim-v3"], built, "x86-64-v4") == ["slim-v3"]
    assert contestants.chosen(names, [], built[:1], "x86-64-v3")[1] == "slim-v3"
    with pytest.raises(SystemExit, match="levels=v3"):
        contestants.chosen(names, [], built, "x86-64-v3")


def test_relative_error() -> None:
    expected = np.array([1.0, -4.0], np.float32)
    assert relative_error(expected, expected) == 0
    assert relative_error(np.array([1.0, -3.0], np.float32), expected) == 0.25
    assert relative_error(np.array([1.0, np.nan], np.float32), expected) == math.inf
    assert relative_error(expected.astype(np.float64), expected) == math.inf
    assert relative_error(expected[:1], expected) == math.inf


def test_dissimilarity() -> None:
    expected = np.array([1.0, -4.0, 2.0])
    assert dissimilarity(expected * 3, expected) == pytest.approx(0)
    assert dissimilarity(-expected, expected) == pytest.approx(2)
    assert dissimilarity(np.zeros(2), expected) == math.inf
    assert dissimilarity(np.full(3, np.nan), expected) == math.inf


def test_outputs_are_read_as_they_were_written(tmp_path: Path) -> None:
    first, second = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7], np.int64)
    path = tmp_path / "outputs"
    path.write_bytes(first.tobytes() + second.tobytes())
    outputs = [{"dtype": "F32", "sizes": [2, 3]}, {"dtype": "I64", "sizes": [1]}]
    found = read_outputs(path, outputs)
    assert np.array_equal(found[0], first) and np.array_equal(found[1], second)


def test_safetensors_round_trip(tmp_path: Path) -> None:
    square = np.arange(4, dtype=np.float32).reshape(2, 2).T
    arrays: dict[str, Array] = {"a": np.zeros((2, 0), np.int64), "b": square}
    write_safetensors(str(tmp_path / "file"), arrays)
    found = read_safetensors(str(tmp_path / "file"))
    assert {name: array.shape for name, array in found.items()} == {"a": (2, 0), "b": (2, 2)}
    assert np.array_equal(found["b"], arrays["b"])


def test_input_specs() -> None:
    spec = Input.parse("int64[batch, 128] in 0..9")
    assert spec.shape({"batch": 3}) == (3, 128)
    assert (spec.low, spec.high, spec.static) == (0, 9, False)
    assert Input.parse("float32[2, 3] in -1..1").static
    with pytest.raises(ValueError, match="is not a spec"):
        Input.parse("float32")


def test_status_and_smaps() -> None:
    status = process.parse_status("Name:\tx\nVmHWM:\t  12 kB\nThreads:\t1\n")
    assert status == {"VmHWM": 12 * 1024}
    smaps = """\
7f0000-7f1000 r--p 00000000 fe:00 123                      /a/weights file.safetensors
Size:                  8 kB
Rss:                   8 kB
Anonymous:             4 kB
7f1000-7f2000 rw-p 00000000 00:00 0
Rss:                   4 kB
Anonymous:             4 kB
7f2000-7f3000 r--p 00001000 fe:00 123                      /a/weights file.safetensors
Rss:                   4 kB
Anonymous:             0 kB
7ffe00-7fff00 rw-p 00000000 00:00 0                        [stack]
Rss:                  16 kB
"""
    assert process.parse_smaps(smaps) == {"/a/weights file.safetensors": 8 * 1024}


def test_steps() -> None:
    assert steps_for(["slim-v4"]) == ["module"]
    assert steps_for(["openvino", "llama.cpp"]) == ["module", "onnx", "openvino", "gguf"]


def test_a_step_is_needed_if_one_contestant_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contestants, "IMPORTS", {})
    setting = contestants.Setting(Path(), Path(), {}, "x86-64-v4", "")
    without = {"eager": "a", "compile": "b", "onnxruntime": "c"}
    model = dataclasses.replace(Model.from_json(MODEL), without=without)
    for step in ("module", "onnx", "openvino"):
        assert why_unneeded(setting, model, step) == ""
    model = dataclasses.replace(model, without=without | {"openvino": "d"})
    assert why_unneeded(setting, model, "module") == ""
    assert why_unneeded(setting, model, "onnx") == "c"


def test_fingerprint_does_not_depend_on_the_order_of_sources(tmp_path: Path) -> None:
    sources = [tmp_path / folder / "model.py" for folder in ("one", "two")]
    for source in sources:
        source.parent.mkdir()
        source.write_text(source.parent.name, encoding="utf-8")
    assert fingerprint({}, sources) == fingerprint({}, sources[::-1])


def test_fingerprint_depends_on_sources(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text("1")
    before = fingerprint({"name": "x"}, [source])
    assert fingerprint({"name": "x"}, [source]) == before
    source.write_text("2")
    assert fingerprint({"name": "x"}, [source]) != before


def test_models_of_other_precision_share_the_onnx_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"1")
    for source in ("m.py", "benchmarks/peers/prepare.py"):
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).touch()
    setting = contestants.Setting(tmp_path, tmp_path / "cache", {}, "x86-64-v4", "")

    def step(setting: object, model: Model, step: str, path: Path, folder: Path) -> str:
        return ""

    monkeypatch.setattr(preparation, "_step", step)
    folders = []
    for name, precision in (("m", "float32"), ("m_bfloat16", "bfloat16")):
        description = MODEL | {"name": name, "precision": precision, "weights": [str(weights)]}
        folders.append(preparation.prepare(setting, description, ["onnx"]).folder)
    shared = (folders[0] / "onnx").resolve()
    assert folders[0] != folders[1] and (folders[1] / "onnx").resolve() == shared
    # Files of other weights are no longer needed when the last model is made of new ones.
    weights.write_bytes(b"2")
    preparation.prepare(setting, MODEL | {"weights": [str(weights)]}, ["onnx"])
    assert shared.is_dir() and not folders[0].exists()
    preparation.prepare(
        setting, MODEL | {"name": "m_bfloat16", "weights": [str(weights)]}, ["onnx"]
    )
    assert not shared.exists()


def test_explain_is_short() -> None:
    assert explain(ValueError("first\n\nsecond\nthird")) == "ValueError: first second"


def test_int4_layout() -> None:
    """Rows i and i + 16 of 32 share a byte; the bytes of a column lie together."""
    import torch

    rows = torch.arange(32) % 16
    packed = pack_int4(rows[:, None].repeat(1, 2).int()).flatten()
    assert packed.shape == (32,)
    assert packed.tolist() == [row | row << 4 for row in range(16)] * 2
