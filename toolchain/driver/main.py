"""The program that actions run: ``python -I -S main.py --site=DIR [--persistent_worker] ARGS``.

``--barrier=MODE`` says what to do if the kernel can't keep a step from undeclared files or the
network: ``auto`` prints a warning, ``required`` fails, ``off`` disables the barrier everywhere.

Starts the driver with an import path and an environment that do not depend on the machine: only
this folder, the interpreter's standard library and the given site-packages folders.
"""

from __future__ import annotations

import gc
import os
import sys


def _open_standard_files() -> None:
    """Opens the standard files that are closed: otherwise the next file would get their numbers,
    and prints would go there.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def main(argv: list[str]) -> int:
    _open_standard_files()
    sites = [os.path.abspath(a.removeprefix("--site=")) for a in argv if a.startswith("--site=")]
    worker = "--persistent_worker" in argv
    barriers = [a.removeprefix("--barrier=") for a in argv if a.startswith("--barrier=")]
    own_flags = ("--site=", "--barrier=")
    rest = [a for a in argv if not a.startswith(own_flags) and a != "--persistent_worker"]
    for site in sites:
        if not os.path.isdir(site):
            print(f"--site={site}: no such directory", file=sys.stderr)
            return 1
    # No .pyc files are written beside the inputs, and no .pth files are run: both would be
    # undeclared.
    sys.dont_write_bytecode = True
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [own, *(p for p in sys.path if p != own), *sites]

    from aoti_driver.base import environment
    from aoti_driver.process import supervise
    from aoti_driver.process import worker as persistent

    gc.set_threshold(*persistent.COLLECT_AFTER)
    environment.purge(portable=rest[:1] != ["verify"])
    barrier = barriers[-1] if barriers else "auto"
    if worker:
        return persistent.serve(barrier)
    status, said = supervise.Supervisor(barrier).run(rest)
    print(said, file=sys.stderr, end="")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
