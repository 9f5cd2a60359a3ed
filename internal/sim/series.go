package sim

import (
	"context"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream/manifest"
)

// SeriesConfig configures a series of excess risk against the number of users on a synthetic population.
type SeriesConfig struct {
	Synthetic SyntheticConfig
	// Problem is planned separately for each method and number of users; Users, Dim, Algorithm, Ridge and the
	// constants of the loss are filled in.
	Problem planning.Problem
	Methods []string // names of learner's methods, at least one
	Users   []uint64
	Repeats int // independent runs a point, at least 2
}

// A Point is the excess risk of each method after Users users, in the order of SeriesConfig.Methods.
type Point struct {
	Users uint64 `json:"users"`
	Risks []Risk `json:"risks"`
}

// Risk is the excess risk of one method, measured over independent runs and predicted.
type Risk struct {
	Method string  `json:"method"`
	Mean   float64 `json:"mean"`
	StdErr float64 `json:"std_err"` // of Mean
	// the plan's prediction; 0 where it is about the users at hand (planning.Proposal.OnRecords)
	Bound       float64 `json:"bound"`
	NonPrivate  float64 `json:"non_private"`
	Rounds      uint64  `json:"rounds"`
	Phases      int     `json:"phases"`
	NoiseStdDev float64 `json:"noise_std"` // of the last phase, in units of the encoded norm
}

// Series measures the methods at equal users and equal privacy, on the same examples.
func Series(ctx context.Context, c SeriesConfig) ([]Point, error) {
	if c.Repeats < 2 {
		return nil, fmt.Errorf("series: repeats: %d, want at least 2", c.Repeats)
	}
	if len(c.Methods) == 0 {
		return nil, fmt.Errorf("series: no methods")
	}
	s, err := NewSynthetic(c.Synthetic)
	if err != nil {
		return nil, err
	}
	c.Problem = c.Problem.ForLoss(s.Loss(), s.FeatureBound(), s.LabelBound())
	c.Problem.Dim, c.Problem.Ridge = c.Synthetic.Dim, c.Synthetic.Ridge
	c.Problem.Validation, c.Problem.Practical = nil, nil // the truth is known, and the methods are named
	out := make([]Point, 0, len(c.Users))
	for _, n := range c.Users {
		point := Point{Users: n}
		c.Problem.Users = n
		for _, m := range c.Methods {
			c.Problem.Algorithm = m
			r, err := measure(ctx, s, c.Problem, c.Repeats)
			if err != nil {
				return nil, fmt.Errorf("series: %d users, %s: %w", n, m, err)
			}
			point.Risks = append(point.Risks, r)
		}
		out = append(out, point)
	}
	return out, nil
}

func measure(ctx context.Context, s *Synthetic, p planning.Problem, repeats int) (Risk, error) {
	plan, err := planning.MakePlan(p)
	if err != nil {
		return Risk{}, err
	}
	var sum, squares, plain float64
	for k := range repeats {
		cfg := Config{Plan: plan.Plan, Loss: s.Loss(), Examples: s.sample(uint64(k)+1, int(p.Users)), Seed: s.cfg.Seed +
			uint64(k)}
		noisy, err := Run(ctx, cfg)
		if err != nil {
			return Risk{}, err
		}
		cfg.Exact = true
		clean, err := Run(ctx, cfg)
		if err != nil {
			return Risk{}, err
		}
		r := s.ExcessRisk(noisy.Model)
		sum, squares, plain = sum+r, squares+r*r, plain+s.ExcessRisk(clean.Model)
	}
	k := float64(repeats)
	mean := sum / k
	bound := plan.ExcessRisk
	if plan.OnRecords {
		bound = 0
	}
	return Risk{Method: plan.Plan.Algorithm, Mean: mean, StdErr: math.Sqrt(max(0, squares/k-mean*mean) / (k - 1)),
		Bound: bound, NonPrivate: plain / k, Rounds: manifest.Planned(plan.Plan),
		Phases: len(plan.Forecasts), NoiseStdDev: plan.Forecasts[len(plan.Forecasts)-1].Privacy.NoiseStd}, nil
}

// A Slope is the exponent of n in the excess risk of one method, fitted and proved.
type Slope struct {
	Method string  `json:"method"`
	Fitted float64 `json:"fitted"` // least squares of log(mean excess risk) over log(users)
	// Privacy and Sampling are the exponents of the two terms of the bound's rate: what privacy adds, and what
	// learning from n users costs anyway, 0 of a bound that is about these users alone. The rate is the slower of
	// the two in the end.
	Privacy  float64 `json:"privacy"`
	Sampling float64 `json:"sampling"`
}

// Slopes fits every method of a series; ridge reports whether the objective has a ridge. A series of one point has
// slopes 0.
func Slopes(points []Point, ridge bool) []Slope {
	if len(points) == 0 {
		return nil
	}
	out := make([]Slope, len(points[0].Risks))
	for i, r := range points[0].Risks {
		var n, sx, sy, sxx, sxy float64
		for _, p := range points {
			x, y := math.Log(float64(p.Users)), math.Log(p.Risks[i].Mean)
			n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		}
		m, _ := schedule.Of(r.Method)
		out[i].Method = r.Method
		out[i].Privacy, out[i].Sampling = m.Exponents(ridge)
		if n > 1 {
			out[i].Fitted = (n*sxy - sx*sy) / (n*sxx - sx*sx)
		}
	}
	return out
}
