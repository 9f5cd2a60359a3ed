package convex

import "math"

// temperedSteps is the number of evaluations of a search. It is constant because the time that a device takes for a
// report must not depend on the row or the point. Of 60,000 problems of 2 to 31 classes, with scores of up to 10,000
// and limits up to a billionth below the gradient's norm, two missed 11 digits of the limit, from below: of slopes of
// 1e-150.
const temperedSteps = 48

// A tempered softmax has the slopes q_j - [j = y], with sum q_j = 1, of
//
//	ln q_j + c q_j = s_j + c [j = y] - t,
//
// where c is the given one or, if the slopes are longer than most there, the larger one at which they are as long as
// that.
//
// With w_j = c q_j, every class but y has w_j + ln w_j = s_j + ln c - t, so all w_j follow from the largest of them,
// w; so does c, by the norm. What is left is one equation in w: with W = sum w_j over the classes but y, and scores
// counted from the largest but y's,
//
//	f(w) = ln((c - W)/w) - W - w - s_y = 0,   c = max(given, sqrt(W^2 + sum w_j^2)/most),
//
// where f falls strictly as w grows, up to where W reaches c.
type tempered struct {
	y           int
	top, offset float64 // the largest score but y's, and y's score above it
	least, most float64 // c is at least least, slopes are at most most long
	w           float64
}

// newTempered finds w for scores of several classes, of which y is one.
func newTempered(s []float64, y int, least, most float64) tempered {
	m := tempered{y: y, top: math.Inf(-1), least: least, most: most}
	for j, v := range s {
		if j != y {
			m.top = max(m.top, v)
		}
	}
	m.offset = s[y] - m.top
	m.w = m.find(s)
	return m
}

// find returns w, the zero of f.
func (m tempered) find(s []float64) float64 {
	lo, hi, w := m.bracket(len(s))
	return search(lo, hi, w, m.least, func(w float64) (f, slope, c, sum, end float64) { return m.at(s, w) })
}

// bracket returns bounds on w and a start for the search.
func (m tempered) bracket(classes int) (lo, hi, start float64) {
	others := float64(classes - 1)
	lo = 0x1p-60 // the slopes of a smaller w are no others, to the last digit
	if m.least > 0 {
		lo *= min(1, m.least)
	}
	hi = max(2*lo, m.least, (math.Log(math.Sqrt2*others/m.most)-m.offset)/2)
	if m.least == 0 {
		return lo, hi, lo
	}
	return lo, hi, max(lo, min(1/others, hi/others/2))
}

// search returns the zero of at between lo and hi, from a start there, after temperedSteps evaluations: by Newton's
// method in w, in ln w where f falls like it, or towards the place where the sum W reaches c, which is at least
// given. Where none of the three stays between what holds the zero, or they come no closer, it halves the numbers
// between.
func search(lo, hi, w, given float64, at func(w float64) (f, slope, c, sum, end float64)) float64 {
	best, least, span := w, math.Inf(1), 64.0
	wide, near, stale, beyond := floats(lo, hi), math.Inf(1), 0, false
	for range temperedSteps {
		f, slope, c, sum, end := at(w)
		if math.Abs(f) < least { // the next step may overshoot
			best, least = w, math.Abs(f)
		}
		if f > 0 {
			lo = w
		} else {
			hi, beyond = w, !(c > sum)
		}
		next := w - f/slope
		if c == given && -slope*w < 4 {
			next = w * math.Exp(-f/(slope*w))
		}
		if f < -1 && c < 1.1*sum || !(next > lo && next < hi) {
			next = end
		}
		if beyond && next >= hi {
			next, beyond = hi*(1-0x1p-48), false
		}
		if !(next > lo && next < hi) && given > 0 && f < 0 {
			next = w * given / sum
		}
		if stale++; floats(lo, hi) <= wide/8 || least <= near/16 {
			wide, near, stale = floats(lo, hi), least, 0
		}
		if !(next > lo && next < hi) || stale >= 3 {
			next = between(max(lo, hi/span), hi)
			span *= span
			stale--
		}
		w = next
	}
	return best
}

// floats returns how many float64 values lie between two positive ones.
func floats(lo, hi float64) float64 { return float64(math.Float64bits(hi) - math.Float64bits(lo)) }

// between returns the number in the middle of two that are above 0, counted in numbers.
func between(lo, hi float64) float64 {
	return math.Float64frombits(math.Float64bits(lo) + (math.Float64bits(hi)-math.Float64bits(lo))/2)
}

// at returns f, its derivative, c and W at w, and end, the target of a tangent.
func (m tempered) at(s []float64, w float64) (f, slope, c, sum, end float64) {
	shift := w + math.Log(w) - m.top
	var squares, rise, bend float64
	for j, v := range s {
		if j == m.y {
			continue
		}
		q := omega(v + shift)
		r := q / (1 + q)
		sum += q
		squares += float64(q * q)
		rise += r
		bend += float64(q * r)
	}
	norm, per := math.Sqrt(float64(sum*sum)+squares), 1+1/w
	c, widen := norm/m.most, (float64(sum*rise)+bend)/norm/m.most
	if !(c >= m.least) {
		c, widen = m.least, 0
	}
	f = math.Log((c-sum)/w) - sum - w - m.offset
	slope = float64(((widen-rise)/(c-sum)-rise)*per) - 1/w - 1
	end = w + (c-sum)/(rise-widen)/per
	if !(c > sum) {
		return math.Inf(-1), slope, c, sum, end
	}
	return f, slope, c, sum, end - float64((end-w)*math.Exp(-f))
}

// slopes replaces the scores by the slopes.
func (m tempered) slopes(s []float64) {
	shift := m.w + math.Log(m.w) - m.top
	var sum, squares float64
	for j, v := range s {
		if j != m.y {
			s[j] = omega(v + shift)
			sum += s[j]
			squares += float64(s[j] * s[j])
		}
	}
	c := max(m.least, math.Sqrt(float64(sum*sum)+squares)/m.most)
	for j := range s {
		s[j] = Normal(s[j] / c)
	}
	s[m.y] = -min(1, sum/c) // q_y - 1, also where q_y rounds to 1
}

// omega returns the w with w + ln w = u, the Wright omega function, in the same steps for every u; below -345
// it returns omega(-345).
func omega(u float64) float64 {
	u = max(u, -345)
	w := u - math.Log(max(u, 1))
	if u <= 1 {
		top := math.Exp(u)
		w = top / (1 + top)
	}
	// Fritsch, Shafer and Crowley, Algorithm 443: what is left falls to its fourth power, from a hundredth.
	for range 2 {
		r := u - w - math.Log(w)
		a := 2 * (1 + w) * (1 + w + float64(2*r)/3)
		w += float64(w * (r / (1 + w) * ((a - r) / (a - 2*r))))
	}
	return w
}

// Normal returns v, or 0 for one so small that the product of two such would be subnormal, which takes processors ten
// times as long.
func Normal(v float64) float64 {
	if math.Abs(v) < 0x1p-500 {
		return 0
	}
	return v
}
