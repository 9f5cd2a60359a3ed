package operators

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// Leavings hold what has left an honest operator that is of a release, by round.
type leavings struct {
	mu      sync.Mutex
	shares  map[uint64][][]byte // of the helper, with totals
	batches map[uint64][][]byte // of the leader, with totals
	voids   map[uint64][][]byte
}

func newLeavings() *leavings {
	return &leavings{shares: map[uint64][][]byte{}, batches: map[uint64][][]byte{}, voids: map[uint64][][]byte{}}
}

func note(to map[uint64][][]byte, round uint64, data []byte) {
	for _, one := range to[round] {
		if bytes.Equal(one, data) {
			return
		}
	}
	to[round] = append(to[round], bytes.Clone(data))
}

// saw notes bytes that left a process.
func (l *leavings) saw(w *world, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if splitwire.IsShare(data) {
		if s, err := splitwire.VerifyShare(data, w.helperKey); err == nil && len(s.Aggregate) > 0 {
			note(l.shares, s.X.Round, data)
		}
		return
	}
	var b wire.Batch
	if _, err := seal.Verify(data, w.stage.Public(), &b); err == nil {
		if b.Void {
			note(l.voids, b.Round, data)
		} else {
			note(l.batches, b.Round, data)
		}
	}
}

// audit insists on one release a round at most, and returns how many rounds have a Share, a batch and a void batch.
func (l *leavings) audit(t testing.TB) (shares, batches, voids int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for what, all := range map[string]map[uint64][][]byte{"Shares": l.shares, "batches": l.batches} {
		for r, different := range all {
			if len(different) > 1 {
				t.Errorf("round %d: %d different %s left the process", r, len(different), what)
			}
		}
	}
	return len(l.shares), len(l.batches), len(l.voids)
}

// A liar is the broker as one process sees it. Fields that are nil tell the truth.
type liar struct {
	stream.Records
	stream.ExchangeAsker
	stream.ExchangeServer
	w   *world
	out *leavings

	mu       sync.Mutex
	wakes    func(stream.Wake) []stream.Wake                                              // that come before one; set before the process starts
	hides    func(subject string) bool                                                    // from Get and Latest
	shows    func(subject string) []byte                                                  // to Get and Latest, of a concrete subject
	puts     func(subject string, data []byte) (r stream.PutResult, err error, lied bool) //nolint:revive // as the port has it
	toHelper func(message []byte) [][]byte
	toLeader func(answer []byte) [][]byte
	receive  func([]byte) // the leader's end of its link
	lease    []byte       // of this process alone, where alone
	turns    uint64
	alone    bool
}

func (l *liar) Get(ctx context.Context, subject string) (stream.Message, error) {
	l.mu.Lock()
	hides, shows, alone := l.hides, l.shows, l.alone
	lease, turns := l.lease, l.turns
	l.mu.Unlock()
	switch {
	case alone && subject == l.w.name.Lease():
		if turns == 0 {
			return stream.Message{}, stream.ErrNotFound
		}
		return stream.Message{Subject: subject, Sequence: turns, Data: lease}, nil
	case hides != nil && hides(subject):
		return stream.Message{}, stream.ErrNotFound
	case shows != nil:
		if data := shows(subject); data != nil {
			return stream.Message{Subject: subject, Sequence: 1 << 40, Data: data}, nil
		}
	}
	return l.Records.Get(ctx, subject)
}

func (l *liar) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	l.mu.Lock()
	hides := l.hides
	l.mu.Unlock()
	m, err := l.Records.Latest(ctx, pattern)
	if err == nil && hides != nil && hides(m.Subject) {
		return stream.Message{}, stream.ErrNotFound
	}
	return m, err
}

// Watch brings what the liar forges before each wake.
func (l *liar) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	in, err := l.Records.Watch(ctx, task)
	if err != nil || l.wakes == nil {
		return in, err
	}
	out := make(chan stream.Wake, 1000)
	go func() {
		defer close(out)
		for one := range in {
			for _, wake := range append(l.wakes(one), one) {
				select {
				case out <- wake:
				default: // wakes may be lost
				}
			}
		}
	}()
	return out, nil
}

func (l *liar) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	l.mu.Lock()
	if !l.alone {
		l.mu.Unlock()
		return l.Records.Swap(ctx, subject, expected, data)
	}
	defer l.mu.Unlock()
	l.turns++
	l.lease = bytes.Clone(data)
	return l.turns, nil
}

func (l *liar) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	l.out.saw(l.w, data)
	l.mu.Lock()
	puts := l.puts
	l.mu.Unlock()
	if puts != nil {
		if r, err, lied := puts(subject, data); lied {
			return r, err
		}
	}
	return l.Records.PutOnce(ctx, subject, data)
}

// takes lies about a put: it is acknowledged as stored, and nobody else sees it.
func takes(subject string, data []byte) (stream.PutResult, error, bool) { //nolint:revive // as the field has it
	return stream.PutResult{Ours: true, Standing: stream.Message{Subject: subject, Sequence: 7, Data: data}}, nil, true
}

func (l *liar) Exchange(ctx context.Context, subject string, receive func([]byte)) (func([]byte) error, error) {
	l.mu.Lock()
	l.receive = receive
	l.mu.Unlock()
	send, err := l.ExchangeAsker.Exchange(ctx, subject, func(answer []byte) {
		l.mu.Lock()
		lie := l.toLeader
		l.mu.Unlock()
		if lie == nil || answer == nil {
			receive(answer)
			return
		}
		for _, one := range lie(answer) {
			receive(one)
		}
	})
	if err != nil {
		return nil, err
	}
	return func(m []byte) error {
		l.out.saw(l.w, m)
		l.mu.Lock()
		lie := l.toHelper
		l.mu.Unlock()
		if lie == nil {
			return send(m)
		}
		for _, one := range lie(m) {
			if err := send(one); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func (l *liar) ServeExchange(ctx context.Context, task stream.Task, take func(string, []byte, func([]byte))) error {
	return l.ExchangeServer.ServeExchange(ctx, task, func(subject string, m []byte, reply func([]byte)) {
		take(subject, m, func(answer []byte) {
			l.out.saw(l.w, answer)
			reply(answer)
		})
	})
}

// lies changes a liar while it runs.
func (l *liar) lies(change func(*liar)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// A siege is a world in which one operator is honest, and all else is not.
type siege struct {
	*world
	t   *testing.T
	ctx context.Context
	out *leavings
}

// besiege runs a strategy in a bubble, and insists that the honest operator has released each round once at most.
func besiege(t *testing.T, name string, p plan, strategy func(*siege)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &siege{world: newWorld(t, p), t: t, ctx: t.Context(), out: newLeavings()}
			strategy(s)
			s.out.audit(t)
		})
	})
}

func (s *siege) liar() *liar {
	return &liar{Records: s.broker, ExchangeAsker: s.broker, ExchangeServer: s.broker, w: s.world, out: s.out}
}

// announce puts the Task, where it is not there, and a round.
func (s *siege) announce(r stream.Round) {
	s.t.Helper()
	if s.find(s.name.Task()) == nil {
		s.put(s.ctx, s.name.Task(), s.sign(s.learner, s.task))
	}
	s.put(s.ctx, s.name.Round(r), s.sign(s.learner, s.round(r, uint64(r))))
}

// helps starts the honest helper.
func (s *siege) helps(l *liar) *process {
	s.t.Helper()
	return s.help(s.ctx, func(c *helper.Config) { c.Records, c.Exchange = l, l })
}

// leads starts the honest leader.
func (s *siege) leads(l *liar) *process {
	s.t.Helper()
	return s.lead(s.ctx, func(c *stage.Config) { c.Records, c.Leader.Exchange = l, l })
}

// copies copies the folder of an operator, as a backup would.
func (s *siege) copies(from, to string) {
	s.t.Helper()
	s.must(os.MkdirAll(to, 0o700))
	all, err := os.ReadDir(from)
	s.must(err)
	for _, one := range all {
		if one.Name() == "identity.pem" { // the same file, as on a disk that is copied whole: another is refused at once
			s.must(os.Link(filepath.Join(from, one.Name()), filepath.Join(to, one.Name())))
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, one.Name()))
		s.must(err)
		s.must(os.WriteFile(filepath.Join(to, one.Name()), data, 0o600))
	}
}

func (s *siege) wait(d time.Duration) { time.Sleep(d); synctest.Wait() }

// forgets has the broker lose records, as if they had never been.
func (s *siege) forgets(subjects ...string) {
	for _, one := range subjects {
		s.broker.Lose(one)
	}
}

// ends insists that a process has ended for good with an error.
func (s *siege) ends(p *process, want error) {
	s.t.Helper()
	s.wait(30 * time.Second)
	select {
	case <-p.done:
		if err := p.stop(); !errors.Is(err, want) {
			s.t.Errorf("the process ended with %v, want %v", err, want)
		}
	default:
		s.t.Errorf("the process goes on, want it to end with %v", want)
		_ = p.stop()
	}
}
