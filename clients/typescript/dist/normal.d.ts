/** Q(z) = Pr[Z >= z]. */
export declare const upper: (z: number) => number;
/** The logarithm of Q(z), where Q itself is 0 in doubles too. */
export declare const logUpper: (z: number) => number;
export declare const density: (z: number) => number;
/** The z with Q(z) = p, for p of at most 1/2: algorithm AS 241 of M. J. Wichura, and one step of Halley's. */
export declare function quantile(p: number): number;
