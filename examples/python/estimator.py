"""A panlearn model behind the methods of a classifier or a regressor of scikit-learn.

    from scoring import Scorer
    from estimator import Estimator

    model = Estimator(Scorer("http://127.0.0.1:8097", "quickstart"))
    model.predict(frame)              # classes, or numbers
    model.predict_proba(frame)        # a row for each event, a column for each of model.classes_

It is fitted already: fit does nothing and returns it, so that it can stand in a Pipeline or be given to
sklearn.metrics and sklearn.inspection. An event that does not fit the task is an error, as everywhere in scikit-learn.
This module needs `scoring.py` beside it and no other package. Copy both.
"""


class Estimator:
    """The newest model of a Scorer."""

    def __init__(self, scorer):
        self.scorer = scorer
        self._estimator_type = "classifier" if self.scorer.model().get("classes") else "regressor"

    @property
    def classes_(self):
        """The classes, in the order of the columns of predict_proba; none of a regressor."""
        return self.scorer.model().get("classes")

    def fit(self, X=None, y=None):
        """Returns the estimator, which is fitted."""
        return self

    def get_params(self, deep=True):
        """Returns what it was made with."""
        return {"scorer": self.scorer}

    def set_params(self, **params):
        """Changes what it was made with."""
        self.__init__(**{**self.get_params(), **params})
        return self

    def predict(self, X):
        """Returns the class or the number of each event."""
        return [p["class" if "class" in p else "prediction"] for p in self._scored(X)]

    def decision_function(self, X):
        """Returns the score of each event; of several classes a list of them, in the order of classes_."""
        return [_listed(p["score"], self.classes_) for p in self._scored(X)]

    def predict_proba(self, X):
        """Returns the probability of each class for each event."""
        classes, rows = self.classes_, []
        for p in self._scored(X):
            if "probability" not in p:
                raise AttributeError("the loss of this task has no probabilities")
            one = p["probability"]
            rows.append(_listed(one, classes) if isinstance(one, dict) else [1 - one, one])
        return rows

    def _scored(self, X):
        events = X.to_dict("records") if hasattr(X, "to_dict") else list(X)
        found = self.scorer.predict(events)
        for at, p in enumerate(found):
            if p["score"] is None:
                raise ValueError("event %d does not fit the task" % at)
        return found


def _listed(values, classes):
    return [values[c] for c in classes] if isinstance(values, dict) else values
