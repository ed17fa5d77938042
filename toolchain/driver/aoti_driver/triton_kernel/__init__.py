"""One Triton kernel as a C++ class that launches it: the subcommand ``triton_kernel``."""
