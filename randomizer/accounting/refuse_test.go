package accounting

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestRefuses: every boundary names the field and what it wants.
func TestRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := Mechanism{Trials: 1000, P: 0.5, Levels: 3, Dim: 2, Rounds: 1}
	for _, c := range []struct {
		field  string
		change func(*Mechanism)
	}{
		{"trials 0", func(m *Mechanism) { m.Trials = 0 }},
		{"trials 536870912", func(m *Mechanism) { m.Trials = 1 << 29 }},
		{"p 0.3", func(m *Mechanism) { m.P = 0.3 }},
		{"p 0:", func(m *Mechanism) { m.P = 0 }},
		{"p 1:", func(m *Mechanism) { m.P = 1 }},
		{"p -0.5", func(m *Mechanism) { m.P = -0.5 }},
		{"p NaN", func(m *Mechanism) { m.P = nan }},
		{"p +Inf", func(m *Mechanism) { m.P = inf }},
		{"levels g 0", func(m *Mechanism) { m.Levels = 0 }},
		{"dimension d -1", func(m *Mechanism) { m.Dim = -1 }},
		{"rounds 0", func(m *Mechanism) { m.Rounds = 0 }},
		{"rounds 2147483648", func(m *Mechanism) { m.Rounds = 1 << 31 }},
		{"shift -1", func(m *Mechanism) { m.Shift = -1 }},
		{"shift NaN", func(m *Mechanism) { m.Shift = nan }},
		{"shift +Inf", func(m *Mechanism) { m.Shift = inf }},
	} {
		m := good
		c.change(&m)
		for _, err := range []error{m.validate(), second(m.Delta(1)), second(m.Epsilon(1e-6))} {
			if err == nil || !strings.Contains(err.Error(), c.field) {
				t.Errorf("%+v: error %v, want one that names %q", m, err, c.field)
			}
		}
	}
	for _, eps := range []float64{-1, nan, inf} {
		if _, err := good.Delta(eps); err == nil {
			t.Errorf("Delta(%v) is not refused", eps)
		}
		if _, err := GaussianMu(Budget{Epsilon: eps, Delta: 1e-6}); err == nil {
			t.Errorf("GaussianMu(%v) is not refused", eps)
		}
	}
	for _, v := range []float64{0, -1, nan, inf} {
		if _, err := good.Epsilon(v); err == nil {
			t.Errorf("Epsilon(%v) is not refused", v)
		}
		if _, err := GaussianMu(Budget{Epsilon: 1, Delta: v}); err == nil {
			t.Errorf("GaussianMu at delta %v is not refused", v)
		}
	}
	if _, err := Delta(1); err == nil {
		t.Error("Delta of no mechanism is not refused")
	}
}

func second[T any](_ T, err error) error { return err }

func TestReleaseRefuses(t *testing.T) {
	good := Release{Trust: ShufflePan, Users: 100, Dim: 2, Levels: 3, Trials: 4, P: 0.5, FloorTrials: 400,
		HonestFraction: One, Rounds: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field  string
		change func(*Release)
	}{
		{"trust 7", func(r *Release) { r.Trust = 7 }},
		{"users 0", func(r *Release) { r.Users = 0 }},
		{"users 1099511627776", func(r *Release) { r.Users = 1 << 40 }},
		{"levels", func(r *Release) { r.Levels = 0 }},
		{"dimension", func(r *Release) { r.Dim = 0 }},
		{"rounds", func(r *Release) { r.Rounds = 0 }},
		{"p 2", func(r *Release) { r.P = 2 }},
		{"honest fraction 0", func(r *Release) { r.HonestFraction = Fraction{} }},
		{"below one user", func(r *Release) { r.HonestFraction = Fraction{1, 1000} }},
		{"trials per user 4", func(r *Release) { r.Trust = Pan }},
		{"floor trials 400", func(r *Release) { r.Trust = Shuffle }},
		{"floor trials 0", func(r *Release) { r.FloorTrials = 0 }},
		{"trials per user 0", func(r *Release) { r.Trials = 0 }},
		{"trials per user 4", func(r *Release) { r.Trust = Split }},
		{"one less than a power of two", func(r *Release) { r.Trust, r.Trials, r.Levels = Split, 0, 4 }},
		{"p 0.25", func(r *Release) { r.Trust, r.Trials, r.P = Split, 0, 0.25 }},
		{"floor trials 0", func(r *Release) { r.Trust, r.Trials, r.FloorTrials = Split, 0, 0 }},
		{"totals below 2^60", func(r *Release) { r.Trials = 1 << 59 }},
		{"below 2^60", func(r *Release) { r.FloorTrials = math.MaxUint64 }},
	} {
		r := good
		c.change(&r)
		for _, err := range []error{r.Validate(), second(r.Epsilon(1e-6)), second(r.Delta(1))} {
			if err == nil || !strings.Contains(err.Error(), c.field) {
				t.Errorf("error %v, want one that names %q", err, c.field)
			}
		}
	}
}

func TestRequestRefuses(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*Request)
	}{
		{"users 0", func(q *Request) { q.Users = 0 }},
		{"dimension", func(q *Request) { q.Dim = 0 }},
		{"rounds", func(q *Request) { q.Rounds = -1 }},
		{"epsilon 0", func(q *Request) { q.Epsilon = 0 }},
		{"epsilon NaN", func(q *Request) { q.Epsilon = math.NaN() }},
		{"epsilon 61", func(q *Request) { q.Epsilon = 61 }},
		{"delta 1", func(q *Request) { q.Delta = 1 }},
		{"trust", func(q *Request) { q.Trust = -1 }},
		{"coin", func(q *Request) { q.Coin = 9 }},
		{"profile", func(q *Request) { q.Profile = 9 }},
		{"honest fraction", func(q *Request) { q.HonestFraction = Fraction{} }},
		{"bits per coordinate", func(q *Request) { q.MaxBits = 1 }},
		{"bits per coordinate", func(q *Request) { q.MaxBits = -1 }},
		{"slack", func(q *Request) { q.MSESlack = math.Inf(1) }},
		{"no plan", func(q *Request) { q.Users, q.Epsilon = 1<<39, 1e-9 }},
		{"delta 1e-31", func(q *Request) { q.Delta = 1e-31 }},
	} {
		q := request(1000, 10, 1)
		c.change(&q)
		if p, err := Calibrate(q); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("error %v, want one that names %q (%+v)", err, c.field, p)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"shuffle", "pan", "shuffle+pan"} {
		v, err := ParseTrust(name)
		if err != nil || v.String() != name {
			t.Errorf("trust %q: %v %v", name, v, err)
		}
	}
	for _, name := range []string{"fair", "any"} {
		if v, err := ParseCoin(name); err != nil || v.String() != name {
			t.Errorf("coin %q: %v %v", name, v, err)
		}
	}
	for _, name := range []string{"numeric", "paper"} {
		if v, err := ParseConstants(name); err != nil || v.String() != name {
			t.Errorf("profile %q: %v %v", name, v, err)
		}
	}
	for _, err := range []error{second(ParseTrust("Pan")), second(ParseCoin("")),
		second(ParseConstants(strings.Repeat("x", 1000)))} {
		if err == nil || len(err.Error()) > 200 {
			t.Errorf("error %v", err)
		}
	}
	type all struct {
		T Trust
		P Constants
		F Fraction
	}
	in := all{ShufflePan, Paper, Fraction{9, 10}}
	data, err := json.Marshal(in)
	if err != nil || string(data) != `{"T":"shuffle+pan","P":"paper","F":0.9}` {
		t.Errorf("%s %v", data, err)
	}
	var out all
	if err := json.Unmarshal(data, &out); err != nil || out != in {
		t.Errorf("%+v %v", out, err)
	}
	if CoinPolicy(9).validate() == nil || coinAny.String() != "any" {
		t.Error("a coin policy that is none")
	}
	for _, bad := range []any{Trust(9), Constants(-1), Fraction{}} {
		if data, err := json.Marshal(bad); err == nil {
			t.Errorf("%T marshals as %s", bad, data)
		}
	}
}

func TestGuaranteeJSON(t *testing.T) {
	for want, g := range map[string]Guarantee{
		`{"epsilon":1,"epsilon_learner":1,"epsilon_intruder":null}`: {Epsilon: 1, Learner: 1},
		`{"epsilon":2,"epsilon_learner":1,"epsilon_intruder":2}`: {Epsilon: 2, Learner: 1, Intruder: 2,
			HasIntruder: true},
		`{"epsilon":null,"epsilon_learner":1,"epsilon_intruder":null}`: {Epsilon: math.Inf(1), Learner: 1,
			Intruder: math.Inf(1), HasIntruder: true},
		`{"epsilon":2,"epsilon_learner":1,"epsilon_intruder":null,"epsilon_operator":2}`: {Epsilon: 2, Learner: 1,
			Operator: 2, HasOperator: true},
		`{"epsilon":null,"epsilon_learner":null,"epsilon_intruder":null}`: {Epsilon: math.Inf(1), Learner: math.Inf(1)},
	} {
		if data, err := json.Marshal(g); err != nil || string(data) != want {
			t.Errorf("%s (%v), want %s", data, err, want)
		}
	}
}
