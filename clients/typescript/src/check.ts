// What a message has to be by itself: lengths, ranges, finite numbers (stream/check.go, stream/checkplan.go). That it
// belongs to the task and the round is the reader's to check.
import type { Bytes } from './bytes.js'
import { Continuous, Kind, Statistic, Suite, type Bodied, type BodyOf, type Phase, type Plan, type Read } from './wire.js'

export const version = 1

// Bounds that no honest peer comes near.
const maxDim = 2 ** 20
const maxReason = 64 // bytes
const maxPhases = 64
const maxPublic = 256 * 1024 // bytes

function want(ok: boolean, number: string): void {
  if (!ok) throw new Error(`not what check ${number} asks`)
}
const short = (s: string, number: string): void => want(new TextEncoder().encode(s).length <= maxReason, number)
const positive = (v: number, number: string): void => want(v > 0 && v < Infinity, number)
const member = (v: number, of: Record<string, number>, number: string): void => want(Object.values(of).includes(v), number)

/** Checks the name of a task. */
export const name = (s: string): void => want(/^[a-z0-9_-]{1,32}$/.test(s), 'B1')

const header = (m: { taskHash: Bytes; round: bigint }): void => {
  want(m.taskHash.length === 32, 'B26')
  want(m.round > 0n, 'B27')
}

const attempt = (m: { taskHash: Bytes; round: bigint; attempt: bigint; manifestHash: Bytes }): void => {
  header(m)
  want(m.attempt > 0n, 'B31')
  want(m.manifestHash.length === 32, 'B32')
}

function phase(p: Bodied<typeof Phase>): void {
  want(p.rounds > 0n, 'B10')
  want(p.minimum > 0n && p.minimum <= p.cohort, 'B11')
  want(p.mechanism !== undefined, 'B12')
  want(p.smoothing >= 0 && !Object.is(p.smoothing, -0) && p.smoothing < Infinity, 'B13')
  member(p.statistic, Statistic, 'B14')
  want(p.statistic === Statistic.gradient || p.smoothing === 0, 'B15')
  want(p.rounds <= p.users || p.roundsPerUser > 1, 'B16')
  want([p.descent, p.acceleration, p.prox].filter((m) => m !== undefined).length <= 1, 'S3')
}

function plan(p: Bodied<typeof Plan>): void {
  member(p.continuous, Continuous, 'B3')
  want(p.phases.length > 0 && p.phases.length <= maxPhases, 'B9')
  p.phases.forEach(phase)
  want(p.start.length > 0 || p.startPrivacy === undefined, 'B17')
  want(p.startHash.length === (p.start.length > 0 ? 32 : 0), 'B18')
  want(p.start.length <= maxDim, 'B19')
  want(p.start.every(Number.isFinite), 'B20')
  if (p.startPrivacy) {
    short(p.startPrivacy.task, 'B21')
    for (const v of [p.startPrivacy.epsilon, p.startPrivacy.delta]) want(v >= 0 && v < Infinity, 'B22')
  }
  positive(p.epsilon, 'B23')
  positive(p.delta, 'B24')
  positive(p.epsilonBudget, 'B25')
  short(p.prio3, 'B37')
}

const checks: { [K in Read]: (m: BodyOf<K>) => void } = {
  [Kind.task]: (m) => {
    name(m.name)
    if (m.plan === undefined) throw new Error('not what check B2 asks')
    plan(m.plan)
    want(m.public.length <= maxPublic, 'B4')
    want(m.learnerKey.length === 32, 'B5')
    want(m.life.length === 16, 'B6')
    want(m.stageKey.length === 32, 'B7')
    member(m.suite, Suite, 'B8')
    want(m.helperKey.length === 0 || m.helperKey.length === 32, 'B36')
    want(m.issuerKey.length === 0 || m.issuerKey.length === 342, 'B42')
  },
  [Kind.round]: (m) => {
    header(m)
    want(m.step > 0n, 'B28')
    want(m.point.length <= maxDim, 'B29')
    want(m.point.every(Number.isFinite), 'B30')
  },
  [Kind.open]: (m) => {
    attempt(m)
    want(m.instance.length === 16, 'B33')
    member(m.suite, Suite, 'B8')
  },
  [Kind.close]: (m) => {
    attempt(m)
    want(m.batchHash.length === 32, 'B34')
  },
  [Kind.end]: (m) => {
    want(m.taskHash.length === 32, 'B26')
    short(m.reason, 'B35')
  },
}

/** Throws, by its number in docs/reference/refusals.md, for a check of a signed body by itself that does not hold. */
export function check<K extends Read>(kind: K, body: BodyOf<K>): void {
  want(body.version === version, 'S2')
  checks[kind](body)
}
