package split

import (
	"slices"
	"testing"

	"github.com/cloudflare/circl/vdaf/prio3/arith/fp128"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
)

// elements returns the numbers of an encoded vector of the field.
func elements(t testing.TB, b []byte) fp128.Vec {
	t.Helper()
	v := make(fp128.Vec, len(b)/elementBytes)
	if err := v.UnmarshalBinary(b[:len(v)*elementBytes]); err != nil {
		t.Fatal(err)
	}
	return v
}

// Theorem S, step 5: for every valid report the two verifier shares add up to (0, w, G(w)), w uniform whatever the
// counts are. So an honest party's verifier share is the other's subtracted from something that anybody can draw.
func TestTheoremS_VerifierIsDrawn(t *testing.T) {
	longtest.Sequential(t)
	const n = 2000
	cfg := config(4, 3, 4)
	uniform := slices.Repeat([]float64{1.0 / 256}, 256)
	for what, counts := range map[string][]uint32{"all zero": {0, 0, 0, 0}, "all g": {7, 7, 7, 7}} {
		w := newWorld(t, cfg, 11)
		tops, shared := make([]uint64, 256), make([]uint64, 256)
		for range n {
			u, s := w.shard(counts)
			var sum fp128.Vec
			for role, share := range [][]byte{s.Leader, s.Helper} {
				_, prep, ok := w.workers[role].begin(u, share)
				if !ok {
					t.Fatal("an honest report is refused")
				}
				b, err := prep.MarshalBinary()
				w.must(err)
				if v := elements(t, b[:len(b)-seedBytes]); sum == nil {
					sum = v
				} else {
					sum.AddAssign(v)
				}
			}
			wires := sum[1 : len(sum)-1]
			var gadget fp128.Fp
			for i := 0; i < len(wires); i += 2 {
				var product fp128.Fp
				product.Mul(&wires[i], &wires[i+1])
				gadget.AddAssign(&product)
			}
			if !sum[0].IsZero() || !gadget.IsEqual(&sum[len(sum)-1]) {
				t.Fatal("the verifier is not (0, w, G(w))")
			}
			for i := range wires {
				b, err := wires[i].MarshalBinary()
				w.must(err)
				tops[b[elementBytes-1]]++
			}
			for i := elementBytes - 1; i < len(s.Leader)-seedBytes; i += elementBytes {
				shared[s.Leader[i]]++
			}
		}
		dptest.ChiSquare(t, "wires, counts "+what, tops, uniform, dptest.Alpha)
		dptest.ChiSquare(t, "leader's share, counts "+what, shared, uniform, dptest.Alpha)
	}
}

// Theorem S, step 5: a corrupt leader that shifts its measurement share, or any element of its verifier share, is
// refused whether the bit it shifts is 0 or 1: the verdict reveals nothing of the counts.
func TestTheoremS_VerdictTellsNothing(t *testing.T) {
	cfg := config(4, 3, 400)
	w := newWorld(t, cfg, 12)
	shifts := 0
	for _, counts := range [][]uint32{{0, 0, 0, 0}, {7, 7, 7, 7}} {
		u, s := w.shard(counts)
		_, prep, ok := w.workers[leader].begin(u, s.Leader)
		if !ok {
			t.Fatal("an honest report is refused")
		}
		honest, err := prep.MarshalBinary()
		w.must(err)
		// The corrupt leader's measurement share: bit 0 of count 0 moved by 1. Its own half of the public share is whatever
		// it says, as it makes its prep share itself.
		moved := Shares{Leader: slices.Clone(s.Leader)}
		element(moved.Leader, 0, 1)
		own := u
		w.rejoin(&own, moved)
		_, prep, ok = w.workers[leader].begin(own, moved.Leader)
		if !ok {
			t.Fatal("the leader cannot prepare its own lie")
		}
		lie, err := prep.MarshalBinary()
		w.must(err)
		copy(lie[len(lie)-seedBytes:], honest[len(honest)-seedBytes:]) // the half that the device published
		u.Prep = lie
		if r := w.workers[helper].prepare(u, slices.Clone(s.Helper)); r.outcome != BadProof {
			t.Errorf("counts %v with a bit moved: %v", counts, r.outcome)
		}
		for i := range (len(honest) - seedBytes) / elementBytes {
			u.Prep = slices.Clone(honest)
			element(u.Prep, i, 1)
			if r := w.workers[helper].prepare(u, slices.Clone(s.Helper)); r.outcome != BadProof {
				t.Errorf("counts %v, element %d of the verifier share moved: %v", counts, i, r.outcome)
			}
			shifts++
		}
		u.Prep = honest
		if r := w.workers[helper].prepare(u, slices.Clone(s.Helper)); r.outcome != Accepted {
			t.Errorf("counts %v, nothing moved: %v", counts, r.outcome)
		}
	}
	if shifts < 20 {
		t.Errorf("%d shifts", shifts)
	}
}

// Theorem S, step 6: from the release a corrupt helper takes its own floor and all other counts, and has the target's
// counts plus the leader's floor; a corrupt leader has them plus the helper's. Each floor is Bin(N_f, 1/2) in each
// coordinate, independent over coordinates, parties and ends of attempts.
func TestTheoremS_FloorLaw(t *testing.T) {
	const trials, ends = 20, 4000
	cfg := config(2, 1, 4)
	cfg.Params.FloorTrials = trials
	source := dptest.Source(t, 13)
	law := dptest.BinomialProbabilities(trials, 0.5)
	double := dptest.BinomialProbabilities(2*trials, 0.5)
	var alone [2][2][]uint64 // by party and coordinate
	var sums [4][]uint64     // of two floors that must be independent
	for i := range alone {
		for j := range alone[i] {
			alone[i][j] = make([]uint64, trials+1)
		}
	}
	for i := range sums {
		sums[i] = make([]uint64, 2*trials+1)
	}
	var before [2][]uint64
	for end := range ends {
		var e [2]Entropy
		for i := range e {
			for j := range e[i].Fresh {
				e[i].Fresh[j] = byte(source.Uint64())
			}
		}
		f := Finish{X: cfg.X, Requests: uint64(end)}
		floors := floorsOf(t, cfg, f, e)
		for i := range floors {
			for j, v := range floors[i] {
				alone[i][j][v]++
			}
		}
		sums[0][floors[0][0]+floors[0][1]]++ // coordinates
		sums[1][floors[0][0]+floors[1][0]]++ // parties
		if end > 0 {
			sums[2][floors[0][0]+before[0][0]]++ // ends
		}
		// A copy of the machine that draws the same bytes again for another end.
		f.Chain[0]++
		sums[3][floors[0][0]+floorsOf(t, cfg, f, e)[0][0]]++
		before = floors
	}
	for i := range alone {
		for j := range alone[i] {
			dptest.ChiSquare(t, "a floor", alone[i][j], law, dptest.Alpha)
		}
	}
	for i, what := range []string{"two coordinates", "two parties", "two ends", "one draw for two ends"} {
		dptest.ChiSquare(t, what, sums[i], double, dptest.Alpha)
	}
}
