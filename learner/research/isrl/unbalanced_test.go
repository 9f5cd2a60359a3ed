package isrl

import (
	"cmp"
	"math"
	"slices"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Silo has a size and a budget of its own (Appendix H).
type silo struct {
	Records float64 // n_i
	accounting.Budget
}

// Cost returns xi_i = ln(2.5 R/delta_i) ln(2/delta_i) / (n_i epsilon_i)^2: the silo's sigma^2 is 256 L^2 R
// xi_i.
func (s silo) Cost(rounds float64) float64 {
	return math.Log(2.5*rounds/s.Delta) * math.Log(2/s.Delta) / math.Pow(s.Records*s.Epsilon, 2)
}

// Noise returns sigma_i of Algorithm 7.
func (s silo) Noise(lipschitz, rounds float64) float64 {
	return 16 * lipschitz * math.Sqrt(rounds*s.Cost(rounds))
}

// batchSizes returns K_i: the same share of every silo, large enough for each one's sigma_i.
func batchSizes(silos []silo, rounds float64) (out []float64) {
	var share float64
	for _, s := range silos {
		share = math.Max(share, s.Epsilon/(4*math.Sqrt(2*rounds*math.Log(2/s.Delta))))
	}
	for _, s := range silos {
		out = append(out, math.Ceil(share*s.Records))
	}
	return out
}

// unbalanced returns Q of Theorem H.1 = min{Xi/M', max xi/M}, which takes the place of ln(2.5 R/delta)
// ln(2/delta)/(n^2 epsilon^2 M), where one of the given numbers of silos is in a round, each as likely: 1/M'
// is the root of the mean of 1/M_r^2, and Xi that of the squared mean of the M_r largest xi.
func unbalanced(silos []silo, rounds float64, available []int) float64 {
	var costs []float64
	for _, s := range silos {
		costs = append(costs, s.Cost(rounds))
	}
	worst := slices.Max(costs)
	slices.SortFunc(costs, func(a, b float64) int { return cmp.Compare(b, a) })
	var inverse, squares, costliest float64
	for _, m := range available {
		var sum float64
		for _, c := range costs[:m] {
			sum += c
		}
		inverse += 1 / float64(m)
		squares += 1 / float64(m*m)
		costliest += sum * sum / float64(m*m)
	}
	times := float64(len(available))
	return math.Min(math.Sqrt(costliest/times)*math.Sqrt(squares/times), worst*inverse/times)
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
