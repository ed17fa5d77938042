"""cc_chat as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

CC_CHAT = Path(os.environ["RUNFILES_DIR"], os.environ["CC_CHAT"])


def chat(*arguments: str, text: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
    run = subprocess.run([CC_CHAT, *arguments], input=text, capture_output=True, text=True)
    assert not check or run.returncode == 0, run.stderr
    return run


def test_answers_a_prompt() -> None:
    run = chat("--prompt", "Write two sentences about the sea", "--temperature=0")
    assert re.search(r"\b(sea|ocean|water)\b", run.stdout)
    assert len(run.stdout.split()) >= 10
    assert "<|" not in run.stdout
    assert re.fullmatch(
        r"\[prefill \d+ tokens, [\d.]+/s; decode \d+ tokens, [\d.]+/s\]\n", run.stderr
    )


def test_the_seed_decides() -> None:
    def once(seed: str) -> str:
        flags = ["--temperature", "1.5", "--top-p", "1", "--max-tokens", "24"]
        return chat("--prompt", "Tell me something", "--seed", seed, *flags).stdout

    assert once("1") == once("1") != once("2")


def test_converses() -> None:
    lines = "My name is Ada.\n\n/reset\nHello!\n/quit\nnever read\n"
    run = chat("--max-tokens", "12", "--temperature", "0", text=lines)
    prefills = [int(count) for count in re.findall(r"prefill (\d+)", run.stderr)]
    assert len(prefills) == 2
    assert "[cut: --max-tokens]" in run.stderr
    # After /reset the system prompt is not read again.
    forks = re.findall(
        r"forked after the system prompt: (\d+) tokens, which took \d+ ms,", run.stderr
    )
    assert len(forks) == 1
    assert prefills[0] > 25 > prefills[1]
    alone = chat("--prompt", "Hello!", "--max-tokens", "12", "--temperature", "0")
    assert run.stdout.endswith(alone.stdout)
    assert f"prefill {prefills[1] + int(forks[0])} tokens" in alone.stderr
    run = chat("--max-tokens", "12", "--temperature", "0", text="My name is Ada.\nHello!\n")
    first, second = (int(count) for count in re.findall(r"prefill (\d+)", run.stderr))
    assert first > 25 > second


def test_a_message_that_is_too_long() -> None:
    run = chat("--prompt", "word " * 2100, check=False)
    assert run.returncode == 1
    assert "the model can read at most 2048" in run.stderr
    assert run.stdout == ""
    run = chat("--max-tokens=4", text="word " * 2100 + "\nHello!\n")
    assert "at most 2048" in run.stderr
    assert run.stdout.strip()


def test_help() -> None:
    assert "--max-tokens N" in chat("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--promt", "x"], "unknown argument --promt"),
        (["stray"], "unknown argument stray"),
        (["--prompt"], "--prompt needs a value"),
        (["--max-tokens", "many"], '--max-tokens: "many" is not a number'),
        (["--max-tokens=0"], "--max-tokens must be 1 or more"),
        (["--seed=-1"], '--seed: "-1" is not a number in its range'),
        (["--temperature=-0.5"], "--temperature must be 0 (greedy) or more"),
        (["--top-k", "-3"], "--top-k must be 0 (off) or more"),
        (["--top-p=0"], "--top-p must be above 0"),
    ],
)
def test_mistakes_on_the_command_line(arguments: list[str], message: str) -> None:
    run = chat(*arguments, check=False)
    assert run.returncode == 2
    assert message in run.stderr
    assert run.stdout == ""


def test_wrong_files(tmp_path: Path) -> None:
    run = chat("--prompt=x", "--tokenizer", "/nowhere.gguf", check=False)
    assert (run.returncode, "/nowhere.gguf: can't open" in run.stderr) == (1, True)
    other = tmp_path / "other"
    other.write_text("something else")
    run = chat("--prompt=x", "--tokenizer", str(other), check=False)
    assert (run.returncode, "this is no GGUF file" in run.stderr) == (1, True)
    run = chat("--prompt=x", "--weights", "/nowhere.safetensors", check=False)
    assert (run.returncode, "/nowhere.safetensors" in run.stderr) == (1, True)
