// What a device checks before it takes part (docs/reference/device.md; stream/device/consent of the Go device). It
// believes nothing that it can compute.
import { Fraction, epsilon, isFraction, maxEpsilon } from './accounting.js'
import { equal, hex, unhex, type Bytes } from './bytes.js'
import { version } from './check.js'
import { Refused, parseDeclaration, type Declaration } from './declaration.js'
import { reportBytes, type Params } from './encode.js'
import { FeatureMap, normOf } from './features.js'
import { checkPlan, costliest, paramsOf, placeOf, releases, stintOf, type Place, type PlanBody } from './plan.js'
import { periodOf } from './ledger.js'
import { grants, rare, wholly } from './parts.js'
import type { PublicModel } from './public.js'
import { Reporter, isPractical } from './statistic.js'
import { Kind, Report, Statistic, Suite, Trust, Unit, type BodyOf } from './wire.js'

/** Which tasks a device agrees to: the keys of the policy file, with the same meanings. */
export interface Policy {
  tasks?: string[]
  task_hash?: string
  task_hashes?: string[]
  learner_key?: string
  stage_key?: string
  helper_key?: string // of tasks of two operators, which this device refuses
  max_epsilon?: number
  max_delta?: number
  max_total_epsilon?: number
  max_total_delta?: number
  period?: string
  honest_fraction?: string
  max_rounds_per_user?: number
  min_cohort?: number
  own_share?: number
  max_refunds?: number
  max_reports?: number
  max_attempts?: number // the same
  allow_plaintext?: boolean
  forbid_first_use?: boolean
  forbid_one_operator?: boolean
}

/** Whether the policy itself vouches for the tasks that it lets through. */
export const pins = (p: Policy): boolean =>
  Boolean(p.task_hash) || Boolean(p.task_hashes?.length) || (Boolean(p.learner_key) && Boolean(p.stage_key))

export type TaskBody = BodyOf<typeof Kind.task>
export type RoundBody = BodyOf<typeof Kind.round>

/** What a policy agreed to for one phase. */
export interface PhaseTerms {
  params: Params
  statistic: number
  rounds: number // that one user answers
  epsilon: number // of all of them together
}

const tolerance = 1e-9

const least = (n: number) => (v: unknown): boolean => typeof v === 'number' && v >= n
const whole = (n: number) => (v: unknown): boolean => Number.isInteger(v) && least(n)(v)
const share = (v: unknown): boolean => least(0)(v) && (v as number) < 1
const pin = (v: unknown): boolean => typeof v === 'string' && /^([0-9a-fA-F]{64})?$/.test(v)
const list = (of: (v: unknown) => boolean) => (v: unknown): boolean => Array.isArray(v) && v.every(of)
const flag = (v: unknown): boolean => typeof v === 'boolean'

// The keys of the policy file, and what each may be.
const keys: { [K in keyof Required<Policy>]: (v: unknown) => boolean } = {
  tasks: list((v) => typeof v === 'string' && /^[a-z0-9_-]{1,32}$/.test(v)), task_hash: pin,
  task_hashes: list((v) => v !== '' && pin(v)), learner_key: pin, stage_key: pin, helper_key: pin,
  max_epsilon: (v) => least(0)(v) && (v as number) <= maxEpsilon, max_delta: share,
  max_total_epsilon: (v) => least(0)(v) && v !== Infinity, max_total_delta: share,
  period: (v) => typeof v === 'string', honest_fraction: (v) => typeof v === 'string' && isFraction(v),
  max_rounds_per_user: whole(1), min_cohort: whole(0), own_share: (v) => least(0)(v) && (v as number) <= 1, max_refunds: whole(0),
  max_reports: whole(1), max_attempts: whole(1), allow_plaintext: flag, forbid_first_use: flag, forbid_one_operator: flag,
}

/** Throws Refused for a policy that the policy file could not have. */
export function checkPolicy(p: Policy): void {
  for (const [k, v] of Object.entries(p)) {
    if (v === undefined) continue
    want(Object.hasOwn(keys, k), 'policy', k, 'a key that this device reads')
    want(keys[k as keyof Policy](v), `policy: ${k}`, v, 'a value of the policy file')
  }
  const period = periodOf(p)
  want(period === 0 || (period >= 1000 && Boolean(p.max_total_epsilon || p.max_total_delta)), 'policy: period', p.period, 'at least 1s, with a total')
}

const trustWords = new Map<number, string>([[Trust.shuffle, 'shuffle'], [Trust.pan, 'pan'], [Trust.shufflePan, 'shuffle+pan'], [Trust.local, 'local']])

function want(ok: boolean, field: string, value: unknown, wanted: string): void {
  if (!ok) throw new Refused(field, value, wanted)
}

/** Reads the file of a public model, where one is declared. */
function publicOf(file: Bytes, declared: string | undefined): PublicModel | undefined {
  if (declared === undefined) return undefined
  try {
    return rare().parsePublic(file, declared)
  } catch (e) {
    throw new Refused('public', `${file.length} bytes`, (e as Error).message)
  }
}

/** A task that a policy agreed to. */
export class Agreement {
  readonly declaration: Declaration
  readonly map: FeatureMap
  readonly reporter: Reporter
  readonly phases: PhaseTerms[] = []
  readonly epsilon: number // of one participation, in the costliest phase
  readonly delta: number
  readonly honest: Fraction
  readonly plan: PlanBody
  private readonly repeated: number[]
  private readonly costs = new Map<string, number>()

  /**
   * Decides about a task that was verified under the key that it names. stored is the hash that the device's store pins,
   * undefined before the first task. Throws Refused.
   */
  constructor(private readonly policy: Policy, readonly task: TaskBody, readonly hash: Bytes, stored?: Bytes) {
    const p = policy
    checkPolicy(p)
    want(task.plan!.trust !== Trust.split, 'plan.trust', 'split',
      'another trust: this device shares no reports between two operators; ingest publish and the library in Go do')
    want(stored === undefined || equal(stored, hash), 'task hash', hex(hash), 'that which this device took part in before')
    want(stored !== undefined || pins(p) || !p.forbid_first_use, 'task hash', hex(hash), 'one that the policy pins')
    want(p.tasks === undefined || p.tasks.length === 0 || p.tasks.includes(task.name), 'task', task.name, 'one of the policy')
    const pinned = (digits: string | undefined, value: Bytes): boolean => !digits || equal(unhex(digits), value)
    want(pinned(p.task_hash, hash), 'task hash', hex(hash), `${p.task_hash}, which the policy pins`)
    want(!p.task_hashes?.length || p.task_hashes.some((h) => pinned(h, hash)), 'task hash', hex(hash), 'one that the policy lists')
    want(pinned(p.learner_key, task.learnerKey), 'learner_key', hex(task.learnerKey), 'the pinned one')
    want(pinned(p.stage_key, task.stageKey), 'stage_key', hex(task.stageKey), 'the pinned one')
    want(task.suite !== Suite.none || p.allow_plaintext === true, 'suite', 'none: reports would not be encrypted', 'encryption')
    want(task.helperKey.length === 0, 'helper_key', hex(task.helperKey), 'none but under trust split')
    const plan = (this.plan = task.plan!)
    checkPlan(plan)
    const d = (this.declaration = parseDeclaration(task.declaration))
    want((d.features.public !== undefined) === task.public.length > 0, 'public', `${task.public.length} bytes`, 'the declared file')
    wholly()?.(d, () => new FeatureMap({ ...d, norm_bound: 0 }).longest)
    this.map = new FeatureMap(d, publicOf(task.public, d.features.public))
    this.reporter = new Reporter(this.map)
    const issuer = Uint8Array.from(atob(d.issuer_key ?? ''), (x) => x.charCodeAt(0))
    want((d.grants === 'pass') === task.issuerKey.length > 0 && equal(issuer, task.issuerKey), 'issuer_key', hex(task.issuerKey.slice(0, 8)), 'the declared one (D15)')
    want(d.grants === undefined || grants().isIssuerKey(issuer), 'issuer_key', 'none', 'RSASSA-PSS of 2,048 bits (B42)')
    this.honest = this.declared(d)
    this.delta = Math.min(plan.delta, p.max_delta || Infinity)
    for (const i of plan.phases.keys()) this.phases.push(this.agree(i))
    this.epsilon = Math.max(...this.phases.map((f) => f.epsilon))
    this.repeated = [this.epsilon]
  }

  /** Checks the plan against the declaration, which is what people read; returns the honest fraction that is relied upon. */
  private declared(d: Declaration): Fraction {
    const { plan, task, policy } = this
    want((plan.practical !== undefined) === isPractical(d), 'plan', 'practical', 'schedule.plan as declared')
    want(d.name === task.name, 'declaration: name', d.name, task.name)
    want(d.silo === undefined, 'silo', 'declared', 'none: organisations publish with ingest publish')
    want(trustWords.get(plan.trust) === d.privacy.trust, 'plan.trust', plan.trust, d.privacy.trust)
    const byUser = d.privacy.unit === 'user'
    want((plan.unit === Unit.user) === byUser, 'plan.unit', plan.unit, 'that of privacy.unit')
    want(plan.radius === (byUser ? this.reporter.userRadius() : 0), 'plan.radius', plan.radius, 'the declared one')
    const honest = Fraction.parse(plan.honestFraction)
    want(honest.equals(Fraction.parse(d.privacy.honest_fraction)), 'plan.honest_fraction', plan.honestFraction, d.privacy.honest_fraction)
    const local = plan.trust === Trust.local
    want(!local || honest.equals(Fraction.parse('1')), 'plan.honest_fraction', plan.honestFraction, '1 under trust local')
    const suite = d.privacy.seal === 'none' ? Suite.none : d.privacy.suite === 'mlkem768x25519' ? Suite.mlkem768X25519 : Suite.x25519
    want(task.suite === suite, 'suite', task.suite, `${suite}, as privacy.seal and privacy.suite declare`)
    want(plan.epsilonBudget <= d.privacy.epsilon, 'plan.epsilon_budget', plan.epsilonBudget, `at most ${d.privacy.epsilon}`)
    want(plan.delta <= d.privacy.delta, 'plan.delta', plan.delta, `at most ${d.privacy.delta}`)
    const start = d.model.start?.replace(/^sha256:/, '') ?? ''
    want(hex(plan.startHash) === start, 'plan.start_hash', hex(plan.startHash), `${start}, as declared`)
    const own = policy.honest_fraction === undefined ? null : Fraction.parse(policy.honest_fraction)
    return !local && own !== null && own.less(honest) ? own : honest
  }

  /** The epsilon that one task may cost one user. */
  get limit(): number {
    return this.policy.max_epsilon || this.plan.epsilonBudget
  }

  private agree(i: number): PhaseTerms {
    const f = this.plan.phases[i]!
    const at = `plan.phases[${i}]`
    const params = paramsOf(f.mechanism!)
    const { reporter, policy } = this
    const rounds = stintOf(this.plan, i).rounds
    want(params.dim === reporter.dim(f.statistic), `${at}.mechanism.dim`, params.dim, `${reporter.dim(f.statistic)}, as declared`)
    const norm = reporter.norm(f.statistic)
    // Another program computed the norm: its last digits may differ, and the own one is what reports are clipped to.
    want(Math.abs(params.clipNorm - norm) <= 1e-12 * norm, `${at}.mechanism.clip_norm`, params.clipNorm, `${norm}, as declared`)
    want(f.mechanism!.scores === reporter.scores(f.statistic), `${at}.mechanism.scores`, f.mechanism!.scores, 'as declared')
    want(f.minimum >= BigInt(policy.min_cohort ?? 0), `${at}.minimum`, f.minimum, `at least ${policy.min_cohort}`)
    want(f.top === 0n || params.trials === 0 || Number(f.minimum) >= (policy.own_share ?? 0) * Number(f.cohort), `${at}.minimum`,
      f.minimum, `at least ${policy.own_share} of ${f.cohort}`)
    want(rounds <= (policy.max_rounds_per_user ?? Infinity), `${at}.rounds_per_user`, rounds, `at most ${policy.max_rounds_per_user}`)
    return { params, statistic: f.statistic, rounds, epsilon: this.afford(at, costliest(this.plan, i)) }
  }

  /** The cost of a round with the others of its stint; throws where it is more than the limit. */
  private afford(what: string, at: Place): number {
    const of = `${at.index} ${at.planned}` // what a cost follows from, beside the task
    const cost = this.costs.get(of) ?? epsilon(1, [releases(this.plan, at, this.honest, 'F11')], this.delta, this.limit)
    this.costs.set(of, cost)
    want(cost <= this.limit * (1 + tolerance), `${what}: epsilon`, `${cost} at delta ${this.delta}`, `at most ${this.limit}`)
    return cost
  }

  /** What so many participations of one event cost together. */
  cost(times: number): number {
    const starts = this.plan.phases.map((f, i) => ({ f, i })).filter(({ f }) => !f.again)
    while (this.repeated.length < times) {
      const last = this.repeated[this.repeated.length - 1]!
      if (last > maxEpsilon) return last
      const of = starts.map(({ i }) => releases(this.plan, costliest(this.plan, i), this.honest, 'F11'))
      this.repeated.push(Math.max(last, epsilon(this.repeated.length + 1, of, this.delta, this.limit)))
    }
    return this.repeated[Math.max(times, 1) - 1]!
  }

  /** Whether an event may pay for so many participations. */
  affords(times: number): boolean {
    return times <= 1 || this.cost(times) <= this.limit * (1 + tolerance)
  }

  /** Whether each report has a token of an issuer. */
  get hasGrants(): boolean {
    return this.task.issuerKey.length > 0
  }

  get hasFloors(): boolean {
    return this.plan.trust === Trust.pan || this.plan.trust === Trust.shufflePan
  }

  /** The most bytes of a report of one user. */
  get bytes(): number {
    return Math.max(...this.phases.map((f) => reportBytes(f.params)))
  }

  /** The most bytes of one user's sealed message: all that leaves of an event, whatever it is. */
  get messageBytes(): number {
    const { suite } = this.task
    const [encapsulated, tag] = suite === Suite.none ? [0, 0] : [suite === Suite.x25519 ? 32 : 1120, 16]
    const zeros = (n: number): Bytes => new Uint8Array(n)
    return Report.encode({
      version, taskHash: this.hash, ids: [zeros(16)], encapsulated: zeros(encapsulated), ciphertext: zeros(this.bytes + (this.hasGrants ? grants().tokenBytes : 0) + tag),
    }).length
  }

  /** Decides about a round that was verified under the task's learner key, and returns its place. Throws Refused. */
  round(r: RoundBody, manifest: Bytes, known?: Bytes): Place {
    const at = `round ${r.round}`
    want(equal(r.taskHash, this.hash), `${at}: task_hash`, hex(r.taskHash), 'that of the task')
    const place = placeOf(this.plan, r.step)
    if (place === null || r.step > r.round) throw new Refused(`${at}: step`, r.step, 'a step of the plan, at most the round')
    const f = place.phase
    const framed = this.plan.practical !== undefined && f.statistic !== Statistic.moments
    const point = f.statistic === Statistic.gradient ? f.mechanism!.dim - f.mechanism!.scores : 0
    want(r.point.length === point, `${at}: point`, r.point.length, `${point} values`)
    want((r.frame !== undefined) === framed, `${at}: frame`, r.frame !== undefined, framed ? 'a frame' : 'none')
    want(r.deadlineMs === 0n || (this.plan.staleMs > 0n && r.deadlineMs >= this.plan.deadlineMs && r.deadlineMs <= this.plan.staleMs),
      `${at}: deadline_ms`, r.deadlineMs, 'within the plan')
    want(f.top === 0n ? r.cohort === 0n : r.cohort >= f.minimum && r.cohort <= f.top, `${at}: cohort`, r.cohort, 'within the plan')
    want(known === undefined || equal(known, manifest), `${at}: manifest hash`, hex(manifest), 'that which this device answered before')
    if (r.frame !== undefined) this.reporter.checkFrame(r.frame, f.statistic === Statistic.matrix)
    const most = framed ? 1e12 : this.radius()
    want(normOf(r.point) <= most * (1 + tolerance), `${at}: point`, normOf(r.point), `a norm of at most ${most}`)
    this.afford(at, place)
    return f.top > 0n ? { ...place, cohort: r.cohort } : place
  }

  /** The radius of the declared set. */
  private radius(): number {
    const { set, radius = 0, min = 0, max = 0 } = this.declaration.model
    return set === 'box' ? Math.sqrt(this.reporter.loss.parameters(this.map.dim)) * Math.max(Math.abs(min), Math.abs(max)) : radius
  }

  /** Throws for a round that no honest learner announces after another. */
  order(old: RoundBody, r: RoundBody): void {
    if (r.round <= old.round) return
    const place = placeOf(this.plan, old.step)
    const least = old.step + (place !== null && place.stint.rounds > 1 ? 1n : 0n)
    const most = old.step + (r.round - old.round)
    want(r.step >= least && r.step <= most, `round ${r.round}: step`, r.step, `${least} to ${most}`)
    // -0 and what is no number are what they are.
    const frames = (a: RoundBody): string => JSON.stringify(a.frame ?? null, (_, v: unknown) => (typeof v === 'number' && !v ? (Object.is(v, -0) ? '-0' : String(v)) : v))
    want(old.point.length === 0 || (place?.phase.top ?? 0n) > 0n || frames(old) === frames(r), `round ${r.round}: frame`, 'another',
      `that of round ${old.round}`)
  }
}
