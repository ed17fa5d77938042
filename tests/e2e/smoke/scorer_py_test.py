"""The same model from Python, with NumPy arrays and without torch in the process."""

import sys
import unittest

import numpy as np

from models import scorer  # type: ignore[attr-defined]  # made by the build


class ScorerTest(unittest.TestCase):
    def test_scores(self) -> None:
        model = scorer.load()
        query = np.array([1, 0, 0, 0, 0, 0, 2, 0], dtype=np.float32)
        items = np.eye(8, dtype=np.float32)
        scores = model(query=query, items=items).output
        np.testing.assert_array_equal(scores, [1, 1, 0, 0, 0, 0, 2, 2])
        self.assertNotIn("torch", sys.modules)

    def test_refuses_a_wrong_shape(self) -> None:
        model = scorer.load()
        with self.assertRaisesRegex(scorer.InputError, 'input "query"'):
            model(query=np.zeros(7, dtype=np.float32), items=np.zeros((1, 8), dtype=np.float32))


if __name__ == "__main__":
    unittest.main()
