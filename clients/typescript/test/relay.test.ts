// What a relay is asked, and what counts as its answer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concat, hex, sha256, unhex } from '../src/bytes.js'
import { parsePlace, placeRequest } from '../src/places.js'
import { parseAnswer, parseLatest, relay, type Mark } from '../src/relay.js'
import { messageId } from '../src/seal.js'
import { verify } from '../src/signed.js'
import { Kind, Report, bodies as wire, type BodyOf, type Read } from '../src/wire.js'
import { vectors } from './vectors.js'

interface Attempted {
  body: string
  round: number
  attempt: number
}
const bodies = vectors<{
  learner_key: string
  stage_key: string
  task_hash: string
  records: { subject: string; record: string; accepted: string }[]
  states: {
    name: string
    body: string
    refused?: string
    tag: string
    marks: { round: number; attempt: number; sequence: number; hash: string }[]
    lease_stored_unix_ns: string
    lease: string
  }[]
  places: (Attempted & {
    request: string
    id: string
    users: number
    charged: boolean
    answer: string
    verdict: number
    granted: number
    time_ms: number
  })[]
  reports: (Attempted & { open: string; message_id: string; report: string })[]
  report_answers: { body: string; refused?: string; message_id: string; status: number; sequence: number; reason: number }[]
}>('relay')

test('requests that outlive their page stay below what browsers take, and carry no login', async () => {
  const asked: RequestInit[] = []
  const answers: ((r: Response) => void)[] = []
  const transport = relay('https://reports.example/', {
    fetch: ((url: string, init: RequestInit) => {
      assert.equal(url, 'https://reports.example/v1/tasks/churn/reports')
      asked.push(init)
      return new Promise<Response>((resolve) => answers.push(resolve))
    }) as typeof fetch,
  })('churn')
  const id = new Uint8Array(16).fill(7)
  const answer = (): Response => new Response(concat(Uint8Array.of(1), id, Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 9, 0)) as BodyInit)
  const first = transport.publish(1n, 1n, id, new Uint8Array(40_000))
  const second = transport.publish(1n, 1n, id, new Uint8Array(40_000))
  assert.deepEqual(asked.map((i) => i.keepalive), [true, false])
  answers.forEach((a) => a(answer()))
  assert.deepEqual(await Promise.all([first, second]), [{ status: 'stored', sequence: 9 }, { status: 'stored', sequence: 9 }])
  const third = transport.publish(1n, 1n, id, new Uint8Array(40_000))
  assert.equal(asked[2]?.keepalive, true)
  answers[2]!(new Response(await answer().arrayBuffer(), { status: 502 }))
  assert.deepEqual(await third, { status: 'unknown' })
  for (const init of asked) {
    assert.equal(init.credentials, 'omit')
    assert.equal(init.referrerPolicy, 'no-referrer')
    assert.deepEqual(init.headers, { 'Content-Type': 'text/plain' })
  }
})

test('an answer with another id, or none in time, is none', async () => {
  const id = new Uint8Array(16).fill(7)
  const other = concat(Uint8Array.of(1), new Uint8Array(16), Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 9, 0))
  const lying = relay('https://r.example', { fetch: () => Promise.resolve(new Response(other as BodyInit)) })('churn')
  assert.deepEqual(await lying.publish(1n, 1n, id, new Uint8Array(3)), { status: 'unknown' })
  const silent = relay('https://r.example', {
    fetch: ((_: string, init: RequestInit) => new Promise((_, reject) =>
      init.signal!.addEventListener('abort', () => reject(new Error('aborted'))))) as typeof fetch,
  })('churn')
  const keep = setTimeout(() => undefined, 60_000) // node ends where nothing but a time-out's signal is waited for
  assert.equal(await silent.place(1n, 1n, new Uint8Array(22), 20), null)
  clearTimeout(keep)
})

test('the records of a task with places verify, and its state names them', async () => {
  const kinds: Record<string, Kind> = Kind
  const read = await Promise.all(bodies.records.map(async (v) => {
    const word = v.subject.split('.')[2]!
    const record = { word, record: hex(sha256(unhex(v.record))) }
    const kind = kinds[word] as Read
    if (!(kind in wire)) return record // no device reads it
    const key = ['task', 'round', 'end'].includes(word) ? bodies.learner_key : bodies.stage_key
    assert.equal(hex((await verify(kind, unhex(key), unhex(v.record))).hash), v.accepted, word)
    return record
  }))
  const body = async <K extends Read>(kind: K, key: string, at: number): Promise<BodyOf<K>> =>
    (await verify(kind, unhex(key), unhex(bodies.records[at]!.record))).body
  assert.equal((await body(Kind.task, bodies.learner_key, 0)).plan!.places, true)
  assert.equal(hex((await body(Kind.round, bodies.learner_key, 1)).taskHash), bodies.task_hash)
  assert.equal((await body(Kind.open, bodies.stage_key, 2)).placesMs, 8000)
  for (const v of bodies.states) {
    if (v.refused !== undefined) {
      assert.throws(() => parseLatest(unhex(v.body)), v.name)
      continue
    }
    const got = parseLatest(unhex(v.body))
    assert.equal(got.tag, v.tag, v.name)
    assert.equal(hex(got.lease.record), v.lease, v.name)
    assert.equal(got.lease.storedMs, Number(BigInt(v.lease_stored_unix_ns) / 1_000_000n), v.name)
    const marks: [string, Mark][] = (['task', 'end', 'round', 'open', 'claim', 'close'] as const).map((w) => [w, got[w]])
    marks.forEach(([word, m], i) => {
      const said = { round: Number(m.round), attempt: Number(m.attempt), sequence: Number(m.sequence), hash: hex(m.hash) }
      assert.deepEqual(said, v.marks[i], `${v.name}: ${word}`)
      if (m.sequence > 0n) assert.equal(said.hash, read.find((r) => r.word === word)!.record, `${v.name}: ${word}`)
    })
  }
})

test('requests and answers of a relay are those of the vectors', async () => {
  const posted: [string, string][] = []
  let answer = ''
  const transport = relay('https://r.example', {
    fetch: ((url: string, init: RequestInit) => {
      posted.push([url.split('/').pop()!, hex(init.body as Uint8Array<ArrayBuffer>)])
      return Promise.resolve(new Response(unhex(answer) as BodyInit))
    }) as typeof fetch,
  })('churn')
  for (const v of bodies.places) {
    answer = v.answer
    const request = placeRequest(unhex(v.id), v.users, v.charged)
    assert.equal(hex(request), v.request)
    const got = await transport.place(BigInt(v.round), BigInt(v.attempt), request, 1000)
    assert.deepEqual(posted.pop(), ['places', v.body])
    const want = [{ verdict: 'granted', users: v.granted, ms: v.time_ms }, { verdict: 'wait', ms: v.time_ms }, { verdict: 'over' }]
    assert.deepEqual(parsePlace(got!, unhex(v.id)), want[v.verdict - 1])
  }
  answer = bodies.report_answers[0]!.body
  for (const v of bodies.reports) {
    const report = Report.decode(unhex(v.report))
    assert.equal(hex(messageId(report.ids[0]!, BigInt(v.attempt), unhex(v.open))), v.message_id)
    await transport.publish(BigInt(v.round), BigInt(v.attempt), unhex(v.message_id), unhex(v.report))
    assert.deepEqual(posted.pop(), ['reports', v.body])
  }
  for (const v of bodies.report_answers) {
    const got = parseAnswer(unhex(v.body), unhex(bodies.reports[0]!.message_id))
    const want = v.refused !== undefined ? { status: 'unknown' } : v.status === 3 ? { status: 'refused', reason: v.reason }
      : { status: v.status === 1 ? 'stored' : 'duplicate', sequence: v.sequence }
    assert.deepEqual(got, want, v.body)
  }
})

test('requests for places and their answers are read, or refused', () => {
  const { place_requests: requests, place_answers: answers } = vectors<{
    place_requests: { record: string; refused?: string; id: string; users: number; charged: boolean }[]
    place_answers: { record: string; refused?: string; id: string; verdict: number; users: number; time_ms: number }[]
  }>('signed')
  for (const v of requests.filter((r) => r.refused === undefined)) {
    assert.equal(hex(placeRequest(unhex(v.id), v.users, v.charged)), v.record)
  }
  for (const v of answers) {
    const got = parsePlace(unhex(v.record), unhex(v.id ?? answers[0]!.id))
    if (v.refused !== undefined) assert.equal(got, null, v.record)
    else assert.equal(got?.verdict, ['granted', 'wait', 'over'][v.verdict - 1], v.record)
  }
})
