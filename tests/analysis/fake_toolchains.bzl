"""Toolchains without torch: analysis needs no more than their files' names."""

# For analysistest.make(config_settings = ...): they come before all registered ones.
FAKE_TOOLCHAINS = {
    "//command_line_option:extra_toolchains": "//tests/analysis:fake_torch,//tests/analysis:fake_torch_runtime",
}

# The same on a target platform that libtorch and Python's headers are missing for.
FAKE_TOOLCHAINS_WITHOUT_LIBTORCH = {
    "//command_line_option:extra_toolchains": "//tests/analysis:fake_torch,//tests/analysis:fake_torch_headers",
}
