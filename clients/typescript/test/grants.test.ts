// Tokens: the vectors of the issuer and the stage, which are written in Go, and RFC 9474's.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { BlindRSA, Params } from '@cloudflare/blindrsa-ts'
import { concat, hex, unhex } from '../src/bytes.js'
import { ask, finish, isIssuerKey, tokenInput, verifies } from '../src/grants.js'
import { fromIssuer } from '../src/relay.js'
import { vectors } from './vectors.js'

const v = vectors<{
  issuer_key: string
  task_hash: string
  issued: { nonce: string; salt: string; blind: string; blind_inverse: string; token_input: string; request: string; response: string; token: string }[]
  must_refuse: { name: string; token: string }[]
  report: { packed_counts: string[]; tokens: string[]; plaintext: string }
}>('grants')
const [key, task] = [unhex(v.issuer_key), unhex(v.task_hash)]

/** Has the system's generator give these bytes, in this order. */
async function drawn<T>(bytes: Uint8Array[], f: () => Promise<T>): Promise<T> {
  const real = crypto.getRandomValues.bind(crypto)
  Object.defineProperty(crypto, 'getRandomValues', {
    configurable: true, value: (into: Uint8Array) => {
      const next = bytes.shift()
      assert.equal(next?.length, into.length, 'draws other bytes than the vector has')
      into.set(next!)
      return into
    },
  })
  try {
    return await f()
  } finally {
    Object.defineProperty(crypto, 'getRandomValues', { configurable: true, value: real })
  }
}

test('requests and tokens are those of the vectors', async () => {
  assert.ok(isIssuerKey(key))
  for (const t of v.issued) {
    assert.equal(hex(tokenInput(unhex(t.nonce), task, key)), t.token_input)
    const left = [unhex(t.nonce), unhex(t.salt), unhex(t.blind)]
    const pending = await drawn(left, () => ask(task, key))
    assert.equal(left.length, 0)
    assert.deepEqual([hex(pending.input), hex(pending.inverse), hex(pending.request)], [t.token_input, t.blind_inverse, t.request])
    assert.equal(hex(await finish(pending, unhex(t.response), key)), t.token)
    assert.ok(await verifies(unhex(t.token), task, key))
    await assert.rejects(finish(pending, unhex(v.issued.find((o) => o !== t)!.response), key))
  }
  assert.equal(hex(concat(...v.report.packed_counts.map(unhex), ...v.report.tokens.map(unhex))), v.report.plaintext)
})

test('what is no token of the task is refused, and what is no key', async () => {
  for (const r of v.must_refuse) assert.equal(await verifies(unhex(r.token), task, key).catch(() => false), false, r.name)
  for (const [at, to] of [[0, 0x31], [40, 0], [80, 1], [81, 0x7f], [336, key[336]! ^ 1], [341, 3]] as const) {
    assert.equal(isIssuerKey(Uint8Array.from(key, (b, i) => (i === at ? to : b))), false, `byte ${at}`)
  }
  assert.equal(isIssuerKey(key.slice(1)), false)
})

// The vector of RFC 9474 with a salt and no prefix, whose key is one of 4,096 bits: the library under the device.
test('the library signs and verifies as RFC 9474', async () => {
  const of = JSON.parse(readFileSync(new URL('../../test/rfc9474.json', import.meta.url), 'utf8')) as Record<string, string>[]
  assert.equal(of.length, 4)
  for (const r of of) {
    const name = r['name']!.replaceAll('-', '_')
    const suite = new BlindRSA({ ...Params[name]!, supportsRSARAW: false })
    const base64 = (digits: string): string => Buffer.from(digits.replace(/^0x/, ''), 'hex').toString('base64url')
    const publicKey = await crypto.subtle.importKey('jwk', { kty: 'RSA', n: base64(r['n']!), e: base64(r['e']!), ext: true, alg: 'PS384' },
      { name: 'RSA-PSS', hash: 'SHA-384' }, true, ['verify'])
    const bytes = (k: string): Uint8Array => unhex((r[k] ?? '').replace(/^0x/, ''))
    assert.equal(hex(await suite.finalize(publicKey, bytes('input_msg'), bytes('blind_sig'), bytes('inv'))), hex(bytes('sig')), name)
    assert.ok(await suite.verify(publicKey, bytes('sig'), bytes('input_msg')))
  }
})

test('the issuer is asked with the login of a person, and only 409 is a refusal', async () => {
  const asked: RequestInit[] = []
  let status = 200
  const issuer = fromIssuer('https://app.example/grant', {
    fetch: ((_: string, init: RequestInit) => {
      asked.push(init)
      return Promise.resolve(new Response(new Uint8Array(256) as BodyInit, { status }))
    }) as typeof fetch,
  })
  assert.equal((await issuer(new Uint8Array(259)) as Uint8Array).length, 256)
  for (status of [401, 403, 409, 429, 503]) assert.equal(await issuer(new Uint8Array(259)), status === 409 ? 'refused' : null)
  for (const init of asked) {
    assert.equal(init.credentials, 'same-origin')
    assert.deepEqual(init.headers, { 'Content-Type': 'application/private-token-request' })
  }
})
