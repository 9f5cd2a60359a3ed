package stage

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// An attempt is the only holder of a round's secrets: the key, the running totals, the ids that were counted. It
// ends in close or erase, after which it holds none.
type attempt struct {
	*facts
	round
	number  uint64
	mixer   *shuffle.Mixer
	key     *seal.RoundKey
	context seal.Context
	started time.Time

	largest int             // bytes of the largest report message that can be one
	cutoff  uint64          // highest sequence examined in this attempt
	counts  [reasons]uint64 // messages by what became of them
	report  wire.Report     // scratch
	ids     []shuffle.ReportID
}

// newAttempt lays the front floor, which comes before the key is published, and draws the key.
func newAttempt(f *facts, r round, number uint64, now time.Time) (*attempt, error) {
	mixer, err := shuffle.NewMixer(r.mixer)
	if err != nil {
		return nil, fmt.Errorf("round %d: %w", r.number, err)
	}
	key, err := seal.NewRoundKey(f.task.Suite)
	if err != nil {
		mixer.Erase()
		return nil, fmt.Errorf("round %d: %w", r.number, err)
	}
	bundle := int(r.mixer.MaxBundle)
	return &attempt{
		facts: f, round: r, number: number, mixer: mixer, key: key, started: now,
		context: seal.Context{
			ManifestHash: r.manifest, Attempt: number, StageKey: f.Identity.Public(), Public: key.Public(),
		},
		largest: seal.ReportSize(f.task.Suite, bundle, bundle*r.mixer.Params.ReportBytes()),
	}, nil
}

// open is the signed Open.
func (a *attempt) open() ([]byte, error) {
	return a.Identity.Sign(&wire.Open{
		Version: stream.Version, TaskHash: a.taskHash[:], Round: a.round.number, Attempt: a.number,
		ManifestHash: a.manifest[:], Suite: a.task.Suite, PublicKey: a.key.Public(), Instance: a.Instance[:],
		StartedUnixMs:   a.started.UnixMilli(),
		JoinProbability: a.crowd.open(float64(a.round.mixer.Cohort), a.deadline, a.started),
	})
}

// examine counts a report if it is one of this attempt. Nothing of it is kept but its ids.
func (a *attempt) examine(m *stream.Message) Reason {
	reason := a.admit(m)
	a.counts[reason]++
	if a.crowd.users = a.mixer.Users(); reason == WrongRound {
		a.crowd.late++
	}
	tell(a.Observer.Report, reason)
	return reason
}

func (a *attempt) admit(m *stream.Message) Reason {
	at, err := stream.ParseSubject(m.Subject)
	switch {
	case err != nil || at.Verb != "report" || at.Task != a.Task:
		return Malformed
	case uint64(at.Round) != a.round.number:
		return WrongRound
	case uint64(at.Attempt) != a.number:
		return WrongAttempt
	}
	// Opened or not, what was looked at is below the cutoff: too high a cutoff only leaves a user charged.
	a.cutoff = max(a.cutoff, m.Sequence)
	if len(m.Data) > a.largest {
		return Length
	}
	r := &a.report
	defer a.forget()
	var version *stream.VersionError
	switch err := stream.ReadReport(m.Data, r); {
	case errors.As(err, &version):
		return Version
	case err != nil:
		return Malformed
	case stream.Hash(r.TaskHash) != a.taskHash:
		return WrongTask
	case uint64(len(r.Ids)) > a.round.mixer.MaxBundle:
		return Bundle
	}
	enc, ciphertext := seal.SealedSize(a.task.Suite, len(r.Ids)*a.round.mixer.Params.ReportBytes())
	if len(r.Encapsulated) != enc || len(r.Ciphertext) != ciphertext {
		return Length
	}
	plaintext, err := a.key.Open(a.context, r)
	if err != nil {
		return Undecryptable
	}
	defer clear(plaintext)
	a.ids = a.ids[:0]
	for _, id := range r.Ids {
		a.ids = append(a.ids, shuffle.ReportID(id))
	}
	return reasonOf(a.mixer.Add(a.ids, plaintext))
}

// forget lets go of the message that was read last. Its bytes are the caller's to overwrite: with SUITE_NONE they are plaintext.
func (a *attempt) forget() {
	r := &a.report
	clear(r.Ids)
	r.TaskHash, r.Ids, r.Encapsulated, r.Ciphertext = nil, r.Ids[:0], nil, nil
}

// room is how many users may still come, at least 1.
func (a *attempt) room() uint64 {
	return max(a.round.mixer.Cohort, a.mixer.Users()+1) - a.mixer.Users()
}

// deadlineAt is when the minimum becomes enough; zero: never.
func (a *attempt) deadlineAt() time.Time {
	if a.deadline == 0 {
		return time.Time{}
	}
	return a.started.Add(a.deadline)
}

// ripe says that the attempt can be closed: at the planned cohort, or past the deadline with the minimum.
func (a *attempt) ripe(now time.Time) bool {
	at, users := a.deadlineAt(), a.mixer.Users()
	late := !at.IsZero() && !now.Before(at)
	return users >= a.round.mixer.Cohort || (late && users >= a.round.mixer.Minimum)
}

// A release is the two messages that may leave the stage, in this order, and what metrics say of them.
type release struct {
	claim, batch []byte
	round        round
	attempt      uint64
	users        uint64
	started      time.Time
}

// close fixes the cutoff, tops up, lays the back floor, erases key and totals, and signs what may be released.
func (a *attempt) close() (*release, error) {
	cutoff := a.cutoff
	r, err := a.mixer.Close()
	a.erase()
	if err != nil {
		return nil, fmt.Errorf("round %d, attempt %d: %w", a.round.number, a.number, err)
	}
	out := &release{round: a.round, attempt: a.number, users: r.Users, started: a.started}
	out.claim, err = a.Identity.Sign(&wire.Claim{
		Version: stream.Version, TaskHash: a.taskHash[:], Round: a.round.number, Attempt: a.number,
		ManifestHash: a.manifest[:], Instance: a.Instance[:],
	})
	if err != nil {
		return nil, err
	}
	out.batch, err = a.Identity.Sign(&wire.Batch{
		Version: stream.Version, TaskHash: a.taskHash[:], Round: a.round.number, Attempt: a.number,
		ManifestHash: a.manifest[:], Users: r.Users, NoiseTrials: r.NoiseTrials, Totals: r.Totals,
		Cutoff: cutoff, Rejects: rejects(a.counts),
	})
	clear(r.Totals)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// erase overwrites and drops the bytes of a batch that lost.
func (r *release) erase() {
	clear(r.batch)
	r.batch = nil
}

// erase drops key, totals and ids. It may be called again.
func (a *attempt) erase() {
	a.key.Erase()
	a.mixer.Erase()
	a.ids = nil
	proto.Reset(&a.report)
}
