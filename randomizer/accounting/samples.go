package accounting

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// sample is one row of a table of quantities with known bounds, such
// as testdata/accounting-samples.json. An accountant's value v passes when
// Lower <= v <= AcceptMax; Lower comes from a concrete pair of neighbours.
// Which fields a row uses depends on its kind.
type sample struct {
	ID string `json:"id"`
	// Kind is delta, eps, calibrate, midbatch, topup, gauss, plan or local.
	Kind      string  `json:"kind"`
	Lower     float64 `json:"lower"`
	Upper     float64 `json:"upper"`
	AcceptMax float64 `json:"accept_max"`

	Epsilon float64 `json:"eps"`
	Delta   float64 `json:"delta"`
	Levels  int     `json:"g"`
	Dim     int     `json:"d"`
	Trials  uint64  `json:"trials"`
	P       float64 `json:"p"`
	// Rounds in which the same user takes part; 0 means 1.
	Rounds int `json:"rounds"`

	// UserTrials is b, for the kinds that count users.
	UserTrials uint64 `json:"b"`
	// Kind midbatch: one look into the running totals, then the final totals.
	HonestUntil   uint64 `json:"honest_until_intrusion"`
	HonestAfter   uint64 `json:"honest_after_intrusion"`
	PreloadUsers  uint64 `json:"preload_users"`
	PostloadUsers uint64 `json:"postload_users"`
	// Kind topup: the stage draws the noise of missing users.
	Honest     uint64 `json:"honest"`
	DummyUsers uint64 `json:"dummy_users"`
	// Kind local: epsilon at Delta of a report about K units, hidden by its own b
	// fair trials alone.
	Units uint64 `json:"units,omitempty"`
	// Kind plan.
	Users          uint64    `json:"n"`
	HonestFraction *Fraction `json:"honest_fraction"`
	MSESlack       float64   `json:"mse_slack"`
	BitsAcceptMax  uint64    `json:"bits_accept_max"`
}

// ParseSamples reads a document {"rows": [...]} or a bare array of rows.
func ParseSamples(data []byte) ([]sample, error) {
	var rows []sample
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		if err := json.Unmarshal(data, &rows); err != nil {
			return nil, fmt.Errorf("read samples: %w", err)
		}
		return rows, nil
	}
	var doc struct {
		Rows []sample `json:"rows"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	return doc.Rows, nil
}

// Evaluate returns the accountant's value of the row: an upper bound on its
// quantity, or +Inf.
func (s sample) Evaluate() (float64, error) {
	v, err := s.evaluate()
	if err != nil {
		return 0, fmt.Errorf("sample %q: %w", clip(s.ID), err)
	}
	return v, nil
}

func (s sample) evaluate() (float64, error) {
	switch s.Kind {
	case "delta":
		return Delta(s.Epsilon, s.mechanism(s.Trials))
	case "eps":
		return Epsilon(s.Delta, s.mechanism(s.Trials))
	case "calibrate":
		p, err := smallestP(s.mechanism(s.Trials), Budget{Epsilon: s.Epsilon, Delta: s.Delta})
		return float64(s.Trials) * p * (1 - p), err
	case "midbatch":
		return s.midbatch()
	case "topup":
		users, err := sumUsers(s.Honest, s.DummyUsers)
		if err != nil {
			return 0, err
		}
		return s.epsilonOf(users)
	case "gauss":
		mu, err := GaussianMu(Budget{Epsilon: s.Epsilon, Delta: s.Delta})
		if err != nil {
			return 0, err
		}
		return 1 / mu * (1 + 1e-15), nil
	case "local":
		g, err := Release{
			Trust: Local, Users: 1, Dim: s.Dim, Levels: s.Levels, Trials: s.UserTrials, P: 0.5, HonestFraction: One,
			Rounds: max(s.Rounds, 1), Units: s.Units,
		}.Epsilon(s.Delta)
		return g.Epsilon, err
	case "plan":
		p, err := s.plan()
		return p.TotalStd(), err
	}
	return 0, fmt.Errorf("kind %q: want delta, eps, calibrate, midbatch, topup, gauss, plan or local", clip(s.Kind))
}

// plan returns the plan for a row of kind plan, with a free coin.
func (s sample) plan() (Plan, error) {
	gamma := One
	if s.HonestFraction != nil {
		gamma = *s.HonestFraction
	}
	return Calibrate(Request{
		Users: s.Users, Dim: s.Dim, Epsilon: s.Epsilon, Delta: s.Delta, HonestFraction: gamma,
		Rounds: s.Rounds, MSESlack: s.MSESlack, Coin: coinAny,
	})
}

// midbatch returns the worse of a target before and one after the look (docs/proofs/theorem-a.md, section 5).
func (s sample) midbatch() (float64, error) {
	if s.HonestUntil == 0 && s.HonestAfter == 0 {
		return 0, fmt.Errorf("honest users 0 before and after the intrusion: want at least one")
	}
	worst := 0.0
	for _, side := range [][2]uint64{{s.PreloadUsers, s.HonestUntil}, {s.PostloadUsers, s.HonestAfter}} {
		if side[1] == 0 {
			continue // nobody to protect on this side
		}
		users, err := sumUsers(side[0], side[1])
		if err != nil {
			return 0, err
		}
		eps, err := s.epsilonOf(users)
		if err != nil {
			return 0, err
		}
		worst = math.Max(worst, eps)
	}
	return worst, nil
}

func (s sample) epsilonOf(users uint64) (float64, error) {
	if users >= MaxTrials || s.UserTrials >= MaxTrials {
		return 0, fmt.Errorf("users %d x b %d: want below %d trials", users, s.UserTrials, MaxTrials)
	}
	return Epsilon(s.Delta, s.mechanism(users*s.UserTrials))
}

func sumUsers(x, y uint64) (uint64, error) {
	if x >= MaxTrials || y >= MaxTrials {
		return 0, fmt.Errorf("users %d and %d: want below %d", x, y, MaxTrials)
	}
	return x + y, nil
}

func (s sample) mechanism(trials uint64) Mechanism {
	return Mechanism{Trials: trials, P: s.P, Levels: s.Levels, Dim: s.Dim, Rounds: max(s.Rounds, 1)}
}
