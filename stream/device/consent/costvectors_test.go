package consent_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
)

// againVector asks whether an event may take part so many times in all in an accepted task.
type againVector struct {
	Name    string          `json:"name"`
	Task    hexed           `json:"task"`
	Policy  json.RawMessage `json:"policy,omitempty"`
	Times   uint32          `json:"times"`
	Refused string          `json:"refused,omitempty"`
	Epsilon float64         `json:"epsilon"` // of all of them together
}

func againVectors(t *testing.T) (out []againVector) {
	shuffle := marshal(t, provedTask(t, accounting.Shuffle))
	for _, c := range []againVector{
		{Name: "once", Task: shuffle, Times: 1},
		{Name: "twice at the price of one", Task: shuffle, Times: 2, Refused: "A1"},
		{Name: "twice", Task: shuffle, Policy: json.RawMessage(`{"max_epsilon": 7}`), Times: 2},
		{Name: "three times at the price of two", Task: shuffle, Policy: json.RawMessage(`{"max_epsilon": 7}`), Times: 3,
			Refused: "A1"},
		{Name: "under floors", Task: marshal(t, provedTask(t, accounting.ShufflePan)), Times: 2,
			Policy: json.RawMessage(`{"max_epsilon": 12}`)},
		{Name: "in whichever phase is the costliest", Task: marshal(t, practicalTask(t)), Times: 3,
			Policy: json.RawMessage(`{"max_epsilon": 30}`)},
		{Name: "three rounds each time", Task: marshal(t, interactiveTask(t)), Times: 2,
			Policy: json.RawMessage(`{"max_epsilon": 12}`)},
	} {
		task := taskVector{Name: c.Name, Policy: c.Policy, Task: c.Task}
		agreed, err := task.check()
		must(t, err)
		c.Epsilon = agreed.Epsilon(c.Times)
		refused := agreed.Again(c.Times)
		switch {
		case c.Refused != "":
			vectors.Refused(t, c.Name, c.Refused, refused)
		case refused != nil:
			t.Errorf("%s: %v", c.Name, refused)
		}
		out = append(out, c)
	}
	return out
}

// chargeVector is a charge of a ledger.
type chargeVector struct {
	Task     hexed   `json:"task_hash"`
	Epsilon  float64 `json:"epsilon"`
	Delta    float64 `json:"delta"`
	Standing uint64  `json:"standing"`
	Open     uint64  `json:"open"`
	Lost     bool    `json:"lost,omitempty"`
	At       int64   `json:"at_unix_ms"`
}

func (c chargeVector) charge() ledger.Charge {
	return ledger.Charge{Task: stream.Hash(c.Task), Name: "churn", Epsilon: c.Epsilon, Delta: c.Delta,
		Standing: c.Standing, Open: c.Open, Lost: c.Lost, At: time.UnixMilli(c.At)}
}

// totalVector asks whether an account has room for a charge.
type totalVector struct {
	Name    string          `json:"name"`
	Policy  json.RawMessage `json:"policy"`
	Now     int64           `json:"now_unix_ms"`
	Charges []chargeVector  `json:"charges"`
	Charge  chargeVector    `json:"charge"`
	Refused string          `json:"refused,omitempty"`
	Epsilon float64         `json:"epsilon"` // of all that counts, this charge among it
	Delta   float64         `json:"delta"`
}

func totalVectors(t *testing.T) (out []totalVector) {
	hash := func(b byte) hexed { return append(make([]byte, 31), b) }
	const now, hour = int64(1700000000000), int64(3600000)
	one := chargeVector{Task: hash(1), Epsilon: 1, Delta: 1e-6, Standing: 3, At: now - 2*hour}
	changed := func(change func(c *chargeVector)) chargeVector {
		c := one
		change(&c)
		return c
	}
	next := chargeVector{Task: hash(2), Epsilon: 1.5, Delta: 1e-6}
	three, hours := json.RawMessage(`{"max_total_epsilon": 2, "max_total_delta": 3e-6}`),
		json.RawMessage(`{"max_total_epsilon": 2, "period": "1h"}`)
	for _, c := range []totalVector{
		{Name: "the first task", Policy: three, Charge: next},
		{Name: "two tasks are too many", Policy: three, Charges: []chargeVector{one}, Charge: next, Refused: "A2"},
		{Name: "just as much as allowed", Policy: three, Charges: []chargeVector{one},
			Charge: chargeVector{Task: hash(2), Epsilon: 1, Delta: 1e-6}},
		{Name: "too much delta", Policy: json.RawMessage(`{"max_total_delta": 1e-6}`), Charges: []chargeVector{one},
			Charge: chargeVector{Task: hash(2), Epsilon: 1, Delta: 1e-7}, Refused: "A3"},
		{Name: "before the period", Policy: hours, Charges: []chargeVector{one}, Charge: next},
		{Name: "before the period, and open", Policy: hours, Refused: "A2", Charge: next,
			Charges: []chargeVector{changed(func(c *chargeVector) { c.Open = 1 })}},
		{Name: "before the period, and lost", Policy: hours, Refused: "A2", Charge: next,
			Charges: []chargeVector{changed(func(c *chargeVector) { c.Lost = true })}},
		{Name: "just within the period", Policy: hours, Refused: "A2", Charge: next,
			Charges: []chargeVector{changed(func(c *chargeVector) { c.At = now - hour })}},
		{Name: "nobody stands", Policy: three, Charge: next,
			Charges: []chargeVector{changed(func(c *chargeVector) { c.Standing = 0 })}},
		{Name: "the same task again, which has charged more", Policy: three, Refused: "A2",
			Charges: []chargeVector{changed(func(c *chargeVector) { c.Epsilon = 2.5 })},
			Charge:  chargeVector{Task: hash(1), Epsilon: 1, Delta: 1e-6}},
		{Name: "the same task again", Policy: three, Charges: []chargeVector{one},
			Charge: chargeVector{Task: hash(1), Epsilon: 1.9, Delta: 1e-6}},
	} {
		p, err := consent.ParsePolicy(c.Policy)
		must(t, err)
		c.Now = now
		charges := []ledger.Charge{}
		for _, o := range c.Charges {
			charges = append(charges, o.charge())
		}
		if c.Charges == nil {
			c.Charges = []chargeVector{}
		}
		own := c.Charge.charge()
		if err := p.AffordTotal(charges, own, time.UnixMilli(now)); c.Refused != "" {
			vectors.Refused(t, c.Name, c.Refused, err)
		} else {
			must(t, err)
		}
		own.At = time.UnixMilli(now)
		c.Epsilon, c.Delta = ledger.Spent(ledger.Add(charges, own, 1, 1, math.MaxUint64), time.UnixMilli(now), p.Period)
		out = append(out, c)
	}
	return out
}
