package stage

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// The environment holds the state that all phases share. Only enlisting writes to it, with two exceptions: phases that
// open attempts write the fields about the last attempt, and phases that put or read records write the fields about the
// newest record.
type environment struct {
	Config
	lease   *lease
	jitter  *rand.Rand
	backlog backlog // of the last attempt that this process opened
	floods  floods
	places  *places
	wakes   bool // the broker announces records
	older   older
	// stream sequence of the newest record of attempts since this process found the newest round; 0: none yet
	last uint64

	// Of trust split: the round that the helper released last, with its signed Share; since when the helper does not
	// answer, zero where it does; attempts in a row that died with the helper.
	released split.Attempt
	decided  stream.Round // the newest round whose batch the broker showed, not a void one
	signed   []byte
	helper   time.Time
	deaths   int
	foreign  int // records in a row under which an attempt was to be opened, and that this stage did not sign

	task     *wire.Task // nil before enlisting is over
	tokens   *tokens    // nil: reports have none
	taskHash stream.Hash
	learner  ed25519.PublicKey
}

// jittered returns a poll interval with jitter, so that many stages of many tasks do not read in step.
func (e *environment) jittered() time.Duration {
	return e.Poll/2 + time.Duration(e.jitter.Int64N(int64(e.Poll)))
}

// A round is one round as the learner announced it, checked against the task.
type round struct {
	number   stream.Round
	step     stream.Step
	manifest stream.Hash
	mixer    shuffle.Config
	waiting  uint64        // users that the plan has for this round and those after it
	deadline time.Duration // 0: none
	// of a Round that was put again after it was removed: the newest when it was, where none was ever lost; else 0
	before stream.Round
}

// enlist takes the Task: signed by the learner it names, made for our key, runnable.
func (e *environment) enlist(m *stream.Message) error {
	var envelope wire.Signed
	var task wire.Task
	var version *stream.VersionError
	err := stream.Unmarshal(m.Data, &envelope)
	if err == nil {
		_, err = seal.Verify(m.Data, envelope.Key, &task)
	}
	switch {
	case errors.As(err, &version) && seal.Enveloped(m.Data):
		return fmt.Errorf("%s: %w", m.Subject, err)
	case err != nil: // no learner signed it
		return fmt.Errorf("%s %w: %w", m.Subject, seal.ErrNotWritten, err)
	}
	pinned := e.LearnerKey
	if len(pinned) == 0 {
		pinned = envelope.Key // trusted at first use; it must be the one that the body names
	}
	body, err := seal.Verify(m.Data, pinned, &task)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Subject, err)
	}
	sizes, err := e.suits(&task, pinned)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Subject, err)
	}
	e.backlog.most = uint64(sizes.Waiting)
	e.task, e.taskHash, e.learner = &task, stream.HashOf(body), pinned
	if manifest.HasGrants(&task) {
		if e.tokens, err = newTokens(&task, e.taskHash); err != nil {
			return fmt.Errorf("%s: %w", m.Subject, err)
		}
	}
	e.Prefetch = cmp.Or(e.Prefetch, defaultPrefetch)
	if e.floors() {
		e.Prefetch, e.Workers = min(e.Prefetch, maxPanPrefetch), 1
	}
	return nil
}

// floors reports whether the stage lays floors under the task's trust, so that one intrusion is part of the guarantee.
func (e *environment) floors() bool {
	t, err := manifest.Trust(e.task.Plan.Trust)
	return err == nil && t.HasIntruder()
}

func (e *environment) suits(task *wire.Task, signer ed25519.PublicKey) (sizes manifest.Sizes, err error) {
	switch {
	case task.Name != string(e.Task):
		return sizes, fmt.Errorf("holds a task named %q", task.Name)
	case !signer.Equal(ed25519.PublicKey(task.LearnerKey)):
		return sizes, fmt.Errorf("names the learner %x, but %x signed it", task.LearnerKey, []byte(signer))
	case !e.Identity.Public().Equal(ed25519.PublicKey(task.StageKey)):
		return sizes,
			fmt.Errorf("names the stage %x, this one is %x: start with the identity file that the task was published with",
				task.StageKey, []byte(e.Identity.Public()))
	}
	if err := manifest.CheckTask(task); err != nil {
		return sizes, err
	}
	if manifest.HasOperators(task.Plan) {
		if err := e.leads(task.HelperKey, task.LearnerKey); err != nil {
			return sizes, err
		}
	}
	if sizes, err = manifest.SizesOf(task, ReasonNames()); err != nil {
		return sizes, err
	}
	return sizes, sizes.Fit(e.Limits)
}

// read verifies a record under the pinned key of its writer and checks that it is of this task and subject.
func (e *environment) read(m *stream.Message, by ed25519.PublicKey, into proto.Message) (body []byte, err error) {
	return seal.VerifyRecord(*m, by, e.taskHash, into)
}

// readRound verifies a Round and that it follows the task.
func (e *environment) readRound(m *stream.Message) (round, error) {
	var r wire.Round
	body, err := e.read(m, e.learner, &r)
	if err != nil {
		return round{}, err
	}
	at, err := manifest.Follows(e.task, e.taskHash, &r)
	if err != nil {
		return round{}, fmt.Errorf("%s: %w", m.Subject, err)
	}
	cfg, err := at.Mixer()
	if err != nil {
		return round{}, fmt.Errorf("%s: %w", m.Subject, err)
	}
	cfg.Entropy = e.Entropy
	out := round{number: stream.Round(r.Round), step: stream.Step(r.Step), manifest: stream.HashOf(body), mixer: cfg, waiting: manifest.Waiting(at,
		r.Step),
		deadline: at.Deadline}
	if e.leftBehind(r.Round, m.Sequence) { // Round r has sequence r+1, or a few more where records were lost
		out.before = stream.Round(m.Sequence) - 2
		return out, nil
	}
	e.lease.newest = max(e.lease.newest, out.number)
	return out, nil
}

// readClaim verifies a claim of a round.
func (e *environment) readClaim(m *stream.Message, r round) (*wire.Claim, error) {
	var c wire.Claim
	if _, err := e.read(m, e.Identity.Public(), &c); err != nil {
		return nil, err
	}
	if stream.Hash(c.ManifestHash) != r.manifest {
		return nil, fmt.Errorf("%s claims manifest %x, round %d has %x: another learner announced the same round",
			m.Subject, c.ManifestHash, r.number, r.manifest)
	}
	return &c, nil
}
