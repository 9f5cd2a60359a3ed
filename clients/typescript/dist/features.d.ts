import type { Column, Declaration } from './declaration.js';
import { type PublicModel } from './public.js';
/** An event: the values of its columns and of its label, by their names. */
export type Event = Record<string, unknown>;
/** A vector and a label, as the loss sees it. */
export interface Example {
    x: number[];
    y: number;
}
/** Unfit is thrown for an event that is none of the task's: it is reported as the zero vector. */
export declare class Unfit extends Error {
    name: string;
}
/** The text of a value, as a csv file has it; of what is missing the empty text. */
export declare function fieldText(value: unknown): string;
/** Reads a number as Go does; NaN is one. */
export declare function parseNumber(s: string): number;
/** The map of a number to its coordinate. */
declare class Affine {
    private readonly c;
    constructor(c: Pick<Column, 'kind' | 'min' | 'max' | 'scale' | 'mean' | 'std' | 'clip' | 'unit'>);
    apply(x: number): number;
    /** The largest magnitude of a coordinate. */
    get bound(): number;
}
/** One column: where it is read from, and what becomes of it. */
export declare class Input {
    readonly c: Column;
    readonly first: number;
    readonly affine: Affine;
    private readonly seed;
    private readonly index;
    private readonly tokens;
    private readonly numbers;
    constructor(c: Column, first: number);
    get isNumber(): boolean;
    /** The number of positions, of hats and texts of coordinates, and 1 of a number. */
    get positions(): number;
    private isMissing;
    private readNumber;
    /** The number before the scale, null where it is missing. */
    quantity(event: Event): number | null;
    /** The value of the column: a scaled number, a position, or a place among knots; and whether it is missing. */
    value(event: Event): {
        value: number;
        missing: boolean;
    };
    private word;
    private member;
    /** x between the outer knots, on the scale of the knots: i + (x - t_i)/(t_(i+1) - t_i). */
    private place;
    /** The buckets that the words of a text fall into, each once. */
    buckets(event: Event): number[];
}
/** Scales a vector down to a norm. */
export declare function clip(x: number[], most: number): void;
/** The norm of a vector, which squares that overflow do not spoil. */
export declare function normOf(x: readonly number[]): number;
export type LabelKind = 'two' | 'classes' | 'numbers' | 'counts';
/** The kind of label that a loss has; throws for a loss that this device does not know. */
export declare function labelKind(loss: string): LabelKind;
/** Turns events into the vectors of a task. */
export declare class FeatureMap {
    readonly d: Declaration;
    readonly inputs: Input[];
    readonly dim: number;
    readonly features: number;
    readonly longest: number;
    readonly kind: LabelKind;
    readonly classes: number;
    readonly publicModel: PublicModel | null;
    private readonly crosses;
    private readonly products;
    private readonly fourier;
    private readonly fourierInputs;
    private readonly public;
    private readonly scales;
    private readonly labels;
    private readonly numbers;
    private readonly vector;
    constructor(d: Declaration, publicFile?: PublicModel);
    /** The range of labels, as the loss sees numbers and counts. */
    labelRange(): [number, number];
    /** The largest norm of the features that the declaration allows, the intercept left out. */
    private declaredBound;
    /** Which coordinates, the intercept left out, are 0 or 1 in every event: their squares are themselves. */
    indicators(): boolean[];
    /** The coordinates of the columns and of the vector, which come first. */
    private get own();
    /** The scaled values of a vector: {value: [...]}, or {index: [...], value: [...]} with the places of those that are not 0. */
    private vectorOf;
    /** The label of an event, before an offset. */
    private label;
    /** Maps an event; throws Unfit for one that is none of the task's. */
    map(event: Event): Example;
    /** A number as the loss sees it. */
    private seen;
}
export {};
