// The ledger as a document: what `ingest ledger --json` prints of the Go device.
import type { Policy } from './consent.js'
import { counts, later, periodOf, spent, type Charge } from './ledger.js'

/** What the tasks of a store cost, as ingest ledger --json has it. */
export interface Statement {
  time: string // of the ledger, which a clock that is set back does not move
  period: string // such as 720h0m0s; empty is for ever
  epsilon: number // of the unit that paid most in the period
  delta: number
  max_total_epsilon: number | null // of the policy
  max_total_delta: number | null
  users: number // with an account of their own
  unit: 'event' | 'user' // that an account stands for
  tasks: {
    task: string
    task_hash: string
    unit: 'event' | 'user'
    epsilon: number
    delta: number
    rounds: number
    rounds_per_user: number
    events: number
    complete: boolean
    last: string
    in_period: boolean
  }[]
}

/** A duration as Go writes it. */
function duration(ms: number): string {
  if (ms === 0) return ''
  const seconds = (ms % 60_000) / 1000
  const minutes = Math.floor(ms / 60_000)
  if (minutes === 0) return `${seconds}s`
  return minutes < 60 ? `${minutes}m${seconds}s` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}s`
}

/** Adds up a ledger at a time; its own clock decides where that is later. */
export function statement(charges: readonly Charge[], policy: Policy = {}, clock = Date.now()): Statement {
  const period = periodOf(policy)
  const now = later(charges, clock)
  const users = [...new Set(charges.map((c) => c.user))]
  const named = users.filter((u) => u !== '').length
  const sums = users.map((u) => spent(charges.filter((c) => c.user === u), now, period))
  const tasks = [...new Set(charges.map((c) => c.task))].map((task) => {
    const of = charges.filter((c) => c.task === task)
    const most = (f: (c: Charge) => number): number => Math.max(...of.map(f))
    return {
      task: of[0]!.name, task_hash: task, unit: of.every((c) => c.byUser) ? 'user' as const : 'event' as const,
      epsilon: most((c) => c.epsilon), delta: most((c) => c.delta), rounds: most((c) => c.rounds), rounds_per_user: most((c) => c.most),
      events: of.reduce((n, c) => n + c.standing, 0), complete: !of.some((c) => c.lost), last: new Date(most((c) => c.at)).toISOString(),
      in_period: of.some((c) => counts(c, now, period)),
    }
  })
  return {
    time: new Date(now).toISOString(), period: duration(period), epsilon: Math.max(0, ...sums.map((s) => s.epsilon)),
    delta: Math.max(0, ...sums.map((s) => s.delta)), max_total_epsilon: policy.max_total_epsilon || null,
    max_total_delta: policy.max_total_delta || null, users: named, unit: named > 0 ? 'user' : 'event', tasks,
  }
}
