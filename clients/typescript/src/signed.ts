// Envelopes of learner and stage (stream/seal): Ed25519 over "panlearn/v1/", the kind's word, a zero byte and the body.
import * as ed25519 from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import { concat, equal, sha256, utf8, type Bytes } from './bytes.js'
import { check, version } from './check.js'
import { Kind, Signed, bodies, type BodyOf } from './wire.js'

ed25519.hashes.sha512 = sha512

const words = new Map<number, string>(Object.entries(Kind).map(([word, kind]) => [kind, word]))

/** An envelope that was verified. */
export interface Verified<K extends Kind> {
  body: BodyOf<K>
  key: Bytes // that signed it
  bytes: Bytes // of the body
  hash: Bytes // SHA-256 of the body: of a Task the task hash, of a Round the manifest hash
}

/** Unverified is thrown for an envelope that is not to be believed. It never shows what the envelope holds. */
export class Unverified extends Error {
  override name = 'Unverified'
}

/**
 * Verifies an envelope: canonical, of the kind and under the key that are expected, with a valid signature over a body
 * that is well formed. Without a pinned key, as of a task that is read for the first time, the caller compares the key
 * that is returned with the one that the body names.
 */
export function verify<K extends Kind>(kind: K, pinned: Bytes | null, data: Bytes): Verified<K> {
  try {
    const envelope = Signed.decode(data)
    if (envelope.version !== version) throw new Error(`wire version ${envelope.version}`)
    if (envelope.kind !== kind) throw new Error(`kind ${envelope.kind}, not ${kind}`)
    if (envelope.key.length !== 32 || envelope.signature.length !== 64) throw new Error('length of key or signature')
    if (pinned !== null && !equal(envelope.key, pinned)) throw new Error('another key')
    const signed = concat(utf8(`panlearn/v1/${words.get(kind)}\0`), envelope.body)
    // As crypto/ed25519 of Go: RFC 8032, without the cofactor.
    if (!ed25519.verify(envelope.signature, signed, envelope.key, { zip215: false })) throw new Error('signature')
    const body = bodies[kind].decode(envelope.body) as unknown as BodyOf<K>
    check(kind, body)
    if (kind === Kind.stage && !equal((body as unknown as BodyOf<typeof Kind.stage>).key, envelope.key)) {
      throw new Error('a stage signs its identity with its own key')
    }
    return { body, key: envelope.key, bytes: envelope.body, hash: sha256(envelope.body) }
  } catch (e) {
    throw new Unverified((e as Error).message)
  }
}
