"""From a workspace to the command that runs Bazel for it; made once, then only looked up."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import truststore
from .base import VERSION, note
from .modules import Versions, asked_versions
from .store import digest, locked, make_directory, write_file

_SOURCES = Path(__file__).resolve().parent
_RC = """\
# The registry holds Debian's rulesets under every version that is asked for.
common --registry={registry}
# Debian's build can neither read nor write a lock file, nor load WORKSPACE's own repositories.
common --lockfile_mode=off
common --noenable_workspace
"""
# --version works only as the client's first argument, and {words} has others before it.
_COMMAND = """\
#!/bin/sh
[ "$*" = --version ] && echo "bazel {version}" && exit
exec {words} "$@"
"""


@dataclass(frozen=True)
class Environment:
    """The places of one environment; `ready` tells whether they have been made."""

    cache: Path
    prefix: Path
    folder: Path
    versions: Versions

    @property
    def bazel(self) -> Path:
        """The command to run in place of `bazel`."""
        return self.folder / "bazel"

    @property
    def ready(self) -> bool:
        return self.bazel.exists() and self.prefix.exists()


def locate(cache: Path, workspaces: Iterable[Path]) -> Environment:
    """Where the environment for these workspaces belongs; makes nothing."""
    cache = cache.resolve()
    versions = asked_versions(workspaces)
    # The prefix holds absolute paths: a cache that was moved is of no use.
    files = sorted(_SOURCES.glob("*.py"))
    code = (part for file in files for part in (file.name.encode(), file.read_bytes()))
    prefix_key = digest([str(cache).encode(), *code])
    asked = [f"{name}@{version}" for name in sorted(versions) for version in sorted(versions[name])]
    bundle = truststore.ca_bundle()
    certificates = bundle.read_bytes() if bundle else b""
    key = digest([prefix_key.encode(), "\n".join(asked).encode(), certificates])
    return Environment(cache, cache / "prefix" / prefix_key, cache / "env" / key, versions)


def _write_command(folder: Path, environment: Environment) -> None:
    final, prefix = environment.folder, environment.prefix
    options = [
        "--nosystem_rc",
        f"--install_base={prefix}/root/usr/share/bazel",
        "--trust_install_base",
        f"--server_javabase={prefix}/jre",
    ]
    bundle = truststore.ca_bundle()
    if bundle:
        # Not in `final`: with another JVM option the server would restart at each new MODULE.bazel.
        store = truststore.java_truststore(bundle.read_text())
        file = environment.cache / "truststore" / f"{digest([store])}.jks"
        write_file(file, store)
        options += [
            f"--host_jvm_args=-Djavax.net.ssl.trustStore={file}",
            f"--host_jvm_args=-Djavax.net.ssl.trustStorePassword={truststore.PASSWORD}",
        ]
    # In an rc of the command, not of the workspace: workspaces inside of others need it too.
    options.append(f"--bazelrc={final}/bazelrc")
    (folder / "bazelrc").write_text(_RC.format(registry=(final / "registry").as_uri()))
    words = " ".join(shlex.quote(word) for word in [f"{prefix}/root/usr/bin/bazel", *options])
    (folder / "bazel").write_text(_COMMAND.format(version=VERSION, words=words))
    (folder / "bazel").chmod(0o755)


def ensure(environment: Environment) -> Path:
    """Makes whatever is missing of the environment; returns the command to run."""
    if environment.ready:
        return environment.bazel
    from . import bazel, registry
    from .fetch import Fetcher

    with locked(environment.cache / "lock"):
        if not environment.prefix.exists():
            note(f"fetching Bazel {VERSION} from Debian's mirror (80 MB, once)")

        def build(place: Path) -> None:
            final = environment.prefix
            bazel.build_prefix(place, final, Fetcher(environment.cache / "downloads"))
            registry.build_sources(place, final)

        make_directory(environment.prefix, build)

        def fill(place: Path) -> None:
            missing = registry.write_registry(
                place / "registry", environment.prefix, environment.versions
            )
            if missing:
                note(f"Debian packages no Bazel module {', '.join(missing)}: it can't be used here")
            _write_command(place, environment)

        make_directory(environment.folder, fill)
    return environment.bazel
