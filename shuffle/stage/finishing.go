package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/wire"
)

// voidHelper: the helper released the round, or its share gives no totals, so the round has no result.
const voidHelper = "helper"

// ErrFolder is returned by Run and by a Folder if the folder of a leader does not know what its identity has done in a task. A
// restart changes nothing.
var ErrFolder = errors.New("--state does not know what the stage of this task has done")

// looking reads from the folder and the helper's Share how far a round of two operators has come, in an earlier life of
// this process or in another process with the same folder.
type looking struct {
	stateless
	*environment
	round
	marked uint64 // the highest round that the helper said it has marked
	found  *Found
	begun  bool // the folder has noted that the stage works on the task
	again  bool // something of the round was found outside of the folder before
	sure   bool // the folder was looked into since the helper's Share was found
	seen   bool // nothing of an earlier life was found at the broker where the folder knows nothing
}

func (p *looking) String() string { return fmt.Sprintf("looking how far round %d has come", p.number) }

func (p *looking) next(time.Time) effects {
	switch {
	case p.found == nil:
		return effects{call: find, needs: leased}
	case !p.found.Begun && !p.seen:
		return effects{call: latest, subject: p.Task.Opens(p.number), needs: leased}
	case !p.begun:
		return effects{call: begin, needs: leased}
	}
	return effects{call: get, subject: p.Task.Share(p.number), needs: leased}
}

func (p *looking) handle(now time.Time, did effects, r result) (phase, error) {
	switch did.call {
	case find:
		p.found = r.found
		p.released, p.signed = r.found.Marks.Released, r.found.Signed
		if p.found.Begun && uint64(p.decided) > p.released.Round {
			return nil, Lacking(fmt.Sprintf("round %d was released, and the newest that it knows is %d", p.decided, p.released.Round))
		}
		return p, nil
	case latest:
		// A folder that was lost, or is another, knows of no release that its identity may have made.
		if p.number > 1 || p.newestAttempt(r.message) > 0 {
			return nil, Lacking(fmt.Sprintf("it knows nothing of this task, and round %d is not its first", p.number))
		}
		p.seen = true
		return p, nil
	case begin:
		p.begun = true
		return p, nil
	}
	share, err := p.readShare(r.message)
	if err != nil {
		p.Logger.Warn("a Share that the helper did not sign", "round", p.number, "error", err)
		share = split.Share{}
	}
	found, m := p.found, p.found.Marks
	if own := found.Prepared; own != nil && own.X().Round == uint64(p.number) && stream.Hash(own.Note.Manifest) != p.manifest {
		p.Logger.Error("the broker shows another round of a number than the one that its users answered: waiting for that one",
			"round", p.number)
		return &seeking{environment: p.environment, pause: pause{until: now.Add(p.jittered())}}, nil
	}
	if m.Released.Round == uint64(p.number) && m.Released == m.Prepared && found.Prepared != nil {
		return p.finish(found.Signed)
	}
	switch finding := m.Find(uint64(p.number), share.X, p.marked); {
	case finding == split.Void && !p.sure: // another process may have prepared the round since
		p.found, p.sure = nil, true
		return p, nil
	case finding == split.Void:
		p.Logger.Error("the helper has released the round, or will not take part in it, and nothing of it is here",
			"round", p.number)
		return voidShared(p.environment, p.round, share.X, voidHelper)
	case finding == split.Resume && found.Prepared != nil:
		signed := []byte(nil)
		if r.message != nil && share.X == m.Prepared {
			signed = r.message.Data
		}
		return p.finish(signed)
	case finding == split.Resume: // its key is overwritten: it died, and a crash kept the marks
		return &finishing{environment: p.environment, round: p.round, dropped: m.Prepared}, nil
	}
	return &inspecting{environment: p.environment, round: p.round, folder: p.again}, nil
}

// Lacking returns the error for a leader's folder that was lost, assembled from parts, or restored from a copy: a round
// that it does not know could be released again. The error wraps ErrFolder.
func Lacking(why string) error {
	return fmt.Errorf("%w: %s. Start with the folder that was made with its key. Where that is lost, end the task: a new one "+
		"needs a new identity, which ingest keygen leader --state DIR makes", ErrFolder, why)
}

// finish goes on with the prepared share, and with the helper's Share if it is known.
func (p *looking) finish(signed []byte) (phase, error) {
	next := &finishing{environment: p.environment, round: p.round, ending: split.ResumeEnding(*p.found.Prepared)}
	if signed != nil {
		share, err := splitwire.VerifyShare(signed, p.Leader.HelperKey)
		if err != nil {
			return nil, fmt.Errorf("the helper's Share in --state: %w", err)
		}
		next.ending.Share(share, signed)
	}
	return next.step(time.Time{})
}

// readShare verifies the helper's Share of a round; nil is the zero Share.
func (e *environment) readShare(m *stream.Message) (split.Share, error) {
	if m == nil {
		return split.Share{}, nil
	}
	var w wire.Share
	if _, err := e.read(m, e.Leader.HelperKey, &w); err != nil {
		return split.Share{}, err
	}
	return splitwire.VerifyShare(m.Data, e.Leader.HelperKey)
}

// finishing carries an attempt of two operators from its prepared share to the batch, or to its death. After the first
// finish is sent it ends by the helper's signed word alone, never by time.
type finishing struct {
	*environment
	round
	ending  *split.Ending // nil: only dropped is to be done
	dropped split.Attempt // the attempt to remove from the marks
	started time.Time
	opened  uint64

	instance split.Instance // of the helper's process; zero: any process
	finish   []byte         // signed, the same each time
	times    int            // that it was sent
	silent   time.Time      // when the helper replied last, or the first finish was sent
	look     bool           // the Share of the round is read next
}

func (p *finishing) String() string {
	return fmt.Sprintf("finishing round %d with the helper", p.number)
}

// abandon leaves the share in the folder, from which any process goes on.
func (p *finishing) abandon() {}

func (p *finishing) next(now time.Time) effects {
	if p.ending == nil {
		return effects{call: overwrite, x: p.dropped, needs: leased}
	}
	switch p.ending.Step() {
	case split.StepStore:
		return effects{call: prepared, prepared: p.ending.Prepared(), needs: leased, drains: true}
	case split.StepRelease:
		return effects{call: keep, x: p.ending.Prepared().X(), data: p.ending.Signed(), needs: leased, drains: true}
	case split.StepDrop:
		return effects{call: overwrite, x: p.ending.Prepared().X(), needs: leased, drains: true}
	}
	if p.look {
		return effects{call: get, subject: p.Task.Share(p.number), needs: leased, drains: true}
	}
	return effects{call: exchanged, x: p.ending.Prepared().X(), data: p.finish, instance: p.instance, needs: leased, drains: true,
		until: now.Add(split.Again(0, 0, p.LeaseTTL, p.times))}
}

func (p *finishing) handle(now time.Time, did effects, r result) (phase, error) {
	switch did.call {
	case overwrite:
		if p.ending == nil {
			return &looking{environment: p.environment, round: p.round}, nil
		}
		p.ending.Dropped()
	case prepared:
		p.ending.Stored(r.ours)
	case keep:
		p.ending.Released(r.ours)
		if r.ours {
			p.released, p.signed = did.x, did.data
		}
	case get:
		p.look = false
		if share, err := p.readShare(r.message); err == nil && r.message != nil {
			p.ending.Share(share, r.message.Data)
		}
	case exchanged:
		if p.times == 0 {
			p.silent = now
		}
		p.times, p.look = p.times+1, true
		if r.answer == nil {
			p.helperAway(p.silent, p.times > 2)
			break
		}
		message, ok := p.heard(r.answer, nil)
		if !ok {
			break
		}
		p.helper, p.silent = time.Time{}, now
		switch m := message.(type) {
		case split.Share:
			p.ending.Share(m, r.answer)
		case *split.Gone:
			p.ending.Gone(*m)
		case *split.Differs:
			p.ending.Differs(*m)
		}
	}
	return p.step(now)
}

// step returns the phase that the ending leads to, itself as long as it goes on.
func (p *finishing) step(now time.Time) (phase, error) {
	var err error
	switch p.ending.Step() {
	case split.StepSend:
		if p.finish == nil {
			f := p.ending.Finish()
			p.finish, err = splitwire.Sign(p.Identity, &f)
		}
		return p, err
	case split.StepBatch:
		return p.release()
	case split.StepDied:
		p.Logger.Warn("the helper no longer holds the attempt: opening the round again, which costs its users nothing", "round",
			p.number)
		observe.Tell2(p.Observer.Dropped, p.number, stream.Attempt(p.ending.Prepared().X().Number))
		return again(p.environment, p.round, stream.Attempt(p.ending.Prepared().X().Number)+1, now), nil
	case split.StepLook:
		return &looking{environment: p.environment, round: p.round, marked: p.ending.Marked()}, nil
	}
	return p, nil
}

// release puts both shares together, and signs the two messages that follow from them: the same in every process.
func (p *finishing) release() (phase, error) {
	at := p.ending.Prepared()
	x := at.X()
	out, err := p.ending.Release(p.round.mixer.Params)
	if err != nil {
		p.Logger.Error("the helper's share gives no totals: its operator is at fault, or its program is another", "round",
			p.number, "error", err)
		return voidShared(p.environment, p.round, x, voidHelper)
	}
	defer clear(out.Totals)
	r := &release{round: p.round, attempt: stream.Attempt(x.Number), users: out.Users, started: p.started, opened: p.opened,
		instance: [stream.InstanceSize]byte(x.Open[:stream.InstanceSize])}
	if r.claim, err = p.Identity.Sign(&wire.Claim{
		Version: stream.Version, TaskHash: p.taskHash[:], Round: x.Round, Attempt: x.Number, ManifestHash: p.manifest[:],
		Instance: r.instance[:], OpenHash: x.Open[:], JoinHash: x.Join[:],
	}); err != nil {
		return nil, err
	}
	hashes := make([]grant.Hash, len(at.Note.Spent))
	for i, h := range at.Note.Spent {
		hashes[i] = h
	}
	spent, err := p.spend(r, hashes)
	if err != nil {
		return nil, err
	}
	r.batch, err = p.Identity.Sign(&wire.Batch{
		Version: stream.Version, TaskHash: p.taskHash[:], Round: x.Round, Attempt: x.Number, ManifestHash: p.manifest[:],
		Users: out.Users, NoiseTrials: out.NoiseTrials, Totals: out.Totals, Cutoff: at.Note.Cutoff,
		Rejects: sharedRejects(out.Rejects), OpenHash: x.Open[:], JoinHash: x.Join[:],
		SpentHash: spent,
	})
	if err != nil {
		return nil, err
	}
	p.deaths = 0
	return &marking{environment: p.environment, release: r}, nil
}

// helperAway notes since when the helper has not replied, and logs that once, when it is sure.
func (e *environment) helperAway(since time.Time, sure bool) {
	if sure && e.helper.IsZero() {
		e.helper = since
		e.Logger.Warn("the helper does not answer: its process is away, or the broker does not let it hear. The round waits",
			"subject", e.Task.Prepares())
	}
}

// reopening waits a while before it opens a round again after an attempt that the helper did not hold to its end.
type reopening struct {
	stateless
	*environment
	round
	attempt stream.Attempt
	until   time.Time
}

// again returns the phase that opens the next attempt, after longer each time.
func again(e *environment, r round, number stream.Attempt, now time.Time) phase {
	wait := split.After(e.deaths)
	e.deaths++
	return &reopening{environment: e, round: r, attempt: number, until: now.Add(wait)}
}

func (p *reopening) String() string { return fmt.Sprintf("about to open round %d again", p.number) }

func (p *reopening) next(now time.Time) effects {
	if now.Before(p.until) {
		return effects{call: wait, until: p.until, needs: leased}
	}
	return effects{call: get, subject: p.Task.Share(p.number), needs: leased}
}

func (p *reopening) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case did.call == wait:
		return p, nil
	case r.message != nil:
		return &looking{environment: p.environment, round: p.round}, nil
	}
	return openAttempt(p.environment, p.round, p.attempt, now)
}

// voidShared has a void batch put of a round of two operators.
func voidShared(e *environment, r round, x split.Attempt, reason string) (phase, error) {
	if x.Number == 0 {
		x.Number = 1 // of which nothing is known
	}
	return voidOf(e, r, x, reason)
}
