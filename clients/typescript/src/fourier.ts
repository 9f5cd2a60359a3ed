// Random Fourier features, by their definition in docs/reference/tasks.md.
import { bigEndian, concat, sha256, utf8 } from './bytes.js'
import type { Features } from './declaration.js'

/** The frequencies and phases of a task, and what they make of numbers. */
export class Fourier {
  readonly frequencies: number[][]
  readonly phases: number[] = []
  private readonly amplitude: number

  constructor(f: NonNullable<Features['fourier']>, n: number) {
    this.amplitude = Math.sqrt(2 / f.dimension)
    const width = Math.sqrt(2 * f.gamma)
    this.frequencies = Array.from({ length: f.dimension }, (_, i) => {
      const row: number[] = []
      for (let k = 0; 2 * k < n; k++) {
        const u = Fourier.words(f.seed ?? 0, i, k)
        const radius = width * Math.sqrt(-2 * Math.log(u[0]))
        row.push(radius * Math.cos(2 * Math.PI * u[1]))
        if (2 * k + 1 < n) row.push(radius * Math.sin(2 * Math.PI * u[1]))
        if (k === 0) this.phases.push(2 * Math.PI * u[2])
      }
      return row
    })
  }

  private static words(seed: number, i: number, k: number): [number, number, number] {
    const h = sha256(concat(utf8('panlearn fourier\0'), bigEndian(seed, 8), bigEndian(i, 8), bigEndian(k, 8)))
    const view = new DataView(h.buffer, h.byteOffset)
    const word = (j: number): number => (Number(view.getBigUint64(8 * j) >> 11n) + 0.5) * 2 ** -53
    return [word(0), word(1), word(2)]
  }

  at(i: number, sources: readonly number[]): number {
    let angle = this.phases[i]!
    for (const [j, v] of sources.entries()) angle += this.frequencies[i]![j]! * v
    return this.amplitude * Math.cos(angle)
  }
}
