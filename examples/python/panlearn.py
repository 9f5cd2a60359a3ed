"""Publish users' events through a panlearn gateway, from a service or a notebook.

    from panlearn import Gateway

    gateway = Gateway("http://127.0.0.1:8090", token=open("token").read().strip())
    outcomes = gateway.publish({"user-17": {"x0": 0.1, "y": 1}, "user-18": {"x0": 0.4, "y": -1}})
    outcomes["user-17"]["outcome"]    # counted, uncounted, unknown or refused

A gateway is `ingest publish --http`, on the same machine. What is posted to it is the event itself, in clear: it
clips, adds noise, encrypts and sends. This module needs Python 3.9 and nothing else; copy it.

A user is a key: a string, the id that stays the same for ever. An event that was taken is never sent twice, whatever is
repeated, so this module repeats whatever got no answer. It never looks at what an event holds, and neither should you:
if somebody takes part or not because of that, the guarantee is gone. What does not fit the task is sent as zeros, and
the gateway's log says so.
"""

import http.client
import json
import math
import time
import urllib.error
import urllib.request

LINES = 500  # of one batch; a gateway takes 1000
KEYS = 5000  # of one question; a gateway takes 10000
WAIT = 60  # seconds that one request waits for outcomes; a gateway takes 600


class Refused(Exception):
    """The gateway will never take a request as it is: a wrong token, or a task that its policy forbids."""


class Unreachable(Exception):
    """The gateway did not answer in time. Publish the same users again: none of them is sent twice."""


class Gateway:
    """A gateway at a URL.

    patience is the number of seconds for which a gateway that does not answer, or has no room, is asked again.
    """

    def __init__(self, url, token=None, patience=300.0):
        self.url, self.token, self.patience = url.rstrip("/"), token, patience

    def task(self):
        """Returns what events look like (columns, label), and what the task costs a user (epsilon, delta)."""
        return self._ask("/v1/task")

    def publish(self, rows, timeout=None):
        """Publishes one event of each user, and returns what became of each, by key.

        rows is a dict of events by key, or pairs of both: an event is a dict of the task's columns and its label. Of a
        task that protects people it is the list of all events of a person. Each outcome is a dict with "outcome"
        (counted, uncounted, unknown, refused), "final" and "round". After timeout seconds the outcomes that are not
        known yet have "final" False: ask `outcomes` later, from any process.
        """
        keys = self.submit(rows)
        return self.outcomes(keys, timeout)

    def submit(self, rows):
        """Hands over one event of each user, and returns the keys. They wait for a round in the gateway's memory until
        `outcomes` says "accepted": submit them again after a restart of the gateway."""
        pairs = list(rows.items() if hasattr(rows, "items") else rows)
        waiting, until = pairs, time.monotonic() + self.patience
        while waiting:
            left = []
            for at in range(0, len(waiting), LINES):
                part = waiting[at : at + LINES]
                left += self._batch(part)
            if len(left) < len(waiting):
                until = time.monotonic() + self.patience
            elif time.monotonic() > until:
                raise Unreachable(f"the gateway had no room for {len(left)} users in {self.patience} seconds")
            if left:
                time.sleep(1)
            waiting = left
        return [key for key, _ in pairs]

    def outcomes(self, keys, timeout=None):
        """Returns how far the events of keys are, by key, and waits until all are known or the time is over."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        known, open_keys = {}, list(dict.fromkeys(keys))
        while open_keys:
            left = []
            for at in range(0, len(open_keys), KEYS):
                wait = max(0, min(WAIT, until - time.monotonic()))
                body = json.dumps({"keys": open_keys[at : at + KEYS]}).encode()
                for answer in self._ask(f"/v1/outcomes?wait={math.ceil(wait)}", body, wait=wait)["answers"]:
                    key = answer.pop("key")
                    if "error" in answer:
                        raise KeyError(f"{answer['error']} (the gateway was restarted before a round took it)")
                    known[key] = answer
                    if not answer["final"]:
                        left.append(key)
            if time.monotonic() >= until:
                break
            open_keys = left
        return known

    def _batch(self, pairs):
        """Posts a batch, and returns the pairs that were not taken."""
        lines = [json.dumps({"key": key, **_events(event)}) for key, event in pairs]
        answers = self._ask("/v1/batches", "\n".join(lines).encode(), "application/x-ndjson")["answers"]
        left = []
        for (key, event), answer in zip(pairs, answers):
            if "error" in answer and not answer["key"]:
                raise ValueError("a key is no string of 1 to 256 bytes: write str(id) for an id that is a number")
            if "error" in answer:
                left.append((key, event))
        return left

    def _ask(self, path, body=None, kind="application/json", wait=0.0):
        """Sends a request until it is answered: repeating it is always safe."""
        request = urllib.request.Request(self.url + path, data=body, headers={"Content-Type": kind})
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        until, pause = time.monotonic() + self.patience + wait, 0.1
        while True:
            try:
                with urllib.request.urlopen(request, timeout=wait + 60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                reason = error.read().decode("utf-8", "replace").strip()
                if error.code not in (429, 502, 503, 504):
                    raise Refused(f"{error.code}: {reason}") from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = str(error)
            if time.monotonic() + pause > until:
                raise Unreachable(f"{self.url}: {reason}")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)


def _events(event):
    """Returns the members of a line beside its key. What JSON cannot say is an event that does not fit."""
    name = "events" if isinstance(event, list) else "event"
    try:
        return {name: json.loads(json.dumps(event, allow_nan=False))}
    except (TypeError, ValueError):
        return {name: None}
