package service

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A core decides, without effects, what the next committed state is. It is rebuilt from the store at every start.
type core struct {
	identity  *seal.Identity
	task      *wire.Task
	taskHash  stream.Hash
	stageKey  ed25519.PublicKey
	committed state.Checkpoint
	round     *wire.Round // announced or to be announced; nil when the task has ended
	manifest  stream.Hash // of round
	place     manifest.Place
	end       *wire.End // nil until the task has ended
}

// A commit is a change of the store that was decided and not yet written.
type commit struct {
	next    state.Checkpoint
	entries []state.Entry
	applied Applied // zero at the start
	record  Record
	model   []float64 // after a step; nil: as before
	// redone is the record of the previous round with a rollback that the stored rounds show; nil: no rollback.
	redone *Record
	before []byte // the model before that rollback
}

// begin returns the first commit: the signed task, the algorithm at its start, round 1 reserved.
func begin(identity *seal.Identity, body *wire.Task) (commit, error) {
	signed, err := identity.Sign(body)
	if err != nil {
		return commit{}, fmt.Errorf("sign the task: %w", err)
	}
	c, err := newCore(identity, signed)
	if err != nil {
		return commit{}, err
	}
	alg, err := learner.New(c.task.Plan)
	if err != nil {
		return commit{}, fmt.Errorf("build the algorithm: %w", err)
	}
	out := commit{next: state.Checkpoint{Cursor: state.Cursor{TaskHash: state.Hash(c.taskHash)}, Task: signed}}
	err = c.follow(&out, alg, false, pace{})
	return out, err
}

// newCore verifies a signed task of ours. It knows no committed state yet.
func newCore(identity *seal.Identity, signed []byte) (*core, error) {
	task := &wire.Task{}
	body, err := seal.Verify(signed, identity.Public(), task)
	if err != nil {
		return nil, fmt.Errorf("stored task: %w; is --identity the one that this state was begun with?", err)
	}
	if err := manifest.CheckTask(task); err != nil { // before it is published
		return nil, err
	}
	return &core{identity: identity, task: task, taskHash: stream.HashOf(body), stageKey: task.StageKey}, nil
}

// resume rebuilds the core of a committed state.
func resume(identity *seal.Identity, at state.Checkpoint) (*core, error) {
	c, err := newCore(identity, at.Task)
	if err != nil {
		return nil, err
	}
	if state.Hash(c.taskHash) != at.Cursor.TaskHash {
		return nil, fmt.Errorf("stored task hashes to %x, the cursor names %v: the state folder is damaged", c.taskHash,
			at.Cursor.TaskHash)
	}
	if _, err := c.algorithm(at); err != nil {
		return nil, err
	}
	c.committed = at
	if at.Ended() {
		c.end = &wire.End{}
		if _, err := seal.Verify(at.End, identity.Public(), c.end); err != nil {
			return nil, fmt.Errorf("stored end: %w", err)
		}
		return c, nil
	}
	c.round = &wire.Round{}
	body, err := seal.Verify(at.NextRound, identity.Public(), c.round)
	if err != nil {
		return nil, fmt.Errorf("stored round: %w", err)
	}
	if c.place, err = manifest.Follows(c.task, c.taskHash, c.round); err != nil {
		return nil, fmt.Errorf("stored round: %w", err)
	}
	if c.round.Round != at.Cursor.Round+1 {
		return nil, fmt.Errorf("stored round: it is round %d, want %d after the committed one: the state folder is damaged",
			c.round.Round, at.Cursor.Round+1)
	}
	c.manifest = stream.HashOf(body)
	return c, nil
}

func (c *core) algorithm(at state.Checkpoint) (learner.Algorithm, error) {
	return learner.Resume(c.task.Plan, at.Algorithm)
}

// apply returns the commit that consumes the batch of the announced round. p is the pace of its users. With finish, End
// follows the round.
func (c *core) apply(msg stream.Message, finish bool, p pace) (commit, error) {
	batch := &wire.Batch{}
	if _, err := seal.Verify(msg.Data, c.stageKey, batch); err != nil {
		return commit{}, fmt.Errorf("batch of round %d: %w", c.round.Round, err)
	}
	if err := c.validate(msg.Subject, batch); err != nil {
		return commit{}, fmt.Errorf("batch of round %d: %w", c.round.Round, err)
	}
	alg, err := c.algorithm(c.committed)
	if err != nil {
		return commit{}, err
	}
	out := commit{next: c.committed, applied: Applied{
		Attempt: batch.Attempt, Cohort: c.place.Cohort, BatchUsers: batch.Users, Void: batch.Void, Rejects: rejects(batch)}}
	hash := state.Hash(stream.HashOf(msg.Data))
	out.next.Cursor.Round, out.next.Cursor.BatchHash, out.next.Cursor.BatchSequence = c.round.Round, hash, msg.Sequence
	out.next.NextRound = nil
	if out.next.LastBatch, err = json.Marshal(summary(batch, c.place.Cohort)); err != nil {
		return commit{}, err
	}
	out.record.Unused = c.withdrawn(alg.Query())
	settled, err := c.settle(&out, batch, hash, alg)
	if err != nil {
		return commit{}, fmt.Errorf("batch of round %d: %w", c.round.Round, err)
	}
	out.entries = append(out.entries, settled)
	if err := c.follow(&out, alg, finish, p); err != nil {
		return commit{}, err
	}
	c.describe(&out, msg.Time, alg)
	return out, nil
}

// withdrawn reports whether the announced round has another point or frame than the method's query, because the model
// was rolled back since.
func (c *core) withdrawn(q method.Query) bool {
	if len(c.round.Point) == 0 || c.place.Phase.GetTop() == 0 {
		return false
	}
	return !slices.Equal(q.Point, c.round.Point) || q.Frame != nil && q.Frame.Clip != c.round.Frame.GetClip()
}

// describe fills in the record of a round. stored is the time at which its batch was stored; zero: now.
func (c *core) describe(out *commit, stored time.Time, alg learner.Algorithm) {
	a, r := &out.applied, &out.record
	if stored.IsZero() {
		stored = time.Now()
	}
	spent := out.next.Ledger.Spent()
	*r = Record{Round: c.round.Round, Time: stored.UTC(), Users: out.lastUsers(), UsersSoFar: out.next.Ledger.Users(),
		Steps: out.next.Ledger.Steps, Void: a.Void, Unused: r.Unused, EpsilonSpent: spent.Epsilon, DeltaSpent: spent.Delta}
	if c.place.Point() == 0 {
		return
	}
	if r.Clip = c.task.Plan.GetClipNorm(); c.round.Frame != nil {
		r.Clip = c.round.Frame.Clip
	}
	if a.Void || r.Unused {
		return
	}
	out.model = alg.Model()
	if v := a.Validation; v != nil {
		r.Scores.Loss = &v.Loss.Last
		if v.Accuracy != nil {
			r.Scores.Accuracy = &v.Accuracy.Last
		}
	}
	if t := a.Tracking; t != nil {
		r.Surprise, r.Alarm, r.Memory, r.Error = &t.Surprise, t.Alarm, &t.Memory, &t.Error
	}
}

// validate checks a batch against the round that it answers.
func (c *core) validate(subject string, b *wire.Batch) error {
	if err := stream.CheckSubject(subject, b); err != nil {
		return err
	}
	if !bytes.Equal(b.TaskHash, c.taskHash[:]) {
		return fmt.Errorf("it is of another task of this name: %w", ErrOtherLearner)
	}
	if b.Round != c.round.Round {
		return fmt.Errorf("it says round %d", b.Round)
	}
	if !bytes.Equal(b.ManifestHash, c.manifest[:]) {
		return errors.New("another round manifest: the stage answered a round that we did not announce")
	}
	if err := errors.Join(manifest.CheckAttempt(c.place.Plan, b), manifest.CheckSpent(c.task, b)); err != nil {
		return err
	}
	if b.Void {
		return nil
	}
	m := c.place.Phase.Mechanism
	most := c.place.Cohort + uint64(m.MaxBundle) - 1
	if b.Users < c.place.Phase.Minimum || b.Users > most {
		return fmt.Errorf("%d users: the round allows %d to %d", b.Users, c.place.Phase.Minimum, most)
	}
	params, err := manifest.Params(m)
	if err != nil {
		return err
	}
	if want := params.NoiseTrials(b.Users, c.place.Planned); b.NoiseTrials != want {
		return fmt.Errorf("%d noise trials: %d users of %d owe %d", b.NoiseTrials, b.Users, c.place.Planned, want)
	}
	return nil
}

// settle takes the step of a real batch, and returns the entry that settles the round in the ledger. A void batch takes
// no step; in an interactive phase it uses one up.
func (c *core) settle(out *commit, b *wire.Batch, hash state.Hash, alg learner.Algorithm) (state.Entry, error) {
	if b.Void {
		if c.place.Interactive() { // its users answer no more rounds than planned
			if err := alg.Skip(); err != nil {
				return state.Entry{}, err
			}
		}
		return out.next.Ledger.Void(b.Round, b.Attempt, hash)
	}
	params, err := manifest.Params(c.place.Phase.Mechanism)
	if err != nil {
		return state.Entry{}, err
	}
	estimate, err := method.EstimateMean(params, b.Totals, b.Users, b.NoiseTrials)
	if err != nil {
		return state.Entry{}, err
	}
	if out.record.Unused { // and at the point of the method nobody was asked
		err = alg.Skip()
	} else {
		err = alg.Step(estimate)
	}
	if err != nil {
		return state.Entry{}, err
	}
	out.applied.NoiseStd = math.Sqrt(estimate.PrivacyVariance)
	out.applied.RoundingStd = math.Sqrt(estimate.RoundingVariance)
	if c.place.Point() > 0 {
		gradient := estimate.Gradient[:len(estimate.Gradient)-int(c.place.Phase.Mechanism.Scores)]
		out.applied.GradientNorm = convex.Norm(gradient)
	}
	cost, err := c.cost(c.place)
	if err != nil {
		return state.Entry{}, err
	}
	return out.next.Ledger.Spend(state.Entry{
		Round: b.Round, Attempt: b.Attempt, Users: b.Users, NoiseTrials: b.NoiseTrials,
		Epsilon: cost.Epsilon, Delta: cost.Delta, TaskHash: state.Hash(c.taskHash), BatchHash: hash,
	})
}
