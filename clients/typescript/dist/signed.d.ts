import { type Bytes } from './bytes.js';
import { Kind, type BodyOf } from './wire.js';
/** An envelope that was verified. */
export interface Verified<K extends Kind> {
    body: BodyOf<K>;
    key: Bytes;
    bytes: Bytes;
    hash: Bytes;
}
/** Unverified is thrown for an envelope that is not to be believed. It never shows what the envelope holds. */
export declare class Unverified extends Error {
    name: string;
}
/**
 * Verifies an envelope: canonical, of the kind and under the key that are expected, with a valid signature over a body
 * that is well formed. Without a pinned key, as of a task that is read for the first time, the caller compares the key
 * that is returned with the one that the body names.
 */
export declare function verify<K extends Kind>(kind: K, pinned: Bytes | null, data: Bytes): Verified<K>;
