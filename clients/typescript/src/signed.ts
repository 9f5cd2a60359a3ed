// Envelopes of learner and stage (stream/seal): Ed25519 over "panlearn/v1/", the kind's word, a zero byte and the body.
import { concat, equal, sha256, utf8, type Bytes } from './bytes.js'
import { check, version } from './check.js'
import { Kind, Signed, bodies, type Bodied, type BodyOf, type Read } from './wire.js'

const words = new Map<number, string>(Object.entries(Kind).map(([word, kind]) => [kind, word]))

/** An envelope that was verified. */
export interface Verified<K extends Read> {
  body: BodyOf<K>
  key: Bytes // that signed it
  bytes: Bytes // of the body
  hash: Bytes // SHA-256 of the body: of a Task the task hash, of a Round the manifest hash
}

/** Unverified is thrown for an envelope that is not to be believed. It never shows what the envelope holds. */
export class Unverified extends Error {
  override name = 'Unverified'
}

/** Whether this is Node, whose programs are not loaded by each visitor. */
export const isNode = (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined

/** As ed25519.ts, by what the browser has; null where it has no Ed25519, as in a page that is not served securely. */
export async function natively(signature: Bytes, message: Bytes, key: Bytes): Promise<boolean | null> {
  const subtle = crypto.subtle as SubtleCrypto | undefined
  const k = await subtle?.importKey('raw', key as BufferSource, 'Ed25519', false, ['verify']).catch(() => null)
  return k ? subtle!.verify('Ed25519', k, signature as BufferSource, message as BufferSource) : null
}

async function holds(signature: Bytes, message: Bytes, key: Bytes): Promise<boolean> {
  // Node has it as an experiment that warns.
  return (isNode ? null : await natively(signature, message, key)) ?? (await import('./ed25519.js')).verify(signature, message, key)
}

/**
 * Verifies an envelope: canonical, of the kind and under the key that are expected, with a valid signature over a body
 * that is well formed. Without a pinned key, as of a task that is read for the first time, the caller compares the key
 * that is returned with the one that the body names.
 */
export async function verify<K extends Read>(kind: K, pinned: Bytes | null, data: Bytes): Promise<Verified<K>> {
  const envelope = opened(kind, pinned, data)
  // A chunk that cannot be loaded says nothing of the envelope.
  const valid = await holds(envelope.signature, signedBytes(kind, envelope.body), envelope.key)
  try {
    if (!valid) throw new Error('signature')
    const body = bodies[kind].decode(envelope.body) as unknown as BodyOf<K>
    check(kind, body)
    return { body, key: envelope.key, bytes: envelope.body, hash: sha256(envelope.body) }
  } catch (e) {
    throw new Unverified((e as Error).message)
  }
}

/** What is signed of a body. */
export const signedBytes = (kind: Kind, body: Bytes): Bytes => concat(utf8(`panlearn/v1/${words.get(kind)}\0`), body)

/** Reads an envelope, whose signature is not looked at. */
function opened(kind: Kind, pinned: Bytes | null, data: Bytes): Bodied<typeof Signed> {
  try {
    const envelope = Signed.decode(data)
    if (envelope.version !== version) throw new Error(`wire version ${envelope.version}`)
    if (envelope.kind !== kind) throw new Error(`kind ${envelope.kind}, not ${kind}`)
    if (envelope.key.length !== 32 || envelope.signature.length !== 64) throw new Error('length of key or signature')
    if (pinned !== null && !equal(envelope.key, pinned)) throw new Error('another key')
    return envelope
  } catch (e) {
    throw new Unverified((e as Error).message)
  }
}
