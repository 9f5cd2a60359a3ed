package method_test

import (
	"bytes"
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
)

// bankOf returns a bank over one block of dim numbers, the last an intercept, for a loss of curvature 1 and
// noise of deviation 1 a user.
func bankOf(t *testing.T, dim int) *method.Bank {
	t.Helper()
	out, err := method.NewBank(method.BankConfig{Dim: dim, Blocks: 1, Set: convex.Ball{R: convex.MaxScale},
		Start: make([]float64, dim), Users: 40_000,
		Stream: practical.Stream{Curvature: 1, Slope: 1, Spread: 1, Trust: 1, Clip: 1, Residual: 1},
		Layout: practical.Layout{MomentUsers: 250, Base: 250, Top: 4000}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// follow takes a round at a quadratic loss of curvature h around the optimum, with the cohort that the bank chooses and
// with privacy noise of deviation u in the sum.
func follow(t *testing.T, b *method.Bank, optimum []float64, h, u float64, r *rand.Rand) {
	t.Helper()
	q := b.Query()
	m := float64(q.Cohort)
	g := make([]float64, len(q.Point))
	for i, x := range q.Point {
		g[i] = h*(x-optimum[i]) + r.NormFloat64()*math.Sqrt(u*u/m/m+1/m)
	}
	if err := b.Step(method.Estimate{Gradient: g, Users: q.Cohort, PrivacyVariance: u * u / m / m}); err != nil {
		t.Fatal(err)
	}
}

func away(a, b []float64) (sum float64) {
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// TestBankFollows an optimum that stays, then jumps: it comes near, reports how near it about is, is not
// surprised while nothing changes, is when the optimum jumps, and comes near again within a few thousand users.
// Cohorts grow while nothing happens and shrink after the jump.
func TestBankFollows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := bankOf(t, 9)
	optimum := make([]float64, 9)
	for i := range optimum {
		optimum[i] = 0.5 * r.NormFloat64()
	}
	worst := 0.0
	for users := 0.0; users < 30_000; {
		users += float64(b.Query().Cohort)
		follow(t, b, optimum, 1, 9, r)
		if users > 5000 {
			worst = max(worst, b.Tracking().Surprise)
		}
	}
	if got := away(b.Model(), optimum); got > 0.15 {
		t.Errorf("it stays %v away from an optimum that stays", got)
	}
	if worst > method.Alarm {
		t.Errorf("surprise of %v where nothing changed", worst)
	}
	calm := b.Query().Cohort
	if calm < 500 {
		t.Errorf("cohorts of %d after 30,000 users of a stream that stays", calm)
	}
	for i := range optimum {
		optimum[i] = -optimum[i] + 0.5
	}
	follow(t, b, optimum, 1, 9, r)
	if s := b.Tracking().Surprise; s < method.Alarm {
		t.Errorf("surprise of %v after a jump", s)
	}
	if c := b.Query().Cohort; c >= calm {
		t.Errorf("cohort of %d after a jump, %d before", c, calm)
	}
	for users := 0.0; users < 6_000; {
		users += float64(b.Query().Cohort)
		follow(t, b, optimum, 1, 9, r)
	}
	if got := away(b.Model(), optimum); got > 0.35 {
		t.Errorf("6,000 users after a jump it is %v away", got)
	}
}

// TestBankIsStable where the loss is fifty times as curved as the first look shows: secants detect it, and
// steps stay short enough.
func TestBankIsStable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := bankOf(t, 5)
	optimum := []float64{0.3, -0.2, 0.1, 0.2, -0.4}
	for range 200 {
		follow(t, b, optimum, 50, 9, r)
	}
	if got := away(b.Model(), optimum); got > 0.2 {
		t.Errorf("it is %v away after 200 rounds", got)
	}
}

// TestBankLeavesWhatIsWorseThanZeros: where a round says that the model's loss is above that of zeros by more than
// noise, filters keep half of their points, and a gradient of zero leaves a model nearer to zero. Where noise may say
// so, and where the loss of zeros is not known, it leaves the model as it is.
func TestBankLeavesWhatIsWorseThanZeros(t *testing.T) {
	for _, c := range []struct {
		loss, noise, zero float64
		back              bool
	}{{1.2, 0.1, math.Ln2, true}, {1.2, 0.3, math.Ln2, false}, {0.75, 0, math.Ln2, false}, {0.6, 0, math.Ln2, false},
		{1.2, 0.1, 0, false}} {
		r := rand.New(rand.NewPCG(5, 6))
		one, err := method.NewBank(method.BankConfig{Dim: 5, Blocks: 1, Set: convex.Ball{R: convex.MaxScale},
			Start: make([]float64, 5), Users: 40_000,
			Stream: practical.Stream{Curvature: 1, Slope: 1, Spread: 1, Trust: 1, Clip: 1, Residual: 1, Zero: c.zero},
			Layout: practical.Layout{MomentUsers: 250, Base: 250, Top: 4000}})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			follow(t, one, []float64{1, -1, 1, -1, 1}, 1, 1, r)
		}
		before, e := one.Model(), method.Estimate{Gradient: make([]float64, 5), Users: 250, PrivacyVariance: 1e-4,
			Loss: &c.loss, LossNoise: c.noise}
		if err := one.Step(e); err != nil {
			t.Fatal(err)
		}
		if got := convex.Norm(one.Model()) / convex.Norm(before); (got < 0.8) != c.back || !c.back && math.Abs(got-1) > 0.01 {
			t.Errorf("%+v: the model is %.2f of what it was", c, got)
		}
	}
}

// TestBankStaysFinite whatever is released: gradients as long as a poisoned round can make them, for ever in one
// direction.
func TestBankStaysFinite(t *testing.T) {
	for _, length := range []float64{1, 1e3, 1e8} {
		b := bankOf(t, 4)
		for range 300 {
			q := b.Query()
			if err := b.Step(method.Estimate{Gradient: []float64{length, -length, length, length}, Users: q.Cohort,
				PrivacyVariance: 1e-4}); err != nil {
				t.Fatalf("gradients of %g: %v", length, err)
			}
		}
		if n := convex.Norm(b.Model()); math.IsNaN(n) || n > 1e4 {
			t.Errorf("gradients of %g lead to a model of norm %v", length, n)
		}
	}
}

// TestBankCohorts: a round that closes short makes the next one at most twice as large, and no cohort leaves its range.
func TestBankCohorts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	b := bankOf(t, 3)
	optimum := []float64{0.1, 0.2, 0.3}
	for k := 0; b.Query().Cohort < 1000; k++ {
		if k == 1000 {
			t.Fatalf("cohorts of %d after %d rounds, want them grown", b.Query().Cohort, k)
		}
		follow(t, b, optimum, 1, 9, r)
	}
	if err := b.Step(method.Estimate{Gradient: []float64{0, 0, 0}, Users: 300, PrivacyVariance: 1e-3}); err != nil {
		t.Fatal(err)
	}
	if c := b.Query().Cohort; c > 600 || c < 250 {
		t.Errorf("after a round of 300 the next is of %d", c)
	}
	for range 100 {
		c := b.Query().Cohort
		if c < 250 || c > 4000 {
			t.Fatalf("cohort of %d, want 250 to 4000", c)
		}
		follow(t, b, []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}, 1, 9, r)
	}
}

// TestBankResumes: k steps, a restart and m steps are k+m steps, and spoiled states are refused.
func TestBankResumes(t *testing.T) {
	whole, again := bankOf(t, 4), bankOf(t, 4)
	for step := range uint64(8) {
		state, err := whole.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		if back, _ := again.MarshalBinary(); !bytes.Equal(back, state) {
			t.Fatalf("after %d steps: other bytes", step)
		}
		for _, cut := range []int{0, 1, 8} {
			if cut < len(state) && again.UnmarshalBinary(state[:len(state)-1-cut]) == nil {
				t.Errorf("after %d steps: a state that lacks %d bytes is accepted", step, cut+1)
			}
		}
		spoiled := bytes.Clone(state)
		for i := range 8 {
			spoiled[len(spoiled)-1-i] = 0xff // NaN
		}
		if again.UnmarshalBinary(spoiled) == nil {
			t.Errorf("after %d steps: NaN is accepted", step)
		}
		const calm = 1 + 1 + 4 + 8 + 8 + sha256.Size + 6*8 // behind the header: 0 or 1
		spoiled = bytes.Clone(state)
		if spoiled[calm+7] ^= 0x80; again.UnmarshalBinary(spoiled) == nil {
			t.Errorf("after %d steps: a 0 with a sign is accepted, which is encoded without it", step)
		}
		for _, b := range []*method.Bank{whole, again} {
			follow(t, b, []float64{1, 0, 0, 0}, 1, 9, rand.New(rand.NewPCG(7, step)))
		}
	}
}

// TestBankRegret holds the mixture of one block against the inequality of docs/proofs/adaptive.md: for any sequence of
// experts with S changes, its sum of -log densities is at most theirs and beta log J + S beta log(J/s) + T ((1 -
// beta) log J + log 1/(1 - s)), on any sequence of observations.
func TestBankRegret(t *testing.T) {
	const beta, share, filters, dim = 0.95, 0.02, 30, 3
	r := rand.New(rand.NewPCG(9, 10))
	b, err := method.NewBank(method.BankConfig{Dim: dim, Blocks: 1, Lone: true, Set: convex.Ball{R: convex.MaxScale},
		Start: make([]float64, dim), Users: 40_000,
		Stream: practical.Stream{Curvature: 1, Slope: 1, Spread: 1, Clip: 1, Residual: 1},
		Layout: practical.Layout{MomentUsers: 250, Base: 250, Top: 250}})
	if err != nil {
		t.Fatal(err)
	}
	rounds, mixture := 400, 0.0
	best := make([]float64, filters) // smallest sum of -log q + the price of changes, that ends with an expert
	for k := range rounds {
		at := method.Experts(b)
		z := make([]float64, dim)
		level := 0.0
		if k%100 > 50 {
			level = 3
		}
		for i := range z {
			z[i] = level + r.NormFloat64()*0.1
		}
		densities := at.Densities(z, 9.0/250)
		var weights, mixed float64
		for j, d := range densities {
			w := math.Pow(at.Weights[j], beta)
			weights += w
			mixed += w * d
		}
		mixture -= math.Log(mixed / weights)
		least := math.Inf(1)
		for _, c := range best {
			least = min(least, c+beta*math.Log(filters/share))
		}
		for j, d := range densities {
			best[j] = min(best[j], least) - math.Log(d)
		}
		at.Step(t, z, 9.0/250)
	}
	least := math.Inf(1)
	for _, c := range best {
		least = min(least, c)
	}
	bound := least + beta*math.Log(filters) + float64(rounds)*((1-beta)*math.Log(filters)+math.Log(1/(1-share)))
	if mixture > bound {
		t.Errorf("the mixture has %v, the bound for the best sequence of experts is %v", mixture, bound)
	}
}

// TestBankRemembersNoMoreThanThereWere: the memory that is shown never exceeds the users of the rounds and the first look.
func TestBankRemembersNoMoreThanThereWere(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	b := bankOf(t, 3)
	users := 250.0 // of the first look
	for range 40 {
		users += float64(b.Query().Cohort)
		follow(t, b, []float64{0.1, 0.2, 0.3}, 1, 30, r)
		if m := b.Tracking().Memory; m > users {
			t.Fatalf("remembers %.0f of %.0f users", m, users)
		}
	}
}
