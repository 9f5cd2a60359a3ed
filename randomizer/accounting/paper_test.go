package accounting

import (
	"math"
	"strings"
	"testing"
)

// TestPaperConstants is Theorem 3.2 at n = 1000, d = 100, epsilon 1, delta 1e-6.
func TestPaperConstants(t *testing.T) {
	c, err := closedForm(1000, 1000, 100, 1, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	if c.g != 100 || math.Abs(c.epsHat-0.0129407) > 5e-8 || math.Abs(float64(c.b)/2.0556e8-1) > 1e-4 ||
		math.Abs(c.p-0.5) > 1e-6 {
		t.Errorf("%+v", c)
	}
	q := request(1000, 100, 1)
	q.Profile = Paper
	p := mustCalibrate(t, q)
	ours := mustCalibrate(t, request(1000, 100, 1))
	if r := p.TotalStd() / ours.TotalStd(); math.Abs(r-525) > 2 {
		t.Errorf("the paper's constants cost %.0f times the noise, want 525", r)
	}
	if p.Epsilon != 1 || p.ProvedEpsilon == nil || !(*p.ProvedEpsilon > 0 && *p.ProvedEpsilon < 0.02) || !p.Runnable ||
		p.Profile != Paper {
		t.Errorf("%+v", p)
	}
}

// TestPaperConstantsOfRounds is Theorem 4.9 (its Lemma B.6) at T = 4: each round has epsilon/(2 sqrt(2 T
// ln(1/delta))) and delta/(T+1), which are 1/(2 sqrt(8 * 13.8155106)) = 0.0475599666 and 2e-7. Then delta^ is
// 2e-7/101 = 1.98019802e-9, epsilon^ is 0.0475599666/(18 sqrt(20.0400707)) = 5.90227486e-4, and b is 180 * 10^4
// ln(2/delta^)/(1000 epsilon^^2), rounded up, + 1.
func TestPaperConstantsOfRounds(t *testing.T) {
	q := request(1000, 100, 1)
	q.Profile, q.Rounds = Paper, 4
	if p := mustCalibrate(t, q); p.Levels != 100 || p.Trials != 107127339826 {
		t.Errorf("g = %d, b = %d, want 100 and 107127339826", p.Levels, p.Trials)
	}
}

// TestPaperConstantsOfHonestUsers is Theorem 3.2 where noise of half of the users counts (Corollary A.9): twice the
// 205556597.6 trials of everybody's, rounded up, + 1; and g is 4 at least.
func TestPaperConstantsOfHonestUsers(t *testing.T) {
	c, err := closedForm(1000, 500, 100, 1, 1e-6)
	if err != nil || c.g != 100 || c.b != 411113197 {
		t.Errorf("%+v, %v: want g = 100, b = 411113197", c, err)
	}
	q := request(1000, 100, 1)
	q.Profile, q.HonestFraction = Paper, Fraction{1, 2}
	if p := mustCalibrate(t, q); p.Trials != 411113197 {
		t.Errorf("b = %d of a plan for half of the users, want 411113197", p.Trials)
	}
	if c, err := closedForm(1, 1, 1, 1, 1e-6); err != nil || c.g != 4 || c.b != 205806881 {
		t.Errorf("%+v, %v: want g = 4, b = 205806881", c, err)
	}
}

func TestPaperConstantsTable(t *testing.T) {
	for _, c := range []struct {
		n   uint64
		d   int
		eps float64
		g   int
		b   float64
	}{{100000, 1, 4, 633, 3.22e6}, {100, 784, 0.5, 784, 6.22e11}} {
		q := request(c.n, c.d, c.eps)
		q.Profile = Paper
		p := mustCalibrate(t, q)
		if p.Levels != c.g || math.Abs(float64(p.Trials)/c.b-1) > 6e-3 {
			t.Errorf("n=%d d=%d eps=%v: g=%d b=%d, want %d and %.3g", c.n, c.d, c.eps, p.Levels, p.Trials, c.g, c.b)
		}
		if p.Runnable != (p.Trials <= 1<<31) {
			t.Errorf("b=%d: runnable %v", p.Trials, p.Runnable)
		}
		if p.ProvedEpsilon == nil || *p.ProvedEpsilon > c.eps {
			t.Errorf("n=%d d=%d eps=%v: proved %v", c.n, c.d, c.eps, p.ProvedEpsilon)
		}
		if _, err := gridP(p.P); err != nil || p.P > 0.5 {
			t.Errorf("p = %v: %v", p.P, err)
		}
	}
}

func TestPaperRefuses(t *testing.T) {
	for want, change := range map[string]func(*Request){
		"trust pan":  func(q *Request) { q.Trust = Pan },
		"epsilon 16": func(q *Request) { q.Epsilon = 16 },
		"delta 0.5":  func(q *Request) { q.Delta = 0.5 },
		"bits":       func(q *Request) { q.MaxBits = 64 },
		"totals":     func(q *Request) { q.Epsilon = 1e-7 },
	} {
		q := request(1000, 100, 1)
		q.Profile = Paper
		change(&q)
		if _, err := Calibrate(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that names %q, got %v", want, err)
		}
	}
}
