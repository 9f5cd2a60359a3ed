package stage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestPoolCountsAsOneWorkerDoes: whatever comes, in bundles or not, several workers open exactly the messages that one
// opens, tell the same reasons in the same order, and leave the same totals, ids, cutoff and backlog.
func TestPoolCountsAsOneWorkerDoes(t *testing.T) {
	for seed := range longtest.Seeds(t, uint64(30)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, plan{cohort: uint64(4 + rng.IntN(40)), bundle: uint32(1 + rng.IntN(4)),
			suite: wire.Suite_SUITE_X25519})
		one, in := w.attempt(1)
		mixer, err := shuffle.NewMixer(one.round.mixer)
		if err != nil {
			t.Fatal(err)
		}
		other := *one.environment
		several := &attempt{environment: &other, round: one.round, number: one.number, mixer: mixer,
			opener: one.opener}
		var told [2][]Reason
		attempts := [2]*attempt{one, several}
		for i, a := range attempts {
			a.Workers = []int{1, 2 + rng.IntN(7)}[i]
			a.Observer.Report = func(r Reason) { told[i] = append(told[i], r) }
		}
		reports := w.mixture(in, rng, 80)
		counted := [2]int{}
		for i, a := range attempts {
			all := make([]stream.Delivery, len(reports))
			for j, m := range reports {
				all[j].Message = stream.Message{Subject: m.Subject, Sequence: m.Sequence, Data: slices.Clone(m.Data)}
			}
			for len(all) > 0 { // in pieces, as fetches bring them
				piece := all[:1+rand.New(rand.NewPCG(seed, uint64(len(all)))).IntN(len(all))]
				n := a.examineAll(piece)
				counted[i] += n
				if all = all[len(piece):]; n < len(piece) && !a.mixer.Full() {
					t.Fatalf("seed %d: %d of %d messages were examined, and the cohort is not full", seed, n, len(piece))
				}
			}
		}
		got := func(a *attempt) string {
			return fmt.Sprint(a.mixer.Users(), a.counts, a.cutoff, a.backlog.users, a.backlog.late)
		}
		if counted[0] != counted[1] || !slices.Equal(told[0], told[1]) || got(one) != got(several) {
			t.Fatalf("seed %d: %d workers counted %d messages %v: %s\none counted %d %v: %s", seed, several.Workers, counted[1],
				told[1], got(several),
				counted[0], told[0], got(one))
		}
		opened := uint64(0) // the highest sequence, of what was counted or not
		for _, m := range reports[:counted[0]] {
			if m.Subject == w.name.Report(in.round, in.attempt) {
				opened = max(opened, m.Sequence)
			}
		}
		if one.cutoff != opened {
			t.Errorf("seed %d: cutoff %d, and sequence %d was opened", seed, one.cutoff, opened)
		}
		if several.mixer.Full() && counted[1] != len(told[1]) {
			t.Errorf("seed %d: %d examined, %d told", seed, counted[1], len(told[1]))
		}
	}
}

// mixture returns reports of single users and bundles, mixed with invalid ones: duplicates, garbage, other rounds'
// reports.
func (w *world) mixture(in *invitation, rng *rand.Rand, n int) (all []*stream.Message) {
	var sent [][]byte
	for i := range n {
		var ids [][16]byte
		var users []uint64
		for range 1 + rng.IntN(w.bundle) {
			ids = append(ids, randomID())
			users = append(users, uint64(rng.IntN(w.params.Dim)))
		}
		data := w.seal(in, ids, w.plaintext(users...))
		m := w.message(in, uint64(i+1), data)
		switch rng.IntN(8) {
		case 0:
			data[rng.IntN(len(data))] ^= 1
		case 1:
			m.Subject = w.name.Report(in.round+1, in.attempt)
		case 2:
			if len(sent) > 0 {
				m.Data = sent[rng.IntN(len(sent))]
			}
		}
		sent = append(sent, data)
		all = append(all, m)
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// TestPoolLeavesNoPlaintext: when the pool is done, the bytes of every report that it opened are overwritten, whether
// it was counted or not. Without encryption the opened report is the message.
func TestPoolLeavesNoPlaintext(t *testing.T) {
	w := newWorld(t, plan{cohort: 40, bundle: 2, suite: wire.Suite_SUITE_NONE})
	a, in := w.attempt(1)
	a.Workers = 4
	const n = 30
	all := make([]stream.Delivery, n)
	var want []byte
	for i := range all {
		id := randomID()
		want = w.plaintext(uint64(i))
		all[i].Message = *w.message(in, uint64(i+1), w.seal(in, [][16]byte{id}, want))
	}
	all[n-1].Data = slices.Clone(all[0].Data) // a duplicate
	if got := a.examineAll(all); got != n {
		t.Fatalf("%d messages were examined, want %d", got, n)
	}
	if a.mixer.Users() != n-1 {
		t.Fatalf("%d users, want %d", a.mixer.Users(), n-1)
	}
	for i, d := range all {
		var r wire.Report
		if err := stream.Unmarshal(d.Data, &r); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(r.Ciphertext, func(b byte) bool { return b != 0 }) {
			t.Errorf("message %d still holds counts", i)
		}
	}
}
