"""triton_site: the toolchain's Triton, for tests that import it."""

load("//toolchain:torch_toolchain.bzl", "TritonToolchainInfo")

def _triton_site_impl(ctx):
    return [DefaultInfo(files = ctx.attr._triton[TritonToolchainInfo].site)]

triton_site = rule(
    implementation = _triton_site_impl,
    doc = "The folder that Triton's package is in.",
    attrs = {
        "_triton": attr.label(
            cfg = "exec",
            default = "//toolchain/private:triton",
            providers = [TritonToolchainInfo],
        ),
    },
)
