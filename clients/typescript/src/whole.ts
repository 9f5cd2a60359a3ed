// Whether a canonical declaration could stand in a task file: all of check D1 (learner/task of the Go device, Spec.Validate).
// Declarations of organisations and of two operators, which this device refuses anyway, are not looked into.
import { maxEpsilon } from './accounting.js'
import { utf8 } from './bytes.js'
import { Refused, type Column, type Declaration } from './declaration.js'
import { isLoss, isSmooth, labelKind, parseNumber } from './features.js'

const maxDim = 2 ** 20
const maxMagnitude = 1e100
const day = 24n * 3_600_000_000_000n // ns

// What each key holds: a number, an integer, text, true or false, a duration, a hash, a mapping, or a list of these (capital).
// With a question mark it is left out where it is zero, empty or false; with a star, where there is none.
const shapes: Record<string, string> = {
  '': 'version:i name:s events:o features:o intercept:n norm_bound:n label:o model:o privacy:o grants:s? issuer_key:s? user:o* ' +
    'schedule:o validation:o*',
  events: 'format:s columns:S? header:b? separator:s? key:s? skip_lines:i? max_line:i',
  features: 'vector:o* columns:O? crosses:O? polynomial:o* fourier:o* public:h* scales:N? precondition:o*',
  'features.vector': 'dimension:i kind:s min:n max:n scale:s? max_nonzeros:i hidden:b?',
  'features.columns': 'column:s kind:s columns:S? field:s? part:s? over:s? min:n? max:n? scale:s? mean:n? std:n? clip:n? unit:n? ' +
    'vocabulary:S? unknown:s? buckets:i? words:i? edges:N? knots:N? marks:S? missing:o? hidden:b?',
  'features.columns.missing': 'tokens:S? fill:n* indicator:b? word:s?',
  'features.crosses': 'columns:S number:s? buckets:i?',
  'features.polynomial': 'columns:S degree:i',
  'features.fourier': 'columns:S? dimension:i gamma:n seed:i',
  'features.precondition': 'second_moments:N? damping:n',
  label: 'column:s? positive:S? negative:S? classes:S? min:n? max:n? scale:s? unit:n? marks:S? offset:b?',
  model: 'loss:s level:n? width:n? score_bound:n? class_weights:N? label_noise:n? set:s radius:n? min:n? max:n? ridge:n? ' +
    'clip_norm:n? start:h* smoothness:n?',
  privacy: 'epsilon:n delta:n trust:s unit:s? honest_fraction:s coin:s max_bits:i profile:s seal:s suite:s?',
  user: 'column:s items:i radius:n? wait:d?',
  schedule: 'users:i plan:s algorithm:s interactive:b? continuous:s? first_cohort:i? cohort:i minimum_cohort:i rounds:o deadline:d ' +
    'stale:d? retention:d',
  'schedule.rounds': 'max:i',
  validation: 'off:b? weight:n? loss_bound:n?',
}

function want(ok: boolean, at: string): void {
  if (!ok) throw new Refused('declaration', at, 'what a task file may have there (check D1)')
}

const isText = (v: unknown): boolean => typeof v === 'string' && !/\p{Surrogate}/u.test(v)
const kinds: Record<string, (v: unknown) => boolean> = {
  n: (v) => typeof v === 'number' && Math.abs(v) <= maxMagnitude,
  i: (v) => Number.isSafeInteger(v) && !Object.is(v, -0),
  s: isText,
  b: (v) => typeof v === 'boolean',
  d: (v) => typeof v === 'string' && duration(v) !== null,
  h: (v) => typeof v === 'string' && /^sha256:[0-9a-f]{64}$/.test(v),
  o: (v) => typeof v === 'object' && v !== null && !Array.isArray(v),
}

/** Checks the types of all keys, and that those are left out whose values are what is meant without them. */
function shape(value: object, path: string): void {
  const of = value as Record<string, unknown>
  for (const entry of shapes[path]!.split(' ')) {
    const [, key, kind, rest] = /^(\w+):(\w)(.?)$/.exec(entry)!
    const at = path === '' ? key! : `${path}.${key}`
    const v = of[key!]
    if (v === undefined) {
      want(rest !== '', at)
      continue
    }
    const one = kinds[kind!.toLowerCase()]!
    const isList = kind !== kind!.toLowerCase()
    want(isList ? Array.isArray(v) && v.every(one) : one(v), at)
    if (rest === '?') want(kind === 'd' ? duration(v as string) !== 0n : isList ? (v as unknown[]).length > 0 : kind === 'o' ? Object.keys(v as object).length > 0 : Boolean(v), at)
    if (kind === 'o') shape(v as object, at)
    if (kind === 'O') for (const x of v as object[]) shape(x, at)
  }
}

/** Nanoseconds of a duration as Go writes it; null for any other text. */
function duration(text: string): bigint | null {
  const all = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)(?:\.(\d{1,9}))?s)$/.exec(text)
  const small = /^(\d+)(?:\.(\d{1,6}))?(ms|µs|ns)$/.exec(text)
  let ns: bigint
  if (all) ns = BigInt(all[1] ?? 0) * 3_600_000_000_000n + BigInt(all[2] ?? 0) * 60_000_000_000n + BigInt(all[3]!) * 1_000_000_000n + BigInt((all[4] ?? '').padEnd(9, '0'))
  else if (small) {
    const digits = { ms: 6, µs: 3, ns: 0 }[small[3] as 'ms' | 'µs' | 'ns']
    if ((small[2] ?? '').length > digits) return null
    ns = BigInt(small[1]! + (small[2] ?? '').padEnd(digits, '0'))
  } else return null
  return ns < 2n ** 63n && written(ns) === text ? ns : null
}

function written(ns: bigint): string {
  const point = (n: bigint, digits: number): string => {
    const part = (n % 10n ** BigInt(digits)).toString().padStart(digits, '0').replace(/0+$/, '')
    return `${n / 10n ** BigInt(digits)}${part === '' || digits === 0 ? '' : `.${part}`}`
  }
  if (ns === 0n) return '0s'
  if (ns < 1000n) return `${ns}ns`
  if (ns < 1_000_000n) return `${point(ns, 3)}µs`
  if (ns < 1_000_000_000n) return `${point(ns, 6)}ms`
  const minutes = ns / 60_000_000_000n
  const seconds = `${point(ns % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return seconds
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`
}

const blank = /^\p{White_Space}|\p{White_Space}$/u
const distinct = (all: readonly unknown[]): boolean => new Set(all).size === all.length
const increasing = (all: readonly number[]): boolean => all.every((v, i) => i === 0 || v > all[i - 1]!)
const between = (v: number, least: number, most: number): boolean => v >= least && v <= most
const isName = (s: string): boolean => s !== '' && utf8(s).length <= 256 && !blank.test(s)
const isRange = (low: number, high: number): boolean => low < high && 2 / (high - low) <= maxMagnitude
const isWord = (s: string): boolean => s !== '' && !blank.test(s)
const areMarks = (all: readonly string[]): boolean =>
  all.length <= 8 && distinct(all) && all.every((m) => m !== '' && utf8(m).length <= 16 && !/[0-9.+-]/.test(m) && m !== 'e' && m !== 'E')
const isNumber = (c: Column): boolean => c.kind === 'numeric' || c.kind === 'indicator'
const toLog = (x: number, unit: number): number => Math.sign(x) * Math.log1p(Math.abs(x) / unit)

function positions(c: Column): number {
  switch (c.kind) {
    case 'categorical': return c.vocabulary!.length + (c.unknown === 'other' ? 1 : 0)
    case 'hashed': case 'text': return c.buckets!
    case 'bucketed': return c.edges!.length + 1
    case 'hats': return c.knots!.length
    case 'onehot-group': return c.columns!.length
  }
  return 1
}

const fieldsOf = (c: Column): string[] => (c.kind === 'onehot-group' ? c.columns! : [c.field ?? c.column, ...(c.over === undefined ? [] : [c.over])])

// The keys that only columns of one kind have.
const own: Record<string, string> = {
  min: 'numeric', max: 'numeric', scale: 'numeric', mean: 'numeric', std: 'numeric', clip: 'numeric', unit: 'numeric', vocabulary: 'categorical',
  unknown: 'categorical', words: 'text', edges: 'bucketed', knots: 'hats', columns: 'onehot-group',
}

function column(c: Column, at: string): void {
  const ok = (holds: boolean, key = 'kind'): void => want(holds, `${at}.${key}`)
  const { kind, min = 0, max = 0, mean = 0, std = 0, clip = 0, unit = 0, missing = {} } = c
  ok(['numeric', 'indicator', 'categorical', 'hashed', 'bucketed', 'hats', 'text', 'onehot-group'].includes(kind))
  for (const [key, of] of Object.entries(own)) ok(kind === of || !Object.hasOwn(c, key), key)
  ok(c.buckets === undefined || kind === 'hashed' || kind === 'text', 'buckets')
  const isScaled = c.scale === 'standard' || c.scale === 'log'
  switch (kind) {
    case 'numeric':
      ok(['raw', 'unit', 'symmetric', 'standard', 'log'].includes(c.scale ?? ''), 'scale')
      if (isScaled) {
        ok(min === 0 && max === 0 && std >= 1 / maxMagnitude && clip > 0, 'std')
        ok(c.scale === 'standard' ? unit === 0 : unit >= 1 / maxMagnitude && Math.abs(mean) <= 1000, 'unit')
      } else ok(mean === 0 && std === 0 && clip === 0 && unit === 0 && isRange(min, max), 'max')
      break
    case 'categorical':
      ok(c.vocabulary !== undefined && c.vocabulary.every(isWord) && distinct(c.vocabulary), 'vocabulary')
      ok(['invalid', 'drop', 'other'].includes(c.unknown ?? '') && !(c.unknown === 'other' && c.vocabulary!.includes('*')), 'unknown')
      break
    case 'onehot-group': ok((c.columns?.length ?? 0) >= 2, 'columns'); break
    case 'hats': ok(between(c.knots?.length ?? 0, 2, 64) && increasing(c.knots!), 'knots'); break
    case 'bucketed': ok(c.edges !== undefined && increasing(c.edges), 'edges'); break
    case 'hashed': case 'text':
      ok(between(c.buckets ?? 0, 1, maxDim), 'buckets')
      ok(kind === 'hashed' || between(c.words ?? 0, 1, 1024), 'words')
  }
  const isRead = isNumber(c) || kind === 'bucketed' || kind === 'hats'
  ok(c.marks === undefined || (isRead && areMarks(c.marks)), 'marks')
  const isMade = kind === 'numeric' || kind === 'bucketed' || kind === 'hats'
  if (c.over !== undefined) ok(isMade && c.part === undefined && c.field !== undefined && isName(c.field) && isName(c.over) && c.over !== c.field, 'over')
  else if (c.part === undefined) ok(c.field === undefined, 'field')
  else ok(isMade && c.marks === undefined && c.field !== undefined && isName(c.field) && ['year', 'month', 'day', 'weekday', 'hour'].includes(c.part), 'part')
  // What is missing.
  const { tokens = [], fill, indicator = false, word } = missing
  ok(kind !== 'hashed' || tokens.length === 0, 'missing.tokens')
  ok(isNumber(c) || (fill === undefined && !indicator), 'missing.fill')
  ok(word === undefined || (kind === 'categorical' && c.vocabulary!.includes(word)), 'missing.word')
  ok(tokens.every(isWord) && distinct(tokens) && !tokens.some((t) => c.vocabulary?.includes(t)), 'missing.tokens')
  if (!isNumber(c)) return
  const [low, high] = kind === 'indicator' ? [0, 1] : isScaled ? [mean - clip * std, mean + clip * std] : [min, max]
  const base = fill === undefined ? NaN : c.scale === 'log' ? toLog(fill, unit) : fill
  ok(between(base, low!, high!) && (kind !== 'indicator' || fill === 0 || fill === 1), 'missing.fill')
  ok(!indicator || c.hidden !== true, 'missing.indicator')
}

function columns(d: Declaration): void {
  const all = d.features.columns!
  const has = (name: string): boolean => d.events.columns === undefined || d.events.columns.includes(name)
  let total = 0
  for (const [i, c] of all.entries()) {
    const at = `features.columns[${i}]`
    want(isName(c.column) && !all.slice(0, i).some((o) => isNumber(o) === isNumber(c) && o.column === c.column), at)
    column(c, at)
    if (c.field !== undefined) want(has(c.field) && has(c.over ?? c.field), `${at}.field`)
    else want(c.kind === 'onehot-group' || has(c.column), at)
    for (const [k, name] of (c.columns ?? []).entries()) {
      const before = [...c.columns!.slice(0, k), ...all.flatMap((o) => (o === c || isNumber(o) ? [] : fieldsOf(o)))]
      want(isName(name) && !before.includes(name) && has(name), `${at}.columns`)
    }
    total += c.hidden ? 0 : c.missing?.indicator ? 2 : positions(c)
    want(total <= maxDim, at)
  }
}

/** Checks what is made of columns or a vector, and returns how many coordinates there are. */
function features(d: Declaration): number {
  const f = d.features
  const isVector = ['libsvm', 'idx'].includes(d.events.format)
  want(isVector ? f.vector !== undefined && f.columns === undefined : f.vector === undefined && f.columns !== undefined, 'features')
  const find = (name: string, number: boolean): Column | undefined => f.columns?.find((c) => c.column === name && isNumber(c) === number)
  const numbers = (names: readonly string[]): boolean => names.length > 0 && distinct(names) && names.every((n) => find(n, true) !== undefined)
  let width = 0
  if (f.vector) {
    const v = f.vector
    const { scale = '' } = v
    want(between(v.dimension, 1, maxDim) && between(v.max_nonzeros, 1, v.dimension), 'features.vector')
    want(v.kind === 'indicator' ? v.min === 0 && v.max === 0 && scale === ''
      : v.kind === 'numeric' && isRange(v.min, v.max) && v.min <= 0 && v.max >= 0 && (scale === 'raw' || (scale === 'unit' && v.min === 0) || (scale === 'symmetric' && v.min === -v.max)),
    'features.vector')
    want(f.crosses === undefined && f.polynomial === undefined, 'features.crosses')
    want(!v.hidden || f.fourier !== undefined || f.public !== undefined, 'features.vector.hidden')
    width = v.hidden ? 0 : v.dimension
  } else columns(d)
  for (const c of f.columns ?? []) width += c.hidden ? 0 : c.missing?.indicator ? 2 : positions(c)
  for (const [i, x] of (f.crosses ?? []).entries()) {
    const at = `features.crosses[${i}]`
    want(between(x.columns.length, x.number === undefined ? 2 : 1, 4) && distinct(x.columns), at)
    want(x.number === undefined || find(x.number, true) !== undefined, at)
    let combinations = 1
    for (const name of x.columns) {
      const c = find(name, false)
      want(c !== undefined && c.kind !== 'hats' && c.kind !== 'text', at)
      want(combinations <= Math.floor((2 ** 32 - 1) / positions(c!)), at)
      combinations *= positions(c!)
    }
    want(between(x.buckets ?? 0, 0, maxDim) && (x.buckets !== undefined || combinations <= maxDim), at)
    const same = (o: typeof x): boolean => JSON.stringify(o.columns) === JSON.stringify(x.columns) && o.number === x.number
    want(!f.crosses!.slice(0, i).some(same), at)
    width += x.buckets ?? combinations
  }
  if (f.polynomial) {
    const { columns: of, degree } = f.polynomial
    const n = of.length
    const products = (n * (n + 1)) / 2 + (degree === 3 ? (n * (n + 1) * (n + 2)) / 6 : 0)
    want(numbers(of) && (degree === 2 || degree === 3) && products <= maxDim, 'features.polynomial')
    width += products
  }
  if (f.fourier) {
    const { columns: of = [], dimension, gamma } = f.fourier
    const inputs = f.vector?.dimension ?? of.length
    want(f.vector ? of.length === 0 : numbers(of), 'features.fourier')
    want(dimension >= 1 && dimension <= maxDim && dimension <= Math.floor(2 ** 22 / inputs) && gamma > 0 && gamma <= 1e12 && (f.fourier.seed ?? 0) >= 0, 'features.fourier')
    width += dimension
  }
  const uses = (c: Column): boolean => f.public !== undefined || (isNumber(c)
    ? Boolean(f.polynomial?.columns.includes(c.column)) || Boolean(f.fourier?.columns?.includes(c.column)) || (f.crosses ?? []).some((x) => x.number === c.column)
    : (f.crosses ?? []).some((x) => x.columns.includes(c.column)))
  for (const c of f.columns ?? []) want(!c.hidden || uses(c), 'features.columns.hidden')
  if (f.public !== undefined) return width
  want(between(width, 1, maxDim), 'features')
  want(f.scales === undefined || (f.precondition === undefined && f.scales.length === width && f.scales.every((v) => between(v, 1 / 1e12, 1e12))), 'features.scales')
  if (f.precondition) {
    const { second_moments: moments = [], damping } = f.precondition
    want(between(damping, 1 / 1e12, 1e12) && moments.length === width && moments.every((h) => between(h, 0, 1e12)), 'features.precondition')
  }
  return width
}

function events(d: Declaration): void {
  const e = d.events
  const { columns: names, skip_lines: skipped = 0 } = e
  want(['libsvm', 'csv', 'jsonl', 'idx', 'parquet'].includes(e.format), 'events.format')
  want(between(e.max_line, 1, 64 * 2 ** 20) && between(skipped, 0, 1024), 'events.max_line')
  want(skipped === 0 || !['idx', 'parquet'].includes(e.format), 'events.skip_lines')
  if (e.format !== 'csv') {
    want(!e.header && names === undefined && e.separator === undefined, 'events')
    return
  }
  const { separator = '' } = e
  want(/^[\x01-\x7f]$/.test(separator) && !' "\r\n'.includes(separator), 'events.separator')
  want(Boolean(e.header) !== (names !== undefined) && (names === undefined || (names.every(isName) && distinct(names))), 'events.columns')
}

/** Whether a column that is neither a feature nor the label may have a name. */
function isApart(d: Declaration, name: string): boolean {
  return isName(name) && !['libsvm', 'idx'].includes(d.events.format) && (d.events.columns === undefined || d.events.columns.includes(name)) &&
    name !== (d.label.column ?? 'label') && !(d.features.columns ?? []).some((c) => fieldsOf(c).includes(name))
}

/** One spelling of a label. */
function labelKey(s: string): string {
  const t = s.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '')
  try {
    if (utf8(t).length <= 128) {
      const x = parseNumber(t)
      if (!Number.isNaN(x)) return String(x + 0)
    }
  } catch {
    // a word
  }
  return t
}

function label(d: Declaration): void {
  const l = d.label
  const isVector = ['libsvm', 'idx'].includes(d.events.format)
  const name = l.column ?? ''
  want(isVector ? name === '' : isName(name) && (d.events.columns === undefined || d.events.columns.includes(name)) &&
    !(d.features.columns ?? []).some((c) => fieldsOf(c).includes(name)), 'label.column')
  const kind = labelKind(d.model.loss)
  const only = (of: string[], ...values: unknown[]): void => want(of.includes(kind) || values.every((v) => v === undefined), 'label')
  only(['two'], l.positive, l.negative)
  only(['classes'], l.classes)
  only(['numbers'], l.min, l.scale, l.offset, l.unit)
  only(['numbers', 'counts'], l.max, l.marks)
  want(areMarks(l.marks ?? []), 'label.marks')
  const { min = 0, max = 0, unit = 0 } = l
  const classes = (least: number, lists: (string[] | undefined)[]): void => {
    want(lists.every((x) => (x?.length ?? 0) >= least), 'label')
    const all = lists.flatMap((x) => x!.map(labelKey))
    want(distinct(all) && !all.includes(''), 'label')
  }
  if (kind === 'two') classes(1, [l.positive, l.negative])
  else if (kind === 'classes') classes(2, [l.classes])
  else if (kind === 'counts') want(max >= 1 && max <= 2 ** 53 && Number.isInteger(max), 'label.max')
  else {
    want(isRange(min, max), 'label.max')
    want(!l.offset || (l.scale !== 'log' && d.features.public !== undefined), 'label.offset')
    want(['raw', 'unit', 'symmetric', 'log'].includes(l.scale ?? ''), 'label.scale')
    want(l.scale === 'log' ? unit >= 1 / maxMagnitude && isRange(toLog(min, unit), toLog(max, unit)) : unit === 0, 'label.unit')
  }
}

const isPractical = (d: Declaration): boolean => d.schedule.plan === 'practical'

function model(d: Declaration, width: number): void {
  const m = d.model
  const kind = labelKind(m.loss)
  const takes = (key: keyof typeof m, losses: string[], sound: (v: number) => boolean): void => {
    const v = m[key] as number | undefined
    want(losses.includes(m.loss) ? key === 'label_noise' ? sound(v ?? 0) : v !== undefined && sound(v) : v === undefined, `model.${key}`)
  }
  takes('level', ['quantile'], (v) => v > 0 && v < 1)
  takes('width', ['huber', 'smoothed-hinge'], (v) => v > 0)
  takes('score_bound', ['poisson'], (v) => v > 0 && v <= 300)
  takes('label_noise', ['logistic'], (v) => v >= 0 && v < 0.5)
  const classes = kind === 'two' ? 2 : (d.label.classes?.length ?? 0)
  const weights = m.class_weights
  want(weights === undefined || ((kind === 'two' || kind === 'classes') && weights.length === classes && weights.every((w) => w > 0)), 'model.class_weights')
  want(kind !== 'classes' || between(classes, 2, 2 ** 16), 'label.classes')
  if (m.label_noise !== undefined) {
    const rho = m.label_noise
    const [a, b] = weights ?? [1, 1]
    const more = (x: number, y: number): boolean => ((1 - rho) * x) / (1 - 2 * rho) > (rho * y) / (1 - 2 * rho)
    want(more(a!, b!) && more(b!, a!), 'model.label_noise')
  }
  const { radius = 0, min = 0, max = 0 } = m
  want(['ball', 'box', 'nonnegative', 'simplex', 'l1'].includes(m.set), 'model.set')
  const isFree = isPractical(d) && radius === 0 && min === 0 && max === 0 && (m.set === 'ball' || m.set === 'nonnegative')
  if (m.set === 'box') want(radius === 0 && min < max, 'model.max')
  else want(isFree || (min === 0 && max === 0 && (m.set === 'ball' || m.set === 'nonnegative' ? radius > 0 : radius > 1e-100 && radius <= 1e100)), 'model.radius')
  want((m.ridge ?? 0) >= 0, 'model.ridge')
  want((m.smoothness ?? 0) >= 0 && (m.smoothness === undefined || isSmooth(m.loss)), 'model.smoothness')
  want((m.clip_norm ?? 0) > 0 || (m.clip_norm === undefined && isPractical(d)), 'model.clip_norm')
  const dim = width + (d.intercept !== 0 ? 1 : 0)
  want(kind !== 'classes' || classes <= 2 || dim <= Math.floor(maxDim / classes), 'label.classes')
}

function plainFraction(text: string): boolean {
  if (text === '1') return true
  const decimal = /^0\.(\d{0,17}[1-9])$/.exec(text)
  if (decimal) return true
  const quotient = /^([1-9]\d{0,17})\/([1-9]\d{0,17})$/.exec(text)
  if (!quotient) return false
  let [a, b] = [BigInt(quotient[1]!), BigInt(quotient[2]!)]
  const [n, den] = [a, b]
  while (b > 0n) [a, b] = [b, a % b]
  if (a !== 1n || n >= den) return false
  return 10n ** 18n % den !== 0n // a decimal of at most 18 digits is written so
}

function privacy(d: Declaration): void {
  const p = d.privacy
  want(p.epsilon > 0 && p.epsilon <= maxEpsilon && p.delta > 0 && p.delta < 1, 'privacy.epsilon')
  want(['shuffle', 'pan', 'shuffle+pan', 'local'].includes(p.trust), 'privacy.trust')
  want(plainFraction(p.honest_fraction), 'privacy.honest_fraction')
  want(p.coin === 'fair' || p.coin === 'any', 'privacy.coin')
  want(between(p.max_bits, 0, 2 ** 31 - 1) && (p.max_bits !== 1 || p.trust === 'pan'), 'privacy.max_bits')
  want(p.profile === 'numeric' || p.profile === 'paper', 'privacy.profile')
  want(p.trust !== 'local' || (p.honest_fraction === '1' && p.coin === 'fair' && (p.profile === 'numeric' || d.schedule.interactive === true)), 'privacy.trust')
  want(p.suite === undefined || (p.suite === 'mlkem768x25519' && p.seal !== 'none'), 'privacy.suite')
  want(p.seal === 'hpke' || p.seal === 'none', 'privacy.seal')
  want(p.unit === undefined || p.unit === 'user', 'privacy.unit')
  want((p.unit === 'user') === (d.user !== undefined), 'user')
  if (d.user) {
    const { column: name, items, radius = 0, wait = '0s' } = d.user
    want(isApart(d, name) && name !== d.events.key, 'user.column')
    want(between(items, 1, 2 ** 20) && between(radius, 0, 1) && duration(wait)! <= 30n * day, 'user')
  }
  want(d.grants === undefined || d.grants === 'pass', 'grants')
  // Only planning and simulating need no key: a device compares it with that of the Task.
  want(d.grants === undefined ? d.issuer_key === undefined : d.issuer_key === undefined || isKey(d.issuer_key), 'issuer_key')
}

function isKey(text: string): boolean {
  try {
    const bytes = atob(text)
    return bytes.length === 342 && btoa(bytes) === text
  } catch {
    return false
  }
}

// Methods by name: accelerated, on the envelope, in phases that restart, interactive.
const methods: Record<string, string> = {
  psgd: '', pagd: 'a', 'pagd-envelope': 'ae', 'pagd-restarts': 'ar', 'pagd-envelope-restarts': 'aer', pgd: 'i', 'pgd-envelope': 'ie',
  'pgd-restarts': 'ir', 'pgd-envelope-restarts': 'ier', apgd: 'ai', 'apgd-envelope': 'aie', 'apgd-restarts': 'air',
}

function schedule(d: Declaration): void {
  const s = d.schedule as Declaration['schedule'] & { algorithm: string; cohort: number; minimum_cohort: number; first_cohort?: number; rounds: { max: number }; stale?: string; retention: string }
  const { users, cohort, minimum_cohort: minimum, first_cohort: first = 0, continuous = '', interactive = false } = s
  const most = s.rounds.max
  want(s.plan === 'practical' || s.plan === 'proved', 'schedule.plan')
  want(s.algorithm === 'auto' || (!isPractical(d) && Object.hasOwn(methods, s.algorithm)), 'schedule.algorithm')
  want(between(users, 1, 2 ** 40 - 1), 'schedule.users')
  want(continuous === '' || (isPractical(d) ? ['adaptive'] : ['constant', 'decaying', 'epochs']).includes(continuous), 'schedule.continuous')
  want(continuous !== 'adaptive' || (labelKind(d.model.loss) !== 'counts' && most === 0), 'schedule.continuous')
  const hasFloors = d.privacy.trust === 'pan' || d.privacy.trust === 'shuffle+pan'
  const is = (letter: string): boolean => methods[s.algorithm]?.includes(letter) ?? false
  want(!interactive || (continuous === '' && !hasFloors && (s.algorithm === 'auto' || is('i'))), 'schedule.interactive')
  if (!isPractical(d)) {
    if (s.algorithm === 'auto') want(continuous === '', 'schedule.algorithm')
    else {
      want(is('e') || !(is('a') || is('i')) || isSmooth(d.model.loss), 'schedule.algorithm')
      want(!is('r') || (d.model.ridge ?? 0) > 0, 'schedule.algorithm')
      want(!is('i') || (interactive && !hasFloors && cohort === 0), 'schedule.algorithm')
      want(continuous === '' || (!is('r') && !is('i') && (continuous === 'epochs') === is('a')), 'schedule.algorithm')
    }
  }
  want(between(cohort, 0, users) && between(minimum, 0, cohort || users), 'schedule.cohort')
  want(first === 0 || (isPractical(d) && between(first, 0, users - 1)), 'schedule.first_cohort')
  want(between(most, 0, users), 'schedule.rounds.max')
  const [deadline, retention] = [duration(s.deadline)!, duration(s.retention)!]
  const longest = s.stale === undefined ? (deadline > day ? deadline : day) : duration(s.stale)!
  want(deadline > 0n && deadline <= 30n * day && longest >= deadline && longest <= 30n * day, 'schedule.deadline')
  want(retention >= day / 24n && retention <= 3650n * day, 'schedule.retention')
}

/** Throws Refused for a declaration that no task file makes. bound tells the largest norm of what it declares as features. */
export function whole(d: Declaration, bound: () => number): void {
  if (d.silo !== undefined || d.privacy?.trust === 'split') return // refused by name
  shape(d, '')
  want(d.version === 1 && /^[a-z0-9_-]{1,32}$/.test(d.name), 'name')
  events(d)
  want(isLoss(d.model.loss), 'model.loss')
  const width = features(d)
  label(d)
  want(d.events.key === undefined || isApart(d, d.events.key), 'events.key')
  model(d, width)
  privacy(d)
  schedule(d)
  const v = d.validation
  if (v?.off) want(v.weight === undefined && v.loss_bound === undefined, 'validation')
  else if (v) want(between(v.weight ?? 0, 0.001, 10) && (v.loss_bound ?? 0) >= 0, 'validation')
  want(d.norm_bound >= 0, 'norm_bound')
  if (d.features.public !== undefined) return // a file tells more
  const most = bound()
  want(most <= 1e120 && d.norm_bound <= most * (1 + 1e-12), 'norm_bound')
}
