package isrl

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

const tight = 1e-6 // of all values that were computed from the formulas by other means

// example returns the federation of most checks.
func example() Federation {
	return Federation{Silos: 25, Available: 25, Records: 1000, Dim: 50, Lipschitz: 1, Smoothness: 1, Diameter: 10,
		Epsilon: 1, Delta: 1e-5}
}

// Checks 1 and 2: the noise of Theorem 2.1 and its proof.
func TestTheorem21_Noise(t *testing.T) {
	f := example()
	near(t, "sigma^2", math.Pow(f.noise(100), 2), 5.32282772, tight)
	near(t, "sigma", f.noise(100), 2.30712543, tight)
	near(t, "least batch", f.leastBatch(100), 5.05984293, tight)
	twice, longer := f, f
	twice.Records, longer.Lipschitz = 2000, 2
	near(t, "n -> 2n", math.Pow(f.noise(100)/twice.noise(100), 2), 4, 1e-12)
	near(t, "L -> 2L", math.Pow(longer.noise(100)/f.noise(100), 2), 4, 1e-12)

	s := f.share(100)
	near(t, "epsilon of a round", s.Epsilon, 0.0101196859, tight)
	near(t, "delta of a round", s.Delta, 5e-8, tight)
	c := minibatch{f}.composed(100)
	near(t, "epsilon composed", c.Epsilon, 0.510292796, tight)
	near(t, "delta composed", c.Delta, 1e-5, tight)
	for _, c := range f.conditions(100, 6) {
		if !c.Met {
			t.Errorf("%s: %v against %v", c.Text, c.Value, c.Bound)
		}
	}
	if f.conditions(100, 5)[1].Met {
		t.Error("a batch of 5 is large enough")
	}
	f.Epsilon = 2 * math.Log(2/f.Delta) // the corner of few rounds
	if f.conditions(3, 1000)[3].Met || !f.conditions(10, 1000)[3].Met {
		t.Error("the corner of three rounds")
	}
}

// The noise of Theorem 2.1 against what is needed, and the epsilon that it really has.
func TestTheorem21_IsLoose(t *testing.T) {
	f := example()
	if got := one[Interval](t)(Sampled{1000, 6, 100, f.noise(100)}.Epsilon(f.Delta)); !(got.Upper < 0.03 &&
		got.Upper > 0.02) {
		t.Errorf("epsilon %+v of the noise for epsilon 1, want about 0.023", got)
	}
	for batch, ratio := range map[uint64]float64{6: 8.64, 50: 25.3, 200: 29.6, 1000: 30.9} {
		tightest := one[float64](t)(Sampled{Records: 1000, Batch: batch, Rounds: 100}.LeastNoise(
			accounting.Budget{Epsilon: 1, Delta: 1e-5}))
		near(t, "theorem/tight", f.noise(100)/tightest, ratio, 0.01)
	}
}

// Check 3: one pass.
func TestTheorem31_Noise(t *testing.T) {
	f := example()
	sigma := onePass{f}.noise(50)
	near(t, "sigma", sigma, 0.387584421, tight)
	near(t, "sigma^2", sigma*sigma, 0.150221683, tight)
	near(t, "epsilon", onePass{f}.concentrated(50, sigma), 0.50054928, tight)
	mu := one[float64](t)(accounting.GaussianMu(accounting.Budget{Epsilon: 1, Delta: 1e-5}))
	near(t, "analytic sigma", 2./50/mu, 0.149225265, tight)
	near(t, "ratio", sigma/(2./50/mu), 2.59731, 1e-5)
	f.Epsilon = 8 * math.Log(1/f.Delta)
	near(t, "ceiling", f.Epsilon, 92.1034037, tight)
	near(t, "epsilon there", onePass{f}.concentrated(50, onePass{f}.noise(50)), 90.7878980, tight)
	if !(onePass{f}).conditions(50)[0].Met {
		t.Error("the ceiling is beyond itself")
	}
}

// Check 5: the experiments' noise and batches.
func TestExperimentalNoise(t *testing.T) {
	for eps, want := range map[float64][2]float64{
		0.75: {0.0680127, 90}, 1.5: {0.0340064, 128}, 3: {0.0170032, 181}, 6: {0.00850159, 256}, 12: {0.00425080, 362},
		18: {0.00283386, 443},
	} {
		f := Federation{Records: 1238, Lipschitz: 1, Epsilon: eps, Delta: 1 / 1238. / 1238.}
		near(t, "sigma", f.ExperimentalNoise(35), want[0], 2e-6)
		if k := f.ExperimentalBatch(35); k != want[1] {
			t.Errorf("epsilon %v: K = %v, want %v", eps, k, want[1])
		}
	}
	f := Federation{Records: 1238, Lipschitz: 1, Epsilon: 3, Delta: 1 / 1238. / 1238.}
	near(t, "2 ln(1/delta)", 2*f.logDelta(), 28.4850098, tight)
	near(t, "Local SGD", f.LocalNoise(35, 181), 0.228754472, tight)
	if f.LocalNoise(35, 1) != f.ExperimentalNoise(35) {
		t.Error("Local SGD of one step is not a minibatch of one")
	}
	// Step by step it has no privacy to speak of.
	if got := one[Interval](t)(Sampled{1238, 1, 35 * 181, f.LocalNoise(35, 181)}.Delta(3)); !(got.Lower > 0.99) {
		t.Errorf("delta %+v of Local SGD at epsilon 3", got)
	}
}

// Check 6: batches of one pass.
func TestTheorem31_Batch(t *testing.T) {
	f := example()
	k := onePass{f}.batch()
	near(t, "K", k, 47.0373816, tight)
	if r := math.Floor(f.Records / math.Floor(k)); r != 21 {
		t.Errorf("R = %v", r)
	}
	steps, privacy := onePass{f}.balance(k)
	near(t, "steps", steps, 0.221251526, tight)
	near(t, "privacy", privacy, 0.221251526, tight)
	near(t, "rate", math.Pow(math.Pow(f.Smoothness, 0.25)*f.Lipschitz*math.Pow(f.Diameter, 1.5)/empirical{f}.reach(), 0.8),
		0.221251526, tight)
	f.Smoothness, f.Convexity, f.Gap, f.Deviation = 1, 0.01, 10, 1
	near(t, "strongly convex K", onePass{f}.batch(), 12.7811109, tight)
}

// Check 7: rounds and steps of minibatches.
func TestTheorem21_RoundsAndSteps(t *testing.T) {
	f := example()
	near(t, "R", minibatch{f}.rounds(), 26581.1388, tight)
	near(t, "sigma^2", math.Pow(f.noise(26582), 2), 1878.63547, tight)
	near(t, "printed eta", minibatch{f}.printedStep(26582), 0.05948156, tight)
	near(t, "eta", f.step(26582, f.noise(26582)), 9.999229e-4, tight)
	f.Convexity = 0.01
	near(t, "strongly convex R", minibatch{f}.rounds(), 25000, 1e-12)
	near(t, "the logarithm's R", 2*f.condition()*math.Log(100*0.01*f.signal()/f.Dim), 2624.47268, tight)
	near(t, "strongly convex sigma^2", math.Pow(f.noise(25000), 2), 1762.03719, tight)
	near(t, "strongly convex eta", f.step(25000, f.noise(25000)), 0.0299217408, tight)
	// Enveloped, rounds are about 2 M min{n, epsilon^2 n^2/d}.
	f.Convexity, f.Smoothness = 0, math.Inf(1)
	e := minibatch{f}.enveloped()
	near(t, "envelope's beta", e.Smoothness, 0.5/(1/math.Sqrt(1000)+math.Sqrt(50*f.logDelta())/1000), 1e-12)
	if r := (minibatch{e}).rounds(); !(r > 25000 && r <= 50000) {
		t.Errorf("%v rounds of the envelope", r)
	}
}

// Check 8: rounds on the silos' own records.
func TestTheorem41_Rounds(t *testing.T) {
	f := example()
	near(t, "X", empirical{f}.reach(), 208.397332, tight)
	steps, batches := empirical{f}.rounds(50)
	near(t, "steps", steps, 45.6505567, tight)
	near(t, "batches", batches, 34.7435586, tight)
	if _, batches := (empirical{f}).rounds(1000); batches != 0 {
		t.Errorf("%v rounds for batches of everything", batches)
	}
	near(t, "beta of F.2", empirical{f}.enveloped().Smoothness, 70.7106781, tight)
	f.Smoothness = empirical{f}.reach() * f.Lipschitz / f.Diameter
	steps, _ = empirical{f}.rounds(50)
	near(t, "rounds with X's beta", steps, empirical{f}.reach(), 1e-12)
}

// Check 9: stages.
func TestStages(t *testing.T) {
	f := Federation{Smoothness: 10, Convexity: 0.1, Gap: 8}
	got := accelerated{f, 4}.stages(854 + 1707 + 3414 + 6827)
	if len(got) != 4 {
		t.Fatalf("%v", got)
	}
	for i, want := range []stage{{854, 3227.55201}, {1707, 12887.5718}, {3414, 51527.6592}, {6827, 206020.118}} {
		if got[i].rounds != want.rounds {
			t.Errorf("stage %d: %d rounds, want %d", i+1, got[i].rounds, want.rounds)
		}
		near(t, "v", got[i].steepness, want.steepness, tight)
	}
	for _, s := range (accelerated{f, 0}).stages(200) {
		if s != (stage{57, 20}) {
			t.Errorf("without variance: %v", s)
		}
	}
	if got := (accelerated{f, 4}).stages(100); len(got) != 1 || got[0].rounds != 100 {
		t.Errorf("too few rounds for a stage: %v", got)
	}
}

// Check 10: shuffled reports.
func TestTheorem51_Chain(t *testing.T) {
	near(t, "D.5", amplified(1e4, 10, 0.05, 1e-6), 0.00999348028, tight)
	near(t, "its ceiling", amplifiedUpTo(1e4, 10, 1e-6), 0.37630, 1e-5)
	near(t, "n = 1", amplified(1e4, 1, 1, 1e-6), 0.214025652, tight)

	f := Federation{Silos: 1000, Available: 1000, Records: 10, Dim: 1, Lipschitz: 1, Smoothness: 1, Diameter: 1,
		Epsilon: 0.1, Delta: 1e-6}
	s := f.shuffled(1000)
	near(t, "epsilon of a round", s.Round.Epsilon, 3.00795640e-4, tight)
	near(t, "delta of a round", s.Round.Delta, 5e-10, tight)
	near(t, "delta of a batch", s.Batch.Delta, 5e-9, tight) // delta_r over q = M/(n N) = 1/10
	near(t, "delta of a report", s.Local.Delta, 5.5555556e-13, tight)
	near(t, "epsilon of a batch", s.Batch.Epsilon, 1.50397820e-3, tight)
	near(t, "epsilon of a report", s.Local.Epsilon, 2.47802707e-3, tight)
	near(t, "sigma", s.Noise, 6137.30458, tight)
	c := shuffling{f}.conditions(1000)
	near(t, "condition on M", c[1].Bound, 488.342286, tight)
	near(t, "condition on R", c[2].Bound, 1000, 1e-12)
	for _, c := range c {
		if !c.Met {
			t.Errorf("%s: %v against %v", c.Text, c.Value, c.Bound)
		}
	}
	f.Epsilon = 10 // a budget that single reports could spend more than 1 of, where the lemma on Gaussian noise ends
	if s := f.shuffled(1); s.Local.Epsilon != 1 || !(amplified(1000, 1, 1, 1000*s.Local.Delta) <= s.Batch.Epsilon) {
		t.Errorf("a large budget: %+v", s)
	}
	f.Silos, f.Available = 20, 20
	if s := f.shuffled(1000); !math.IsNaN(s.Noise) || (shuffling{f}).conditions(1000)[1].Met {
		t.Errorf("20 silos are shuffled to %+v", s)
	}
}

// Check 14: budgets of silos' own, and for whole silos.
func TestAppendixH(t *testing.T) {
	f := Federation{Records: 100, Epsilon: 1, Delta: 1e-5}
	b := f.hybrid()
	near(t, "epsilon_0", b.Epsilon, 0.01, 1e-12)
	near(t, "delta_0", b.Delta, 2.5e-8, 1e-12)
	g := grouped(b, 100)
	near(t, "delta of a silo", g.Delta, 6.72808618e-6, tight)
	if !(g.Delta <= f.Delta && g.Epsilon <= f.Epsilon*(1+1e-12)) {
		t.Errorf("%+v is beyond the budget", g)
	}
	s := Silo{1000, accounting.Budget{Epsilon: 1, Delta: 1e-5}}
	near(t, "xi", s.cost(100), 2.07922958e-4, tight)
	near(t, "sigma_i^2", 256*100*s.cost(100), 5.32282772, tight)

	// Equal silos agree with Theorem 2.1.
	equal := []Silo{s, s, s, s}
	near(t, "Q", Unbalanced(equal, 100, []int{4}), s.cost(100)/4, 1e-12)
	near(t, "Q, 2 of 4 or all", Unbalanced(equal, 100, []int{2, 4}), s.cost(100)*3/8, 1e-12)
	for _, k := range batchSizes(equal, 100) {
		if k != 6 {
			t.Errorf("K = %v, want 6", k)
		}
	}
	small := Silo{100, accounting.Budget{Epsilon: 2, Delta: 1e-5}}
	if got := batchSizes([]Silo{s, small}, 100); got[0] != 11 || got[1] != 2 {
		t.Errorf("batches %v, want one share of both", got)
	}
	if q := Unbalanced([]Silo{s, small}, 100, []int{1}); math.Abs(q/small.cost(100)-1) > 1e-12 {
		t.Errorf("Q = %v where one of two silos answers, want that of the costlier one", q)
	}
	e := example()
	near(t, "rounds of equal silos", e.unbalancedRounds(1/e.signal()), minibatch{e}.rounds(), 1e-12)
}

// Check 15: limiting cases of the formulas.
func TestLimits(t *testing.T) {
	f := example()
	f.Spread = 7
	if f.heterogeneous() != 0 || f.variance(10, 1) != (0/10.+50)/25 {
		t.Error("all silos answer, and their differences count")
	}
	f.Available = 5
	near(t, "share of the spread", f.heterogeneous(), 20./24, 1e-12)
	f.Silos, f.Available = 1, 1
	if f.heterogeneous() != 0 {
		t.Error("one silo differs from itself")
	}
	f = example()
	f.Records = 1
	if (onePass{f}).batch() != 1 || (summed{f}).batch() != 1 {
		t.Error("a batch of more than the one record")
	}
	// One record: sampling does nothing, the interval is the Gaussian's.
	got := one[Interval](t)(Sampled{1, 1, 9, 2}.Epsilon(1e-5))
	if want := one[float64](t)(accounting.GaussianEpsilon(3, 1e-5)); got != (Interval{want, want}) {
		t.Errorf("%+v, want %v", got, want)
	}
	f = example()
	last := math.Inf(1)
	for _, eps := range []float64{1, 1e3, 1e9} {
		f.Epsilon = eps
		if s := f.noise(10) + (onePass{f}).noise(10) + f.ExperimentalNoise(10); !(s < last) {
			t.Errorf("noise %v at epsilon %v", s, eps)
		} else {
			last = s
		}
	}
	if !(last < 1e-6) {
		t.Errorf("noise %v without privacy", last)
	}
}

// concentrated returns the epsilon, at delta, that zero-concentrated privacy has for one Gaussian release of
// a mean over K: rho + 2 sqrt(rho ln(1/delta)) with rho = (2L/K)^2/(2 sigma^2).
func (f onePass) concentrated(batch, noise float64) float64 {
	rho := 2 * f.Lipschitz * f.Lipschitz / (batch * batch * noise * noise)
	return rho + 2*math.Sqrt(rho*f.logDelta())
}

// balance returns the two summands that batch makes equal: beta D^2 K^2/n^2 and L D sqrt(d
// ln(1/delta))/(epsilon sqrt(K n M)).
func (f onePass) balance(batch float64) (steps, privacy float64) {
	steps = f.Smoothness * math.Pow(f.Diameter*batch/f.Records, 2)
	privacy = f.Lipschitz * f.Diameter * math.Sqrt(f.Dim*f.logDelta()/(batch*f.Records*f.Available)) / f.Epsilon
	return steps, privacy
}

// composed returns the cost of R such rounds by advanced composition (Dwork and Roth 2014, Theorem 3.20) with
// delta' = delta/2.
func (f minibatch) composed(rounds float64) accounting.Budget {
	s := f.share(rounds)
	return accounting.Budget{
		Epsilon: math.Sqrt(2*rounds*math.Log(2/f.Delta))*s.Epsilon + rounds*s.Epsilon*math.Expm1(s.Epsilon),
		Delta:   rounds*s.Delta + f.Delta/2,
	}
}

// printedStep returns the step eta of Theorem D.1.1 as printed (convex, smooth):
//
//	min{1/beta, D/(L sqrt(R)) min{1, epsilon n sqrt(M)/sqrt(R d), sqrt(n M/R)}}
//
// Doubt: it leaves out 256 and the logarithms of sigma^2, and can be far too large: Step does not.
func (f minibatch) printedStep(rounds float64) float64 {
	return math.Min(1/f.Smoothness, f.Diameter/(f.Lipschitz*math.Sqrt(rounds))*
		min(1, math.Sqrt(f.signal()/(rounds*f.Dim)), math.Sqrt(f.Records*f.Available/rounds)))
}
