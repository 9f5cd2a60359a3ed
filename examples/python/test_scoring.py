"""Tests scoring.py and estimator.py against a scorer: PANLEARN_SCORER is its URL, PANLEARN_TOKEN its token. The task prices
has the columns age (score .02 age) and job (a: +.5, b: -1); the task kinds has three classes."""

import math
import os
import unittest

import scoring
from estimator import Estimator

try:
    import pandas
except ImportError:
    pandas = None


class Frame:
    """What Scorer uses of a DataFrame."""

    def __init__(self, rows, index):
        self.rows, self.index = rows, index

    def to_dict(self, orient):
        assert orient == "records"
        return self.rows

    def __contains__(self, column):
        return column in self.rows[0]

    def drop(self, columns):
        return Frame([{k: v for k, v in row.items() if k != columns} for row in self.rows], self.index)


class Strange:
    """A value without a truth of comparison, as pandas.NA."""

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("no truth")


def scorer(task="prices", token=None):
    return scoring.Scorer(os.environ["PANLEARN_SCORER"], task, token or os.environ["PANLEARN_TOKEN"])


EVENTS = [{"age": 50, "job": "a"}, {"age": 50.0, "job": "b", "more": None}, {"age": "fifty", "job": "b"}]


class AgainstAScorer(unittest.TestCase):
    def test_predict(self):
        found = scorer().predict(EVENTS)
        self.assertEqual([p["line"] for p in found], [1, 2, 3])
        self.assertAlmostEqual(found[0]["score"], 1.5)
        self.assertAlmostEqual(found[1]["score"], 0)
        self.assertAlmostEqual(found[0]["probability"], 1 / (1 + math.exp(-1.5)))
        self.assertEqual([p.get("class") for p in found], ["yes", "no", None])
        self.assertIsNone(found[2]["score"])
        self.assertEqual([p["class"] for p in scorer().predict(EVENTS[:2], threshold=0.9)], ["no", "no"])

    def test_many_at_once(self):
        scoring.EVENTS, before = 2, scoring.EVENTS
        try:
            found = scorer().predict(EVENTS[:2] * 3)
        finally:
            scoring.EVENTS = before
        self.assertEqual([p["line"] for p in found], [1, 2, 3, 4, 5, 6])
        self.assertEqual(scorer().predict([]), [])

    def test_missing(self):
        want = scorer().predict([{"job": "a"}])
        self.assertAlmostEqual(want[0]["score"], 1.5)  # a missing age counts as 50
        for value in (None, float("nan"), Strange()):
            self.assertEqual(scorer().predict([{"age": value, "job": "a"}]), want)

    def test_frames(self):
        found = scorer().predict(Frame(EVENTS[:2], index=["x", "y"]))
        self.assertEqual(found.index, ["x", "y"])
        self.assertEqual([set(row) for row in found.rows], [{"score", "probability", "class"}] * 2)

    @unittest.skipUnless(pandas, "NOT RUN: there is no pandas here")
    def test_pandas(self):
        found = scorer().predict(pandas.DataFrame(EVENTS[:2], index=["x", "y"]))
        self.assertEqual(list(found["class"]), ["yes", "no"])
        self.assertEqual(list(found.index), ["x", "y"])

    def test_refused(self):
        for bad in (scorer(token="another token"), scorer("other")):
            with self.assertRaises(scoring.Refused):
                bad.predict(EVENTS)

    def test_estimator(self):
        model = Estimator(scorer())
        self.assertIs(model.fit(EVENTS, None), model)
        self.assertEqual(model.classes_, ["no", "yes"])
        self.assertEqual(model.predict(EVENTS[:2]), ["yes", "no"])
        low, high = model.predict_proba(EVENTS[:1])[0]
        self.assertAlmostEqual(low + high, 1)
        self.assertAlmostEqual(high, 1 / (1 + math.exp(-1.5)))
        self.assertAlmostEqual(model.decision_function(EVENTS[:1])[0], 1.5)
        with self.assertRaisesRegex(ValueError, "event 2"):
            model.predict(EVENTS)
        self.assertEqual(Estimator(**model.get_params())._estimator_type, "classifier")

    def test_estimator_of_several_classes(self):
        model = Estimator(scorer("kinds"))
        self.assertEqual(model.classes_, ["a", "b", "c"])
        rows = model.predict_proba([{"x": 1}, {"x": -1}])
        self.assertEqual([len(row) for row in rows], [3, 3])
        self.assertAlmostEqual(sum(rows[0]), 1)
        self.assertEqual(model.predict([{"x": 1}, {"x": -1}]), ["c", "a"])


if __name__ == "__main__":
    unittest.main()
