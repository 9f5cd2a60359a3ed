import type { Declaration } from './declaration.js';
import { type Example, type FeatureMap } from './features.js';
import { Loss } from './loss.js';
import { type Bodied, type Frame } from './wire.js';
export type FrameBody = Bodied<typeof Frame>;
/** The scores that follow a gradient: the loss, and of classes whether the prediction was correct. */
export interface Scorecard {
    norm: number;
    low: number;
    high: number;
    correctness: boolean;
    labelNoise: number;
}
export declare const isPractical: (d: Declaration) => boolean;
/** What one row contributes to a report, before it is encoded. */
export declare class Reporter {
    readonly map: FeatureMap;
    readonly loss: Loss;
    readonly card: Scorecard | null;
    private readonly indicators;
    private readonly numbers;
    constructor(map: FeatureMap);
    private scorecard;
    /** The largest loss of a model of zeros, of classes three times as much, rounded up to two digits. */
    private lossBound;
    /** The norm that the gradient of a row is clipped to. */
    clipNorm(): number;
    /** The share of the clip norm to which the mean over a person's rows is clipped; 1 where rows are protected. */
    userRadius(): number;
    private get centred();
    private get matrixable();
    private labelDim;
    /** The number of coordinates of a report, scores included. */
    dim(statistic: number): number;
    /** The number of scores of a report. */
    scores(statistic: number): number;
    /** The norm of a report, scores included: the clip norm of its mechanism. */
    norm(statistic: number): number;
    private momentsNorm;
    /** Throws unless an honest learner may announce the frame. */
    checkFrame(f: FrameBody, matrix: boolean): void;
    /** The statistic of a row, with its scores, clipped as the mechanism wants; zeros for an event that is none. */
    row(statistic: number, example: Example | null, point: readonly number[], frame: FrameBody | undefined, smoothing?: number): number[];
    private blankLabel;
    private written;
    private gradient;
    /** The scores of a point on a row: of the loss itself, whatever the frame smooths. */
    private scored;
    /** Features as declared, the squares of those that are no indicators, and the label. */
    private moments;
    /** A number in its range as [-1, 1], a count as a share of the largest. */
    private unitLabel;
}
/** A row in the coordinates of a frame. */
export declare function inFrame(f: FrameBody, x: readonly number[]): number[];
