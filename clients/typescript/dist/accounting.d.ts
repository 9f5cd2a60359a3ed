/** The largest epsilon that is searched for; beyond it nothing is promised. */
export declare const maxEpsilon = 60;
/** What one adversary sees of one target, whose report is hidden by so many trials in a coordinate, in some rounds. */
export interface View {
    trials: bigint;
    coin: number;
    levels: number;
    dim: number;
    rounds: number;
    units: number;
}
/** Bounds the delta of the Gaussian mechanism from above (Balle and Wang 2018, Theorem 8). */
export declare function gaussianDelta(eps: number, mu: number): number;
/** An exact fraction in (0, 1]: the share of a planned cohort whose noise is relied upon. */
export declare class Fraction {
    private readonly num;
    private readonly den;
    private constructor();
    /** Reads a decimal or a quotient of at most 18 digits each; throws for anything else. */
    static parse(text: string): Fraction;
    /** The whole part of this share of n. */
    floor(n: bigint): bigint;
    less(other: Fraction): boolean;
    equals(other: Fraction): boolean;
}
/** What is public about the releases of one phase. */
export interface Release {
    trust: number;
    users: bigint;
    dim: number;
    levels: number;
    trials: bigint;
    coin: number;
    floorTrials: bigint;
    honest: Fraction;
    rounds: number;
    units: number;
}
/**
 * Returns what up to so many participations of one user cost at delta, an upper bound; Infinity beyond maxEpsilon. Each
 * of them is in all releases of one of the lists, and in all rounds of each; which may depend on what was seen before.
 * An intruder looks into one round of all. Where the bound lies above limit by the last digits of the search alone, the
 * limit is returned, at which delta was evaluated to be met.
 */
export declare function epsilon(times: number, of: Release[][], delta: number, limit?: number): number;
