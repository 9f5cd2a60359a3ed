import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concat, hex, unhex } from '../src/bytes.js'
import type { Declaration } from '../src/declaration.js'
import { portably, verify as chunk } from '../src/ed25519.js'
import { load, kemOf } from '../src/parts.js'
import { readClose, readEnd, readOpen, readRound, type Of } from '../src/records.js'
import { associated, info, seal } from '../src/seal.js'
import { natively, signedBytes, verify } from '../src/signed.js'
import { Kind, Report, Signed, Suite, Task, bodies, type Read } from '../src/wire.js'
import { vectors } from './vectors.js'

await load(Suite.mlkem768X25519, { features: {}, model: { loss: 'logistic' } } as Declaration)

interface Sealed {
  name: string
  suite: number
  public_key: string
  manifest_hash: string
  attempt: number
  stage_key: string
  info?: string
  associated_data?: string
  ephemeral_private_key: string
  encapsulation_message?: string
  report: string
  plaintext: string
  must_not_open?: boolean
}
interface Envelope {
  name: string
  kind: string
  pinned_key: string
  signed: string
  body?: string
  must_not_verify?: boolean
}
const { reports, signed } = vectors<{ reports: Sealed[]; signed: Envelope[] }>('seal')

test('reports are sealed as the vectors are', () => {
  let compared = 0
  for (const v of reports.filter((r) => !r.must_not_open)) {
    const attempt = {
      suite: v.suite, manifestHash: unhex(v.manifest_hash), attempt: BigInt(v.attempt), stageKey: unhex(v.stage_key),
      publicKey: unhex(v.public_key),
    }
    const report = Report.decode(unhex(v.report))
    if (v.info !== undefined) assert.equal(hex(info(attempt)), v.info, v.name)
    if (v.associated_data !== undefined) assert.equal(hex(associated(report.ids)), v.associated_data, v.name)
    const entropy = concat(unhex(v.encapsulation_message ?? ''), unhex(v.ephemeral_private_key ?? ''))
    const got = seal(attempt, report.taskHash, report.ids, unhex(v.plaintext), kemOf(v.suite), entropy)
    assert.equal(hex(got), v.report, v.name)
    compared++
  }
  assert.ok(compared >= 3)
})

test('a suite whose key encapsulation is not loaded is refused', () => {
  const v = reports.find((r) => r.suite === Suite.mlkem768X25519)!
  const attempt = {
    suite: v.suite, manifestHash: unhex(v.manifest_hash), attempt: 1n, stageKey: unhex(v.stage_key),
    publicKey: unhex(v.public_key),
  }
  assert.throws(() => seal(attempt, new Uint8Array(32), [new Uint8Array(16)], new Uint8Array(1), undefined), /not loaded/)
  assert.throws(() => seal({ ...attempt, suite: 9 }, new Uint8Array(32), [new Uint8Array(16)], new Uint8Array(1), kemOf(9)))
})

test('envelopes verify, or do not, as the vectors say', async () => {
  const kinds: Record<string, Kind> = Object.fromEntries(
    Object.entries(Kind).map(([word, kind]) => [`KIND_${word.toUpperCase()}`, kind]))
  let [refused, read] = [0, 0]
  for (const v of signed) {
    const kind = kinds[v.kind] as Read
    if (!(kind in bodies)) continue // of records that no device reads
    if (v.must_not_verify) {
      await assert.rejects(verify(kind, unhex(v.pinned_key), unhex(v.signed)), { name: 'Unverified' }, v.name)
      refused++
      continue
    }
    assert.equal(hex((await verify(kind, unhex(v.pinned_key), unhex(v.signed))).bytes), v.body, v.name)
    read++
  }
  assert.ok(refused > 5 && read >= 5, `${refused}, ${read}`)
})

test('what a browser and Node have of Ed25519 decides as the chunk that is loaded where it has none', async () => {
  for (const v of signed) {
    let envelope
    try {
      envelope = Signed.decode(unhex(v.signed))
    } catch {
      continue
    }
    if (envelope.key.length !== 32 || envelope.signature.length !== 64) continue
    const of = [envelope.signature, signedBytes(envelope.kind as Kind, envelope.body), envelope.key] as const
    assert.equal(await natively(...of), portably(...of), v.name)
    assert.equal(chunk(...of), portably(...of), v.name)
  }
})

interface RecordVector {
  name: string
  subject: string
  record: string
  refused?: string
  beside?: string
}

test('records are read under their names, or count as not there', async () => {
  const v = vectors<{ task: string; task_hash: string; manifest_hash: string; learner_key: string; stage_key: string; records: RecordVector[] }>('signed')
  const of: Of = { task: Task.decode(unhex(v.task)), hash: unhex(v.task_hash) }
  let read = 0
  for (const r of v.records) {
    const [, , word, round = '0', number = '0'] = r.subject.split('.')
    const record = unhex(r.record)
    const take = async (): Promise<unknown> => {
      switch (word) {
        case 'round': return readRound(of, record, BigInt(round))
        case 'open': return readOpen(of, record, BigInt(round), BigInt(number), unhex(v.manifest_hash))
        case 'close': {
          const got = await readClose(of, record, BigInt(round), BigInt(number))
          assert.equal(hex(got.body.manifestHash), v.manifest_hash)
          return got
        }
        case 'end': return readEnd(of, record)
        case 'task': {
          const got = await verify(Kind.task, null, record)
          assert.ok(hex(got.key) === hex(got.body.learnerKey) && got.body.name === 'churn')
          return got
        }
      }
      return undefined
    }
    if (word === 'claim') continue // no device reads it
    read++
    if (r.refused === undefined) await take()
    else await assert.rejects(take(), r.name)
  }
  assert.ok(read > 60, String(read))
})
