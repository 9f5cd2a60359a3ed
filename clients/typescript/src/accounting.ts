// (epsilon, delta) of releases by Theorem A: docs/proofs/theorem-a.md, whose notation this module has, and package
// randomizer/accounting, whose windows it evaluates. Every figure is an upper bound; the margins are those of section 7.
import { density, logUpper, quantile, upper } from './normal.js'
import { Trust } from './wire.js'

const one = 2 ** 24 // p = coin / one

/** The largest epsilon that is searched for; beyond it nothing is promised. */
export const maxEpsilon = 60

// The binomial law, in Loader's saddle-point form ("Fast and Accurate Computation of Binomial Probabilities", 2000).

// ln(n!) - ln(sqrt(2 pi n) (n/e)^n) of 0 .. 15; entry 0 is never used.
const smallStirling = [0, 0.0810614667953272582, 0.0413406959554092941, 0.0276779256849983391, 0.0207906721037650931,
  0.0166446911898211922, 0.0138761288230707480, 0.0118967099458917701, 0.0104112652619720965, 0.0092554621827127329,
  0.0083305634333628713, 0.0075736754879518408, 0.0069428401072095299, 0.0064089941880042071, 0.0059513701127588477,
  0.0055547335519628014]

function stirlingError(n: number): number {
  if (n < 16) return smallStirling[n]!
  const y = 1 / (n * n)
  return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - y / 1188) * y) * y) * y) / n
}

/** x ln(x/m) + m - x for m = x - diff, without cancellation. */
function deviance(x: number, diff: number): number {
  const m = x - diff
  let v = diff / (x + m)
  if (Math.abs(v) >= 0.5) return x * Math.log(x / m) - diff
  let s = diff * v
  let term = 2 * x * v
  v *= v
  for (let j = 3; ; j += 2) {
    term *= v
    const next = s + term / j
    if (next === s) return s
    s = next
  }
}

/** Pr[Bin(n, coin/2^24) = x]. */
function pmf(x: number, n: number, coin: number): number {
  if (x < 0 || x > n) return 0
  const p = coin / one
  if (x === 0) return Math.exp(n * Math.log1p(-p))
  if (x === n) return Math.exp(n * Math.log1p(p - 1))
  const diff = Number((BigInt(x) << 24n) - BigInt(coin) * BigInt(n)) / one
  const y = n - x
  const e = stirlingError(n) - stirlingError(x) - stirlingError(y) - deviance(x, diff) - deviance(y, -diff)
  return Math.exp(e) * Math.sqrt(n / (2 * Math.PI * x * y))
}

/** The first of 0 .. n for which ok is true, which it stays; n where there is none. */
function first(n: number, ok: (i: number) => boolean): number {
  let lo = 0
  let hi = n
  while (lo < hi) {
    const middle = Math.floor((lo + hi) / 2)
    if (ok(middle)) hi = middle
    else lo = middle + 1
  }
  return lo
}

/** A compensated sum (Neumaier). */
export class Sum {
  private s = 0
  private c = 0
  add(v: number): number {
    const t = this.s + v
    this.c += Math.abs(this.s) >= Math.abs(v) ? this.s - t + v : v - t + this.s
    this.s = t
    return this.s + this.c
  }
}

// Windows and their scalars.

const rungs = 173 // of the ladder tau_k = 10^(-2-k/4), down to 1e-45
const tableFloor = 1e-67 // beyond it is the last digit of every sum that is used

/** What Theorem A needs of one window. */
interface Level {
  rung: number
  tau: number
  m1: number
  theta1: number
  mu1: number
  theta2: number
  k: number
}

/** The scalars of the cells between the central one and the last one that was added. */
class Running {
  private t: number | null = null
  m1 = 0
  theta1 = 0
  mu1 = 0
  theta2 = 0
  k0 = 0
  k1 = 0

  constructor(private readonly monotone: (a: number, b: number) => number) {}

  add(d0: number, d1: number, a: number): void {
    const th = this.t === null ? d0 - d1 : this.monotone(this.t, d0 - d1)
    this.t = th
    this.m1 = Math.max(this.m1, d0 - th / 2, d1 + th / 2)
    this.theta1 = Math.max(this.theta1, Math.abs(th))
    this.mu1 = Math.max(this.mu1, a)
    this.theta2 = Math.max(this.theta2, Math.abs(th), 2 * Math.abs(d0 - a), 2 * Math.abs(a - d1))
    this.k0 = Math.max(this.k0, d0 - a - th / 2)
    this.k1 = Math.max(this.k1, th / 2 + d1 - a)
  }
}

const join = (l: Running, r: Running): Omit<Level, 'rung' | 'tau'> => {
  const up = (v: number): number => v * (1 + 1e-9) + 2e-12
  return {
    m1: up(Math.max(l.m1, r.m1)), theta1: up(Math.max(l.theta1, r.theta1)), mu1: up(Math.max(l.mu1, r.mu1)),
    theta2: up(Math.max(l.theta2, r.theta2)), k: up((Math.max(l.k0, r.k0) + Math.max(l.k1, r.k1)) / 4),
  }
}

/** The levels of Bin(n, p): for every rung the narrowest window whose tails hold at most tau_k/2 each. */
function profile(n: number, coin: number): Level[] {
  const mode = Math.min(Math.floor((n + 1) * (coin / one)), n)
  const from = first(mode, (x) => pmf(x, n, coin) >= tableFloor)
  const to = mode + first(n - mode, (x) => pmf(mode + 1 + x, n, coin) < tableFloor)
  const size = to - from + 1
  const q = Float64Array.from({ length: size }, (_, i) => pmf(from + i, n, coin))
  const below = new Float64Array(size + 1) // Pr[B < from + i]
  const above = new Float64Array(size + 1) // Pr[B >= from + i]
  const f = new Sum()
  for (let i = 0; i < size; i++) below[i + 1] = f.add(q[i]!)
  const s = new Sum()
  for (let i = size - 1; i >= 0; i--) above[i] = s.add(q[i]!)

  let least = 0
  while (least < size && ((from === 0 && least === 0) || below[least] === 0)) least++
  let most = size
  while (most > 0 && above[most] === 0) most--
  const windows: { rung: number; lo: number; hi: number }[] = []
  for (let rung = 0; rung < rungs; rung++) {
    const half = 10 ** (-2 - rung / 4) / 2
    const lo = Math.max(first(size + 1, (i) => below[i]! > half) - 1, least)
    const hi = Math.min(first(size + 1, (i) => above[i]! <= half), most)
    if (hi - lo < 3 || below[lo + 1]! >= 0.5 || above[hi - 1]! >= 0.5) continue
    const last = windows[windows.length - 1]
    if (last === undefined || last.lo !== lo || last.hi !== hi) windows.push({ rung, lo, hi })
  }
  const deepest = windows[windows.length - 1]
  if (deepest === undefined) return []

  const z = new Float64Array(deepest.hi - deepest.lo + 1)
  for (let i = 0; i < z.length; i++) {
    const mass = below[deepest.lo + i]!
    z[i] = mass <= 0.5 ? -quantile(mass) : quantile(Math.min(above[deepest.lo + i]!, 0.5))
  }
  // Cell i lies between z[i-1] and z[i].
  let centre = 1
  for (let i = 2; i < z.length; i++) {
    if (Math.abs(z[i]! + z[i - 1]!) < Math.abs(z[centre]! + z[centre - 1]!)) centre = i
  }
  const left = new Running(Math.min)
  const right = new Running(Math.max)
  const walk = (r: Running, i: number): void => {
    const mass = q[deepest.lo + i - 1]!
    r.add(mass / density(z[i]!), mass / density(z[i - 1]!), z[i]! - z[i - 1]!)
  }
  const levels: Level[] = []
  let l = centre
  let r = centre // next cell of each walk
  for (const w of windows) {
    const lo = w.lo - deepest.lo
    const hi = w.hi - deepest.lo
    if (lo + 1 > centre || hi < centre) continue
    for (; r <= hi; r++) walk(right, r)
    for (; l >= lo + 1; l--) walk(left, l)
    levels.push({ rung: w.rung, tau: (below[w.lo]! + above[w.hi]!) * (1 + 1e-9), ...join(left, right) })
  }
  return levels
}

/** What one adversary sees of one target, whose report is hidden by so many trials in a coordinate, in some rounds. */
export interface View {
  trials: bigint
  coin: number
  levels: number
  dim: number
  rounds: number
  units: number
}

const maxVariance = 2.5e9 // of the largest table

/** Bin(n', p) with n' > n is post-processing of Bin(n, p), so fewer trials bound more from above. */
function affordable(trials: bigint, coin: number): number {
  const p = coin / one
  const unit = p * ((one - coin) / one)
  const n = Number(trials)
  return Math.min(n * unit > maxVariance ? Math.trunc(maxVariance / unit) : n, 2 ** 37)
}

const profiles = new Map<string, Level[]>()

function profileOf(v: View): Level[] {
  const n = affordable(v.trials, v.coin)
  const key = `${n}/${v.coin}`
  let known = profiles.get(key)
  if (known === undefined) {
    known = profile(n, v.coin)
    if (profiles.size >= 128) profiles.delete(profiles.keys().next().value!)
    profiles.set(key, known)
  }
  return known
}

/** The Gaussian parameter that dominates one round: of one event, or of one of several units, at a level. */
function muOf(v: View, s: Level): number {
  const root = Math.sqrt(v.dim)
  if (v.units > 1) { // the shift theorem
    const shift = (v.levels / v.units) * (1 + 1e-15)
    const w = Math.min(shift, root / 4)
    return Math.min(s.m1 * shift + (s.theta1 / 2) * w, s.mu1 * shift + (s.theta2 / 2) * w + s.k * root)
  }
  const ball = (x: number, y: number): number => {
    const length = Math.hypot(x, y)
    if ((v.levels * y) / length <= root / 4) return v.levels * length
    return x * Math.sqrt((v.levels - root / 4) * (v.levels + root / 4)) + (y * root) / 4
  }
  return Math.min(ball(s.m1, s.theta1 / 2), ball(s.mu1, s.theta2 / 2) + s.k * root)
}

// Curves: the minimum over windows of a Gaussian's delta and the mass outside.

interface Point {
  mu: number
  slack: number // charged 1 + e^eps times
}

/** How often one of several sets of views is looked at; each choice may depend on all that was seen before. */
interface Turns {
  times: number
  of: View[][]
}

/** The curve of all turns, whatever each chooses: at every rung the largest mu and the largest slack. */
function worst(all: Turns[]): Point[] {
  const curve: Point[] = []
  for (let rung = 0; rung < rungs; rung++) {
    let square = 0
    let slack = 0
    let fresh = false
    let whole = true
    for (const turn of all) {
      let mostSquare = 0
      let mostSlack = 0
      for (const views of turn.of) {
        let oneSquare = 0
        let oneSlack = 0
        for (const v of views) {
          const level = profileOf(v).findLast((l) => l.rung <= rung)
          if (level === undefined) {
            whole = false
            continue
          }
          fresh ||= level.rung === rung
          const mu = muOf(v, level)
          oneSquare += v.rounds * mu * mu
          oneSlack += v.rounds * v.dim * level.tau
        }
        mostSquare = Math.max(mostSquare, oneSquare)
        mostSlack = Math.max(mostSlack, oneSlack)
      }
      square += turn.times * mostSquare
      slack += turn.times * mostSlack
    }
    if (whole && fresh) curve.push({ mu: Math.sqrt(square) * (1 + 1e-12), slack: slack * (1 + 1e-12) })
  }
  return curve
}

/** Bounds the delta of the Gaussian mechanism from above (Balle and Wang 2018, Theorem 8). */
export function gaussianDelta(eps: number, mu: number): number {
  if (mu <= 0) return 0
  if (mu === Infinity) return 1
  const a = eps / mu - mu / 2
  const c = eps / mu + mu / 2
  if (a > 37) return 1e-298 // Q(37) < 6e-300
  const x = eps + logUpper(c) - logUpper(a) - 1e-15 * (1 + eps + c * c)
  const d = upper(a) * -Math.expm1(x) * (1 + 1e-9)
  return d < 1 ? Math.max(d, 1e-298) : 1
}

function deltaOf(curve: Point[], eps: number): number {
  let best = 1
  const charge = (1 + Math.exp(eps)) * (1 + 1e-12)
  for (const p of curve) {
    const slack = charge * p.slack
    if (slack < best) best = Math.min(best, gaussianDelta(eps, p.mu) + slack)
  }
  return best
}

/** An epsilon at which the curve was evaluated to be at most delta, and which bisection does not improve. */
function epsilonOf(curve: Point[], delta: number): number {
  const ok = (eps: number): boolean => deltaOf(curve, eps) <= delta
  if (ok(0)) return 0
  let lo = 0
  let hi = 1e-3
  while (!ok(hi)) {
    if (hi >= maxEpsilon) return Infinity
    lo = hi
    hi = Math.min(hi * 1.5, maxEpsilon)
  }
  while (hi - lo > 1e-10 * hi && hi > 1e-12) {
    const middle = lo + (hi - lo) / 2
    if (ok(middle)) hi = middle
    else lo = middle
  }
  return hi
}

// Releases, as a plan announces them.

/** An exact fraction in (0, 1]: the share of a planned cohort whose noise is relied upon. */
export class Fraction {
  private constructor(private readonly num: bigint, private readonly den: bigint) {}

  /** Reads a decimal or a quotient of at most 18 digits each; throws for anything else. */
  static parse(text: string): Fraction {
    const refuse = (): never => {
      throw new Error('want a decimal or a/b in (0, 1], at most 18 digits')
    }
    const decimal = /^(\d+)(?:\.(\d+))?$/.exec(text)
    const quotient = /^(\d+)\/(\d+)$/.exec(text)
    let num: string
    let den: string
    if (text.length > 48) return refuse()
    if (quotient) [num, den] = [quotient[1]!, quotient[2]!]
    else if (decimal) {
      const digits = (decimal[2] ?? '').replace(/0+$/, '')
      if (digits.length > 18) return refuse()
      ;[num, den] = [decimal[1]! + digits, '1' + '0'.repeat(digits.length)]
    } else return refuse()
    const [a, b] = [BigInt(num), BigInt(den)]
    if (a === 0n || a > b || b > 10n ** 18n) return refuse()
    return new Fraction(a, b)
  }

  /** The whole part of this share of n. */
  floor(n: bigint): bigint {
    return (this.num * n) / this.den
  }

  get isOne(): boolean {
    return this.num === this.den
  }

  less(other: Fraction): boolean {
    return this.num * other.den < other.num * this.den
  }

  equals(other: Fraction): boolean {
    return this.num * other.den === other.num * this.den
  }
}

/** Whether a text is such a fraction. */
export function isFraction(text: string): boolean {
  try {
    return Fraction.parse(text) !== null
  } catch {
    return false
  }
}

/** What is public about the releases of one phase. */
export interface Release {
  trust: number
  users: bigint // the planned cohort
  dim: number
  levels: number
  trials: bigint // of each report
  coin: number
  floorTrials: bigint
  honest: Fraction
  rounds: number // that one user takes part in
  units: number
}

const hasFloors = (trust: number): boolean => trust === Trust.pan || trust === Trust.shufflePan

/** What the learner sees of a target, and who looks into the stage once; null where no floor hides anybody from that. */
function views(r: Release): { learner: View[]; intruder: View[] | null } {
  const view = (trials: bigint, rounds: number): View =>
    ({ trials, coin: r.coin, levels: r.levels, dim: r.dim, rounds, units: r.units })
  const honest = r.trust === Trust.local ? r.trials : r.honest.floor(r.users) * r.trials + 2n * r.floorTrials
  const learner = [view(honest, r.rounds)]
  if (!hasFloors(r.trust)) return { learner, intruder: null }
  const intruder = [view(r.trials + r.floorTrials, 1)]
  if (r.rounds > 1) intruder.push(view(honest, r.rounds - 1))
  return { learner, intruder }
}

/** The curves of all that the adversaries of some releases see; null where one is beyond what Theorem A is evaluated for. */
function curves(times: number, of: Release[][]): Point[][] | null {
  const seen = of.map((releases) => releases.flatMap((r) => views(r).learner))
  const looked = of.flatMap((releases) => releases.map((_, at) => {
    const all: View[] = []
    for (const [i, r] of releases.entries()) {
      const v = views(r)
      if (i === at && v.intruder === null) return null
      all.push(...(i === at ? v.intruder! : v.learner))
    }
    return all
  }).filter((v) => v !== null))
  for (const v of [...seen, ...looked].flat()) {
    if (v.trials < 1n) return null
  }
  const out = [worst([{ times, of: seen }])]
  if (looked.length > 0) out.push(worst([{ times: times - 1, of: seen }, { times: 1, of: looked }]))
  return out
}

/**
 * Returns what up to so many participations of one user cost at delta, an upper bound; Infinity beyond maxEpsilon. Each
 * of them is in all releases of one of the lists, and in all rounds of each; which may depend on what was seen before.
 * An intruder looks into one round of all. Where the bound lies above limit by the last digits of the search alone, the
 * limit is returned, at which delta was evaluated to be met.
 */
export function epsilon(times: number, of: Release[][], delta: number, limit = Infinity): number {
  const all = curves(times, of)
  if (all === null) return Infinity
  const found = Math.max(...all.map((c) => epsilonOf(c, delta)))
  return found > limit && all.every((c) => deltaOf(c, limit) <= delta) ? limit : found
}
