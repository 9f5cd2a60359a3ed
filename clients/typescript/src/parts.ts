// Chunks: code that only some tasks need is loaded when such a task is read.
import type { Declaration } from './declaration.js'
import { labelKind } from './features.js'
import { dhkem, type Kem } from './seal.js'
import { Suite } from './wire.js'

type Rare = typeof import('./rare.js')
type Whole = typeof import('./whole.js').whole
export type Fourier = InstanceType<Rare['Fourier']>
export type PublicMap = InstanceType<Rare['PublicMap']>

let loaded: Rare | null = null
let kem: Kem | undefined
let issued: typeof import('./grants.js') | null = null
let checked: Whole | undefined

/** What few tasks need. load comes first. */
export function rare(): Rare {
  if (loaded === null) throw new Error('a chunk that the task needs was not loaded')
  return loaded
}

/** What grants need. load comes first. */
export function grants(): typeof import('./grants.js') {
  if (issued === null) throw new Error('a chunk that the task needs was not loaded')
  return issued
}

/** What checks whole declarations; undefined where it was not asked for. */
export const wholly = (): Whole | undefined => checked

/** The key encapsulation of a suite; undefined of no encryption, and of suite 3 before load. */
export const kemOf = (suite: number): Kem | undefined =>
  suite === Suite.x25519 ? dhkem : suite === Suite.mlkem768X25519 ? kem : undefined

const needsRare = (d: Declaration): boolean =>
  d.features.public !== undefined || d.features.fourier !== undefined || labelKind(d.model.loss) === 'classes' ||
  (d.features.columns ?? []).some((c) => c.kind === 'text' || c.part !== undefined)

/** Loads what a task needs, and what checks its declaration whole. Rejects where a chunk cannot be had. */
export async function load(suite: number, d: Declaration, isWhole = false): Promise<void> {
  if (isWhole) checked ??= (await import('./whole.js')).whole
  if (needsRare(d)) loaded ??= await import('./rare.js')
  if (d.grants !== undefined) issued ??= await import('./grants.js')
  if (suite === Suite.mlkem768X25519) kem ??= (await import('./hybrid.js')).hybrid
}
