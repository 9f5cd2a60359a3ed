// Grants: one report a person in a task, by a token that an issuer signed without seeing it (docs/reference/grants.md; RFC
// 9578, type 2). In a chunk of its own. What is drawn, blinded and verified is the library's.
import { BlindRSA, Params } from '@cloudflare/blindrsa-ts'
import { bigEndian, concat, equal, random, sha256, unhex, utf8, type Bytes } from './bytes.js'

const head = unhex('30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648016503040202a2' +
  '030201300382010f003082010a0282010100')
const plainHead = unhex('30820122300d06092a864886f70d01010105000382010f003082010a0282010100')
const tail = unhex('0203010001')
const size = 256 // bytes of the modulus

/** The bytes of a token in a report: nonce and signature. */
export const tokenBytes = 32 + size

const type = Uint8Array.of(0, 2)
const issuerName = utf8('grants.panlearn.invalid')

/** What is kept of a request until its answer came. The inverse unblinds it; who has both links the answer to the request. */
export interface Pending {
  input: Bytes // what is to be signed
  inverse: Bytes
  request: Bytes // the same is sent again
}

/** Whether bytes are an issuer's key: 2,048 bits, RSASSA-PSS with SHA-384. */
export const isIssuerKey = (key: Bytes): boolean =>
  key.length === head.length + size + tail.length && equal(key.slice(0, head.length), head) && equal(key.slice(-tail.length), tail) &&
  key[head.length]! >= 128 && (key[head.length + size - 1]! & 1) === 1

const suite = new BlindRSA({ ...Params['RSABSSA_SHA384_PSS_Deterministic']!, supportsRSARAW: false })

/** The key as the library takes it. */
const imported = (key: Bytes): Promise<CryptoKey> =>
  crypto.subtle.importKey('spki', concat(plainHead, key.slice(head.length)) as BufferSource, { name: 'RSA-PSS', hash: 'SHA-384' }, true, ['verify'])

/** What is signed for a nonce: the token input of RFC 9577, whose challenge is the same for everybody in a task. */
export function tokenInput(nonce: Bytes, taskHash: Bytes, key: Bytes): Bytes {
  const challenge = concat(type, bigEndian(issuerName.length, 2), issuerName, Uint8Array.of(32), taskHash, bigEndian(0, 2))
  return concat(type, nonce, sha256(challenge), sha256(key))
}

/** Draws a token and blinds it. It has to be kept, durably, before it is sent. */
export async function ask(taskHash: Bytes, key: Bytes): Promise<Pending> {
  const input = tokenInput(random(32), taskHash, key)
  const { blindedMsg, inv } = await suite.blind(await imported(key), input)
  return { input, inverse: inv, request: concat(type, sha256(key).slice(-1), blindedMsg) }
}

/** Takes off the blinding, verifies, and returns the token: nonce and signature. Throws for an answer that is none. */
export async function finish(pending: Pending, answer: Bytes, key: Bytes): Promise<Bytes> {
  const signature = await suite.finalize(await imported(key), pending.input, answer, pending.inverse)
  return concat(pending.input.slice(2, 34), signature)
}

/** Whether a token is one of the task under the issuer's key. */
export async function verifies(token: Bytes, taskHash: Bytes, key: Bytes): Promise<boolean> {
  if (token.length !== tokenBytes) return false
  return suite.verify(await imported(key), token.slice(32), tokenInput(token.slice(0, 32), taskHash, key))
}
