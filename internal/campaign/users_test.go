package campaign

import (
	"context"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
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
			for i, total := range b.Totals {
				n := total - b.Users // total >= users: everybody adds one level at least
				if total < b.Users || n > b.Users {
					w.violate("round %d: total %d of %d users", b.Round, total, b.Users)
					continue
				}
				sum += n
				for range n {
					all[i] = append(all[i], seat{b.Round, b.Attempt})
				}
			}
			if sum != b.Users {
				w.violate("round %d: %d users, and %d in the totals", b.Round, b.Users, sum)
			}
		}
	}
	return all
}

// copies are where a user's reports of a round ever stood on the broker.
func (w *world) copies() map[ticket][]stream.Message {
	owners := map[[16]byte]ticket{}
	for _, d := range w.devices {
		for id, t := range d.reports {
			owners[id] = t
		}
	}
	all := map[ticket][]stream.Message{}
	for _, m := range w.broker.Dump() {
		if m.Stream != stream.Reports {
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
		var tally client.Summary
		for i, p := range d.participations() {
			user := d.user(i)
			at := seats[user]
			if len(at) > 1 {
				w.violate("user %d is counted %d times: %v", user, len(at), at)
			}
			in := uint64(0)
			if len(at) > 0 {
				in = at[0].round
			}
			w.auditUser(d, r, user, p, in, copies[ticket{user, p.Draw.Round}], out)
			tally.Events++
			switch p.State {
			case client.Counted:
				tally.Counted++
			case client.Unknown:
				tally.Unknown++
			case client.Fresh, client.Uncounted:
				tally.Uncounted++
			case client.Charged:
				if out.ended {
					w.violate("user %d: the task is over, and the event is undecided", user)
				}
			}
		}
		if s := d.summary; s != nil && !w.broken.forgets {
			tally.Rounds = s.Rounds
			if *s != tally {
				w.violate("%s reports %+v, its store says %+v", d.name, *s, tally)
			}
		}
	}
}

// auditUser checks one user: in is the round in whose batch it is, copies its reports of the last round that it joined.
func (w *world) auditUser(d *publisher, r record, user int, p client.Participation, in uint64, copies []stream.Message, out *result) {
	b := r.batches[p.Draw.Round]
	below := false // a copy lies in the part of the queue that the stage looked at
	for _, m := range copies {
		at, _ := stream.ParseSubject(m.Subject)
		if b != nil && (at.Attempt != b.Attempt || m.Sequence <= b.Cutoff) {
			below = true
		}
	}
	if in != 0 && (p.State == client.Fresh || p.State == client.Uncounted || p.Draw.Round != in) {
		w.violate("user %d is in the batch of round %d, its device says %v in round %d", user, in, p.State, p.Draw.Round)
	}
	switch p.State {
	case client.Counted:
		out.counted++
		if in == 0 {
			out.unseen++
			if b == nil || b.Void || !below {
				w.violate("user %d: counted in round %d, and no report of it can have been", user, p.Draw.Round)
			}
		}
	case client.Uncounted:
		out.uncounted++
		if below {
			w.violate("user %d: uncounted in round %d, and a report of it may have been", user, p.Draw.Round)
		}
	case client.Fresh:
		out.uncounted++
	case client.Unknown:
		out.unknown++
		if b != nil && !b.Void && len(r.opens[p.Draw.Round]) == 1 && !d.crashed && !d.doubts[p.Draw.Round] {
			w.violate("user %d: unknown in round %d, and nothing went wrong", user, p.Draw.Round)
		}
	}
}

// participations are what a publisher's store holds of its rows.
func (p *publisher) participations() []client.Participation {
	keys := make([]client.Key, p.w.Rows)
	for i := range keys {
		keys[i] = p.key(i)
	}
	all, err := p.store.Read(keys)
	must(err)
	return all
}

// available counts the users who could be in the round that waits.
func (w *world) available(round uint64) (n int) {
	for _, d := range w.devices {
		for i, p := range d.participations() {
			switch {
			case p.State == client.Fresh, p.State == client.Uncounted && p.Refunds < client.DefaultMaxRefunds,
				p.State == client.Charged && p.Draw.Round == round:
				n++
			case p.State == client.Charged:
				w.violate("user %d: nothing happens, and round %d is still undecided", d.user(i), p.Draw.Round)
			}
		}
	}
	return n
}

// ask has a further life of each publisher say what became of each event: what its store says.
func (w *world) ask() {
	ctx := context.Background()
	for _, d := range w.devices {
		c, err := client.New(client.Config{
			Task: name, Records: w.broker, Reports: w.broker, Store: d.store, Source: d.source(), Poll: poll,
			Policy: client.Policy{AllowPlaintext: true}, Entropy: deviceEntropy,
		})
		must(err)
		for i, p := range d.participations() {
			got, err := c.Publish(ctx, p.Key, convex.Example{Index: []int32{int32(d.user(i))}, Value: []float64{1}, Label: -1})
			want := p.State
			if want == client.Fresh {
				want = client.Uncounted
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
