package accounting

import (
	"fmt"
	"math"
	"sort"
)

// rungs is the length of the ladder tau_k = 10^(-2-k/4), down to 1e-45.
const rungs = 173

// Profile is everything that Theorem A needs to know about Bin(N, p): at most 173
// levels. It is independent of g, d, epsilon, delta and the rounds. Immutable.
type Profile struct {
	levels []Level
}

// NewProfile builds the profile of Bin(trials, p). It costs about 35 standard
// deviations of table cells.
func NewProfile(trials uint64, p float64) (*Profile, error) {
	k, err := checkNoise(trials, p)
	if err != nil {
		return nil, err
	}
	return newProfile(binomial{n: int64(trials), k: k}), nil
}

// Levels returns a copy of the levels, widest slack first.
func (p *Profile) Levels() []Level { return append([]Level(nil), p.levels...) }

// rung returns the level for ladder index k: the last one built at or before k,
// since a rung whose window equals its predecessor's is stored once.
func (p *Profile) rung(k int) (Level, bool) {
	i := sort.Search(len(p.levels), func(i int) bool { return p.levels[i].Rung > k })
	if i == 0 {
		return Level{}, false
	}
	return p.levels[i-1], true
}

func checkNoise(trials uint64, p float64) (int64, error) {
	k, err := gridP(p)
	if err != nil {
		return 0, err
	}
	if trials < 1 || trials >= MaxTrials {
		return 0, fmt.Errorf("trials %d: want 1 to %d", trials, MaxTrials-1)
	}
	return k, nil
}

// newProfile builds the profile of a law that the caller has validated.
func newProfile(b binomial) *Profile {
	t := newTable(b)
	windows := t.windows()
	if len(windows) == 0 {
		return &Profile{}
	}
	deepest := windows[len(windows)-1]
	from, to := deepest.lo, deepest.hi
	z := make([]float64, to-from+1)
	phi := make([]float64, len(z))
	for i := range z {
		if f, s := t.below[from+i], t.above[from+i]; f <= 0.5 {
			z[i] = -tailQuantile(f)
		} else {
			z[i] = tailQuantile(min(s, 0.5))
		}
		phi[i] = density(z[i])
	}
	// Cell i of the slices lies between z[i-1] and z[i].
	centre := 1
	for i := 2; i < len(z); i++ {
		if math.Abs(z[i]+z[i-1]) < math.Abs(z[centre]+z[centre-1]) {
			centre = i
		}
	}
	var left, right running
	walk := func(r *running, i int, monotone func(a, b float64) float64) {
		q := t.q[from+i-1]
		r.add(q/phi[i], q/phi[i-1], z[i]-z[i-1], monotone)
	}
	p := &Profile{}
	l, r := centre, centre // next cell of each walk
	for _, w := range windows {
		lo, hi := w.lo-from, w.hi-from
		if lo+1 > centre || hi < centre {
			continue
		}
		for ; r <= hi; r++ {
			walk(&right, r, math.Max)
		}
		for ; l >= lo+1; l-- {
			walk(&left, l, math.Min)
		}
		p.levels = append(p.levels, Level{
			Rung:    w.rung,
			Lo:      uint64(t.first + int64(w.lo)),
			Hi:      uint64(t.first + int64(w.hi)),
			Tau:     (t.below[w.lo] + t.above[w.hi]) * (1 + 1e-9),
			Scalars: join(left, right),
		})
	}
	return p
}
