package isrl

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// noise returns sigma of Theorems 2.1 (D.1, D.2) and 4.1 (F.1, F.2), in which records are drawn in every
// round:
//
//	sigma^2 = 256 L^2 R ln(2.5 R/delta) ln(2/delta) / (n^2 epsilon^2)
//
// whatever the batch, the silos and the dimension. See conditions. Doubt: Algorithm 2 as printed draws with
// replacement, and the lemma on sampling that the proof cites is of subsets; this sigma has margin enough for
// both (Redrawn).
func (f Federation) noise(rounds float64) float64 {
	return 16 * f.Lipschitz * math.Sqrt(rounds*math.Log(2.5*rounds/f.Delta)*math.Log(2/f.Delta)) / (f.Records * f.Epsilon)
}

// leastBatch returns the least batch K: epsilon n/(4 sqrt(2 R ln(2/delta))). A batch is at most n.
func (f Federation) leastBatch(rounds float64) float64 {
	return f.Epsilon * f.Records / (4 * math.Sqrt(2*rounds*math.Log(2/f.Delta)))
}

// share returns the budget of one of R rounds: epsilon/(2 sqrt(2 R ln(2/delta))) and delta/(2 R).
func (f Federation) share(rounds float64) accounting.Budget {
	return accounting.Budget{Epsilon: f.Epsilon / (2 * math.Sqrt(2*rounds*math.Log(2/f.Delta))),
		Delta: f.Delta / (2 * rounds)}
}

// conditions returns the premises of the privacy of Theorems 2.1 and 4.1. Doubt: the last is not stated
// there; the composition needs it, and it can fail in up to three rounds alone.
func (f Federation) conditions(rounds, batch float64) []condition {
	return []condition{
		atMost("epsilon <= 2 ln(2/delta)", f.Epsilon, 2*math.Log(2/f.Delta)),
		atLeast("K >= epsilon n/(4 sqrt(2 R ln(2/delta)))", batch, f.leastBatch(rounds)),
		atMost("K <= n", batch, f.Records),
		atMost("epsilon of a round <= 1.25", f.share(rounds).Epsilon, 1.25),
	}
}

// minibatch is Theorem 2.1 for a federation: plain steps on batches that are drawn in every round.
type minibatch struct{ Federation }

// rounds returns the rounds of Theorem 2.1 for smooth losses, not rounded: D.1.1 for convex and D.1.2 for
// strongly convex ones.
//
//	convex          (beta D sqrt(M)/L) min{sqrt(n), epsilon n/sqrt(d)} + min{n M, epsilon^2 n^2 M/d}
//	strongly convex max{(2 beta/mu) ln(beta D^2 mu M epsilon^2 n^2/(d L^2)), min{n M, epsilon^2 n^2 M/d}}
func (f minibatch) rounds() float64 {
	most := math.Min(f.Records*f.Available, f.signal()/f.Dim)
	if f.Convexity > 0 {
		return math.Max(2*f.condition()*math.Log(f.Smoothness*f.Diameter*f.Diameter*f.Convexity*f.signal()/(f.Dim*f.Lipschitz*f.Lipschitz)), most)
	}
	return f.Smoothness*f.Diameter*math.Sqrt(f.Available)/f.Lipschitz*math.Min(math.Sqrt(f.Records),
		f.Epsilon*f.Records/math.Sqrt(f.Dim)) + most
}

// signal returns epsilon^2 n^2 M.
func (f Federation) signal() float64 {
	return f.Epsilon * f.Epsilon * f.Records * f.Records * f.Available
}

// step returns the step that minimises the bound which the theorem proves, 2 L^2 R eta/(n M) + D^2/(2 eta R)
// + (eta/2)(L^2 + d sigma^2/M), for any sigma; strongly convex, that of Stich's lemma (D.5): min{1/(2 beta),
// ln(max{2, mu^2 D^2 R^2/c})/(mu R)} with c = d sigma^2/M + L^2.
func (f Federation) step(rounds, noise float64) float64 {
	c := f.Dim*noise*noise/f.Available + f.Lipschitz*f.Lipschitz
	if mu := f.Convexity; mu > 0 {
		return math.Min(1/(2*f.Smoothness), math.Log(math.Max(2, mu*mu*f.Diameter*f.Diameter*rounds*rounds/c))/(mu*rounds))
	}
	return math.Min(1/f.Smoothness,
		f.Diameter/math.Sqrt(rounds*(c+4*f.Lipschitz*f.Lipschitz*rounds/(f.Records*f.Available))))
}

// enveloped returns the federation with the losses' envelopes instead, where they are not smooth: beta of
// Theorem D.2.1, and D.2.2,
//
//	convex          (L sqrt(M)/D) / (1/sqrt(n) + sqrt(d ln(1/delta))/(epsilon n))
//	strongly convex mu M / (1/n + d ln(1/delta)/(epsilon^2 n^2))
//
// The envelope's gradient is no longer than L within the set (not 2L, as the paper's lemma has it), so sigma
// stays. Doubt: its modulus is mu beta/(mu + beta), which the paper takes for mu; so does this.
func (f minibatch) enveloped() Federation {
	n, e := f.Records, f.Epsilon
	if f.Convexity > 0 {
		f.Smoothness = f.Convexity * f.Available / (1/n + f.Dim*f.logDelta()/(e*e*n*n))
	} else {
		f.Smoothness = f.Lipschitz * math.Sqrt(f.Available) / f.Diameter / (1/math.Sqrt(n) +
			math.Sqrt(f.Dim*f.logDelta())/(e*n))
	}
	return f.Federation
}
