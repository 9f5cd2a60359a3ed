// What a report is about: moments, their matrix, or the gradient at the round's point with that point's scores after it
// (docs/reference/protocol.md, Phases; learner/report and learner/practical of the Go device).
import type { Declaration } from './declaration.js'
import { Refused } from './declaration.js'
import { clip, hasCorner, normOf, type Example, type FeatureMap } from './features.js'
import { Loss } from './loss.js'
import { Statistic, type Bodied, type Frame } from './wire.js'

export type FrameBody = Bodied<typeof Frame>

const maxScale = 1e12
const labelWeight = 3
const numberCut = 0.6
const featureCut = 0.5
const matrixDim = 512

/** The scores that follow a gradient: the loss, and of classes whether the prediction was correct. */
export interface Scorecard {
  norm: number // w
  low: number
  high: number
  correctness: boolean
  labelNoise: number
}

export const isPractical = (d: Declaration): boolean => d.schedule.plan === 'practical'

/** What one row contributes to a report, before it is encoded. */
export class Reporter {
  readonly loss: Loss
  readonly card: Scorecard | null
  private readonly indicators: boolean[]
  private readonly numbers: number // features that are no indicators

  constructor(readonly map: FeatureMap) {
    this.loss = new Loss(map.d, map.classes)
    this.indicators = map.indicators()
    this.numbers = this.indicators.filter((i) => !i).length
    this.card = this.scorecard()
  }

  private scorecard(): Scorecard | null {
    const { d } = this.map
    const v = d.validation
    if (v === undefined || v.off) return null
    const high = v.loss_bound || this.lossBound()
    const noise = d.model.label_noise ?? 0
    return {
      norm: (v.weight ?? 0.25) * this.userRadius() * this.clipNorm(), low: noise > 0 ? -high : 0, high,
      correctness: this.map.kind === 'two' || this.map.kind === 'classes', labelNoise: noise,
    }
  }

  /** The largest loss of a model of zeros, of classes three times as much, rounded up to two digits. */
  private lossBound(): number {
    const labels = this.map.kind === 'two' ? [-1, 1] : this.map.kind === 'classes'
      ? Array.from({ length: this.map.classes }, (_, i) => i) : this.map.labelRange()
    let most = 0
    for (const y of labels) most = Math.max(most, this.loss.value(new Array<number>(this.loss.parameters(1)).fill(0), [0], y))
    if (this.card?.correctness ?? (this.map.kind === 'two' || this.map.kind === 'classes')) most *= 3
    if (!(most > 1e-100)) return 1
    const digit = 10 ** (Math.floor(Math.log10(most)) - 1)
    return Math.ceil(most / digit - 1e-6) * digit
  }

  /** The norm that the gradient of a row is clipped to. */
  clipNorm(): number {
    return isPractical(this.map.d) ? 1 : (this.map.d.model.clip_norm ?? 0)
  }

  /** The share of the clip norm to which the mean over a person's rows is clipped; 1 where rows are protected. */
  userRadius(): number {
    const { user, privacy } = this.map.d
    if (privacy.unit !== 'user' || user === undefined) return 1
    return user.radius || 1 / Math.sqrt(Math.max(1, user.items))
  }

  private get centred(): boolean {
    const { d } = this.map
    return d.intercept !== 0 && d.model.set === 'ball'
  }

  private get matrixable(): boolean {
    return this.map.kind !== 'two' && this.map.kind !== 'classes' && this.map.d.model.set === 'ball' && this.map.dim <= matrixDim
  }

  private labelDim(): number {
    return this.map.kind === 'two' ? 1 : this.map.kind === 'classes' ? this.map.classes : 2
  }

  /** The number of coordinates of a report, scores included. */
  dim(statistic: number): number {
    const d = this.map.dim
    switch (statistic) {
      case Statistic.moments: return this.map.features + this.numbers + this.labelDim()
      case Statistic.matrix: return (d * (d + 1)) / 2 + d + 1
    }
    return this.loss.parameters(d) + this.scores(statistic)
  }

  /** The number of scores of a report. */
  scores(statistic: number): number {
    return statistic !== Statistic.gradient || this.card === null ? 0 : this.card.correctness ? 2 : 1
  }

  /** The norm of a report, scores included: the clip norm of its mechanism. */
  norm(statistic: number): number {
    if (statistic === Statistic.moments) return this.momentsNorm()
    if (statistic === Statistic.matrix) return this.clipNorm()
    const radius = this.map.d.privacy.unit === 'user' ? this.userRadius() : 1
    return this.card === null ? radius * this.clipNorm() : normOf([radius * this.clipNorm(), this.card.norm])
  }

  private momentsNorm(): number {
    const square = this.map.longest * this.map.longest
    if (this.map.classes === 0) return numberCut * Math.sqrt(square + 2 * labelWeight * labelWeight)
    const numbers = this.numbers < this.map.features ? Math.min(square, this.numbers) : square
    return Math.sqrt(square + 1 - (1 - featureCut * featureCut) * numbers)
  }

  /** Throws unless an honest learner may announce the frame. */
  checkFrame(f: FrameBody, matrix: boolean): void {
    const want = (ok: boolean, what: string): void => {
      if (!ok) throw new Refused('frame', 'another', what)
    }
    const small = (v: number): boolean => Math.abs(v) <= maxScale
    const positive = (v: number): boolean => v >= 1 / maxScale && v <= maxScale
    const n = this.map.features
    const d = this.map.dim
    const intercept = this.map.d.intercept !== 0
    want(f.center.length === n && f.center.every((c) => small(c) && (c === 0 || intercept)), 'a center of each feature')
    want(f.scale.length === n && f.scale.every(positive), 'a scale of each feature')
    want(intercept ? positive(f.intercept) : f.intercept === 0, 'an intercept where the task has one')
    want(positive(f.bound) && positive(f.clip), 'a bound and a clip')
    want(f.smoothing === 0 || (positive(f.smoothing) && !matrix && hasCorner(this.map.d.model.loss)), 'smoothing of losses with a corner')
    want(f.whitener.length === 0 || f.whitener.length === (d * (d + 1)) / 2, 'a triangle as whitener')
    want(f.whitener.every(small), 'a finite whitener')
    want(f.whitener.length === 0 || (!matrix && d <= matrixDim && this.map.d.model.set === 'ball' &&
      (this.matrixable || (!intercept && this.map.d.model.start === undefined))), 'a whitener where something could have chosen it')
    want(matrix === (f.labelScale !== 0), 'a label in a round of the matrix alone')
    want((f.labelCenter === 0 && f.labelScale === 0 && f.labelWeight === 0) ||
      (small(f.labelCenter) && positive(f.labelScale) && positive(f.labelWeight)), 'a label of sane size')
  }

  /**
   * The vector of a report: of one event, or the mean over a person's rows, with the means of their scores. A row that is
   * none of the task's, null, counts as zeros and costs the work of one.
   */
  unit(statistic: number, rows: readonly (Example | null)[], point: readonly number[], frame: FrameBody | undefined, smoothing = 0): number[] {
    const out = new Array<number>(this.dim(statistic)).fill(0)
    for (const e of rows) {
      const v = this.written(statistic, e ?? { x: new Array<number>(this.map.dim).fill(0), y: this.blankLabel() }, point, frame, smoothing)
      if (e !== null) for (const [j, x] of v.entries()) out[j]! += x / rows.length
    }
    if (statistic !== Statistic.gradient || this.map.d.privacy.unit !== 'user') return out
    const at = out.length - this.scores(statistic)
    const gradient = out.slice(0, at)
    clip(gradient, this.userRadius() * this.clipNorm())
    return [...gradient, ...out.slice(at)]
  }

  private blankLabel(): number {
    return this.map.kind === 'two' ? 1 : 0
  }

  private written(statistic: number, e: Example, point: readonly number[], frame: FrameBody | undefined, smoothing: number): number[] {
    const u = frame === undefined ? e.x : inFrame(frame, e.x)
    let v: number[]
    if (statistic === Statistic.moments) v = this.moments(e)
    else if (statistic === Statistic.matrix) v = matrix(frame!, u, e.y)
    else v = this.gradient(u, e.y, point, frame, smoothing)
    if (frame !== undefined) v = v.map((g) => g / frame.clip)
    clip(v, statistic === Statistic.moments ? this.momentsNorm() : this.clipNorm())
    if (statistic !== Statistic.gradient) return v
    return this.card === null ? v : [...v, ...this.scored(this.card, u, e.y, point)]
  }

  private gradient(u: number[], y: number, point: readonly number[], frame: FrameBody | undefined, smoothing: number): number[] {
    if (frame === undefined) return this.loss.clipped(point, u, y, smoothing, this.clipNorm())
    const g = smoothing > 0 ? this.loss.clipped(point, u, y, smoothing, Infinity) : this.loss.gradient(point, u, y, frame.smoothing)
    if (frame.whitener.length === 0) return g
    const blocks: number[] = []
    for (let i = 0; i < g.length; i += u.length) blocks.push(...whitened(frame.whitener, g.slice(i, i + u.length)))
    return blocks
  }

  /** The scores of a point on a row: of the loss itself, whatever the frame smooths. */
  private scored(card: Scorecard, u: number[], y: number, point: readonly number[]): number[] {
    const unit = card.norm / Math.sqrt(card.correctness ? 2 : 1)
    const loss = this.loss.value(point, u, y)
    const at = (Math.min(Math.max(loss, card.low), card.high) - card.low) / (card.high - card.low)
    const out = [unit * at - unit * (1 - at)]
    if (card.correctness) out.push(this.loss.correct(point, u, y) ? unit : -unit)
    if (!out.every(Number.isFinite)) return out.map(() => 0)
    clip(out, card.norm)
    return out
  }

  /** Features as declared, the squares of those that are no indicators, and the label. */
  private moments(e: Example): number[] {
    const x = e.x.slice(0, this.map.features)
    const squares = x.filter((_, j) => !this.indicators[j]).map((v) => v * v)
    const label = new Array<number>(this.labelDim()).fill(0)
    if (this.map.kind === 'two') label[0] = e.y
    else if (this.map.kind === 'classes') label[e.y] = 1
    else {
      const y = this.unitLabel(e.y)
      label[0] = labelWeight * y
      label[1] = labelWeight * y * y
    }
    return [...x, ...squares, ...label]
  }

  /** A number in its range as [-1, 1], a count as a share of the largest. */
  private unitLabel(y: number): number {
    const [low, high] = this.map.labelRange()
    let middle = low / 2 + high / 2
    let half = high / 2 - low / 2
    if (this.map.kind === 'counts') [middle, half] = [0, high]
    else if (!this.centred) [middle, half] = [0, Math.max(Math.abs(low), Math.abs(high))]
    return Math.min(Math.max((y - middle) / half, -1), 1)
  }
}

/** A row in the coordinates of a frame. */
export function inFrame(f: FrameBody, x: readonly number[]): number[] {
  const u = f.center.map((c, j) => (x[j]! - c) * f.scale[j]!)
  clip(u, f.bound)
  if (f.intercept !== 0) u.push(f.intercept)
  return u
}

/** The whitener, a lower triangle row after row of a symmetric matrix, times a vector. */
function whitened(w: readonly number[], g: readonly number[]): number[] {
  const at = (i: number, j: number): number => (i >= j ? w[(i * (i + 1)) / 2 + j]! : w[(j * (j + 1)) / 2 + i]!)
  return g.map((_, i) => g.reduce((sum, v, j) => sum + at(i, j) * v, 0))
}

/** The products of a row in the frame of the matrix, and with its label. */
function matrix(f: FrameBody, u: readonly number[], y: number): number[] {
  const q = Math.min(Math.max((y - f.labelCenter) / f.labelScale, -3), 3)
  const out: number[] = []
  for (const [i, v] of u.entries()) {
    for (let j = 0; j < i; j++) out.push(Math.SQRT2 * v * u[j]!)
    out.push(v * v)
  }
  for (const v of u) out.push(f.labelWeight * q * v)
  out.push(f.labelWeight * q * q)
  return out
}
