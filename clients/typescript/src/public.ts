// A public model (docs/reference/tasks.md, Public model): linear scores, boosted trees and a forest whose outputs are
// coordinates. Its file travels in the signed Task.
import { hex, sha256, text, type Bytes } from './bytes.js'
import type { Vector } from './declaration.js'
import type { Event, Input } from './features.js'

interface Matrix {
  rows: number
  cols: number
  bits: 8 | 16
  scale: number[]
  values: string // base64
}
interface Tree {
  output?: number
  feature: number[]
  threshold: number[]
  left: number[]
  right: number[]
  leaf?: number[]
}
interface Block {
  name?: string
  outputs: number
  range?: number
  bias?: number[]
  weights?: Matrix
  trees?: Tree[]
  forest?: { trees: Tree[]; leaves: Matrix }
}

/** A public model as its file has it. */
export interface PublicModel {
  version: number
  sample: { rows: number; leaf: number }
  inputs: string[]
  blocks?: Block[]
  offset?: Block
}

const want = (ok: boolean, field: string, wanted: string): void => {
  if (!ok) throw new Error(`${field} of a public model: ${wanted}`)
}
const maxDepth = 32

/** Reads the file of a Task, whose SHA-256 the declaration has. */
export function parsePublic(data: Bytes, declared: string): PublicModel {
  if (`sha256:${hex(sha256(data))}` !== declared) throw new Error(`the file of ${declared}`)
  const p = JSON.parse(text(data)) as PublicModel
  want(p.version === 1, 'version', '1')
  want(p.inputs.length > 0, 'inputs', 'at least one name')
  for (const b of [...(p.blocks ?? []), ...(p.offset ? [p.offset] : [])]) checkBlock(b, p.inputs.length)
  return p
}

function checkBlock(b: Block, inputs: number): void {
  want(b.outputs >= 1 && b.outputs <= 1024, 'blocks.outputs', '1 to 1024')
  want(b.bias === undefined || b.bias.length === b.outputs, 'blocks.bias', 'one an output')
  if (b.weights) checkMatrix(b.weights, b.outputs, inputs)
  for (const t of b.trees ?? []) {
    checkTree(t, inputs)
    want((t.output ?? 0) < b.outputs && t.leaf?.length === t.feature.length + 1, 'blocks.trees', 'an output, and leaves')
  }
  if (!b.forest) return
  b.forest.trees.forEach((t) => checkTree(t, inputs))
  checkMatrix(b.forest.leaves, b.outputs, b.forest.trees.reduce((n, t) => n + t.feature.length + 1, 0))
}

function checkMatrix(m: Matrix, rows: number, cols: number): void {
  want(m.rows === rows && m.cols === cols && (m.bits === 8 || m.bits === 16) && m.scale.length === rows, 'matrix', `${rows} x ${cols}`)
}

/** Every branch leads forward, so that each walk ends within the depth. */
function checkTree(t: Tree, inputs: number): void {
  const n = t.feature.length
  const depth = new Array<number>(n).fill(0)
  depth[0] = 1
  want(n > 0 && [t.threshold, t.left, t.right].every((l) => l.length === n), 'trees', 'as many of each list as questions')
  t.feature.forEach((f, i) => {
    want(f >= 0 && f < inputs && Number.isFinite(t.threshold[i]!), 'trees.feature', 'an input')
    for (const branch of [t.left[i]!, t.right[i]!]) {
      want(branch < 0 ? branch >= -n - 1 : branch > i && branch < n, 'trees', 'branches that lead forward')
      if (branch >= 0) depth[branch] = depth[i]! + 1
    }
    want(depth[i]! >= 1 && depth[i]! <= maxDepth, 'trees', `at most ${maxDepth} questions on a way`)
  })
}

/** The rows of a matrix, in doubles. */
function numbers(m: Matrix): number[][] {
  const raw = Uint8Array.from(atob(m.values), (c) => c.charCodeAt(0))
  want(raw.length === (m.rows * m.cols * m.bits) / 8, 'matrix.values', 'as many bytes as the matrix has')
  const view = new DataView(raw.buffer)
  return Array.from({ length: m.rows }, (_, k) => Array.from({ length: m.cols }, (_, j) => {
    const i = k * m.cols + j
    return m.scale[k]! * (m.bits === 8 ? view.getInt8(i) : view.getInt16(2 * i, true))
  }))
}

function leafOf(t: Tree, asked: readonly number[]): number {
  for (let at = 0; ;) {
    at = asked[t.feature[at]!]! > Math.fround(t.threshold[at]!) ? t.right[at]! : t.left[at]!
    if (at < 0) return -at - 1
  }
}

class Outputs {
  private readonly weights: number[][] | null
  private readonly leaves: number[][] | null

  constructor(readonly b: Block) {
    this.weights = b.weights ? numbers(b.weights) : null
    this.leaves = b.forest ? numbers(b.forest.leaves) : null
  }

  of(scaled: readonly number[], asked: readonly number[]): number[] {
    const { b } = this
    const out = b.bias ? [...b.bias] : new Array<number>(b.outputs).fill(0)
    this.weights?.forEach((row, k) => row.forEach((w, j) => (out[k]! += w * scaled[j]!)))
    for (const t of b.trees ?? []) out[t.output ?? 0]! += Math.fround(t.leaf![leafOf(t, asked)]!)
    let before = 0
    for (const t of b.forest?.trees ?? []) {
      const leaf = before + leafOf(t, asked)
      this.leaves!.forEach((row, k) => (out[k]! += row[leaf]!))
      before += t.feature.length + 1
    }
    return out
  }
}

/** A value of a vector in the units of the data. */
function rawOf(event: Event, at: number): number {
  const { index, value } = event as { index?: number[]; value: number[] }
  return (index === undefined ? value[at] : value[index.indexOf(at)]) ?? 0
}

/** A public model made ready for the columns of a task. */
export class PublicMap {
  readonly width: number
  private readonly blocks: Outputs[]
  private readonly offset: Outputs | null

  constructor(model: PublicModel, private readonly inputs: readonly Input[], private readonly vector?: Vector) {
    this.blocks = (model.blocks ?? []).map((b) => new Outputs(b))
    this.offset = model.offset ? new Outputs(model.offset) : null
    this.width = this.blocks.reduce((n, o) => n + o.b.outputs, 0)
    const n = inputs.reduce((sum, in_) => sum + (in_.isNumber && in_.c.missing?.indicator ? 2 : in_.positions), vector?.dimension ?? 0)
    want(n === model.inputs.length, 'inputs', `the ${n} of the task's columns`)
  }

  /** The outputs for an event whose columns have these values, or whose vector is scaled to these. */
  outputs(event: Event, values: ReadonlyMap<Input, number>, vector: readonly number[]): { coordinates: number[]; offset: number } {
    const scaled = [...vector]
    const asked = vector.map((v, j) => (this.vector!.kind === 'indicator' ? v : Math.fround(rawOf(event, j))))
    for (const in_ of this.inputs) {
      const { c } = in_
      const value = values.get(in_)!
      if (in_.isNumber) {
        const x = in_.quantity(event)
        scaled.push(value)
        asked.push(c.kind === 'indicator' ? value : Math.fround(x ?? c.missing!.fill!))
        if (c.missing?.indicator) {
          scaled.push(x === null ? 1 : 0)
          asked.push(x === null ? 1 : 0)
        }
        continue
      }
      const one = new Array<number>(in_.positions).fill(0)
      const ask = [...one]
      if (c.kind === 'text') {
        const set = in_.value(event).missing ? [] : in_.buckets(event)
        for (const b of set) one[b] = 1 / Math.sqrt(set.length)
      } else if (value >= 0 && c.kind === 'hats') {
        const i = Math.min(Math.floor(value), one.length - 2)
        one[i] = 1 - (value - i)
        one[i + 1] = value - i
      } else if (value >= 0) {
        one[value] = 1
        ask[value] = 1
      }
      scaled.push(...one)
      asked.push(...ask)
    }
    const coordinates = this.blocks.flatMap((o) => o.of(scaled, asked).map((v) => Math.min(Math.max(v / o.b.range!, -1), 1)))
    return { coordinates, offset: this.offset?.of(scaled, asked)[0] ?? 0 }
  }
}
