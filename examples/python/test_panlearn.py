"""Tests panlearn.py against a gateway: PANLEARN_GATEWAY is its URL, PANLEARN_TOKEN its token, PANLEARN_EVENTS a file with
one event a line."""

import json
import os
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

import panlearn


def gateway(**more):
    return panlearn.Gateway(os.environ["PANLEARN_GATEWAY"], os.environ["PANLEARN_TOKEN"], **more)


class AgainstAGateway(unittest.TestCase):
    def test_publish(self):
        with open(os.environ["PANLEARN_EVENTS"], encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        rows = {f"user {i}": event for i, event in enumerate(events)}
        rows["user 3"] = {"x0": float("nan")}  # takes part as zeros
        rows["user 4"] = {"x0": object()}
        rows["user 5"] = None
        task = gateway().task()
        self.assertGreater(task["epsilon"], 0)
        outcomes = gateway().publish(rows)
        self.assertEqual(list(outcomes), list(rows))
        self.assertEqual({o["outcome"] for o in outcomes.values()}, {"counted"})
        again = gateway().publish({"user 0": {}})
        self.assertEqual(again["user 0"]["outcome"], "counted")

    def test_refused(self):
        with self.assertRaises(panlearn.Refused):
            panlearn.Gateway(os.environ["PANLEARN_GATEWAY"], "another token").task()
        with self.assertRaises(KeyError):
            gateway().outcomes(["nobody"])
        with self.assertRaises(ValueError):
            gateway().submit({"": {}})


class Rude(BaseHTTPRequestHandler):
    """Drops connections, has no room, and then takes what it is given, one at a time."""

    asked, taken = 0, set()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        Rude.asked += 1
        if Rude.asked == 1:
            return self.connection.close()
        if Rude.asked == 2:
            return self.answer(503, {"error": "the task is not announced yet"})
        if self.path.startswith("/v1/batches"):
            answers = []
            for at, line in enumerate(body.splitlines()):
                key = json.loads(line)["key"]
                if at == 0:
                    Rude.taken.add(key)
                    answers.append({"key": key, "outcome": "waiting", "final": False, "round": 0, "fits": True})
                else:
                    answers.append({"key": key, "error": "as many events wait as may"})
            return self.answer(200, {"answers": answers})
        keys = json.loads(body)["keys"]
        final = Rude.asked % 2 == 0
        return self.answer(200, {"answers": [{"key": k, "outcome": "counted" if final else "accepted", "final": final,
                                              "round": 1} for k in keys]})

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class AgainstARudeOne(unittest.TestCase):
    def test_repeats(self):
        server = HTTPServer(("127.0.0.1", 0), Rude)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        outcomes = panlearn.Gateway(url).publish([("a", {}), ("b", {}), ("c", {})])
        self.assertEqual(Rude.taken, {"a", "b", "c"})
        self.assertEqual([o["outcome"] for o in outcomes.values()], ["counted"] * 3)

    def test_gives_up(self):
        with self.assertRaises(panlearn.Unreachable):
            panlearn.Gateway("http://127.0.0.1:9", patience=0.3).submit({"a": {}})


if __name__ == "__main__":
    unittest.main()
