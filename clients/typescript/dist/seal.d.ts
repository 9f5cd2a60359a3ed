import { type Bytes } from './bytes.js';
/** A Kem makes a secret that the holder of a public key alone can make as well. */
export interface Kem {
    id: number;
    encapsulate(publicKey: Bytes, entropy?: Bytes): {
        encapsulated: Bytes;
        secret: Bytes;
    };
}
/** DHKEM(X25519, HKDF-SHA256). entropy is the ephemeral private key; it is for vectors alone. */
export declare const dhkem: Kem;
/** What a report is sealed to: it opens under exactly this and nothing else. */
export interface Attempt {
    suite: number;
    manifestHash: Bytes;
    attempt: bigint;
    stageKey: Bytes;
    publicKey: Bytes;
}
/** The HPKE info of a report. */
export declare const info: (a: Attempt) => Bytes;
/** The HPKE associated data: the id of one user, or the number of users and their ids. */
export declare const associated: (ids: readonly Bytes[]) => Bytes;
/**
 * Seals the packed counts of users to an attempt and returns the canonical Report. hybrid is the Kem of suite 3, which
 * who needs X25519 alone does not load.
 */
export declare function seal(a: Attempt, taskHash: Bytes, ids: Bytes[], plaintext: Bytes, hybrid?: Kem, entropy?: Bytes): Bytes;
/** The message id that all sends of one message to one attempt share: of the first user's id, and the attempt. */
export declare const messageId: (reportId: Bytes, attempt: bigint, openHash: Bytes) => Bytes;
