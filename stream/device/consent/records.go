package consent

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// ReadTask verifies the record of a task under the learner key that it names itself, and returns its hash. Whether that
// key is the right one is the policy's question. An error means that the record counts as not there.
func ReadTask(name stream.Task, got stream.Message) (*wire.Task, stream.Hash, error) {
	var envelope wire.Signed
	var t wire.Task
	if err := stream.Unmarshal(got.Data, &envelope); err != nil {
		return nil, stream.Hash{}, err
	}
	body, err := seal.Verify(got.Data, envelope.Key, &t)
	switch {
	case err != nil:
	case !bytes.Equal(envelope.Key, t.LearnerKey):
		err = fmt.Errorf("signed by %x, which is not its learner_key %x", envelope.Key, t.LearnerKey)
	case t.Name != string(name):
		err = fmt.Errorf("task %q: want %q", t.Name, name)
	default:
		err = stream.CheckSubject(got.Subject, &t)
	}
	if err != nil {
		return nil, stream.Hash{}, err
	}
	return &t, stream.HashOf(body), nil
}

// An Announcement is a Task as it was announced, with the hash by which its records name it. It verifies them.
type Announcement struct {
	Task *wire.Task
	Hash stream.Hash
}

// HasGrants reports whether each report has a token.
func (a Announcement) HasGrants() bool { return manifest.HasGrants(a.Task) }

// HasOperators reports whether reports are shared between two operators: trust split.
func (a Announcement) HasOperators() bool { return manifest.HasOperators(a.Task.Plan) }

type ofTask interface {
	proto.Message
	GetTaskHash() []byte
}

// verify takes a record into m under a pinned key and returns its body.
func (a Announcement) verify(got stream.Message, key ed25519.PublicKey, m ofTask) ([]byte, error) {
	body, err := seal.Verify(got.Data, key, m)
	if err == nil {
		err = stream.CheckSubject(got.Subject, m)
	}
	if err == nil && !bytes.Equal(m.GetTaskHash(), a.Hash[:]) {
		err = fmt.Errorf("task_hash %x: want %x", m.GetTaskHash(), a.Hash)
	}
	return body, err
}

// ReadRound verifies a record that holds a Round of the task, and returns its manifest hash. An error means that the
// record counts as not there, here and in the functions below.
func (a Announcement) ReadRound(got stream.Message) (*wire.Round, stream.Hash, error) {
	var m wire.Round
	body, err := a.verify(got, a.Task.LearnerKey, &m)
	return &m, stream.HashOf(body), err
}

// ReadOpen verifies a record that holds an attempt at the round with this manifest, with a key that reports can be
// sealed to. It returns the hash that distinguishes the attempt from others of its number: the hash of the body, or, in
// a task of two operators, which name an attempt by it, of the whole record with its signature.
func (a Announcement) ReadOpen(got stream.Message, manifest stream.Hash) (*wire.Open, stream.Hash, error) {
	var o wire.Open
	body, err := a.verify(got, a.Task.StageKey, &o)
	if err != nil {
		return nil, stream.Hash{}, err
	}
	switch err = seal.CheckPublic(o.Suite, o.PublicKey); {
	case o.Suite != a.Task.Suite:
		err = fmt.Errorf("suite %v: want the task's, %v", o.Suite, a.Task.Suite)
	case !bytes.Equal(o.ManifestHash, manifest[:]):
		err = otherManifest(o.ManifestHash, manifest)
	case o.PlacesMs != 0 && !a.Task.Plan.Places:
		err = fmt.Errorf("places_ms %d: want 0, the plan has no places", o.PlacesMs)
	}
	if a.HasOperators() {
		body = got.Data
	}
	return &o, stream.HashOf(body), err
}

// ReadJoin verifies a record that holds the helper's part of an attempt at the round with this manifest, with a key
// that reports can be sealed to. It returns the hash of the record. A task of one operator names no helper's key, so
// that it has none.
func (a Announcement) ReadJoin(got stream.Message, manifest stream.Hash) (*wire.Join, stream.Hash, error) {
	var j wire.Join
	if _, err := a.verify(got, a.Task.HelperKey, &j); err != nil {
		return nil, stream.Hash{}, err
	}
	var err error
	switch err = seal.CheckPublic(j.Suite, j.PublicKey); {
	case j.Suite != a.Task.Suite:
		err = fmt.Errorf("suite %v: want the task's, %v", j.Suite, a.Task.Suite)
	case !bytes.Equal(j.ManifestHash, manifest[:]):
		err = otherManifest(j.ManifestHash, manifest)
	}
	return &j, stream.HashOf(got.Data), err
}

// CheckPair refuses an Open and a Join, both read before, that are not the two parts of one attempt: the Join names
// another Open than the one with this hash, or both have one key.
func CheckPair(o *wire.Open, hash stream.Hash, j *wire.Join) error {
	switch {
	case !bytes.Equal(j.OpenHash, hash[:]) || o.Round != j.Round || o.Attempt != j.Attempt:
		return fmt.Errorf("open_hash %x of round %d, attempt %d: want %x of %d, %d", j.OpenHash, j.Round, j.Attempt, hash, o.Round,
			o.Attempt)
	case bytes.Equal(o.PublicKey, j.PublicKey):
		return errors.New("public_key is that of its Open: want two keys")
	}
	return nil
}

// ReadBeside verifies the Open of a Close's attempt, whatever its key is, and returns the hash of its body.
func (a Announcement) ReadBeside(got stream.Message) (stream.Hash, error) {
	body, err := a.verify(got, a.Task.StageKey, &wire.Open{})
	return stream.HashOf(body), err
}

// ReadClaim verifies a record that holds the Claim of the round with this manifest.
func (a Announcement) ReadClaim(got stream.Message, round stream.Hash) error {
	var c wire.Claim
	_, err := a.verify(got, a.Task.StageKey, &c)
	if err == nil && !bytes.Equal(c.ManifestHash, round[:]) {
		err = otherManifest(c.ManifestHash, round)
	}
	if err == nil {
		err = manifest.CheckAttempt(a.Task.Plan, &c)
	}
	return err
}

// ReadClose verifies a record that holds the Close of an attempt at the round with this manifest.
func (a Announcement) ReadClose(got stream.Message, round stream.Hash) (*wire.Close, error) {
	var c wire.Close
	_, err := a.verify(got, a.Task.StageKey, &c)
	if err == nil && !bytes.Equal(c.ManifestHash, round[:]) {
		err = otherManifest(c.ManifestHash, round)
	}
	if err == nil {
		err = manifest.CheckAttempt(a.Task.Plan, &c)
	}
	return &c, err
}

// ReadEnd verifies a record that holds the End of the task.
func (a Announcement) ReadEnd(got stream.Message) (*wire.End, error) {
	var e wire.End
	_, err := a.verify(got, a.Task.LearnerKey, &e)
	return &e, err
}

func otherManifest(got []byte, want stream.Hash) error {
	return fmt.Errorf("manifest_hash %x: want %x", got, want)
}
