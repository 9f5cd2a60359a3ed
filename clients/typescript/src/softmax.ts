// The loss of several classes where its gradient is smoothed, or clipped to a norm as the loss is and not as a vector is
// (learner/convex/softmax.go, clipped.go and tempered.go of the Go device). A plan without a proof asks for neither, so
// this stands in the chunk of what few tasks need.

/** Values so small that their products would be subnormal are zero. */
const normal = (v: number): number => (Math.abs(v) < 2 ** -500 ? 0 : v)

const steps = 48 // of a search, whatever the row is

const word = new DataView(new ArrayBuffer(8))

function bits(x: number): number {
  word.setFloat64(0, x)
  return Number(word.getBigInt64(0))
}

/** The number in the middle of two that are above 0, counted in numbers. */
function between(low: number, high: number): number {
  word.setFloat64(0, low)
  const a = word.getBigUint64(0)
  word.setFloat64(0, high)
  word.setBigUint64(0, a + (word.getBigUint64(0) - a) / 2n)
  return word.getFloat64(0)
}

const floats = (low: number, high: number): number => bits(high) - bits(low)

/** The w with w + ln w = u (Fritsch, Shafer and Crowley, Algorithm 443), in the same steps for every u. */
function omega(u: number): number {
  u = Math.max(u, -345)
  let w = u - Math.log(Math.max(u, 1))
  if (u <= 1) {
    const top = Math.exp(u)
    w = top / (1 + top)
  }
  for (let i = 0; i < 2; i++) {
    const r = u - w - Math.log(w)
    const a = 2 * (1 + w) * (1 + w + (2 * r) / 3)
    w += w * ((r / (1 + w)) * ((a - r) / (a - 2 * r)))
  }
  return w
}

interface At {
  f: number
  slope: number
  c: number
  sum: number
  end: number
}

/**
 * The slopes q_j - [j = y] with sum q_j = 1 of ln q_j + c q_j = s_j + c [j = y] - t, where c is the least one or, if the
 * slopes are longer than most there, the larger one at which they are as long as that.
 */
class Tempered {
  private readonly top: number
  private readonly offset: number
  private readonly w: number

  constructor(private readonly s: readonly number[], private readonly y: number, private readonly least: number, private readonly most: number) {
    this.top = Math.max(...s.filter((_, j) => j !== y))
    this.offset = s[y]! - this.top
    this.w = this.find()
  }

  private find(): number {
    const { least } = this
    const others = this.s.length - 1
    const low = 2 ** -60 * (least > 0 ? Math.min(1, least) : 1)
    const high = Math.max(2 * low, least, (Math.log((Math.SQRT2 * others) / this.most) - this.offset) / 2)
    const start = least === 0 ? low : Math.max(low, Math.min(1 / others, high / others / 2))
    return this.search(low, high, start)
  }

  private search(low: number, high: number, w: number): number {
    const given = this.least
    let [best, least, span] = [w, Infinity, 64]
    let [wide, near, stale, beyond] = [floats(low, high), Infinity, 0, false]
    for (let i = 0; i < steps; i++) {
      const { f, slope, c, sum, end } = this.at(w)
      if (Math.abs(f) < least) [best, least] = [w, Math.abs(f)]
      if (f > 0) low = w
      else [high, beyond] = [w, !(c > sum)]
      let next = w - f / slope
      if (c === given && -slope * w < 4) next = w * Math.exp(-f / (slope * w))
      if ((f < -1 && c < 1.1 * sum) || !(next > low && next < high)) next = end
      if (beyond && next >= high) [next, beyond] = [high * (1 - 2 ** -48), false]
      if (!(next > low && next < high) && given > 0 && f < 0) next = (w * given) / sum
      stale++
      if (floats(low, high) <= wide / 8 || least <= near / 16) [wide, near, stale] = [floats(low, high), least, 0]
      if (!(next > low && next < high) || stale >= 3) {
        next = between(Math.max(low, high / span), high)
        span *= span
        stale--
      }
      w = next
    }
    return best
  }

  private at(w: number): At {
    const shift = w + Math.log(w) - this.top
    let [sum, squares, rise, bend] = [0, 0, 0, 0]
    for (const [j, v] of this.s.entries()) {
      if (j === this.y) continue
      const q = omega(v + shift)
      const r = q / (1 + q)
      sum += q
      squares += q * q
      rise += r
      bend += q * r
    }
    const norm = Math.sqrt(sum * sum + squares)
    const per = 1 + 1 / w
    let [c, widen] = [norm / this.most, (sum * rise + bend) / norm / this.most]
    if (!(c >= this.least)) [c, widen] = [this.least, 0]
    const slope = ((widen - rise) / (c - sum) - rise) * per - 1 / w - 1
    const end = w + (c - sum) / (rise - widen) / per
    if (!(c > sum)) return { f: -Infinity, slope, c, sum, end }
    const f = Math.log((c - sum) / w) - sum - w - this.offset
    return { f, slope, c, sum, end: end - (end - w) * Math.exp(-f) }
  }

  slopes(): number[] {
    const shift = this.w + Math.log(this.w) - this.top
    const out = this.s.map((v, j) => (j === this.y ? 0 : omega(v + shift)))
    let [sum, squares] = [0, 0]
    for (const v of out) {
      sum += v
      squares += v * v
    }
    const c = Math.max(this.least, Math.sqrt(sum * sum + squares) / this.most)
    const all = out.map((v) => normal(v / c))
    all[this.y] = -Math.min(1, sum / c)
    return all
  }
}

/** exp(s_j - t) - [j = y], and its norm. */
function plain(s: readonly number[], y: number): { slopes: number[]; norm: number } {
  const top = Math.max(...s)
  let total = 0
  for (const v of s) total += Math.exp(v - top)
  const t = top + Math.log(total)
  let [others, squares] = [0, 0]
  const slopes = s.map((v, j) => {
    const q = j === y ? 0 : Math.exp(v - t)
    others += q
    squares += q * q
    return normal(q)
  })
  slopes[y] = -others
  return { slopes, norm: Math.sqrt(squares + others * others) }
}

/**
 * The slopes, one a class, of the loss with these scores whose gradient is to have a norm of at most limit, for features
 * of this norm. smoothing above 0 is the parameter of the loss's Moreau envelope. As much work whatever the row is.
 */
export function clippedSlopes(s: readonly number[], y: number, norm: number, smoothing: number, limit: number): number[] {
  const least = smoothing > 0 ? Math.max((norm / smoothing) * norm, 2 ** -60) : 0
  const most = (limit * (1 - 2 ** -39)) / norm
  const own = plain(s, y)
  const cut = new Tempered(s, y, least, most).slopes()
  return least > 0 || own.norm > most ? cut : own.slopes
}
