package schedule

import "fmt"

// Names of the methods of one process that has all rows, see packages curator and resque.
const (
	Resque      = "resque"
	ResqueSCO   = "resque-sco"
	ResqueBall  = "resque-ball"
	NoisySGD    = "noisy-sgd"
	BallAccel   = "ball-accel"
	FixedLambda = "fixed-lambda"
)

// A Curated is a method of one process that has all rows: it asks for them again and again, and releases one model.
type Curated struct {
	Name string
	// Sampled reports whether the method works on samples of single rows, see package resque/private.
	Sampled bool
	// Public marks methods for data that need no protection: they add no noise.
	Public bool
	// Source is the paper and theorem of a method that is Sampled or Public; package curator names the other
	// methods' sources.
	Source string
}

var curated = [...]Curated{
	{Name: "output"}, {Name: "output-sgd"}, {Name: "output-phases"}, {Name: "gradscore"}, {Name: "deletion"},
	{Name: "phased-erm"}, {Name: "phased-sco"},
	{Name: "strongly-convex-erm"}, {Name: "strongly-convex-sco"}, {Name: "group-sgd"}, {Name: "filtered"},
	{Name: Resque, Sampled: true,
		Source: "Carmon et al. 2023, Theorem 3, at a fixed lambda and one slot a record (docs/proofs/resque.md, Private)"},
	{Name: ResqueSCO, Sampled: true,
		Source: "Carmon et al. 2023, Theorem 4, by regularised phases on disjoint blocks (docs/proofs/resque.md, Localisation)"},
	{Name: ResqueBall, Sampled: true,
		Source: "Carmon et al. 2023, Theorem 3, with its Algorithms 5 to 7 and one slot a record (docs/proofs/resque.md, Private)"},
	{Name: NoisySGD, Sampled: true,
		Source: "projected noisy stochastic gradient descent on Poisson samples (docs/proofs/resque.md, Private)"},
	{Name: BallAccel, Public: true, Source: "Carmon et al. 2023, Theorem 1 (docs/proofs/resque.md)"},
	{Name: FixedLambda, Public: true, Source: "acceleration at a fixed lambda, Theorem F of docs/proofs/resque.md"},
}

// CuratedNames lists the methods of one process, in the order of the documentation.
func CuratedNames() []string {
	out := make([]string, len(curated))
	for i, m := range curated {
		out[i] = m.Name
	}
	return out
}

// CuratedOf returns the method of one process of a name, and false where there is none.
func CuratedOf(name string) (Curated, bool) {
	for _, m := range curated {
		if m.Name == name {
			return m, true
		}
	}
	return Curated{}, false
}

// OnePlace refuses a method of one process where rows are in many places; nil: it is none.
func OnePlace(name string) error {
	if _, known := CuratedOf(name); !known {
		return nil
	}
	return fmt.Errorf("a method of one process that has all rows: learner fit --algorithm %s runs it", name)
}
