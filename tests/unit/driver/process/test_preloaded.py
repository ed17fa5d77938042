"""What a worker has imported when the requests of a model come."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# In a process that has imported nothing else, as a worker's child.
REQUESTS = """
import importlib, sys
from pathlib import Path
from aoti_driver.process import preloaded
for name in (*preloaded.FIRST, *preloaded.LATER):
    importlib.import_module(name)
before = {*sys.modules}
from tests.unit.driver.inductor import harness
import torch
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x):
        return torch.nn.functional.silu(self.layer(x)).softmax(-1)
folder = Path(sys.argv[1])
shapes = {"x": {0: torch.export.Dim("rows", max=8)}}
harness.freeze(folder, Layer(), (torch.randn(3, 4),), shapes=shapes)
harness.generate(folder, "layer")
print("\\n".join(sorted({*sys.modules} - before)))
"""


def test_requests_import_little(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REQUESTS, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    imported = done.stdout.split()
    assert "tests.unit.driver.inductor.harness" in imported
    packages = ("torch.", "torchgen.", "sympy.", "aoti_driver.")
    # Inductor imports these where it looks for attention.
    patterns = "torch._inductor.fx_passes.serialized_patterns"
    others = [n for n in imported if n.startswith(packages) and not n.startswith(patterns)]
    assert not others, f"{others} belongs in toolchain/driver/aoti_driver/process/preloaded.py"
