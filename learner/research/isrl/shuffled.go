package isrl

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// shuffling is Theorem 5.1 for a federation: plain steps on shuffled reports about one record each.
type shuffling struct{ Federation }

// A Shuffled holds the budgets and noise by Theorem 5.1 (G.1): one record of each of M silos, released with
// Gaussian noise each, M reports shuffled, R rounds. The theorem leaves a constant C open; this is its chain
// of lemmas, evaluated.
type Shuffled struct {
	Round accounting.Budget // what one round may cost
	Batch accounting.Budget // the same before a record's chance to be in it
	Local accounting.Budget // of one report alone
	Noise float64           // sigma of one report
}

// shuffled evaluates the chain for R rounds. Local.Epsilon is NaN, and so is the noise, where the lemma on
// shuffling does not reach; it is at most 1, for which the last line is proved.
//
//	round  epsilon/(2 sqrt(2 R ln(1/delta))), delta/(2 R)     (ln(2/delta) in the theorem that composes: a doubt of the paper's)
//	batch  epsilon_r = 2 q epsilon^, delta_r = q delta^ with q = M/(n N)
//	local  delta_0 = n N delta/(18 R M^2); epsilon_0 by inverting Amplified
//	sigma^2 = 8 L^2 ln(2/delta_0)/epsilon_0^2
func (f Federation) shuffled(rounds float64) Shuffled {
	q := f.Available / (f.Records * f.Silos)
	s := Shuffled{Round: accounting.Budget{Epsilon: f.Epsilon / (2 * math.Sqrt(2*rounds*f.logDelta())),
		Delta: f.Delta / (2 * rounds)}}
	s.Batch = accounting.Budget{Epsilon: s.Round.Epsilon / (2 * q), Delta: s.Round.Delta / q}
	s.Local.Delta = f.Records * f.Silos * f.Delta / (18 * rounds * f.Available * f.Available)
	t := f.Available * s.Local.Delta
	lo, hi := 0.0, math.Min(1, amplifiedUpTo(f.Available, 1, t)*(1-1e-12))
	switch {
	case !(hi > 0) || !(t < 1):
		s.Local.Epsilon = math.NaN()
	case amplified(f.Available, 1, hi, t) <= s.Batch.Epsilon:
		s.Local.Epsilon = hi
	default:
		for range 200 {
			if mid := (lo + hi) / 2; amplified(f.Available, 1, mid, t) <= s.Batch.Epsilon {
				lo = mid
			} else {
				hi = mid
			}
		}
		s.Local.Epsilon = lo
	}
	s.Noise = f.Lipschitz * math.Sqrt(8*math.Log(2/s.Local.Delta)) / s.Local.Epsilon
	return s
}

// conditions returns the premises of Theorem 5.1. Doubt: the one on M only makes the lemma on
// shuffling apply to an epsilon_0 barely above 0; the last one is what is needed.
func (f shuffling) conditions(rounds float64) []condition {
	s := f.shuffled(rounds)
	out := []condition{
		atMost("epsilon <= ln(2/delta)", f.Epsilon, math.Log(2/f.Delta)),
		atLeast("M >= 16 ln(18 R M^2/(N delta))", f.Available,
			16*math.Log(18*rounds*f.Available*f.Available/(f.Silos*f.Delta))),
		atLeast("R >= n^2 N^2 epsilon^2/M", rounds, f.pooled()/f.Available),
		atLeast("R >= N/M", rounds, f.Silos/f.Available),
	}
	t := f.Available * s.Local.Delta
	if math.IsNaN(s.Local.Epsilon) {
		return append(out, atLeast("M > 16 ln(2/(M delta_0))", f.Available, 16*math.Log(2/t)))
	}
	return append(out, atLeast("M >= 16 e^epsilon_0 ln(2/(M delta_0))", f.Available,
		16*math.Exp(s.Local.Epsilon)*math.Log(2/t)))
}

// pooled returns epsilon^2 n^2 N^2.
func (f shuffling) pooled() float64 { return math.Pow(f.Epsilon*f.Records*f.Silos, 2) }

// rounds returns the rounds of Theorem 5.1 for smooth losses, not rounded:
//
//	convex          max{n^2 N^2 eps^2/M, N/M, min{n M, eps^2 n^2 N^2/d}, (beta D/L) min{sqrt(n M), eps n N/sqrt(d)}}
//	strongly convex max{n^2 N^2 eps^2/M, N/M, (8 beta/mu) ln(beta D^2 mu eps^2 n^2 N^2/(d L^2)), min{n M, eps^2 n^2 N^2/d}}
//
// Doubt: printed is min{n, eps^2 n^2 N^2/(d M)}, M times less, which the proof does not give.
func (f shuffling) rounds() float64 {
	p := f.pooled()
	least := max(p/f.Available, f.Silos/f.Available, math.Min(f.Records*f.Available, p/f.Dim))
	if f.Convexity > 0 {
		return math.Max(least,
			8*f.condition()*math.Log(f.Smoothness*f.Diameter*f.Diameter*f.Convexity*p/(f.Dim*f.Lipschitz*f.Lipschitz)))
	}
	return math.Max(least, f.Smoothness*f.Diameter/f.Lipschitz*math.Min(math.Sqrt(f.Records*f.Available),
		math.Sqrt(p/f.Dim)))
}

// amplified returns the epsilon of one round of N shuffled reports about n records each, each
// epsilon_0-private for one of them, at delta (Theorem D.5; n = 1: Feldman, McMillan and Talwar 2021, Theorem
// 3.8):
//
//	ln(1 + (e^e0 - 1)/(e^e0 + 1) (8 sqrt(e^(n e0) ln(4/delta))/sqrt(N) + 8 e^(n e0)/N))
//
// where e0 is at most amplifiedUpTo. Doubt: where reports have a delta_0 of their own, it adds 2 N n e^((n-1)
// e0) delta_0, by the paper's own lemma e^epsilon + 1 times that.
func amplified(silos, records, epsilon, delta float64) float64 {
	e := math.Exp(records * epsilon)
	return math.Log1p(math.Tanh(epsilon/2) * 8 * (math.Sqrt(e*math.Log(4/delta)/silos) + e/silos))
}

// amplifiedUpTo returns the largest epsilon_0 that Amplified holds for: ln(N/(16 ln(2/delta)))/n. It is
// negative where N is too small.
func amplifiedUpTo(silos, records, delta float64) float64 {
	return math.Log(silos/(16*math.Log(2/delta))) / records
}
