"""Downloads one wheel by its hash and extracts files of it.

usage: extract_wheel.py REQUEST.json, which holds requirement, pip_options and files.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from pip_runner import run_pip


def extract(wheel: Path, files: dict[str, str]) -> None:
    """Extracts members of a wheel. `files` maps a member's path to the path to write."""
    with zipfile.ZipFile(wheel) as archive:
        members = archive.namelist()
        for member, output in sorted(files.items()):
            if member not in members:
                sys.exit(
                    f"{wheel.name} has no file {member}. Its files:\n  " + "\n  ".join(members)
                )
            Path(output).parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, Path(output).open("wb") as target:
                shutil.copyfileobj(source, target)


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        command = ["download", "--dest", folder, *request["pip_options"]]
        trouble = run_pip(command, [request["requirement"]])
        if trouble is not None:
            sys.exit(f"pip could not download {request['requirement']}:\n{trouble}")
        (wheel,) = Path(folder).glob("*.whl")
        extract(wheel, request["files"])


if __name__ == "__main__":
    main()
