// ML-KEM-768 with X25519 (X-Wing), of suite 3: in a module of its own, for it doubles what a page loads.
import { ml_kem768_x25519 as xwing } from '@noble/post-quantum/hybrid.js'
import type { Kem } from './seal.js'

/** The Kem of suite 3. entropy, for vectors alone, is 32 bytes of ML-KEM and then the ephemeral private key. */
export const hybrid: Kem = {
  id: 0x647a,
  encapsulate(publicKey, entropy) {
    const { cipherText, sharedSecret } = entropy ? xwing.encapsulate(publicKey, entropy) : xwing.encapsulate(publicKey)
    return { encapsulated: cipherText, secret: sharedSecret }
  },
}
