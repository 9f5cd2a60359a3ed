// The declaration of a task: the canonical JSON that a signed Task carries (docs/reference/tasks.md). Types name what is
// read; keys that this device does not know are refused, for it cannot know what they change.
import { text, type Bytes } from './bytes.js'

/** Refused is thrown for a task or a round that the device takes no part in. It names the field and what would do. */
export class Refused extends Error {
  override name = 'Refused'
  constructor(readonly field: string, readonly value: unknown, readonly wanted: string) {
    super(`${field} is ${show(value)}: want ${wanted}`)
  }
}

function show(value: unknown): string {
  const s = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return s.length > 80 ? `${s.slice(0, 80)}...` : s
}

export type Scale = 'raw' | 'unit' | 'symmetric' | 'standard' | 'log'
export type ColumnKind = 'numeric' | 'indicator' | 'categorical' | 'hashed' | 'bucketed' | 'hats' | 'text' | 'onehot-group'
export type Part = 'year' | 'month' | 'day' | 'weekday' | 'hour'

export interface Missing {
  tokens?: string[]
  fill?: number
  indicator?: boolean
  word?: string
}

export interface Column {
  column: string
  kind: ColumnKind
  columns?: string[]
  field?: string
  part?: Part
  over?: string
  min?: number
  max?: number
  scale?: Scale
  mean?: number
  std?: number
  clip?: number
  unit?: number
  vocabulary?: string[]
  unknown?: 'invalid' | 'drop' | 'other'
  buckets?: number
  words?: number
  edges?: number[]
  knots?: number[]
  marks?: string[]
  missing?: Missing
  hidden?: boolean
}

/** Numbers without names. */
export interface Vector {
  dimension: number
  kind: 'numeric' | 'indicator'
  min: number
  max: number
  scale?: Scale
  max_nonzeros: number
  hidden?: boolean
}

export interface Features {
  vector?: Vector
  columns?: Column[]
  crosses?: { columns: string[]; number?: string; buckets?: number }[]
  polynomial?: { columns: string[]; degree: number }
  fourier?: { columns?: string[]; dimension: number; gamma: number; seed?: number }
  public?: string
  scales?: number[]
  precondition?: { second_moments: number[]; damping: number }
}

export interface Label {
  column?: string // 'label' where the features are a vector
  positive?: string[]
  negative?: string[]
  classes?: string[]
  min?: number
  max?: number
  scale?: Scale
  unit?: number
  offset?: boolean
  marks?: string[]
}

export interface Model {
  loss: string
  set: string
  radius?: number
  clip_norm?: number
  ridge?: number
  class_weights?: number[]
  smoothness?: number
  level?: number
  width?: number
  score_bound?: number
  label_noise?: number
  min?: number
  max?: number
  start?: string
}

export interface Declaration {
  version: number
  name: string
  events: { format: string; max_line: number; key?: string; columns?: string[]; header?: boolean; separator?: string; skip_lines?: number }
  features: Features
  intercept: number
  norm_bound: number
  label: Label
  model: Model
  privacy: {
    epsilon: number
    delta: number
    trust: string
    unit?: string
    honest_fraction: string
    coin: string
    max_bits: number
    profile: string
    seal: string
    suite?: string
  }
  grants?: 'pass'
  issuer_key?: string // base64
  user?: { column: string; items: number; radius?: number; wait?: string }
  silo?: unknown
  schedule: Record<string, unknown> & { users: number; plan: string; interactive?: boolean; deadline: string; continuous?: string }
  validation?: { weight?: number; off?: boolean; loss_bound?: number; [key: string]: unknown }
}

// The keys of each mapping, in their order (docs/reference/layouts.md). A star stands for the entries of a list.
const keys: Record<string, string> = {
  '': 'version name events features intercept norm_bound label model privacy grants issuer_key user silo schedule validation',
  events: 'format columns header separator key skip_lines max_line',
  features: 'vector columns crosses polynomial fourier public scales precondition',
  'features.vector': 'dimension kind min max scale max_nonzeros hidden',
  'features.columns.*': 'column kind columns field part over min max scale mean std ' +
    'clip unit vocabulary unknown buckets words edges knots marks missing hidden',
  'features.columns.*.missing': 'tokens fill indicator word',
  'features.crosses.*': 'columns number buckets',
  'features.polynomial': 'columns degree',
  'features.fourier': 'columns dimension gamma seed',
  'features.precondition': 'second_moments damping',
  label: 'column positive negative classes min max scale unit marks offset',
  model: 'loss level width score_bound class_weights label_noise set radius min max ridge clip_norm start smoothness',
  privacy: 'epsilon delta trust unit honest_fraction coin max_bits profile seal suite operators',
  'privacy.operators': 'leader helper',
  user: 'column items radius wait',
  silo: 'count units reports least sample spread',
  schedule: 'users plan algorithm interactive continuous first_cohort prox cohort minimum_cohort rounds deadline stale retention',
  'schedule.prox': 'weight steps',
  'schedule.rounds': 'max',
  validation: 'off weight loss_bound',
}

function known(value: unknown, path: string): void {
  if (Array.isArray(value)) {
    for (const v of value) known(v, `${path}.*`)
    return
  }
  if (typeof value !== 'object' || value === null) return
  const list = keys[path]?.split(' ') ?? []
  let last = -1
  for (const [key, v] of Object.entries(value)) {
    const at = list.indexOf(key)
    const name = path === '' ? key : `${path}.${key}`
    if (at <= last) throw new Refused(`declaration: ${name}`, v, 'the keys that this device knows, in their order')
    last = at
    known(v, name)
  }
}

/** A text with 0 for -0, which the encoder writes and JavaScript does not. */
const zeros = (json: string): string => json.replace(/([:,[])-0(?=[,\]}])/g, '$10')

/** Reads a canonical declaration: exactly the bytes that the encoder writes, in which every key is known. */
export function parseDeclaration(data: Bytes): Declaration {
  const json = text(data)
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch {
    throw new Refused('declaration', `${data.length} bytes`, 'JSON')
  }
  // The encoder's numbers are those of JavaScript; of text it escapes two characters more.
  const canonical = JSON.stringify(parsed).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
  if (typeof parsed !== 'object' || parsed === null || zeros(canonical) !== zeros(json)) {
    throw new Refused('declaration', `${data.length} bytes`, 'the canonical form')
  }
  known(parsed, '')
  const d = parsed as Declaration
  if (d.version !== 1) throw new Refused('declaration: version', d.version, '1')
  const { profile, coin, seal, suite = 'x25519' } = d.privacy
  const words = ['numeric', 'paper'].includes(profile) && ['hpke', 'none'].includes(seal) && ['x25519', 'mlkem768x25519'].includes(suite)
  if (!words) throw new Refused('declaration: privacy', `${profile}, ${coin}, ${seal}, ${suite}`, 'words that this device knows')
  return d
}
