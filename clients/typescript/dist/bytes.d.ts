export type Bytes = Uint8Array;
export declare function sha256(data: Bytes): Bytes;
/** Encodes text in UTF-8. */
export declare function utf8(text: string): Bytes;
/** Decodes UTF-8; throws where it is none. A byte order mark is a character like any other. */
export declare function text(data: Bytes): string;
export declare function hex(data: Bytes): string;
/** Decodes hexadecimal digits; throws where it is given anything else. */
export declare function unhex(digits: string): Bytes;
export declare function concat(...parts: readonly Bytes[]): Bytes;
/** Encodes a whole number in so many bytes, the most significant first. */
export declare function bigEndian(n: number | bigint, size: number): Bytes;
/** Compares in a time that depends on the lengths alone. */
export declare function equal(a: Bytes, b: Bytes): boolean;
/** Draws so many bytes from the system's generator. */
export declare function random(size: number): Bytes;
