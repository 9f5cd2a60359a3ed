// A device: it agrees to a task by its own accounting, turns events into sealed reports, and knows afterwards whether each
// was counted. Rules and numbers are those of docs/reference/protocol.md and device.md.
import { SystemWords } from './binomial.js'
import { concat, equal, hex, random, type Bytes } from './bytes.js'
import { Clock, duration } from './clock.js'
import { Agreement, checkPolicy, pins, type Policy, type RoundBody } from './consent.js'
import { Refused, parseDeclaration } from './declaration.js'
import { draw, pack, place } from './encode.js'
import { Unfit, type Event, type Example } from './features.js'
import { affordTotal, joining, later, settled, type Charge } from './ledger.js'
import {
  abandon, acked, answered, attemptOf, decide, exhausted, fresh, join, mayJoin, maySend, outcome, sending,
  stays, type Ack, type AttemptId, type Closed, type Draw, type Participation, type State,
} from './participation.js'
import { parsePlace, placeRequest } from './places.js'
import { grants, kemOf, load } from './parts.js'
import { placeOf, type Place } from './plan.js'
import { openBeside, readClose, readEnd, readOpen, readRound } from './records.js'
import type { Issuer, Latest, Stored, Transport } from './relay.js'
import { messageId, seal } from './seal.js'
import { isNode, verify } from './signed.js'
import type { Store } from './store.js'
import { Kind, Trust, type BodyOf } from './wire.js'

/** How a device is opened. */
export interface Options {
  task: string
  transport: (task: string) => Transport
  store: Store
  /** Which task this is: its hash, or the keys of learner and stage. Else trustFirstUse has to be said. */
  pins?: { task?: string; learner?: string; stage?: string }
  trustFirstUse?: boolean
  policy?: Policy
  /** The source of tokens, for a task that requires one of each person: fromIssuer('https://app.example/grant'). */
  grant?: Issuer
  /**
   * Whether to check that the whole declaration could stand in a task file, what people read and no number rests on too: in
   * Node by default; in a page it loads one chunk more.
   */
  whole?: boolean
  /** Names the person of all events, where the ledger is of several. */
  user?: string
  /** Where the device says what it does; never anything of an event. */
  log?: (message: string) => void
  signal?: AbortSignal
}

/**
 * What became of an event. fresh: this device knows nothing of the key. waiting: submitted, and not charged. open: the
 * round was not closed when this was said.
 */
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
  /** How many of a person's rows are beyond those that enter a report: they are ignored, whatever they hold. */
  readonly surplus: number
  /** Resolves when the event is charged, durably, or settled without that. */
  readonly accepted: Promise<void>
  /** Resolves when its outcome is known: its round has closed, or the task has ended. */
  readonly outcome: Promise<Outcome>
}

const leastTick = 100 // ms
const closeWait = 30_000 // ms after the End of a task
const longest = 30_000 // ms between two tries of anything
const mostOut = 16 // publishes and requests for places that are on their way together
const keptRounds = 1000 // further back records may be removed
const answersWithin = 2000 // ms that close waits for the broker

/** One event on its way in this process. */
class Going implements Ticket {
  fits: boolean | undefined
  surplus = 0
  readonly accepted: Promise<void>
  readonly outcome: Promise<Outcome>
  accept!: () => void
  done!: (o: Outcome) => void
  known = false // whether the store was asked about the key
  draft: Draft | null = null // of the newest round, in memory alone
  lot: { attempt: AttemptId; at: number } | null = null // when it may join the attempt that it drew for
  out = false // a publish or a request is on its way
  retryAt = 0 // of the next publish
  pause = 0 // before it

  constructor(readonly key: string, public rows: unknown[] | null, public part: Participation) {
    this.accepted = new Promise((resolve) => (this.accept = resolve))
    this.outcome = new Promise((resolve) => (this.done = resolve))
  }

  forget(): void {
    this.draft?.counts.fill(0)
    this.draft = null
  }
}

/** A report that was drawn: one for a manifest, whatever attempts and places become of it. */
interface Draft {
  manifest: string
  counts: Bytes
  report: Bytes // id
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
  full: boolean // the stage said that the attempt takes nobody any more
  shut: boolean // nothing can be sealed to the attempt's key
}

const none: AttemptId = { number: 0, open: '' }
const same = (a: AttemptId, b: AttemptId): boolean => a.number === b.number && a.open === b.open
const around = (ms: number): number => ms * (0.5 + new DataView(random(4).buffer).getUint32(0) / 2 ** 32)

/**
 * Takes part in one task. One loop performs everything, so that a store has one writer; requests are made beside it,
 * and it takes up their answers:
 *
 *     waiting -> drawn -> asks for a place -> charged, durably -> sent -> decided by a Close
 *
 * An event is drawn on one tick and leaves on a later one, so that how long its row took shows nowhere.
 */
export class Device {
  private readonly going = new Map<string, Going>()
  private readonly stop = new AbortController()
  private readonly transport: Transport
  private state: Latest | null = null // the records that were acted on
  private news: Latest | null = null // the records to act on
  private readNews = 0 // when news were read, if that failed
  private round: Round | null = null
  private endedAt = 0
  private ended = false
  private lastRound = 0n // of the End: a later round was given up, and never closes
  private tick = leastTick
  private measured = -1 // phase
  private beatAt = 0
  private out = 0 // requests on their way
  private readonly clock = new Clock()
  private heard = { broker: 0, at: -Infinity } // the broker's time, and the own clock when it came
  private compared = -Infinity // heard.at of the last comparison of the clocks
  private saidAhead = false
  private token: Bytes | null = null // of the task's issuer
  private denied = false // the issuer gave this person's token to somebody else
  private held = false // the broker refused a report, and took none since
  private answers: (() => Promise<void>)[] = [] // what to do with answers that came
  private readonly judging = new Map<number, { at: number; pause: number }>()
  private readonly running: Promise<void>
  private readonly wakers = new Set<() => void>()
  private closing: Promise<void> | null = null
  /** Why the device stopped by itself; null while it runs. */
  failed: Error | null = null

  private constructor(private readonly options: Options, readonly agreement: Agreement, charged: Participation[],
    private readonly log: (m: string) => void) {
    this.transport = options.transport(options.task)
    for (const p of charged) this.going.set(p.key, Object.assign(new Going(p.key, null, p), { known: true }))
    this.running = this.run()
    void this.watch()
    if (agreement.hasGrants) void this.obtain().catch((e: unknown) => this.log(`no token: ${(e as Error).message}`))
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
    checkPolicy(policy)
    const known = await options.store.task()
    if (!pins(policy) && known.task === '' && options.trustFirstUse !== true) {
      throw new Refused('pins', 'none', 'the hash of the task, or both keys; or trustFirstUse: true')
    }
    const transport = options.transport(options.task)
    for (let pause = 500; ; pause = Math.min(2 * pause, longest)) {
      options.signal?.throwIfAborted()
      let record: Stored | null = null
      try {
        record = await transport.record('task')
        if (record === null) log('waiting for the task to be announced')
      } catch (e) {
        log(`the task cannot be read yet: ${(e as Error).message}`)
      }
      if (record !== null) {
        const agreement = await agree(options, policy, record.data, known.task).catch((e: unknown) => {
          if (e instanceof Refused) throw e
          log(`the task is not taken yet: ${(e as Error).message}`) // not signed as it should be, or a chunk was not loaded
          return null
        })
        if (agreement === null) {
          await sleep(around(pause), options.signal)
          continue
        }
        const charged = await options.store.charged()
        await enter(options, agreement, known.task !== '', charged.length)
        if (agreement.plan.trust === Trust.local) log('nobody is trusted in this task: what is published is never drawn again')
        return new Device(options, agreement, charged, log)
      }
      await sleep(around(pause), options.signal)
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
    if (Array.isArray(event) && !this.byUser) throw new Error('want one event: the task protects events, not people')
    const rows = (Array.isArray(event) ? event : [event]).map(copied)
    const known = this.going.get(key)
    if (known !== undefined) {
      known.rows ??= rows // an earlier process left it charged
      return known
    }
    const going = new Going(key, rows, fresh(key))
    going.surplus = Math.max(0, rows.length - this.items)
    this.going.set(key, going)
    this.wake()
    return going
  }

  /** Returns what is known of an event, also of one that an earlier process submitted. */
  async outcome(key: string): Promise<Outcome> {
    const going = this.going.get(key)
    const part = going?.known ? going.part : await this.options.store.read(key)
    if (part === null || part === undefined) return { state: going === undefined ? 'fresh' : 'waiting', round: 0, open: false }
    return this.outcomeOf(part)
  }

  /** Stops. What is charged stays so: a later device with the same store learns what became of it. */
  close(): Promise<void> {
    this.closing ??= (async () => {
      this.stop.abort()
      this.wake()
      await this.running
      await this.options.store.close()
    })()
    return this.closing
  }

  /** Whether the browser may delete what it keeps: this person may then be asked again, and pay again. */
  get mayForget(): boolean {
    return this.options.store.mayForget
  }

  private get task(): string {
    return hex(this.agreement.hash)
  }

  private get user(): string {
    return this.options.user ?? ''
  }

  private get byUser(): boolean {
    return this.agreement.declaration.privacy.unit === 'user'
  }

  private outcomeOf(p: Participation): Outcome {
    if (p.state === 'fresh') return { state: this.ended ? 'uncounted' : 'waiting', round: 0, open: false }
    return { state: p.state === 'charged' ? 'charged' : outcome(p), round: p.draw?.round ?? 0, open: p.state === 'charged' }
  }

  private finish(g: Going, refused?: string): void {
    this.going.delete(g.key)
    g.forget()
    g.accept()
    const o = this.outcomeOf(g.part)
    if (g.part.state === 'charged') o.state = outcome(g.part)
    // Of a key that the store was not asked about nothing is known: an earlier process may have sent it.
    if (g.part.state === 'fresh') o.state = g.known ? 'uncounted' : 'unknown'
    g.done(refused === undefined ? o : { ...o, state: g.part.state === 'fresh' && g.known ? 'refused' : o.state, why: refused })
  }

  // The loop.

  private async run(): Promise<void> {
    try {
      while (!this.stop.signal.aborted) await this.pass()
      const until = performance.now() + answersWithin
      while (this.out > 0 && performance.now() < until) await this.rest(until - performance.now())
      await this.takeAnswers()
    } catch (e) {
      this.failed = e as Error
      this.log(`stopped: ${this.failed.message}`)
      this.stop.abort()
      this.wake()
    }
    for (const g of [...this.going.values()]) this.finish(g, this.failed?.message)
  }

  private async pass(): Promise<void> {
    await this.takeAnswers()
    await this.admit()
    if (this.going.size === 0) return this.idle()
    if (this.denied) {
      for (const g of [...this.going.values()]) if (g.known && g.part.state === 'fresh') this.finish(g, 'the token of this person was given to another device')
    }
    await this.takeNews()
    this.compareClock()
    await this.settle()
    if (this.ended) {
      for (const g of [...this.going.values()]) {
        if (g.known && g.part.state !== 'charged') this.finish(g)
        else if (Date.now() - this.endedAt > closeWait && !g.out) await this.conclude(g, abandon)
      }
    } else {
      await this.resend()
      const now = performance.now()
      if (now >= this.beatAt) {
        this.beatAt = now + this.tick
        await this.beat()
      }
    }
    if (this.answers.length === 0) await this.rest(Math.max(1, this.ended ? 1000 : this.beatAt - performance.now()))
  }

  private wake(): void {
    for (const w of this.wakers) w()
  }

  /** Waits for a time, or until there is something to do. */
  private rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        clearTimeout(timer)
        this.wakers.delete(go)
        resolve()
      }
      const timer = setTimeout(go, ms)
      this.wakers.add(go)
    })
  }

  /** Waits until there is an event, or the device is closed: without events it asks for nothing. */
  private idle(): Promise<void> {
    return this.stop.signal.aborted ? Promise.resolve() : this.rest(3_600_000)
  }

  /** Makes a request beside the loop, which takes up its answer. */
  private beside<T>(g: Going, ask: () => Promise<T>, take: (answer: T) => Promise<void>): void {
    g.out = true
    this.out++
    void ask().then((answer) => {
      this.answers.push(async () => {
        g.out = false
        this.out--
        await take(answer)
      })
      this.wake()
    })
  }

  private async takeAnswers(): Promise<void> {
    for (let next = this.answers.shift(); next !== undefined; next = this.answers.shift()) await next()
  }

  /** Asks the store about keys that were submitted: who took part is answered, and never drawn again. */
  private async admit(): Promise<void> {
    for (const g of [...this.going.values()]) {
      if (g.known) continue
      g.part = (await this.options.store.read(g.key)) ?? g.part
      g.known = true
      if (this.isSettled(g)) this.finish(g)
    }
  }

  // What is read.

  /** Gets the token of the task, once: what is asked is kept before, and the same is asked again until it is answered. */
  private async obtain(): Promise<void> {
    const { hash, task } = this.agreement
    const kept = await this.options.store.grant()
    let { pending, token } = kept?.task === hex(hash) ? kept : {}
    if (token === undefined && pending === undefined) {
      pending = await grants().ask(hash, task.issuerKey)
      await this.options.store.write({ grant: { task: hex(hash), pending } })
    }
    for (let pause = 1000; token === undefined; pause = Math.min(2 * pause, longest)) {
      const answer = await this.options.grant!(pending!.request)
      if (answer === 'refused') {
        this.denied = true
        this.wake()
        return
      }
      token = answer === null ? undefined : await grants().finish(pending!, answer, task.issuerKey).catch(() => undefined)
      if (token === undefined) await sleep(around(pause), this.stop.signal)
      else await this.options.store.write({ grant: { task: hex(hash), token } })
    }
    this.token = token
    this.wake()
  }

  /** Asks the relay for what is newest, one waiting request after the other, while there are events. */
  private async watch(): Promise<void> {
    let pause = 1000
    let seen = ''
    while (!this.stop.signal.aborted) {
      if (this.going.size === 0) {
        await this.idle()
        continue
      }
      try {
        const latest = await this.transport.latest(seen, 25, this.stop.signal)
        pause = 1000
        if (latest !== null) this.heard = { broker: latest.lease.storedMs, at: performance.now() }
        if (latest === null) await sleep(around(pause), this.stop.signal)
        else if (latest.tag !== seen) {
          seen = latest.tag
          ;[this.news, this.readNews] = [latest, 0]
          this.wake()
        }
      } catch {
        await sleep(around(pause), this.stop.signal).catch(() => undefined)
        pause = Math.min(2 * pause, longest)
      }
    }
  }

  private async takeNews(): Promise<void> {
    const latest = this.news
    if (latest === null || performance.now() < this.readNews) return
    try {
      await this.takeRound(latest)
      await this.takeOpen(latest)
      await this.takeEnd(latest)
      this.state = latest
      if (this.news === latest) this.news = null
    } catch (e) {
      if (e instanceof Refused) throw e
      this.readNews = performance.now() + around(1000) // what was not read, or not signed as it should be, is read again
      this.log(`a record that is not taken: ${(e as Error).message}`)
    }
  }

  private async takeRound(latest: Latest): Promise<void> {
    const { round } = latest.round
    if (round === 0n || (this.round !== null && round <= this.round.body.round)) return
    const got = await this.readRound(Number(round))
    if (got === null) return
    const { body, hash } = got
    const stored = await this.options.store.task()
    if (Number(round) < stored.round || (Number(round) === stored.round && hex(hash) !== stored.manifest)) {
      this.log(`round ${round} is none after those that this device joined: it waits for a newer one`)
      return
    }
    const at = this.agreement.round(body, hash)
    try {
      if (this.round !== null) this.agreement.order(this.round.body, body)
      else if (Number(body.step) < stored.step) throw new Refused(`round ${round}: step`, body.step, `at least ${stored.step}`)
    } catch (e) {
      const before = this.round === null ? stored.round : Number(this.round.body.round)
      const manifest = this.round === null ? stored.manifest : hex(this.round.manifest)
      const stands = await this.readRound(before)
      if (at.stint.rounds > 1 || stands === null || hex(stands.hash) === manifest) throw e
      this.log(`another round stands under the number ${before}: the learner or the broker was put back`)
    }
    for (const g of this.going.values()) g.forget()
    this.round = { body, manifest: hash, place: at, open: null, attempt: none, openedAt: 0, over: false, full: false, shut: false }
    this.measure()
  }

  /** Reads a round by its number, verified; null where the broker shows none. */
  private async readRound(number: number): Promise<{ body: RoundBody; hash: Bytes } | null> {
    const record = await this.transport.record(`rounds/${number}`)
    return record === null ? null : readRound(this.agreement, record.data, BigInt(number))
  }

  private async takeOpen(latest: Latest): Promise<void> {
    const r = this.round
    if (r === null || latest.round.round !== r.body.round) return
    r.over = (latest.claim.sequence > 0n && latest.claim.round === r.body.round) ||
      (latest.close.sequence > 0n && latest.close.round === r.body.round)
    const { attempt } = latest.open
    if (latest.open.round !== r.body.round || attempt === 0n || Number(attempt) < r.attempt.number) return
    const record = await this.transport.record(`opens/${r.body.round}/${attempt}`)
    if (record === null) return
    const { body, hash } = await readOpen(this.agreement, record.data, r.body.round, attempt, r.manifest)
    const id = attemptOf(attempt, hash)
    if (same(id, r.attempt)) return
    Object.assign(r, { open: body, attempt: id, openedAt: Date.now(), full: false, shut: false })
    this.held = false
    for (const g of this.going.values()) g.retryAt = g.pause = 0
  }

  private async takeEnd(latest: Latest): Promise<void> {
    if (latest.end.sequence === 0n || this.ended) return
    const record = await this.transport.record('end')
    if (record === null) return
    this.lastRound = await readEnd(this.agreement, record.data)
    this.ended = true
    this.endedAt = Date.now()
  }

  /** Holds the clock against the broker's, where that is due and the broker was heard. */
  private compareClock(): void {
    if (!this.clock.isDoubtful || this.heard.at === this.compared) return
    this.compared = this.heard.at
    const { broker } = this.heard
    this.clock.compared(broker === 0 ? 0 : Math.max(broker, Number(this.round?.open?.startedUnixMs ?? 0n)))
    if (this.clock.isAhead && !this.saidAhead) this.log('this clock is ahead of the broker\'s: nobody is charged until one of them is mended')
    this.saidAhead = this.clock.isAhead
  }

  // From an event to a report.

  /** Chooses the tick: the larger of 100 ms and eight times what a decoy takes. */
  private measure(): void {
    const r = this.round!
    if (this.measured === r.place.index) return
    this.measured = r.place.index
    const took = duration(() => this.report(r, Array.from({ length: this.items }, () => null)).fill(0))
    this.tick = Math.max(leastTick, this.tick, Math.ceil(8 * took))
  }

  /** The rows of a person that enter a report; 1 of an event. */
  private get items(): number {
    return this.byUser ? Math.max(1, this.agreement.declaration.user?.items ?? 1) : 1
  }

  private mapped(row: unknown): Example | null {
    if (row === undefined) return null
    try {
      return this.agreement.map.map(row as Event)
    } catch (e) {
      if (!(e instanceof Unfit)) this.log('an event could not be mapped')
      return null
    }
  }

  /** The packed counts of a report about some rows; null rows are the zero vector. */
  private report(r: Round, rows: (Example | null)[]): Bytes {
    const { params, statistic } = this.agreement.phases[r.place.index]!
    const vector = this.agreement.reporter.unit(statistic, rows, r.body.point, r.body.frame, r.place.phase.smoothing)
    const words = new SystemWords()
    try {
      return pack(draw(words, place([vector], params), params), params)
    } finally {
      words.erase()
    }
  }

  /** Works out the report of an event: as much work whatever rows there are. */
  private prepare(g: Going, r: Round): void {
    const rows = g.rows!.slice(0, this.items)
    g.fits = true
    const examples: (Example | null)[] = []
    for (let i = 0; i < this.items; i++) {
      const e = this.mapped(rows[i])
      if (i < rows.length) {
        if (e === null) g.fits = false
        examples.push(e)
      }
    }
    if (examples.length === 0) examples.push(null)
    g.draft = { manifest: hex(r.manifest), counts: this.report(r, examples), report: random(16) }
  }

  private isSettled(g: Going): boolean {
    const p = g.part
    if (p.state === 'fresh' || p.state === 'charged') return false
    if (this.mayStay(p)) return false
    return p.state !== 'uncounted' || this.ended || exhausted(p, this.maxReports) || p.refunds >= this.maxRefunds ||
      !this.agreement.affords(p.refunds + 2)
  }

  private get maxReports(): number {
    return this.options.policy?.max_reports ?? 64
  }

  private get maxRefunds(): number {
    return this.options.policy?.max_refunds ?? 8
  }

  /** Whether an event may be asked again in its interactive phase. */
  private mayStay(p: Participation): boolean {
    if (this.ended || p.draw === null || !stays(p, p.draw.phase) || p.reports >= this.maxReports + p.rounds) return false
    if (this.round !== null && this.round.place.stint.index !== p.draw.phase) return false
    const at = placeOf(this.agreement.plan, BigInt(p.draw.step))
    return at !== null && BigInt(p.draw.step) < at.stint.last
  }

  private drawOf(r: Round): Omit<Draw, 'report'> {
    return {
      round: Number(r.body.round), phase: r.place.stint.index, step: Number(r.body.step), most: r.place.stint.rounds,
      manifest: hex(r.manifest), final: this.agreement.plan.trust === Trust.local,
    }
  }

  /** When an event may join the newest attempt: its lot, or at once where it is a member of an interactive phase. */
  private joinAt(g: Going, r: Round): number {
    if (g.lot !== null && same(g.lot.attempt, r.attempt)) return g.lot.at
    const open = r.open!
    // By this clock since the Open was seen, or by the time in the Open, whichever comes earlier.
    let at = Math.min(r.openedAt, Math.max(Number(open.startedUnixMs), r.openedAt - 366 * 86_400_000))
    const isLater = r.place.stint.rounds > 1 && r.body.step > r.place.stint.first
    const isMember = isLater && stays(g.part, r.place.stint.index) && g.part.state !== 'uncounted'
    const deadline = Number(r.body.deadlineMs || this.agreement.plan.deadlineMs)
    if (isLater && !isMember) at += deadline === 0 ? 16_000 : deadline / 2
    if (!isMember) at += rampAfter(new DataView(random(4).buffer).getUint32(0), open)
    g.lot = { attempt: r.attempt, at }
    return at
  }

  /** One tick: what was drawn before leaves, and one more event is drawn. */
  private async beat(): Promise<void> {
    const r = this.round
    if (r === null || r.open === null || r.over || r.full || r.shut || this.held || this.clock.isAhead ||
      (this.agreement.hasGrants && this.token === null)) return
    const due = [...this.going.values()].filter((g) => g.known && !g.out && g.rows !== null && g.part.state !== 'charged' &&
      !this.isSettled(g) && mayJoin(g.part, this.drawOf(r)) && Date.now() >= this.joinAt(g, r))
    const leaves = due.find((g) => g.draft !== null)
    const next = due.find((g) => g.draft === null)
    if (leaves !== undefined && this.out < mostOut) {
      if (r.open.placesMs === 0) await this.charge(leaves, r)
      else this.ask(leaves, r)
    }
    if (next !== undefined && !r.over) this.prepare(next, r)
  }

  /** Asks for a place, and charges the event where one is there. No answer, no charge. */
  private ask(g: Going, r: Round): void {
    const [attempt, open] = [r.attempt, r.open!]
    const asked = { mono: performance.now(), wall: Date.now() }
    const id = random(16)
    this.beside(g, () => this.transport.place(r.body.round, open.attempt, placeRequest(id, 1, false), open.placesMs / 2), async (answer) => {
      if (this.stop.signal.aborted || this.round !== r || !same(r.attempt, attempt) || r.over || g.draft === null) return
      const verdict = answer === null ? null : parsePlace(answer, id)
      const spent = Math.max(performance.now() - asked.mono, Date.now() - asked.wall)
      let wait = g.pause = Math.min(Math.max(2 * g.pause, open.placesMs), longest)
      if (verdict !== null) g.pause = 0
      if (verdict?.verdict === 'granted') {
        wait = Math.min(open.placesMs, verdict.ms)
        if (spent < wait / 2) return this.charge(g, r)
      }
      if (verdict?.verdict === 'wait') wait = Math.min(Math.max(verdict.ms, 50), longest)
      if (verdict?.verdict === 'over') r.full = true
      g.lot = { attempt, at: Date.now() + around(wait) }
    })
  }

  /** Charges the event to the round, durably, and sends it. */
  private async charge(g: Going, r: Round): Promise<void> {
    const charges = await this.options.store.charges()
    const own = charges.filter((c) => c.user === this.user)
    const now = later(charges, this.clock.now())
    const charge = joining(this.agreement, this.task, this.user, own.find((c) => c.task === this.task), g.part, this.drawOf(r), now)
    const refused = affordTotal(this.options.policy ?? {}, own, charge, now)
    if (refused !== null) {
      this.finish(g, refused)
      return
    }
    const sealed = this.sealed(g.draft!, r)
    if (sealed === null) return
    join(g.part, { ...this.drawOf(r), report: g.draft!.report })
    await this.keep(g, r, sealed, charge)
    g.accept()
    this.log(`joined round ${r.body.round}`)
    this.publish(g, r, false)
  }

  /** Seals a report for the newest attempt; null where nothing can be sealed to its key, and nobody is charged then. */
  private sealed(draft: Draft, r: Round): Bytes | null {
    const { suite, stageKey } = this.agreement.task
    const to = { suite, manifestHash: r.manifest, attempt: r.open!.attempt, stageKey, publicKey: r.open!.publicKey }
    try {
      return seal(to, this.agreement.hash, [draft.report], this.token === null ? draft.counts : concat(draft.counts, this.token), kemOf(suite))
    } catch {
      r.shut = true
      this.log(`round ${r.body.round}: nothing can be sealed to the key of attempt ${r.attempt.number}`)
      return null
    }
  }

  /** Stores what is sealed before the first publish. */
  private async keep(g: Going, r: Round, sealed: Bytes, charge?: Charge): Promise<void> {
    const p = g.part
    sending(p, r.attempt, this.agreement.hasFloors)
    p.sealed = sealed
    await this.options.store.write({
      events: [p],
      task: { task: this.task, round: Number(r.body.round), step: Number(r.body.step), manifest: hex(r.manifest) },
      ...(charge && { charges: [charge] }),
    })
  }

  /** Publishes what is sealed, once, beside the loop. An event that an earlier attempt charged says so to the stage first. */
  private publish(g: Going, r: Round, announces: boolean): void {
    const [p, to, attempt] = [g.part, r.attempt, r.open!.attempt]
    const id = messageId(p.draw!.report, attempt, bytesOf(to.open))
    const [sealed, keeps] = [p.sealed!, r.open!.placesMs]
    const send = async (): Promise<Ack> => {
      if (announces && keeps > 0) await this.transport.place(r.body.round, attempt, placeRequest(random(16), 1, true), keeps / 2)
      return this.transport.publish(r.body.round, attempt, id, sealed)
    }
    this.beside(g, send, async (ack) => {
      acked(p, to, ack)
      await this.options.store.write({ events: [p] })
      const stored = ack.status === 'stored' || ack.status === 'duplicate'
      if (stored) this.held = false
      else if (ack.status === 'refused') this.held = true
      g.pause = stored ? 0 : Math.min(Math.max(2 * g.pause, 1000), longest)
      g.retryAt = performance.now() + around(g.pause)
    })
  }

  /** Publishes charged events to the newest attempt, where that has no answer yet. */
  private async resend(): Promise<void> {
    const r = this.round
    if (r === null || r.open === null || r.over) return
    for (const g of [...this.going.values()]) {
      const p = g.part
      if (p.state !== 'charged' || g.out || p.draw!.round !== Number(r.body.round) || p.draw!.manifest !== hex(r.manifest) ||
        answered(p, r.attempt) || performance.now() < g.retryAt || this.out >= mostOut) continue
      if (!maySend(p, r.attempt, this.agreement.hasFloors)) continue
      const last = p.sends[p.sends.length - 1]?.attempt
      if (last !== undefined && same(last, r.attempt)) {
        sending(p, r.attempt, this.agreement.hasFloors)
        await this.options.store.write({ events: [p] })
        this.publish(g, r, false)
        continue
      }
      if (g.draft === null) continue // a reloaded page has no counts: the Close decides
      if (exhausted(p, this.maxReports)) {
        if (!stays(p, p.draw!.phase)) await this.conclude(g, abandon)
        continue
      }
      const sealed = r.shut ? null : this.sealed(g.draft, r)
      if (sealed === null) continue
      await this.keep(g, r, sealed)
      this.publish(g, r, true)
    }
  }

  // What became of it.

  /** Decides the charged events of rounds that are closed, and of rounds that nothing will be told of any more. */
  private async settle(): Promise<void> {
    const rounds = new Set([...this.going.values()].filter((g) => g.part.state === 'charged').map((g) => g.part.draw!.round))
    for (const round of this.judging.keys()) if (!rounds.has(round)) this.judging.delete(round)
    for (const round of rounds) {
      const isNewest = this.state === null || this.state.round.round === BigInt(round)
      const closed = this.state !== null && this.state.close.round === BigInt(round) && this.state.close.sequence > 0n
      if (isNewest && !closed && !this.ended) continue
      if (this.ended && BigInt(round) > this.lastRound) continue
      const judge = this.judging.get(round) ?? { at: 0, pause: 500 }
      this.judging.set(round, judge)
      if (performance.now() < judge.at) continue
      let by: ((p: Participation) => void) | null = null
      try {
        by = await this.verdict(round)
      } catch (e) {
        this.log(`round ${round}: nothing is known yet: ${(e as Error).message}`)
      }
      judge.pause = Math.min(2 * judge.pause, this.ended ? 4000 : 2 * longest)
      judge.at = performance.now() + around(judge.pause)
      if (by === null) continue
      for (const g of [...this.going.values()]) {
        if (g.part.state !== 'charged' || g.part.draw!.round !== round) continue
        if (g.out) judge.at = performance.now() + leastTick // its answer comes first
        else await this.conclude(g, by)
      }
    }
  }

  private async conclude(g: Going, by: (p: Participation) => void): Promise<void> {
    by(g.part)
    const known = g.part.state !== 'charged'
    const charges = known ? await this.options.store.charges() : []
    await this.options.store.write({
      events: [g.part],
      charges: charges.filter((c) => c.task === this.task && c.user === this.user).map((c) => settled(c, later(charges, this.clock.now()))),
    })
    if (g.part.state === 'charged') return // of another manifest
    g.forget()
    g.lot = null
    g.retryAt = g.pause = 0
    this.log(`round ${g.part.draw!.round}: ${g.part.state}`)
    if (this.isSettled(g) || this.ended || g.rows === null) this.finish(g)
  }

  /** Returns what decides a round: its Close with the Open beside it; or that nothing ever will. null: not yet. */
  private async verdict(round: number): Promise<((p: Participation) => void) | null> {
    const of = await this.transport.attempts(round, this.stop.signal)
    const attempt = of !== null && of.close.round === BigInt(round) && of.close.sequence > 0n ? of.close.attempt : 0n
    const closed = attempt === 0n ? null : await this.closeOf(round, attempt)
    if (closed !== null) return (p) => decide(p, closed)
    const newest = Number(this.round?.body.round ?? 0)
    if (newest <= round) return null
    const stands = await this.readRound(round)
    // Records so far behind are removed; and of a round that was put again nobody tells who was counted in the first.
    if (stands === null) return newest > round + keptRounds ? abandon : null
    return (p) => {
      if (p.draw!.manifest !== hex(stands.hash)) abandon(p)
    }
  }

  /** Reads the Close of an attempt and the Open that stands beside it: the relay by name, never a cache. */
  private async closeOf(round: number, attempt: bigint): Promise<Closed | null> {
    const record = await this.transport.record(`closes/${round}/${attempt}`)
    const beside = record === null ? null : await this.transport.record(`opens/${round}/${attempt}`)
    if (record === null || beside === null) return null
    const { body } = await readClose(this.agreement, record.data, BigInt(round), attempt)
    const { hash } = await openBeside(this.agreement, beside.data, BigInt(round), attempt)
    return { round, attempt: attemptOf(attempt, hash), manifest: hex(body.manifestHash), cutoff: Number(body.cutoff), void: body.void }
  }
}

/** Agrees to the task of a record. Throws Refused where it does not, anything else where the record is none. */
async function agree(options: Options, policy: Policy, record: Bytes, known: string): Promise<Agreement> {
  const { body, key, hash } = await verify(Kind.task, null, record)
  if (!equal(key, body.learnerKey)) throw new Refused('learner_key', 'another', 'that which signed the task')
  if (body.name !== options.task) throw new Refused('task', body.name, options.task)
  if (body.plan!.trust !== Trust.split) await load(body.suite, parseDeclaration(body.declaration), options.whole ?? isNode)
  const agreement = new Agreement(policy, body, hash, known === '' ? undefined : bytesOf(known))
  if (agreement.hasGrants && options.grant === undefined) throw new Refused('grants', 'pass', 'grant in the options of the device')
  return agreement
}

/**
 * Makes the ledger and the participations agree. A ledger that has events standing in a task whose participations are
 * missing belongs to another store; a store that took part in a task that the ledger does not know is charged again.
 */
async function enter(options: Options, a: Agreement, isPinned: boolean, open: number): Promise<void> {
  const task = hex(a.hash)
  const user = options.user ?? ''
  const charges = (await options.store.charges()).filter((c) => c.task === task)
  if (!isPinned && charges.some((c) => c.standing > 0)) {
    throw new Refused('store', 'a charge of this task and no participations', 'the store that took part')
  }
  if (!isPinned) return
  const own = charges.find((c) => c.user === user)
  if (own !== undefined) {
    // A device that was killed may have settled events and not said so here.
    if (own.open > open) await options.store.write({ charges: [{ ...own, open }] })
  } else if (charges.length === 0) {
    const most = Math.max(...a.phases.map((f) => f.rounds)) * (1 + (options.policy?.max_refunds ?? 8))
    await options.store.write({
      charges: [{
        task, name: a.task.name, user, epsilon: a.cost(1 + (options.policy?.max_refunds ?? 8)), delta: a.delta, rounds: most, most,
        standing: 1, open: 1, lost: true, byUser: a.declaration.privacy.unit === 'user', at: Date.now(),
      }],
    })
  }
}

/** A copy of a row, which its caller may change; undefined where it has none: such a row does not fit. */
function copied(row: unknown): unknown {
  try {
    return structuredClone(row)
  } catch {
    return undefined
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

