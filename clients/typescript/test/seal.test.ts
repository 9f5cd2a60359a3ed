import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concat, hex, unhex } from '../src/bytes.js'
import { checkReport } from '../src/check.js'
import { hybrid } from '../src/hybrid.js'
import { associated, info, seal } from '../src/seal.js'
import { verify } from '../src/signed.js'
import { Kind, Report, Suite } from '../src/wire.js'
import { vectors } from './vectors.js'

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
    checkReport(report)
    if (v.info !== undefined) assert.equal(hex(info(attempt)), v.info, v.name)
    if (v.associated_data !== undefined) assert.equal(hex(associated(report.ids)), v.associated_data, v.name)
    const entropy = concat(unhex(v.encapsulation_message ?? ''), unhex(v.ephemeral_private_key ?? ''))
    const got = seal(attempt, report.taskHash, report.ids, unhex(v.plaintext), hybrid, entropy)
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
  assert.throws(() => seal(attempt, new Uint8Array(32), [new Uint8Array(16)], new Uint8Array(1)), /not loaded/)
  assert.throws(() => seal({ ...attempt, suite: 9 }, new Uint8Array(32), [new Uint8Array(16)], new Uint8Array(1), hybrid))
})

test('envelopes verify, or do not, as the vectors say', () => {
  const kinds: Record<string, Kind> = Object.fromEntries(
    Object.entries(Kind).map(([word, kind]) => [`KIND_${word.toUpperCase()}`, kind]))
  let refused = 0
  for (const v of signed) {
    const kind = kinds[v.kind]!
    if (v.must_not_verify) {
      assert.throws(() => verify(kind, unhex(v.pinned_key), unhex(v.signed)), { name: 'Unverified' }, v.name)
      refused++
      continue
    }
    assert.equal(hex(verify(kind, unhex(v.pinned_key), unhex(v.signed)).bytes), v.body, v.name)
  }
  assert.ok(refused > 10 && refused < signed.length)
})
