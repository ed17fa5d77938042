"""Prints facts about the interpreter that runs this, as JSON. Runs with any Python 3."""

import importlib.util
import json
import os
import sys
import sysconfig

# The interpreter of a virtual environment links to the real one, which finds its library from any
# folder.
base = getattr(sys, "_base_executable", None) or sys.executable
include = sysconfig.get_path(
    "include", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}
)

json.dump(
    {
        "executable": sys.executable,
        "base_executable": os.path.realpath(base),
        "full_version": "{}.{}.{}".format(*sys.version_info),
        "version": "{}.{}".format(*sys.version_info),
        "implementation": sys.implementation.name,
        "library_folder": getattr(sys, "platlibdir", "lib"),
        "has_pip": importlib.util.find_spec("pip") is not None,
        "include": include,
        "has_headers": os.path.isfile(os.path.join(include, "Python.h")),
    },
    sys.stdout,
    sort_keys=True,
)
