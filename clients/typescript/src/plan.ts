// The plan of a task: which phase a step belongs to, what a round of it costs, and whether it can be run at all
// (stream/manifest of the Go device).
import type { Fraction, Release } from './accounting.js'
import { Refused } from './declaration.js'
import type { Params } from './encode.js'
import { labelKind } from './features.js'
import { Continuous, Statistic, Trust, type Bodied, type Mechanism, type Phase, type Plan, type Practical } from './wire.js'

export type PlanBody = Bodied<typeof Plan>
export type PhaseBody = Bodied<typeof Phase>

const maxDim = 2 ** 20
const maxBundle = 2 ** 16
const maxScores = 16
const maxDeadlineMs = 366n * 24n * 3_600_000n

/** Phases that the same users answer one after the other: what each of them pays is the cost of all. */
export interface Stint {
  index: number // of its first phase
  phases: number
  first: bigint // its steps, as planned
  last: bigint
  rounds: number // that one user answers
}

/** A place is a step of a plan, and what the plan fixes of its round. */
export interface Place {
  phase: PhaseBody
  index: number
  first: bigint // step of the phase
  cohort: bigint
  planned: bigint // users that the noise is planned for
  stint: Stint
}

export function stintOf(plan: PlanBody, phase: number): Stint {
  let s: Stint = { index: 0, phases: 0, first: 1n, last: 0n, rounds: 0 }
  for (const [i, f] of plan.phases.entries()) {
    if (!f.again) {
      if (i > phase) break
      s = { index: i, phases: 0, first: s.last + 1n, last: s.last, rounds: 0 }
    }
    s.phases++
    s.last += f.rounds
    s.rounds += f.roundsPerUser
  }
  return s
}

const looks = (f: PhaseBody): boolean => f.statistic !== Statistic.gradient
const endless = (plan: PlanBody, i: number): boolean => plan.continuous !== Continuous.no && i === plan.phases.length - 1

/** The cohort of a phase's last step. */
const lastCohort = (f: PhaseBody): bigint =>
  f.roundsPerUser > 1 || looks(f) || f.top > 0n ? f.cohort : f.users - (f.rounds - 1n) * f.cohort

/** The place of a step, from 1; null where the plan does not have it. */
export function placeOf(plan: PlanBody, step: bigint): Place | null {
  let first = 1n
  for (const [index, phase] of plan.phases.entries()) {
    if (step >= first && (step - first < phase.rounds || endless(plan, index))) {
      const isLast = step === first + phase.rounds - 1n && !endless(plan, index)
      const planned = isLast ? lastCohort(phase) : phase.cohort
      return { phase, index, first, cohort: phase.top > 0n ? phase.top : planned, planned, stint: stintOf(plan, index) }
    }
    first += phase.rounds
  }
  return null
}

/** The place of the costliest round of a phase. */
export const costliest = (plan: PlanBody, index: number): Place => ({
  phase: plan.phases[index]!, index, first: 0n, cohort: plan.phases[index]!.cohort, planned: plan.phases[index]!.cohort,
  stint: stintOf(plan, index),
})

/** The randomizer's parameters of a mechanism; throws for one that cannot be run. */
export function paramsOf(m: Bodied<typeof Mechanism>): Params {
  const want = (ok: boolean, field: string, value: unknown, wanted: string): void => {
    if (!ok) throw new Refused(`mechanism: ${field}`, value, wanted)
  }
  want(m.coinBits === 24, 'coin_bits', m.coinBits, '24')
  want(m.coin > 0 && m.coin < 2 ** 24, 'coin', m.coin, '1 to 2^24 - 1')
  want(m.dim >= 1 && m.dim <= maxDim, 'dim', m.dim, `1 to ${maxDim}`)
  want(m.scores <= maxScores && m.scores < m.dim, 'scores', m.scores, `at most ${maxScores}, and fewer than dim`)
  want(m.maxBundle >= 1 && m.maxBundle <= maxBundle, 'max_bundle', m.maxBundle, `1 to ${maxBundle}`)
  want(m.clipNorm > 0 && m.clipNorm < Infinity, 'clip_norm', m.clipNorm, 'a finite number above 0')
  want(m.levels >= 1 && m.levels + Math.max(m.trials, m.window) < 2 ** 31, 'levels', m.levels, 'levels and trials below 2^31')
  want(!m.minimizer && m.units <= 1n, 'units', m.units, 'the one person or event whose report this is')
  return {
    dim: m.dim, clipNorm: m.clipNorm, levels: m.levels, trials: m.trials, coin: m.coin, units: 1, window: m.window,
    minimizer: false,
  }
}

/** What a user pays for a round together with all others of its stint: one release for each phase. */
export function releases(plan: PlanBody, at: Place, honest: Fraction): Release[] {
  return Array.from({ length: at.stint.phases }, (_, i) => {
    const index = at.stint.index + i
    const place = index === at.index ? at : costliest(plan, index)
    const m = place.phase.mechanism!
    const trust = plan.trust
    const report = trust !== Trust.pan
    const floors = trust === Trust.pan || trust === Trust.shufflePan
    const want = (ok: boolean, what: string): void => {
      if (!ok) throw new Refused(`plan.phases[${index}]`, 'not accountable', what)
    }
    want(place.planned >= 1n && place.planned < 2n ** 40n, 'from 1 to 2^40 - 1 users')
    want(report === m.trials > 0, 'noise in reports where the trust has it')
    want(floors === m.floorTrials > 0n, 'floors where the trust has them')
    want(trust !== Trust.local || (m.coin === 2 ** 23 && m.trials % 2 === 0), 'a fair coin and even trials under local')
    want(honest.floor(place.planned) >= 1n, 'an honest user at least')
    return {
      trust, users: place.planned, dim: m.dim, levels: m.levels, trials: BigInt(m.trials), coin: m.coin,
      floorTrials: m.floorTrials, honest, rounds: place.phase.roundsPerUser, units: 1,
    }
  })
}

/** Throws unless a plan can be run. */
export function checkPlan(plan: PlanBody): void {
  const want = (ok: boolean, field: string, value: unknown, wanted: string): void => {
    if (!ok) throw new Refused(`plan.${field}`, value, wanted)
  }
  want(plan.deadlineMs <= maxDeadlineMs, 'deadline_ms', plan.deadlineMs, `at most ${maxDeadlineMs}`)
  want(plan.staleMs === 0n || (plan.deadlineMs > 0n && plan.staleMs >= plan.deadlineMs && plan.staleMs <= maxDeadlineMs),
    'stale_ms', plan.staleMs, 'deadline_ms or more, or 0')
  want(plan.retentionMs === 0n || (plan.retentionMs >= 3_600_000n && plan.retentionMs <= 10n * 365n * 24n * 3_600_000n),
    'retention_ms', plan.retentionMs, 'an hour to ten years, or 0')
  want(Object.values(Trust).includes(plan.trust as 1), 'trust', plan.trust, 'one that this device knows')
  want(plan.prio3 === '', 'prio3', plan.prio3, 'none but under trust split')
  want(plan.unit <= 1, 'unit', plan.unit, 'one that this device knows')
  want(plan.silos === 0n, 'silos', plan.silos, '0: organisations publish with ingest publish')
  want(plan.radius >= 0 && plan.radius <= 1, 'radius', plan.radius, '0 to 1')
  const like = plan.phases.find((f) => !looks(f))
  for (const [i, f] of plan.phases.entries()) {
    const at = `phases[${i}]`
    const m = f.mechanism!
    const stint = stintOf(plan, i)
    want(like !== undefined, at, 'moments alone', 'gradients after them')
    want(!looks(f) || (f.statistic === i + 1 && f.rounds === 1n && f.roundsPerUser === 1 && m.scores === 0), at, 'a look',
      'one round of moments in the first phase, one of their matrix in the second')
    want((plan.practical !== undefined) === looks(plan.phases[0]!), at, 'moments', 'moments in practical plans alone')
    want(looks(f) || (m.dim === like!.mechanism!.dim && m.clipNorm === like!.mechanism!.clipNorm &&
      m.scores === like!.mechanism!.scores), at, 'another mechanism', 'that of all gradients')
    want(BigInt(m.maxBundle) <= f.cohort && BigInt(m.maxBundle) <= lastCohort(f), at, m.maxBundle, 'bundles of at most a cohort')
    want(f.roundsPerUser >= 1, at, f.roundsPerUser, 'at least 1 round a user')
    want(f.roundsPerUser > 1 || f.top > 0n || f.rounds * f.cohort <= f.users, at, f.users, 'as many users as rounds take')
    want(f.roundsPerUser === 1 || BigInt(f.roundsPerUser) === f.rounds, at, f.roundsPerUser, '1, or all rounds')
    want(!f.again || (i > 0 && f.users === plan.phases[i - 1]!.users), at, 'again', 'the users of the phase before')
    want(stint.rounds === 1 || f.cohort === f.users, at, f.cohort, 'all users, where they answer several rounds')
    want(stint.phases === 1 || BigInt(f.roundsPerUser) === f.rounds, at, f.roundsPerUser, 'all rounds of a stint')
    want(stint.rounds === 1 || plan.trust === Trust.shuffle || plan.trust === Trust.local, at, stint.rounds,
      '1 round a user under floors')
    want(f.prox === undefined, at, 'prox', 'gradients: minimisers are of organisations')
    want((m.window > 0) === (plan.trust === Trust.local), at, m.window, 'a window under trust local alone')
    const isLast = i === plan.phases.length - 1
    want((f.top > 0n) === (plan.continuous === Continuous.adaptive && isLast), at, f.top, 'a top in an adaptive phase')
    want(f.top === 0n || (!looks(f) && f.rounds === 1n && f.minimum <= f.top && f.top <= f.cohort), at, f.top,
      'minimum, top and cohort in this order')
  }
  const sum = (of: (f: PhaseBody) => bigint): bigint => plan.phases.reduce((n, f) => n + of(f), 0n)
  want(sum((f) => (f.again ? 0n : f.users)) < 2n ** 64n && sum((f) => f.rounds) < 2n ** 64n, 'phases', 'users', 'fewer than 2^64')
  if (plan.practical !== undefined) checkPractical(plan.practical)
  const last = stintOf(plan, plan.phases.length - 1)
  want(plan.continuous === Continuous.no || last.rounds === 1, 'continuous', last.rounds, '1 round a user without an end')
  want(plan.continuous === Continuous.no || (plan.continuous === Continuous.adaptive) === (plan.practical !== undefined),
    'continuous', plan.continuous, 'adaptive in practical plans, and in no other')
}

const maxScale = 1e12

/** What a frame and the steps of a practical plan are made of. */
function checkPractical(p: Bodied<typeof Practical>): void {
  const want = (ok: boolean, field: string, value: unknown, wanted: string): void => {
    if (!ok) throw new Refused(`plan.practical.${field}`, value, wanted)
  }
  const kind = p.loss === undefined ? undefined : labelKind(p.loss.name)
  want(kind !== undefined, 'loss', 'none', 'a loss')
  want(p.features >= 1 && p.features < maxDim, 'features', p.features, `1 to ${maxDim - 1}`)
  want(p.indicators.length === 0 || p.indicators.length === Math.ceil(p.features / 8), 'indicators', p.indicators.length, 'a bit of each')
  want(p.bound > 0 && p.bound <= maxScale, 'bound', p.bound, `above 0, at most ${maxScale}`)
  want(p.intercept >= 0 && p.intercept <= maxScale, 'intercept', p.intercept, `0 to ${maxScale}`)
  want(p.clip >= 0 && p.clip <= maxScale, 'clip', p.clip, `0 to ${maxScale}`)
  want(p.users >= 1n, 'users', p.users, 'at least 1')
  want(kind === 'two' || kind === 'classes' || (p.labelLow < p.labelHigh && Math.abs(p.labelLow) <= maxScale &&
    Math.abs(p.labelHigh) <= maxScale), 'labels', `${p.labelLow} to ${p.labelHigh}`, 'a range')
  want(p.unit >= 0 && p.unit < Infinity, 'unit', p.unit, 'a finite number of at least 0')
}
