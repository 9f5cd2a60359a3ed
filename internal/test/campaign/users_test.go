package campaign

import (
	"context"
	"slices"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// A seat is a user's place in a released batch.
type seat struct{ round, attempt uint64 }

// seats reads out of every batch that was ever visible who is in it.
func (w *world) seats() map[int][]seat {
	all := map[int][]seat{}
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for subject, versions := range w.book.versions {
		if at, _ := stream.ParseSubject(subject); at.Verb != "batch" {
			continue
		}
		for _, data := range versions {
			b := body(data, &wire.Batch{})
			if b.Void {
				continue
			}
			var sum uint64
			least := uint64(w.params().Levels/2) * b.Users // the part of every user, whatever the row
			for i, total := range b.Totals {
				n := total - least
				if total < least || n > b.Users {
					w.violate("round %d: total %d of %d users", b.Round, total, b.Users)
					continue
				}
				if i%w.units() > 0 { // another row of the same block
					if total != b.Totals[i-1] {
						w.violate("round %d: a block is in it with some of its rows: %d and %d", b.Round, b.Totals[i-1], total)
					}
					continue
				}
				sum += n
				for range n {
					user := i / w.units()
					all[user] = append(all[user], seat{b.Round, b.Attempt})
				}
			}
			if sum != b.Users {
				w.violate("round %d: %d users, and %d in the totals", b.Round, b.Users, sum)
			}
		}
	}
	return all
}

// copies lists the messages, ever on the broker, that held a user's report of a round.
func (w *world) copies() map[ticket][]stream.Message {
	owners := map[[16]byte]ticket{}
	for _, d := range slices.Concat(w.devices, w.crowds) {
		for id, t := range d.reports {
			owners[id] = t
		}
	}
	all := map[ticket][]stream.Message{}
	for _, m := range w.broker.Dump() {
		if m.Stream != stream.Reports || w.spam[m.ID] {
			continue
		}
		var r wire.Report
		must(stream.Unmarshal(m.Data, &r))
		for _, id := range r.Ids {
			t, known := owners[[16]byte(id)]
			if !known && !w.broken.forges {
				w.violate("a report that no store was charged with")
			}
			all[t] = append(all[t], m.Message)
		}
	}
	return all
}

// auditUsers checks each user's fate against what the device believes.
func (w *world) auditUsers(r record, out *result) {
	seats, copies := w.seats(), w.copies()
	for _, d := range w.devices {
		var tally device.Summary
		var unpaid uint64
		charges := d.charges()
		out.refused += d.refused
		for i, p := range d.participations() {
			user := d.user(i)
			drifts := w.adrift(d, user, seats[user])
			if !drifts {
				w.auditCost(d, user, r, seats[user], charges[user], out)
				w.auditDraws(d, user, p, charges[user])
				w.auditShown(d, user, r, p)
			} else {
				out.adrift++
			}
			if !d.fooled[user] && !drifts { // the rest is true with an honest broker alone
				w.auditSeats(user, r, seats[user], out)
				w.auditUser(d, r, user, p, seats[user], copies, out)
				w.auditTold(d, user, p, r, seats[user], out)
			}
			tally.Events++
			tally.Units += uint64(w.units())
			switch p.State {
			case participation.Counted:
				tally.Counted++
			case participation.Unknown:
				tally.Unknown++
			case participation.Fresh:
				tally.Uncounted++
				tally.Unused++
			case participation.Uncounted:
				tally.Uncounted++
				tally.ChargedUncounted++
				if !w.pays(p) {
					unpaid++
				}
			case participation.Charged:
				if out.ended {
					w.violate("user %d: the task is over, and the event is undecided", user)
				}
			}
		}
		if s := d.summary; s != nil && !w.broken.forgets {
			tally.Rounds = s.Rounds
			if tally.NotAgain = s.NotAgain; s.NotAgain > unpaid {
				w.violate("%s: %d events are said to cost too much to go again, of %d", d.name, s.NotAgain, unpaid)
			}
			if *s != tally {
				w.violate("%s reports %+v, its store says %+v", d.name, *s, tally)
			}
		}
	}
}

// auditSeats checks the batches that hold one user: they are of one stint, which asked for as many.
func (w *world) auditSeats(user int, r record, at []seat, out *result) {
	rounds, stints := map[uint64]bool{}, map[int]bool{}
	most := 1
	for _, s := range at {
		place := w.place(r.rounds[s.round])
		if rounds[s.round] {
			most = 0 // twice in one batch
		}
		rounds[s.round], stints[place.Stint.Index] = true, true
		if most > 0 {
			most = int(place.Stint.Rounds)
		}
	}
	if len(at) > most || len(stints) > 1 {
		w.violate("user %d is counted %d times: %v", user, len(at), at)
	}
	if len(at) > 1 {
		out.again++
	}
}

// auditUser checks one user: at is where batches hold it, copies are its reports of all rounds.
func (w *world) auditUser(d *publisher, r record, user int, p participation.Record, at []seat,
	copies map[ticket][]stream.Message, out *result) {
	below := false   // a copy of one of its rounds lies in the part of the queue that the stage looked at
	calm := true     // nothing went wrong in any of them
	var why []string // what may have kept a report that lies there out of the batch
	for _, t := range d.reports {
		if t.user != user || !w.samePhase(r, t.round, uint64(p.Draw.Round)) {
			continue
		}
		b := r.batches[t.round]
		calm = calm && b != nil && !b.Void && len(r.opens[t.round]) == 1 && !d.doubts[t.round]
		why = append(why, w.faultsIn(t.round, "broker", "stage")...)
		for _, m := range copies[t] {
			at, _ := stream.ParseSubject(m.Subject)
			if b != nil && (at.Attempt != stream.Attempt(b.Attempt) || m.Sequence <= b.Cutoff) {
				below = true
			}
		}
	}
	for _, s := range at {
		if p.State == participation.Fresh || p.State == participation.Uncounted ||
			!w.samePhase(r, s.round, uint64(p.Draw.Round)) {
			w.violate("user %d is in the batch of round %d, its device says %v in round %d", user, s.round, p.State,
				p.Draw.Round)
		}
	}
	switch p.State {
	case participation.Counted:
		out.counted++
		if len(at) == 0 {
			out.unseen++
			if !below {
				w.violate("user %d: counted in round %d, and no report of it can have been", user, p.Draw.Round)
			}
			if len(why) == 0 {
				w.violate("user %d: counted in round %d, and in no batch, though nothing happened to stages and broker", user,
					p.Draw.Round)
			}
			for _, name := range why {
				out.excused[name]++
			}
		} else if len(why) == 0 {
			out.calm++
		}
	case participation.Uncounted:
		out.uncounted++
		if below {
			w.violate("user %d: uncounted in round %d, and a report of it may have been", user, p.Draw.Round)
		}
	case participation.Fresh:
		out.uncounted++
	case participation.Unknown:
		out.unknown++
		if r.end != nil && r.end.Reason == service.ReasonGivenUp && uint64(p.Draw.Round) > r.end.LastRound {
			out.givenUp++
		}
		// Under trust local a report that came too late may have been released, whatever outcome its device got.
		if calm && !d.crashed && (below || !w.Local) && !w.emptied.Load() && len(w.gone) == 0 {
			w.violate("user %d: unknown in round %d, and nothing went wrong", user, p.Draw.Round)
		}
	}
}

// samePhase reports whether a device's outcome in one round holds for the other too: they are the same round,
// or belong to one stint of several rounds.
func (w *world) samePhase(r record, a, b uint64) bool {
	if a == b {
		return true
	}
	one, other := r.rounds[a], r.rounds[b]
	if one == nil || other == nil {
		return false
	}
	return w.place(one).Interactive() && w.place(one).Stint.Index == w.place(other).Stint.Index
}

// participations returns the records of a publisher's rows in its store.
func (p *publisher) participations() []participation.Record {
	keys := make([]participation.Key, p.many)
	for i := range keys {
		keys[i] = p.key(i)
	}
	all, err := p.store.Read(keys)
	must(err)
	return all
}

// available counts the users who could be in the round that waits.
func (w *world) available(round uint64) (n int) {
	r := w.record()
	for _, d := range w.devices {
		own, lost := 0, 0
		for i, p := range d.participations() {
			switch {
			case p.State != participation.Charged && w.awaited(r, round, p):
				own++
			case p.State == participation.Charged && uint64(p.Draw.Round) == round && (d.fooled[d.user(i)] || w.emptied.Load() ||
				w.strands(p)):
				lost++ // holds a place, and need not be on the broker
			case p.State == participation.Fresh, p.State == participation.Uncounted && w.pays(p),
				p.State == participation.Charged && uint64(p.Draw.Round) == round:
				own++
			case p.State == participation.Charged && w.lost("close", "open"): // nobody can tell before the task's end
				if w.samePhase(r, uint64(p.Draw.Round), round) {
					lost++ // a member, whose place is kept
				}
			case p.State == participation.Charged:
				w.violate("user %d: nothing happens, and round %d is still undecided", d.user(i), p.Draw.Round)
			}
		}
		places := int(w.Cohort) // a publisher sends a round as many as the round takes of all; an organisation one
		if w.Units > 0 {
			places = 1
		}
		n += min(own, max(0, places-lost))
	}
	return n
}

// strands reports whether the broker lost the attempt that an event was sent to, and later attempts got lower
// numbers: no device sends to an older attempt.
func (w *world) strands(p participation.Record) bool {
	if len(p.Sends) == 0 {
		return false
	}
	sent := p.Sends[len(p.Sends)-1].Attempt.Number
	return w.isGone(name.Open(p.Draw.Round, sent)) && !slices.ContainsFunc(w.broker.Dump(), func(m memory.Stored) bool {
		at, _ := stream.ParseSubject(m.Subject)
		return at.Verb == "open" && at.Round == p.Draw.Round && at.Attempt >= sent
	})
}

// awaited reports whether a user of an interactive phase may answer a round of it.
func (w *world) awaited(all record, round uint64, p participation.Record) bool {
	r := all.rounds[round]
	return r != nil && p.Stays(uint32(w.place(r).Stint.Index)+1) && uint64(p.Draw.Step) < r.Step
}

// ask starts a further life of each publisher and lets it report the outcome of each event: the one in its
// store.
func (w *world) ask() {
	ctx := context.Background()
	for _, d := range w.devices {
		c, err := device.New(device.Settings{
			Task: name, Transport: w.broker, Store: d.store, Source: d.source(), Poll: poll, MaxPoll: 4 * poll,
			Policy: w.policy(), Entropy: deviceEntropy,
		})
		must(err)
		for i, p := range d.participations() {
			got, err := c.Publish(ctx, p.Key, convex.Example{Index: []int32{int32(d.user(i))}, Value: []float64{1}, Label: -1})
			want := p.State
			if want == participation.Fresh {
				want = participation.Uncounted
			}
			if err != nil || got.State != want {
				w.violate("user %d: asked again, the device says %v, %v; its store says %v", d.user(i), got, err, want)
			}
		}
		if err := c.Close(); err != nil {
			w.violate("%s, asked: %v", d.name, err)
		}
	}
}
