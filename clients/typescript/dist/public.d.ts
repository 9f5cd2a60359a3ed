import { type Bytes } from './bytes.js';
import { type Vector } from './declaration.js';
import type { Event, Input } from './features.js';
interface Matrix {
    rows: number;
    cols: number;
    bits: 8 | 16;
    scale: number[];
    values: string;
}
interface Tree {
    output?: number;
    feature: number[];
    threshold: number[];
    left: number[];
    right: number[];
    leaf?: number[];
}
interface Block {
    name?: string;
    outputs: number;
    range?: number;
    bias?: number[];
    weights?: Matrix;
    trees?: Tree[];
    forest?: {
        trees: Tree[];
        leaves: Matrix;
    };
}
/** A public model as its file has it. */
export interface PublicModel {
    version: number;
    sample: {
        rows: number;
        leaf: number;
    };
    inputs: string[];
    blocks?: Block[];
    offset?: Block;
}
/** Reads the file of a Task, whose SHA-256 the declaration has. */
export declare function parsePublic(data: Bytes, declared: string): PublicModel;
/** A public model made ready for the columns of a task. */
export declare class PublicMap {
    private readonly inputs;
    private readonly vector?;
    readonly width: number;
    private readonly blocks;
    private readonly offset;
    constructor(model: PublicModel, inputs: readonly Input[], vector?: Vector | undefined);
    /** The outputs for an event whose columns have these values, or whose vector is scaled to these. */
    outputs(event: Event, values: ReadonlyMap<Input, number>, vector: readonly number[]): {
        coordinates: number[];
        offset: number;
    };
}
export {};
