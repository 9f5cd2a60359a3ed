// A device: it agrees to a task by its own accounting, turns events into sealed reports, and knows afterwards whether each
// was counted. Rules and numbers are those of docs/reference/protocol.md and device.md.
import { SystemWords } from './binomial.js'
import { equal, hex, random, type Bytes } from './bytes.js'
import { Agreement, pins, type Policy, type RoundBody } from './consent.js'
import { Refused } from './declaration.js'
import { draw, pack, place } from './encode.js'
import { Unfit, type Event, type Example } from './features.js'
import {
  abandon, acked, answered, attemptOf, decide, fresh, join, mayJoin, maySend, outcome, participations, sending, stays,
  type AttemptId, type Participation, type State,
} from './participation.js'
import { parsePlace, placeRequest } from './places.js'
import type { Place } from './plan.js'
import type { Latest, Transport } from './relay.js'
import { messageId, seal, type Kem } from './seal.js'
import { verify } from './signed.js'
import type { Charge, Store } from './store.js'
import { Kind, Suite, Trust, type BodyOf } from './wire.js'

/** How a device is opened. */
export interface Options {
  task: string
  transport: (task: string) => Transport
  store: Store
  /** Which task this is: its hash, or the keys of learner and stage. Else trustFirstUse has to be said. */
  pins?: { task?: string; learner?: string; stage?: string }
  trustFirstUse?: boolean
  policy?: Policy
  /** The key encapsulation of suite 3: await import('@panlearn/device/hybrid'). */
  hybrid?: Kem
  /** Names the person of all events, where the ledger is of several. */
  user?: string
  /** Where the device says what it does; never anything of an event. */
  log?: (message: string) => void
  signal?: AbortSignal
}

/** What became of an event. open: the round was not closed when this was said. */
export interface Outcome {
  state: State | 'waiting' | 'refused'
  round: number // the last that it took part in; 0: none
  open: boolean
  why?: string // of refused
}

/** A Ticket is one event on its way. */
export interface Ticket {
  readonly key: string
  /** Whether the event fits the task; one that does not is sent as the zero vector. Known when it is accepted. */
  readonly fits: boolean | undefined
  /** Resolves when the event is charged, durably, or settled without that. */
  readonly accepted: Promise<void>
  /** Resolves when its outcome is known: its round has closed, or the task has ended. */
  readonly outcome: Promise<Outcome>
}

const leastTick = 100 // ms
const closeWait = 30_000 // ms after the End of a task

/** One event on its way in this process. */
class Going implements Ticket {
  fits: boolean | undefined
  readonly accepted: Promise<void>
  readonly outcome: Promise<Outcome>
  accept!: () => void
  done!: (o: Outcome) => void
  counts: Bytes | null = null // of its round: memory alone, for a further attempt
  joinAt = 0 // when it may join the attempt that lot was drawn for
  lot = '' // the attempt, as JSON

  constructor(readonly key: string, readonly rows: Event[] | null, public part: Participation) {
    this.accepted = new Promise((resolve) => (this.accept = resolve))
    this.outcome = new Promise((resolve) => (this.done = resolve))
  }
}

/** The newest round that the device knows. */
interface Round {
  body: RoundBody
  manifest: Bytes
  place: Place
  open: BodyOf<typeof Kind.open> | null
  attempt: AttemptId
  openedAt: number // when this device saw the Open
  over: boolean // claimed, or closed
}

/** Takes part in one task. */
export class Device {
  private readonly going = new Map<string, Going>()
  private readonly stop = new AbortController()
  private readonly transport: Transport
  private state: Latest | null = null
  private readAt = 0
  private round: Round | null = null
  private endedAt = 0
  private ended = false
  private tick = leastTick
  private readonly running: Promise<void>
  private kick: () => void = () => undefined
  /** Why the device stopped by itself; null while it runs. */
  failed: Error | null = null

  private constructor(private readonly options: Options, readonly agreement: Agreement, private readonly log: (m: string) => void) {
    this.transport = options.transport(options.task)
    this.running = this.run()
  }

  /** Waits until the task is announced, and opens a device for it. Throws Refused where the policy does not agree. */
  static async open(options: Options): Promise<Device> {
    const log = options.log ?? (() => undefined)
    const p = options.pins ?? {}
    const policy: Policy = {
      ...options.policy,
      ...(p.task !== undefined && { task_hash: p.task }),
      ...(p.learner !== undefined && { learner_key: p.learner }),
      ...(p.stage !== undefined && { stage_key: p.stage }),
    }
    const known = await options.store.task()
    if (!pins(policy) && known.task === '' && options.trustFirstUse !== true) {
      throw new Refused('pins', 'none', 'the hash of the task, or both keys; or trustFirstUse: true')
    }
    const transport = options.transport(options.task)
    for (let pause = 500; ; pause = Math.min(2 * pause, 30_000)) {
      options.signal?.throwIfAborted()
      try {
        const record = await transport.record('task')
        if (record !== null) {
          const task = verify(Kind.task, null, record.data)
          if (!equal(task.key, task.body.learnerKey)) throw new Refused('learner_key', 'another', 'that which signed the task')
          if (task.body.name !== options.task) throw new Refused('task', task.body.name, options.task)
          const stored = known.task === '' ? undefined : Uint8Array.from(known.task.match(/../g)!, (d) => parseInt(d, 16))
          const agreement = new Agreement(policy, task.body, task.hash, stored)
          if (task.body.suite === Suite.mlkem768X25519 && options.hybrid === undefined) {
            throw new Refused('suite', 'ML-KEM-768 with X25519', 'hybrid in the options of the device')
          }
          if (task.body.plan!.trust === Trust.local) log('nobody is trusted in this task: what is published is never drawn again')
          return new Device(options, agreement, log)
        }
        log('waiting for the task to be announced')
      } catch (e) {
        if (e instanceof Refused) throw e
        log(`the task cannot be read yet: ${(e as Error).message}`)
      }
      await sleep(pause, options.signal)
    }
  }

  /**
   * Takes an event, at once. key names it for ever: a key that took part is answered and not sent again. In a task that
   * protects people events are all that this person ever contributes. Nothing here looks into an event: one that does not
   * fit takes part as the zero vector.
   */
  submit(key: string, event: Event | Event[]): Ticket {
    if (typeof key !== 'string' || key === '' || key.length > 256) throw new Error('want a key of 1 to 256 characters')
    if (this.stop.signal.aborted) throw new Error('the device is closed')
    const known = this.going.get(key)
    if (known !== undefined) return known
    const going = new Going(key, Array.isArray(event) ? event : [event], fresh(key))
    this.going.set(key, going)
    this.kick()
    return going
  }

  /** Returns what is known of an event. */
  async outcome(key: string): Promise<Outcome> {
    const part = this.going.get(key)?.part ?? (await this.options.store.read(key))
    if (part === null || part === undefined) return { state: 'waiting', round: 0, open: false }
    return this.outcomeOf(part)
  }

  /** Stops. What is charged stays so: a later device with the same store learns what became of it. */
  async close(): Promise<void> {
    this.stop.abort()
    this.kick()
    await this.running
    for (const g of this.going.values()) this.finish(g)
    await this.options.store.close()
  }

  private outcomeOf(p: Participation): Outcome {
    if (p.state === 'fresh') return { state: this.ended ? 'uncounted' : 'waiting', round: 0, open: false }
    return { state: p.state === 'charged' ? 'charged' : outcome(p), round: p.draw?.round ?? 0, open: p.state === 'charged' }
  }

  private finish(g: Going, refused?: string): void {
    this.going.delete(g.key)
    g.counts?.fill(0)
    g.accept()
    const o = this.outcomeOf(g.part)
    if (g.part.state === 'charged') o.state = 'unknown'
    if (g.part.state === 'fresh') o.state = 'uncounted'
    g.done(refused === undefined ? o : { ...o, state: g.part.state === 'fresh' ? 'refused' : o.state, why: refused })
  }

  // The loop: one thing after the other, so that a store has one writer.

  private async run(): Promise<void> {
    try {
      for (const p of await this.options.store.charged()) this.going.set(p.key, new Going(p.key, null, p))
      while (!this.stop.signal.aborted) {
        if (this.going.size === 0) {
          await this.kicked(3_600_000) // a device without events asks for nothing
          continue
        }
        const begun = Date.now()
        await this.look()
        await this.settle()
        if (!this.ended) await this.advance()
        else if (Date.now() - this.endedAt > closeWait) for (const g of [...this.going.values()]) await this.giveUp(g)
        await this.kicked(Math.max(0, this.tick - (Date.now() - begun)))
      }
    } catch (e) {
      this.failed = e as Error
      this.log(`stopped: ${this.failed.message}`)
      this.stop.abort()
      for (const g of [...this.going.values()]) this.finish(g, this.failed.message)
    }
  }

  /** Waits for a time, or until there is something to do. */
  private kicked(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.kick = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Reads what is newest: at once where something waits for a time, else when the relay says that it changed. */
  private async look(): Promise<void> {
    const soon = [...this.going.values()].some((g) => g.part.state !== 'charged' && this.round !== null && !this.round.over)
    if (soon && Date.now() - this.readAt < 2000) return
    let latest: Latest | null
    try {
      latest = await this.transport.latest(this.state?.tag ?? '', soon ? 1 : 25, this.stop.signal)
    } catch {
      if (!this.stop.signal.aborted) await sleep(1000, this.stop.signal).catch(() => undefined)
      return
    }
    this.readAt = Date.now()
    if (latest === null) return
    this.state = latest
    try {
      await this.takeRound(latest)
      await this.takeOpen(latest)
      await this.takeEnd(latest)
    } catch (e) {
      if (e instanceof Refused) throw e
      this.state = { ...latest, tag: '' } // what was not read, or not signed as it should be, is read again
      this.log(`a record that is not taken: ${(e as Error).message}`)
    }
  }

  private async takeRound(latest: Latest): Promise<void> {
    const { round } = latest.round
    if (round === 0n || (this.round !== null && round <= this.round.body.round)) return
    const record = await this.transport.record(`rounds/${round}`)
    if (record === null) return
    const { body, hash } = verify(Kind.round, this.agreement.task.learnerKey, record.data)
    if (body.round !== round) return
    const stored = await this.options.store.task()
    const known = Number(round) === stored.round && stored.manifest !== '' ? stored.manifest : undefined
    const at = this.agreement.round(body, hash, known === undefined ? undefined : bytesOf(known))
    if (this.round !== null) this.agreement.order(this.round.body, body)
    if (Number(round) < stored.round || Number(body.step) < stored.step) {
      throw new Refused(`round ${round}`, 'older than one that this device joined', 'a newer one')
    }
    for (const g of this.going.values()) {
      g.counts?.fill(0)
      g.counts = null
    }
    this.round = { body, manifest: hash, place: at, open: null, attempt: { number: 0, open: '' }, openedAt: 0, over: false }
    this.measure()
  }

  private async takeOpen(latest: Latest): Promise<void> {
    const r = this.round
    if (r === null || latest.round.round !== r.body.round) return
    r.over = (latest.claim.sequence > 0n && latest.claim.round === r.body.round && latest.claim.attempt >= BigInt(r.attempt.number)) ||
      (latest.close.sequence > 0n && latest.close.round === r.body.round)
    const { attempt } = latest.open
    if (latest.open.round !== r.body.round || attempt === 0n || Number(attempt) < r.attempt.number) return
    const record = await this.transport.record(`opens/${r.body.round}/${attempt}`)
    if (record === null) return
    const { body, hash } = verify(Kind.open, this.agreement.task.stageKey, record.data)
    const id = attemptOf(attempt, hash)
    if (body.round !== r.body.round || body.attempt !== attempt || !equal(body.taskHash, this.agreement.hash) ||
      !equal(body.manifestHash, r.manifest) || body.suite !== this.agreement.task.suite || id.open === r.attempt.open) return
    ;[r.open, r.attempt, r.openedAt] = [body, id, Date.now()]
  }

  private async takeEnd(latest: Latest): Promise<void> {
    if (latest.end.sequence === 0n || this.ended) return
    const record = await this.transport.record('end')
    if (record === null) return
    const { body } = verify(Kind.end, this.agreement.task.learnerKey, record.data)
    if (!equal(body.taskHash, this.agreement.hash)) return
    this.ended = true
    this.endedAt = Date.now()
    for (const g of [...this.going.values()]) if (g.part.state !== 'charged') this.finish(g)
  }

  /** Chooses the tick: the larger of 100 ms and eight times what a decoy takes. */
  private measure(): void {
    const r = this.round!
    const begun = performance.now()
    const rows = Array.from({ length: this.items }, () => null)
    this.report(r, rows)
    this.tick = Math.max(leastTick, this.tick, Math.ceil(8 * (performance.now() - begun)))
  }

  /** The rows of a person that enter a report; 1 of an event. */
  private get items(): number {
    const { privacy, user } = this.agreement.declaration
    return privacy.unit === 'user' ? Math.max(1, user?.items ?? 1) : 1
  }

  private mapped(row: Event | undefined): Example | null {
    if (row === undefined) return null
    try {
      return this.agreement.map.map(row)
    } catch (e) {
      if (!(e instanceof Unfit)) this.log('an event could not be mapped')
      return null
    }
  }

  /** The packed counts of a report about some rows; null rows are the zero vector. */
  private report(r: Round, rows: (Example | null)[]): Bytes {
    const { params, statistic } = this.agreement.phases[r.place.index]!
    const { reporter } = this.agreement
    const vectors = rows.map((e) => reporter.row(statistic, e, r.body.point, r.body.frame, r.place.phase.smoothing))
    const mean = vectors.length === 1 ? vectors[0]! : vectors[0]!.map((_, j) => vectors.reduce((s, v) => s + v[j]!, 0) / vectors.length)
    const words = new SystemWords()
    try {
      return pack(draw(words, place([mean], params), params), params)
    } finally {
      words.erase()
    }
  }

  /** Takes the events of this tick one step further: one joins, and what is charged is sent. */
  private async advance(): Promise<void> {
    const r = this.round
    if (r === null || r.open === null || r.over) return
    let joined = false
    for (const g of [...this.going.values()]) {
      if (g.part.state === 'fresh' && g.rows !== null && !g.lot) g.part = (await this.options.store.read(g.key)) ?? g.part
      if (g.part.state === 'charged') {
        await this.send(g, r)
        continue
      }
      if (this.isSettled(g)) {
        this.finish(g)
        continue
      }
      if (joined || g.rows === null || !mayJoin(g.part, this.drawOf(r))) continue
      if (!(await this.mayEnter(g, r))) continue
      joined = true // one event a tick
      await this.joins(g, r)
    }
  }

  private isSettled(g: Going): boolean {
    const p = g.part
    if (p.state === 'fresh') return false
    if (p.draw !== null && stays(p, p.draw.phase)) return false
    if (p.state !== 'uncounted') return true
    const refunds = this.options.policy?.max_refunds ?? 8
    return p.refunds >= refunds || p.reports >= (this.options.policy?.max_reports ?? 64) || !this.agreement.affords(p.refunds + 2)
  }

  private drawOf(r: Round): { round: number; phase: number; step: number; most: number; manifest: string } {
    return {
      round: Number(r.body.round), phase: r.place.stint.index, step: Number(r.body.step), most: r.place.stint.rounds,
      manifest: hex(r.manifest),
    }
  }

  /** Whether the event may join now: its lot has come and, where the stage gives places, it has one. */
  private async mayEnter(g: Going, r: Round): Promise<boolean> {
    const open = r.open!
    const now = Date.now()
    const lot = JSON.stringify(r.attempt)
    if (g.lot !== lot) {
      g.lot = lot
      const member = r.place.stint.rounds > 1 && g.part.draw !== null && stays(g.part, r.place.stint.index)
      const after = member ? 0 : rampAfter(new DataView(random(4).buffer).getUint32(0), open)
      // By this clock since the Open was seen, or by the time in the Open, whichever comes earlier.
      g.joinAt = Math.min(r.openedAt, Math.max(Number(open.startedUnixMs), now - 366 * 86_400_000)) + after
    }
    if (now < g.joinAt) return false
    if (open.placesMs === 0) return true
    const asked = { mono: performance.now(), wall: Date.now() }
    const id = random(16)
    const answer = await this.transport.place(r.body.round, open.attempt, placeRequest(id, 1, false))
    const verdict = answer === null ? null : parsePlace(answer, id)
    const spent = Math.max(performance.now() - asked.mono, Date.now() - asked.wall)
    if (verdict?.verdict === 'granted' && spent < verdict.ms / 2) return true
    if (verdict?.verdict === 'over') r.over = true
    // No answer, no charge: ask again, at a time that is drawn.
    const wait = verdict?.verdict === 'wait' ? verdict.ms : 1000
    g.joinAt = Math.max(g.joinAt, Date.now()) + wait * (0.5 + random(1)[0]! / 256)
    return false
  }

  /** Charges the event to the round, durably, and sends it on the next tick. */
  private async joins(g: Going, r: Round): Promise<void> {
    const now = Date.now()
    const times = participations(g.part, r.place.stint.index)
    const charge: Charge = {
      task: hex(this.agreement.hash), name: this.agreement.task.name, user: this.options.user ?? '',
      epsilon: this.agreement.cost(times), delta: this.agreement.delta, at: now,
    }
    const refused = this.totals(await this.options.store.charges(), charge)
    if (refused !== null) {
      this.finish(g, refused)
      return
    }
    const end = Date.now() + this.tick
    const rows = g.rows!.slice(0, this.items)
    g.fits = true
    const examples: (Example | null)[] = []
    for (let i = 0; i < this.items; i++) { // as much work whatever rows there are
      const e = this.mapped(rows[i])
      if (i < rows.length) {
        if (e === null) g.fits = false
        examples.push(e)
      } else examples.push(null)
    }
    const counts = this.report(r, examples.slice(0, Math.max(1, rows.length)))
    g.counts = counts
    const d = this.drawOf(r)
    join(g.part, { ...d, final: this.agreement.plan.trust === Trust.local, report: random(16) })
    await this.store(g, r, charge)
    g.accept()
    this.log(`joined round ${d.round}`)
    await sleep(Math.max(0, end - Date.now()), this.stop.signal).catch(() => undefined)
    await this.send(g, r)
  }

  /** Seals for the newest attempt and stores that before the first publish. */
  private async store(g: Going, r: Round, charge?: Charge): Promise<void> {
    const p = g.part
    sending(p, r.attempt, this.agreement.hasFloors)
    const to = {
      suite: this.agreement.task.suite, manifestHash: r.manifest, attempt: r.open!.attempt,
      stageKey: this.agreement.task.stageKey, publicKey: r.open!.publicKey,
    }
    p.sealed = seal(to, this.agreement.hash, [p.draw!.report], g.counts!, this.options.hybrid)
    await this.options.store.write({
      events: [p],
      task: { task: hex(this.agreement.hash), round: Number(r.body.round), step: Number(r.body.step), manifest: hex(r.manifest) },
      ...(charge && { charges: [charge] }),
    })
    g.lot = 'sealed'
  }

  /** Publishes a charged event to the newest attempt, where that has no answer yet. */
  private async send(g: Going, r: Round): Promise<void> {
    const p = g.part
    const to = r.attempt
    if (p.draw === null || p.draw.round !== Number(r.body.round) || answered(p, to)) return
    const last = p.sends[p.sends.length - 1]?.attempt
    const fits = last !== undefined && last.number === to.number && last.open === to.open
    if (g.lot !== 'sealed') { // a retry, or another attempt
      if (!maySend(p, to, this.agreement.hasFloors)) return
      if (fits) {
        sending(p, to, this.agreement.hasFloors)
        await this.options.store.write({ events: [p] })
      } else {
        if (g.counts === null) return // a reloaded page has no counts: the Close decides
        await this.store(g, r)
      }
    } else if (!fits) return
    g.lot = 'sent'
    const id = messageId(p.draw.report, BigInt(to.number), bytesOf(to.open))
    const ack = await this.transport.publish(r.body.round, BigInt(to.number), id, p.sealed!)
    acked(p, to, ack)
    await this.options.store.write({ events: [p] })
    if (ack.status !== 'stored' && ack.status !== 'duplicate') await sleep(1000 + 4 * random(1)[0]!, this.stop.signal).catch(() => undefined)
  }

  /** Decides the charged events of rounds that are closed. */
  private async settle(): Promise<void> {
    const open = new Set([...this.going.values()].filter((g) => g.part.state === 'charged').map((g) => g.part.draw!.round))
    for (const round of open) {
      const closed = await this.closeOf(round)
      if (closed === null) continue
      for (const g of [...this.going.values()]) {
        if (g.part.state !== 'charged' || g.part.draw!.round !== round) continue
        decide(g.part, closed)
        await this.conclude(g)
      }
    }
  }

  private async conclude(g: Going): Promise<void> {
    await this.options.store.write({ events: [g.part] })
    g.counts?.fill(0)
    g.counts = null
    g.lot = ''
    this.log(`round ${g.part.draw!.round}: ${g.part.state}`)
    if (this.isSettled(g) || this.ended || g.rows === null) this.finish(g)
  }

  private async giveUp(g: Going): Promise<void> {
    abandon(g.part)
    await this.options.store.write({ events: [g.part] })
    this.finish(g)
  }

  /** Reads the Close of a round and the Open that stands beside it: the relay by name, never a cache. */
  private async closeOf(round: number): Promise<import('./participation.js').Closed | null> {
    const latest = this.state
    if (latest === null) return null
    const isNewest = Number(latest.round.round) === round
    if (isNewest && latest.close.sequence === 0n && !this.ended) return null
    const most = isNewest ? Number(latest.close.attempt || latest.open.attempt) : 16
    for (let a = most; a >= 1; a--) {
      try {
        const record = await this.transport.record(`closes/${round}/${a}`)
        if (record === null) continue
        const { body } = verify(Kind.close, this.agreement.task.stageKey, record.data)
        if (Number(body.round) !== round || Number(body.attempt) !== a || !equal(body.taskHash, this.agreement.hash)) continue
        const beside = await this.transport.record(`opens/${round}/${a}`)
        if (beside === null) continue
        const open = verify(Kind.open, this.agreement.task.stageKey, beside.data)
        if (!equal(open.body.manifestHash, body.manifestHash)) continue
        return {
          round, attempt: attemptOf(body.attempt, open.hash), manifest: hex(body.manifestHash), cutoff: Number(body.cutoff),
          void: body.void,
        }
      } catch {
        return null // nothing is known
      }
    }
    return null
  }

  /** Returns why the policy's totals do not allow a charge beside those of other tasks; null where they do. */
  private totals(charges: Charge[], c: Charge): string | null {
    const { max_total_epsilon: epsilon, max_total_delta: delta } = this.options.policy ?? {}
    const others = charges.filter((o) => o.user === c.user && o.task !== c.task)
    const sum = (of: (o: Charge) => number): number => [...others, c].reduce((s, o) => s + of(o), 0)
    if (epsilon !== undefined && !(sum((o) => o.epsilon) <= epsilon * (1 + 1e-9))) return `total epsilon: at most ${epsilon}`
    if (delta !== undefined && !(sum((o) => o.delta) <= delta * (1 + 1e-9))) return `total delta: at most ${delta}`
    return null
  }
}

const bytesOf = (digits: string): Bytes => Uint8Array.from(digits.match(/../g) ?? [], (d) => parseInt(d, 16))

const holds = 4 // the share stays as announced for a quarter of a doubling
const leastShare = 2 ** -16

/** The time after Open at which a device may join with its draw of 32 bits (rule 11). */
export function rampAfter(drawn: number, open: { joinProbability: number; joinDoublingMs: number }): number {
  const u = (drawn + 1) / 2 ** 32
  const first = open.joinProbability === 0 ? 1 : Math.max(open.joinProbability / 2 ** 32, leastShare)
  if (u <= first) return 0
  return (1 / holds + Math.log2(u / first)) * (open.joinDoublingMs || 1000)
}

/** Waits for a time; rejects where the signal ends first. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(new Error('stopped'))
      return
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    const stop = (): void => {
      clearTimeout(timer)
      reject(new Error('stopped'))
    }
    signal?.addEventListener('abort', stop, { once: true })
  })
}

