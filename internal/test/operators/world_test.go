package operators

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/shuffle/stage/leaderfile"
	"github.com/panlearn/panlearn/shuffle/stage/markfile"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

const (
	levels = 3
	floor  = 40 // trials of each operator's
	lease  = 4 * time.Second
	poll   = 200 * time.Millisecond
)

// A world is a broker, a learner and users around both operators. User i of a round sends levels in coordinate i and
// zero elsewhere, so that a total above levels and both floors is somebody counted twice.
type world struct {
	issuer         *granttest.Issuer // nil: reports have no tokens
	people         uint64            // who have a token
	t              testing.TB
	broker         *memory.Broker
	learner, stage *seal.Identity
	helperKey      []byte
	leaderDir      string
	helperDir      string
	name           stream.Task
	task           *wire.Task
	hash           stream.Hash
	params         randomizer.Params
	rounds, cohort int
	log            *slog.Logger
	leading        *stage.Stage // of the leader's process that began last
}

func identity(t testing.TB) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

type plan struct {
	rounds, cohort, minimum int
	deadline                time.Duration
	bundle                  int
	dim                     int    // coordinates; 0: one a user of the cohort
	levels                  uint32 // of a count; 0: levels
	broker                  memory.Config
	grants                  bool
}

func newWorld(t testing.TB, p plan) *world {
	t.Helper()
	p.bundle = max(p.bundle, 1)
	if p.dim == 0 {
		p.dim = p.cohort
	}
	if p.levels == 0 {
		p.levels = levels
	}
	if p.minimum == 0 {
		p.minimum = p.cohort
	}
	if p.broker.AckWait == 0 {
		p.broker.AckWait = 2 * time.Second
	}
	dir := t.TempDir()
	w := &world{t: t, name: "churn", learner: identity(t), stage: identity(t), leaderDir: filepath.Join(dir, "leader"),
		helperDir: filepath.Join(dir, "helper"), rounds: p.rounds, cohort: p.cohort, log: slog.New(slog.DiscardHandler)}
	var err error
	if w.broker, err = memory.New(p.broker); err != nil {
		t.Fatal(err)
	}
	key, _, err := folder.Create(w.helperDir)
	if err != nil {
		t.Fatal(err)
	}
	w.helperKey = key
	w.params = randomizer.Params{Dim: p.dim, ClipNorm: 1, Levels: p.levels, FloorTrials: floor, Coin: randomizer.Fair}
	w.task = &wire.Task{
		Life: make([]byte, stream.LifeSize), Version: stream.Version, Name: string(w.name), LearnerKey: w.learner.Public(),
		StageKey: w.stage.Public(), HelperKey: key, Suite: wire.Suite_SUITE_MLKEM768_X25519,
		Plan: &wire.Plan{Algorithm: "psgd", Trust: wire.Trust_TRUST_SPLIT, HonestFraction: "1", Prio3: manifest.Prio3,
			Phases: []*wire.Phase{{Users: uint64(p.rounds * p.cohort), Rounds: uint64(p.rounds), Cohort: uint64(p.cohort),
				Minimum: uint64(p.minimum), Mechanism: manifest.Mechanism(w.params, uint32(p.bundle)), RoundsPerUser: 1}},
			Epsilon: 1, Delta: 1e-6, EpsilonBudget: 1, DeadlineMs: uint64(p.deadline.Milliseconds())},
	}
	if p.grants {
		w.task.IssuerKey = granttest.Signer(t).Public()
	}
	body, err := stream.Marshal(w.task)
	if err != nil {
		t.Fatal(err)
	}
	w.hash = stream.HashOf(body)
	if p.grants {
		w.issuer = granttest.New(t, w.hash)
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) sign(id *seal.Identity, m proto.Message) []byte {
	w.t.Helper()
	data, err := id.Sign(m)
	w.must(err)
	return data
}

// put retries until the record is stored.
func (w *world) put(ctx context.Context, subject string, data []byte) {
	for ctx.Err() == nil {
		if r, err := w.broker.PutOnce(ctx, subject, data); err == nil {
			if !r.Ours {
				w.t.Errorf("%s holds something else", subject)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// get waits until a record is there; nil where the context ended first.
func (w *world) get(ctx context.Context, subject string) *stream.Message {
	for ctx.Err() == nil {
		if m, err := w.broker.Get(ctx, subject); err == nil {
			return &m
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// find reads a record that need not be there, until the broker replies.
func (w *world) find(subject string) *stream.Message {
	for range 100 {
		m, err := w.broker.Get(context.Background(), subject)
		if err == nil {
			return &m
		}
		if errors.Is(err, stream.ErrNotFound) {
			continue // it may lag
		}
	}
	return nil
}

// A process is an operator that runs.
type process struct {
	stop func() error // ends it, and returns what Run did
	done <-chan struct{}
}

func start(ctx context.Context, run func(context.Context) error) *process {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = run(ctx)
	}()
	return &process{done: done, stop: func() error {
		cancel()
		<-done
		return err
	}}
}

// lead starts a process of the leader, with the world's folder.
func (w *world) lead(ctx context.Context, change func(*stage.Config)) *process {
	w.t.Helper()
	reader, err := w.broker.Reader(w.name)
	w.must(err)
	marks, err := markfile.Open(filepath.Join(w.leaderDir, "claimed"))
	w.must(err)
	w.must(leaderfile.Make(w.leaderDir, w.stage.Public()))
	f, err := leaderfile.Open(w.leaderDir, w.stage.Public())
	w.must(err)
	c := stage.Config{Task: w.name, Records: w.broker, Reports: reader, Identity: w.stage, Limits: w.broker.Limits(),
		LearnerKey: w.learner.Public(), LeaseTTL: lease, Poll: poll, Marks: marks, Workers: 2, Logger: w.log.With("role", "leader"),
		Leader: stage.Leader{HelperKey: w.helperKey, Exchange: w.broker, Folder: f}}
	if change != nil {
		change(&c)
	}
	s, err := stage.New(c)
	w.must(err)
	w.leading = s
	return start(ctx, s.Run)
}

// help starts a process of the helper, with the world's folder.
func (w *world) help(ctx context.Context, change func(*helper.Config)) *process {
	w.t.Helper()
	f, err := folder.Open(w.helperDir, 10*time.Second)
	w.must(err)
	c := helper.Config{Task: w.name, Records: w.broker, Exchange: w.broker, Folder: f, Identity: f.Identity(),
		LeaderKey: w.stage.Public(), LearnerKey: w.learner.Public(), Limits: w.broker.Limits(), Lease: lease, Poll: poll,
		Workers: 2, Logger: w.log.With("role", "helper")}
	if change != nil {
		change(&c)
	}
	h, err := helper.New(c)
	w.must(err)
	return start(ctx, func(ctx context.Context) error {
		return errors.Join(h.Run(ctx), f.Close())
	})
}

func (w *world) round(r stream.Round, step uint64) *wire.Round {
	return manifest.RoundOf(w.hash, uint64(r), step, make([]float64, w.params.Dim), nil)
}

// learn plays the learner, and returns the batches of the task.
func (w *world) learn(ctx context.Context) (batches []*wire.Batch) {
	if w.get(ctx, w.name.Stage()) == nil {
		return nil
	}
	w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
	r, step := stream.Round(1), uint64(1)
	for ; step <= manifest.Steps(w.task.Plan); r++ {
		w.put(ctx, w.name.Round(r), w.sign(w.learner, w.round(r, step)))
		m := w.get(ctx, w.name.Batch(r))
		if m == nil {
			return batches
		}
		b := new(wire.Batch)
		if _, err := seal.Verify(m.Data, w.stage.Public(), b); err != nil {
			w.t.Error(err)
			return batches
		}
		batches = append(batches, b)
		if !b.Void {
			step++
		}
	}
	w.put(ctx, w.name.End(), w.sign(w.learner, &wire.End{Version: stream.Version, TaskHash: w.hash[:],
		LastRound: uint64(r - 1), Reason: "done"}))
	return batches
}

func fresh() (out [32]byte) {
	_, _ = crand.Read(out[:])
	return out
}

// A user has one secret of its draw a round, and the coordinate that it sends levels in.
type user struct {
	coordinate int
	draw       [32]byte
	token      []byte // in a task with tokens
}

// users makes the users of a round.
func (w *world) users(n int) []user {
	out := make([]user, n)
	for i := range out {
		out[i] = user{coordinate: i % w.params.Dim, draw: fresh()}
		if w.issuer != nil {
			out[i].token = w.issuer.Token(w.people)
			w.people++
		}
	}
	return out
}

// An opening is an attempt as devices see it: an Open and the Join that names it.
type opening struct {
	x        split.Attempt
	manifest stream.Hash
	keys     seal.SharedKeys
	sharing  *split.Sharing
}

// opening reads an attempt; nil where Open or Join are not there yet.
func (w *world) opening(r stream.Round, step uint64, a stream.Attempt) *opening {
	w.t.Helper()
	open, join := w.find(w.name.Open(r, a)), w.find(w.name.Join(r, a))
	if open == nil || join == nil {
		return nil
	}
	var o wire.Open
	var j wire.Join
	_, err := seal.Verify(open.Data, w.stage.Public(), &o)
	w.must(err)
	_, err = seal.Verify(join.Data, w.helperKey, &j)
	w.must(err)
	out := &opening{x: split.Attempt{Task: w.hash, Round: uint64(r), Number: uint64(a), Open: stream.HashOf(open.Data),
		Join: stream.HashOf(join.Data)}, keys: seal.SharedKeys{Leader: o.PublicKey, Helper: j.PublicKey}}
	if stream.Hash(j.OpenHash) != out.x.Open {
		return nil
	}
	out.manifest, err = manifest.RoundHash(w.round(r, step))
	w.must(err)
	w.share(out)
	return out
}

// share gives an attempt what its devices share with.
func (w *world) share(o *opening) {
	w.t.Helper()
	k, err := split.BitsOf(w.params.Levels)
	w.must(err)
	o.sharing, err = split.NewSharing(split.Params{Dim: w.params.Dim, Bits: k,
		Context: splitwire.ContextOf(o.x, o.manifest).Prio3()}, o.x.Open, o.x.Join)
	w.must(err)
}

// report returns the report of some users for an attempt; change changes what is shared before it is sealed.
func (w *world) report(o *opening, users []user, change func(*seal.SharedReport)) []byte {
	w.t.Helper()
	var r seal.SharedReport
	var named []split.User
	for _, u := range users {
		counts := make([]uint32, w.params.Dim)
		counts[u.coordinate] = w.params.Levels
		id := split.ID(u.draw, o.x.Open, o.x.Join)
		s, err := o.sharing.Shard(counts, id, fresh())
		w.must(err)
		r.IDs, r.Public = append(r.IDs, id), append(r.Public, s.Public)
		r.Leader, r.Helper = append(r.Leader, s.Leader...), append(r.Helper, s.Helper...)
		named = append(named, split.User{ID: id, Public: s.Public})
	}
	for _, u := range users {
		r.Leader = append(r.Leader, u.token...)
	}
	r.Associated = split.AssociatedData(named)
	if change != nil {
		change(&r)
	}
	out, err := seal.SealShares(w.task.Suite, splitwire.ContextOf(o.x, o.manifest), o.keys, r)
	w.must(err)
	data, err := stream.Marshal(out)
	w.must(err)
	return data
}

// send publishes a report for an attempt until it is stored or refused.
func (w *world) send(ctx context.Context, x split.Attempt, data []byte) {
	id := fresh()
	out := stream.Outgoing{Subject: w.name.Report(stream.Round(x.Round), stream.Attempt(x.Number)), ID: [16]byte(id[:16]), Data: data}
	for ctx.Err() == nil {
		acks, err := w.broker.Publish(ctx, []stream.Outgoing{out})
		if err == nil && acks[0].Status != stream.Unknown {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// newest returns the number of the newest Open of a round, 0 for none.
func (w *world) newest(ctx context.Context, r stream.Round) stream.Attempt {
	m, err := w.broker.Latest(ctx, w.name.Opens(r))
	if err != nil {
		return 0
	}
	a, err := stream.ParseSubject(m.Subject)
	if err != nil {
		return 0
	}
	return a.Attempt
}

// devices play the users of all rounds: each round has its own, who send to each attempt that both operators opened,
// until the round has its batch.
func (w *world) devices(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	step := uint64(1)
	for r := stream.Round(1); step <= uint64(w.rounds); r++ {
		if w.get(ctx, w.name.Round(r)) == nil {
			return
		}
		users, sent := w.users(w.cohort), stream.Attempt(0)
		var batch *stream.Message
		for ctx.Err() == nil {
			if m, err := w.broker.Get(ctx, w.name.Batch(r)); err == nil {
				batch = &m
				break
			}
			a := w.newest(ctx, r)
			if a <= sent {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			o := w.opening(r, step, a)
			if o == nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			for i := 0; i < len(users); i++ {
				w.send(ctx, o.x, w.report(o, users[i:i+1], nil))
			}
			sent = a
		}
		if batch == nil {
			return
		}
		var b wire.Batch
		_, err := seal.Verify(batch.Data, w.stage.Public(), &b)
		w.must(err)
		if !b.Void {
			step++
		}
	}
}

// check looks at the batches of a task whose users all came: nobody twice, nobody missing, both floors, and leader and
// helper in one.
func (w *world) check(batches []*wire.Batch) {
	w.t.Helper()
	released := 0
	for i, b := range batches {
		if b.Void {
			w.t.Errorf("round %d is void: %s", b.Round, b.Reason)
			continue
		}
		released++
		if int(b.Users) != w.cohort || b.NoiseTrials != 2*floor {
			w.t.Errorf("round %d: %d users and %d trials, want %d and %d", b.Round, b.Users, b.NoiseTrials, w.cohort, 2*floor)
		}
		for j, total := range b.Totals {
			if total < levels || total > levels+2*floor {
				w.t.Errorf("round %d: coordinate %d has total %d, want %d and noise of at most %d", b.Round, j, total, levels, 2*floor)
			}
		}
		share := w.find(w.name.Share(stream.Round(b.Round)))
		if share == nil && i == len(batches)-1 {
			continue // the task may end before a helper that died has put it
		}
		if share == nil {
			w.t.Errorf("round %d has no Share", b.Round)
			continue
		}
		s, err := splitwire.VerifyShare(share.Data, w.helperKey)
		w.must(err)
		if s.X != splitwire.AttemptOf(b) || s.Users != b.Users {
			w.t.Errorf("round %d: the batch is of attempt %d with %d users, the Share of %d with %d", b.Round, b.Attempt,
				b.Users, s.X.Number, s.Users)
		}
	}
	if released != w.rounds {
		w.t.Errorf("%d rounds were released, want %d", released, w.rounds)
	}
}
