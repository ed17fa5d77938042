"""Which of a program's kernels share a C++ file.

Files are compiled in parallel, and only those whose text has changed. But each pays for torch's
headers, which take longer than dozens of ordinary kernels. So these share files, a fixed number
each; a template (a whole matrix product) takes seconds and gets a file of its own. A kernel's place
depends on those before it, not on what it computes: another text in one kernel moves no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KERNELS_PER_FILE = 16

# Inductor begins each kernel with this line, and a template's headers with the other too.
_BEGIN = "#include <torch/csrc/inductor/cpp_prefix.h>\n"
_TEMPLATE = re.compile(r"^\s*#include <c10/util/Unroll\.h>", re.MULTILINE)


def split(text: str) -> Mapping[str, str]:
    """The files' texts by name; there is always one, if the program has no kernel an empty one."""
    before, *kernels = text.split(_BEGIN)
    if before.strip():
        raise AssertionError(f"Inductor wrote something before its first kernel: {before[:200]!r}")
    loops: list[str] = []
    templates: list[str] = []
    for kernel in kernels:
        (templates if _TEMPLATE.search(kernel) else loops).append(kernel.strip())
    files = {}
    for number, at in enumerate(range(0, max(len(loops), 1), KERNELS_PER_FILE)):
        files[f"kernels_{number}.cpp"] = "\n\n".join(loops[at : at + KERNELS_PER_FILE])
    for number, template in enumerate(templates):
        files[f"template_{number}.cpp"] = template
    return files
