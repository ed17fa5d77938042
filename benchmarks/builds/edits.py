"""Small edits of models, as somebody makes who tries things: they change the graph."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Edit:
    """A text that occurs once in a file of the source tree, and what takes its place."""

    file: str
    before: str
    after: str

    @contextlib.contextmanager
    def made(self, tree: Path) -> Iterator[None]:
        """The file is edited inside, and as it was afterwards."""
        path = tree / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.file}: expected {self.before!r} once")
        path.write_text(text.replace(self.before, self.after), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")


# By model of //benchmarks:build.
EDITS = {
    "mlp": Edit(
        "benchmarks/models/mlp.py",
        "nn.Linear(64, 128), nn.ReLU()",
        "nn.Linear(64, 128), nn.GELU()",
    ),
    "glass": Edit(
        "models/glassllm/model.py",
        "nn.functional.silu(x @ self.W1)",
        "nn.functional.gelu(x @ self.W1)",
    ),
    "minilm": Edit("models/bert/model.py", "EPSILON = 1e-12", "EPSILON = 1e-6"),
    "llm": Edit("models/smollm2/model.py", "EPSILON = 1e-5", "EPSILON = 1e-6"),
}
