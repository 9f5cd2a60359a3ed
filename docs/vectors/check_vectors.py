#!/usr/bin/env python3
"""Checks test vectors as the author of a device would: by the pages of docs/reference alone, in Python's standard library.

statistic.json (statistics.md), accounting.json (epsilon.md), decisions.json (outcomes.md), signed.json and relay.json as
far as no signature is verified (refusals.md, layouts.md), and ids and contexts of split.json and shares.json (device.md).
It is written to be read. Prints how many vectors it checked;
differences go to standard error.
"""

import bisect
import hashlib
import hmac
import json
import math
import os
import re
import struct
import sys
import unicodedata
from statistics import NormalDist

# The canonical encoding: layouts.md, "Messages". A field is (name, type); a list of a type is repeated.

ENVELOPE = {1: ("version", "u32"), 2: ("kind", "enum"), 3: ("body", "bytes"), 4: ("key", "bytes"), 5: ("signature", "bytes")}
HEAD = {1: ("version", "u32"), 2: ("task_hash", "bytes"), 3: ("round", "u64")}
FRAME = {1: ("center", ["double"]), 2: ("scale", ["double"]), 3: ("intercept", "double"), 4: ("bound", "double"),
         5: ("clip", "double"), 6: ("smoothing", "double"), 7: ("whitener", ["double"]), 8: ("label_center", "double"),
         9: ("label_scale", "double"), 10: ("label_weight", "double")}
LOSS = {1: ("name", "string"), 2: ("classes", "u32"), 3: ("level", "double"), 4: ("width", "double"),
        5: ("score_bound", "double"), 6: ("max_count", "double"), 7: ("class_weights", ["double"]), 8: ("label_noise", "double")}
PRACTICAL = {1: ("loss", LOSS), 2: ("features", "u32"), 3: ("indicators", "bytes"), 4: ("bound", "double"),
             5: ("intercept", "double"), 6: ("label_low", "double"), 7: ("label_high", "double"), 8: ("users", "u64"),
             9: ("clip", "double"), 10: ("unit", "double")}
MECHANISM = {1: ("dim", "u32"), 2: ("clip_norm", "double"), 3: ("levels", "u32"), 4: ("trials", "u32"), 5: ("coin", "u32"),
             6: ("coin_bits", "u32"), 7: ("floor_trials", "u64"), 8: ("max_bundle", "u32"), 9: ("scores", "u32"),
             10: ("units", "u64"), 11: ("window", "u32"), 12: ("minimizer", "bool")}
PHASE = {1: ("users", "u64"), 2: ("rounds", "u64"), 3: ("cohort", "u64"), 4: ("minimum", "u64"), 5: ("mechanism", MECHANISM),
         6: ("rounds_per_user", "u32"), 7: ("smoothing", "double"), 8: ("statistic", "enum"),
         9: ("descent", {1: ("step_size", "double"), 2: ("mu", "double")}),
         10: ("acceleration", {1: ("v", "double"), 2: ("mu", "double"), 3: ("smoothness", "double")}),
         11: ("again", "bool"), 12: ("prox", {1: ("weight", "double"), 2: ("steps", "u32"), 3: ("step_size", "double")}),
         13: ("top", "u64")}
PLAN = {1: ("algorithm", "string"), 2: ("phases", [PHASE]), 3: ("continuous", "enum"), 4: ("trust", "enum"),
        5: ("honest_fraction", "string"), 6: ("epsilon", "double"), 7: ("delta", "double"), 8: ("epsilon_budget", "double"),
        9: ("deadline_ms", "u64"), 10: ("clip_norm", "double"), 11: ("clips", "bool"), 12: ("ridge", "double"),
        13: ("set", {1: ("kind", "string"), 2: ("radius", "double"), 3: ("min", "double"), 4: ("max", "double")}),
        14: ("practical", PRACTICAL),
        15: ("scorecard", {1: ("norm", "double"), 2: ("low", "double"), 3: ("high", "double"), 4: ("correctness", "bool"),
                           5: ("label_noise", "double")}),
        16: ("start", ["double"]), 17: ("start_hash", "bytes"), 18: ("retention_ms", "u64"), 19: ("unit", "enum"),
        20: ("silos", "u64"), 21: ("radius", "double"), 22: ("stale_ms", "u64"),
        23: ("start_privacy", {1: ("task", "string"), 2: ("epsilon", "double"), 3: ("delta", "double"), 4: ("unit", "enum"),
                               5: ("users", "u64")}),
        24: ("places", "bool"), 25: ("prio3", "string")}
BODIES = {
    "task": (2, {1: ("version", "u32"), 2: ("name", "string"), 3: ("declaration", "bytes"), 4: ("plan", PLAN),
                 5: ("learner_key", "bytes"), 6: ("stage_key", "bytes"), 7: ("suite", "enum"), 8: ("life", "bytes"),
                 9: ("public", "bytes"), 10: ("helper_key", "bytes"), 11: ("issuer_key", "bytes")}),
    "round": (3, HEAD | {4: ("step", "u64"), 5: ("point", ["double"]), 6: ("frame", FRAME), 7: ("deadline_ms", "u64"),
                         8: ("cohort", "u64")}),
    "open": (4, HEAD | {4: ("attempt", "u64"), 5: ("manifest_hash", "bytes"), 6: ("suite", "enum"), 7: ("public_key", "bytes"),
                        8: ("instance", "bytes"), 9: ("started_unix_ms", "i64"), 10: ("join_probability", "u32"),
                        11: ("join_doubling_ms", "u32"), 12: ("places_ms", "u32")}),
    "claim": (5, HEAD | {4: ("attempt", "u64"), 5: ("manifest_hash", "bytes"), 6: ("instance", "bytes"),
                         7: ("open_hash", "bytes"), 8: ("join_hash", "bytes")}),
    "close": (7, HEAD | {4: ("attempt", "u64"), 5: ("manifest_hash", "bytes"), 6: ("batch_hash", "bytes"), 7: ("cutoff", "u64"),
                         8: ("void", "bool"), 9: ("open_hash", "bytes"), 10: ("join_hash", "bytes")}),
    "join": (10, HEAD | {4: ("attempt", "u64"), 5: ("manifest_hash", "bytes"), 6: ("open_hash", "bytes"), 7: ("suite", "enum"),
                         8: ("public_key", "bytes"), 9: ("instance", "bytes"), 10: ("verify_key_hash", "bytes"),
                         11: ("key_encapsulated", "bytes"), 12: ("key_ciphertext", "bytes"), 13: ("started_unix_ms", "i64")}),
    "end": (8, {1: ("version", "u32"), 2: ("task_hash", "bytes"), 3: ("last_round", "u64"), 4: ("reason", "string")}),
}
REPORT = {1: ("version", "u32"), 2: ("task_hash", "bytes"), 3: ("ids", ["bytes"]), 4: ("encapsulated", "bytes"),
          5: ("ciphertext", "bytes"), 6: ("public_shares", ["bytes"]), 7: ("helper_encapsulated", "bytes"),
          8: ("helper_ciphertext", "bytes")}


class Refused(Exception):
    """A check of refusals.md, by its number."""


def need(ok, number):
    if not ok:
        raise Refused(number)


def varint(data, at):
    n = shift = 0
    while True:
        need(at < len(data) and shift < 70, "S1")
        b = data[at]
        n |= (b & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if b < 0x80:
            need(n < 1 << 64, "S1")
            return n, at


def wire_type(kind):
    if isinstance(kind, (dict, list)):
        return 2
    return {"double": 1, "bytes": 2, "string": 2}.get(kind, 0)


def scalar(kind, n):
    """What a varint is as a number of a type: the low bits, as a decoder keeps them."""
    if kind == "u32":
        return n & 0xFFFFFFFF
    if kind == "enum":
        n &= 0xFFFFFFFF
        return n - (1 << 32) if n >= 1 << 31 else n
    if kind == "i64":
        return n - (1 << 64) if n >= 1 << 63 else n
    return n != 0 if kind == "bool" else n


def decode(data, fields):
    """The fields that are known and have their wire type; others are left out, which shows when it is encoded again."""
    out, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        need(number > 0 and kind in (0, 1, 2, 5), "S1")
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = varint(data, at)
            need(at + size <= len(data), "S1")
            value, at = data[at:at + size], at + size
        if number not in fields or wire_type(fields[number][1]) != kind:
            continue
        name, of = fields[number]
        if of == ["double"]:
            need(len(value) % 8 == 0, "S1")
            out[name] = out.get(name, ()) + struct.unpack(f"<{len(value) // 8}d", value)
        elif isinstance(of, list):
            out.setdefault(name, []).append(value if of == ["bytes"] else decode(value, of[0]))
        elif isinstance(of, dict):
            out[name] = decode(value, of)
        elif of == "double":
            out[name] = struct.unpack("<d", value)[0]
        elif of == "string":
            try:
                out[name] = value.decode()
            except UnicodeDecodeError:
                raise Refused("S1") from None
        else:
            out[name] = value if of == "bytes" else scalar(of, value)
    return out


def write_varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


# The fields of the oneof of Phase, which come last.
LAST = ("descent", "acceleration", "prox")


def encode(m, fields):
    out = b""
    for number in sorted(fields, key=lambda n: (fields[n][0] in LAST, n)):
        name, of = fields[number]
        if name not in m:
            continue
        value, parts = m[name], []
        if of == "double":
            if struct.pack("<d", value) != bytes(8):  # -0 is no default
                out += write_varint(number << 3 | 1) + struct.pack("<d", value)
        elif isinstance(of, dict):
            parts = [encode(value, of)]
        elif of == ["double"]:
            parts = [struct.pack(f"<{len(value)}d", *value)] if value else []
        elif isinstance(of, list):
            parts = value if of == ["bytes"] else [encode(v, of[0]) for v in value]
        elif of in ("bytes", "string"):
            parts = [value.encode() if of == "string" else value] if value else []
        elif value:
            out += write_varint(number << 3) + write_varint(int(value))
        for part in parts:
            out += write_varint(number << 3 | 2) + write_varint(len(part)) + part
    return out


def read(data, fields):
    """S1 to S3."""
    m = decode(data, fields)
    need(m.get("version", 0) == 1, "S2")
    need(encode(m, fields) == data, "S3")
    return m


def check_body(kind, m):
    """B, as far as records of signed.json are refused by it; of a Task B1 and B5 to B8."""

    def length(name, n, number):
        need(len(m.get(name, b"")) == n, number)

    if kind == "task":
        need(re.fullmatch("[a-z0-9_-]{1,32}", m.get("name", "")), "B1")
        length("learner_key", 32, "B5")
        length("life", 16, "B6")
        length("stage_key", 32, "B7")
        need(len(m.get("helper_key", b"")) in (0, 32), "B36")
        need(len(m.get("issuer_key", b"")) in (0, 342), "B42")
    if kind in ("task", "open", "join"):
        need(1 <= m.get("suite", 0) <= 3, "B8")
    if kind == "task":
        return
    length("task_hash", 32, "B26")
    if kind == "end":
        return need(len(m.get("reason", "").encode()) <= 64, "B35")
    need(m.get("round", 0) > 0, "B27")
    if kind == "round":
        need(m.get("step", 0) > 0, "B28")
        need(len(m.get("point", ())) <= 1 << 20, "B29")
        return need(all(map(math.isfinite, m.get("point", ()))), "B30")
    need(m.get("attempt", 0) > 0, "B31")
    length("manifest_hash", 32, "B32")
    if kind in ("claim", "close") and ("open_hash" in m or "join_hash" in m):
        length("open_hash", 32, "B38")
        length("join_hash", 32, "B38")
    if kind in ("open", "claim", "join"):
        length("instance", 16, "B33")
    if kind == "join":
        length("open_hash", 32, "B39")
        length("verify_key_hash", 32, "B39")
        need(m.get("key_encapsulated") and m.get("key_ciphertext"), "B40")
        need(m["suite"] != 1, "B41")
    if kind == "close":
        length("batch_hash", 32, "B34")


def check_record(file, v):
    """What the record of a vector is refused by; of one whose signature alone is bad "S7", for none is verified here."""
    address = parse_subject(v["subject"])
    kind = address["verb"]
    number, fields = BODIES[kind]
    e = read(bytes.fromhex(v["record"]), ENVELOPE)
    need(len(e.get("key", b"")) == 32 and len(e.get("signature", b"")) == 64, "S4")
    need(e.get("kind", 0) == number, "S5")
    if kind != "task":
        writer = {"round": "learner_key", "end": "learner_key", "join": "helper_key"}.get(kind, "stage_key")
        need(e["key"].hex() == file[writer], "S6")
    need(v.get("refused") != "S7", "S7")
    body = e.get("body", b"")
    m = read(body, fields)
    check_body(kind, m)
    if kind == "task":
        need(e["key"] == m["learner_key"], "S8")
        need(m["name"] == address["task"], "S9")
    need(kind in ("task", "end") or m["round"] == address["round"], "S10")
    need(kind not in ("open", "join", "close") or m["attempt"] == address["attempt"], "S10")
    if kind != "task":
        need(m["task_hash"].hex() == file["task_hash"], "S11")
    task = decode(bytes.fromhex(file["task"]), BODIES["task"][1])
    two = task["plan"].get("trust") == 5
    if kind in ("open", "join"):
        need(m["suite"] == task["suite"], "S12")
    if kind in ("open", "join", "claim", "close"):
        need(m["manifest_hash"].hex() == file["manifest_hash"], "S13")
    if kind in ("open", "join"):
        need(len(m.get("public_key", b"")) == {1: 0, 2: 32, 3: 1216}[m["suite"]], "S14")
    if kind == "open":
        need(m.get("places_ms", 0) == 0 or task["plan"].get("places"), "S15")
    if kind in ("claim", "close"):
        need(("open_hash" in m) == two, "S16")
    if v.get("prefix"):
        need(bytes.fromhex(v["prefix"]) == b"panlearn/v1/" + kind.encode() + b"\0", "the prefix")
    return {"accepted": hashlib.sha256(bytes.fromhex(v["record"]) if two and kind in ("open", "join") else body).hexdigest()}


def check_pair(v):
    """What an Open and a Join, both verified, are refused by as one attempt."""
    o, j = (decode(decode(bytes.fromhex(v[k]), ENVELOPE)["body"], BODIES[k][1]) for k in ("open", "join"))
    same = (o["round"], o["attempt"]) == (j["round"], j["attempt"])
    need(same and j["open_hash"] == hashlib.sha256(bytes.fromhex(v["open"])).digest(), "S17")
    need(o["public_key"] != j["public_key"], "S18")
    return {}


def parse_subject(subject):
    numbers = {"round": 1, "claim": 1, "batch": 1, "join": 2, "share": 1, "open": 2, "close": 2, "report": 2, "place": 2}
    tokens = subject.split(".")
    need(len(tokens) >= 3 and tokens[0] == "panlearn" and re.fullmatch("[a-z0-9_-]{1,32}", tokens[1]), "L4")
    need(tokens[2] in ("task", "end", "stage", "lease", "helper", *numbers), "L4")
    rest = tokens[3:]
    need(len(rest) == numbers.get(tokens[2], 0), "L4")
    need(all(re.fullmatch("[1-9][0-9]*", t) and int(t) < 1 << 64 for t in rest), "L4")
    got = [int(t) for t in rest] + [0, 0]
    return {"task": tokens[1], "verb": tokens[2], "round": got[0], "attempt": got[1]}


def parse_lease(b):
    need(len(b) == 29 and b[0] == 1, "L1")
    return {"instance": b[1:17].hex(), "ttl_ms": int.from_bytes(b[17:21], "big"), "newest": int.from_bytes(b[21:], "big")}


def parse_request(b):
    need(len(b) == 22 and b[0] == 1 and b[21] <= 1 and any(b[17:21]), "L2")
    return {"id": b[1:17].hex(), "users": int.from_bytes(b[17:21], "big"), "charged": b[21] == 1}


def parse_answer(b):
    need(len(b) == 26 and b[0] == 1 and 1 <= b[17] <= 3 and (b[17] == 1) == any(b[18:22]), "L3")
    return {"id": b[1:17].hex(), "verdict": b[17], "users": int.from_bytes(b[18:22], "big"),
            "time_ms": int.from_bytes(b[22:], "big")}


# What a relay takes and gives: layouts.md, "Over a relay".


def big(b, at, size=8):
    return int.from_bytes(b[at:at + size], "big")


def parse_state(b):
    need(b and b[0] in (1, 2), "L5")
    end = 337 if b[0] == 1 else 393
    need(len(b) >= end + 8, "L5")
    marks = []
    for at in range(1, end, 56):
        m = {"round": big(b, at), "attempt": big(b, at + 8), "sequence": big(b, at + 16), "hash": b[at + 24:at + 56].hex()}
        need(m["sequence"] or not any(b[at:at + 56]), "L5")
        marks.append(m)
    need(b[0] == 1 or marks[6]["sequence"], "L5")
    return {"tag": hashlib.sha256(b[:end]).hexdigest()[:32], "marks": marks, "lease_stored_unix_ns": str(big(b, end)),
            "lease": b[end + 8:].hex()}


def state_of(file, v):
    """The State, whose hashes are of the records with their envelopes, and whose numbers those of their subjects."""
    got, records = parse_state(bytes.fromhex(v["body"])), {}
    for r in file["records"]:
        address = parse_subject(r["subject"])
        records[address["verb"]] = address, hashlib.sha256(bytes.fromhex(r["record"])).hexdigest()
    for kind, m in zip(("task", "end", "round", "open", "claim", "close"), got["marks"]):
        address, digest = records[kind]
        same = (m["hash"], m["round"], m["attempt"]) == (digest, address["round"], address["attempt"])
        need(same or not m["sequence"], "the " + kind)
    if got["lease"]:
        parse_lease(bytes.fromhex(got["lease"]))
    return got


def parse_said(b):
    need(len(b) == 27 and b[0] == 1 and 1 <= b[17] <= 3, "L6")
    sequence, stored = big(b, 18), b[17] < 3
    need(stored == (sequence > 0) and not (stored and b[26]), "L6")
    return {"message_id": b[1:17].hex(), "status": b[17], "sequence": sequence, "reason": b[26]}


def posted(v, rest):
    return b"\1" + v["round"].to_bytes(8, "big") + v["attempt"].to_bytes(8, "big") + rest


def place_of(v):
    """The body of a request for places, from what it says; and what its answer says."""
    request = b"\1" + bytes.fromhex(v["id"]) + v["users"].to_bytes(4, "big") + bytes([v["charged"]])
    said = parse_answer(bytes.fromhex(v["answer"]))
    need(said["id"] == parse_request(request)["id"], "the id")
    return {"request": request.hex(), "body": posted(v, request).hex(), "verdict": said["verdict"], "granted": said["users"],
            "time_ms": said["time_ms"]}


def report_of(v):
    """The body of a report, whose message id follows from the first of its users and the attempt."""
    report = bytes.fromhex(v["report"])
    m = read(report, REPORT)
    first = b"panlearn message id\0" + m["ids"][0] + v["attempt"].to_bytes(8, "big") + bytes.fromhex(v["open"])
    id = hashlib.sha256(first).digest()[:16]
    return {"message_id": id.hex(), "body": posted(v, id + report).hex()}


# What became of an event: outcomes.md.


def attempt_of(s):
    return s["attempt"], s["open"], s.get("join")


class Event:
    def __init__(self):
        self.state, self.sends, self.refunds, self.rounds, self.draw, self.before = "fresh", {}, 0, 0, None, "fresh"
        self.reports = 0

    def stays(self, phase):
        d = self.draw
        return self.state != "fresh" and d["rounds_per_user"] > 1 and d["phase"] == phase and self.rounds < d["rounds_per_user"]

    def join(self, d):
        old, again = self.draw, self.stays(d["phase"]) and d["rounds_per_user"] == self.draw["rounds_per_user"]
        if self.state == "charged" or self.state != "fresh" and not again and (self.state != "uncounted" or old.get("final")):
            return False
        if old and (d["round"] <= old["round"] or d["step"] <= old["step"] or d["phase"] < old["phase"]
                    or d["manifest_hash"] == old["manifest_hash"] or d.get("final") != old.get("final")):
            return False
        if old and not again and old["rounds_per_user"] > 1 and old["phase"] == d["phase"]:
            return False
        self.before = self.state if again else "fresh"
        self.refunds += self.state == "uncounted" and not again
        self.rounds = self.rounds + 1 if again else 1
        self.state, self.draw, self.sends = "charged", d, {}
        return True

    def send(self, s):
        attempt, most = attempt_of(s), 1 if s.get("floors") else s.get("max_attempts", math.inf)
        if self.state != "charged":
            return False
        if self.sends:
            last = list(self.sends)[-1]
            newer = attempt[0] >= last[0] and attempt not in self.sends and len(self.sends) < most
            if attempt != last and not newer:
                return False
        self.reports += attempt not in self.sends and not ("max_attempts" in s and self.sends)
        self.sends.setdefault(attempt, {"sent": 0, "answered": 0, "lowest": None})["sent"] += 1
        return True

    def answer(self, a):
        s = self.sends[attempt_of(a)]
        if a.get("refused_by_broker"):
            s["answered"] += 1
        elif a.get("stored"):
            s["answered"] += 1
            s["lowest"] = min(a["sequence"], s["lowest"] or a["sequence"])
        return True

    def close(self, c):
        if self.state != "charged" or c["round"] != self.draw["round"] or c["manifest_hash"] != self.draw["manifest_hash"]:
            return False
        self.settle(self.outcome(c))
        return True

    def outcome(self, c):
        closed = attempt_of(c)
        if c.get("void"):
            return "unknown"
        own = self.sends.get(closed)
        if own and own["lowest"] is not None and own["lowest"] <= c["cutoff"]:
            return "counted"
        if self.draw.get("final") or not self.sends:
            return "unknown"
        for attempt, s in self.sends.items():
            if "secret" in self.draw and attempt != closed:
                continue
            if s["answered"] != s["sent"] or s["lowest"] is not None and attempt != closed:
                return "unknown"
        return "uncounted"

    def settle(self, state):
        if self.before == "counted" or self.before == "unknown" and state == "uncounted":
            state = self.before
        self.state, self.sends = state, {}


def check_event(v):
    e, got = Event(), []
    for s in v["steps"]:
        if "abandon" in s:
            taken = e.state == "charged"
            e.settle("unknown")
        else:
            verb = next(k for k in ("join", "send", "answer", "close") if k in s)
            taken = getattr(e, verb)(s[verb])
        got.append({"taken": taken, "state": e.state, "participations": 0 if e.state == "fresh" else e.refunds + 1,
                    "reports": e.reports})
    return got


def joins_after(v):
    share = max(v["join_probability"] / 2**32, 2.0**-16) if v["join_probability"] else 1
    u = (v["draw"] + 1) / 2**32
    return 0 if u <= share else (0.25 + math.log2(u / share)) * (v["join_doubling_ms"] or 1000) * 1e6


def turned(v):
    n, u = v["silos"], v["draw"] / 2**32
    b = min(max(1 - v["places_before"] % n / n, v["cohort"] / (2 * n)), 0.75)
    u = u * b if v["blocks_before"] <= v["places_before"] // n else b + u * (1 - b)
    return int(min(u * 2**32, 2**32 - 1))


def check_clock(v):
    """What the ledger is given, in ms, and whether anybody is charged."""
    hour, minute, elapsed, got = 3600000, 60000, 0, []
    right = limit = next_at = None  # right: (clock, elapsed) of the last comparison that found it right
    for s in v["steps"]:
        elapsed, clock = elapsed + s["after_ms"], s["clock_unix_ms"]
        if right is None:
            due = next_at is None or elapsed >= next_at
        else:
            due = abs(clock - right[0] - (elapsed - right[1])) > minute
        if "lease_unix_ms" in s or s.get("no_lease"):
            right = limit = None
            next_at = elapsed + minute
            if "lease_unix_ms" in s:
                if clock - s["lease_unix_ms"] > hour:
                    limit = s["lease_unix_ms"] + hour
                else:
                    right = (clock, elapsed)
        now = clock
        if right and clock - (right[0] + elapsed - right[1]) > minute:
            now = right[0] + elapsed - right[1]
        elif limit is not None:
            now = min(clock, limit)
        got.append({"due": due, "ledger_unix_ms": now, "charges": limit is None or clock < limit})
    return got


# Reports to two operators: device.md, "Sharing".


def hkdf(secret, info, size):
    key = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(key, info + b"\1", "sha256")[:size]


def check_ids(v):
    """The ids of the users of an attempt, and what both of their ciphertexts authenticate."""
    info = b"panlearn split id v1\0" + bytes.fromhex(v["open"] + v["join"])
    ids = [hkdf(bytes.fromhex(u["draw_secret"]), info, 16) for u in v["users"]]
    return {"ids": [i.hex() for i in ids],
            "associated_data": associated(ids, [bytes.fromhex(u["public_share"]) for u in v["users"]])}


def associated(ids, public):
    data = len(ids).to_bytes(4, "big") + b"".join(ids) + b"".join(len(p).to_bytes(4, "big") + p for p in public)
    return data.hex()


def check_contexts(v):
    """The info of both ciphertexts, Prio3's context, and the associated data of a report."""
    common = b"panlearn/v1/shares\0" + bytes.fromhex(v["manifest_hash"] + v["task_hash"] + v["open_hash"] + v["join_hash"])
    got = {"leader_info": (common + b"\0").hex(), "helper_info": (common + b"\1").hex(),
           "prio3_context": hashlib.sha256(common).hexdigest()}
    r = decode(bytes.fromhex(v["report"]), REPORT)
    return got | {"associated_data": associated(r["ids"], r["public_shares"])}


# What releases cost: epsilon.md.

STIRLING = [0, 0.0810614667953272582196702, 0.0413406959554092940938221, 0.02767792568499833914878929,
            0.02079067210376509311152277, 0.01664469118982119216319487, 0.01387612882307074799874573,
            0.01189670994589177009505572, 0.010411265261972096497478567, 0.009255462182712732917728637,
            0.008330563433362871256469318, 0.007573675487951840794972024, 0.006942840107209529865664152,
            0.006408994188004207068439631, 0.005951370112758847735624416, 0.005554733551962801371038690]


def stirling(n):
    if n < 16:
        return STIRLING[n]
    y = 1 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - y / 1188) * y) * y) * y) / n


def deviance(x, diff):
    m = x - diff
    v = diff / (x + m)
    if abs(v) >= 0.5:
        return x * math.log(x / m) - diff
    s, term, j = diff * v, 2 * x * v, 3
    while True:
        term *= v * v
        if s + term / j == s:
            return s
        s, j = s + term / j, j + 2


def pmf(x, n, coin):
    p = coin / 2**24
    if x == 0:
        return math.exp(n * math.log1p(-p))
    if x == n:
        return math.exp(n * math.log1p(-(1 - p)))
    diff = ((x << 24) - coin * n) / 2**24
    lc = stirling(n) - stirling(x) - stirling(n - x) - deviance(x, diff) - deviance(n - x, -diff)
    return math.exp(lc) * math.sqrt(n / (2 * math.pi * x * (n - x)))


def upper_tail(z):
    return math.erfc(z / math.sqrt(2)) / 2


def log_upper_tail(z):
    if z <= 25:
        return math.log(upper_tail(z))
    f = z
    for k in range(24, 0, -1):
        f = z + k / f
    return -z * z / 2 - math.log(f) - math.log(2 * math.pi) / 2


def density(z):
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def quantile(s):
    """The z with upper_tail(z) = s, for s at most 1/2."""
    z = -NormalDist().inv_cdf(s)
    u = (upper_tail(z) - s) / density(z)
    return z + u / (1 - z * u / 2)


def running_sums(values):
    sums, s, c = [0.0], 0.0, 0.0
    for v in values:
        t = s + v
        c += (s - t) + v if abs(s) >= abs(v) else (v - t) + s
        s = t
        sums.append(s + c)
    return sums


PROFILES = {}


def profile(n, coin):
    """The windows of the ladder with their scalars, by rung; a rung without a window of its own has the one before."""
    if (n, coin) in PROFILES:
        return PROFILES[n, coin]
    mode = min(int((n + 1) * (coin / 2**24)), n)
    first = last = mode
    while first > 0 and pmf(first - 1, n, coin) >= 1e-67:
        first -= 1
    while last < n and pmf(last + 1, n, coin) >= 1e-67:
        last += 1
    q = [pmf(x, n, coin) for x in range(first, last + 1)]
    size, below, above = len(q), running_sums(q), running_sums(q[::-1])[::-1]
    z = [None if min(f, s) <= 0 else -quantile(f) if f <= 0.5 else quantile(min(s, 0.5)) for f, s in zip(below, above)]
    min_lo = 0
    while min_lo < size and (first == 0 and min_lo == 0 or below[min_lo] == 0):
        min_lo += 1
    max_hi = size
    while max_hi > 0 and above[max_hi] == 0:
        max_hi -= 1

    def cell(i):
        """Numbers of the cell between z[i-1] and z[i]."""
        return q[i - 1] / density(z[i]), q[i - 1] / density(z[i - 1]), z[i] - z[i - 1]

    known = range(min_lo + 1, max_hi + 1)
    centre = min(known, key=lambda i: abs(z[i] + z[i - 1]), default=None)
    # One walk to each side, which keep the largest numbers of the cells so far.
    sides = [{"next": centre, "t": None, "max": [0.0] * 6} for _ in range(2)]

    def take(side, i, monotone):
        d0, d1, a = cell(i)
        th = d0 - d1
        t = side["t"] = th if side["t"] is None else monotone(side["t"], th)
        side["max"] = [max(x, *y) for x, y in zip(side["max"], [
            (d0 - t / 2, d1 + t / 2), (abs(t),), (a,), (abs(t), 2 * abs(d0 - a), 2 * abs(a - d1)),
            (d0 - a - t / 2,), (t / 2 + d1 - a,)])]

    out, window, falling = [], None, [-s for s in above]
    for k in range(173):
        half = 10 ** (-2 - k / 4) / 2
        lo = max(bisect.bisect_right(below, half) - 1, min_lo)
        hi = min(bisect.bisect_left(falling, -half), max_hi)
        if hi - lo >= 3 and below[lo + 1] < 0.5 and above[hi - 1] < 0.5 and lo + 1 <= centre <= hi and (lo, hi) != window:
            window = lo, hi
            while sides[1]["next"] <= hi:
                take(sides[1], sides[1]["next"], max)
                sides[1]["next"] += 1
            while sides[0]["next"] >= lo + 1:
                take(sides[0], sides[0]["next"], min)
                sides[0]["next"] -= 1
            left, right = sides[0]["max"], sides[1]["max"]
            up = [max(x, y) for x, y in zip(left, right)]
            up = [s * (1 + 1e-9) + 2e-12 for s in [*up[:4], (up[4] + up[5]) / 4]]
            out.append((k, (below[lo] + above[hi]) * (1 + 1e-9), up))
    PROFILES[n, coin] = out
    return out


def rung(levels, k):
    found = [level for level in levels if level[0] <= k]
    return found[-1] if found else None


def mu_of(r, scalars):
    m1, theta1, mu1, theta2, kk = scalars
    root, g = math.sqrt(r["dim"]), r["levels"]
    units = max(r.get("units", 1), 1)
    if r.get("minimizer") or units > 1:
        shift = g / units * (1 + 1e-15)
        if r.get("minimizer"):
            shift = (g / units * (1 + 2**-18) + root * 2**-24 + g * (r["dim"] + 16) * 2**-52) * (1 + 2**-48)
        w = min(shift, root / 4)
        return min(m1 * shift + theta1 / 2 * w, mu1 * shift + theta2 / 2 * w + kk * root)

    def ball(x, y):
        norm = math.hypot(x, y)
        if g * y / norm <= root / 4:
            return g * norm
        return x * math.sqrt((g - root / 4) * (g + root / 4)) + y * root / 4

    return min(ball(m1, theta1 / 2), ball(mu1, theta2 / 2) + kk * root)


def share(fraction, n):
    """floor(fraction n), exactly."""
    a, _, b = fraction.partition("/")
    if b:
        return int(a) * n // int(b)
    whole, _, part = a.partition(".")
    return int(whole + part) * n // 10 ** len(part)


def views(r):
    """(release, trials, rounds) that the learner sees, and who looks into the stage once, or one operator; None where there is neither."""
    honest = share(r["honest_fraction"], r["users"]) * r["trials"] + 2 * r["floor_trials"]
    if r["trust"] == "local":
        honest = r["trials"]
    learner, intruder = [(r, honest, r["rounds_per_user"])], None
    if r["trust"] == "split":
        intruder = [(r, r["floor_trials"], r["rounds_per_user"])]
    elif r["floor_trials"]:
        intruder = [(r, r["trials"] + r["floor_trials"], 1)]
        if r["rounds_per_user"] > 1:
            intruder.append((r, honest, r["rounds_per_user"] - 1))
    return learner, intruder


def curve(turns):
    """Points (mu, slack) of so many participations, each in the costliest of some lists of views."""
    points, before = [], None
    for k in range(173):
        square = slack = 0.0
        rungs = []
        for times, lists in turns:
            most_square = most_slack = 0.0
            for seen in lists:
                one_square = one_slack = 0.0
                for r, trials, rounds in seen:
                    level = rung(profile(trials, r["coin"]), k)
                    rungs.append(level and level[0])
                    if level:
                        mu = mu_of(r, level[2])
                        one_square += rounds * mu * mu
                        one_slack += rounds * r["dim"] * level[1]
                most_square, most_slack = max(most_square, one_square), max(most_slack, one_slack)
            square += times * most_square
            slack += times * most_slack
        if None not in rungs and rungs != before:
            points.append((math.sqrt(square) * (1 + 1e-12), slack * (1 + 1e-12)))
        before = rungs
    return points


def gaussian_delta(eps, mu):
    if mu <= 0:
        return 0
    a, c = eps / mu - mu / 2, eps / mu + mu / 2
    if a > 37:
        return 1e-298
    x = eps + log_upper_tail(c) - log_upper_tail(a) - 1e-15 * (1 + eps + c * c)
    return max(min(upper_tail(a) * -math.expm1(x) * (1 + 1e-9), 1), 1e-298)


def delta_at(points, eps):
    charge = (1 + math.exp(eps)) * (1 + 1e-12)
    return min([1.0] + [gaussian_delta(eps, mu) + charge * slack for mu, slack in points if charge * slack < 1])


def smallest_epsilon(points, delta):
    if delta_at(points, 0) <= delta:
        return 0
    lo, hi = 0.0, 1e-3
    while delta_at(points, hi) > delta:
        if hi >= 60:
            return None
        lo, hi = hi, min(hi * 1.5, 60)
    while hi - lo > 1e-10 * hi and hi > 1e-12:
        mid = lo + (hi - lo) / 2
        lo, hi = (lo, mid) if delta_at(points, mid) <= delta else (mid, hi)
    return hi


def check_cost(v):
    seen = [[view for r in stint for view in views(r)[0]] for stint in v["stints"]]
    looked = []
    for stint in v["stints"]:
        for at, r in enumerate(stint):
            if views(r)[1]:
                looked.append([view for i, s in enumerate(stint) for view in views(s)[1 if i == at else 0]])
    learner = curve([(v["times"], seen)])
    got = {"epsilon_learner": smallest_epsilon(learner, v["delta"])}
    got["epsilon"], worst = got["epsilon_learner"], [learner]
    if looked:
        operators = all(r["trust"] == "split" for stint in v["stints"] for r in stint)
        if operators:
            held = [[view for r in stint for view in views(r)[1]] for stint in v["stints"]]
            other, name = curve([(v["times"], held)]), "epsilon_operator"
        else:
            other, name = curve([(v["times"] - 1, seen), (1, looked)]), "epsilon_intruder"
        worst.append(other)
        got[name] = smallest_epsilon(other, v["delta"])
        both = got["epsilon_learner"], got[name]
        got["epsilon"] = None if None in both else max(both)
    got["deltas"] = [{"epsilon": d["epsilon"], "delta": max(delta_at(c, d["epsilon"]) for c in worst)} for d in v["deltas"]]
    return got


# Rows to features: tasks.md and statistics.md.


class Unfit(Exception):
    """A row that is none of the task's: it is reported as the zero vector."""


def murmur3(data, seed):
    data = data.encode() if isinstance(data, str) else data
    h, mask = seed, 0xFFFFFFFF

    def mixed(k):
        k = k * 0xCC9E2D51 & mask
        return (k << 15 | k >> 17) & mask

    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        h ^= mixed(int.from_bytes(data[i:i + 4], "little")) * 0x1B873593 & mask
        h = (h << 13 | h >> 19) & mask
        h = (h * 5 + 0xE6546B64) & mask
    if data[whole:]:
        h ^= mixed(int.from_bytes(data[whole:], "little")) * 0x1B873593 & mask
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16


def seed_of(names):
    seed = 0
    for name in names:
        seed = murmur3(name, seed)
    return seed


NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number(text):
    if len(text.encode()) > 128 or not NUMBER.fullmatch(text) or math.isinf(float(text)):
        raise Unfit
    return float(text)


def quantity(text, c):
    """A number, or None where it is missing."""
    text, tokens = text.strip(), c.get("missing", {}).get("tokens", [])
    if text == "" or text in tokens:
        return None
    for mark in c.get("marks", []):
        text = text.replace(mark, "")
    text = text.strip()
    if text == "" or re.fullmatch("nan", text.lower()):
        return None
    x = number(text)
    return None if any(NUMBER.fullmatch(t) and float(t) == x for t in tokens) else x


def part_of(text, c):
    text = text.strip()
    if text == "" or text in c.get("missing", {}).get("tokens", []):
        return None
    m = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)([T ](\d\d):(\d\d)(:(\d\d)(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?", text, re.ASCII)
    if not m or len(text) > 48:
        raise Unfit
    year, month, day = int(m[1]), int(m[2]), int(m[3])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if not (1 <= month <= 12 and 1 <= day <= days[month - 1]):
        raise Unfit
    if m[4] and (int(m[5]) > 23 or int(m[6]) > 59 or int(m[8] or 0) > 60):
        raise Unfit
    if c["part"] == "hour":
        return (60 * int(m[5]) + int(m[6])) / 60 if m[4] else None
    if c["part"] == "weekday":
        year -= 1
        return (365 * year + year // 4 - year // 100 + year // 400 + sum(days[:month - 1]) + day - 1) % 7 + 1
    return {"year": int(m[1]), "month": month, "day": day}[c["part"]]


def normal(v):
    return 0.0 if abs(v) < 2.0**-500 else v


def scaled(c, x):
    if c["kind"] == "indicator":
        return 1.0 if x >= 0.5 else 0.0
    scale = c.get("scale", "symmetric")
    low, high = c.get("min", 0), c.get("max", 0)
    if scale in ("standard", "log"):
        v = to_log(x, c["unit"]) if scale == "log" else x
        return min(max((v - c.get("mean", 0)) * (1 / c["std"]), -c["clip"]), c["clip"])
    x = min(max(x, low), high)
    if scale == "raw":
        return x
    if scale == "unit":
        return min((x - low) / (high - low), 1)
    return min(max((x - low) / (high - low) - (high - x) / (high - low), -1), 1)


def to_log(x, unit):
    return math.copysign(math.log1p(abs(x) / unit), x)


def largest(c):
    """The largest magnitude of a scaled value."""
    if c["kind"] == "indicator":
        return 1
    scale = c.get("scale", "symmetric")
    return c["clip"] if scale in ("standard", "log") else max(abs(c.get("min", 0)), abs(c.get("max", 0))) if scale == "raw" else 1


def words_of(text, c):
    """The buckets of a text's words."""
    words, word = [], ""
    for ch in text[:32 * c["words"]] + " ":
        if unicodedata.category(ch)[0] in "LMN":
            word += ch
        elif word:
            words.append("".join(simple_lower(x) for x in word[:32]))
            word = ""
    return sorted({murmur3(w, seed_of([c["column"]])) % c["buckets"] for w in words[:c["words"]]})


def simple_lower(ch):
    return "i" if ch == "\u0130" else ch.lower()


def positions(c):
    """How many positions a column has that is no number."""
    return {"categorical": lambda: len(c["vocabulary"]) + (c.get("unknown") == "other"), "hashed": lambda: c["buckets"],
            "bucketed": lambda: len(c["edges"]) + 1, "hats": lambda: len(c["knots"]), "text": lambda: c["buckets"],
            "onehot-group": lambda: len(c["columns"])}[c["kind"]]()


def is_number(c):
    return c["kind"] in ("numeric", "indicator")


def source(c, fields):
    """What a column says: a scaled number and whether it is missing; or a position, the place between knots, a text."""
    field, missing = fields.get(c.get("field", c["column"]), ""), c.get("missing", {})
    if c["kind"] == "onehot-group":
        on = [i for i, name in enumerate(c["columns"]) if (quantity(fields[name], c) or 0) >= 0.5]
        if len(on) > 1:
            raise Unfit
        return on[0] if on else None
    if c["kind"] == "categorical":
        word = field.strip()
        if word in c["vocabulary"]:
            return c["vocabulary"].index(word)
        if word == "" or word in missing.get("tokens", []):
            if missing.get("word"):
                return c["vocabulary"].index(missing["word"])
            return len(c["vocabulary"]) if c.get("unknown") == "other" else None
        if c.get("unknown", "invalid") == "invalid":
            raise Unfit
        return len(c["vocabulary"]) if c["unknown"] == "other" else None
    if c["kind"] == "hashed":
        return murmur3(field.strip(), seed_of([c["column"]])) % c["buckets"]
    if c["kind"] == "text":
        text = field.strip()
        return None if text == "" or text in missing.get("tokens", []) else text
    x = part_of(field, c) if "part" in c else quantity(field, c)
    if "over" in c:
        over = quantity(fields[c["over"]], c)
        x = None if None in (x, over) or over == 0 or math.isinf(x / over) else x / over
    if is_number(c):
        return normal(scaled(c, missing["fill"] if x is None else x)), x is None
    if x is None:
        return None
    if c["kind"] == "bucketed":
        return sum(e <= x for e in c["edges"])
    knots = c["knots"]
    x = min(max(x, knots[0]), knots[-1])
    i = max(sum(t < x for t in knots) - 1, 0)
    return i + (x - knots[i]) / (knots[i + 1] - knots[i])


def fourier(f, values):
    """sqrt(2/D) cos(<w_i, s> + b_i)."""
    out = []
    for i in range(f["dimension"]):
        angle = phase = None
        row = []
        for k in range((len(values) + 1) // 2):
            h = hashlib.sha256(b"panlearn fourier\0" + struct.pack(">QQQ", f.get("seed", 0), i, k)).digest()
            u = [((w >> 11) + 0.5) * 2.0**-53 for w in struct.unpack(">QQQ", h[:24])]
            radius = math.sqrt(2 * f["gamma"]) * math.sqrt(-2 * math.log(u[0]))
            row += [radius * math.cos(2 * math.pi * u[1]), radius * math.sin(2 * math.pi * u[1])]
            phase = 2 * math.pi * u[2] if k == 0 else phase
        angle = phase
        for w, s in zip(row, values):
            angle += w * s
        out.append(math.sqrt(2 / f["dimension"]) * math.cos(angle))
    return out


class Features:
    """The feature map of a declaration."""

    def __init__(self, d):
        f = self.f = d["features"]
        self.d, self.intercept = d, d["intercept"]
        groups = []  # (coordinates, the largest square of their norm, indicators)
        columns = self.columns = f.get("columns", [])
        if "vector" in f:
            v = f["vector"]
            self.vector = dict(v, kind=v.get("kind", "numeric"))
            n = 0 if v.get("hidden") else v["dimension"]
            groups += [(1, largest(self.vector) ** 2, self.vector["kind"] == "indicator")] * n
        for c in columns:
            if c.get("hidden"):
                continue
            if is_number(c):
                told = c.get("missing", {}).get("indicator")
                square = largest(c) ** 2
                if told:
                    square = max(square, scaled(c, c["missing"]["fill"]) ** 2 + 1)
                groups.append((1, square, c["kind"] == "indicator"))
                if told:
                    groups.append((1, 0, True))
            else:
                groups.append((positions(c), 1, c["kind"] not in ("hats", "text")))
        for x in f.get("crosses", []):
            width = x.get("buckets") or math.prod(positions(self.find(n, False)) for n in x["columns"])
            of = self.find(x["number"], True) if "number" in x else None
            groups.append((width, largest(of) ** 2 if of else 1, not of or of["kind"] == "indicator"))
        if "polynomial" in f:
            for product in self.products():
                square = math.prod(largest(self.find(n, True)) ** 2 for n in product)
                groups.append((1, square, all(self.find(n, True)["kind"] == "indicator" for n in product)))
        if "fourier" in f:
            groups += [(1, 2 / f["fourier"]["dimension"], False)] * f["fourier"]["dimension"]
        self.dim = sum(g[0] for g in groups)
        self.scales = f.get("scales", [1] * self.dim)
        if "precondition" in f:
            p = f["precondition"]
            self.scales = [1 / math.sqrt(h + p["damping"]) for h in p["second_moments"]]
        square, at, self.indicators = 0, 0, []
        for n, most, indicator in groups:
            square += most * max(self.scales[at:at + n]) ** 2
            self.indicators += [indicator and s == 1 for s in self.scales[at:at + n]]
            at += n
        self.norm_bound = min(math.sqrt(square), d["norm_bound"] or math.inf)
        if self.norm_bound < math.sqrt(square):
            self.indicators = [False] * self.dim
        self.bound = math.hypot(self.norm_bound, self.intercept)

    def find(self, name, number):
        return next(c for c in self.columns if c["column"] == name and is_number(c) == number)

    def products(self):
        names, out = self.f["polynomial"]["columns"], []
        n = range(len(names))
        out += [(names[i], names[j]) for i in n for j in n if i <= j]
        if self.f["polynomial"]["degree"] == 3:
            out += [(names[i], names[j], names[k]) for i in n for j in n for k in n if i <= j <= k]
        return out

    def map(self, row):
        """The features, intercept included."""
        out, f = [], self.f
        if "vector" in f:
            n, values = f["vector"]["dimension"], row.get("value", [])
            index = row.get("index") or list(range(len(values)))
            if "index" not in row and len(values) != n or index != sorted(set(index)) or any(i >= n for i in index):
                raise Unfit
            dense = [0.0] * n
            for i, v in zip(index, values):
                dense[i] = normal(scaled(self.vector, v))
            out += [] if f["vector"].get("hidden") else dense
            inputs = dense
        else:
            read = [source(c, row["fields"]) for c in self.columns]
            by = {(c["column"], is_number(c)): v for c, v in zip(self.columns, read)}
            for c, v in zip(self.columns, read):
                if c.get("hidden"):
                    continue
                if is_number(c):
                    out += [v[0]] + [float(v[1])] * bool(c.get("missing", {}).get("indicator"))
                    continue
                block = [0.0] * positions(c)
                if c["kind"] == "text":
                    buckets = words_of(v, c) if v is not None else []
                    for b in buckets:
                        block[b] = 1 / math.sqrt(len(buckets))
                elif c["kind"] == "hats" and v is not None:
                    block = [max(0.0, 1 - abs(v - j)) for j in range(len(block))]
                elif v is not None:
                    block[v] = 1.0
                out += block
            for x in f.get("crosses", []):
                width = [positions(self.find(n, False)) for n in x["columns"]]
                places = [by[n, False] for n in x["columns"]]
                block = [0.0] * (x.get("buckets") or math.prod(width))
                if None not in places:
                    at = 0
                    for w, p in zip(width, places):
                        at = at * w + p
                    if x.get("buckets"):
                        at = murmur3(struct.pack("<I", at), seed_of(x["columns"])) % x["buckets"]
                    block[at] = by[x["number"], True][0] if "number" in x else 1.0
                out += block
            if "polynomial" in f:
                out += [math.prod(by[n, True][0] for n in product) for product in self.products()]
            inputs = [by[n, True][0] for n in f.get("fourier", {}).get("columns", [])]
        if "fourier" in f:
            out += fourier(f["fourier"], inputs)
        out = clip([normal(v * s) for v, s in zip(out, self.scales)], self.norm_bound)
        return out + [self.intercept] * bool(self.intercept)


def norm(x):
    return math.sqrt(sum(v * v for v in x))


def clip(x, most):
    n = norm(x)
    if not math.isfinite(n):
        return [0.0] * len(x)
    return x if n <= most else [v * (most / n) for v in x]


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


# Losses: statistics.md, "Losses". A slope p at a score s solves p = h'(s - c p).


def class_key(text):
    text = text.strip()
    return float(text) if len(text) <= 128 and NUMBER.fullmatch(text) and math.isfinite(float(text)) else text


def omega(u):
    """The w with w + ln w = u."""
    w = math.exp(u) if u < -2 else max(u, 1e-3) if u > 1 else math.exp((u - 1) / 2)
    for _ in range(12):
        r = u - w - math.log(w)
        w = max(w + w * r / (1 + w), w / 2)
    return w


class Loss:
    def __init__(self, d):
        m, self.label = d["model"], d["label"]
        self.name, self.m = m["loss"], m
        self.classes = len(self.label["classes"]) if self.name == "softmax" else 0
        self.weights = m.get("class_weights")
        self.noise = m.get("label_noise", 0)
        self.kind = {"logistic": "signs", "hinge": "signs", "smoothed-hinge": "signs", "softmax": "classes",
                     "poisson": "counts"}.get(self.name, "numbers")

    def seen(self, text):
        """A label as the loss sees it."""
        key, label = class_key(text), self.label
        if self.kind == "classes":
            keys = [class_key(t) for t in label["classes"]]
        elif self.kind == "signs":
            keys = None
            for y, names in ((-1.0, label["negative"]), (1.0, label["positive"])):
                if key in [class_key(t) for t in names]:
                    return y
            raise Unfit
        else:
            y = number(text.strip())
            if self.kind == "counts":
                if y < 0 or y != int(y):
                    raise Unfit
                return min(y, label["max"])
            if label.get("scale") == "log":
                u = label["unit"]
                y, ends = to_log(y, u), [to_log(label.get("min", 0), u), to_log(label.get("max", 0), u)]
                return scaled({"kind": "numeric", "min": ends[0], "max": ends[1]}, y)
            return scaled(dict(label, kind="numeric"), y)
        if key not in keys:
            raise Unfit
        return float(keys.index(key))

    def extremes(self):
        if self.kind == "signs":
            return [-1.0, 1.0]
        if self.kind == "classes":
            return [float(k) for k in range(self.classes)]
        if self.kind == "counts":
            return [0.0, float(self.label["max"])]
        return [self.seen(str(self.label.get("min", 0))), self.seen(str(self.label.get("max", 0)))]

    def weight(self, y):
        if not self.weights or self.noise:
            return 1
        return self.weights[int((y + 1) / 2) if self.kind == "signs" else int(y)]

    def h(self, s, y):
        m = self.m
        if self.name == "logistic":
            def plain(z):
                return math.log1p(math.exp(-z)) if z > 0 else -z + math.log1p(math.exp(z))
            if not self.noise:
                return plain(y * s)
            keep, tilt = self.corrected(y)
            return keep * plain(y * s) - tilt * s
        if self.name == "hinge":
            return max(0, 1 - y * s)
        if self.name == "smoothed-hinge":
            r = max(0, 1 - y * s)
            return r * r / (2 * m["width"]) if r <= m["width"] else r - m["width"] / 2
        if self.name == "poisson":
            bound = m["score_bound"]
            mean = math.exp(min(s, bound)) * (1 + max(0, s - bound))
            return mean - y + y * (math.log(y) - s) if y > 0 else mean
        r = s - y
        if self.name == "squared":
            return r * r / 2
        if self.name == "huber":
            return r * r / 2 if abs(r) <= m["width"] else m["width"] * (abs(r) - m["width"] / 2)
        return abs(r) if self.name == "absolute" else max(-m["level"] * r, (1 - m["level"]) * r)

    def corrected(self, y):
        w = self.weights or [1, 1]
        i, rho = (1, self.noise) if y > 0 else (0, self.noise)
        own, other = (1 - rho) * w[i] / (1 - 2 * rho), rho * w[1 - i] / (1 - 2 * rho)
        return own - other, other * y

    def slope(self, s, y, c=0):
        m = self.m

        def cut(r, c, low, high):
            return 0 if r == 0 else min(max(r / c if c else math.copysign(math.inf, r), low), high)

        if self.name == "logistic":
            def plain(z, c):  # p = 1/(1 + exp(z + c p))
                lo, hi = 0.0, 1.0
                for _ in range(70):
                    p = (lo + hi) / 2
                    lo, hi = (p, hi) if p > 0 and p < 1 and math.log((1 - p) / p) - c * p > z else (lo, p)
                return hi
            if not self.noise:
                return -y * plain(y * s, c)
            keep, tilt = self.corrected(y)
            return keep * -y * plain(y * (s + c * tilt), c * keep) - tilt
        if self.name in ("hinge", "smoothed-hinge"):
            return -y * cut(1 - y * s, m.get("width", 0) + c, 0, 1)
        if self.name == "poisson":
            top, u = math.exp(m["score_bound"]), s + c * y
            if u >= m["score_bound"] + c * top:
                return top - y
            return min(omega(u + math.log(c)) / c if c else math.exp(u), top) - y
        if self.name == "squared":
            return (s - y) / (1 + c)
        if self.name == "huber":
            return cut(s - y, 1 + c, -m["width"], m["width"])
        ends = (-1, 1) if self.name == "absolute" else (-m["level"], 1 - m["level"])
        return cut(s - y, c, *ends)

    def scores(self, point, x):
        n = len(x)
        return [dot(point[k:k + n], x) for k in range(0, len(point), n)]

    def value(self, point, x, y):
        s = self.scores(point, x)
        if self.classes:
            top = max(s)
            return self.weight(y) * (top + math.log(sum(math.exp(v - top) for v in s)) - s[int(y)])
        return self.weight(y) * self.h(s[0], y)

    def predicted(self, point, x):
        s = self.scores(point, x)
        return float(s.index(max(s))) if self.classes else 1.0 if s[0] > 0 else -1.0

    def gradient(self, point, x, y, envelope=0, smoothing=0, most=math.inf):
        """Of the loss, of its envelope, or of the loss smoothed in the score; of several scores with norm at most so much."""
        w, s = self.weight(y), self.scores(point, x)
        c = w * dot(x, x) / envelope if envelope else 0
        if not self.classes:
            return [w * self.slope(s[0], y, c or smoothing) * v for v in x]
        slopes = softmax_slopes(s, int(y), c, most / w * (1 - 2.0**-39) / norm(x))
        return [w * p * v for p in slopes for v in x]


def softmax_slopes(s, y, c, most):
    """q_j - [j = y] with ln q_j + c q_j = s_j + c [j = y] - t and sum q_j = 1; c grows until the slopes have norm most."""

    def at(c):
        def q(t):
            u = [v + c * (j == y) - t for j, v in enumerate(s)]
            return [omega(a + math.log(c)) / c if c else math.exp(a) for a in u]
        lo, hi = max(s) - 50, max(s) + c + math.log(len(s)) + 50
        for _ in range(70):
            t = (lo + hi) / 2
            lo, hi = (t, hi) if sum(q(t)) > 1 else (lo, t)
        return [v - (j == y) for j, v in enumerate(q(hi))]

    if norm(at(c)) <= most:
        return at(c)
    lo, hi = c, max(1.0, 2 * c)
    while norm(at(hi)) > most:
        hi *= 2
    for _ in range(60):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if norm(at(mid)) > most else (lo, mid)
    return at(hi)


# One report's vector: statistics.md.


def framed(f, x):
    """A row in the coordinates of a frame; x has no intercept."""
    u = clip([(v - c) * s for v, c, s in zip(x, f["center"], f["scale"])], f["bound"])
    return u + [f["intercept"]] * bool(f.get("intercept"))


def whitened(f, g):
    rows, n = f.get("whitener"), len(f["scale"]) + bool(f.get("intercept"))
    if not rows:
        return g

    def entry(i, j):
        i, j = max(i, j), min(i, j)
        return rows[i * (i + 1) // 2 + j]

    return [sum(entry(i, j) * g[at + j] for j in range(n)) for at in range(0, len(g), n) for i in range(n)]


def rounded_up(x):
    if not x > 1e-100:
        return 1
    digit = math.pow(10, math.floor(math.log10(x)) - 1)
    return math.ceil(x / digit - 1e-6) * digit


class Report:
    def __init__(self, v):
        d = self.d = v["declaration"]
        self.v, self.features, self.loss = v, Features(d), Loss(d)
        self.practical = d["schedule"]["plan"] == "practical"
        self.frame, self.statistic = v.get("frame"), v["statistic"]
        self.clip_norm = 1 if self.practical else d["model"]["clip_norm"]
        self.radius = 1
        if d["privacy"].get("unit") == "user" and self.statistic == 0:
            self.radius = d["user"].get("radius") or 1 / math.sqrt(d["user"]["items"])
        validation = d.get("validation", {})
        self.width = 0 if validation.get("off") or self.statistic else 2 if self.loss.kind in ("signs", "classes") else 1
        self.score_norm = validation.get("weight", 0) * self.radius * self.clip_norm
        self.high = validation.get("loss_bound", 0)
        if not self.high:
            zero = [0.0] * max(1, self.loss.classes)
            most = max(self.loss.value(zero, [0.0], y) for y in self.loss.extremes())
            self.high = rounded_up(most * (3 if self.width == 2 else 1))
        self.low = -self.high if self.loss.noise else 0

    def numbers(self):
        """Whether labels are numbers or counts, their middle, and the size of a unit."""
        if self.loss.kind in ("signs", "classes"):
            return False, 0, 1
        low, high = min(self.loss.extremes()), max(self.loss.extremes())
        if self.loss.kind == "counts":
            return True, 0, high
        if not self.features.intercept or self.d["model"].get("set", "ball") != "ball":
            return True, 0, max(abs(low), abs(high))
        return True, low / 2 + high / 2, high / 2 - low / 2

    def moments(self, x, y):
        f = self.features
        x = x[:f.dim]
        of, middle, half = self.numbers()
        if of:
            z = min(max((y - middle) / half, -1), 1)
            label = [3 * z, 3 * z * z]
        elif self.loss.classes:
            label = [float(k == y) for k in range(self.loss.classes)]
        else:
            label = [y]
        return x + [v * v for v, one in zip(x, f.indicators) if not one] + label

    def moments_norm(self):
        f, square = self.features, self.features.norm_bound**2
        if self.numbers()[0]:
            return 0.6 * math.sqrt(square + 18)
        n = f.indicators.count(False)
        return math.sqrt(square + 1 - 0.75 * (min(square, n) if n < f.dim else square))

    def matrix(self, u, y):
        f = self.frame
        q = min(max((y - f["label_center"]) / f["label_scale"], -3), 3)
        out = [math.sqrt(2) * a * b if j < i else a * b for i, a in enumerate(u) for j, b in enumerate(u[:i + 1])]
        return out + [f["label_weight"] * q * a for a in u] + [f["label_weight"] * q * q]

    def row(self, row):
        """The vector of one row, before a person's rows are averaged."""
        v, loss = self.v, self.loss
        x, y = self.features.map(row), loss.seen(row["label"])
        if self.statistic == 1:
            return clip(self.moments(x, y), self.moments_norm()), []
        if self.frame:
            x = framed(self.frame, x[:self.features.dim])
        if self.statistic == 2:
            g = self.matrix(x, y)
        elif self.frame:
            g = whitened(self.frame, loss.gradient(v["point"], x, y, smoothing=self.frame.get("smoothing", 0)))
        else:
            g = loss.gradient(v["point"], x, y, envelope=v.get("smoothing", 0), most=self.clip_norm)
        if self.frame:
            g = [a / self.frame["clip"] for a in g]
        scores = []
        if self.width:
            unit = self.score_norm / math.sqrt(self.width)
            at = (min(max(loss.value(v["point"], x, y), self.low), self.high) - self.low) / (self.high - self.low)
            scores = [unit * at - unit * (1 - at)]
            if self.width == 2:
                scores.append(unit if loss.predicted(v["point"], x) == y else -unit)
        return clip(g, 1 if self.frame else self.clip_norm), scores

    def vector(self):
        rows = []
        for row in self.v["rows"]:
            try:
                rows.append(self.row(row))
            except Unfit:
                rows.append(None)
        size = len(self.v["vector"]) - self.width
        zero = [0.0] * size, [0.0] * self.width
        rows = [r or zero for r in rows]
        mean = [[sum(column) / len(rows) for column in zip(*part)] for part in zip(*rows)]
        most = self.moments_norm() if self.statistic == 1 else self.radius * self.clip_norm
        return clip(mean[0], most) + (mean[1] if self.width else [])

    def mechanism_norm(self):
        most = self.moments_norm() if self.statistic == 1 else self.radius * self.clip_norm
        return math.hypot(most, self.score_norm) if self.width else most


# What is compared, and how closely.


def close(a, b, relative, absolute=0.0):
    if a is None or b is None:
        return a is b
    if isinstance(a, dict):
        return all(close(v, b[k], relative, absolute) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(close(x, y, relative, absolute) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(a, str):
        return a == b
    return abs(a - b) <= max(relative * max(abs(a), abs(b)), absolute)


def load(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)) as f:
        return json.load(f)


# Each yields (name, what was computed, what the vector says, the relative and the absolute difference that is allowed).


def or_refused(of):
    for name, check, v in of:
        try:
            got = check()
        except Refused as refused:
            got = {"refused": str(refused)}
        yield name, got, {k: v.get(k) for k in got} if "refused" not in v else {"refused": v["refused"]}, 0, 0


def of_signed(file):
    parsers = {"leases": parse_lease, "place_requests": parse_request, "place_answers": parse_answer}
    of = [(v["name"], lambda v=v: check_record(file, v), v) for v in file["records"]]
    of += [(f"{key} {i}", lambda v=v, p=p: p(bytes.fromhex(v["record"])), v)
           for key, p in parsers.items() for i, v in enumerate(file[key])]
    of += [(v["subject"], lambda v=v: parse_subject(v["subject"]), v) for v in file["subjects"]]
    two = file["operators"]
    of += [("two operators: " + v["name"], lambda v=v: check_record(two, v), v) for v in two["records"]]
    of += [("two operators: " + v["name"], lambda v=v: check_pair(v), v) for v in two["pairs"]]
    return or_refused(of)


def of_relay(file):
    of = [(v["name"], lambda v=v: check_record(file, v), v) for v in file["records"]]
    of += [(v["name"], lambda v=v: state_of(file, v), v) for v in file["states"]]
    of += [(v["name"], lambda v=v: parse_state(bytes.fromhex(v["body"])), v) for v in file["operator_states"]]
    of += [(f"place {i}", lambda v=v: place_of(v), v) for i, v in enumerate(file["places"])]
    of += [(f"report {i}", lambda v=v: report_of(v), v) for i, v in enumerate(file["reports"])]
    of += [(f"answer {i}", lambda v=v: parse_said(bytes.fromhex(v["body"])), v) for i, v in enumerate(file["report_answers"])]
    return or_refused(of)


def of_decisions(file):
    for v in file["events"] + file["operators"]:
        want = [{"taken": not s.get("forbidden", False), "state": s["state"], "participations": s["participations"],
                 "reports": s.get("reports", 0)} for s in v["steps"]]
        got = check_event(v)
        if "reports" not in v["steps"][-1]:  # they are counted of two operators
            for s in got:
                s["reports"] = 0
        yield v["name"], got, want, 0, 0
    for v in file["joins"]:
        yield f"draw {v['draw']}", joins_after(v), v["after_ns"], 0, 1.5
    for v in file["turns"]:
        yield f"turn of {v['draw']}", turned(v), v["turned"], 0, 0
    for v in file["clocks"]:
        want = [{k: s[k] for k in ("due", "ledger_unix_ms", "charges")} for s in v["steps"]]
        yield v["name"], check_clock(v), want, 0, 0


def of_accounting(file):
    for v in file:
        got = check_cost(v)
        yield v["name"], got, {k: v.get(k) for k in got}, 1e-12, 0


def of_statistic(file):
    for v in file["features"]:
        m, loss = Features(v["declaration"]), Loss(v["declaration"])
        yield v["name"], [m.norm_bound, m.bound], [v["norm_bound"], v["bound"]], 1e-12, 0
        for i, row in enumerate(v["rows"]):
            try:
                got = {"features": m.map(row), "label_seen": loss.seen(row["label"])}
            except Unfit:
                got = {"invalid": True}
            yield f"{v['name']}, row {i + 1}", got, {k: row.get(k) for k in got}, 0, 1e-12
    for v in file["statistics"]:
        r = Report(v)
        got = {"clip_norm": r.mechanism_norm(), "vector": r.vector()}
        yield v["name"], got, {k: v[k] for k in got}, 0, 2.0**-34 * v["clip_norm"]


def of_split(file):
    for v in file:
        got = check_ids(v)
        yield v["name"], got, {"ids": [u["id"] for u in v["users"]], "associated_data": v["associated_data"]}, 0, 0


def of_shares(file):
    for v in file:
        got = check_contexts(v)
        yield v["name"], got, {k: v[k] for k in got}, 0, 0


READERS = {"signed.json": of_signed, "relay.json": of_relay, "decisions.json": of_decisions, "accounting.json": of_accounting,
           "statistic.json": of_statistic, "split.json": of_split, "shares.json": of_shares}


def main():
    seen = wrong = 0
    for file in sys.argv[1:] or READERS:
        for name, got, want, relative, absolute in READERS[file](load(file)):
            seen += 1
            if not close(got, want, relative, absolute):
                wrong += 1
                print(f"{file}: {name}: {got}, want {want}", file=sys.stderr)
    print(f"{seen} vectors, {wrong} differences")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
