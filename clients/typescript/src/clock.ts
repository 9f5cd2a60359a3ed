// The clock that the ledger is given (docs/reference/outcomes.md, The clock): charges leave a period by it, so one that is
// ahead of the broker's by more than an hour is not believed, and nobody is charged.

const maxAhead = 3_600_000 // ms
const jump = 60_000
const every = 60_000 // between two comparisons

/** The machine's clock, held against the broker's. Times are Unix times in ms. */
export class Clock {
  private wall: number | null = null // when it was found right last
  private since = 0 // the same moment, by what no change of the clock moves
  private limit: number | null = null // where it was found ahead: the latest time that is believed
  private next = -Infinity

  constructor(private readonly read: () => number = () => Date.now(), private readonly steady: () => number = () => performance.now()) {}

  /** The time that the ledger is given. */
  now(): number {
    const t = this.read()
    if (this.wall !== null) {
      const right = this.wall + (this.steady() - this.since)
      if (t - right > jump) return right // it jumped since it was compared: the next comparison tells
    }
    return this.limit === null ? t : Math.min(t, this.limit)
  }

  /** Whether it was found ahead and still is: nobody may be charged then. */
  get isAhead(): boolean {
    return this.limit !== null && this.read() >= this.limit
  }

  /** Whether a comparison is due: none has found it right, or it moved otherwise than the time that went by. */
  get isDoubtful(): boolean {
    if (this.wall === null) return this.steady() >= this.next
    return Math.abs(this.read() - this.wall - (this.steady() - this.since)) > jump
  }

  /** Takes a lower bound of the broker's time; 0 where none is known. */
  compared(told: number): void {
    this.next = this.steady() + every
    this.wall = this.limit = null
    const t = this.read()
    if (told === 0) return
    if (t - told > maxAhead) this.limit = told + maxAhead
    else [this.wall, this.since] = [t, this.steady()]
  }
}

/** The time in ms that some work takes: the median of three runs, so that one pause of the machine counts for nothing. */
export function duration(work: () => void): number {
  return [0, 0, 0].map(() => {
    const begun = performance.now()
    work()
    return performance.now() - begun
  }).sort((a, b) => a - b)[1]!
}
