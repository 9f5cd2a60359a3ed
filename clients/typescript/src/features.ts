// From an event to the vector of a task (docs/reference/tasks.md; learner/task of the Go device). A FeatureMap is made of
// the declaration alone. What the vector is decides accuracy alone: whatever it is, the randomizer puts it into its ball.
import { utf8 } from './bytes.js'
import type { Column, Declaration } from './declaration.js'
import { Refused } from './declaration.js'
import { hashSeed, murmur3 } from './murmur.js'
import { rare, type Fourier, type PublicMap } from './parts.js'
import type { PublicModel } from './public.js'

/** An event: the values of its columns and of its label, by their names. */
export type Event = Record<string, unknown>

/** A vector and a label, as the loss sees it. */
export interface Example {
  x: number[] // with the intercept as the last value, where the task has one
  y: number
}

/** Unfit is thrown for an event that is none of the task's: it is reported as the zero vector. */
export class Unfit extends Error {
  override name = 'Unfit'
}

const none = -1 // the position of what sets no indicator
const longestNumber = 128 // bytes of a text that may be a number
const hatRoom = 2 ** -51

/** A text without the blanks around it: of Unicode's, which are not those of trim. */
function trimmed(s: string): string {
  let [a, b] = [0, s.length]
  while (a < b && /\p{White_Space}/u.test(s[a]!)) a++
  while (b > a && /\p{White_Space}/u.test(s[b - 1]!)) b--
  return s.slice(a, b)
}

/** The text of a value, as a csv file has it; of what is missing the empty text. */
export function fieldText(value: unknown): string {
  switch (typeof value) {
    case 'string': return trimmed(value)
    case 'number': return String(value)
    case 'boolean': return value ? 'true' : 'false'
    case 'undefined': return ''
  }
  if (value === null) return ''
  throw new Unfit('not a number, a string, true or false')
}

/** Reads a number as Go does; NaN is one. */
export function parseNumber(s: string): number {
  if (/^nan$/i.test(s)) return NaN
  if (!/^[+-]?(\d+(_\d+)*\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(s) || s.includes('_')) throw new Unfit('not a number')
  const x = Number(s)
  if (!Number.isFinite(x)) throw new Unfit('not a finite number')
  return x
}

/** A text without marks, wherever they are in it. */
function unmarked(s: string, marks: readonly string[]): string {
  if (utf8(s).length > longestNumber) throw new Unfit('a number that is too long')
  for (const m of marks) s = s.replaceAll(m, '')
  return trimmed(s)
}

const clamp = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high)

/** The map of a number to its coordinate. */
class Affine {
  constructor(private readonly c: Pick<Column, 'kind' | 'min' | 'max' | 'scale' | 'mean' | 'std' | 'clip' | 'unit'>) {}

  apply(x: number): number {
    const { kind, min = 0, max = 0, scale, mean = 0, std = 1, clip = 3, unit = 0 } = this.c
    if (kind === 'indicator') return x >= 0.5 ? 1 : 0
    if (scale === 'standard' || scale === 'log') {
      const base = scale === 'log' ? Math.sign(x) * Math.log1p(Math.abs(x) / unit) : x
      return clamp((base - mean) * (1 / std), -clip, clip)
    }
    const v = clamp(x, min, max)
    switch (scale) {
      case 'unit': return Math.min((v - min) / (max - min), 1)
      case 'symmetric': return clamp((v - min) / (max - min) - (max - v) / (max - min), -1, 1)
    }
    return v
  }

  /** The largest magnitude of a coordinate. */
  get bound(): number {
    const { kind, min = 0, max = 0, scale, clip = 3 } = this.c
    if (kind === 'indicator') return 1
    if (scale === 'standard' || scale === 'log') return clip
    return scale === 'raw' ? Math.max(Math.abs(min), Math.abs(max)) : 1
  }
}

/** One column: where it is read from, and what becomes of it. */
export class Input {
  readonly affine: Affine
  private readonly seed: number
  private readonly index: Map<string, number>
  private readonly tokens: readonly string[]
  private readonly numbers: readonly number[]

  constructor(readonly c: Column, readonly first: number) {
    this.affine = new Affine(c)
    this.seed = hashSeed(c.column)
    this.index = new Map((c.vocabulary ?? []).map((w, i) => [w, i]))
    this.tokens = c.missing?.tokens ?? []
    this.numbers = this.tokens.flatMap((t) => {
      try {
        const x = parseNumber(t)
        return Number.isNaN(x) ? [] : [x]
      } catch {
        return []
      }
    })
  }

  get isNumber(): boolean {
    return this.c.kind === 'numeric' || this.c.kind === 'indicator'
  }

  /** The number of positions, of hats and texts of coordinates, and 1 of a number. */
  get positions(): number {
    return positionsOf(this.c)
  }

  private isMissing(s: string): boolean {
    return s === '' || this.tokens.includes(s)
  }

  private readNumber(s: string): number | null {
    if (this.isMissing(s)) return null
    if (this.c.part !== undefined) return rare().datePart(s, this.c.part)
    const rest = unmarked(s, this.c.marks ?? [])
    if (rest === '') return null
    const x = parseNumber(rest)
    return Number.isNaN(x) || this.numbers.includes(x) ? null : x
  }

  /** The number before the scale, null where it is missing. */
  quantity(event: Event): number | null {
    const x = this.readNumber(fieldText(event[this.c.field ?? this.c.column]))
    if (this.c.over === undefined) return x
    const y = this.readNumber(fieldText(event[this.c.over]))
    if (x === null || y === null || y === 0 || !Number.isFinite(x / y)) return null
    return x / y
  }

  /** The value of the column: a scaled number, a position, or a place among knots; and whether it is missing. */
  value(event: Event): { value: number; missing: boolean } {
    const { c } = this
    switch (c.kind) {
      case 'onehot-group': return { value: this.member(event), missing: false }
      case 'categorical': return this.word(fieldText(event[c.column]))
      case 'text': {
        const s = fieldText(event[c.column])
        return { value: none, missing: this.isMissing(s) }
      }
      case 'hashed': return { value: murmur3(utf8(fieldText(event[c.column])), this.seed) % c.buckets!, missing: false }
    }
    const x = this.quantity(event)
    if (c.kind === 'bucketed') {
      return x === null ? { value: none, missing: true } : { value: c.edges!.filter((e) => e <= x).length, missing: false }
    }
    if (c.kind === 'hats') return x === null ? { value: none, missing: true } : { value: this.place(x), missing: false }
    return { value: this.affine.apply(x ?? c.missing!.fill!) + 0, missing: x === null }
  }

  private word(s: string): { value: number; missing: boolean } {
    const { c } = this
    const at = this.index.get(s)
    if (at !== undefined) return { value: at, missing: false }
    if (this.isMissing(s)) {
      const word = c.missing?.word
      const vacant = word !== undefined ? c.vocabulary!.indexOf(word) : c.unknown === 'other' ? c.vocabulary!.length : none
      return { value: vacant, missing: true }
    }
    if (c.unknown === 'other') return { value: c.vocabulary!.length, missing: false }
    if (c.unknown === 'drop') return { value: none, missing: false }
    throw new Unfit('not in the vocabulary')
  }

  private member(event: Event): number {
    let at = none
    let set = 0
    for (const [i, name] of this.c.columns!.entries()) {
      const x = this.readNumber(fieldText(event[name]))
      if (x !== null && x >= 0.5) {
        at = i
        set++
      }
    }
    if (set > 1) throw new Unfit('several columns of the group are 1')
    return at
  }

  /** x between the outer knots, on the scale of the knots: i + (x - t_i)/(t_(i+1) - t_i). */
  private place(x: number): number {
    const knots = this.c.knots!
    const v = clamp(x, knots[0]!, knots[knots.length - 1]!)
    const i = Math.max(knots.findIndex((t) => t >= v) - 1, 0)
    return i + (v - knots[i]!) / (knots[i + 1]! - knots[i]!)
  }

  /** The buckets that the words of a text fall into, each once. */
  buckets(event: Event): number[] {
    return rare().bucketsOf(fieldText(event[this.c.column]), this.c.words ?? 256, this.c.buckets!, this.seed)
  }
}

function positionsOf(c: Column): number {
  switch (c.kind) {
    case 'categorical': return c.vocabulary!.length + (c.unknown === 'other' ? 1 : 0)
    case 'hashed':
    case 'text': return c.buckets!
    case 'bucketed': return c.edges!.length + 1
    case 'hats': return c.knots!.length
    case 'onehot-group': return c.columns!.length
  }
  return 1
}

const widthOf = (c: Column): number => (c.hidden ? 0 : c.missing?.indicator ? 2 : positionsOf(c))

interface Cross {
  first: number
  inputs: Input[]
  number: Input | null
  buckets: number // 0: one indicator for each combination
  seed: number
  width: number
}

/** The products of n values: positions that do not decrease, of two, then of three. */
function products(n: number, degree: number): number[][] {
  const out: number[][] = []
  for (let i = 0; i < n; i++) for (let j = i; j < n; j++) out.push([i, j])
  if (degree === 3) for (let i = 0; i < n; i++) for (let j = i; j < n; j++) for (let k = j; k < n; k++) out.push([i, j, k])
  return out
}

/** Scales a vector down to a norm. */
export function clip(x: number[], most: number): void {
  const n = normOf(x)
  if (n > most) for (const j of x.keys()) x[j]! *= most / n
}

/** The norm of a vector, which squares that overflow do not spoil. */
export function normOf(x: readonly number[]): number {
  let sum = 0
  for (const v of x) sum += v * v
  return sum < Infinity ? Math.sqrt(sum) : Math.hypot(...x)
}

export type LabelKind = 'two' | 'classes' | 'numbers' | 'counts'

/** The losses that this device knows: the kind of their labels, whether the gradient is Lipschitz, and whether a corner is rounded off. */
const losses: Record<string, { labels: LabelKind, smooth?: boolean, rounded?: boolean }> = {
  logistic: { labels: 'two', smooth: true },
  softmax: { labels: 'classes', smooth: true },
  squared: { labels: 'numbers', smooth: true },
  huber: { labels: 'numbers', smooth: true },
  absolute: { labels: 'numbers' },
  quantile: { labels: 'numbers' },
  hinge: { labels: 'two' },
  'smoothed-hinge': { labels: 'two', smooth: true, rounded: true },
  poisson: { labels: 'counts', smooth: true },
}

/** Whether this device knows a loss. */
export const isLoss = (loss: string): boolean => Object.hasOwn(losses, loss)

/** Whether the gradient of a loss that this device knows is Lipschitz. */
export const isSmooth = (loss: string): boolean => losses[loss]!.smooth === true

/** Whether a loss that this device knows has a corner, sharp or rounded off: then a plan may smooth its slopes. */
export const hasCorner = (loss: string): boolean => !isSmooth(loss) || losses[loss]!.rounded === true

/** The kind of label that a loss has; throws for a loss that this device does not know. */
export function labelKind(loss: string): LabelKind {
  if (!isLoss(loss)) throw new Refused('declaration: model.loss', loss, 'a loss that this device knows')
  return losses[loss]!.labels
}

/** One spelling of a label: of a number its value. */
function classKey(s: string): string {
  const t = trimmed(s)
  try {
    if (utf8(t).length <= longestNumber) {
      const x = parseNumber(t)
      if (!Number.isNaN(x)) return String(x + 0)
    }
  } catch {
    // a word
  }
  return t
}

/** Turns events into the vectors of a task. */
export class FeatureMap {
  readonly inputs: Input[] = []
  readonly dim: number // of a vector, with the intercept
  readonly features: number // without it
  readonly longest: number // norm that features are scaled down to
  readonly kind: LabelKind
  readonly classes: number // of labels that are classes; else 0
  readonly publicModel: PublicModel | null
  private readonly crosses: Cross[] = []
  private readonly products: Input[][]
  private readonly fourier: Fourier | null
  private readonly fourierInputs: Input[]
  private readonly public: PublicMap | null
  private readonly scales: number[] | null
  private readonly labels = new Map<string, number>()
  private readonly numbers: Affine | null
  private readonly vector: Affine | null // of each value

  constructor(readonly d: Declaration, publicFile?: PublicModel) {
    const f = d.features
    this.publicModel = publicFile ?? null
    this.vector = f.vector ? new Affine({ ...f.vector }) : null
    let at = f.vector && !f.vector.hidden ? f.vector.dimension : 0
    for (const c of f.columns ?? []) {
      this.inputs.push(new Input(c, c.hidden ? none : at))
      at += widthOf(c)
    }
    const find = (name: string, number: boolean): Input => {
      const found = this.inputs.find((in_) => in_.c.column === name && in_.isNumber === number)
      if (found === undefined) throw new Refused('declaration: features', name, 'the name of a column')
      return found
    }
    for (const x of f.crosses ?? []) {
      const inputs = x.columns.map((name) => find(name, false))
      const combinations = inputs.reduce((n, in_) => n * in_.positions, 1)
      const cross = {
        first: at, inputs, number: x.number === undefined ? null : find(x.number, true), buckets: x.buckets ?? 0,
        seed: hashSeed(...x.columns), width: x.buckets || combinations,
      }
      this.crosses.push(cross)
      at += cross.width
    }
    const factors = (f.polynomial?.columns ?? []).map((name) => find(name, true))
    this.products = products(factors.length, f.polynomial?.degree ?? 2).map((p) => p.map((i) => factors[i]!))
    at += this.products.length
    this.fourierInputs = (f.fourier?.columns ?? []).map((name) => find(name, true))
    this.fourier = f.fourier ? new (rare().Fourier)(f.fourier, f.vector?.dimension ?? this.fourierInputs.length) : null
    at += f.fourier?.dimension ?? 0
    this.public = publicFile ? new (rare().PublicMap)(publicFile, this.inputs, f.vector) : null
    at += this.public?.width ?? 0
    this.features = at
    this.dim = at + (d.intercept !== 0 ? 1 : 0)
    this.scales = f.scales ?? f.precondition?.second_moments.map((h) => 1 / Math.sqrt(h + f.precondition!.damping)) ?? null
    this.longest = d.norm_bound > 0 ? d.norm_bound : this.declaredBound()
    const l = d.label
    this.kind = labelKind(d.model.loss)
    for (const w of l.negative ?? []) this.labels.set(classKey(w), -1)
    for (const w of l.positive ?? []) this.labels.set(classKey(w), 1)
    for (const [i, w] of (l.classes ?? []).entries()) this.labels.set(classKey(w), i)
    this.classes = this.kind === 'two' ? 2 : (l.classes?.length ?? 0)
    this.numbers = this.kind === 'numbers' || this.kind === 'counts' ? new Affine(labelColumn(d)) : null
  }

  /** The range of labels, as the loss sees numbers and counts. */
  labelRange(): [number, number] {
    const { min = 0, max = 0 } = this.d.label
    if (this.kind === 'counts') return [0, max]
    return this.kind === 'numbers' ? [this.seen(min), this.seen(max)] : [0, 0]
  }

  /** The largest norm of the features that the declaration allows, the intercept left out. */
  private declaredBound(): number {
    const { d } = this
    const f = d.features
    let at = 0
    let sum = 0
    let room = 1
    const one = (b: number): number => {
      const scale = this.scales?.[at] ?? 1
      at++
      return (b * scale) ** 2
    }
    const among = (n: number, b: number): number => {
      let most = 0
      for (let i = 0; i < n; i++) most = Math.max(most, one(b))
      return most
    }
    const v = f.vector
    if (v !== undefined && !v.hidden) {
      const squares = Array.from({ length: v.dimension }, () => one(this.vector!.bound)).sort((a, b) => a - b)
      for (const x of squares.slice(v.dimension - v.max_nonzeros)) sum += x
    }
    for (const in_ of this.inputs) {
      const { c } = in_
      if (c.hidden) continue
      if (in_.isNumber) {
        const present = one(in_.affine.bound)
        if (c.missing?.indicator) {
          at--
          sum += Math.max(present, one(Math.abs(in_.affine.apply(c.missing.fill!))) + one(1))
        } else sum += present
        continue
      }
      if (c.kind === 'hats') room += hatRoom
      if (c.kind === 'text') room += hatRoom * Math.min(c.buckets!, c.words ?? 256)
      sum += among(widthOf(c), 1)
    }
    for (const x of this.crosses) sum += among(x.width, x.number?.affine.bound ?? 1)
    for (const p of this.products) sum += one(p.reduce((b, in_) => b * in_.affine.bound, 1))
    for (let i = 0; i < (f.fourier?.dimension ?? 0); i++) sum += one(Math.sqrt(2 / f.fourier!.dimension))
    for (let i = 0; i < (this.public?.width ?? 0); i++) sum += one(1)
    return Math.sqrt(sum * room)
  }

  /** Which coordinates, the intercept left out, are 0 or 1 in every event: their squares are themselves. */
  indicators(): boolean[] {
    const f = this.d.features
    const out = new Array<boolean>(this.features).fill(false)
    const bounded = this.d.norm_bound > 0 && this.d.norm_bound < this.declaredBound()
    if (bounded) return out
    const mark = (first: number, n: number): void => {
      for (let j = first; j < first + n; j++) out[j] = (this.scales?.[j] ?? 1) === 1
    }
    for (const in_ of this.inputs) {
      const { c } = in_
      if (c.hidden) continue
      switch (c.kind) {
        case 'hats':
        case 'text': break
        case 'numeric':
          if (c.missing?.indicator) mark(in_.first + 1, 1)
          break
        default: mark(in_.first, widthOf(c))
      }
    }
    if (f.vector?.kind === 'indicator' && !f.vector.hidden) mark(0, f.vector.dimension)
    let at = this.own
    for (const x of this.crosses) {
      if (x.number === null || x.number.c.kind === 'indicator') mark(x.first, x.width)
      at += x.width
    }
    for (const p of this.products) {
      if (p.every((in_) => in_.c.kind === 'indicator')) mark(at, 1)
      at++
    }
    return out
  }

  /** The coordinates of the columns and of the vector, which come first. */
  private get own(): number {
    const v = this.d.features.vector
    return this.inputs.reduce((n, in_) => n + widthOf(in_.c), v && !v.hidden ? v.dimension : 0)
  }

  /** The scaled values of a vector: {value: [...]}, or {index: [...], value: [...]} with the places of those that are not 0. */
  private vectorOf(event: Event): number[] {
    const { dimension } = this.d.features.vector!
    const { index, value } = event as { index?: unknown; value?: unknown }
    if (!Array.isArray(value) || !value.every((v) => typeof v === 'number' && Number.isFinite(v))) throw new Unfit('not a vector')
    const x = new Array<number>(dimension).fill(0)
    if (index === undefined) {
      if (value.length !== dimension) throw new Unfit('another number of values')
      return value.map((v: number) => this.vector!.apply(v) + 0)
    }
    if (!Array.isArray(index) || index.length !== value.length) throw new Unfit('another number of indices')
    let last = -1
    for (const [k, at] of index.entries()) {
      if (!Number.isInteger(at) || at <= last || at >= dimension) throw new Unfit('indices out of order')
      x[at] = this.vector!.apply(value[k] as number) + 0
      last = at
    }
    return x
  }

  /** The label of an event, before an offset. */
  private label(event: Event): number {
    const s = fieldText(event[this.d.label.column ?? 'label'])
    if (this.kind === 'two' || this.kind === 'classes') {
      const y = this.labels.get(classKey(s))
      if (y === undefined) throw new Unfit('not one of the declared labels')
      return y
    }
    const y = parseNumber(unmarked(s, this.d.label.marks ?? []))
    if (Number.isNaN(y) || (this.kind === 'counts' && (y < 0 || !Number.isInteger(y)))) throw new Unfit('not a label')
    return y
  }

  /** Maps an event; throws Unfit for one that is none of the task's. */
  map(event: Event): Example {
    if (typeof event !== 'object' || event === null || Array.isArray(event)) throw new Unfit('not an object')
    const x = new Array<number>(this.features).fill(0)
    const values = new Map<Input, number>()
    const scaled = this.vector === null ? [] : this.vectorOf(event)
    if (this.vector !== null && !this.d.features.vector!.hidden) for (const [j, v] of scaled.entries()) x[j] = v
    for (const in_ of this.inputs) {
      const { value, missing } = in_.value(event)
      values.set(in_, value)
      if (in_.first === none) continue
      const { c, first } = in_
      if (in_.isNumber) {
        x[first] = value
        if (c.missing?.indicator) x[first + 1] = missing ? 1 : 0
      } else if (c.kind === 'text') {
        const set = missing ? [] : in_.buckets(event)
        for (const b of set) x[first + b] = 1 / Math.sqrt(set.length)
      } else if (value === none) continue
      else if (c.kind === 'hats') {
        const i = Math.min(Math.floor(value), c.knots!.length - 2)
        x[first + i] = 1 - (value - i)
        x[first + i + 1] = value - i
      } else x[first + value] = 1
    }
    const label = this.label(event)
    let at = this.own
    for (const cross of this.crosses) {
      at += cross.width
      let position = 0
      let whole = true
      for (const in_ of cross.inputs) {
        const v = values.get(in_)!
        whole &&= v !== none
        position = (Math.imul(position, in_.positions) + v) >>> 0
      }
      if (!whole) continue
      if (cross.buckets > 0) {
        const little = Uint8Array.of(position, position >>> 8, position >>> 16, position >>> 24)
        position = murmur3(little, cross.seed) % cross.buckets
      }
      x[cross.first + position] = cross.number === null ? 1 : values.get(cross.number)!
    }
    for (const p of this.products) x[at++] = p.reduce((v, in_) => v * values.get(in_)!, 1)
    if (this.fourier !== null) {
      const sources = this.vector === null ? this.fourierInputs.map((in_) => values.get(in_)!) : scaled
      for (const i of this.fourier.phases.keys()) x[at++] = this.fourier.at(i, sources)
    }
    let offset = 0
    if (this.public !== null) {
      const p = this.public.outputs(event, values, scaled)
      for (const o of p.coordinates) x[at++] = o
      if (this.d.label.offset) offset = p.offset
    }
    if (this.scales !== null) for (const j of x.keys()) x[j]! *= this.scales[j]!
    clip(x, this.longest)
    if (this.d.intercept !== 0) x.push(this.d.intercept)
    return { x, y: this.numbers === null ? label : this.seen(label - offset) }
  }

  /** A number as the loss sees it. */
  private seen(y: number): number {
    const { scale, unit = 1 } = this.d.label
    return this.numbers!.apply(scale === 'log' ? toLog(y, unit) : y)
  }
}

const toLog = (x: number, unit: number): number => Math.sign(x) * Math.log1p(Math.abs(x) / unit)

/** The map of a label, as that of a column; of scale log the map of its logarithm. */
function labelColumn(d: Declaration): Column {
  const { min = 0, max = 0, scale = 'symmetric', unit = 1 } = d.label
  if (scale === 'log') return { column: '', kind: 'numeric', min: toLog(min, unit), max: toLog(max, unit), scale: 'symmetric' }
  return { column: '', kind: 'numeric', min, max, scale: labelKind(d.model.loss) === 'counts' ? 'raw' : scale }
}
