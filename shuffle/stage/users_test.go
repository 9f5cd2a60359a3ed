package stage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// An invitation holds everything that a user needs to answer an attempt.
type invitation struct {
	round   stream.Round
	attempt stream.Attempt
	suite   wire.Suite
	context seal.Context
}

// invited waits for an Open of a round whose attempt is above a number, as devices do.
func (w *world) invited(ctx context.Context, r stream.Round, above stream.Attempt) *invitation {
	announced := w.get(ctx, w.name.Round(r))
	if announced == nil {
		return nil
	}
	var body wire.Round
	canonical, err := seal.Verify(announced.Data, w.learner.Public(), &body)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	var seen uint64
	for ; ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
		m, err := w.broker.Latest(ctx, w.name.Opens(stream.Round(r)))
		if err != nil || m.Sequence == seen {
			continue
		}
		seen = m.Sequence
		var o wire.Open
		if _, err := seal.Verify(m.Data, w.stage.Public(), &o); err != nil {
			w.t.Error(err)
			return nil
		}
		if stream.Attempt(o.Attempt) <= above {
			continue
		}
		if stream.Hash(o.ManifestHash) != stream.HashOf(canonical) {
			w.t.Errorf("Open of round %d names another manifest", r)
		}
		return &invitation{round: r, attempt: stream.Attempt(o.Attempt), suite: o.Suite, context: seal.Context{
			ManifestHash: stream.Hash(o.ManifestHash), Attempt: o.Attempt, StageKey: w.stage.Public(), Public: o.PublicKey,
		}}
	}
	return nil
}

// plaintext returns the packed reports of users: one in their own coordinate.
func (w *world) plaintext(users ...uint64) (packed []byte) {
	for _, u := range users {
		counts := make([]uint32, w.params.Dim)
		counts[u] = 1
		packed = w.params.Pack(packed, counts)
	}
	if w.issuer != nil {
		for _, u := range users {
			packed = append(packed, w.issuer.Token(u)...)
		}
	}
	return packed
}

// seal returns the message of users under given ids.
func (w *world) seal(in *invitation, ids [][16]byte, plaintext []byte) []byte {
	w.t.Helper()
	r, err := seal.Seal(in.suite, in.context, w.hash, ids, plaintext)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.encode(r)
}

func (w *world) encode(r *wire.Report) []byte {
	w.t.Helper()
	data, err := stream.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// send publishes data as a report under fresh message ids and insists on acknowledgements.
func (w *world) send(ctx context.Context, in *invitation, data ...[]byte) {
	pending := make([]stream.Outgoing, len(data))
	for i := range data {
		pending[i] = stream.Outgoing{Subject: w.name.Report(in.round, in.attempt), ID: randomID(), Data: data[i]}
	}
	w.deliver(ctx, pending)
}

// deliver insists on acknowledgements.
func (w *world) deliver(ctx context.Context, pending []stream.Outgoing) {
	for len(pending) > 0 && ctx.Err() == nil {
		acks, _ := w.broker.Publish(ctx, pending)
		var again []stream.Outgoing
		for i, a := range acks {
			if a.Status == stream.Unknown || a.Status == stream.Refused {
				again = append(again, pending[i])
			}
		}
		if pending = again; len(pending) > 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// answer sends the reports of users, bundled as the world bundles.
func (w *world) answer(ctx context.Context, in *invitation, users []uint64) {
	var data [][]byte
	for len(users) > 0 {
		n := min(w.bundle, len(users))
		ids := make([][16]byte, n)
		for i := range ids {
			ids[i] = randomID()
		}
		data = append(data, w.seal(in, ids, w.plaintext(users[:n]...)))
		users = users[n:]
	}
	w.send(ctx, in, data...)
}

// users returns the users who take part in round r and no other.
func (w *world) users(r stream.Round) []uint64 {
	n := w.task.Plan.Phases[0].Cohort
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(r-1)*n + uint64(i)
	}
	return all
}

// answerAll sends the reports of each round's users to every attempt at it, until the context ends.
func (w *world) answerAll(ctx context.Context) { w.answerFrom(ctx, 1) }

// answerFrom is answerAll for users who know the rounds before r.
func (w *world) answerFrom(ctx context.Context, r stream.Round) {
	for ; ctx.Err() == nil; r++ {
		if uint64(r)*w.task.Plan.Phases[0].Cohort > uint64(w.params.Dim) {
			if w.get(ctx, w.name.Round(r)) != nil {
				w.t.Errorf("round %d needs more users than the world has: give plan.spares", r)
			}
			return
		}
		round, over := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			defer over()
			w.get(round, w.name.Batch(r))
		}()
		var attempt stream.Attempt
		for {
			in := w.invited(round, r, attempt)
			if in == nil {
				break
			}
			attempt = in.attempt
			w.answer(round, in, w.users(r))
		}
		<-watched
	}
}

// run runs the whole world with the given stages, until the learner has ended the task and every stage has returned.
func (w *world) run(ctx context.Context, stages ...func(context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var others, running sync.WaitGroup
	others.Go(func() { w.learn(ctx) })
	others.Go(func() { w.answerAll(ctx) })
	for _, s := range stages {
		running.Go(func() { s(ctx) })
	}
	running.Wait()
	stop()
	others.Wait()
}

// audit checks what every run must leave behind: of each round at most one outcome, its Close, nobody twice, nobody in
// another round. It returns the numbers of real and void batches.
func (w *world) audit() (real, void int) {
	w.t.Helper()
	seen := map[uint64]bool{}
	for r := stream.Round(1); ; r++ {
		b, m := w.batch(r)
		if b == nil {
			return real, void
		}
		var c wire.Close
		closed, err := w.broker.Get(context.Background(), w.name.Close(r, stream.Attempt(b.Attempt)))
		if err == nil {
			_, err = seal.Verify(closed.Data, w.stage.Public(), &c)
		}
		if err != nil || stream.Hash(c.BatchHash) != stream.HashOf(m.Data) || c.Cutoff != b.Cutoff || c.Void != b.Void {
			w.t.Errorf("round %d: its Close is not that of its batch: %v", r, err)
		}
		if b.Void {
			void++
			continue
		}
		real++
		var sum uint64
		for u, total := range b.Totals {
			sum += total
			if total == 0 {
				continue
			}
			if total > 1 || seen[uint64(u)] || uint64(u)/w.task.Plan.Phases[0].Cohort != uint64(r-1) {
				w.t.Errorf("round %d: user %d is counted twice or in the wrong round", r, u)
			}
			seen[uint64(u)] = true
		}
		if sum != b.Users || b.Users < w.task.Plan.Phases[0].Minimum || b.NoiseTrials != b.Users {
			w.t.Errorf("round %d: %d users, %d trials, sum %d", r, b.Users, b.NoiseTrials, sum)
		}
	}
}

// told describes the phase of the stage and how full its round is.
func told(s Status) string { return fmt.Sprintf("%s: %d of %d", s.Phase, s.Users, s.Cohort) }
