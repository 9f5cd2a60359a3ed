package client_test

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/wire"
)

// A forgetter is a broker that lost the Open of an attempt, so that another one took its number.
type forgetter struct {
	stream.Records
	pattern, subject string

	mu    sync.Mutex
	other *stream.Message // guarded by mu; nil: nothing is lost yet
}

func (f *forgetter) read(ctx context.Context, subject string, read func(context.Context, string) (stream.Message, error)) (stream.Message, error) {
	f.mu.Lock()
	other := f.other
	f.mu.Unlock()
	if other != nil && (subject == f.subject || subject == f.pattern) {
		return *other, nil
	}
	return read(ctx, subject)
}

func (f *forgetter) Get(ctx context.Context, subject string) (stream.Message, error) {
	return f.read(ctx, subject, f.Records.Get)
}

func (f *forgetter) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	return f.read(ctx, pattern, f.Records.Latest)
}

// forgets has the first attempt at a round be another one from now on.
func (f *forgetter) forgets(w *world, open *wire.Open) {
	open.Instance[0]++ // another process
	data, err := w.stage.Sign(open)
	must(w.t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.other = &stream.Message{Subject: f.subject, Data: data, Sequence: 1}
}

// soon is an outcome that comes within an hour.
func soon(t *testing.T, outcome <-chan client.Outcome) (o client.Outcome) {
	t.Helper()
	select {
	case o = <-outcome:
	case <-time.After(time.Hour):
		t.Error("no outcome")
	}
	return o
}

// TestAnotherOpenOfTheSameNumber: the broker loses the Open of an attempt that died, and the stage gives its number to another.
// Where somebody may have looked at the dead one, its users do not send again, not after a restart either; elsewhere they
// send the same counts anew. The Close of the other attempt does not say of anybody that the dead one did not count them.
func TestAnotherOpenOfTheSameNumber(t *testing.T) {
	for _, c := range []struct {
		trust   accounting.Trust
		restart bool
		sent    int64 // publishes to attempt 1, whichever it is
	}{
		{accounting.Shuffle, false, 2}, {accounting.Shuffle, true, 2},
		{accounting.Pan, false, 1}, {accounting.Pan, true, 1},
		{accounting.ShufflePan, false, 1}, {accounting.ShufflePan, true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w := newWorld(t, plan{rounds: 2, cohort: 2, trust: c.trust})
			s := newSpy(t, client.NewMemoryStore())
			config := w.config(s)
			records := &forgetter{Records: config.Records, pattern: w.name.Opens(1), subject: w.name.Open(1, 1)}
			config.Records = records
			sent := &dawdler{ReportWriter: config.Reports, wait: func(int64) time.Duration { return 0 }}
			config.Reports = sent
			outcome := make(chan client.Outcome, 2)
			begin := func() *client.Client {
				cl := w.client(config)
				go func() {
					o, _ := cl.Publish(ctx, client.EventKey("a"), example(1))
					outcome <- o
				}()
				return cl
			}
			cl := begin()
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			time.Sleep(time.Minute)
			if n := sent.calls.Load(); n != 1 {
				t.Fatalf("%d publishes, want 1", n)
			}
			if c.restart {
				must(t, cl.Close())
				soon(t, outcome)
				records.forgets(w, w.openMessage(1, 1, hash))
				cl = begin()
			} else {
				records.forgets(w, w.openMessage(1, 1, hash))
			}
			time.Sleep(time.Minute)
			if n := sent.calls.Load(); n != c.sent {
				t.Errorf("%v, restart %t: %d publishes, want %d", c.trust, c.restart, n, c.sent)
			}
			w.close(ctx, client.Closed{Round: 1, Attempt: nth(1), Manifest: hash}) // nothing was opened in it
			time.Sleep(time.Minute)
			second := w.announce(ctx, 2)
			w.open(ctx, 2, 1, second)
			time.Sleep(time.Minute)
			if o := soon(t, outcome); o.State != client.Unknown || w.reports(2, 1) != 0 {
				t.Errorf("%v, restart %t: %v, and %d reports in round 2; want unknown and none", c.trust, c.restart, o, w.reports(2, 1))
			}
			must(t, cl.Close())
			s.audit(w)
		})
	}
}

// TestCloseWithoutItsOpen: a Close beside which no Open can be read decides nothing yet.
func TestCloseWithoutItsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		w := newWorld(t, plan{rounds: 2, cohort: 2})
		config := w.config(newSpy(t, client.NewMemoryStore()))
		records := &forgetter{Records: config.Records, subject: w.name.Open(1, 1)}
		config.Records = records
		cl := w.client(config)
		outcome := make(chan client.Outcome, 1)
		go func() {
			o, err := cl.Publish(ctx, client.EventKey("a"), example(1))
			must(t, err)
			outcome <- o
		}()
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		time.Sleep(time.Minute)
		records.mu.Lock()
		records.other = &stream.Message{Subject: records.subject} // of nobody's signature: not there
		records.mu.Unlock()
		w.close(ctx, client.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
		time.Sleep(time.Minute)
		select {
		case o := <-outcome:
			t.Errorf("told %v", o)
		default:
		}
		records.mu.Lock()
		records.other = nil
		records.mu.Unlock()
		if o := soon(t, outcome); o.State != client.Counted {
			t.Errorf("told %v, want counted", o)
		}
		must(t, cl.Close())
	})
}

// TestAttemptsOfOneNumber: what the automaton does with two attempts of one number.
func TestAttemptsOfOneNumber(t *testing.T) {
	first, other := client.Attempt{Number: 3, Open: stream.Hash{1}}, client.Attempt{Number: 3, Open: stream.Hash{2}}
	sent := func(sequence uint64, to ...client.Attempt) client.Participation {
		p := client.Participation{Key: client.Key{1}}
		must(t, p.Join(client.Draw{Round: 1, Step: 1, Counts: []byte{5}}))
		for _, a := range to {
			p.Sending(a, false)
			p.Acked(a, stream.Ack{Status: stream.Stored, Sequence: sequence})
		}
		return p
	}
	p := sent(7, first)
	for _, c := range []struct {
		to           client.Attempt
		plain, floor bool
	}{
		{first, true, true}, {other, true, false}, {client.Attempt{Number: 4}, true, false}, {client.Attempt{Number: 2}, false, false}, {client.Attempt{}, false, false},
	} {
		if p.MaySend(c.to, false) != c.plain || p.MaySend(c.to, true) != c.floor {
			t.Errorf("to attempt %d: may send %t, under floors %t", c.to.Number, p.MaySend(c.to, false), p.MaySend(c.to, true))
		}
	}
	if p.Answered(other) || !p.Answered(first) {
		t.Error("an answer of one attempt is one of the other")
	}
	if p := sent(7, first, other); p.MaySend(first, false) || !p.MaySend(other, true) || len(p.Sends) != 2 {
		t.Errorf("goes back to an older attempt of the number, or not on: %v", p.Sends)
	}
	for _, c := range []struct {
		p      client.Participation
		closed client.Attempt
		cutoff uint64
		want   client.State
	}{
		{sent(7, first), first, 6, client.Uncounted}, {sent(7, first), first, 7, client.Counted},
		{sent(7, first), other, 6, client.Unknown}, {sent(7, first), other, 7, client.Unknown},
		{sent(7, first, other), other, 6, client.Unknown}, {sent(7, first, other), other, 7, client.Counted},
	} {
		data, err := c.p.MarshalBinary()
		must(t, err)
		again := client.Participation{Key: c.p.Key}
		must(t, again.UnmarshalBinary(data))
		if got := again.Decide(client.Closed{Round: 1, Attempt: c.closed, Cutoff: c.cutoff}); got != c.want {
			t.Errorf("%d sends, closed by %v at %d: %v, want %v", len(c.p.Sends), c.closed, c.cutoff, got, c.want)
		}
	}
	p = sent(7, first)
	p.Sends = append(p.Sends, p.Sends[0])
	data, err := p.MarshalBinary()
	must(t, err)
	if new(client.Participation).UnmarshalBinary(data) == nil {
		t.Error("two sends to one attempt are read")
	}
}

// TestSendsOfVersion3: a record that does not say which Open a send was for is read, and it was for none that there is now.
func TestSendsOfVersion3(t *testing.T) {
	var manifest stream.Hash
	data := []byte{3, byte(client.Charged), 0, 1, 1, 1, 1, 1, 9} // refunds, reports, phase, step, most, rounds, round
	data = append(data, manifest[:]...)
	data = append(data, byte(client.Fresh))
	data = append(data, make([]byte, 32)...) // report id, parcel
	data = append(data, 0, 1, 2, 1, 1)       // place, one send: attempt, sent, acked
	data = binary.AppendUvarint(data, 700)   // lowest
	data = append(data, 2, 8, 9)             // counts
	var p client.Participation
	must(t, p.UnmarshalBinary(data))
	if p.Draw.Round != 9 || len(p.Sends) != 1 || p.Sends[0] != (client.Send{Attempt: nth(2), Sent: 1, Acked: 1, Lowest: 700}) || string(p.Draw.Counts) != "\x08\x09" {
		t.Fatalf("%v with sends %+v", p, p.Sends)
	}
	open := client.Attempt{Number: 2, Open: stream.Hash{1}}
	if p.MaySend(open, true) || !p.MaySend(open, false) {
		t.Error("sends again under floors, or not at all")
	}
	if got := p.Decide(client.Closed{Round: 9, Attempt: open, Cutoff: 1}); got != client.Unknown {
		t.Errorf("%v, want unknown", got)
	}
	if new(client.Participation).UnmarshalBinary(append(data, 0)) == nil {
		t.Error("a record with a byte too many is read")
	}
}
