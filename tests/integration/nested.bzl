"""What tests that run Bazel have in common."""

# What a nested Bazel needs of the user's environment to be found and to reach its downloads.
NESTED_ENVIRONMENT = [
    "BAZEL",
    "BAZELW",
    "HOME",
    "NESTED_OUTPUTS",
    "PATH",
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "XDG_CACHE_HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
]

# Two at a time, as .bazelrc says: a nested Bazel spends much of its time on one thing only, such as
# starting, analysis or an export.
#
# What they test is the source tree itself, which Bazel does not see as an input: they run every time.
# The nested builds are incremental, so this is quick.
NESTED_TAGS = [
    "external",
    "local",
    "nested",
    "resources:nested_bazel:1",
]
