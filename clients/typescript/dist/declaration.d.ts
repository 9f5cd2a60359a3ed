import { type Bytes } from './bytes.js';
/** Refused is thrown for a task or a round that the device takes no part in. It names the field and what would do. */
export declare class Refused extends Error {
    readonly field: string;
    readonly value: unknown;
    readonly wanted: string;
    name: string;
    constructor(field: string, value: unknown, wanted: string);
}
export type Scale = 'raw' | 'unit' | 'symmetric' | 'standard' | 'log';
export type ColumnKind = 'numeric' | 'indicator' | 'categorical' | 'hashed' | 'bucketed' | 'hats' | 'text' | 'onehot-group';
export type Part = 'year' | 'month' | 'day' | 'weekday' | 'hour';
export interface Missing {
    tokens?: string[];
    fill?: number;
    indicator?: boolean;
    word?: string;
}
export interface Column {
    column: string;
    kind: ColumnKind;
    columns?: string[];
    field?: string;
    part?: Part;
    over?: string;
    min?: number;
    max?: number;
    scale?: Scale;
    mean?: number;
    std?: number;
    clip?: number;
    unit?: number;
    vocabulary?: string[];
    unknown?: 'invalid' | 'drop' | 'other';
    buckets?: number;
    words?: number;
    edges?: number[];
    knots?: number[];
    marks?: string[];
    missing?: Missing;
    hidden?: boolean;
}
/** Numbers without names. */
export interface Vector {
    dimension: number;
    kind: 'numeric' | 'indicator';
    min: number;
    max: number;
    scale?: Scale;
    max_nonzeros: number;
    hidden?: boolean;
}
export interface Features {
    vector?: Vector;
    columns?: Column[];
    crosses?: {
        columns: string[];
        number?: string;
        buckets?: number;
    }[];
    polynomial?: {
        columns: string[];
        degree: number;
    };
    fourier?: {
        columns?: string[];
        dimension: number;
        gamma: number;
        seed?: number;
    };
    public?: string;
    scales?: number[];
    precondition?: {
        second_moments: number[];
        damping: number;
    };
}
export interface Label {
    column?: string;
    positive?: string[];
    negative?: string[];
    classes?: string[];
    min?: number;
    max?: number;
    scale?: Scale;
    unit?: number;
    offset?: boolean;
    marks?: string[];
}
export interface Model {
    loss: string;
    set: string;
    radius?: number;
    clip_norm?: number;
    ridge?: number;
    class_weights?: number[];
    smoothness?: number;
    level?: number;
    width?: number;
    score_bound?: number;
    label_noise?: number;
    min?: number;
    max?: number;
    start?: string;
}
export interface Declaration {
    version: number;
    name: string;
    events: {
        format: string;
        max_line: number;
        key?: string;
        columns?: string[];
        header?: boolean;
        separator?: string;
        skip_lines?: number;
    };
    features: Features;
    intercept: number;
    norm_bound: number;
    label: Label;
    model: Model;
    privacy: {
        epsilon: number;
        delta: number;
        trust: string;
        unit?: string;
        honest_fraction: string;
        coin: string;
        max_bits: number;
        profile: string;
        seal: string;
        suite?: number;
    };
    user?: {
        column: string;
        items: number;
        radius?: number;
        wait?: string;
    };
    silo?: unknown;
    schedule: Record<string, unknown> & {
        users: number;
        plan: string;
        interactive?: boolean;
        deadline: string;
        continuous?: string;
    };
    validation?: {
        weight?: number;
        off?: boolean;
        loss_bound?: number;
        [key: string]: unknown;
    };
}
/** Reads a canonical declaration: exactly the bytes that the encoder writes, in which every key is known. */
export declare function parseDeclaration(data: Bytes): Declaration;
