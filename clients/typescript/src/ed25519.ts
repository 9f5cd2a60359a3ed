// Ed25519 where the browser has none: in a chunk of its own, for most have it.
import * as ed25519 from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import type { Bytes } from './bytes.js'

ed25519.hashes.sha512 = sha512

/** Whether a signature is one of a message under a key, as crypto/ed25519 of Go has it: RFC 8032, no ZIP 215. */
export function verify(signature: Bytes, message: Bytes, key: Bytes): boolean {
  try {
    return ed25519.verify(signature, message, key, { zip215: false })
  } catch {
    return false // of what is no point
  }
}
