import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SystemWords, binomial, fair, flips, type Words } from '../src/binomial.js'
import { hex } from '../src/bytes.js'
import { draw, pack, place, type Params } from '../src/encode.js'
import { messageId } from '../src/seal.js'
import { Report } from '../src/wire.js'
import { unhex } from '../src/bytes.js'
import { vectors } from './vectors.js'

interface Drawn {
  name: string
  dim: number
  clip_norm: number
  levels: number
  trials: number
  coin: number
  units?: number
  window?: number
  minimizer?: boolean
  words: string[]
  x?: number[]
  unit_vectors?: number[][]
  position: number[]
  counts: number[]
  packed: string
}

/** Words of a list, and an error behind its end. */
function listed(words: string[]): Words & { left(): number } {
  let at = 0
  return {
    next() {
      const w = words[at++]
      if (w === undefined) throw new Error('draws more words than the vector has')
      return { low: parseInt(w.slice(8), 16), high: parseInt(w.slice(0, 8), 16) }
    },
    left: () => words.length - at,
  }
}

const params = (v: Omit<Drawn, 'name' | 'position' | 'counts' | 'packed' | 'words'>): Params => ({
  dim: v.dim, clipNorm: v.clip_norm, levels: v.levels, trials: v.trials, coin: v.coin, units: v.units ?? 1,
  window: v.window ?? 0, minimizer: v.minimizer ?? false,
})

test('places, counts and bytes are those of the vectors', () => {
  for (const v of vectors<Drawn[]>('randomizer')) {
    const p = params(v)
    const where = place(v.unit_vectors ?? [v.x!], p)
    assert.deepEqual(where, v.position, v.name)
    const words = listed(v.words)
    const counts = draw(words, where, p)
    assert.deepEqual(counts, v.counts, v.name)
    assert.equal(words.left(), 0, `${v.name}: words are left`)
    assert.equal(hex(pack(counts, p)), v.packed, v.name)
  }
})

interface Reported extends Omit<Drawn, 'position' | 'counts' | 'packed' | 'words'> {
  attempt: number
  open: string
  users: { id: string; words: string[]; x: number[] }[]
  plaintext: string
  report: string
  message_id: string
}

test('messages without encryption are those of the vectors', () => {
  for (const v of vectors<Reported[]>('report')) {
    const p = params(v)
    const plaintext = v.users.map((u) => hex(pack(draw(listed(u.words), place([u.x], p), p), p))).join('')
    assert.equal(plaintext, v.plaintext, v.name)
    const report = Report.decode(unhex(v.report))
    assert.equal(hex(report.ciphertext), plaintext, v.name)
    assert.deepEqual(report.ids.map(hex), v.users.map((u) => u.id), v.name)
    assert.equal(hex(messageId(report.ids[0]!, BigInt(v.attempt), unhex(v.open))), v.message_id, v.name)
  }
})

/** The probabilities of Bin(n, coin/2^24), by logarithms. */
function law(n: number, coin: number): number[] {
  const p = coin / 2 ** 24
  const lgamma: number[] = [0]
  for (let k = 1; k <= n; k++) lgamma.push(lgamma[k - 1]! + Math.log(k))
  return lgamma.map((l, k) => Math.exp(lgamma[n]! - l - lgamma[n - k]! + k * Math.log(p) + (n - k) * Math.log1p(-p)))
}

// Chi-squared of draws from the system's generator: no seed, so the limit is that of one chance in 10^9 for each law.
test('draws follow the binomial distribution', () => {
  const words = new SystemWords()
  const draws = process.env['PANLEARN_DEEP'] ? 1_000_000 : 40_000
  for (const [n, coin] of [[7, 2796203], [40, fair], [200, fair], [300, fair], [5000, 1193046]] as const) {
    const seen = new Array<number>(n + 1).fill(0)
    for (let i = 0; i < draws; i++) seen[binomial(words, n, coin)]!++
    let chi = 0
    let cells = 0
    let rest = 0
    let restWanted = 0
    law(n, coin).forEach((q, k) => {
      const wanted = q * draws
      if (wanted < 20) {
        rest += seen[k]!
        restWanted += wanted
        return
      }
      chi += (seen[k]! - wanted) ** 2 / wanted
      cells++
    })
    if (restWanted >= 1) {
      chi += (rest - restWanted) ** 2 / restWanted
      cells++
    }
    // Wilson and Hilferty: the cube root of chi/f is nearly normal with mean 1 - 2/(9f) and variance 2/(9f).
    const f = cells - 1
    const z = (Math.cbrt(chi / f) - (1 - 2 / (9 * f))) / Math.sqrt(2 / (9 * f))
    assert.ok(z < 6, `Bin(${n}, ${coin}): chi-squared ${chi} with ${f} degrees of freedom`)
  }
})

test('words that were fetched are not kept', () => {
  const words = new SystemWords()
  flips(words, 64, fair)
  words.erase()
  assert.ok((words as unknown as { pool: Uint32Array }).pool.every((w) => w === 0))
})

test('what is no vector of the task is the zero vector, and a wrong length an error', () => {
  const p = params({ dim: 2, clip_norm: 1, levels: 4, trials: 3, coin: fair })
  for (const x of [[NaN, 0], [0, Infinity], [-Infinity, NaN]]) assert.deepEqual(place([x], p), [0, 0])
  assert.throws(() => place([[1]], p))
  assert.throws(() => place([[1, 0], [0, 1]], p))
})
