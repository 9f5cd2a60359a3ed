// Answers questions that come line by line, as JSON, for tests that compare this device with the Go device.
import { createInterface } from 'node:readline'
import { hex, sha256, unhex, utf8 } from '../src/bytes.js'
import { check } from '../src/check.js'
import { Agreement, type Policy } from '../src/consent.js'
import { parseDeclaration, type Declaration } from '../src/declaration.js'
import { FeatureMap, type Event, type Example } from '../src/features.js'
import { load, wholly } from '../src/parts.js'
import { parsePlace } from '../src/places.js'
import { parsePublic } from '../src/public.js'
import { parseAnswer, parseLatest } from '../src/relay.js'
import { verify } from '../src/signed.js'
import { Reporter, type FrameBody } from '../src/statistic.js'
import { Frame, Kind, Round, Suite, Task } from '../src/wire.js'

/** A task, or a round of one: bodies. */
interface Asked {
  task?: string // hexadecimal
  policy?: Policy
  round?: string
  known?: string // manifest hash of the number that was answered
  before?: string // body of an earlier round
  times?: number // participations whose cost is asked for
  record?: string // an envelope
  kind?: 'task' | 'round' | 'open' | 'close' | 'end'
  key?: string
  state?: string // bodies of a relay
  answer?: string
  place?: string
  id?: string
  declaration?: Declaration // of rows
  whole?: string // a declaration, that may be none
  public?: string
  rows?: Event[]
  statistic?: number
  smoothing?: number
  point?: number[]
  frame?: Record<string, number | number[]>
}

const agreements = new Map<string, Agreement>()

function agree(q: Asked): Agreement {
  const key = `${q.task} ${JSON.stringify(q.policy)}`
  let known = agreements.get(key)
  if (known === undefined) {
    const bytes = unhex(q.task!)
    const body = Task.decode(bytes)
    check(Kind.task, body)
    known = new Agreement(q.policy ?? {}, body, sha256(bytes))
    agreements.clear()
    agreements.set(key, known)
  }
  return known
}

function consent(q: Asked): unknown {
  const a = agree(q)
  if (q.round === undefined) return { epsilon: a.epsilon, delta: a.delta, cost: q.times ? a.cost(q.times) : 0 }
  const bytes = unhex(q.round)
  const body = Round.decode(bytes)
  check(Kind.round, body)
  a.round(body, sha256(bytes), q.known ? unhex(q.known) : undefined)
  if (q.before) a.order(Round.decode(unhex(q.before)), body)
  return { hash: hex(sha256(bytes)) }
}

const camel = (s: string): string => s.replace(/_(.)/g, (_, c: string) => c.toUpperCase())

function rows(q: Asked): unknown {
  const d = parseDeclaration(utf8(JSON.stringify(q.declaration).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')))
  const map = new FeatureMap(d, q.public ? parsePublic(unhex(q.public), d.features.public!) : undefined)
  const examples = q.rows!.map((r): Example | null => {
    try {
      return map.map(r)
    } catch {
      return null
    }
  })
  const out = { bound: map.longest, rows: examples, norm: 0, scores: 0, vector: [] as number[] }
  if (q.statistic === undefined) return out
  const reporter = new Reporter(map)
  const frame = q.frame && (Object.assign(Frame.decode(new Uint8Array()), Object.fromEntries(Object.entries(q.frame).map(([k, v]) => [camel(k), v]))) as FrameBody)
  return {
    ...out, norm: reporter.norm(q.statistic), scores: reporter.scores(q.statistic),
    vector: reporter.unit(q.statistic, examples, q.point ?? [], frame, q.smoothing ?? 0),
  }
}

async function answer(q: Asked): Promise<unknown> {
  if (q.id !== undefined) return { status: q.place !== undefined ? parsePlace(unhex(q.place), unhex(q.id))?.verdict ?? 'none' : parseAnswer(unhex(q.answer ?? ''), unhex(q.id)).status }
  if (q.task !== undefined) return consent(q)
  if (q.whole !== undefined) {
    const d = parseDeclaration(utf8(q.whole))
    wholly()!(d, () => new FeatureMap({ ...d, norm_bound: 0 }).longest)
    return {}
  }
  if (q.record !== undefined) return { hash: hex((await verify(Kind[q.kind!], q.key ? unhex(q.key) : null, unhex(q.record))).hash) }
  if (q.state !== undefined) return { hash: parseLatest(unhex(q.state)).tag }
  return rows(q)
}

await load(Suite.mlkem768X25519, { features: { fourier: {} }, model: { loss: 'logistic' }, grants: 'pass' } as Declaration, true)
for await (const line of createInterface({ input: process.stdin })) {
  let said: unknown
  try {
    said = await answer(JSON.parse(line) as Asked)
  } catch (e) {
    said = { refused: (e as Error).message }
  }
  // JSON has no numbers that are not finite.
  process.stdout.write(JSON.stringify(said, (_, v: unknown) => (typeof v === 'number' && !Number.isFinite(v) ? 1e308 * Math.sign(v) : v)) + '\n')
}
