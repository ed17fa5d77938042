"""The table of CUDA architectures that kernels are compiled for, from the lowest to the highest.

Starlark loads this file, and Python executes it, so it has no functions and no loads. The driver has the same names with what
code generation needs (`aoti_driver/cuda/archs.py`); `//tools/tables:columns_test` compares them.
"""

CUDA_ARCHS = {
    "sm_75": "Turing: T4, RTX 20",
    "sm_80": "Ampere: A100, A30",
    "sm_86": "Ampere: A10, A40, RTX 30",
    "sm_89": "Ada: L4, L40, RTX 40",
    "sm_90": "Hopper: H100, H200",
    "sm_100": "Blackwell: B100, B200",
    "sm_120": "Blackwell: RTX 50, RTX PRO",
}
