// Exact draws from the binomial distribution: every outcome has its probability to the last bit, provided that the
// words are uniform and independent (randomizer/binomial.go).
const one = 2 ** 24; // a coin is heads with probability coin / one
export const fair = one / 2;
/** Draws words from the system's generator. Nothing is kept: erase overwrites what was fetched and not used. */
export class SystemWords {
    pool = new Uint32Array(1024);
    at = this.pool.length;
    next() {
        if (this.at === this.pool.length) {
            crypto.getRandomValues(this.pool);
            this.at = 0;
        }
        const word = { low: this.pool[this.at], high: this.pool[this.at + 1] };
        this.pool.fill(0, this.at, this.at + 2);
        this.at += 2;
        return word;
    }
    erase() {
        this.pool.fill(0);
        this.at = this.pool.length;
    }
}
/** Counts the bits that are set in 32. */
function ones(v) {
    v -= (v >>> 1) & 0x55555555;
    v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
    return Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
/** The lowest n bits of 32 set; n may be outside 0 to 32. */
const mask = (n) => (n <= 0 ? 0 : n >= 32 ? 0xffffffff : 2 ** n - 1);
/** Counts the bits from .. from+n-1 of a word that are set; from + n is at most 64. */
export function count(w, from, n) {
    return ones(w.low & mask(from + n) & ~mask(from)) + ones(w.high & mask(from + n - 32) & ~mask(from - 32));
}
/**
 * Flips n coins, 64 lanes at a time: lane i compares random bits with those of coin/2^24, the most significant first, bit
 * i of each word being the lane's, and is heads if they are below. Words are drawn while a lane is undecided and a bit of
 * coin is left that is set.
 */
export function flips(words, n, coin) {
    let heads = 0;
    for (; n > 0; n -= 64) {
        let low = mask(n);
        let high = mask(n - 32); // lanes that are undecided
        for (let bits = coin; bits !== 0 && (low | high) !== 0; bits = (bits << 1) & (one - 1)) {
            const w = words.next();
            if (bits & fair) {
                heads += ones(low & ~w.low) + ones(high & ~w.high);
                low &= w.low;
                high &= w.high;
            }
            else {
                low &= ~w.low;
                high &= ~w.high;
            }
        }
    }
    return heads;
}
const precision = 320n; // bits of a table
const tables = new Map();
/**
 * Makes a table from the ratios of neighbouring probabilities, outward from the mode, whose weight is 2^(precision+63).
 * Each step cuts off less than 1, and makes what was cut off before no larger, so the k-th weight is off by less than k
 * and the sum of E weights by less than E^2. Fewer than 2^21 outcomes of at most 2^31 trials have a weight at all (they
 * lie within 30 standard deviations), and the sum is at least 2^(precision+63), so a start is off by less than
 * 2 * 2^42 / 2^63 units and 1 for its own division.
 */
function table(trials, coin) {
    const key = `${trials}/${coin}`;
    const known = tables.get(key);
    if (known)
        return known;
    const [n, heads, tails] = [BigInt(trials), BigInt(coin), BigInt(one - coin)];
    const mode = ((n + 1n) * heads) >> 24n;
    const full = 1n << (precision + 63n);
    const down = [];
    let first = mode;
    for (let w = full; first > 0n; first--) {
        w = (w * first * tails) / ((n - first + 1n) * heads);
        if (w === 0n)
            break;
        down.push(w);
    }
    const weights = [...down.reverse(), full];
    let w = full;
    for (let k = mode; k < n; k++) {
        w = (w * (n - k) * heads) / ((k + 1n) * tails);
        if (w === 0n)
            break;
        weights.push(w);
    }
    let total = 0n;
    for (const v of weights)
        total += v;
    let below = 0n;
    const starts = weights.map((v) => {
        const start = (below << precision) / total;
        below += v;
        return start;
    });
    const made = { first: Number(first), starts };
    tables.set(key, made);
    return made;
}
/**
 * Inverts the distribution function: the outcome k with C(k-1) <= U < C(k), U being a number in [0, 1) whose bits are
 * those of the words. A further word is drawn only while the interval of U may hold the end of an outcome.
 */
function inversion(words, trials, coin) {
    const { first, starts } = table(trials, coin);
    let u = 0n;
    for (let drawn = 64n; drawn <= precision - 64n; drawn += 64n) {
        const w = words.next();
        u = (u << 64n) | (BigInt(w.high) << 32n) | BigInt(w.low);
        const least = u << (precision - drawn);
        const most = (u + 1n) << (precision - drawn);
        let low = 0;
        let high = starts.length - 1;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (starts[middle] <= least)
                low = middle;
            else
                high = middle - 1;
        }
        const next = starts[low + 1] ?? 1n << precision;
        if ((low === 0 || least >= starts[low] + 2n) && most <= next - 2n)
            return first + low;
    }
    throw new Error('256 random bits do not decide a draw'); // of probability below 2^-200
}
/** The most trials of one draw. */
export const maxTrials = 2 ** 31;
/** Draws from Bin(trials, coin/2^24). */
export function binomial(words, trials, coin) {
    if (!Number.isInteger(trials) || trials < 0 || trials > maxTrials)
        throw new Error(`${trials} trials`);
    if (!Number.isInteger(coin) || coin <= 0 || coin >= one)
        throw new Error(`coin ${coin}`);
    return trials <= 8 || (coin === fair && trials <= 256) ? flips(words, trials, coin) : inversion(words, trials, coin);
}
