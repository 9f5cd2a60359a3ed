package device_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A spy is a Store that remembers what every event was charged with, and can die.
type spy struct {
	participation.Store
	t testing.TB

	mu     sync.Mutex
	draws  map[participation.Key]map[stream.Round]participation.Draw // by round
	owner  map[[16]byte]participation.Key                            // of report ids
	noted  map[[16]byte]map[stream.Attempt]bool                      // attempts that were durable, of report ids
	writes int
	rounds map[[16]byte]stream.Round // of report ids
	failAt int                       // the write that fails, from 1; 0 for none
	lost   bool                      // the failing write is not made; otherwise it is made, and not acknowledged
}

func newSpy(t testing.TB, s participation.Store) *spy {
	return &spy{Store: s, t: t, draws: map[participation.Key]map[stream.Round]participation.Draw{},
		owner: map[[16]byte]participation.Key{}, rounds: map[[16]byte]stream.Round{}, noted: map[[16]byte]map[stream.Attempt]bool{}}
}

// drawn returns how many events have a draw, while others may write.
func (s *spy) drawn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.draws)
}

// drawOf returns the value that identifies a draw: its report id, or the secret from which its ids follow.
func drawOf(d participation.Draw) string { return string(d.Report[:]) + string(d.Secret[:]) }

// idIn returns the report id of a draw in an attempt.
func idIn(d participation.Draw, a participation.Attempt) [16]byte {
	if !d.Shared() {
		return d.Report
	}
	return split.ID(d.Secret, a.Open, a.Join)
}

var errDied = errors.New("the store died")

// Write checks that no event is ever charged with two draws for a round, or with one draw for two rounds.
func (s *spy) Write(c participation.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	dies := s.failAt > 0 && s.writes >= s.failAt
	if dies && (s.lost || s.writes > s.failAt) {
		return errDied
	}
	if err := s.Store.Write(c); err != nil {
		return err
	}
	for _, p := range c.Events {
		if p.State != participation.Charged {
			continue
		}
		rounds := s.draws[p.Key]
		if rounds == nil {
			rounds = map[stream.Round]participation.Draw{}
			s.draws[p.Key] = rounds
		}
		old, again := rounds[p.Draw.Round]
		if again && (old.Report != p.Draw.Report || old.Secret != p.Draw.Secret || !bytes.Equal(old.Counts, p.Draw.Counts) ||
			old.Manifest != p.Draw.Manifest) {
			s.t.Errorf("two draws for one event in round %d", p.Draw.Round)
		}
		for r, d := range rounds {
			if r != p.Draw.Round && (drawOf(d) == drawOf(p.Draw) || d.Manifest == p.Draw.Manifest) {
				s.t.Errorf("one report id or manifest in rounds %d and %d", r, p.Draw.Round)
			}
		}
		d := p.Draw
		d.Counts = slices.Clone(d.Counts)
		rounds[d.Round] = d
		for _, send := range p.Sends {
			id := idIn(d, send.Attempt)
			if k, ok := s.owner[id]; ok && k != p.Key {
				s.t.Error("one report id for two events")
			}
			s.owner[id] = p.Key
			if s.noted[id] == nil {
				s.noted[id] = map[stream.Attempt]bool{}
			}
			s.noted[id][send.Attempt.Number] = true
			s.rounds[id] = d.Round
		}
	}
	if dies {
		return errDied
	}
	return nil
}

// audit checks everything that ever reached the broker against what the store was charged with, and every final state
// in the store against what the stage may have opened: the reports of a closed attempt up to its cutoff.
// others are the spies of the other gateways on the broker.
func (s *spy) audit(w *world, others ...*spy) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := map[participation.Key]map[stream.Round]bool{} // rounds in whose batch the event may be
	for _, m := range w.broker.Dump() {
		if m.Stream != stream.Reports {
			continue
		}
		a, err := stream.ParseSubject(m.Subject)
		must(s.t, err)
		var r wire.Report
		must(s.t, stream.Unmarshal(m.Data, &r))
		size := w.params.ReportBytes()
		if w.task.Suite == wire.Suite_SUITE_NONE && len(r.Ciphertext) != size*len(r.Ids) {
			s.t.Errorf("a report of %d bytes for %d users of %d bytes", len(r.Ciphertext), len(r.Ids), size)
		}
		for i, id := range r.Ids {
			key, ok := s.owner[[16]byte(id)]
			if !ok {
				if !slices.ContainsFunc(others, func(o *spy) bool { _, ok := o.owner[[16]byte(id)]; return ok }) {
					s.t.Error("a report was sent that nobody was charged with")
				}
				continue
			}
			if !s.noted[[16]byte(id)][a.Attempt] {
				s.t.Errorf("a report was sent to attempt %d, which the store never knew", a.Attempt)
			}
			d := s.draws[key][a.Round]
			if s.rounds[[16]byte(id)] != a.Round {
				s.t.Errorf("a report of another round was sent in round %d", a.Round)
			} else if w.task.Suite == wire.Suite_SUITE_NONE && !bytes.Equal(d.Counts, r.Ciphertext[i*size:(i+1)*size]) {
				s.t.Errorf("a retry in round %d sent other counts", a.Round)
			}
			if c := w.closed(a.Round, a.Attempt); c != nil && !c.Void && m.Sequence <= c.Cutoff {
				if opened[key] == nil {
					opened[key] = map[stream.Round]bool{}
				}
				opened[key][a.Round] = true
			}
		}
	}
	keys := make([]participation.Key, 0, len(s.draws))
	var pairs, same int // of draws of one event in two rounds
	for k, rounds := range s.draws {
		keys = append(keys, k)
		for r, d := range rounds {
			if next, ok := rounds[r+1]; ok {
				pairs++
				if bytes.Equal(d.Counts, next.Counts) {
					same++
				}
			}
		}
		s.auditRounds(w, opened[k], rounds)
	}
	// Two draws agree in one coordinate with probability at most 0.25, the probability of the mode of Bin(10, 1/2), so in
	// three with at most 1/64, and five pairs all do with less than 1e-9.
	if pairs >= 5 && same == pairs && w.helper == nil { // under trust split rounding alone is random

		s.t.Errorf("%d events sent the same counts in two rounds", same)
	}
	parts, err := s.Read(keys)
	must(s.t, err)
	for _, p := range parts {
		n := len(opened[p.Key])
		if p.State == participation.Uncounted && n > 0 {
			s.t.Errorf("an event that may be in a batch is %v", p.State)
		}
		if p.State == participation.Counted && n == 0 {
			s.t.Errorf("an event that is in no batch is %v", p.State)
		}
		if p.State != participation.Charged && len(p.Draw.Counts) > 0 {
			s.t.Errorf("the draw of an event that is %v is still stored", p.State)
		}
	}
}

// auditRounds checks that an event took part in one round, or in the rounds of one interactive phase, each step once:
// open are the rounds that may have counted it, drawn the rounds that it was charged with.
func (s *spy) auditRounds(w *world, open map[stream.Round]bool, drawn map[stream.Round]participation.Draw) {
	s.t.Helper()
	phases, draws, steps := map[int]int{}, map[int]int{}, map[uint64]bool{}
	for r := range drawn {
		at, m := w.place(r)
		draws[at.Stint.Index]++
		if at.Interactive() && (steps[m.Step] || draws[at.Stint.Index] > int(at.Stint.Rounds)) {
			s.t.Errorf("an event has %d draws in a stint of %d rounds, the last for step %d", draws[at.Stint.Index],
				at.Stint.Rounds, m.Step)
		}
		steps[m.Step] = true
	}
	for r := range open {
		at, _ := w.place(r)
		phases[at.Stint.Index]++
		if most := max(1, at.Stint.Rounds); phases[at.Stint.Index] > int(most) || len(phases) > 1 {
			s.t.Errorf("an event may be in batches of phases (by number of batches) %v", phases)
		}
	}
}

// place returns the place in the plan of the round that the broker shows, and its message.
func (w *world) place(r stream.Round) (manifest.Place, *wire.Round) {
	for _, m := range w.broker.Dump() {
		if m.Subject != w.name.Round(r) {
			continue
		}
		var signed wire.Signed
		must(w.t, stream.Unmarshal(m.Data, &signed))
		var round wire.Round
		must(w.t, stream.Unmarshal(signed.Body, &round))
		at, _ := manifest.PhaseOf(w.task.Plan, round.Step)
		return at, &round
	}
	w.t.Fatalf("round %d was never announced", r)
	return manifest.Place{}, nil
}

// closed returns the Close of an attempt, nil if there is none.
func (w *world) closed(r stream.Round, a stream.Attempt) *wire.Close {
	for _, m := range w.broker.Dump() {
		if m.Subject == w.name.Close(r, a) {
			var signed wire.Signed
			must(w.t, stream.Unmarshal(m.Data, &signed))
			var c wire.Close
			must(w.t, stream.Unmarshal(signed.Body, &c))
			return &c
		}
	}
	return nil
}

// answered counts the events that were charged with so many rounds.
func (s *spy) answered() map[int]int {
	out := map[int]int{}
	for _, rounds := range s.draws {
		out[len(rounds)]++
	}
	return out
}
