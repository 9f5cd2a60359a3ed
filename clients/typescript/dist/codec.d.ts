import { type Bytes } from './bytes.js';
type Wire = 0 | 1 | 2;
/** A Field is one field of a message: its number and how its value is encoded. */
export interface Field<T> {
    number: number;
    wire: Wire;
    empty: () => T;
    isEmpty: (value: T) => boolean;
    put: (value: T) => Bytes[];
    take: (data: Bytes | bigint, before: T) => T;
}
/** A field of at most 32 bits, and an enumeration. */
export declare const u32: (number: number) => Field<number>;
export declare const u64: (number: number) => Field<bigint>;
/** A signed field of 64 bits, not in zigzag. */
export declare const i64: (number: number) => Field<bigint>;
export declare const bool: (number: number) => Field<boolean>;
export declare const f64: (number: number) => Field<number>;
export declare const bytes: (number: number) => Field<Bytes>;
export declare const str: (number: number) => Field<string>;
export declare const f64s: (number: number) => Field<number[]>;
export declare const u64s: (number: number) => Field<bigint[]>;
export declare const bytesList: (number: number) => Field<Bytes[]>;
/** Another message, undefined where it is absent. */
export declare const message: <S extends Schema>(number: number, of: Message<S>) => Field<Body<S> | undefined>;
export declare const messages: <S extends Schema>(number: number, of: Message<S>) => Field<Body<S>[]>;
export type Schema = Record<string, Field<any>>;
export type Body<S extends Schema> = {
    [K in keyof S]: S[K] extends Field<infer T> ? T : never;
};
/** A Message encodes and decodes one kind of message. Its fields are in ascending order of their numbers. */
export declare class Message<S extends Schema> {
    readonly name: string;
    private readonly fields;
    private readonly byNumber;
    constructor(name: string, schema: S);
    encode(value: Body<S>): Bytes;
    /** Decodes canonical bytes, and throws where they are not. */
    decode(data: Bytes): Body<S>;
    /** Decodes what may not be canonical: decode compares the whole. */
    read(data: Bytes): Body<S>;
}
export {};
