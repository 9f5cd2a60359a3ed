import type { Declaration } from './declaration.js';
/** A loss, with the weights of its classes. */
export declare class Loss {
    private readonly d;
    readonly classes: number;
    readonly many: boolean;
    private readonly score;
    private readonly weights;
    constructor(d: Declaration, classes: number);
    /** The number of parameters for rows of so many values. */
    parameters(dim: number): number;
    /** Throws unless a label is one of the loss. */
    get isSmooth(): boolean;
    private weight;
    scores(theta: readonly number[], x: readonly number[]): number[];
    /** The loss of a point on a row; c > 0 smooths it. */
    value(theta: readonly number[], x: readonly number[], y: number, c?: number): number;
    /** The gradient at a point; c > 0 smooths the loss in its score. */
    gradient(theta: readonly number[], x: readonly number[], y: number, c?: number): number[];
    /** The gradient of the Moreau envelope with parameter b, of a loss of one score. */
    envelope(theta: readonly number[], x: readonly number[], y: number, b: number): number[];
    /** Whether the class that the scores say is that of the label. */
    correct(theta: readonly number[], x: readonly number[], y: number): boolean;
}
