package planning

import (
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// An Order is a theorem's rate for the excess risk, with every universal constant 1 and without logarithms. It proves
// nothing about a number of users; it shows slopes.
type Order struct {
	Name    string  `json:"name"`    // the kind of risk
	Theorem string  `json:"theorem"` // with its authors
	Formula string  `json:"formula"`
	Lower   bool    `json:"lower"` // no algorithm of its kind has a smaller order
	Value   float64 `json:"value"`
}

// Orders returns the rates of the theorems for the problem's kind of loss, and the lower bounds that are known for its
// kind of trust: for users, from Cheu, Joseph, Mao and Peng (ICLR 2022), Table 1; for silos that trust nobody, from
// Lowy and Razaviyayn (ICLR 2023), Theorems 2.1, 2.2 and 3.1. It returns nil if no set bounds the optimum, or if
// neither paper treats the trust.
func (p Problem) Orders() []Order {
	set, err := p.Set.New(p.Dim)
	if err != nil || p.Practical != nil || math.IsInf(set.Radius(), 1) {
		return nil
	}
	of := orders{l: p.gradientNorm(), distance: set.Radius(), n: float64(p.Users), d: float64(p.Dim), epsilon: p.Epsilon,
		beta: p.meanSmoothness() + p.Ridge, mu: p.Ridge}
	switch {
	case math.IsInf(of.l, 1):
		return nil
	case p.Silos.Count > 0 && p.local():
		of.silos = float64(p.Silos.Count)
		return of.ofSilos()
	case p.Silos.Count == 0 && p.Trust == accounting.Shuffle:
		return of.ofUsers()
	}
	return nil
}

// orders holds the quantities of the formulas: n units in all, in silos silos.
type orders struct{ l, distance, n, d, epsilon, beta, mu, silos float64 }

func (o orders) ofUsers() []Order {
	private := math.Sqrt(o.d) / (o.epsilon * o.n) // cost of privacy with a curator
	if o.mu > 0 {
		scale, sampling := o.l*o.l/o.mu, 1/o.n
		return o.add("smooth, one round a user", "Theorem 4.8", "L^2/(mu n) + d beta^(1/2) L^2/(mu^(3/2) (eps n)^2)",
			scale*(sampling+math.Sqrt(o.beta/o.mu)*private*private), !math.IsInf(o.beta, 1),
			o.order("any, one round a user", "Theorem 4.8", "L^2/mu (1/n + d^(2/3)/(eps n)^(4/3))",
				scale*(sampling+math.Pow(private, 4./3))),
			o.order("any, all users in every round", "Theorem 4.9", "L^2/mu (1/n + d/(eps n)^2)",
				scale*(sampling+private*private)))
	}
	scale, sampling := o.l*o.distance, 1/math.Sqrt(o.n)
	lower := func(name, formula string, private float64) Order {
		out := o.order(name, "Bassily, Smith, Thakurta 2014; Duchi, Jordan, Wainwright 2018, as Cheu et al. cite them", formula,
			scale*(sampling+min(1, private)))
		out.Lower = true
		return out
	}
	return o.add("smooth, one round a user", "Theorem 4.3", "D L/n^(1/2) + d^(2/5) beta^(1/5) D^(6/5) L^(4/5)/(eps n)^(4/5)",
		scale*sampling+math.Pow(private, 4./5)*math.Pow(o.beta, 1./5)*math.Pow(o.distance, 6./5)*math.Pow(o.l, 4./5),
		!math.IsInf(o.beta, 1),
		o.order("any, one round a user", "Theorem 4.7", "D L (1/n^(1/2) + (d^(1/2)/(eps n))^(2/3))",
			scale*(sampling+math.Pow(private, 2./3))),
		o.order("any, all users in every round", "Theorem 4.9", "D L (1/n^(1/2) + d^(1/2)/(eps n))", scale*(sampling+private)),
		lower("lower bound, a trusted curator", "D L (1/n^(1/2) + min(1, d^(1/2)/(eps n)))", private),
		lower("lower bound, nobody trusted", "D L (1/n^(1/2) + min(1, d^(1/2)/(eps n^(1/2))))", private*math.Sqrt(o.n)))
}

func (o orders) ofSilos() []Order {
	// n is N n of the paper; sqrt(d)/(eps n sqrt N)
	private := math.Sqrt(o.d) * math.Sqrt(o.silos) / (o.epsilon * o.n)
	const paper = " of Lowy, Razaviyayn"
	var out []Order
	if o.mu > 0 {
		scale, sampling := o.l*o.l/o.mu, 1/o.n
		out = append(out, o.order("silos alike, many passes", "Theorem 2.1"+paper, "L^2/mu (1/(N n) + d/(eps^2 n^2 N))",
			scale*(sampling+private*private)))
		if !math.IsInf(o.beta, 1) {
			out = append(out, o.order("silos that differ, smooth, one pass", "Theorem 3.1"+paper,
				"L^2/mu (1/(N n) + kappa^(1/2) d/(eps^2 n^2 N))", scale*(sampling+math.Sqrt(o.beta/o.mu)*private*private)))
		}
		low := o.order("lower bound, all silos in every round", "Theorem 2.2"+paper,
			"L^2/(mu N n) + L D min(1, d/(eps^2 n^2 N))", scale*sampling+o.l*o.distance*min(1, private*private))
		low.Lower = true
		return append(out, low)
	}
	scale, sampling := o.l*o.distance, 1/math.Sqrt(o.n)
	out = append(out, o.order("silos alike, many passes", "Theorem 2.1"+paper, "D L (1/(N n)^(1/2) + d^(1/2)/(eps n N^(1/2)))",
		scale*(sampling+private)))
	if !math.IsInf(o.beta, 1) {
		out = append(out, o.order("silos that differ, smooth, one pass", "Theorem 3.1"+paper,
			"D L/(N n)^(1/2) + beta^(1/5) D^(6/5) L^(4/5) (d^(1/2)/(eps n N^(1/2)))^(4/5)",
			scale*sampling+math.Pow(private, 4./5)*math.Pow(o.beta, 1./5)*math.Pow(o.distance, 6./5)*math.Pow(o.l, 4./5)))
	}
	low := o.order("lower bound, all silos in every round", "Theorem 2.2"+paper,
		"D L (1/(N n)^(1/2) + min(1, d^(1/2)/(eps n N^(1/2))))", scale*(sampling+min(1, private)))
	low.Lower = true
	return append(out, low)
}

func (o orders) order(name, theorem, formula string, value float64) Order {
	return Order{Name: name, Theorem: theorem, Formula: formula, Value: value}
}

// add returns the others, preceded by the order of smooth losses if the loss is smooth.
func (o orders) add(name, theorem, formula string, value float64, smooth bool, others ...Order) []Order {
	if !smooth {
		return others
	}
	return append([]Order{o.order(name, theorem, formula, value)}, others...)
}
