// The vectors that the Go device is tested with: what is accepted or refused, what a row becomes, what it costs, and
// whether it was counted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fraction, epsilon, type Release } from '../src/accounting.js'
import { hex, sha256, unhex, utf8 } from '../src/bytes.js'
import { check } from '../src/check.js'
import { Clock } from '../src/clock.js'
import { Agreement, type Policy } from '../src/consent.js'
import { Refused, parseDeclaration, type Declaration } from '../src/declaration.js'
import { rampAfter } from '../src/device.js'
import { FeatureMap, Unfit, type Event, type Example } from '../src/features.js'
import { affordTotal, periodOf, spent, type Charge } from '../src/ledger.js'
import {
  abandon, acked, decide, fresh, join, maySend, mayJoin, sending, type Ack, type AttemptId,
} from '../src/participation.js'
import { load } from '../src/parts.js'
import { parsePublic } from '../src/public.js'
import { statement } from '../src/statement.js'
import { Reporter, type FrameBody } from '../src/statistic.js'
import { Frame, Kind, Round, Suite, Task, Trust } from '../src/wire.js'
import { vectors } from './vectors.js'

// All that a task may ask for.
await load(Suite.mlkem768X25519, { features: { fourier: {} }, model: { loss: 'logistic' }, grants: 'pass' } as Declaration, true)

const close = (got: number, want: number, relative: number): boolean =>
  Object.is(got, want) || Math.abs(got - want) <= relative * Math.max(1, Math.abs(want))

// Refused by name: organisations publish with ingest publish, and this device does not share reports between two
// operators.
const operators = ['two operators',
  'two operators, whose keys are pinned',
  "two operators, pinned by one of the policy's hashes",
  'two operators, in three rounds of a user',
  'two operators, where the policy forbids one',
  'one operator as both, which nothing forbids']
const silos = [...operators, 'silos, of whom one phase follows another', 'silos that report minimisers']

interface TaskVector {
  name: string
  task: string
  zeros?: number
  tail?: string
  policy?: Policy
  pinned?: string
  refused?: string
  accepted?: { epsilon: number; delta: number }
}
interface RoundVector {
  name: string
  task: string
  round: string
  zeros?: number
  tail?: string
  known?: string
  before?: string
  refused?: string
  accepted?: string
}
const consent = vectors<{
  tasks: TaskVector[]
  rounds: RoundVector[]
  participations: { name: string; task: string; policy?: Policy; times: number; epsilon: number; refused?: string }[]
}>('consent')

const bytesOf = (v: { zeros?: number; tail?: string }, digits: string): Uint8Array =>
  unhex(digits + '00'.repeat(v.zeros ?? 0) + (v.tail ?? ''))

function agree(v: TaskVector): Agreement {
  const bytes = bytesOf(v, v.task)
  const body = Task.decode(bytes)
  check(Kind.task, body)
  return new Agreement(v.policy ?? {}, body, sha256(bytes), v.pinned === undefined ? undefined : unhex(v.pinned))
}

test('tasks are accepted at the same epsilon, or refused', () => {
  for (const v of consent.tasks) {
    if (v.refused !== undefined || silos.includes(v.name)) {
      // Of several checks that fail the first one decides in Go; a number that is named here is that one's.
      assert.throws(() => agree(v), (e) => v.refused === undefined || silos.includes(v.name) || !/check \w+ asks/.test((e as Error).message) ||
        (e as Error).message.endsWith(`check ${v.refused} asks`) || assert.fail(`${v.name} (${v.refused}): ${(e as Error).message}`))
      continue
    }
    const a = agree(v)
    assert.ok(close(a.epsilon, v.accepted!.epsilon, 2 ** -34), `${v.name}: epsilon ${a.epsilon}, want ${v.accepted!.epsilon}`)
    assert.equal(a.delta, v.accepted!.delta, v.name)
  }
})

test('a task of two operators is refused by name, before anything else is asked of it', () => {
  const found = consent.tasks.filter((v) => operators.includes(v.name))
  assert.equal(found.length, operators.length)
  for (const v of found) {
    for (const policy of [{}, { task_hash: hex(sha256(bytesOf(v, v.task))) }, { forbid_first_use: true }]) {
      assert.throws(() => agree({ ...v, policy }), (e) => e instanceof Refused && /plan\.trust is "split": want another trust/.test(e.message), v.name)
    }
  }
})

test('a policy with a key or a value that no policy file has is refused', () => {
  const v = consent.tasks.find((t) => t.accepted !== undefined && !silos.includes(t.name))!
  agree(v)
  for (const [key, value] of Object.entries({
    max_epsilonn: 1, constructor: 1, max_epsilon: -1, max_delta: 1, max_total_epsilon: Infinity, period: '720h', own_share: 2, max_refunds: 1.5,
    max_reports: 0, max_rounds_per_user: 0, task_hash: 'ab', task_hashes: [''], tasks: ['A b'], allow_plaintext: 1, honest_fraction: '2',
  })) {
    assert.throws(() => agree({ ...v, policy: { ...v.policy, [key]: value } as Policy }), (e) => e instanceof Refused && e.message.includes(key), key)
  }
  for (const period of ['', '1', '1h30', 'h', '-1h', '500ms', '1h 1s']) {
    const policy = { ...v.policy, max_total_epsilon: 100, period }
    assert.throws(() => agree({ ...v, policy }), (e) => e instanceof Refused && /period/.test(e.message), period)
  }
  for (const period of ['1s', '720h', '1h30m0.5s', '0']) agree({ ...v, policy: { ...v.policy, max_total_epsilon: 100, period } })
})

test('rounds are accepted, or refused', () => {
  for (const v of consent.rounds) {
    const a = agree(consent.tasks.find((t) => t.name === v.task)!)
    const take = (): string => {
      const bytes = bytesOf(v, v.round)
      const body = Round.decode(bytes)
      check(Kind.round, body)
      a.round(body, sha256(bytes), v.known === undefined ? undefined : unhex(v.known))
      if (v.before !== undefined) a.order(Round.decode(unhex(v.before)), body)
      return hex(sha256(bytes))
    }
    if (v.refused !== undefined) assert.throws(take, `${v.name} (${v.refused})`)
    else assert.equal(take(), v.accepted, v.name)
  }
})

test('participations cost what they cost', () => {
  for (const v of consent.participations) {
    const a = agree(v)
    assert.ok(close(a.cost(v.times), v.epsilon, 2 ** -34), `${v.name}: ${a.cost(v.times)}, want ${v.epsilon}`)
    assert.equal(a.affords(v.times), v.refused === undefined, v.name)
  }
})

const trusts: Record<string, number> = { shuffle: Trust.shuffle, pan: Trust.pan, 'shuffle+pan': Trust.shufflePan, local: Trust.local }

interface ReleaseVector {
  trust: string
  users: number
  dim: number
  levels: number
  trials: number
  coin: number
  floor_trials: number
  honest_fraction: string
  rounds_per_user: number
  units?: number
  minimizer?: boolean
}

test('releases cost what they cost', () => {
  let compared = 0
  for (const v of vectors<{ name: string; times: number; delta: number; stints: ReleaseVector[][]; epsilon: number | string }[]>('accounting')) {
    if (v.stints.flat().some((r) => r.minimizer || r.trust === 'split')) continue // of organisations, of two operators
    const of = v.stints.map((stint) => stint.map((r): Release => ({
      trust: trusts[r.trust]!, users: BigInt(r.users), dim: r.dim, levels: r.levels, trials: BigInt(r.trials), coin: r.coin,
      floorTrials: BigInt(r.floor_trials), honest: Fraction.parse(r.honest_fraction), rounds: r.rounds_per_user, units: r.units || 1,
    })))
    const got = epsilon(v.times, of, v.delta)
    const want = typeof v.epsilon === 'number' ? v.epsilon : Infinity
    assert.ok(close(got, want, 2 ** -34), `${v.name}: ${got}, want ${want}`)
    compared++
  }
  assert.ok(compared >= 15)
})

interface RowVector {
  fields?: Event
  index?: number[]
  value?: (number | string)[]
  label: string
  invalid?: boolean
  features?: number[]
  label_seen?: number
}

const mapOf = (declaration: Declaration, file?: unknown): FeatureMap => {
  const d = parseDeclaration(utf8(JSON.stringify(declaration)))
  return new FeatureMap(d, file === undefined ? undefined : parsePublic(utf8(JSON.stringify(file) + '\n'), d.features.public!))
}

const eventOf = (map: FeatureMap, row: RowVector): Event => {
  if (row.fields !== undefined) return { ...row.fields, [map.d.label.column!]: row.label }
  return { ...(row.index && { index: row.index }), value: row.value, label: row.label }
}

function mapped(map: FeatureMap, row: RowVector): Example | null {
  try {
    return map.map(eventOf(map, row))
  } catch (e) {
    assert.ok(e instanceof Unfit || e instanceof Error)
    return null
  }
}

const statistic = vectors<{
  features: { name: string; declaration: Declaration; public?: unknown; norm_bound: number; bound: number; rows: RowVector[] }[]
  statistics: {
    name: string
    declaration: Declaration
    statistic: number
    smoothing?: number
    point?: number[]
    frame?: Record<string, number | number[]>
    rows: RowVector[]
    clip_norm: number
    scores?: number
    vector: number[]
  }[]
}>('statistic')

test('events become the same vectors', () => {
  for (const v of statistic.features) {
    const map = mapOf(v.declaration, v.public)
    assert.ok(close(map.longest, v.norm_bound, 1e-12), `${v.name}: norm ${map.longest}, want ${v.norm_bound}`)
    for (const [i, row] of v.rows.entries()) {
      const got = mapped(map, row)
      if (row.invalid) {
        assert.equal(got, null, `${v.name}, row ${i}: want none`)
        continue
      }
      assert.ok(got !== null, `${v.name}, row ${i}: ${JSON.stringify(row)} is none`)
      assert.equal(got.x.length, row.features!.length)
      got.x.forEach((x, j) => assert.ok(close(x, row.features![j]!, 1e-12), `${v.name}, row ${i}, coordinate ${j}: ${x}, want ${row.features![j]}`))
      assert.ok(close(got.y, row.label_seen ?? 0, 1e-12), `${v.name}, row ${i}: label ${got.y}, want ${row.label_seen}`)
    }
  }
})

const camel = (s: string): string => s.replace(/_(.)/g, (_, c: string) => c.toUpperCase())

test('statistics are the same', () => {
  for (const v of statistic.statistics) {
    const map = mapOf(v.declaration)
    const reporter = new Reporter(map)
    const body = Frame.decode(new Uint8Array())
    const frame = v.frame && (Object.assign(body, Object.fromEntries(Object.entries(v.frame).map(([k, x]) => [camel(k), x]))) as FrameBody)
    const rows = v.rows.map((r) => mapped(map, r))
    const got = reporter.unit(v.statistic, rows, v.point ?? [], frame, v.smoothing ?? 0)
    assert.equal(got.length, v.vector.length, v.name)
    got.forEach((x, j) => assert.ok(close(x, v.vector[j]!, 1e-12), `${v.name}, coordinate ${j}: ${x}, want ${v.vector[j]}`))
    assert.ok(close(reporter.norm(v.statistic), v.clip_norm, 1e-12), `${v.name}: norm ${reporter.norm(v.statistic)}, want ${v.clip_norm}`)
    assert.equal(reporter.scores(v.statistic), v.scores ?? 0, v.name)
  }
})

interface Step {
  join?: { round: number; step: number; phase: number; rounds_per_user: number; final?: boolean; manifest_hash: string }
  send?: { attempt: number; open: string; floors?: boolean }
  answer?: { attempt: number; open: string; stored?: boolean; refused_by_broker?: boolean; sequence?: number }
  close?: { round: number; manifest_hash: string; attempt: number; open: string; cutoff?: number; void?: boolean }
  abandon?: boolean
  forbidden?: boolean
  state: string
  participations: number
}
const decisions = vectors<{
  events: { name: string; steps: Step[] }[]
  clocks: {
    name: string
    steps: { after_ms: number; clock_unix_ms: number; lease_unix_ms?: number; no_lease?: boolean; due: boolean; ledger_unix_ms: number; charges: boolean }[]
  }[]
  joins: { join_probability: number; join_doubling_ms: number; draw: number; after_ns: number }[]
}>('decisions')

test('who was counted is decided alike', () => {
  for (const v of decisions.events) {
    const p = fresh('a')
    for (const [i, s] of v.steps.entries()) {
      const at = `${v.name}, step ${i}`
      const attempt = (a: { attempt: number; open: string }): AttemptId => ({ number: a.attempt, open: a.open })
      if (s.join) {
        const d = {
          round: s.join.round, step: s.join.step, phase: s.join.phase, most: s.join.rounds_per_user, manifest: s.join.manifest_hash,
          final: s.join.final ?? false, report: new Uint8Array(16),
        }
        if (s.forbidden) {
          assert.ok(!mayJoin(p, d), at)
          assert.throws(() => join(p, d), at)
        } else join(p, d)
      } else if (s.send) {
        assert.equal(maySend(p, attempt(s.send), s.send.floors ?? false), !s.forbidden, at)
        if (!s.forbidden) sending(p, attempt(s.send), s.send.floors ?? false)
      } else if (s.answer) {
        const sequence = s.answer.sequence ?? 0
        const ack: Ack = s.answer.refused_by_broker ? { status: 'refused', reason: 0 } : s.answer.stored ? { status: 'stored', sequence }
          : { status: 'unknown' }
        acked(p, attempt(s.answer), ack)
      } else if (s.close) {
        decide(p, {
          round: s.close.round, manifest: s.close.manifest_hash, attempt: attempt(s.close), cutoff: s.close.cutoff ?? 0,
          void: s.close.void ?? false,
        })
      } else abandon(p)
      assert.equal(p.state, s.state, at)
      assert.equal(p.refunds + 1, s.participations, at)
    }
  }
})

test('devices join at the same times', () => {
  for (const v of decisions.joins) {
    const got = rampAfter(v.draw, { joinProbability: v.join_probability, joinDoublingMs: v.join_doubling_ms })
    assert.ok(Math.abs(got - v.after_ns / 1e6) < 1e-3, `${JSON.stringify(v)}: ${got} ms`)
  }
})

test('a clock is held against the broker alike', () => {
  for (const v of decisions.clocks) {
    let [wall, steady] = [0, 0]
    const clock = new Clock(() => wall, () => steady)
    for (const [i, s] of v.steps.entries()) {
      ;[wall, steady] = [s.clock_unix_ms, steady + s.after_ms]
      assert.equal(clock.isDoubtful, s.due, `${v.name}, step ${i}`)
      if (s.lease_unix_ms !== undefined || s.no_lease) clock.compared(s.lease_unix_ms ?? 0)
      assert.equal(clock.now(), s.ledger_unix_ms, `${v.name}, step ${i}`)
      assert.equal(!clock.isAhead, s.charges, `${v.name}, step ${i}`)
    }
  }
})

interface ChargeVector {
  task_hash: string
  epsilon: number
  delta: number
  standing: number
  open: number
  lost?: boolean
  at_unix_ms: number
}
const chargeOf = (c: ChargeVector): Charge => ({
  task: c.task_hash, name: 'churn', user: '', epsilon: c.epsilon, delta: c.delta, rounds: 1, most: 1, standing: c.standing, open: c.open,
  lost: c.lost ?? false, byUser: false, at: c.at_unix_ms,
})

test('totals are what they are, and refuse alike', () => {
  const totals = vectors<{
    totals: { name: string; policy: Policy; now_unix_ms: number; charges: ChargeVector[]; charge: ChargeVector; refused?: string; epsilon: number; delta: number }[]
  }>('consent').totals
  for (const v of totals) {
    const charges = v.charges.map(chargeOf)
    const why = affordTotal(v.policy, charges, chargeOf(v.charge), v.now_unix_ms)
    assert.equal(why === null, v.refused === undefined, `${v.name}: ${why}`)
    if (v.refused !== undefined) assert.match(why!, v.refused === 'A2' ? /epsilon/ : /delta/, v.name)
    const own = charges.find((c) => c.task === v.charge.task_hash)
    const whole = { ...chargeOf(v.charge), epsilon: Math.max(v.charge.epsilon, own?.epsilon ?? 0), delta: Math.max(v.charge.delta, own?.delta ?? 0), standing: 1, open: 1 }
    const sum = spent([...charges.filter((c) => c.task !== v.charge.task_hash), whole], v.now_unix_ms, periodOf(v.policy))
    assert.deepEqual(sum, { epsilon: v.epsilon, delta: v.delta }, v.name)
  }
})

test('the ledger is exported as ingest ledger --json has it', () => {
  const hour = 3_600_000
  const charges: Charge[] = [
    { task: 'aa', name: 'churn', user: '', epsilon: 1, delta: 1e-6, rounds: 1, most: 2, standing: 1, open: 0, lost: false, byUser: false, at: 10 * hour },
    { task: 'bb', name: 'clicks', user: '', epsilon: 0.5, delta: 1e-7, rounds: 3, most: 3, standing: 1, open: 1, lost: false, byUser: true, at: hour },
    { task: 'cc', name: 'old', user: '', epsilon: 4, delta: 1e-7, rounds: 1, most: 1, standing: 1, open: 0, lost: false, byUser: true, at: hour },
  ]
  assert.deepEqual(statement(charges, { max_total_epsilon: 2, period: '1h30m' }, 11 * hour), {
    time: '1970-01-01T11:00:00.000Z', period: '1h30m0s', epsilon: 1.5000000000000002, delta: 1.1e-6 + 2 ** -72, max_total_epsilon: 2,
    max_total_delta: null, users: 0, unit: 'event',
    tasks: [
      { task: 'churn', task_hash: 'aa', unit: 'event', epsilon: 1, delta: 1e-6, rounds: 1, rounds_per_user: 2, events: 1, complete: true, last: '1970-01-01T10:00:00.000Z', in_period: true },
      { task: 'clicks', task_hash: 'bb', unit: 'user', epsilon: 0.5, delta: 1e-7, rounds: 3, rounds_per_user: 3, events: 1, complete: true, last: '1970-01-01T01:00:00.000Z', in_period: true },
      { task: 'old', task_hash: 'cc', unit: 'user', epsilon: 4, delta: 1e-7, rounds: 1, rounds_per_user: 1, events: 1, complete: true, last: '1970-01-01T01:00:00.000Z', in_period: false },
    ],
  })
  assert.equal(statement(charges, {}, 0).time, '1970-01-01T10:00:00.000Z') // a clock that is set back
  const users = statement(charges.map((c, i) => ({ ...c, user: `u${i % 2}` })))
  assert.deepEqual([users.users, users.unit, users.epsilon], [2, 'user', 5.000000000000001])
})
