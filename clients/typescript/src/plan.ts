// The plan of a task: which phase a step belongs to, what a round of it costs, and whether it can be run at all
// (stream/manifest of the Go device).
import { Fraction, Sum, isFraction, type Release } from './accounting.js'
import { Refused } from './declaration.js'
import type { Params } from './encode.js'
import { isLoss, labelKind, normOf, type LabelKind } from './features.js'
import { Continuous, Statistic, Trust, type Bodied, type Loss, type Mechanism, type Phase, type Plan, type Practical } from './wire.js'

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

/** Throws, by its number in docs/reference/refusals.md, for a check that does not hold. */
function want(ok: boolean, number: string, at = 'plan'): void {
  if (!ok) throw new Refused(at, 'not one that can be run', `what check ${number} asks`)
}

const e2 = (n: number): number => 2 ** n

/** The randomizer's parameters of a mechanism; throws for one that cannot be run. */
export function paramsOf(m: Bodied<typeof Mechanism>, at = 'mechanism'): Params {
  want(m.coinBits === 24, 'M29', at)
  want(m.dim >= 1 && m.dim <= maxDim, 'M30', at)
  want(m.scores <= maxScores && m.scores < m.dim, 'M31', at)
  want(m.maxBundle >= 1 && m.maxBundle <= maxBundle, 'M32', at)
  want(m.clipNorm >= 1e-30 && m.clipNorm <= 1e30, 'M33', at)
  want(m.levels >= 1 && m.levels <= e2(30), 'M34', at)
  want(m.trials <= e2(31), 'M35', at)
  want(m.floorTrials <= 2n ** 44n, 'M36', at)
  want(m.units <= BigInt(m.levels) << 23n, 'M37', at)
  want(m.window % 2 === 0 && m.window <= e2(31), 'M38', at)
  want(m.window === 0 || (m.trials % 2 === 0 && m.floorTrials === 0n && m.coin === e2(23)), 'M39', at)
  want(m.coin > 0 && m.coin < e2(24), 'M40', at)
  const { dim, clipNorm, levels, trials, coin, window } = m
  return { dim, clipNorm, levels, trials, coin, units: Number(m.units) || 1, window, minimizer: false }
}

/** What a user pays for a round together with all others of its stint: one release for each phase. */
export function releases(plan: PlanBody, at: Place, honest: Fraction, nobody = 'M46'): Release[] {
  return Array.from({ length: at.stint.phases }, (_, i) => {
    const index = at.stint.index + i
    const place = index === at.index ? at : costliest(plan, index)
    const m = place.phase.mechanism!
    const trust = plan.trust
    const report = trust !== Trust.pan
    const floors = trust === Trust.pan || trust === Trust.shufflePan
    const where = `plan.phases[${index}]`
    want(place.planned >= 1n && place.planned < 2n ** 40n, 'M42', where)
    want(honest.floor(place.planned) >= 1n, nobody, where)
    want(trust !== Trust.local || honest.isOne, 'M47', where)
    want(trust !== Trust.local || (m.coin === e2(23) && m.trials % 2 === 0), 'M48', where)
    want(report === m.trials > 0, 'M49', where)
    want(floors === m.floorTrials > 0n, 'M50', where)
    want(place.planned * BigInt(m.levels + m.trials) < 2n ** 60n, 'M51', where)
    return {
      trust, users: place.planned, dim: m.dim, levels: m.levels, trials: BigInt(m.trials), coin: m.coin,
      floorTrials: m.floorTrials, honest, rounds: place.phase.roundsPerUser, units: Number(m.units) || 1,
    }
  })
}

/** Throws unless a plan can be run. Which fraction is honest is read, and that the trust is known, before. */
export function checkPlan(plan: PlanBody): void {
  want(plan.deadlineMs <= maxDeadlineMs, 'M1')
  want(plan.staleMs === 0n || (plan.deadlineMs > 0n && plan.staleMs >= plan.deadlineMs && plan.staleMs <= maxDeadlineMs), 'M2')
  want(plan.retentionMs === 0n || (plan.retentionMs >= 3_600_000n && plan.retentionMs <= 10n * 365n * 24n * 3_600_000n), 'M3')
  want(Object.values(Trust).includes(plan.trust as 1), 'M4')
  want(isFraction(plan.honestFraction), 'M5')
  const honest = Fraction.parse(plan.honestFraction)
  // Organisations publish with ingest publish.
  if (plan.silos !== 0n) throw new Refused('plan.silos', plan.silos, '0: organisations publish with ingest publish')
  const like = plan.phases.find((f) => !looks(f))?.mechanism
  let [users, rounds] = [0n, 0n]
  for (const [i, f] of plan.phases.entries()) {
    checkPhase(plan, i, like, honest)
    users += f.again ? 0n : f.users
    rounds += f.rounds
    want(users < 2n ** 64n && rounds < 2n ** 64n, 'M52')
  }
  want(plan.unit <= 1, 'M53')
  want(plan.radius >= 0 && plan.radius <= 1, 'M54')
  for (const f of plan.phases) {
    want((plan.trust === Trust.local) === f.mechanism!.window > 0, 'M55')
    want(f.mechanism!.units === plan.phases[0]!.mechanism!.units, 'M58')
  }
  if (plan.practical !== undefined) checkPractical(plan, plan.practical)
  if (plan.start.length > 0) checkStart(plan, like!)
  const ends = plan.continuous === Continuous.no
  want(ends || stintOf(plan, plan.phases.length - 1).rounds === 1, 'M65')
  want(ends || (plan.continuous === Continuous.adaptive) === (plan.practical !== undefined), 'M66')
  want(plan.prio3 === '', 'M69')
}

function checkPhase(plan: PlanBody, i: number, like: Bodied<typeof Mechanism> | undefined, honest: Fraction): void {
  const f = plan.phases[i]!
  const m = f.mechanism!
  const at = `plan.phases[${i}]`
  const ok = (holds: boolean, number: string): void => want(holds, number, at)
  const stint = stintOf(plan, i)
  ok(!looks(f) || (f.statistic === i + 1 && f.rounds === 1n && f.roundsPerUser === 1 && like !== undefined), 'M6')
  ok((plan.practical !== undefined) === looks(plan.phases[0]!), 'M7')
  ok(looks(f) || (m.dim === like!.dim && m.clipNorm === like!.clipNorm && m.scores === like!.scores), 'M8')
  ok(!looks(f) || m.scores === 0, 'M9')
  ok(f.roundsPerUser >= 1, 'M10')
  ok(stint.rounds <= e2(31) - 1, 'M11')
  ok(f.roundsPerUser > 1 || f.top > 0n || f.rounds * f.cohort <= f.users, 'M12')
  ok(f.roundsPerUser === 1 || BigInt(f.roundsPerUser) === f.rounds, 'M13')
  ok(!f.again || (i > 0 && f.users === plan.phases[i - 1]!.users), 'M14')
  ok(stint.rounds === 1 || f.cohort === f.users, 'M15')
  ok(stint.phases === 1 || BigInt(f.roundsPerUser) === f.rounds, 'M16')
  ok(stint.rounds === 1 || (plan.trust !== Trust.pan && plan.trust !== Trust.shufflePan), 'M17')
  ok(m.minimizer === (f.prox !== undefined), 'M18')
  ok(f.prox === undefined, 'M20') // minimisers are of organisations
  const isLast = i === plan.phases.length - 1
  ok((f.top > 0n) === (plan.continuous === Continuous.adaptive && isLast), 'M27')
  ok(f.top === 0n || (!looks(f) && f.rounds === 1n && f.minimum <= f.top && f.top <= f.cohort), 'M28')
  paramsOf(m, `${at}.mechanism`)
  ok(m.dim * bitsOf(m.levels + Math.max(m.trials, m.window)) < e2(31), 'M30')
  const rounds = f.top > 0n ? [f.minimum, f.top] : [f.cohort, lastCohort(f)]
  for (const cohort of rounds) checkRound(m, cohort, f.top > 0n ? f.cohort : cohort, f.minimum, ok)
  releases(plan, costliest(plan, i), honest)
}

/** A round of so many users, whose noise is planned for as many or more. */
function checkRound(m: Bodied<typeof Mechanism>, cohort: bigint, planned: bigint, minimum: bigint, ok: (holds: boolean, number: string) => void): void {
  const bundle = BigInt(m.maxBundle)
  ok(cohort >= 1n && cohort <= 2n ** 32n && minimum <= cohort, 'M41')
  ok(planned >= cohort && planned <= 2n ** 32n, 'M42')
  ok(bundle <= cohort, 'M43')
  ok(m.window > 0 || (planned - minimum) * BigInt(m.trials) <= 2n ** 44n, 'M44')
  const reports = cohort + bundle - 1n > planned ? cohort + bundle - 1n : planned
  const noise = reports * BigInt(m.trials) + 2n * m.floorTrials
  const most = reports * BigInt(m.levels + m.window) + (m.window > 0 ? 0n : noise)
  ok(most < 2n ** 63n && noise < 2n ** 63n, 'M45')
}

const bitsOf = (n: number): number => (n < 1 ? 0 : Math.floor(Math.log2(n)) + 1)

const maxScale = 1e12
const within = (x: number, least: number): boolean => x >= least && x <= maxScale

/** What a frame and the steps of a practical plan are made of. */
function checkPractical(plan: PlanBody, p: Bodied<typeof Practical>): void {
  want(p.features < maxDim, 'M59')
  const kind = lossKind(p.loss)
  const ok = (holds: boolean): void => want(holds, 'M60', 'plan.practical')
  ok(kind !== null)
  ok(p.features >= 1)
  ok(p.indicators.length === 0 || 8 * p.indicators.length >= p.features)
  ok(p.bound > 0 && p.bound <= maxScale)
  for (const v of [p.intercept, p.clip, plan.ridge]) ok(within(v, 0))
  const d = p.features + (p.intercept !== 0 ? 1 : 0)
  const parameters = kind === 'classes' ? p.loss!.classes * d : d
  ok(plan.start.length === 0 || (plan.start.length === parameters && plan.start.every((v) => Math.abs(v) <= maxScale)))
  ok(p.users >= 1n)
  ok(kind === 'two' || kind === 'classes' || (p.labelLow < p.labelHigh && Math.abs(p.labelLow) <= maxScale && Math.abs(p.labelHigh) <= maxScale))
  let numbers = p.features
  for (let j = 0; j < p.features && p.indicators.length > 0; j++) numbers -= (p.indicators[j >> 3]! >> (j & 7)) & 1
  const label = kind === 'two' ? 1 : kind === 'classes' ? p.loss!.classes : 2
  for (const f of plan.phases) {
    const dim = f.statistic === Statistic.moments ? p.features + numbers + label : f.statistic === Statistic.matrix ? (d * (d + 1)) / 2 + d + 1 : parameters
    want(f.mechanism!.dim - f.mechanism!.scores === dim, 'M61')
  }
  want(p.unit >= 0 && p.unit < Infinity, 'M62')
}

/** The kind of label of a loss that is declared as it may be; null for any other. */
function lossKind(l: Bodied<typeof Loss> | undefined): LabelKind | null {
  if (l === undefined || !isLoss(l.name)) return null
  const kind = labelKind(l.name)
  const is = (...names: string[]): boolean => names.includes(l.name)
  const classes = kind === 'two' ? 2 : l.classes
  const sound =
    (is('quantile') ? l.level > 0 && l.level < 1 : l.level === 0) &&
    (is('huber', 'smoothed-hinge') ? l.width > 0 && l.width < Infinity : l.width === 0) &&
    (kind === 'counts' ? l.scoreBound > 0 && l.scoreBound <= 300 && l.maxCount >= 0 && l.maxCount < Infinity : l.scoreBound === 0 && l.maxCount === 0) &&
    (is('logistic') ? l.labelNoise >= 0 && l.labelNoise < 0.5 : l.labelNoise === 0) &&
    (kind === 'classes' ? l.classes >= 2 && l.classes <= 2 ** 16 : l.classes === 0) &&
    (l.classWeights.length === 0 || ((kind === 'two' || kind === 'classes') && l.classWeights.length === classes && l.classWeights.every((w) => w > 0 && w < Infinity)))
  return sound ? kind : null
}

/** A start lies in the plan's set. */
function checkStart(plan: PlanBody, like: Bodied<typeof Mechanism>): void {
  want(plan.start.length === like.dim - like.scores, 'M63')
  const { kind, radius, min, max } = plan.set ?? { kind: '', radius: 0, min: 0, max: 0 }
  const x = plan.start
  const total = new Sum()
  const sum = x.reduce((_, v) => total.add(Math.abs(v)), 0)
  const scaled = (least: number, most: number): boolean => min === 0 && max === 0 && radius > least && radius <= most
  const norm = normOf(x) <= radius
  const inside: Record<string, () => boolean> = {
    '': () => scaled(0, Number.MAX_VALUE) && norm,
    ball: () => scaled(0, Number.MAX_VALUE) && norm,
    nonnegative: () => scaled(0, Number.MAX_VALUE) && norm && x.every((v) => v >= 0),
    box: () => radius === 0 && min < max && Math.sqrt(x.length) * Math.max(Math.abs(min), Math.abs(max)) < Infinity && x.every((v) => v >= min && v <= max),
    simplex: () => scaled(1e-100, 1e100) && x.every((v) => v >= 0) && sum <= radius && sum >= radius * (1 - 2 ** -48),
    l1: () => scaled(1e-100, 1e100) && sum <= radius,
  }
  want(Object.hasOwn(inside, kind) && inside[kind]!(), 'M64')
}
