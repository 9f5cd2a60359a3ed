package isrl

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// batchSizes returns K_i: the same share of every silo, large enough for each one's sigma_i.
func batchSizes(silos []Silo, rounds float64) (out []float64) {
	var share float64
	for _, s := range silos {
		share = math.Max(share, s.Epsilon/(4*math.Sqrt(2*rounds*math.Log(2/s.Delta))))
	}
	for _, s := range silos {
		out = append(out, math.Ceil(share*s.Records))
	}
	return out
}

// unbalancedRounds returns the rounds of Theorem H.1 for smooth losses, not rounded; f.Records is the least
// n_i and q is Unbalanced. Strongly convex: 2 kappa ln(beta mu D^2/(L^2 d Q)) + M n. Convex, half of which is
// lost in print, after Theorem 2.1: (beta D/L) min{sqrt(n M), 1/sqrt(d Q)} + min{n M, 1/(d Q)}.
func (f Federation) unbalancedRounds(q float64) float64 {
	most := f.Records * f.Available
	if f.Convexity > 0 {
		return 2*f.condition()*math.Log(f.Smoothness*f.Convexity*f.Diameter*f.Diameter/(f.Lipschitz*f.Lipschitz*f.Dim*q)) +
			most
	}
	most = math.Min(most, 1/(f.Dim*q))
	return f.Smoothness*f.Diameter/f.Lipschitz*math.Sqrt(most) + most
}

// hybrid returns the record's budget with which Algorithm 2 is also (epsilon, delta)-private for whole silos,
// for epsilon at most 1 (Appendix D.3.5): epsilon/n and delta/(4 n).
func (f Federation) hybrid() accounting.Budget {
	return accounting.Budget{Epsilon: f.Epsilon / f.Records, Delta: f.Delta / (4 * f.Records)}
}

// grouped returns the budget of n records together for the budget b of one (Appendix C.2): n epsilon, and n
// e^((n-1) epsilon) delta.
func grouped(b accounting.Budget, records float64) accounting.Budget {
	return accounting.Budget{Epsilon: records * b.Epsilon, Delta: records * math.Exp((records-1)*b.Epsilon) * b.Delta}
}
