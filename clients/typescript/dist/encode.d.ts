import { type Words } from './binomial.js';
import type { Bytes } from './bytes.js';
/** The parameters of one round's randomizer. */
export interface Params {
    dim: number;
    clipNorm: number;
    levels: number;
    trials: number;
    coin: number;
    units: number;
    window: number;
    minimizer: boolean;
}
/** Where a report about some units lies, in steps of 2^-24 of a level from the centre. */
export declare function place(vectors: readonly (readonly number[])[], p: Params): number[];
/** Draws the counts of a place. */
export declare function draw(words: Words, where: readonly number[], p: Params): number[];
/** The bits of one count in a report. */
export declare const countBits: (p: Params) => number;
/** The bytes of one report. */
export declare const reportBytes: (p: Params) => number;
/** Packs counts: count j takes the bits js to (j+1)s - 1, the least significant first. */
export declare function pack(counts: readonly number[], p: Params): Bytes;
