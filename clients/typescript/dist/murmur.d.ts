export declare function murmur3(data: Uint8Array, seed: number): number;
/** The seed of a hashed column, or of a cross: the hash of the names one after another, each seeded by the one before. */
export declare const hashSeed: (...names: string[]) => number;
