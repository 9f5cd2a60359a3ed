// Bytes: small functions that the other modules share.
import { sha256 as sha } from '@noble/hashes/sha2.js'

export type Bytes = Uint8Array

export function sha256(data: Bytes): Bytes {
  return sha(data)
}

/** Encodes text in UTF-8. */
export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text)
}

/** Decodes UTF-8; throws where it is none. A byte order mark is a character like any other. */
export function text(data: Bytes): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data)
}

export function hex(data: Bytes): string {
  return Array.from(data, (b) => b.toString(16).padStart(2, '0')).join('')
}

/** Decodes hexadecimal digits; throws where it is given anything else. */
export function unhex(digits: string): Bytes {
  if (!/^([0-9a-fA-F]{2})*$/.test(digits)) throw new Error('want an even number of hexadecimal digits')
  return Uint8Array.from(digits.match(/../g) ?? [], (d) => parseInt(d, 16))
}

export function concat(...parts: readonly Bytes[]): Bytes {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0))
  let at = 0
  for (const p of parts) {
    out.set(p, at)
    at += p.length
  }
  return out
}

/** Encodes a whole number in so many bytes, the most significant first. */
export function bigEndian(n: number | bigint, size: number): Bytes {
  const out = new Uint8Array(size)
  let rest = BigInt(n)
  for (let i = size - 1; i >= 0; i--) {
    out[i] = Number(rest & 255n)
    rest >>= 8n
  }
  return out
}

/** Compares in a time that depends on the lengths alone. */
export function equal(a: Bytes, b: Bytes): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!
  return difference === 0
}

/** Draws so many bytes from the system's generator. */
export function random(size: number): Bytes {
  const out = new Uint8Array(size)
  for (let at = 0; at < size; at += 65536) crypto.getRandomValues(out.subarray(at, at + 65536)) // its limit of one call
  return out
}
