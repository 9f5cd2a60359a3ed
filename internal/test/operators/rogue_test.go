package operators

import (
	"bytes"
	"slices"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A rogue is a leader that does as it likes in one attempt. It has the stage's key.
type rogue struct {
	*siege
	opening
	leader   *seal.RoundKey
	open     []byte // signed
	join     wire.Join
	core     *split.Leader
	worker   *split.Worker
	send     func([]byte) error
	answers  chan []byte
	prepared split.Prepared
}

// opens signs an Open of round r, under the manifest of a Round, and puts it.
func (s *siege) opens(round *wire.Round, a stream.Attempt) *rogue {
	s.t.Helper()
	l := &rogue{siege: s, answers: make(chan []byte, 1000)}
	var err error
	l.manifest, err = manifest.RoundHash(round)
	s.must(err)
	l.leader, err = seal.NewRoundKey(s.task.Suite)
	s.must(err)
	l.open = s.sign(s.stage, &wire.Open{Version: stream.Version, TaskHash: round.TaskHash, Round: round.Round,
		Attempt: uint64(a), ManifestHash: l.manifest[:], Suite: s.task.Suite, PublicKey: l.leader.Public(),
		Instance: make([]byte, stream.InstanceSize), StartedUnixMs: time.Now().UnixMilli()})
	l.x = split.Attempt{Task: stream.Hash(round.TaskHash), Round: round.Round, Number: uint64(a), Open: stream.HashOf(l.open)}
	s.put(s.ctx, s.name.Open(stream.Round(l.x.Round), a), l.open)
	return l
}

// joined waits for the helper's Join of the attempt, and reports whether it came.
func (l *rogue) joined() bool {
	l.t.Helper()
	for range 100 {
		time.Sleep(50 * time.Millisecond)
		m, err := l.broker.Get(l.ctx, l.name.Join(stream.Round(l.x.Round), stream.Attempt(l.x.Number)))
		if err != nil {
			continue
		}
		_, err = seal.Verify(m.Data, l.helperKey, &l.join)
		l.must(err)
		if stream.Hash(l.join.OpenHash) != l.x.Open {
			continue
		}
		l.x.Join = stream.HashOf(m.Data)
		l.begins()
		return true
	}
	return false
}

func (l *rogue) begins() {
	l.keys = seal.SharedKeys{Leader: l.leader.Public(), Helper: l.join.PublicKey}
	key, err := l.leader.OpenVerifyKey(stream.Hash(l.x.Task), &l.join)
	l.must(err)
	at, _ := manifest.PhaseOf(l.task.Plan, 1)
	mixer, err := at.Mixer()
	l.must(err)
	l.core, err = split.NewLeader(splitwire.ConfigOf(mixer, l.x, l.manifest, split.VerifyKey(key), 0))
	l.must(err)
	l.worker, err = l.core.Worker(splitwire.OpenerOf(l.leader, splitwire.ContextOf(l.x, l.manifest), seal.Leader))
	l.must(err)
	l.share(&l.opening)
	l.send, err = l.broker.Exchange(l.ctx, l.name.Prepare([16]byte(l.join.Instance)), func(answer []byte) {
		select {
		case l.answers <- answer:
		default:
		}
	})
	l.must(err)
}

// attempt opens an attempt of a round that is announced, and insists that the helper joins.
func (s *siege) attempt(r stream.Round, a stream.Attempt) *rogue {
	s.t.Helper()
	l := s.opens(s.round(r, uint64(r)), a)
	if !l.joined() {
		s.t.Fatalf("the helper does not join round %d, attempt %d", r, a)
	}
	return l
}

// takes opens a report, and returns the outcome of its first user at the leader.
func (l *rogue) takes(report []byte) split.Outcome {
	l.t.Helper()
	var r wire.Report
	l.must(stream.Unmarshal(report, &r))
	job, refused := l.core.Take(splitwire.UsersOf(&r), seal.Leader.Sealed(&r), seal.Helper.Sealed(&r))
	if job == nil {
		return refused
	}
	job.Run(l.worker)
	return l.core.Add(job)[0]
}

// says sends a message and returns the helper's reply; nil: none came.
func (l *rogue) says(message any) any {
	l.t.Helper()
	if r, ok := message.(*split.Request); ok {
		return l.opened(l.raw(l.sealed(r)))
	}
	return l.opened(l.raw(l.signed(message)))
}

// raw sends bytes, and returns the answer's.
func (l *rogue) raw(data []byte) []byte {
	for len(l.answers) > 0 {
		<-l.answers
	}
	_ = l.send(data)
	select {
	case answer := <-l.answers:
		return answer
	case <-time.After(3 * time.Second):
		return nil
	}
}

func (l *rogue) opened(answer []byte) any {
	l.t.Helper()
	if answer == nil {
		return nil
	}
	if splitwire.IsShare(answer) {
		s, err := splitwire.VerifyShare(answer, l.helperKey)
		l.must(err)
		return s
	}
	m, _, err := splitwire.Verify(answer, l.helperKey)
	l.must(err)
	out, err := splitwire.Open(m, l.leader)
	l.must(err)
	return out
}

// fills counts honest users until so many are counted.
func (l *rogue) fills(users int) {
	l.t.Helper()
	for i := int(l.core.Users()); i < users; i++ {
		one := l.users(users)[i : i+1]
		if got := l.takes(l.report(&l.opening, one, nil)); got != split.Accepted {
			l.t.Fatalf("the leader refuses an honest user: %v", got)
		}
		r, _ := l.core.Cut()
		reply, ok := l.says(&r).(*split.Reply)
		if !ok {
			l.t.Fatal("a request has no reply")
		}
		_, err := l.core.Handle(*reply)
		l.must(err)
	}
}

// ends lays the leader's floor, requests the helper's Share, and returns the reply.
func (l *rogue) ends() any {
	l.t.Helper()
	if l.prepared.Finish.Users == 0 {
		var err error
		l.prepared, err = l.core.Prepare(split.Entropy{Fresh: fresh(), Secret: fresh()}, split.Note{})
		l.must(err)
	}
	return l.says(&l.prepared.Finish)
}

// released insists that the attempt is released, and returns the Share.
func (l *rogue) released() split.Share {
	l.t.Helper()
	got, ok := l.ends().(split.Share)
	if !ok || got.X != l.x || len(got.Aggregate) == 0 {
		l.t.Fatalf("the attempt is not released: %v", got)
	}
	l.wait(time.Second) // it is put
	return got
}

// dead insists that the attempt gets the helper's word that it is gone.
func (l *rogue) dead(marked uint64) {
	l.t.Helper()
	if got, ok := l.ends().(*split.Gone); !ok || got.Marked != marked {
		l.t.Errorf("the attempt is answered with %+v, want gone and mark %d", got, marked)
	}
}

// counted insists that the totals of leader and helper hold each user once.
func (l *rogue) counted(s split.Share) {
	l.t.Helper()
	e := split.NewEnding(l.prepared)
	e.Stored(true)
	e.Share(s, []byte{1})
	e.Released(true)
	got, err := e.Release(l.params)
	l.must(err)
	for j, n := range got.Totals {
		if n < levels || n > levels+2*floor {
			l.t.Errorf("coordinate %d has total %d, want %d and noise of at most %d", j, n, levels, 2*floor)
		}
	}
}

// shares returns the Share of a round on the broker; nil: none.
func (s *siege) shares(r stream.Round) []byte {
	if m := s.find(s.name.Share(r)); m != nil {
		return m.Data
	}
	return nil
}

// same insists that two Shares are the same bytes.
func (s *siege) same(a, b []byte) {
	s.t.Helper()
	if len(a) == 0 || !bytes.Equal(a, b) {
		s.t.Error("two Shares of one round differ, or one is missing")
	}
}

// sealed returns the bytes of a request.
func (l *rogue) sealed(r *split.Request) []byte {
	data, err := splitwire.Seal(l.stage, l.task.Suite, l.join.PublicKey, r)
	l.must(err)
	return data
}

// signed returns the bytes of a message that is not sealed, under the stage's key.
func (s *siege) signed(message any) []byte {
	data, err := splitwire.Sign(s.stage, message)
	s.must(err)
	return data
}

// bundle has the leader take a report, and returns what the helper is to be shown of it.
func (l *rogue) bundle(report []byte) split.Bundle {
	l.t.Helper()
	if got := l.takes(report); got != split.Accepted {
		l.t.Fatalf("the leader refuses an honest user: %v", got)
	}
	cut, _ := l.core.Cut()
	return cut.Bundles[0]
}

// asks sends bundles as request n, and returns the helper's outcomes.
func (l *rogue) asks(n uint64, bundles ...split.Bundle) []split.Outcome {
	l.t.Helper()
	if reply, ok := l.says(&split.Request{X: l.x, N: n, Base: n - 1, Bundles: bundles}).(*split.Reply); ok {
		return reply.Outcomes
	}
	return nil
}

// expect insists on outcomes.
func (s *siege) expect(what string, got []split.Outcome, want ...split.Outcome) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: %v, want %v", what, got, want)
	}
}
