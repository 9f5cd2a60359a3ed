package helper

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A leader plays the first operator in one attempt: split.Leader and split.Ending, driven over the broker.
type leader struct {
	w       *world
	x       split.Attempt
	hash    stream.Hash // of the manifest
	key     *seal.RoundKey
	open    []byte // signed
	join    wire.Join
	core    *split.Leader
	worker  *split.Worker
	devices *split.Sharing
	send    func([]byte) error
	answers chan []byte
	next    int // user
}

var (
	errGone    = errors.New("gone")
	errDiffers = errors.New("differs")
	errRefused = errors.New("the round has a Share")
)

func fresh() (out [32]byte) {
	_, _ = crand.Read(out[:])
	return out
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// opens puts an Open of an attempt; change changes it before it is signed.
func (w *world) opens(ctx context.Context, r, a uint64, change func(*wire.Open)) *leader {
	w.t.Helper()
	l := &leader{w: w, answers: make(chan []byte, 1000)}
	var err error
	l.hash, err = manifest.RoundHash(w.round(r, r))
	w.must(err)
	l.key, err = seal.NewRoundKey(w.task.Suite)
	w.must(err)
	o := &wire.Open{Version: stream.Version, TaskHash: w.hash[:], Round: r, Attempt: a, ManifestHash: l.hash[:],
		Suite: w.task.Suite, PublicKey: l.key.Public(), Instance: make([]byte, 16), StartedUnixMs: time.Now().UnixMilli()}
	if change != nil {
		change(o)
	}
	l.open = w.sign(w.leader, o)
	l.x = split.Attempt{Task: w.hash, Round: r, Number: a, Open: stream.HashOf(l.open)}
	w.put(ctx, w.name.Open(stream.Round(r), stream.Attempt(a)), l.open)
	return l
}

// joined waits for the Join of the attempt for as long as the patience, and begins to lead it. errRefused: the round has
// a Share.
func (l *leader) joined(ctx, patience context.Context) error {
	w := l.w
	var m *stream.Message
	for m == nil {
		if err := patience.Err(); err != nil {
			return err
		}
		if s := w.shareOf(l.x.Round); s != nil {
			return errRefused
		}
		if got, err := w.broker.Get(ctx, w.name.Join(stream.Round(l.x.Round), stream.Attempt(l.x.Number))); err == nil {
			m = &got
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := seal.Verify(m.Data, w.helperKey, &l.join); err != nil {
		w.t.Fatal(err)
	}
	if stream.Hash(l.join.OpenHash) != l.x.Open {
		return fmt.Errorf("a Join of another Open")
	}
	l.x.Join = stream.HashOf(m.Data)
	verify, err := l.key.OpenVerifyKey(w.hash, &l.join)
	w.must(err)
	if h := split.VerifyKey(verify).Hash(); h != split.Hash(l.join.VerifyKeyHash) {
		w.t.Fatal("the verify key is not the one that Join names")
	}
	at, ok := manifest.PhaseOf(w.task.Plan, l.x.Round)
	if !ok {
		w.t.Fatal("no such step")
	}
	mixer, err := at.Mixer()
	w.must(err)
	cfg := splitwire.ConfigOf(mixer, l.x, l.hash, split.VerifyKey(verify), w.broker.Limits().MaxPayload)
	l.core, err = split.NewLeader(cfg)
	w.must(err)
	l.worker, err = l.core.Worker(splitwire.OpenerOf(l.key, splitwire.ContextOf(l.x, l.hash), seal.Leader))
	w.must(err)
	k, err := split.BitsOf(w.params.Levels)
	w.must(err)
	l.devices, err = split.NewSharing(split.Params{Dim: w.params.Dim, Bits: k, Context: cfg.Context}, l.x.Open, l.x.Join)
	w.must(err)
	l.send, err = w.broker.Exchange(ctx, w.name.Prepare([16]byte(l.join.Instance)), func(answer []byte) {
		select {
		case l.answers <- answer:
		default:
		}
	})
	w.must(err)
	return nil
}

// report returns the message of a device of some users; change changes what is shared before it is sealed.
func (l *leader) report(users int, change func(*seal.SharedReport)) *wire.Report {
	l.w.t.Helper()
	var r seal.SharedReport
	var named []split.User
	for range users {
		counts := make([]uint32, l.w.params.Dim)
		counts[l.next%len(counts)] = levels
		l.next++
		id := split.ID(fresh(), l.x.Open, l.x.Join)
		s, err := l.devices.Shard(counts, id, fresh())
		l.w.must(err)
		r.IDs, r.Public = append(r.IDs, id), append(r.Public, s.Public)
		r.Leader, r.Helper = append(r.Leader, s.Leader...), append(r.Helper, s.Helper...)
		named = append(named, split.User{ID: id, Public: s.Public})
	}
	r.Associated = split.AssociatedData(named)
	if change != nil {
		change(&r)
	}
	out, err := seal.SealShares(l.w.task.Suite, splitwire.ContextOf(l.x, l.hash), seal.SharedKeys{Leader: l.key.Public(),
		Helper: l.join.PublicKey}, r)
	l.w.must(err)
	return out
}

// take takes a message of a device.
func (l *leader) take(r *wire.Report) []split.Outcome {
	job, refused := l.core.Take(splitwire.UsersOf(r), seal.Leader.Sealed(r), seal.Helper.Sealed(r))
	if job == nil {
		return []split.Outcome{refused}
	}
	job.Run(l.worker)
	return l.core.Add(job)
}

// again is the time after which the leader sends again.
const again = 300 * time.Millisecond

// sends seals or signs a message and sends it.
func (l *leader) sends(message any) {
	l.w.t.Helper()
	var data []byte
	var err error
	switch m := message.(type) {
	case *split.Request:
		data, err = splitwire.Seal(l.w.leader, l.w.task.Suite, l.join.PublicKey, m)
	default:
		data, err = splitwire.Sign(l.w.leader, m)
	}
	l.w.must(err)
	_ = l.send(data)
}

// exchange sends what was taken until all is answered, and returns the decisions.
func (l *leader) exchange(ctx context.Context) (all []split.Decision, err error) {
	for {
		for {
			r, ok := l.core.Cut()
			if !ok {
				break
			}
			l.sends(&r)
		}
		if l.core.Unanswered() == 0 && len(l.core.Unreplied()) == 0 {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return all, ctx.Err()
		case <-time.After(again):
			for _, r := range l.core.Unreplied() {
				l.sends(&r)
			}
		case answer := <-l.answers:
			switch m := l.read(answer).(type) {
			case *split.Reply:
				decided, err := l.core.Handle(*m)
				if err != nil {
					return all, err
				}
				all = append(all, decided...)
			case *split.Gone:
				if m.X == l.x {
					return all, errGone
				}
			case *split.Differs:
				if m.X == l.x {
					return all, errDiffers
				}
			}
		}
	}
}

// read verifies an answer and opens it: a message of the exchange, a split.Share, or nil.
func (l *leader) read(answer []byte) any {
	if splitwire.IsShare(answer) {
		s, err := splitwire.VerifyShare(answer, l.w.helperKey)
		l.w.must(err)
		return s
	}
	m, _, err := splitwire.Verify(answer, l.w.helperKey)
	if err != nil {
		return nil
	}
	opened, err := splitwire.Open(m, l.key)
	l.w.must(err)
	return opened
}

// fills takes users until the cohort is full, in messages of one and two users, and exchanges them.
func (l *leader) fills(ctx context.Context) error {
	for users := 1; int(l.core.Users()) < l.w.params.Dim; users = 3 - users {
		for _, o := range l.take(l.report(min(users, l.w.params.Dim-int(l.core.Users())), nil)) {
			if o != split.Accepted {
				l.w.t.Errorf("the leader refuses an honest user: %v", o)
			}
		}
		decided, err := l.exchange(ctx)
		if err != nil {
			return err
		}
		for _, d := range decided {
			if d.Outcome != split.Accepted {
				l.w.t.Errorf("an honest user has outcome %v", d.Outcome)
			}
		}
	}
	return nil
}

// finishes ends the attempt until the helper has said what became of it. Where it released, it returns the totals.
func (l *leader) finishes(ctx context.Context) (split.Release, error) {
	prepared, err := l.core.Prepare(split.Entropy{Fresh: fresh(), Secret: fresh()}, split.Note{})
	l.w.must(err)
	e := split.NewEnding(prepared)
	e.Stored(true)
	return l.asks(ctx, e)
}

// asks sends finish, and looks at the round's Share, until the ending has its word.
func (l *leader) asks(ctx context.Context, e *split.Ending) (split.Release, error) {
	f := e.Finish()
	for e.Step() == split.StepSend {
		l.sends(&f)
		if m, err := l.w.broker.Get(ctx, l.w.name.Share(stream.Round(l.x.Round))); err == nil {
			if s, err := splitwire.VerifyShare(m.Data, l.w.helperKey); err == nil {
				e.Share(s, m.Data)
			}
		}
		if e.Step() != split.StepSend {
			break
		}
		select {
		case <-ctx.Done():
			return split.Release{}, ctx.Err()
		case <-time.After(again):
		case answer := <-l.answers:
			switch m := l.read(answer).(type) {
			case split.Share:
				e.Share(m, answer)
			case *split.Gone:
				e.Gone(*m)
			case *split.Differs:
				e.Differs(*m)
			}
		}
	}
	switch e.Step() {
	case split.StepRelease:
		e.Released(true)
		return e.Release(l.w.params)
	case split.StepDrop:
		e.Dropped()
	}
	return split.Release{}, fmt.Errorf("the attempt ended in %v", e.Step())
}

// runs leads attempts of a round until one is released, and returns its totals and number.
func (w *world) runs(ctx context.Context, r uint64) (split.Release, uint64, error) {
	for a := uint64(1); ; a++ {
		if err := ctx.Err(); err != nil {
			return split.Release{}, a, err
		}
		l := w.opens(ctx, r, a, nil)
		patience, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := l.joined(ctx, patience)
		if errors.Is(err, errRefused) {
			cancel()
			return split.Release{}, a, err
		}
		if err == nil {
			if err = l.fills(patience); err == nil {
				var out split.Release
				if out, err = l.finishes(ctx); err == nil {
					cancel()
					return out, a, nil
				}
			}
		}
		cancel()
	}
}

// checkTotals: each user of a full cohort is in the totals once, behind two floors.
func (w *world) checkTotals(got split.Release) {
	w.t.Helper()
	if got.Users != uint64(w.params.Dim) || got.NoiseTrials != 2*w.params.FloorTrials {
		w.t.Errorf("%d users and %d trials, want %d and %d", got.Users, got.NoiseTrials, w.params.Dim, 2*w.params.FloorTrials)
	}
	for j, n := range got.Totals {
		if n < levels || n > levels+2*w.params.FloorTrials {
			w.t.Errorf("total %d is %d, want %d and two floors", j, n, levels)
		}
	}
}
