// ML-KEM-768 with X25519 (X-Wing, draft-connolly-cfrg-xwing-kem), of suite 3: in a chunk of its own, for it doubles what a
// page loads. It is put together as the library's own ml_kem768_x25519, which would load another X25519.
import { sha3_256, shake256 } from '@noble/hashes/sha3.js'
import { _ecdhKem, combineKEMS, expandSeedXof } from '@noble/post-quantum/hybrid.js'
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js'
import { concat, utf8, type Bytes } from './bytes.js'
import type { Kem } from './seal.js'
import { x25519 } from './x25519.js'

const xwing = combineKEMS(32, 32, expandSeedXof(shake256),
  (pk: Bytes[], ct: Bytes[], ss: Bytes[]) => sha3_256(concat(ss[0]!, ss[1]!, ct[1]!, pk[1]!, utf8('\\.//^\\'))), ml_kem768, _ecdhKem(x25519))

/** The Kem of suite 3. entropy, for vectors alone, is 32 bytes of ML-KEM and then the ephemeral private key. */
export const hybrid: Kem = {
  id: 0x647a,
  takes(publicKey) {
    if (publicKey.length !== 1216) return false
    for (let i = 0; i < 1152; i += 3) {
      const [a, b, c] = [publicKey[i]!, publicKey[i + 1]!, publicKey[i + 2]!]
      if ((a | ((b & 15) << 8)) >= 3329 || ((b >> 4) | (c << 4)) >= 3329) return false
    }
    return true
  },
  encapsulate(publicKey, entropy) {
    const { cipherText, sharedSecret } = entropy ? xwing.encapsulate(publicKey, entropy) : xwing.encapsulate(publicKey)
    return { encapsulated: cipherText, secret: sharedSecret }
  },
}
