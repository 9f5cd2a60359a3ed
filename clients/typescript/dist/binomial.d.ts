/** A word of 64 random bits, in two halves of 32. */
export interface Word {
    low: number;
    high: number;
}
/** Words yields random words. */
export interface Words {
    next(): Word;
}
export declare const fair: number;
/** Draws words from the system's generator. Nothing is kept: erase overwrites what was fetched and not used. */
export declare class SystemWords implements Words {
    private readonly pool;
    private at;
    next(): Word;
    erase(): void;
}
/** Counts the bits from .. from+n-1 of a word that are set; from + n is at most 64. */
export declare function count(w: Word, from: number, n: number): number;
/**
 * Flips n coins, 64 lanes at a time: lane i compares random bits with those of coin/2^24, the most significant first, bit
 * i of each word being the lane's, and is heads if they are below. Words are drawn while a lane is undecided and a bit of
 * coin is left that is set.
 */
export declare function flips(words: Words, n: number, coin: number): number;
/** The most trials of one draw. */
export declare const maxTrials: number;
/** Draws from Bin(trials, coin/2^24). */
export declare function binomial(words: Words, trials: number, coin: number): number;
