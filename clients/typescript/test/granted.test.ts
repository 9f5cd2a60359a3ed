// A device in a task with grants, against an issuer that loses answers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BlindRSA, Params } from '@cloudflare/blindrsa-ts'
import * as ed25519 from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import { hex, sha256, text, unhex, utf8 } from '../src/bytes.js'
import { Refused } from '../src/declaration.js'
import { verifies } from '../src/grants.js'
import { Device, MemoryStore, type Issuer, type Transport } from '../src/index.js'
import { signedBytes } from '../src/signed.js'
import { Kind, Signed, Task } from '../src/wire.js'
import { vectors } from './vectors.js'

ed25519.hashes.sha512 = sha512

const grants = vectors<{ private_key: string; issuer_key: string }>('grants')
const issuerKey = unhex(grants.issuer_key)

/** A task of the vectors, with grants, and signed. */
function granted(): { record: Uint8Array; hash: Uint8Array } {
  const { tasks } = vectors<{ tasks: { name: string; task: string; accepted?: object }[] }>('consent')
  const body = Task.decode(unhex(tasks.find((t) => t.name === 'shuffle')!.task))
  const secret = new Uint8Array(32).fill(5)
  body.learnerKey = ed25519.getPublicKey(secret)
  const said = JSON.stringify('pass') + ',"issuer_key":' + JSON.stringify(Buffer.from(issuerKey).toString('base64'))
  body.declaration = utf8(text(body.declaration).replace(/,"(user|schedule)":/, `,"grants":${said},"$1":`))
  body.issuerKey = issuerKey
  const bytes = Task.encode(body)
  return {
    record: Signed.encode({ version: 1, kind: Kind.task, body: bytes, key: body.learnerKey, signature: ed25519.sign(signedBytes(Kind.task, bytes), secret) }),
    hash: sha256(bytes),
  }
}

const task = granted()
const asked: string[] = []
const transport: Transport = {
  record: (name) => {
    asked.push(name)
    return Promise.resolve(name === 'task' ? { data: task.record, sequence: 1 } : null)
  },
  latest: (_, __, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
  attempts: () => Promise.resolve(null),
  publish: () => Promise.reject(new Error('nothing is to be published')),
  place: () => Promise.reject(new Error('no place is to be asked for')),
}
const open = (store: MemoryStore, grant?: Issuer): Promise<Device> =>
  Device.open({ task: 'churn', transport: () => transport, store, pins: { task: hex(task.hash) }, ...(grant && { grant }) })

test('a token is asked for once, of what was kept before, until it is there', async () => {
  const privateKey = await crypto.subtle.importKey('pkcs8', unhex(grants.private_key) as BufferSource, { name: 'RSA-PSS', hash: 'SHA-384' }, true, ['sign'])
  const suite = new BlindRSA({ ...Params['RSABSSA_SHA384_PSS_Deterministic']!, supportsRSARAW: false })
  const store = new MemoryStore()
  const requests: string[] = []
  const answers: (Uint8Array | null | 'garbage')[] = [null, 'garbage']
  const issuer: Issuer = async (request) => {
    assert.equal(hex((await store.grant())!.pending!.request), hex(request), 'what is asked was kept')
    requests.push(hex(request))
    const next = answers.shift()
    if (next === null) return null
    return next === 'garbage' ? new Uint8Array(256).fill(1) : suite.blindSign(privateKey, request.slice(3))
  }
  const device = await open(store, issuer)
  assert.ok(device.agreement.messageBytes > 288)
  for (const until = Date.now() + 60_000; (await store.grant())?.token === undefined && Date.now() < until;) await new Promise((go) => setTimeout(go, 20))
  const { token, pending } = (await store.grant())!
  assert.ok(await verifies(token!, task.hash, issuerKey))
  assert.deepEqual([requests.length, new Set(requests).size, pending], [3, 1, undefined])
  await device.close()
  const again = await open(store, () => Promise.reject(new Error('it has its token')))
  await again.close()
  assert.equal(again.failed, null)
})

test('a person whose token another device has takes no part, and one without an issuer is refused', async () => {
  const device = await open(new MemoryStore(), () => Promise.resolve('refused'))
  const outcome = await device.submit('ann', { index: [0], value: [1], label: '1' }).outcome
  assert.equal(outcome.state, 'refused')
  assert.match(outcome.why!, /token/)
  await device.close()
  await assert.rejects(open(new MemoryStore()), (e) => e instanceof Refused && e.field === 'grants')
  assert.ok(!asked.some((a) => a.startsWith('opens')), String(asked))
})

test('a store that is given another task of the name draws again', async () => {
  const store = new MemoryStore()
  const requests: string[] = []
  const none: Issuer = (request) => {
    requests.push(hex(request))
    return Promise.resolve(null)
  }
  const pending = { input: new Uint8Array(98), inverse: new Uint8Array(256), request: new Uint8Array(259) }
  await store.write({ grant: { task: hex(new Uint8Array(32)), pending, token: new Uint8Array(288) } })
  const device = await open(store, none)
  for (const until = Date.now() + 60_000; requests.length === 0 && Date.now() < until;) await new Promise((go) => setTimeout(go, 20))
  await device.close()
  const kept = (await store.grant())!
  assert.equal(requests[0], hex(kept.pending!.request))
  assert.notEqual(requests[0], hex(pending.request))
  assert.deepEqual([kept.task, kept.token], [hex(task.hash), undefined])
})
