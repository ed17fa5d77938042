"""The compiled model against eager PyTorch and against stock PyTorch's own loader."""

import copy
import math
import os

import torch
from torch.utils.dlpack import from_dlpack

from examples.custom_class import age_embedding  # type: ignore[attr-defined]  # generated
from examples.custom_class.model import AgeEmbedding

torch.ops.load_library(os.path.abspath(os.environ["CLASSES"]))  # type: ignore[no-untyped-call]

MODEL = age_embedding.load()
AGES = torch.tensor([7.0, 18.0, 44.5, 99.0, math.nan])


def test_against_eager() -> None:
    torch.manual_seed(0)  # the build made its weights so
    eager = AgeEmbedding().eval()
    with torch.no_grad():
        torch.testing.assert_close(from_dlpack(MODEL(AGES.numpy()).output), eager(AGES))


def test_stock_package() -> None:
    stock = torch._inductor.aoti_load_package(os.environ["PACKAGE"])
    torch.testing.assert_close(from_dlpack(MODEL(AGES.numpy()).output), stock(AGES))


def test_a_copy_of_an_object() -> None:
    buckets = copy.deepcopy(AgeEmbedding().buckets)
    assert buckets.find(AGES).tolist() == [0, 1, 2, 4, 5]
