import { type Bytes } from './bytes.js';
export type Verdict = {
    verdict: 'granted';
    users: number;
    ms: number;
} | {
    verdict: 'wait';
    ms: number;
} | {
    verdict: 'over';
};
/** Encodes a request: 22 bytes, whatever it is about. */
export declare const placeRequest: (id: Bytes, users: number, charged: boolean) => Bytes;
/** Decodes the answer to a request with this id; null for anything else. */
export declare function parsePlace(b: Bytes, id: Bytes): Verdict | null;
