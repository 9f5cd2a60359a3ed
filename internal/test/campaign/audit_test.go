package campaign

import (
	"bytes"
	"context"
	"errors"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A record holds the records on the broker at the end, and those that were there before and were lost.
type record struct {
	rounds  map[uint64]*wire.Round
	opens   map[uint64][]*wire.Open
	claims  map[uint64]*wire.Claim
	closes  map[uint64][]*wire.Close
	batches map[uint64]*wire.Batch // the real one, where there was one
	torn    map[uint64]bool        // rounds that had different batches, one after the other
	end     *wire.End
}

func (w *world) record() record {
	r := record{map[uint64]*wire.Round{}, map[uint64][]*wire.Open{}, map[uint64]*wire.Claim{}, map[uint64][]*wire.Close{},
		map[uint64]*wire.Batch{}, map[uint64]bool{}, nil}
	for subject, versions := range w.stood() {
		at, err := stream.ParseSubject(subject)
		must(err)
		round := uint64(at.Round)
		for _, data := range versions {
			switch at.Verb {
			case "round":
				r.rounds[round] = body(data, &wire.Round{})
			case "open":
				r.opens[round] = append(r.opens[round], body(data, &wire.Open{}))
			case "claim":
				r.claims[round] = body(data, &wire.Claim{})
			case "close":
				r.closes[round] = append(r.closes[round], body(data, &wire.Close{}))
			case "batch":
				b, other := body(data, &wire.Batch{}), r.batches[round]
				if other != nil {
					r.torn[round] = true
				}
				if other == nil || !b.Void {
					r.batches[round] = b
				}
			case "end":
				r.end = body(data, &wire.End{})
			}
		}
	}
	return r
}

// stood returns, by subject, the records on the broker and every record that was seen on a subject before one there was
// lost or removed.
func (w *world) stood() map[string][][]byte {
	all := map[string][][]byte{}
	for _, m := range w.broker.Dump() {
		all[m.Subject] = [][]byte{m.Data}
	}
	for subject, versions := range w.book.all() {
		if w.isGone(subject) || w.isSwept(subject) {
			all[subject] = versions
		}
	}
	return all
}

// openRound returns the announced round that has no outcome, 0 for none.
func (w *world) openRound() uint64 {
	r := w.record()
	for n := range r.rounds {
		if r.batches[n] == nil {
			return n
		}
	}
	return 0
}

// audit checks what is left when all is over.
func (w *world) audit(out *result) {
	r := w.record()
	w.auditRounds(r, out)
	w.auditUsers(r, out)
	w.auditLedger(r)
	w.auditCrowd(r)
}

// auditRounds checks the records against each other.
func (w *world) auditRounds(r record, out *result) {
	for n, b := range r.batches {
		if b.Void {
			out.void++
		} else {
			out.real++
			if c := r.claims[n]; w.guarded(n) && (c == nil || c.Attempt != b.Attempt ||
				!bytes.Equal(c.ManifestHash, b.ManifestHash)) {
				w.violate("round %d: the batch of attempt %d is not the claimed one", n, b.Attempt)
			}
		}
		if r.rounds[n] == nil {
			w.violate("round %d: a batch, and nobody announced the round", n)
		}
		for _, c := range r.closes[n] {
			if !r.torn[n] && (c.Attempt != b.Attempt || c.Void != b.Void || c.Cutoff != b.Cutoff) {
				w.violate("round %d: Close of attempt %d, void %v, cutoff %d; batch of attempt %d, void %v, cutoff %d",
					n, c.Attempt, c.Void, c.Cutoff, b.Attempt, b.Void, b.Cutoff)
			}
		}
		if w.over(r, n) && len(r.closes[n]) != 1 && !w.isGone(name.Batch(stream.Round(n))) {
			w.violate("round %d: the task is over, and it has %d Close", n, len(r.closes[n]))
		}
	}
	for n := range r.closes {
		if r.batches[n] == nil {
			w.violate("round %d: a Close, and no batch", n)
		}
	}
	for n, opens := range r.opens {
		if r.end == nil || n <= r.end.LastRound { // a standby may not have received that a round was given up
			out.reopened += len(opens) - 1
		}
		if r.end != nil && n > r.last() && !w.remade() {
			w.violate("round %d was opened, after End at %d", n, r.end.LastRound)
		}
	}
	for n := range r.rounds {
		if r.end != nil && n > r.last() && !w.remade() { // else it ended where its older disk and the records led it
			w.violate("round %d was announced, after End at %d", n, r.end.LastRound)
		}
		if n > 1 && r.batches[n-1] == nil {
			w.violate("round %d was announced before round %d had its batch", n, n-1)
		}
	}
	if out.ended != (r.end != nil) && len(w.said) == 0 {
		w.violate("ended %v, and End stands: %v", out.ended, r.end != nil)
	}
	if len(r.torn) == 0 {
		w.auditSteps(r, out)
	}
}

// last returns the last round that may have been announced: one that was given up comes after the last of the
// task.
func (r record) last() uint64 {
	if r.end.Reason == service.ReasonGivenUp {
		return r.end.LastRound + 1
	}
	return r.end.LastRound
}

// over reports whether all processes know of the end of a round: a stage need not close a round that was given up.
func (w *world) over(r record, n uint64) bool {
	return r.end != nil && n <= r.end.LastRound && len(w.said) == 0
}

// auditSteps holds the rounds against the plan: each step of new users has one real batch, each of an interactive
// phase one round, real or void, because its users answer no more.
func (w *world) auditSteps(r record, out *result) {
	taken := map[uint64]bool{} // steps that are over
	for n := uint64(1); r.rounds[n] != nil; n++ {
		at, step := w.place(r.rounds[n]), r.rounds[n].Step
		if taken[step] || (step > 1 && !taken[step-1]) {
			w.violate("round %d asks for step %d: %d steps are over", n, step, len(taken))
		}
		if b := r.batches[n]; b != nil && (!b.Void || at.Interactive()) {
			taken[step] = true
			if b.Void {
				out.passed++
			}
		}
	}
	if want := w.Rounds + w.Together; r.end != nil && !w.Endless && (uint64(len(taken)) != want ||
		uint64(len(r.batches)) != r.end.LastRound) {
		w.violate("End at round %d after %d real and %d void batches: %d steps of %d", r.end.LastRound, out.real, out.void,
			len(taken), want)
	}
}

// auditLedger checks the chain, that each announced round is in it, and that the charge is no less than proved.
func (w *world) auditLedger(r record) {
	ctx := context.Background()
	if _, err := w.disk.Load(ctx); errors.Is(err, state.ErrEmpty) {
		if len(r.rounds) > 0 && !w.behind() {
			w.violate("rounds are announced, and the learner's disk is empty")
		}
		return
	}
	ledger, err := state.ReadLedger(w.disk.Ledger(ctx))
	if err != nil {
		w.violate("ledger: %v", err)
		return
	}
	spent := ledger.Spent()
	var charged []state.Entry
	for e := range state.Charged(w.disk.Ledger(ctx)) {
		charged = append(charged, e)
	}
	for n, round := range r.rounds {
		at := w.place(round)
		want := w.epsilon(at.Cohort, at.Stint.Rounds)
		if n > uint64(len(charged)) && (w.behind() || w.rewound.Load() && w.isGone(name.Round(stream.Round(n)))) {
			// no record shows it that round
			continue
		}
		if n > uint64(len(charged)) {
			w.violate("round %d is announced and not in the ledger", n)
			continue
		}
		if e := charged[n-1]; e.Round != n || e.Epsilon < want || e.Delta < delta || spent.Epsilon < want {
			w.violate("round %d: charged %v at %v, spent %v; the accountant says %v at %v", n, e.Epsilon, e.Delta, spent.Epsilon,
				want, delta)
		}
		if b := r.batches[n]; b != nil && !r.torn[n] && !(r.end != nil && n > r.end.LastRound) &&
			charged[n-1].Kind != state.Reserved && (charged[n-1].Kind == state.Void) != b.Void {
			w.violate("round %d: the ledger says %v, the batch void %v", n, charged[n-1].Kind, b.Void)
		}
	}
}

// behind reports whether the learner's disk is an older one and the learner has ended with that message: it
// does not know what it announced later.
func (w *world) behind() bool { return w.rewound.Load() && len(w.said) > 0 }
