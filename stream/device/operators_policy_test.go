package device_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// TestNobodyVouchesForOperators: a device takes no part in a task of two operators unless its policy pins both, or the
// task's hash.
func TestNobodyVouchesForOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 4, trust: accounting.Split})
		w.announce(t.Context(), 1)
		hash := w.hash
		stage, helper, learner := consent.Fingerprint(w.stage.Public()), consent.Fingerprint(w.helper.Public()),
			consent.Fingerprint(w.learner.Public())
		for name, c := range map[string]struct {
			policy  consent.Policy
			spec    bool
			refused string
		}{
			"nobody":              {refused: "pin of both operators"},
			"the leader":          {policy: consent.Policy{StageKey: stage}, refused: "pin of both operators"},
			"the helper":          {policy: consent.Policy{HelperKey: helper}, refused: "pin of both operators"},
			"learner and leader":  {policy: consent.Policy{LearnerKey: learner, StageKey: stage}, refused: "pin of both operators"},
			"another helper":      {policy: consent.Policy{StageKey: stage, HelperKey: learner}, refused: "helper_key"},
			"the leader as both":  {policy: consent.Policy{StageKey: stage, HelperKey: stage}, refused: "helper_key"},
			"another leader":      {policy: consent.Policy{StageKey: learner, HelperKey: helper}, refused: "stage_key"},
			"both":                {policy: consent.Policy{StageKey: stage, HelperKey: helper}},
			"the hash":            {policy: consent.Policy{TaskHash: hash[:]}},
			"one of some hashes":  {policy: consent.Policy{TaskHashes: []consent.Fingerprint{hash[:]}}},
			"a task file at hand": {spec: true},
			"a task file, and a policy that pins another": {spec: true, policy: consent.Policy{HelperKey: learner}, refused: "helper_key"},
		} {
			c2 := w.config(participation.NewMemoryStore())
			if c2.Policy = c.policy; c.spec {
				c2.Spec = w.spec
			}
			dev := w.client(c2)
			device.Begin(dev)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			_, err := dev.Agreement(ctx)
			stop()
			var refused *consent.RefusedError
			if got := errors.As(err, &refused); got != (c.refused != "") || got && refused.Field != c.refused {
				t.Errorf("%s: %v, want a refusal of %q", name, err, c.refused)
			}
			_ = dev.Close()
		}
	})
}

// TestPinOfTheStoreIsNotEnough: a store that pinned a task at first use vouches for no operator, also where the task
// itself was joined before.
func TestPinOfTheStoreIsNotEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 1, cohort: 4, trust: accounting.Split})
		w.announce(t.Context(), 1)
		store := participation.NewMemoryStore()
		must(t, store.Write(participation.Change{Pin: &participation.Pin{Task: w.hash, Source: "users.libsvm"}}))
		c := w.config(store)
		pinned := c.Policy
		for _, c.Policy = range []consent.Policy{{}, {LearnerKey: consent.Fingerprint(w.learner.Public()), StageKey: pinned.StageKey},
			pinned} {
			dev := w.client(c)
			device.Begin(dev)
			_, err := dev.Agreement(t.Context())
			var refused *consent.RefusedError
			if both := len(c.Policy.HelperKey) > 0; errors.As(err, &refused) == both {
				t.Errorf("helper pinned %t: %v", both, err)
			}
			_ = dev.Close()
		}
	})
}

// TestCostOfTwoOperators: the device computes itself what a task of two operators costs, against a corrupt operator who
// sees every round and every participation over one floor. What the plan says of it is not asked.
func TestCostOfTwoOperators(t *testing.T) {
	w := newWorld(t, plan{rounds: 2, cohort: 20, trust: accounting.Split, tight: true})
	policy := consent.Policy{TaskHash: w.hash[:], MaxEpsilon: accounting.MaxEpsilon}
	agreed, err := policy.CheckTask(w.task, w.hash)
	must(t, err)
	r := accounting.Release{Trust: accounting.Split, Users: 20, Dim: w.params.Dim, Levels: int(w.params.Levels), P: .5,
		FloorTrials: w.params.FloorTrials, HonestFraction: accounting.One, Rounds: 1}
	for times := uint32(1); times <= 3; times++ {
		of := r
		of.Rounds = int(times)
		both, err := of.Epsilon(agreed.Delta)
		must(t, err)
		if got, operator, learner := agreed.Epsilon(times), both.Operator, both.Learner; got < operator*(1-1e-6) ||
			got > operator*(1+1e-6) || operator <= learner*1.2 {
			t.Errorf("%d participations cost %v, want a corrupt operator's %v, the learner's is %v", times, got, operator, learner)
		}
	}
	if of := agreed.Attempts(); of.Most != 8 || !of.Alike {
		t.Errorf("attempts %+v: want 8 that cost nothing more", of)
	}
	for trust, most := range map[accounting.Trust]uint32{accounting.Shuffle: math.MaxUint32, accounting.Pan: 1,
		accounting.ShufflePan: 1} {
		w := newWorld(t, plan{rounds: 2, cohort: 20, trust: trust})
		agreed, err := consent.Policy{AllowPlaintext: true, MaxEpsilon: accounting.MaxEpsilon}.CheckTask(w.task, w.hash)
		must(t, err)
		if of := agreed.Attempts(); of.Most != most || of.Alike {
			t.Errorf("%v: attempts %+v, want %d", trust, of, most)
		}
	}
}
