// Ed25519 where the browser has none: in a chunk of its own, for most have it. Node's own is ten times as fast, or more.
import * as ed25519 from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import type { Bytes } from './bytes.js'

ed25519.hashes.sha512 = sha512

type Node = { process?: { getBuiltinModule?: (name: string) => typeof import('node:crypto') } }
const node = (globalThis as Node).process?.getBuiltinModule?.('node:crypto')

/** Whether a signature is one of a message under a key, as crypto/ed25519 of Go has it: RFC 8032, no ZIP 215. */
export function verify(signature: Bytes, message: Bytes, key: Bytes): boolean {
  if (node === undefined) return portably(signature, message, key)
  try {
    const x = btoa(String.fromCharCode(...key)).replaceAll('+', '-').replaceAll('/', '_').replace('=', '')
    return node.verify(null, message, node.createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), signature)
  } catch {
    return false // of what is no point
  }
}

/** As verify, by nothing but JavaScript. */
export function portably(signature: Bytes, message: Bytes, key: Bytes): boolean {
  try {
    return ed25519.verify(signature, message, key, { zip215: false })
  } catch {
    return false
  }
}
