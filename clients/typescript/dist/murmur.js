// MurmurHash3 by Austin Appleby, x86, 32 bits: spreads words over buckets, and hides nothing.
const rotate = (x, by) => (x << by) | (x >>> (32 - by));
export function murmur3(data, seed) {
    let h = seed | 0;
    const whole = data.length & ~3;
    for (let i = 0; i < whole; i += 4) {
        const k = data[i] | (data[i + 1] << 8) | (data[i + 2] << 16) | (data[i + 3] << 24);
        h ^= Math.imul(rotate(Math.imul(k, 0xcc9e2d51), 15), 0x1b873593);
        h = (Math.imul(rotate(h, 13), 5) + 0xe6546b64) | 0;
    }
    let k = 0;
    for (let i = data.length - 1; i >= whole; i--)
        k = (k << 8) | data[i];
    h ^= Math.imul(rotate(Math.imul(k, 0xcc9e2d51), 15), 0x1b873593);
    h ^= data.length;
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return (h ^ (h >>> 16)) >>> 0;
}
/** The seed of a hashed column, or of a cross: the hash of the names one after another, each seeded by the one before. */
export const hashSeed = (...names) => names.reduce((seed, name) => murmur3(new TextEncoder().encode(name), seed), 0);
