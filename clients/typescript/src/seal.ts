// Reports sealed to the key of one attempt: HPKE (RFC 9180), base mode, one message, HKDF-SHA256, ChaCha20-Poly1305.
import { chacha20poly1305 } from '@noble/ciphers/chacha.js'
import { expand, extract } from '@noble/hashes/hkdf.js'
import { sha256 as sha } from '@noble/hashes/sha2.js'
import { bigEndian, concat, random, sha256, utf8, type Bytes } from './bytes.js'
import { version } from './check.js'
import { Report, Suite } from './wire.js'
import { x25519 } from './x25519.js'

/** A Kem makes a secret that the holder of a public key alone can make as well. */
export interface Kem {
  id: number // of HPKE
  /** Whether bytes are a public key of it. */
  takes(publicKey: Bytes): boolean
  encapsulate(publicKey: Bytes, entropy?: Bytes): { encapsulated: Bytes; secret: Bytes }
}

const none = new Uint8Array()

const labeledExtract = (suite: Bytes, salt: Bytes, label: string, ikm: Bytes): Bytes =>
  extract(sha, concat(utf8('HPKE-v1'), suite, utf8(label), ikm), salt)
const labeledExpand = (suite: Bytes, prk: Bytes, label: string, info: Bytes, size: number): Bytes =>
  expand(sha, prk, concat(bigEndian(size, 2), utf8('HPKE-v1'), suite, utf8(label), info), size)

/** DHKEM(X25519, HKDF-SHA256). entropy is the ephemeral private key; it is for vectors alone. */
export const dhkem: Kem = {
  id: 0x20,
  takes: (publicKey) => publicKey.length === 32,
  encapsulate(publicKey, entropy = random(32)) {
    const encapsulated = x25519.getPublicKey(entropy)
    const suite = concat(utf8('KEM'), bigEndian(0x20, 2))
    const shared = x25519.getSharedSecret(entropy, publicKey) // throws for a key of small order
    const prk = labeledExtract(suite, none, 'eae_prk', shared)
    return { encapsulated, secret: labeledExpand(suite, prk, 'shared_secret', concat(encapsulated, publicKey), 32) }
  },
}

/** What a report is sealed to: it opens under exactly this and nothing else. */
export interface Attempt {
  suite: number
  manifestHash: Bytes
  attempt: bigint
  stageKey: Bytes
  publicKey: Bytes // fresh of each attempt
}

/** The HPKE info of a report. */
export const info = (a: Attempt): Bytes =>
  concat(utf8('panlearn/v1/report\0'), a.manifestHash, bigEndian(a.attempt, 8), a.stageKey, a.publicKey)

/** The HPKE associated data: the id of one user, or the number of users and their ids. */
export const associated = (ids: readonly Bytes[]): Bytes =>
  ids.length === 1 ? ids[0]! : concat(bigEndian(ids.length, 4), ...ids)

function encrypt(kem: Kem, a: Attempt, aad: Bytes, plaintext: Bytes, entropy?: Bytes): { encapsulated: Bytes; ciphertext: Bytes } {
  const { encapsulated, secret } = kem.encapsulate(a.publicKey, entropy)
  const suite = concat(utf8('HPKE'), bigEndian(kem.id, 2), bigEndian(1, 2), bigEndian(3, 2))
  const context = concat(Uint8Array.of(0), labeledExtract(suite, none, 'psk_id_hash', none),
    labeledExtract(suite, none, 'info_hash', info(a)))
  const prk = labeledExtract(suite, secret, 'secret', none)
  const key = labeledExpand(suite, prk, 'key', context, 32)
  const nonce = labeledExpand(suite, prk, 'base_nonce', context, 12)
  return { encapsulated, ciphertext: chacha20poly1305(key, nonce, aad).encrypt(plaintext) }
}

/**
 * Seals the packed counts of users to an attempt by the key encapsulation of its suite, and returns the canonical Report.
 * Throws for a public key that nothing can be sealed to.
 */
export function seal(a: Attempt, taskHash: Bytes, ids: Bytes[], plaintext: Bytes, kem: Kem | undefined, entropy?: Bytes): Bytes {
  if (a.suite === Suite.none) {
    return Report.encode({ version, taskHash, ids, encapsulated: none, ciphertext: plaintext })
  }
  if (kem === undefined) throw new Error(`suite ${a.suite}: its key encapsulation is not loaded`)
  return Report.encode({ version, taskHash, ids, ...encrypt(kem, a, associated(ids), plaintext, entropy) })
}

/** The message id that all sends of one message to one attempt share: of the first user's id, and the attempt. */
export const messageId = (reportId: Bytes, attempt: bigint, openHash: Bytes): Bytes =>
  sha256(concat(utf8('panlearn message id\0'), reportId, bigEndian(attempt, 8), openHash)).slice(0, 16)
