package campaign

import (
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// epsilon returns the accountant's epsilon for n users and the number of rounds that each of them answers,
// computed without the service.
func (w *world) epsilon(n uint64, each uint32) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.params()
	r := accounting.Release{Trust: accounting.Shuffle, Users: n, Dim: p.Dim, Levels: int(p.Levels),
		Trials: uint64(p.Trials),
		P:      0.5, HonestFraction: accounting.One, Rounds: int(each), Units: p.Units}
	if w.Local {
		r.Trust, r.Users = accounting.Local, 1 // its own noise hides a report
	}
	if e, known := w.epsilons[r]; known {
		return e
	}
	g, err := r.Epsilon(delta)
	must(err)
	w.epsilons[r] = g.Epsilon
	return g.Epsilon
}

// policy returns the policy of all devices: the task's budget, or a limit that buys some participations.
func (w *world) policy() consent.Policy {
	p := consent.Policy{AllowPlaintext: true}
	if w.Afford > 0 {
		p.MaxEpsilon = min(accounting.MaxEpsilon, w.epsilon(w.Cohort, uint32(w.Afford)*max(1, uint32(w.Together)))*(1+1e-6))
	}
	return p
}

// limit returns the most that all may cost one user.
func (w *world) limit() float64 {
	if e := w.policy().MaxEpsilon; e > 0 {
		return e
	}
	return budget
}

// pays reports whether the policy lets an uncounted event take part once more.
func (w *world) pays(p participation.Record) bool {
	return !w.Local && p.Refunds < consent.DefaultMaxRefunds &&
		w.epsilon(w.Cohort, (p.Refunds+2)*max(1, uint32(w.Together))) <= w.limit()
}

// auditCost holds what the batches that hold one user cost together, as the accountant composes them, against what its
// device's ledger says and its policy allows. It holds whatever a broker answers.
func (w *world) auditCost(d *publisher, user int, r record, at []seat, own []ledger.Charge, out *result) {
	if len(at) == 0 {
		return
	}
	rounds, stints := map[uint64]bool{}, map[int]bool{}
	for _, s := range at {
		if rounds[s.round] {
			w.violate("user %d is twice in the batch of round %d", user, s.round)
		}
		rounds[s.round], stints[w.place(r.rounds[s.round]).Stint.Index] = true, true
	}
	cost := w.epsilon(w.Cohort, uint32(len(at))) * (1 - 1e-9)
	says, _ := ledger.Spent(own, time.Now(), 0)
	if cost > says {
		w.violate("user %d: %d batches that hold it cost %v, its device's ledger says %v", user, len(at), cost, says)
	}
	if cost > w.limit() {
		w.violate("user %d: %d batches that hold it cost %v, its policy allows %v", user, len(at), cost, w.limit())
	}
	if d.fooled[user] {
		out.fooled++
		if len(at) > 1 && (len(stints) > 1 || !w.place(r.rounds[at[0].round]).Interactive()) {
			out.twice++
		}
	}
}

// auditDraws holds what was ever drawn about a block under trust local, sent or not, against what the ledger says
// and the policy allows: a report that is sent is released.
func (w *world) auditDraws(d *publisher, user int, p participation.Record, own []ledger.Charge) {
	if !w.Local {
		return
	}
	draws := 0
	for _, t := range d.reports {
		if t.user == user {
			draws++
		}
	}
	if most := max(1, int(w.Together)); draws > most {
		w.violate("block %d is drawn %d times, in a stint of %d rounds", user, draws, most)
	}
	if draws == 0 {
		return
	}
	if p.State == participation.Uncounted || p.State == participation.Fresh {
		w.violate("block %d: drawn, and %v", user, p.State)
	}
	cost := w.epsilon(w.Cohort, uint32(draws)) * (1 - 1e-9)
	if says, _ := ledger.Spent(own, time.Now(), 0); cost > says || cost > w.limit() {
		w.violate("block %d: %d draws cost %v, its device's ledger says %v, its policy allows %v", user, draws, cost, says,
			w.limit())
	}
}

// charges returns the charges in a publisher's ledger for each of its users.
func (p *publisher) charges() map[int][]ledger.Charge {
	var everyone []ledger.Charge
	all := map[int][]ledger.Charge{}
	for a, err := range p.ledger.Accounts() {
		must(err)
		if a.Key == ledger.Everyone {
			everyone = a.Charges
			continue
		}
		row, known := p.drawn[a.Key]
		if !known {
			p.w.violate("%s has an account of nobody", p.name)
			continue
		}
		all[p.user(row)] = a.Charges
	}
	for i := range p.many {
		all[p.user(i)] = ledger.OfUser(all[p.user(i)], everyone)
	}
	return all
}

// accounts returns the ledger as a life has it.
func (p *publisher) accounts() ledger.Ledger {
	if p.w.broken.ledger != nil {
		return p.w.broken.ledger(p.ledger)
	}
	return p.ledger
}
