package planning

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/schedule"
)

// expected averages independent runs of a risk in [0, worst]. By the empirical Bernstein inequality (Maurer & Pontil
// 2009, Theorem
// 4) the average exceeds its expectation by margin with probability at most 1e-9.
func expected(t *testing.T, worst float64, run func(r *rand.Rand) float64) (mean, margin float64) {
	t.Helper()
	const seed, runs = 20220426, 800
	r := rand.New(rand.NewPCG(seed, 2))
	t.Logf("seed %d, %d runs, false-alarm rate 1e-9", seed, runs)
	var squares float64
	for range runs {
		risk := run(r)
		mean += risk / runs
		squares += risk * risk / runs
	}
	log := math.Log(2 / 1e-9)
	variance := max(0, squares-mean*mean) * runs / (runs - 1)
	return mean, math.Sqrt(2*variance*log/runs) + 7*worst*log/(3*(runs-1))
}

// population is a distribution on four labelled points in the plane whose labels contradict each other, so that a few
// users tell little.
type population struct {
	points  []convex.Example
	weights []float64
}

func contradictory() population {
	at := func(x, y, label float64) convex.Example { return convex.Example{Value: []float64{x, y}, Label: label} }
	return population{points: []convex.Example{at(1, 0, 1), at(1, 0, -1), at(0, 1, -1), at(0, 1, 1)},
		weights: []float64{0.3, 0.22, 0.26, 0.22}}
}

func (p population) draw(r *rand.Rand) convex.Example {
	u := r.Float64()
	for i, w := range p.weights[:3] {
		if u -= w; u < 0 {
			return p.points[i]
		}
	}
	return p.points[3]
}

func (p population) risk(theta []float64, ridge float64) (sum float64) {
	for i, e := range p.points {
		sum += p.weights[i] * convex.Logistic{}.Value(theta, e)
	}
	n := convex.Norm(theta)
	return sum + ridge*n*n/2
}

// optimum returns the least risk in the ball, by a long descent.
func (p population) optimum(radius, ridge float64) float64 {
	theta, g, one := make([]float64, 2), make([]float64, 2), make([]float64, 2)
	for range 20000 {
		for j := range g {
			g[j] = ridge * theta[j]
		}
		for i, e := range p.points {
			convex.Logistic{}.Gradient(one, theta, e)
			for j := range g {
				g[j] += p.weights[i] * one[j]
			}
		}
		for j := range theta {
			theta[j] -= g[j]
		}
		convex.Clip(theta, radius)
	}
	return p.risk(theta, ridge)
}

// meanOf returns the mean gradient of the users, each coordinate of each stochastically rounded to a lattice of
// the given step, 0 for none.
func meanOf(users []convex.Example, theta []float64, step float64, r *rand.Rand) []float64 {
	out, one := make([]float64, len(theta)), make([]float64, len(theta))
	for _, e := range users {
		convex.Logistic{}.Gradient(one, theta, e)
		for j, g := range one {
			if step > 0 {
				g = step * math.Floor(g/step+r.Float64())
			}
			out[j] += g / float64(len(users))
		}
	}
	return out
}

// TestTheorem49_ExcessRiskIsWithinTheBound: Cheu, Joseph, Mao, Peng, ICLR 2022, Theorem 4.9: the same users
// answer every round, and the risk on the population is within the bound, however few they are and however
// often they are asked. One user who answers 100 times is learned by heart: without the stability term the
// bound would be far below what is measured.
func TestTheorem49_ExcessRiskIsWithinTheBound(t *testing.T) {
	const radius = 3.0
	p := contradictory()
	lost := 0
	for _, c := range []struct {
		users, steps      int
		sd, lattice, ridg float64
		eta               float64 // 0: the planned one
	}{{users: 1, steps: 100, eta: 3.6}, {users: 4, steps: 60}, {users: 30, steps: 60, sd: 0.02, lattice: 0.2}, {users: 10,
		steps: 40, sd: 0.5},
		{users: 20, steps: 60, sd: 0.05, lattice: 1, ridg: 0.2}, {users: 1, steps: 200, ridg: 0.02}, {users: 20, steps: 100,
			sd: 0.5, lattice: 0.2, ridg: 0.1}} {
		best := p.optimum(radius, c.ridg)
		o := objective{lipschitz: 1, dim: 2, smoothness: 0.25, mean: 0.25, ridge: c.ridg, radius: radius}
		rounding := 2 * c.lattice * c.lattice / 4 / float64(c.users)
		at := situation{distance: radius, prior: p.risk([]float64{0, 0}, 0) - best, users: uint64(c.users),
			steps:    uint64(c.steps),
			variance: 2*c.sd*c.sd + rounding, rounding: rounding}
		b := gradientBound{situation: at, loss: 1, whole: o.regularLipschitz(), beta: 0.25 + c.ridg, ridge: c.ridg}
		set := o.gradient(at, math.Inf(1))
		if c.eta > 0 {
			set = setting{stepSize: c.eta, risk: b.risk(c.eta)}
		}
		mean, margin := expected(t, 1+radius, func(r *rand.Rand) float64 {
			users := make([]convex.Example, c.users)
			for i := range users {
				users[i] = p.draw(r)
			}
			a, err := method.NewPSGD(method.PSGDConfig{Dim: 2, Set: convex.Ball{R: radius}, Steps: uint64(c.steps),
				StepSize: set.stepSize, Ridge: c.ridg, Mu: set.mu})
			if err != nil {
				t.Fatal(err)
			}
			for !a.Done() {
				g := meanOf(users, a.Query().Point, c.lattice, r)
				for j := range g {
					g[j] += c.sd * r.NormFloat64()
				}
				if err := a.Step(method.Estimate{Gradient: g, Users: uint64(c.users)}); err != nil {
					t.Fatal(err)
				}
			}
			return p.risk(a.Model(), c.ridg) - best
		})
		b.users, b.rounding = 1<<40, 0
		without := b.risk(set.stepSize)
		if set.mu > 0 {
			without = b.weighted(set.stepSize)
		}
		t.Logf("%+v: eta %.3f, mean excess risk %.4f, bound %.4f (%.4f without stability), margin %.4f", c, set.stepSize,
			mean, set.risk, without, margin)
		if mean > set.risk+margin {
			t.Errorf("%+v: mean excess risk %v above the bound %v", c, mean, set.risk)
		}
		if mean > without+margin {
			lost++
		}
	}
	if lost == 0 {
		t.Error("the stability term was never needed: the cases test nothing about it")
	}
}

// TestReplacingAUserMovesTheAverageLittle: replacing one of m users moves the average of T steps by at most eta
// L T/m, for every pair of data sets (Hardt, Recht, Singer 2016).
func TestReplacingAUserMovesTheAverageLittle(t *testing.T) {
	const users, steps, eta = 6, 50, 8.0 // 2/beta
	r := rand.New(rand.NewPCG(49, 0))
	p := contradictory()
	var most float64
	for range 300 {
		a, b := make([]convex.Example, users), make([]convex.Example, users)
		for i := range a {
			a[i] = p.draw(r)
			b[i] = a[i]
		}
		b[0] = p.draw(r)
		var models [2][]float64
		for k, data := range [][]convex.Example{a, b} {
			m, err := method.NewPSGD(method.PSGDConfig{Dim: 2, Set: convex.Ball{R: 100}, Steps: steps, StepSize: eta})
			if err != nil {
				t.Fatal(err)
			}
			for !m.Done() {
				if err := m.Step(method.Estimate{Gradient: meanOf(data, m.Query().Point, 0, nil), Users: users}); err != nil {
					t.Fatal(err)
				}
			}
			models[k] = m.Model()
		}
		move := math.Hypot(models[0][0]-models[1][0], models[0][1]-models[1][1])
		most = max(most, move)
		g := gradientBound{situation: situation{users: users, steps: steps}, loss: 1}
		if bound := eta * g.stability(); move > bound {
			t.Errorf("moved by %v, at most %v is allowed", move, bound)
		}
	}
	t.Logf("moved by up to %.3f, the bound is %.3f", most, eta*steps/float64(users))
	if most < 0.02*eta*steps/users {
		t.Error("hardly anything moved: the test tests nothing")
	}
}

// TestStreamsAreWithinTheirBounds: streams without an end keep the bounds that they promise at their horizon,
// on a quadratic in the plane.
func TestStreamsAreWithinTheirBounds(t *testing.T) {
	const radius, sd = 1.0, 0.4
	h, c := []float64{1, 0.05}, []float64{0.5, -0.6}
	risk := func(x []float64) (s float64) {
		for i := range x {
			s += h[i] * (x[i] - c[i]) * (x[i] - c[i]) / 2
		}
		return s
	}
	slope := radius + convex.Norm(c)
	run := func(steps uint64, fresh func() (method.Method, error)) (float64, float64) {
		return expected(t, slope*slope/2, func(r *rand.Rand) float64 {
			a, err := fresh()
			if err != nil {
				t.Fatal(err)
			}
			for range steps {
				g := a.Query().Point
				for i := range g {
					g[i] = h[i]*(g[i]-c[i]) + sd*r.NormFloat64()
				}
				if err := a.Step(method.Estimate{Gradient: g, Users: 1}); err != nil {
					t.Fatal(err)
				}
			}
			return risk(a.Model())
		})
	}
	for _, kind := range []string{schedule.Constant, schedule.Decaying, schedule.Epochs} {
		for _, steps := range []uint64{1, 7, 63} {
			o := objective{lipschitz: slope, dim: 2, smoothness: 1, mean: 1, radius: radius, continuous: kind}
			set := o.tune(schedule.Method{Accelerated: kind == schedule.Epochs}, situation{distance: radius, users: 1,
				steps: steps, variance: 2 * sd * sd})
			mean, margin := run(steps, func() (method.Method, error) {
				if kind == schedule.Epochs {
					return method.NewEpochs(method.EpochsConfig{Dim: 2, Set: convex.Ball{R: radius}, Horizon: steps, V: set.v,
						Smoothness: set.smoothness})
				}
				return method.NewStream(method.StreamConfig{Dim: 2, Set: convex.Ball{R: radius}, Horizon: steps,
					StepSize: set.stepSize, Decaying: kind == schedule.Decaying})
			})
			t.Logf("%s, %d steps: mean excess risk %.4f, bound %.4f, margin %.4f", kind, steps, mean, set.risk, margin)
			if mean > set.risk+margin {
				t.Errorf("%s, %d steps: mean excess risk %v above the bound %v", kind, steps, mean, set.risk)
			}
		}
	}
}

// TestStreamBoundIsOfTheStreamsWeights: the weights of Stream's average are those that streamBound is derived
// for.
func TestStreamBoundIsOfTheStreamsWeights(t *testing.T) {
	for _, horizon := range []int{1, 2, 10, 200} {
		n := float64(horizon)
		weight := make([]float64, horizon+1)
		var sum, roots float64
		for s := 1; s <= horizon; s++ {
			x := float64(s)
			weight[s] = 4 * x * (x + 1) * (x + 2) / (n * (n + 1) * (n + 2) * (n + 3))
			sum += weight[s]
			roots += weight[s] / math.Sqrt(x)
		}
		last := 1.0 // the weights as the stream makes them: 4/(t+3) against those before
		for s := horizon; s >= 1; s-- {
			if w := last * 4 / (float64(s) + 3); math.Abs(w-weight[s]) > 1e-12 {
				t.Errorf("horizon %d: weight %v of point %d, want %v", horizon, w, s, weight[s])
			}
			last *= 1 - 4/(float64(s)+3)
		}
		if math.Abs(sum-1) > 1e-12 || roots > math.Sqrt(4/(3*n)) {
			t.Errorf("horizon %d: weights sum to %v, their mean of 1/sqrt t is %v, at most %v", horizon, sum, roots,
				math.Sqrt(4/(3*n)))
		}
		// By parts, with squared distances 4 + 0.09 t (D0 = 2, eta = 0.1, G = 3), the constant bound is exact in its
		// derivation.
		var parts float64
		for s := 1; s <= horizon; s++ {
			parts += (weight[s] - weight[s-1]) * (4 + 0.09*float64(s-1))
		}
		if want, got := parts/0.2+0.45, streamBound(2, 2, 9, 0.1, uint64(horizon), false); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("horizon %d: bound %v, by parts %v", horizon, got, want)
		}
	}
}

// TestWeightedBoundIsOfTheWeights checks that the closed forms of weighted equal sums over steps, and that the
// bound becomes the one with equal weights where the ridge vanishes.
func TestWeightedBoundIsOfTheWeights(t *testing.T) {
	for _, c := range []struct {
		steps      uint64
		eta, ridge float64
	}{{1, 0.5, 0.3}, {2, 1.5, 0.3}, {40, 0.3, 0.05}, {300, 1, 0.5}} {
		b := gradientBound{situation: situation{distance: 2, prior: 0.4, users: 30, steps: c.steps, variance: 0.3,
			rounding: 0.01}, loss: 1, whole: 1.5, beta: 0.7, ridge: c.ridge}
		var sum, moved, rounded, movedLast, roundedLast float64
		q, point := 1-c.eta*c.ridge, 1.0
		gap := func(move, rounding float64) float64 { return move + math.Sqrt(2*b.rounding*rounding) }
		for range c.steps { // the t-th point, and how far one moved gradient a step and rounding have moved it
			point /= q
			sum, moved, rounded = sum+point, moved+point*movedLast, rounded+point*roundedLast
			movedLast, roundedLast = q*movedLast+c.eta, q*q*roundedLast+c.eta*c.eta
		}
		gen, last := gap(2./30*moved/sum, rounded/sum), gap(2./30*movedLast, roundedLast)
		want := gen + 4/(2*c.eta*sum) + c.eta/2*(2.25+0.3)
		if rest := 1 - c.eta*0.7; rest > 0 {
			want = min(want, gen+(4/(2*c.eta*sum)+c.eta*0.3/2/rest+0.4/sum)/q+last*point/(q*sum))
		}
		if got := b.weighted(c.eta); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%+v: bound %v, by sums %v", c, got, want)
		}
		if c.eta < 1/c.ridge {
			if got, want := weightedBound(2, 3, c.eta, c.ridge, c.steps), 4/(2*c.eta*sum)+
				c.eta*3/2; math.Abs(got/want-1) > 1e-12 || got > PSGDBound(2, 3, c.eta, c.steps) {
				t.Errorf("%+v: bound of psgd %v, by sums %v, with equal weights %v", c, got, want, PSGDBound(2, 3, c.eta, c.steps))
			}
		}
	}
	b := gradientBound{situation: situation{distance: 2, prior: 0.4, users: 30, steps: 50, variance: 0.3}, loss: 1,
		whole: 1.5, beta: 0.7}
	equal := b.risk(0.5) - 0.5/30 // the points were moved at T(T-1)/2 steps, not at T^2/2
	if b.ridge = 1e-6; math.Abs(b.weighted(0.5)/equal-1) > 1e-4 {
		t.Errorf("weights that are nearly equal: %v, equal ones %v", b.weighted(0.5), equal)
	}
}
