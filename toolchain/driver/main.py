"""What runs inside of the actions: ``python -I -S main.py --site=DIR [--persistent_worker] ARGS``.

Starts the driver with an import path and an environment that hold nothing of the machine: only
this folder, the interpreter's standard library and the given site-packages folders.
"""

from __future__ import annotations

import gc
import os
import sys

# PyTorch makes objects by the million: a collection at every 700 takes a tenth of code generation.
_COLLECT_AFTER = (50_000, 20, 100)


def main(argv: list[str]) -> int:
    sites = [os.path.abspath(a.removeprefix("--site=")) for a in argv if a.startswith("--site=")]
    worker = "--persistent_worker" in argv
    rest = [a for a in argv if not a.startswith("--site=") and a != "--persistent_worker"]
    for site in sites:
        if not os.path.isdir(site):
            print(f"--site={site}: no such directory", file=sys.stderr)
            return 1
    # No .pyc files next to the inputs, and no .pth files run: both would be undeclared.
    sys.dont_write_bytecode = True
    gc.set_threshold(*_COLLECT_AFTER)
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [own, *(p for p in sys.path if p != own), *sites]

    from aoti_driver import cli, environment
    from aoti_driver import worker as persistent

    environment.purge(portable=rest[:1] != ["verify"])
    return persistent.serve() if worker else cli.main(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
