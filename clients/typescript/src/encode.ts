// The randomizer (randomizer/vectorsum.go): vectors are clipped, placed on the lattice in exact integers, rounded without
// bias, and get exact binomial noise.
import { binomial, count, fair, type Words } from './binomial.js'
import type { Bytes } from './bytes.js'

/** The parameters of one round's randomizer. */
export interface Params {
  dim: number // d
  clipNorm: number // L
  levels: number // g
  trials: number // b
  coin: number // p = coin / 2^24
  units: number // K, the fewest units that a report is about; 1 of an event
  window: number // w of trust local; 0 of others
  minimizer: boolean // the report is one vector of norm at most clipNorm, whatever it is about
}

const one = 2 ** 24 // steps of a level

/** The norm of x: its root is of squares of x divided by unit, which is 1 unless squares overflow. Null: not finite. */
function norm(x: readonly number[]): { length: number; unit: number } | null {
  if (!x.every(Number.isFinite)) return null
  const sum = (unit: number): number => {
    let total = 0
    for (const v of x) total += (v / unit) * (v / unit)
    return total
  }
  const plain = sum(1)
  if (plain !== Infinity) return { length: Math.sqrt(plain), unit: 1 }
  const unit = Math.max(...x.map(Math.abs))
  return { length: Math.sqrt(sum(unit)), unit }
}

/** Cuts a vector to integers in the ball of a radius, and verifies that in integers. */
function inBall(x: readonly number[], clip: number, radius: number): number[] {
  const n = norm(x)
  if (n === null) return x.map(() => 0)
  const scale = n.unit === 1 && n.length <= clip ? radius / clip : radius / n.length
  const limit = BigInt(radius) * BigInt(radius)
  for (let factor = 1, gap = 2 ** -51; ; factor = Math.max(0, 1 - gap), gap *= 2) {
    const cut = x.map((v) => Math.trunc((v / n.unit) * (scale * factor)))
    let sum = 0n
    for (const v of cut) sum += BigInt(v) * BigInt(v)
    if (sum <= limit) return cut.map((v) => v + 0) // no -0
  }
}

/** Where a report about some units lies, in steps of 2^-24 of a level from the centre. */
export function place(vectors: readonly (readonly number[])[], p: Params): number[] {
  const of = p.minimizer ? 1 : p.units
  if (vectors.length > of) throw new Error(`${vectors.length} units in a report about ${of}`)
  const radius = Math.floor((p.levels * fair) / of)
  const sum = new Array<number>(p.dim).fill(0)
  for (const x of vectors) {
    if (x.length !== p.dim) throw new Error(`${x.length} values, not ${p.dim}`)
    inBall(x, p.clipNorm, radius).forEach((v, j) => (sum[j]! += v))
  }
  return sum
}

/** Draws the counts of a place. */
export function draw(words: Words, where: readonly number[], p: Params): number[] {
  const { levels, trials, coin } = p
  const rounded = (at: number, bits: number): number => {
    const up = at + levels * fair
    const floor = Math.floor(up / one)
    return floor + ((bits & (one - 1)) < up - floor * one ? 1 : 0)
  }
  let counts: number[]
  if (trials === 0 || (coin === fair && trials <= 40)) {
    counts = where.map((at) => {
      const w = words.next()
      return rounded(at, w.low) + count(w, 24, trials)
    })
  } else {
    let w = { low: 0, high: 0 }
    counts = where.map((at, j) => {
      if (j % 2 === 0) w = words.next()
      return rounded(at, j % 2 === 0 ? w.low : w.high)
    })
    counts = counts.map((c) =>
      c + (coin === fair && trials <= 64 ? count(words.next(), 0, trials) : binomial(words, trials, coin)))
  }
  if (p.window === 0) return counts
  const moved = Math.floor(p.window / 2) - Math.floor(trials / 2)
  return counts.map((c) => Math.min(Math.max(c + moved, 0), levels + p.window))
}

/** The bits of one count in a report. */
export const countBits = (p: Params): number => (p.levels + (p.window || p.trials)).toString(2).length

/** The bytes of one report. */
export const reportBytes = (p: Params): number => Math.ceil((p.dim * countBits(p)) / 8)

/** Packs counts: count j takes the bits js to (j+1)s - 1, the least significant first. */
export function pack(counts: readonly number[], p: Params): Bytes {
  const size = countBits(p)
  const out = new Uint8Array(reportBytes(p))
  counts.forEach((c, j) => {
    for (let i = 0, bit = j * size; i < size; i++, bit++) {
      if (Math.floor(c / 2 ** i) % 2 === 1) out[bit >> 3]! |= 1 << (bit & 7)
    }
  })
  return out
}
