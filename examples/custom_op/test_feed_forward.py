"""The compiled model against eager PyTorch and against stock PyTorch's own loaders."""

import os

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from examples.custom_op import feed_forward  # type: ignore[attr-defined]  # generated
from examples.custom_op.model import FeedForward

torch.ops.load_library(os.path.abspath(os.environ["OPERATORS"]))  # type: ignore[no-untyped-call]

MODEL = feed_forward.load()
X = torch.linspace(-2, 2, 5 * 16).reshape(5, 16)


def test_against_eager() -> None:
    torch.manual_seed(0)  # the build made its weights so
    eager = FeedForward().eval()
    with torch.no_grad():
        torch.testing.assert_close(from_dlpack(MODEL(X.numpy()).output), eager(X))


def test_stock_package() -> None:
    stock = torch._inductor.aoti_load_package(os.environ["PACKAGE"])
    torch.testing.assert_close(from_dlpack(MODEL(X.numpy()).output), stock(X))


def test_one_row_is_a_row_of_many() -> None:
    many = np.array(MODEL(X.numpy()).output)
    for i in range(5):
        one = np.array(MODEL(X[i : i + 1].numpy()).output)
        np.testing.assert_allclose(one[0], many[i], rtol=1e-5)
