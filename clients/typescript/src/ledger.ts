// What tasks cost one person (docs/reference/layouts.md, The ledger; stream/device/ledger of the Go device).
import type { Agreement, Policy } from './consent.js'
import { participations, stays, type Draw, type Participation } from './participation.js'

/** What one task cost whom: an entry of the ledger of one origin. */
export interface Charge {
  task: string // hash, in hexadecimal
  name: string
  user: string // empty: the one user of this device
  epsilon: number // of all participations of the event that had most
  delta: number
  rounds: number // answered by the event that answered most
  most: number // that the epsilon is for
  standing: number // participations that were charged; nothing is given back
  open: number // of them, whose outcome is not known
  lost: boolean // the ledger began later than the task
  byUser: boolean // the epsilon covers everything that one person contributes
  at: number // Unix time in ms of the newest charge or outcome
}

const word = new DataView(new ArrayBuffer(8))

/** A sum of what is not negative, rounded up: never below the true one. */
function addUp(a: number, b: number): number {
  if (a === 0 || b === 0) return a + b
  word.setFloat64(0, a + b)
  word.setBigUint64(0, word.getBigUint64(0) + 1n)
  return word.getFloat64(0)
}

/** Whether a charge counts in the period that ends now; 0 is for ever. */
export const counts = (c: Charge, now: number, period: number): boolean =>
  c.standing > 0 && (period === 0 || c.open > 0 || c.lost || now - c.at <= period)

/** Adds up what charges cost in a period, upper bounds. */
export function spent(charges: readonly Charge[], now: number, period: number): { epsilon: number; delta: number } {
  const out = { epsilon: 0, delta: 0 }
  for (const c of charges) {
    if (!counts(c, now, period)) continue
    out.epsilon = addUp(out.epsilon, c.epsilon)
    out.delta = addUp(out.delta, c.delta)
  }
  return out
}

/** The ledger's time: a clock that is set back gives no budget back. */
export const later = (charges: readonly Charge[], clock: number): number => Math.max(Math.trunc(clock), ...charges.map((c) => c.at))

const unitMs: Record<string, number> = { ns: 1e-6, us: 1e-3, 'µs': 1e-3, 'μs': 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** The period of a policy in ms: 0 is for ever, NaN for what is no duration such as 720h or 1h30m. */
export function periodOf(p: Policy): number {
  if (p.period === undefined || p.period === '0') return 0
  const parts = [...p.period.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)]
  if (parts.length === 0 || parts.map((m) => m[0]).join('') !== p.period) return NaN
  return parts.reduce((sum, m) => sum + Number(m[1]) * unitMs[m[2]!]!, 0)
}

/** Returns why the policy's totals do not allow a charge of one user beside the others of that user; null where they do. */
export function affordTotal(p: Policy, charges: readonly Charge[], c: Pick<Charge, 'task' | 'epsilon' | 'delta'>, now: number): string | null {
  const own = charges.find((o) => o.task === c.task)
  const whole = {
    ...own, ...c, epsilon: Math.max(c.epsilon, own?.epsilon ?? 0), delta: Math.max(c.delta, own?.delta ?? 0), standing: 1, open: 1,
  } as Charge
  const total = spent([...charges.filter((o) => o.task !== c.task), whole], now, periodOf(p))
  const window = p.period === undefined ? '' : ` within ${p.period}`
  for (const [what, sum, most] of [['epsilon', total.epsilon, p.max_total_epsilon], ['delta', total.delta, p.max_total_delta]] as const) {
    if (most && !(sum <= most * (1 + 1e-9))) return `total ${what} is ${sum}: want at most ${most}${window}`
  }
  return null
}

/** The charge of an event that joins a round, together with all that it and others took part in before. */
export function joining(a: Agreement, task: string, user: string, old: Charge | undefined, p: Participation, d: Omit<Draw, 'report'>, now: number): Charge {
  const times = participations(p, d.phase)
  const again = stays(p, d.phase)
  const each = Math.max(...a.phases.map((f) => f.rounds))
  return {
    task, name: a.task.name, user, byUser: a.declaration.privacy.unit === 'user', lost: old?.lost ?? false,
    epsilon: Math.max(a.cost(times), old?.epsilon ?? 0), delta: Math.max(a.delta, old?.delta ?? 0),
    rounds: Math.max(each * (times - 1) + (again ? p.rounds + 1 : 1), old?.rounds ?? 0), most: Math.max(each * times, old?.most ?? 0),
    standing: Math.max((old?.standing ?? 0) + (again ? 0 : 1), 1), open: (old?.open ?? 0) + 1, at: Math.max(now, old?.at ?? 0),
  }
}

/** A charge after the outcome of one of its participations is known. */
export const settled = (c: Charge, now: number): Charge => ({ ...c, open: Math.max(c.open - 1, 0), at: Math.max(now, c.at) })
