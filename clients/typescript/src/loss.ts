// Losses of linear scores and their gradients (docs/reference/algorithms.md, Losses; learner/convex of the Go device).
import type { Declaration } from './declaration.js'
import { Refused } from './declaration.js'
import { labelKind, normOf } from './features.js'
import { rare } from './parts.js'

/** A score is a convex function of one linear score. */
interface Score {
  value(s: number, y: number): number
  /** The p of the subdifferential at s - c p, for c of at least 0: with c = 0 the derivative. */
  slope(s: number, y: number, c: number): number
}

const within = (r: number, c: number, low: number, high: number): number =>
  r === 0 ? 0 : Math.min(Math.max(r / c, low), high)

/** 1/(1 + e^u). */
const sigmoid = (u: number): number => (u > 0 ? Math.exp(-u) / (1 + Math.exp(-u)) : 1 / (1 + Math.exp(u)))

/** The q in [0, 1] with q = sigmoid(u + c q): the slope of the logistic loss's envelope. Bisection, in the same steps. */
function sigmoidSlope(u: number, c: number): number {
  if (c === 0) return sigmoid(u)
  let low = 0
  let high = 1
  for (let i = 0; i < 60; i++) {
    const q = (low + high) / 2
    if (q < sigmoid(u + c * q)) low = q
    else high = q
  }
  return (low + high) / 2
}

const logistic: Score = {
  value: (s, y) => Math.max(-y * s, 0) + Math.log1p(Math.exp(-Math.abs(y * s))),
  slope: (s, y, c) => -y * sigmoidSlope(y * s, c),
}

/** The logistic loss corrected for labels that are flipped with a known probability. */
function denoised(rho: number, weights: readonly number[]): Score {
  const own = weights.map((w) => ((1 - rho) * w) / (1 - 2 * rho))
  const other = weights.map((_, i) => (rho * weights[1 - i]!) / (1 - 2 * rho))
  const at = (y: number): [number, number] => {
    const i = y > 0 ? 1 : 0
    return [own[i]! - other[i]!, other[i]! * y]
  }
  return {
    value: (s, y) => {
      const [keep, tilt] = at(y)
      return keep * logistic.value(s, y) - tilt * s
    },
    slope: (s, y, c) => {
      const [keep, tilt] = at(y)
      return keep * logistic.slope(s + c * tilt, y, c * keep) - tilt
    },
  }
}

function scoreOf(d: Declaration): Score {
  const { loss, width = 0, level = 0, score_bound: bound = 0, label_noise: rho = 0, class_weights: weights } = d.model
  switch (loss) {
    case 'logistic': return rho > 0 ? denoised(rho, weights ?? [1, 1]) : logistic
    case 'hinge': return { value: (s, y) => Math.max(0, 1 - y * s), slope: (s, y, c) => -y * within(1 - y * s, c, 0, 1) }
    case 'smoothed-hinge': return {
      value: (s, y) => {
        const r = Math.max(0, 1 - y * s)
        return r <= width ? ((r / width) * r) / 2 : r - width / 2
      },
      slope: (s, y, c) => -y * within(1 - y * s, width + c, 0, 1),
    }
    case 'squared': return { value: (s, y) => ((s - y) * (s - y)) / 2, slope: (s, y, c) => (s - y) / (1 + c) }
    case 'huber': return {
      value: (s, y) => {
        const r = Math.abs(s - y)
        return r <= width ? (r * r) / 2 : width * (r - width / 2)
      },
      slope: (s, y, c) => within(s - y, 1 + c, -width, width),
    }
    case 'absolute': return { value: (s, y) => Math.abs(s - y), slope: (s, y, c) => within(s - y, c, -1, 1) }
    case 'quantile': return {
      value: (s, y) => Math.max(-level * (s - y), (1 - level) * (s - y)),
      slope: (s, y, c) => within(s - y, c, -level, 1 - level),
    }
    case 'poisson': {
      const top = Math.exp(bound)
      return {
        value: (s, y) => {
          let mean = Math.exp(Math.min(s, bound))
          if (s > bound) mean += mean * (s - bound)
          return y <= 0 ? mean : mean - y + y * (Math.log(y) - s)
        },
        slope: (s, y, c) => {
          const u = s + c * y
          return u >= bound + c * top ? top - y : Math.min(expSlope(u, c), top) - y
        },
      }
    }
  }
  throw new Refused('declaration: model.loss', loss, 'a loss that this device knows')
}

/** The m with m = exp(u - c m): bisection in ln m, in the same steps for all. */
function expSlope(u: number, c: number): number {
  if (c === 0) return Math.exp(u)
  let low = -745
  let high = u
  for (let i = 0; i < 80; i++) {
    const t = (low + high) / 2
    if (t < u - c * Math.exp(t)) low = t
    else high = t
  }
  return Math.exp((low + high) / 2)
}

const dot = (a: readonly number[], b: readonly number[], from = 0): number => {
  let sum = 0
  for (let j = 0; j < b.length; j++) sum += a[from + j]! * b[j]!
  return sum
}

/** A loss, with the weights of its classes. */
export class Loss {
  readonly many: boolean // several scores, one a class
  private readonly score: Score | null
  private readonly weights: readonly number[] | null

  constructor(d: Declaration, readonly classes: number) {
    this.many = labelKind(d.model.loss) === 'classes'
    this.score = this.many ? null : scoreOf(d)
    this.weights = d.model.label_noise ? null : (d.model.class_weights ?? null)
  }

  /** The number of parameters for rows of so many values. */
  parameters(dim: number): number {
    return this.many ? this.classes * dim : dim
  }

  private weight(y: number): number {
    if (this.weights === null) return 1
    return this.weights[this.many ? y : y > 0 ? 1 : 0]!
  }

  scores(theta: readonly number[], x: readonly number[]): number[] {
    const n = this.many ? this.classes : 1
    return Array.from({ length: n }, (_, k) => dot(theta, x, k * x.length))
  }

  /** The loss of a point on a row; c > 0 smooths it. */
  value(theta: readonly number[], x: readonly number[], y: number, c = 0): number {
    const z = this.scores(theta, x)
    if (this.score !== null) {
      if (c === 0) return this.weight(y) * this.score.value(z[0]!, y)
      const p = this.score.slope(z[0]!, y, c)
      return this.weight(y) * (this.score.value(z[0]! - c * p, y) + (c * p * p) / 2)
    }
    const top = Math.max(...z)
    let sum = 0
    for (const v of z) sum += Math.exp(v - top)
    return this.weight(y) * (Math.log(sum) + top - z[y]!)
  }

  /** The gradient at a point; c > 0 smooths the loss in its score. */
  gradient(theta: readonly number[], x: readonly number[], y: number, c = 0): number[] {
    const z = this.scores(theta, x)
    const w = this.weight(y)
    if (this.score !== null) {
      const p = w * this.score.slope(z[0]!, y, c)
      return x.map((v) => p * v)
    }
    const top = Math.max(...z)
    const e = z.map((v) => Math.exp(v - top))
    let sum = 0
    for (const v of e) sum += v
    return e.flatMap((v, k) => {
      const p = w * (v / sum - (k === y ? 1 : 0))
      return x.map((u) => p * u)
    })
  }

  /**
   * The gradient of the loss or, with smoothing above 0, of its Moreau envelope with that parameter. That of several
   * scores is the gradient of the loss that is kept from rising faster than limit; who asks clips the others.
   */
  clipped(theta: readonly number[], x: readonly number[], y: number, smoothing: number, limit: number): number[] {
    const w = this.weight(y)
    if (this.score === null) {
      const slopes = rare().clippedSlopes(this.scores(theta, x), y, normOf(x), smoothing / w, limit / w)
      return slopes.flatMap((p) => x.map((v) => w * p * v))
    }
    const p = w * this.score.slope(dot(theta, x), y, smoothing > 0 ? (dot(x, x) / smoothing) * w : 0)
    return x.map((v) => p * v)
  }

  /** Whether the class that the scores say is that of the label. */
  correct(theta: readonly number[], x: readonly number[], y: number): boolean {
    const z = this.scores(theta, x)
    if (!this.many) return (z[0]! > 0 ? 1 : -1) === y
    return z.indexOf(Math.max(...z)) === y
  }
}
