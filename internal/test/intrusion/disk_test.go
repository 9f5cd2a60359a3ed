package intrusion

import (
	"crypto/sha512"
	"fmt"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream/wire"
)

// small returns a run of a few rounds, the last of which is topped up.
func small(suite wire.Suite, seed uint64) plan {
	return plan{steps: 3, cohort: 24, minimum: 16, users: 66, suite: suite, copies: 6, seed: seed}
}

// large returns a plan with more of everything. Users have to suffice: the last round must reach its minimum
// though all before it were full.
func large(suite wire.Suite, seed uint64) plan {
	return plan{steps: 5, cohort: 32, minimum: 20, users: 152, suite: suite, copies: 24, seed: seed}
}

// TestStolenDisk: nothing that is on a disk, in a log or in metrics at any moment of a run says more than what was
// released, and after Close nothing that is left opens what was recorded.
func TestStolenDisk(t *testing.T) {
	plans := []plan{small(wire.Suite_SUITE_X25519, 1)}
	long := longtest.Run(t,
		"more and larger runs, the hybrid suite, and 32 bytes at every offset of the disk tried as a key")
	if long {
		for seed := range uint64(2) {
			plans = append(plans, large(wire.Suite_SUITE_X25519, 10+seed), large(wire.Suite_SUITE_MLKEM768_X25519, 20+seed))
		}
	}
	for _, p := range plans {
		t.Run(fmt.Sprintf("%v/%d", p.suite, p.seed), func(t *testing.T) {
			begun := time.Now()
			w := wholeLife(t, p, broken{})
			r := w.audit(t)
			w.tryIdentities(&r)
			if long && p.suite == wire.Suite_SUITE_X25519 {
				w.tryEverything(&r)
			}
			fmt.Printf("stolen disk, %v, seed %d: %v; %d possible keys tried; %v\n", p.suite, p.seed, r, len(w.search.tried),
				time.Since(begun).Round(time.Second))
			for _, v := range r.violations {
				t.Error(v)
			}
			if r.reports < int(p.steps*p.minimum) || r.states <= int(p.steps) || r.sealedSeen == 0 || r.batchesSeen == 0 {
				t.Errorf("the audit saw too little to mean anything: %v", r)
			}
		})
	}
}

// tryIdentities takes what outlives an attempt, the stage's identity and the learner's, for its key.
func (w *world) tryIdentities(r *report) {
	for _, file := range []string{"learner.key", "stage.key"} {
		seed := w.identitySeed(file)
		expanded := sha512.Sum512(seed) // its first half is the scalar that signs
		for _, a := range w.attempts {
			for _, candidate := range [][]byte{seed, expanded[:keySize], expanded[keySize:]} {
				if w.search.try(candidate) == string(a.public) {
					r.violate("the identity %s opens round %d, attempt %d", file, a.round, a.number)
				}
			}
		}
	}
}

// tryEverything takes 32 bytes at every offset of what is left on the disk for a key.
func (w *world) tryEverything(r *report) {
	last := w.copies[len(w.copies)-1]
	for _, a := range w.attempts {
		for name, data := range last.files {
			if w.search.anywhere(data, a.public) != nil {
				r.violate("%s holds the key of round %d, attempt %d", name, a.round, a.number)
			}
		}
	}
}
