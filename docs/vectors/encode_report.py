#!/usr/bin/env python3
"""Encodes reports as a device does, from the inputs of the test vectors: docs/reference/device.md explains every step.

Without arguments it checks the vectors beside it. With --encode it reads a list of vectors, from which the results may
be missing, from standard input, and prints a list of what it made of each. It needs nothing but Python 3, is written for
reading, and seals nothing: the operator of the broker can read what it makes. Real clients draw their words from
the operating system, once, and keep no copy.
"""

import hashlib
import json
import math
import os
import sys

COIN_BITS = 24
MASK = (1 << COIN_BITS) - 1
WORD = (1 << 64) - 1


# The point: clipped, and moved to the grid of 2^-24 of a level, inside the ball.


def norm(x):
    """The norm as (n, unit): n times unit. The unit is 1 unless squares overflow."""
    if any(math.isnan(v) or math.isinf(v) for v in x):
        return None, 1.0
    total = 0.0
    for v in x:
        total += v * v
    if not math.isinf(total):
        return math.sqrt(total), 1.0
    unit = max(abs(v) for v in x)
    total = 0.0
    for v in x:
        total += (v / unit) * (v / unit)
    return math.sqrt(total), unit


def place(units, clip, levels, of):
    """Where the sum of the units of a report about so many lies, in steps of 2^-24 of a level from the centre."""
    radius = (levels << (COIN_BITS - 1)) // of
    return [sum(column) for column in zip(*(positions(x, clip, radius) for x in units))]


def positions(x, clip, radius):
    """Where x lies, within a ball around the centre."""
    n, unit = norm(x)
    if n is None:
        return [0] * len(x)
    if unit == 1 and n <= clip:
        scale = float(radius) / clip
    else:
        scale = float(radius) / n
    factor, gap = 1.0, 2.0**-51
    while True:
        s = [int((v / unit) * (scale * factor)) for v in x]  # int() cuts toward zero: toward the centre
        if sum(v * v for v in s) <= radius * radius:
            return s
        factor = max(0.0, 1 - gap)
        gap *= 2


# The noise: exactly binomial, from words of 64 random bits.


def flips(words, n, coin):
    """Successes of n coins, 64 at a time."""
    ones = 0
    while n > 0:
        lanes = min(n, 64)
        still, won = (1 << lanes) - 1, 0
        bits = coin << (32 - COIN_BITS)
        while bits & 0xFFFFFFFF and still:
            w = next(words)
            if bits & 0x80000000:
                won |= still & ~w & WORD
                still &= w
            else:
                still &= ~w & WORD
            bits <<= 1
        ones += won.bit_count()
        n -= lanes
    return ones


PRECISION = 320  # bits of the distribution function below: much more than are ever drawn
TABLES = {}


def table(n, coin):
    """The first outcome, and for each from there on the share of 2^PRECISION that lies below it, known up to 2."""
    if (n, coin) in TABLES:
        return TABLES[n, coin]
    other = (1 << COIN_BITS) - coin
    mode = (n + 1) * coin >> COIN_BITS
    full = 1 << (PRECISION + 63)
    down, k, w = [], mode, full
    while k > 0:
        w = w * k * other // ((n - k + 1) * coin)
        if w == 0:
            break
        down.append(w)
        k -= 1
    first, up, k, w = k, [full], mode, full
    while k < n:
        w = w * (n - k) * coin // ((k + 1) * other)
        if w == 0:
            break
        up.append(w)
        k += 1
    weights = down[::-1] + up
    total, below, starts = sum(weights), 0, []
    for w in weights:
        starts.append((below << PRECISION) // total)
        below += w
    TABLES[n, coin] = first, starts
    return first, starts


def inversion(words, n, coin):
    """The outcome k with C(k-1) <= U < C(k), of a uniform U that is drawn word by word until k is certain."""
    first, starts = table(n, coin)
    u, drawn = 0, 0
    while drawn < PRECISION - 64:
        u, drawn = u << 64 | next(words), drawn + 64
        least, most = u << (PRECISION - drawn), (u + 1) << (PRECISION - drawn)
        low, high = 0, len(starts) - 1  # the last start at or below least
        while low < high:
            middle = (low + high + 1) // 2
            if starts[middle] <= least:
                low = middle
            else:
                high = middle - 1
        end = starts[low + 1] if low + 1 < len(starts) else 1 << PRECISION
        if (low == 0 or least >= starts[low] + 2) and most <= end - 2:
            return first + low
    raise ValueError("no outcome is certain")


def binomial(words, n, coin):
    if n <= 8 or (coin == 1 << (COIN_BITS - 1) and n <= 256):
        return flips(words, n, coin)
    return inversion(words, n, coin)


# One user's report.


def windowed(counts, levels, trials, window):
    """Counts whose noise is centred at half of the window, and within it; as they are where there is none."""
    if window == 0:
        return counts
    return [min(max(c + window // 2 - trials // 2, 0), levels + window) for c in counts]


def encode(words, where, levels, trials, coin):
    """The counts of a place: rounded to a level without bias, and the noise added."""
    at = [s + (levels << (COIN_BITS - 1)) for s in where]
    fair = coin == 1 << (COIN_BITS - 1)

    def rounded(position, w):
        return (position >> COIN_BITS) + (1 if w & MASK < position & MASK else 0)

    if trials == 0 or (fair and trials <= 40):  # one word for both
        counts = []
        for position in at:
            w = next(words)
            counts.append(rounded(position, w) + (w >> COIN_BITS & ((1 << trials) - 1)).bit_count())
        return counts
    counts = []
    for j, position in enumerate(at):  # one word for each two
        w = next(words) if j % 2 == 0 else w >> 32
        counts.append(rounded(position, w))
    for j in range(len(counts)):
        if fair and trials <= 64:
            counts[j] += (next(words) & ((1 << trials) - 1)).bit_count()
        else:
            counts[j] += binomial(words, trials, coin)
    return counts


def pack(counts, most):
    """Counts of equal width, the lowest bits first."""
    width = most.bit_length()
    bits = 0
    for j, c in enumerate(counts):
        bits |= c << (j * width)
    return bits.to_bytes((len(counts) * width + 7) // 8, "little")


# The message.


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data if data else b""


def report(task_hash, ids, plaintext):
    """panlearn.v1.Report of SUITE_NONE: fields in ascending order, none that is empty."""
    return varint(1 << 3) + varint(1) + field(2, task_hash) + b"".join(field(3, i) for i in ids) + field(5, plaintext)


def message_id(first_id, attempt, opened):
    return hashlib.sha256(b"panlearn message id\x00" + first_id + attempt.to_bytes(8, "big") + opened).digest()[:16]


def subject(task, round_, attempt):
    return f"panlearn.{task}.report.{round_}.{attempt}"


def place_of(v, user):
    return place(user.get("unit_vectors") or [user["x"]], v["clip_norm"], v["levels"], 1 if v.get("minimizer") else v.get("units", 1))


def counts_of(v, user):
    words = iter([int(w, 16) for w in user["words"]])
    counts = encode(words, place_of(v, user), v["levels"], v["trials"], v["coin"])
    if next(words, None) is not None:
        raise ValueError("words are left")
    return windowed(counts, v["levels"], v["trials"], v.get("window", 0))


def packed(v, counts):
    return pack(counts, v["levels"] + (v.get("window", 0) or v["trials"]))


def results(v):
    """What the vector says that its inputs give."""
    if "users" not in v:
        counts = counts_of(v, v)
        return {
            "position": place_of(v, v),
            "counts": counts,
            "packed": packed(v, counts).hex(),
        }
    plaintext = b"".join(packed(v, counts_of(v, user)) for user in v["users"])
    ids = [bytes.fromhex(user["id"]) for user in v["users"]]
    return {
        "plaintext": plaintext.hex(),
        "report": report(bytes.fromhex(v["task_hash"]), ids, plaintext).hex(),
        "subject": subject(v["task"], v["round"], v["attempt"]),
        "message_id": message_id(ids[0], v["attempt"], bytes.fromhex(v["open"])).hex(),
    }


def main():
    if sys.argv[1:] == ["--encode"]:
        json.dump([results(v) for v in json.load(sys.stdin)], sys.stdout)
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    folder, wrong, seen = os.path.dirname(os.path.abspath(__file__)), 0, 0
    for name in ("randomizer.json", "report.json"):
        with open(os.path.join(folder, name)) as f:
            for v in json.load(f):
                seen += 1
                for key, got in results(v).items():
                    if v[key] != got:
                        wrong += 1
                        print(f"{name}: {v['name']}: {key} is {got}, want {v[key]}", file=sys.stderr)
    print(f"{seen} vectors, {wrong} differences")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
