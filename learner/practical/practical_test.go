package practical_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

var losses = []convex.Declaration{
	{Name: "logistic"}, {Name: "logistic", ClassWeights: []float64{1, 3}}, {Name: "logistic", LabelNoise: 0.2},
	{Name: "softmax", Classes: 3},
	{Name: "softmax", Classes: 3, ClassWeights: []float64{2, 1, 0.5}}, {Name: "hinge"}, {Name: "smoothed-hinge",
		Width: 0.2},
	{Name: "squared"}, {Name: "huber", Width: 0.1}, {Name: "absolute"}, {Name: "quantile", Level: 0.9},
	{Name: "poisson", ScoreBound: 5, MaxCount: 50},
}

// problem has a first feature that is an indicator, and numbers.
func problem(loss convex.Declaration) practical.Problem {
	p := practical.Problem{Loss: loss, Features: 3, Indicators: []bool{true, false, false}, Bound: 3, Intercept: 1,
		LabelLow: -1, LabelHigh: 1, Users: 10000}
	if loss.Name == "poisson" {
		p.LabelLow, p.LabelHigh = 0, loss.MaxCount
	}
	return p
}

// population returns a linear problem: rows, with labels of the loss's kind.
func population(rng *rand.Rand, p practical.Problem, n int) []convex.Example {
	out := make([]convex.Example, n)
	for i := range out {
		x := []float64{0, 0.5 + 0.3*rng.NormFloat64(), -0.2 + 0.5*rng.NormFloat64()}
		if rng.Float64() < 0.3 {
			x[0] = 1
		}
		z := 0.4*x[0] - 0.3*x[1] + 0.2*x[2] + 0.1*rng.NormFloat64()
		if p.Intercept != 0 {
			x = append(x, p.Intercept)
		}
		out[i] = convex.Example{Value: x, Label: z}
		switch convex.TraitsOf(p.Loss.Name).Labels {
		case convex.TwoClasses:
			out[i].Label = math.Copysign(1, z)
		case convex.ManyClasses:
			out[i].Label = float64(rng.IntN(p.Loss.Classes))
		case convex.Counts:
			out[i].Label = math.Round(10 * math.Exp(z))
		}
	}
	return out
}

// mean of what users report, clipped to norm.
func mean(dim int, users []convex.Example, norm float64, write func(dst []float64, e convex.Example)) []float64 {
	out, one := make([]float64, dim), make([]float64, dim)
	for _, e := range users {
		write(one, e)
		convex.Clip(one, norm)
		for i, v := range one {
			out[i] += v / float64(len(users))
		}
	}
	return out
}

func moments(p practical.Problem, users []convex.Example) []float64 {
	return mean(p.MomentsDim(), users, p.MomentsNorm(), p.Moments)
}

func matrix(p practical.Problem, f *convex.Frame, users []convex.Example) []float64 {
	var u convex.Example
	return mean(p.MatrixDim(), users, f.Clip, func(dst []float64, e convex.Example) {
		f.Apply(&u, e)
		p.Matrix(dst, f, u, e.Label)
	})
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestLayout(t *testing.T) {
	two, many := problem(convex.Declaration{Name: "logistic"}), problem(convex.Declaration{Name: "softmax", Classes: 5})
	// d = 4; q = 10000/(4 unit), T = round(4 q^(1/3)): 2 at q = 1/8.
	for unit, want := range map[float64]uint64{1: 8, 300: 8, 312.5: 8, 2500: 4, 20000: 2, 1e9: 2} {
		moments := uint64(1000)
		if unit > 100 { // 2000 users, a fifth, do not bring the noise of a moment down to 0.1
			moments = 2000
		}
		if got := two.Layout(unit); got.Rounds != want || got.MomentUsers != moments || got.MatrixUsers != 0 ||
			got.Method != practical.Acceleration || got.Unit != unit {
			t.Errorf("unit %v: %+v, want %d rounds", unit, got, want)
		}
	}
	for unit, want := range map[float64][2]uint64{100: {3, 6}, 500: {2, 4}, 2000: {1, 1}} { // q = 25, 5, 1.25
		p := two
		p.Start = make([]float64, 4)
		one := p.Layout(unit).Rounds
		if p.Interactive = true; one != want[0] || p.Layout(unit).Rounds != want[1] {
			t.Errorf("from a start, unit %v: %d and %d rounds, want %v", unit, one, p.Layout(unit).Rounds, want)
		}
	}
	if got := many.Layout(1250); got.Rounds != 4 { // sqrt(K - 1) = 2
		t.Errorf("five classes: %+v", got)
	}
	p := problem(convex.Declaration{Name: "squared"})
	if got := p.Layout(40); got.MomentUsers != 1247 { // 40 x 0.6 sqrt(27) / 0.1
		t.Errorf("numbers: %+v", got)
	}
	if got := p.Layout(500); got.MomentUsers != 2000 || got.MatrixUsers != 4000 || got.Rounds != 4 ||
		got.Method != practical.Descent {
		t.Errorf("numbers: %+v", got)
	}
	if got := p.Layout(501); got.MatrixUsers != 0 || got.Method != practical.Acceleration {
		t.Errorf("numbers, few users: %+v", got)
	}
	p.Set = convex.SetDeclaration{Kind: "l1", Radius: 1}
	if got := p.Layout(1); got.MatrixUsers != 0 {
		t.Errorf("numbers in a set: %+v", got)
	}
	for _, loss := range losses {
		for n := uint64(1); n < 60; n++ {
			p := problem(loss)
			p.Users = n
			for _, unit := range []float64{0.001, 1, 50} {
				l := p.Layout(unit)
				if l.Rounds < 1 || l.MomentUsers < 1 || (n > 20 && l.MomentUsers+l.MatrixUsers+l.Rounds > n) {
					t.Errorf("%s, %d users: %+v", loss.Name, n, l)
				}
			}
		}
	}
}

func TestMomentsByHand(t *testing.T) {
	dense, sparse := []float64{1, 0, -2, 1}, convex.Example{Index: []int32{0, 2, 3}, Value: []float64{1, -2, 1}}
	for _, c := range []struct {
		loss  convex.Declaration
		label float64
		want  []float64
		norm  float64
	}{
		{losses[0], -1, []float64{1, 0, -2, 0, 4, -1}, math.Sqrt(8.5)}, // 3^2 + 1, less three quarters of two numbers
		{losses[3], 2, []float64{1, 0, -2, 0, 4, 0, 0, 1}, math.Sqrt(8.5)},
		{losses[7], 0.5, []float64{1, 0, -2, 0, 4, 1.5, 0.75}, 0.6 * math.Sqrt(27)},
		{losses[11], 25, []float64{1, 0, -2, 0, 4, 1.5, 0.75}, 0.6 * math.Sqrt(27)},
	} {
		p := problem(c.loss)
		got := make([]float64, p.MomentsDim())
		for _, x := range []convex.Example{{Value: dense}, sparse} {
			x.Label = c.label
			if p.Moments(got, x); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.loss.Name, got, c.want)
			}
		}
		near(t, c.loss.Name+": norm", p.MomentsNorm(), c.norm, 1e-12)
	}
}

func TestMatrixByHand(t *testing.T) {
	p := problem(convex.Declaration{Name: "squared"})
	p.Features, p.Indicators = 1, nil
	f := &convex.Frame{LabelCenter: 0.1, LabelScale: 0.2, LabelWeight: 2}
	got := make([]float64, p.MatrixDim())
	for label, q := range map[float64]float64{0.3: 1, 1: 3, -1: -3} {
		p.Matrix(got, f, convex.Example{Value: []float64{3, 0.5}}, label)
		for i, want := range []float64{9, 1.5 * math.Sqrt2, 0.25, 6 * q, q, 2 * q * q} {
			near(t, "matrix", got[i], want, 1e-12)
		}
	}
}

// TestManyUsersFindTheMoments: without noise the first look finds mean and variance, and the second the least
// squares fit, its residual and the whitening.
func TestManyUsersFindTheMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := problem(convex.Declaration{Name: "squared"})
	p.Bound = 10 // nothing is cut
	users := population(rng, p, 40000)
	l := p.Layout(1e-6)
	first, err := p.First(l, moments(p, users), 0)
	if err != nil {
		t.Fatal(err)
	}
	for j, want := range []struct{ mean, variance float64 }{{0.3, 0.21}, {0.5, 0.09}, {-0.2, 0.25}} {
		near(t, "center", first.Frame.Center[j], want.mean, 0.01)
		near(t, "scale", first.Frame.Scale[j], 1/math.Sqrt(want.variance+0.03), 0.02)
	}
	near(t, "rho", first.Report.Norm, math.Sqrt(1.12*(0.21/0.24+0.09/0.12+0.25/0.28)), 0.02)
	first.Frame.Clip = 1e6 // clipping shrinks the matrix
	second, err := p.Second(first, matrix(p, &first.Frame, users), 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "residual", second.Report.Residual, 0.1, 0.01)
	near(t, "label's mean", second.Report.Mean, 0.4*0.3-0.3*0.5-0.2*0.2, 0.01)
	near(t, "label's deviation", second.Report.Deviation, math.Sqrt(0.16*0.21+0.09*0.09+0.04*0.25+0.01), 0.01)
	for j, want := range []float64{0.4, -0.3, 0.2, 0} {
		near(t, "fit", second.Model(second.Start, p.Intercept)[j], want, 0.03)
	}
	var u convex.Example
	square := make([]float64, 4)
	w := make([]float64, 4)
	for _, e := range users {
		second.Frame.Apply(&u, e)
		second.Frame.Whiten(w, u.Value)
		for i, v := range w {
			square[i] += v * v / float64(len(users))
		}
	}
	for _, v := range square {
		near(t, "mean square of a whitened coordinate", v, 1, 0.1)
	}

	p = problem(convex.Declaration{Name: "logistic"})
	p.Bound = 10
	for i := range users {
		users[i].Label = -1
		if i%4 == 0 {
			users[i].Label = 1
		}
	}
	out, err := p.First(p.Layout(1e-6), moments(p, users), 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "scale", out.Frame.Scale[1], 1/math.Sqrt(0.09+0.01), 0.05)
	near(t, "share", out.Report.Shares[1], 0.25, 1e-9)
	near(t, "score at the start", out.Start[3]*out.Frame.Intercept, math.Log(1./3), 1e-9)
	near(t, "v", out.Curvature, 0.3, 1e-3)
	near(t, "clip where noise costs nothing", out.Frame.Clip, out.Report.Norm, 1e-9)
	near(t, "clipped at the start", out.Report.Clipped, 0, 1e-9)

	// The longer a clip, the more noise: it adds a fifth to v, and beyond that the clip is the shortest.
	for _, c := range []struct{ noise, clip float64 }{{0.06, 0.35}, {0.2, 0.35}} {
		l := p.Layout(1e-6)
		l.Unit = c.noise / (0.5 * out.Report.Norm) * float64(p.Users) / float64(l.Rounds) / 2 // of 4 coordinates
		out, err := p.First(l, moments(p, users), 0)
		if err != nil {
			t.Fatal(err)
		}
		longest := 0.06 / c.noise * 0.5 * out.Report.Norm // whose noise is 0.06
		near(t, "clip", out.Frame.Clip, max(c.clip*out.Report.Norm, longest), 1e-9)
		near(t, "v", out.Curvature, 0.3+max(c.clip/0.5*c.noise, 0.06), 1e-9)
	}
}

// TestNoiseLeadsToDeclaredCoordinates: more and more noise leads to the declared coordinates with one scale for
// each kind of feature, and to no belief about the classes.
func TestNoiseLeadsToDeclaredCoordinates(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := problem(convex.Declaration{Name: "softmax", Classes: 3})
	const draws, sd = 200, 1e6
	declared := 0
	for range draws {
		noisy := make([]float64, p.MomentsDim())
		for i := range noisy {
			noisy[i] = sd * rng.NormFloat64()
		}
		out, err := p.First(p.Layout(1e6), noisy, sd)
		if err != nil {
			t.Fatal(err)
		}
		f := out.Frame
		if math.Abs(f.Center[0])+math.Abs(f.Center[1])+math.Abs(f.Center[2]) < 1e-3 &&
			math.Abs(f.Scale[1]/f.Scale[2]-1) < 1e-3 {
			declared++
		}
		for _, s := range out.Report.Shares {
			near(t, "share", s, 1./3, 1e-9)
		}
	}
	// Noise passes for signal where one of three sums of squares is a deviation above its mean, an eighth of them.
	if declared < draws/2 {
		t.Errorf("%d of %d frames are the declared coordinates", declared, draws)
	}
}

// TestAnyReleaseIsSafe: every release leads to a finite frame that devices accept.
func TestAnyReleaseIsSafe(t *testing.T) {
	value := rapid.SampledFrom([]float64{0, 1, -1, 0.3, -5, 1e300, -1e300, 1e12, math.SmallestNonzeroFloat64})
	rapid.Check(t, func(t *rapid.T) {
		p := problem(rapid.SampledFrom(losses).Draw(t, "loss"))
		if rapid.Bool().Draw(t, "without intercept") {
			p.Intercept = 0
		}
		p.Ridge = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "ridge")
		p.Set = rapid.SampledFrom([]convex.SetDeclaration{{}, {Kind: "ball", Radius: 2}, {Kind: "l1", Radius: 2},
			{Kind: "box", Min: -1, Max: 2},
			{Kind: "simplex", Radius: 1}, {Kind: "nonnegative", Radius: 1}}).Draw(t, "set")
		p.Users = rapid.Uint64Range(1, 1e6).Draw(t, "users")
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		sd := rapid.SampledFrom([]float64{0, 1e-9, 0.01, 1, 1e5, 1e300}).Draw(t, "sd")
		draw := func(n int) []float64 { return rapid.SliceOfN(value, n, n).Draw(t, "released") }
		l := p.Layout(rapid.SampledFrom([]float64{1e-6, 1, 50, 1e9}).Draw(t, "unit"))
		out, err := p.First(l, draw(p.MomentsDim()), sd)
		if err == nil && l.MatrixUsers > 0 {
			if err = out.Frame.Check(3, p.Intercept != 0); err == nil {
				out, err = p.Second(out, draw(p.MatrixDim()), sd)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Frame.Check(3, p.Intercept != 0); err != nil {
			t.Fatal(err)
		}
		finite := append([]float64{out.Gain, out.Offset, out.Weight, out.Report.Norm, out.Report.Residual, out.Report.Clipped,
			out.Report.Effective}, out.Start...)
		finite = append(append(finite, out.Model(out.Start, p.Intercept)...), out.Gradient(make([]float64, len(out.Start)),
			out.Start, p.Ridge, p.Intercept)...)
		for i, v := range finite {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("number %d: %v of %+v", i, v, out)
			}
		}
		if step := out.Curvature + out.Step; !(step > 0) || math.IsInf(step, 0) {
			t.Fatalf("curvature %v, step %v", out.Curvature, out.Step)
		}
		if out.Set.Kind != "" {
			if set, err := out.Set.New(len(out.Start)); err != nil || !set.Contains(out.Start) {
				t.Fatalf("the start %v is not in the set %+v: %v", out.Start, out.Set, err)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	p := problem(losses[7])
	l := p.Layout(1)
	good, _ := p.First(l, make([]float64, p.MomentsDim()), 1)
	for _, c := range []struct {
		mean []float64
		sd   float64
	}{{nil, 1}, {[]float64{1, 2, 3, 4, math.NaN(), 1, 2}, 1}, {[]float64{1, 2, 3, 4, math.Inf(1), 1, 2},
		1}, {make([]float64, 7), math.NaN()}, {make([]float64, 7), -1}} {
		if _, err := p.First(l, c.mean, c.sd); err == nil {
			t.Errorf("first look at %v, noise %v: no error", c.mean, c.sd)
		}
	}
	if _, err := p.Second(good, make([]float64, 3), 1); err == nil {
		t.Error("second look at 3 numbers: no error")
	}
}

// TestFeaturesHaveNoOrder: renaming features renames what is learned.
func TestFeaturesHaveNoOrder(t *testing.T) {
	for _, loss := range losses {
		rng := rand.New(rand.NewPCG(5, 6))
		p := problem(loss)
		p.Indicators = nil
		q := p
		users := population(rng, p, 500)
		order := []int{2, 0, 1, 3}
		other := make([]convex.Example, len(users))
		for i, e := range users {
			other[i] = convex.Example{Label: e.Label}
			for _, j := range order {
				other[i].Value = append(other[i].Value, e.Value[j])
			}
		}
		l := p.Layout(2)
		learn := func(p practical.Problem, users []convex.Example) practical.Learned {
			out, err := p.First(l, moments(p, users), 0.01)
			if err == nil && l.MatrixUsers > 0 {
				out, err = p.Second(out, matrix(p, &out.Frame, users), 0.01)
			}
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		a, b := learn(p, users), learn(q, other)
		x, y := a.Model(a.Start, 1), b.Model(b.Start, 1)
		for i := range y {
			near(t, loss.Name+": start", y[i], x[i/4*4+order[i%4]], 1e-9)
		}
		for i := range b.Frame.Scale {
			near(t, loss.Name+": scale", b.Frame.Scale[i], a.Frame.Scale[order[i]], 1e-9)
		}
		near(t, loss.Name+": clip", b.Frame.Clip, a.Frame.Clip, 1e-9*a.Frame.Clip)
	}
}

// TestGradientIsThatOfTheRisk: a gradient at a point, from exact answers that nothing clips, is the derivative
// of loss and ridge along w.
func TestGradientIsThatOfTheRisk(t *testing.T) {
	for _, loss := range losses {
		for _, set := range []convex.SetDeclaration{{}, {Kind: "l1", Radius: 2}, {Kind: "none"}} {
			rng := rand.New(rand.NewPCG(7, 8))
			p := problem(loss)
			if p.Ridge, p.Set, p.Bound = 0.05, set, 100; set.Kind == "none" {
				p.Set, p.Intercept = convex.SetDeclaration{}, 0
			}
			users := population(rng, p, 200)
			l := p.Layout(1e-6)
			learned, err := p.First(l, moments(p, users), 0)
			if err == nil && l.MatrixUsers > 0 {
				learned, err = p.Second(learned, matrix(p, &learned.Frame, users), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			plain, err := loss.New()
			if err != nil {
				t.Fatal(err)
			}
			task, err := convex.Smoothed(plain, learned.Frame.Smoothing)
			if err != nil {
				t.Fatal(err)
			}
			f := learned.Frame
			f.Bound = 1e6
			learned.Frame = f
			w := slices.Clone(learned.Start)
			for i := range w {
				w[i] += 0.05 * rng.NormFloat64()
			}
			risk := func(w []float64) (sum float64) {
				model := learned.Model(w, p.Intercept)
				for _, e := range users {
					sum += task.Value(model, e) / float64(len(users))
				}
				n := convex.Norm(model)
				return sum + p.Ridge/2*n*n
			}
			var u convex.Example
			point := learned.Point(w)
			g := make([]float64, len(w))
			answer := mean(len(w), users, 1e9, func(dst []float64, e convex.Example) {
				f.Apply(&u, e)
				task.Gradient(g, point, u)
				for n, i := f.Dim(), 0; i < len(g); i += n {
					f.Whiten(dst[i:i+n], g[i:i+n])
				}
				for i := range dst {
					dst[i] /= f.Clip
				}
			})
			got := learned.Gradient(answer, w, p.Ridge, p.Intercept)
			unit := learned.Weight / learned.Gain
			for i := range w {
				const h = 1e-5
				at := w[i]
				w[i] = at + h
				up := risk(w)
				w[i] = at - h
				want := (up - risk(w)) / (2 * h) * unit
				w[i] = at
				near(t, loss.Name+": derivative", got[i], want, 1e-4*(1+math.Abs(want)))
			}
		}
	}
}
