// One event's part in a task, as an automaton without clock, network or disk (stream/device/participation of the Go
// device). Every change is durable before it is acted on: after join and sending, before a publish.
import { hex, type Bytes } from './bytes.js'

/** Fresh: has not taken part. Charged: has, and the outcome is not known. Counted and unknown are final, but in an interactive phase. */
export type State = 'fresh' | 'charged' | 'counted' | 'uncounted' | 'unknown'

/** One opening of a round: its number, and the hash of the body of its Open, in hexadecimal. */
export interface AttemptId {
  number: number
  open: string
}

/** The publishes for one attempt, which all carry the same message id. */
export interface Send {
  attempt: AttemptId
  sent: number // that were made, or may have been
  acked: number
  refused: number
  lowest: number // lowest sequence acknowledged; 0: none
}

/** An event's report in one round. Its counts are never stored: the sealed message is. */
export interface Draw {
  round: number
  phase: number // of the plan, from 0: the first of its stint
  step: number
  most: number // rounds of the phase that one event may join
  final: boolean // under trust local: no publish is taken back
  manifest: string // hash, in hexadecimal
  report: Bytes // report id
}

/** What a broker answered to one publish. */
export type Ack = { status: 'stored' | 'duplicate'; sequence: number } | { status: 'refused'; reason: number } | { status: 'unknown' }

/** A Close that was verified, with the Open that stands beside it. */
export interface Closed {
  round: number
  attempt: AttemptId
  manifest: string
  cutoff: number
  void: boolean
}

export const attemptOf = (number: bigint, openHash: Bytes): AttemptId => ({ number: Number(number), open: hex(openHash) })
const same = (a: AttemptId, b: AttemptId): boolean => a.number === b.number && a.open === b.open

/** The participation of one event; plain data, so that a store keeps it as it is. */
export interface Participation {
  key: string
  state: State
  draw: Draw | null
  sends: Send[]
  before: State // when it joined its last round of an interactive phase
  rounds: number // of its phase that it joined
  refunds: number
  reports: number
  sealed: Bytes | null // the message of the last attempt that it was sent to
}

export const fresh = (key: string): Participation =>
  ({ key, state: 'fresh', draw: null, sends: [], before: 'fresh', rounds: 0, refunds: 0, reports: 0, sealed: null })

const sendOf = (p: Participation, a: AttemptId): Send | undefined => p.sends.find((s) => same(s.attempt, a))

/** Whether the event belongs to an interactive phase and may answer a later round of it. */
export const stays = (p: Participation, phase: number): boolean =>
  p.state !== 'fresh' && p.draw !== null && p.draw.most > 1 && p.draw.phase === phase && p.rounds < p.draw.most

/** The number of participations of the event if it joins a round of a phase now. */
export const participations = (p: Participation, phase: number): number =>
  p.state === 'uncounted' && !stays(p, phase) ? p.refunds + 2 : p.refunds + 1

/** Whether the event may be charged to a round. */
export function mayJoin(p: Participation, d: Omit<Draw, 'report'>): boolean {
  if (p.state === 'fresh') return true
  const last = p.draw!
  if (p.state === 'charged' || d.round <= last.round || d.step <= last.step || d.phase < last.phase ||
    d.manifest === last.manifest || d.final !== last.final) {
    return false
  }
  if (stays(p, d.phase) && d.most === last.most) return true
  return p.state === 'uncounted' && !last.final && (d.phase !== last.phase || last.most <= 1)
}

/** Charges the event to a round. Throws where mayJoin forbids it: a second draw of a round would halve its noise. */
export function join(p: Participation, d: Draw): void {
  if (!mayJoin(p, d)) throw new Error(`an event that is ${p.state} may not join round ${d.round}`)
  const again = stays(p, d.phase) && d.most === p.draw!.most
  if (again) [p.before, p.rounds] = [p.state, p.rounds + 1]
  else {
    if (p.state === 'uncounted') p.refunds++
    ;[p.before, p.rounds] = ['fresh', 1]
  }
  p.state = 'charged'
  p.draw = d
  p.sends = []
}

/** Whether the event may be published to an attempt: never back to an older one, and under floors to one alone. */
export function maySend(p: Participation, a: AttemptId, floors: boolean): boolean {
  if (p.state !== 'charged' || a.number === 0) return false
  const last = p.sends[p.sends.length - 1]?.attempt
  return last === undefined || same(a, last) || (!floors && a.number >= last.number && sendOf(p, a) === undefined)
}

/**
 * Whether the event has used up the reports that it may have up to the round that it joined last: most in its first
 * round, and one more in each further round of an interactive phase.
 */
export const exhausted = (p: Participation, most: number): boolean => p.reports >= most + Math.max(p.rounds, 1) - 1

/** Notes one publish that is about to be made. */
export function sending(p: Participation, a: AttemptId, floors: boolean): void {
  if (!maySend(p, a, floors)) throw new Error(`an event that is ${p.state} may not be sent to attempt ${a.number}`)
  let s = sendOf(p, a)
  if (s === undefined) {
    s = { attempt: a, sent: 0, acked: 0, refused: 0, lowest: 0 }
    p.sends.push(s)
    p.reports++
  }
  s.sent++
}

/** Notes the answer to one publish. */
export function acked(p: Participation, a: AttemptId, ack: Ack): void {
  const s = sendOf(p, a)
  if (s === undefined) return
  if (ack.status === 'refused') s.refused = Math.min(s.refused + 1, s.sent - s.acked)
  if ((ack.status !== 'stored' && ack.status !== 'duplicate') || ack.sequence === 0) return
  s.acked = Math.min(s.acked + 1, s.sent - s.refused)
  if (s.lowest === 0 || ack.sequence < s.lowest) s.lowest = ack.sequence
}

/** Whether a publish to an attempt was acknowledged with a sequence. */
export const answered = (p: Participation, a: AttemptId): boolean => (sendOf(p, a)?.lowest ?? 0) > 0

/** Settles a charged event by the Close of its round (rule 7). */
export function decide(p: Participation, c: Closed): void {
  if (p.state === 'charged' && c.round === p.draw!.round && c.manifest === p.draw!.manifest) settle(p, outcomeOf(p, c))
}

/** Settles a charged event that waits for no Close. */
export function abandon(p: Participation): void {
  if (p.state === 'charged') settle(p, 'unknown')
}

function outcomeOf(p: Participation, c: Closed): State {
  if (c.void) return 'unknown'
  const s = sendOf(p, c.attempt)
  if (s !== undefined && s.lowest > 0 && s.lowest <= c.cutoff) return 'counted'
  if (p.draw!.final || p.sends.length === 0) return 'unknown'
  const doubt = p.sends.some((s) =>
    s.acked + s.refused !== s.sent || (s.acked > 0 && (!same(s.attempt, c.attempt) || s.lowest <= c.cutoff)))
  return doubt ? 'unknown' : 'uncounted'
}

function settle(p: Participation, s: State): void {
  if (p.before === 'counted' || (p.before === 'unknown' && s === 'uncounted')) s = p.before
  p.state = s
  p.sends = []
  p.before = 'fresh'
  p.sealed = null
}

/** The outcome as far as it is known now. */
export function outcome(p: Participation): State {
  if (p.state === 'fresh') return 'uncounted'
  if (p.state !== 'charged') return p.state
  return p.before === 'counted' ? 'counted' : 'unknown'
}

