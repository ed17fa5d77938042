"""How rows are sorted, for steps without torch too."""

from __future__ import annotations

# A kernel for 1024 elements takes 5 s to compile and is 300 KB of code; both grow with the row.
LONGEST_ROW = 1024
# A longer row is sorted in parts of this length: see long_sorts.py.
PART = 512
# Operator -> the place of dim among its positional arguments.
SORTS = {
    "aten.kthvalue.default": 2,
    "aten.sort.default": 1,
    "aten.sort.stable": 1,
    "aten.topk.default": 2,
}
