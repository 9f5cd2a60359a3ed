// X25519 with the constants of RFC 7748, section 5. The library's own instance brings the Edwards curve along, which doubles
// what a page loads.
import { pow } from '@noble/curves/abstract/modular.js'
import { montgomery } from '@noble/curves/abstract/montgomery.js'
import type { Bytes } from './bytes.js'

const P = 2n ** 255n - 19n
export const x25519 = /* @__PURE__ */ montgomery({
  P, type: 'x25519', powPminus2: (x: bigint) => pow(x, P - 2n, P),
  adjustScalarBytes: (b: Bytes) => {
    b[0]! &= 248
    b[31]! &= 127
    b[31]! |= 64
    return b
  },
})
