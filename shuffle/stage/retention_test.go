package stage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// asleep is the connection of a process that is suspended just before one put, for as long as between takes.
type asleep struct {
	stream.Records
	before  string // subject of the put
	between func()
}

func (a *asleep) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	if subject == a.before && a.between != nil {
		between := a.between
		a.between = nil
		between()
		ctx = context.WithoutCancel(ctx)
	}
	return a.Records.PutOnce(ctx, subject, data)
}

// age lets others work on for more rounds than are kept, and removes all records of round 1.
func (w *world) age(t *testing.T) {
	const last = 2 + stream.KeptRounds
	for r := stream.Round(2); r <= last; r++ {
		for _, subject := range []string{w.name.Claim(r), w.name.Batch(r)} {
			if _, err := w.broker.PutOnce(t.Context(), subject, []byte("x")); err != nil {
				t.Error(err)
			}
		}
	}
	w.put(t.Context(), w.name.Round(last), w.sign(w.learner, w.round(last, 1)))
	for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches} {
		var old []uint64
		for m, err := range w.broker.Records(t.Context(), w.name, s) {
			if a, wrong := stream.ParseSubject(m.Subject); err == nil && wrong == nil && a.Round == 1 {
				old = append(old, m.Sequence)
			}
		}
		if err := w.broker.Remove(t.Context(), w.name, s, old); err != nil {
			t.Error(err)
		}
	}
}

// TestAClaimOfARemovedRoundReleasesNothing: a process is suspended before its claim. Another released the round
// meanwhile, and its claim and batch are removed since, so the first process's claim is stored. It releases nothing,
// because that would be a second total of the same users.
func TestAClaimOfARemovedRoundReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 3, spares: 2000})
		w.announce(t.Context())
		c := w.config()
		dropped := 0
		c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
		c.Records = &asleep{Records: c.Records, before: w.name.Claim(1), between: func() {
			for _, subject := range []string{w.name.Claim(1), w.name.Batch(1)} { // of the other's attempt
				if _, err := w.broker.PutOnce(t.Context(), subject, []byte("x")); err != nil {
					t.Error(err)
				}
			}
			w.age(t)
		}}
		_, stop := w.start(c)
		w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := w.broker.Get(t.Context(), w.name.Claim(1)); err != nil {
			t.Errorf("the claim: %v, want it to stand again", err)
		}
		if m, err := w.broker.Get(t.Context(), w.name.Batch(1)); err == nil || dropped != 1 {
			t.Errorf("%d bytes were released, %d attempts dropped", len(m.Data), dropped)
		}
		_ = stop()
	})
}

// TestAnOpenOfARemovedRoundAsksNobody: a process is suspended before its Open. It collects nothing at a round that is
// removed since.
func TestAnOpenOfARemovedRoundAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		w := newWorld(t, plan{rounds: 2, cohort: 2, spares: 2000})
		w.announce(ctx)
		c := w.config()
		opened := map[stream.Round]int{}
		c.Observer.Opened = func(r stream.Round, _ stream.Attempt) { opened[r]++ }
		late := &asleep{Records: c.Records, before: w.name.Open(2, 1)}
		late.between = func() {
			const last = 3 + stream.KeptRounds
			for r := stream.Round(3); r <= last; r++ {
				if _, err := w.broker.PutOnce(ctx, w.name.Claim(r), []byte("x")); err != nil {
					t.Error(err)
				}
			}
			w.put(ctx, w.name.Round(last), w.sign(w.learner, w.round(last, 2)))
		}
		c.Records = late
		_, stop := w.start(c)
		w.answer(ctx, w.invited(ctx, 1, 0), w.users(1))
		w.get(ctx, w.name.Close(1, 1))
		w.put(ctx, w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
		time.Sleep(time.Minute)
		synctest.Wait()
		if opened[1] != 1 || opened[2] != 0 {
			t.Errorf("opened %v: want round 1, and not round 2", opened)
		}
		_ = stop()
	})
}

// TestAnOldRoundPutAgainMisleadsNobody: a learner that was away puts a round again that was removed, and the broker
// shows it as the newest. A stage that starts then goes by the lease.
func TestAnOldRoundPutAgainMisleadsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := newWorld(t, plan{rounds: 40, cohort: 2})
		w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
		w.put(ctx, w.name.Round(30), w.sign(w.learner, w.round(30, 30)))
		w.put(ctx, w.name.Round(3), w.sign(w.learner, w.round(3, 3)))
		before := newLease(w.name.Lease(), randomID(), time.Second, time.Second)
		before.newest = 30
		if _, err := w.broker.Swap(ctx, w.name.Lease(), 0, before.record(time.Second)); err != nil {
			t.Fatal(err)
		}
		_, stop := w.start(w.config())
		time.Sleep(50 * time.Second)
		if in := w.invited(ctx, 30, 0); in == nil {
			t.Error("nobody is asked to the newest round")
		}
		if _, err := w.broker.Get(ctx, w.name.Open(3, 1)); err == nil {
			t.Error("the old round is opened")
		}
		_ = stop()
	})
}

// TestAnOldRoundPutAgainAndNoLease: as above, with two of them, and the broker lost the lease, or its last holder died
// before it knew a round. The stage has no marks of the old round. What its record's place in the stream says keeps
// the stage from asking other users to it, whose totals would be a second release of the round.
func TestAnOldRoundPutAgainAndNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		w := newWorld(t, plan{cohort: 2, spares: 2000})
		w.announce(ctx)
		const last = 2 + stream.KeptRounds
		for r := stream.Round(2); r <= last; r++ {
			w.put(ctx, w.name.Round(r), w.sign(w.learner, w.round(r, 1)))
			if r < last { // the stage is not the first
				w.put(ctx, w.name.Claim(r), []byte("x"))
			}
		}
		for _, r := range []stream.Round{2, 1} {
			if !w.broker.Lose(w.name.Round(r)) {
				t.Fatalf("round %d does not stand", r)
			}
			w.put(ctx, w.name.Round(r), w.sign(w.learner, w.round(r, 1)))
		}
		s, stop := w.start(w.config())
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := w.broker.Get(ctx, w.name.Open(1, 1)); err == nil {
			t.Error("the old round is opened")
		}
		if now := s.Status(); now.Round != last || now.Attempt != 1 {
			t.Errorf("%s: want attempt 1 at the newest round", now.Phase)
		}
		_ = stop()
	})
}

// TestAFreshStageKeepsTheHint: who takes the lease and dies before it has seen a round leaves what the record said of
// the newest.
func TestAFreshStageKeepsTheHint(t *testing.T) {
	now := time.Now()
	l := newLease("lease", randomID(), time.Second, time.Second)
	l.saw(now, &stream.Message{Sequence: 7, Data: stream.Lease{Instance: randomID(), TTL: time.Second,
		Newest: 30}.Record()})
	for _, knows := range []stream.Round{0, 31} {
		l.newest = knows
		if got, err := stream.ParseLease(l.record(time.Second)); err != nil || got.Newest != max(knows, 30) {
			t.Errorf("%+v, %v, from one who knows of round %d", got, err, knows)
		}
	}
}

// TestAnAwaitedRoundThatWasRemoved: a stage waits for a round. Others went on with it and with so many after it that
// it was removed, and then it is put again.
func TestAnAwaitedRoundThatWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		w := newWorld(t, plan{rounds: 2, cohort: 2, spares: 2000})
		w.announce(ctx)
		_, stop := w.start(w.config())
		w.answer(ctx, w.invited(ctx, 1, 0), w.users(1))
		w.get(ctx, w.name.Close(1, 1))
		for r := stream.Round(2); r <= 2+stream.KeptRounds; r++ {
			w.put(ctx, w.name.Round(r), []byte("x"))
			w.broker.Lose(w.name.Round(r))
		}
		w.put(ctx, w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := w.broker.Get(ctx, w.name.Open(2, 1)); err == nil {
			t.Error("it is opened")
		}
		_ = stop()
	})
}
