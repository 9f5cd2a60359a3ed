package isrl

import (
	"cmp"
	"math"
	"slices"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A Silo has a size and a budget of its own (Lowy and Razaviyayn, Appendix H).
type Silo struct {
	Records float64 // n_i
	accounting.Budget
}

// cost returns xi_i = ln(2.5 R/delta_i) ln(2/delta_i) / (n_i epsilon_i)^2: the silo's sigma^2 is 256 L^2 R
// xi_i.
func (s Silo) cost(rounds float64) float64 {
	return math.Log(2.5*rounds/s.Delta) * math.Log(2/s.Delta) / math.Pow(s.Records*s.Epsilon, 2)
}

// Unbalanced returns Q of Theorem H.1 = min{Xi/M', max xi/M}, which takes the place of ln(2.5 R/delta)
// ln(2/delta)/(n^2 epsilon^2 M), where one of the given numbers of silos is in a round, each as likely: 1/M'
// is the root of the mean of 1/M_r^2, and Xi that of the squared mean of the M_r largest xi.
func Unbalanced(silos []Silo, rounds float64, available []int) float64 {
	var costs []float64
	for _, s := range silos {
		costs = append(costs, s.cost(rounds))
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
