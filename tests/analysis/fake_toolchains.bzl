"""Toolchains without torch: analysis needs no more than their files' names."""

# For analysistest.make(config_settings = ...): they come before all registered ones.
FAKE_TOOLCHAINS = {
    "//command_line_option:extra_toolchains": "//tests/analysis:fake_torch,//tests/analysis:fake_torch_runtime,//tests/analysis:fake_triton",
}

# The same on a target platform that libtorch and Python's headers are missing for.
FAKE_TOOLCHAINS_WITHOUT_LIBTORCH = {
    "//command_line_option:extra_toolchains": "//tests/analysis:fake_torch,//tests/analysis:fake_torch_headers,//tests/analysis:fake_triton",
}

# With a Triton for another Python than torch's.
FAKE_TOOLCHAINS_WITH_OTHER_TRITON = {
    "//command_line_option:extra_toolchains": "//tests/analysis:fake_torch,//tests/analysis:fake_torch_runtime,//tests/analysis:fake_triton_of_other_python",
}

# With a Triton that fails where it is asked for.
FAKE_TOOLCHAINS_WITH_BROKEN_TRITON = {
    "//command_line_option:extra_toolchains": "//tests/analysis:fake_torch,//tests/analysis:fake_torch_runtime,//tests/analysis:fake_triton_broken",
}
