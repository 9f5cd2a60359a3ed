import type { Kem } from './seal.js';
/** The Kem of suite 3. entropy, for vectors alone, is 32 bytes of ML-KEM and then the ephemeral private key. */
export declare const hybrid: Kem;
