package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// maxTold bounds what a forger can have remembered and logged.
const maxTold = 1 << 10

// A view reads what learner and stage put, and lets through only what they signed for this task. Everything else is
// treated as not there and logged once: a device cannot tell a forger from a broken peer, and neither decides anything.
type view struct {
	records stream.Records
	task    stream.Task
	timeout time.Duration
	log     *slog.Logger

	told    map[string]bool // what was logged already
	failing bool            // the last read failed
}

// get reads a message, or the newest one of a pattern. It answers false where there is none that can be read now.
func (v *view) get(ctx context.Context, subject string, latest bool) (stream.Message, bool) {
	limited, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	read := v.records.Get
	if latest {
		read = v.records.Latest
	}
	m, err := read(limited, subject)
	switch {
	case err == nil || errors.Is(err, stream.ErrNotFound):
		if v.failing {
			v.failing = false
			v.log.Info("records of the task can be read again")
		}
		return m, err == nil
	case !v.failing && ctx.Err() == nil && !errors.Is(err, stream.ErrDisconnected): // at the end of a run nobody waits for the answer
		v.failing = true
		v.log.Warn("cannot read a record of the task; trying again", "subject", subject, "err", err)
	}
	return stream.Message{}, false
}

// ignore logs, once a subject, why a message is treated as not there.
func (v *view) ignore(subject string, err error) {
	if !v.told[subject] && len(v.told) < maxTold {
		v.told[subject] = true
		v.log.Warn("ignored a message that does not belong to this task", "subject", subject, "err", err)
	}
}

type ofTask interface {
	proto.Message
	GetTaskHash() []byte
}

// verified reads a message into m under a pinned key and answers its body.
func (v *view) verified(ctx context.Context, subject string, latest bool, terms *consent.Agreement, key ed25519.PublicKey, m ofTask) ([]byte, bool) {
	got, ok := v.get(ctx, subject, latest)
	if !ok {
		return nil, false
	}
	body, err := seal.Verify(got.Data, key, m)
	if err == nil {
		err = stream.CheckSubject(got.Subject, m)
	}
	if err == nil && !bytes.Equal(m.GetTaskHash(), terms.Hash[:]) {
		err = fmt.Errorf("task_hash %x: want %x", m.GetTaskHash(), terms.Hash)
	}
	if err != nil {
		v.ignore(got.Subject, err)
		return nil, false
	}
	return body, true
}

// readTask reads the Task under the learner key that it names itself; whether that key is the right one is the policy's
// question.
func (v *view) readTask(ctx context.Context) (*wire.Task, stream.Hash, bool) {
	subject := v.task.Task()
	got, ok := v.get(ctx, subject, false)
	if !ok {
		return nil, stream.Hash{}, false
	}
	var envelope wire.Signed
	var t wire.Task
	var body []byte
	err := stream.Unmarshal(got.Data, &envelope)
	if err == nil {
		body, err = seal.Verify(got.Data, envelope.Key, &t)
	}
	if err == nil && !bytes.Equal(envelope.Key, t.LearnerKey) {
		err = fmt.Errorf("signed by %x, which is not its learner_key %x", envelope.Key, t.LearnerKey)
	}
	if err == nil && t.Name != string(v.task) {
		err = fmt.Errorf("task %q: want %q", t.Name, v.task)
	}
	if err == nil {
		err = stream.CheckSubject(got.Subject, &t)
	}
	if err != nil {
		v.ignore(subject, err)
		return nil, stream.Hash{}, false
	}
	return &t, stream.HashOf(body), true
}

func (v *view) latestRound(ctx context.Context, terms *consent.Agreement) (*wire.Round, stream.Hash, bool) {
	var r wire.Round
	body, ok := v.verified(ctx, v.task.Rounds(), true, terms, terms.Task.LearnerKey, &r)
	if !ok {
		return nil, stream.Hash{}, false
	}
	return &r, stream.HashOf(body), true
}

func (v *view) end(ctx context.Context, terms *consent.Agreement) (*wire.End, bool) {
	var e wire.End
	_, ok := v.verified(ctx, v.task.End(), false, terms, terms.Task.LearnerKey, &e)
	return &e, ok
}

// latestOpen reads the newest attempt at a round whose key is one that reports can be sealed to.
func (v *view) latestOpen(ctx context.Context, terms *consent.Agreement, round stream.Round, manifest stream.Hash) (*wire.Open, participation.Attempt, bool) {
	var o wire.Open
	body, ok := v.verified(ctx, v.task.Opens(round), true, terms, terms.Task.StageKey, &o)
	if !ok {
		return nil, participation.Attempt{}, false
	}
	err := seal.CheckPublic(o.Suite, o.PublicKey)
	switch {
	case !bytes.Equal(o.ManifestHash, manifest[:]):
		err = fmt.Errorf("manifest_hash %x: want %x", o.ManifestHash, manifest)
	case o.Suite != terms.Task.Suite:
		err = fmt.Errorf("suite %v: want the task's, %v", o.Suite, terms.Task.Suite)
	}
	if err != nil {
		v.ignore(v.task.Open(round, stream.Attempt(o.Attempt)), err)
		return nil, participation.Attempt{}, false
	}
	return &o, participation.Attempt{Number: stream.Attempt(o.Attempt), Open: stream.HashOf(body)}, true
}

// closed reads the Close of an attempt, and the Open that stands beside it: the broker may have lost the one that a device sent to,
// and the attempt that closed is then another. Where no Open can be read yet, neither is there a Close that
// counts anybody.
func (v *view) closed(ctx context.Context, terms *consent.Agreement, round stream.Round, attempt stream.Attempt, manifest stream.Hash) (participation.Closed, bool) {
	var c wire.Close
	subject := v.task.Close(round, attempt)
	if _, ok := v.verified(ctx, subject, false, terms, terms.Task.StageKey, &c); !ok {
		return participation.Closed{}, false
	}
	if !bytes.Equal(c.ManifestHash, manifest[:]) {
		v.ignore(subject, fmt.Errorf("manifest_hash %x: want %x", c.ManifestHash, manifest))
		return participation.Closed{}, false
	}
	if c.Void { // whoever the attempt was
		return participation.Closed{Round: round, Attempt: participation.Attempt{Number: attempt}, Manifest: manifest, Cutoff: c.Cutoff, Void: true}, true
	}
	var o wire.Open
	body, ok := v.verified(ctx, v.task.Open(round, attempt), false, terms, terms.Task.StageKey, &o)
	if !ok {
		return participation.Closed{}, false
	}
	return participation.Closed{Round: round, Attempt: participation.Attempt{Number: attempt, Open: stream.HashOf(body)}, Manifest: manifest, Cutoff: c.Cutoff}, true
}
