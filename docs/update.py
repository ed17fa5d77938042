"""Copies generated pages into docs/: `./bazelw run //docs:update`."""

import os
import sys
from pathlib import Path


def main() -> None:
    docs = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], "docs")
    for generated in map(Path, sys.argv[1:]):
        page = docs / generated.name.replace("_generated", "")
        text = generated.read_text(encoding="utf-8")
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            print(f"wrote docs/{page.name}")


if __name__ == "__main__":
    main()
