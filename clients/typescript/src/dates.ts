// Parts of dates (docs/reference/tasks.md): YYYY-MM-DD, alone or with a time, read as they are written.
import type { Part } from './declaration.js'

const pattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:Z|[+-](\d{2}):?(\d{2}))?)?$/

const longest = 48 // bytes

/** Returns a part of a date, null for an hour where there is no time. Throws for what is no date. */
export function datePart(text: string, part: Part): number | null {
  const m = text.length <= longest ? pattern.exec(text) : null
  if (m === null) throw new Error('not a date')
  const [year, month, day] = [Number(m[1]), Number(m[2]), Number(m[3])]
  const timed = m[4] !== undefined
  const within = (digits: string | undefined, most: number): boolean => digits === undefined || Number(digits) <= most
  const at = new Date(0)
  at.setUTCFullYear(year, month - 1, day)
  if (month < 1 || month > 12 || at.getUTCDate() !== day || at.getUTCMonth() !== month - 1 || !within(m[4], 23) ||
    !within(m[5], 59) || !within(m[6], 60) || !within(m[7], 23) || !within(m[8], 59)) {
    throw new Error('not a date')
  }
  switch (part) {
    case 'year': return year
    case 'month': return month
    case 'day': return day
    case 'weekday': return ((at.getUTCDay() + 6) % 7) + 1
  }
  return timed ? (60 * Number(m[4]) + Number(m[5])) / 60 : null
}
