package device_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/shuffle/stage/leaderfile"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// twoOperators gives a world a helper, whom its declaration names beside the stage.
func (w *world) twoOperators(set ...string) {
	dir := w.t.TempDir()
	w.leaderDir, w.helperDir = filepath.Join(dir, "leader"), filepath.Join(dir, "helper")
	_, _, err := folder.Create(w.helperDir)
	must(w.t, err)
	w.helper, err = seal.LoadIdentity(filepath.Join(w.helperDir, "identity.pem"))
	must(w.t, err)
	raw, err := w.spec.Canonical()
	must(w.t, err)
	w.spec, err = task.Parse(raw, append(set, "privacy.seal=hpke", fmt.Sprintf(`privacy.operators={leader: "%x", helper: "%x"}`,
		w.stage.Public(), w.helper.Public())))
	must(w.t, err)
}

// redeclare changes the declaration of a world of two operators.
func (w *world) redeclare(set ...string) {
	raw, err := w.spec.Canonical()
	must(w.t, err)
	w.spec, err = task.Parse(raw, set)
	must(w.t, err)
	w.task.Declaration, err = w.spec.Canonical()
	must(w.t, err)
	w.hash = taskHash(w.t, w.task)
}

// A pair is an attempt of two operators, with what each of them drew for it.
type pair struct {
	w              *world
	manifest       stream.Hash
	open           *wire.Open
	join           *wire.Join
	opened, joined []byte // the signed records
	leader, helper *seal.RoundKey
	verify         split.VerifyKey
}

// pair draws an attempt, whose Open and Join change may change before they are signed. Nothing is put.
func (w *world) pair(r stream.Round, a stream.Attempt, manifest stream.Hash, change func(*wire.Open, *wire.Join)) *pair {
	w.t.Helper()
	p := &pair{w: w, manifest: manifest}
	var err error
	p.leader, err = seal.NewRoundKey(w.task.Suite)
	must(w.t, err)
	p.helper, err = seal.NewRoundKey(w.task.Suite)
	must(w.t, err)
	_, _ = rand.Read(p.verify[:])
	now := time.Now().UnixMilli()
	p.open = w.openMessage(r, a, manifest)
	p.open.PublicKey, p.open.StartedUnixMs = p.leader.Public(), now
	hash := sha256.Sum256(p.verify[:])
	p.join = &wire.Join{Version: stream.Version, TaskHash: w.hash[:], Round: uint64(r), Attempt: uint64(a),
		ManifestHash: manifest[:], Suite: w.task.Suite, PublicKey: p.helper.Public(),
		Instance: make([]byte, stream.InstanceSize), VerifyKeyHash: hash[:], StartedUnixMs: now}
	if change != nil {
		change(p.open, p.join)
	}
	p.opened, err = w.stage.Sign(p.open)
	must(w.t, err)
	if open := stream.HashOf(p.opened); p.join.OpenHash == nil {
		p.join.OpenHash = open[:]
	}
	if p.join.KeyCiphertext == nil {
		p.join.KeyEncapsulated, p.join.KeyCiphertext, err = seal.SealVerifyKey(w.task.Suite, p.leader.Public(), manifest,
			w.hash, stream.Hash(p.join.OpenHash), p.verify[:])
		must(w.t, err)
	}
	p.joined, err = w.helper.Sign(p.join)
	must(w.t, err)
	return p
}

func (p *pair) round() stream.Round     { return stream.Round(p.open.Round) }
func (p *pair) attempt() stream.Attempt { return stream.Attempt(p.open.Attempt) }

// x returns the attempt as the operators name it.
func (p *pair) x() split.Attempt {
	return split.Attempt{Task: p.w.hash, Round: p.open.Round, Number: p.open.Attempt, Open: stream.HashOf(p.opened),
		Join: stream.HashOf(p.joined)}
}

// putOpen and putJoin put the records, until they are stored.
func (p *pair) putOpen(ctx context.Context) {
	p.w.record(ctx, p.w.name.Open(p.round(), p.attempt()), p.opened)
}
func (p *pair) putJoin(ctx context.Context) {
	p.w.record(ctx, p.w.name.Join(p.round(), p.attempt()), p.joined)
}

func (w *world) record(ctx context.Context, subject string, data []byte) {
	w.t.Helper()
	for ctx.Err() == nil {
		r, err := w.broker.PutOnce(ctx, subject, data)
		if err == nil {
			if !r.Ours {
				w.t.Errorf("%s holds something else", subject)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// closeMessage returns the Close of the attempt.
func (p *pair) closeMessage(cutoff uint64, void bool) *wire.Close {
	x := p.x()
	return &wire.Close{Version: stream.Version, TaskHash: p.w.hash[:], Round: x.Round, Attempt: x.Number,
		ManifestHash: p.manifest[:], BatchHash: make([]byte, stream.HashSize), Cutoff: cutoff, Void: void, OpenHash: x.Open[:],
		JoinHash: x.Join[:]}
}

func (p *pair) close(ctx context.Context, cutoff uint64) {
	p.w.put(ctx, p.w.name.Close(p.round(), p.attempt()), p.w.stage, p.closeMessage(cutoff, false))
}

// leads and joins put the parts of an attempt in a scene.
func (s *scene) leads(p *pair) {
	s.does(fmt.Sprintf("the leader opens %d.%d", p.open.Round, p.open.Attempt), 5*time.Second, func() { p.putOpen(s.ctx) })
}

func (s *scene) joins(p *pair) {
	s.does(fmt.Sprintf("the helper joins %d.%d", p.join.Round, p.join.Attempt), 5*time.Second, func() { p.putJoin(s.ctx) })
}

// closesByTwo puts the Close of an attempt in a scene.
func (s *scene) closesByTwo(p *pair, cutoff uint64) {
	what := "which counts no report"
	if cutoff > 0 {
		what = "which counts its reports"
	}
	s.does(fmt.Sprintf("the leader closes %d.%d, %s", p.open.Round, p.open.Attempt, what), 10*time.Second,
		func() { p.close(s.ctx, cutoff) })
}

// mixByTwo runs one process of each operator until ctx ends, on folders of their own.
func (w *world) mixByTwo(ctx context.Context) {
	reader, err := w.broker.Reader(w.name)
	must(w.t, err)
	must(w.t, leaderfile.Make(w.leaderDir, w.stage.Public()))
	leads, err := leaderfile.Open(w.leaderDir, w.stage.Public())
	must(w.t, err)
	helps, err := folder.Open(w.helperDir, time.Second)
	must(w.t, err)
	leader, err := stage.New(stage.Config{Task: w.name, Records: w.broker, Reports: reader, PlaceServer: w.broker,
		Identity: w.stage, LearnerKey: w.learner.Public(), LeaseTTL: 10 * time.Second, Poll: time.Second,
		Leader: stage.Leader{HelperKey: w.helper.Public(), Exchange: w.broker, Folder: leads}})
	must(w.t, err)
	second, err := helper.New(helper.Config{Task: w.name, Records: w.broker, Exchange: w.broker, Folder: helps,
		Identity: w.helper, LeaderKey: w.stage.Public(), LearnerKey: w.learner.Public(), Lease: 10 * time.Second,
		Poll: time.Second})
	must(w.t, err)
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{leader.Run, second.Run} {
		group.Go(func() {
			err := run(ctx)
			if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				w.t.Error(err)
			}
		})
	}
	group.Wait()
	must(w.t, helps.Close())
}
