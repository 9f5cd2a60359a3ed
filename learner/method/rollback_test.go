package method_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/learner/method"
)

// TestBankRollsBack: the bank asks at the earlier model at once, with its smallest cohort, counts its steps on, follows
// again, and its state depends on that model and the counts alone, and survives being written.
func TestBankRollsBack(t *testing.T) {
	optimum, earlier := []float64{0.3, -0.5, 0.2, 0.1, 0}, []float64{0.25, -0.4, 0.1, 0, 0.1}
	var states [2][]byte
	for i := range states {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		b := bankOf(t, len(optimum))
		for range 9 {
			follow(t, b, optimum, 1, 10, r)
		}
		for range 2 { // a second time changes nothing
			if err := b.RollBack(earlier); err != nil {
				t.Fatal(err)
			}
		}
		q := b.Query()
		if q.Step != 10 || q.Cohort != 250 || away(q.Point, earlier) > 1e-12 || b.Tracking() != nil {
			t.Fatalf("%+v", q)
		}
		var err error
		if states[i], err = b.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
		again := bankOf(t, len(optimum))
		if err := again.UnmarshalBinary(states[i]); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			follow(t, again, optimum, 1, 10, r)
		}
		if got := away(again.Query().Point, optimum); got > 0.15 {
			t.Errorf("40 rounds later it is %v away", got)
		}
	}
	for _, data := range states {
		clear(data[54+8*5 : 54+8*6]) // users so far, behind the header
	}
	if !bytes.Equal(states[0], states[1]) {
		t.Error("the state depends on more than the model and the counts")
	}
	b := bankOf(t, 5)
	if err := b.RollBack(earlier[:4]); err == nil {
		t.Error("a model of another length is taken")
	}
	if err := new(method.Practical).RollBack(earlier); !errors.Is(err, method.ErrNoRollback) {
		t.Errorf("a method before its first look: %v", err)
	}
}
