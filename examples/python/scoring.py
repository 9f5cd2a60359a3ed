"""Score events with a panlearn model, from a service or a notebook.

    from scoring import Scorer

    scorer = Scorer("http://127.0.0.1:8097", "quickstart", token=open("token").read().strip())
    scorer.predict([{"x0": 0.1, "x1": 0.4}])     # [{"line": 1, "score": ..., "probability": ..., "class": "1"}]
    scorer.predict(frame)                        # a pandas DataFrame with the same index

A scorer is `learner serve`. It scores each event with the newest released model of the task, and keeps nothing of it.
This module needs Python 3.9; pandas only where you pass a DataFrame. Copy it.
"""

import json
import urllib.error
import urllib.request

EVENTS = 5000  # of one request; a scorer takes 10000


class Refused(Exception):
    """The scorer does not take a request as it is: a wrong token, no such task, too much at once."""


class Scorer:
    """The model of a task at a URL."""

    def __init__(self, url, task, token=None, timeout=30.0):
        self.base, self.token, self.timeout = url.rstrip("/") + "/v1/models/" + task, token, timeout

    def model(self):
        """Returns the snapshot: weights, features, classes, and the privacy statement."""
        return json.loads(self._ask("", None))

    def predict(self, events, threshold=None):
        """Returns a prediction for each event, in order.

        events is a list of dictionaries, and so is what is returned; or a pandas DataFrame, and what is returned is one
        with the same index. A value that is None or NaN is missing. An event that does not fit the task has the score
        None. Above threshold the positive of two classes is predicted.
        """
        if hasattr(events, "to_dict"):
            found = self.predict(events.to_dict("records"), threshold)
            frame = type(events)(found, index=events.index)
            return frame.drop(columns="line") if "line" in frame else frame
        path = "/predictions" + ("" if threshold is None else "?threshold=%r" % float(threshold))
        found = []
        for at in range(0, len(events), EVENTS):
            part = [{k: _plain(v) for k, v in e.items() if not _missing(v)} for e in events[at : at + EVENTS]]
            for one in json.loads(self._ask(path, json.dumps(part, allow_nan=False).encode())):
                one["line"] += at
                found.append(one)
        return found

    def _ask(self, path, body):
        request = urllib.request.Request(self.base + path, body)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(_why(error)) from None


def _why(error):
    try:
        return json.loads(error.read())["error"]
    except (ValueError, KeyError, TypeError):
        return "status %d" % error.code


def _missing(value):
    """Reports whether a value is None or NaN, of any library."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # of pandas.NA, whose comparisons have no truth
        return True


def _plain(value):
    """Returns a value of numpy as one of Python."""
    return value.item() if hasattr(value, "item") else value
