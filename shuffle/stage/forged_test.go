package stage

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A forger is a connection that returns other bytes than the stored ones, at the first reads of one kind of record.
type forger struct {
	stream.Records
	verb string
	lie  func(record []byte) []byte

	mu    sync.Mutex // guards what follows
	times int        // that are left
	shown int
}

func (f *forger) forge(m stream.Message) stream.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a, _ := stream.ParseSubject(m.Subject); a.Verb != f.verb || f.times == 0 || len(m.Data) == 0 {
		return m
	}
	f.times--
	f.shown++
	m.Data = f.lie(bytes.Clone(m.Data))
	return m
}

// lies returns functions that make of a record what a broker can show without a key.
func lies(w *world) map[string]func(record []byte) []byte {
	return map[string]func([]byte) []byte{
		"a signature that does not verify": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"an envelope of another version": func(b []byte) []byte {
			var s wire.Signed
			must(w.t, stream.Unmarshal(b, &s))
			s.Version++
			b, err := proto.Marshal(&s)
			must(w.t, err)
			return b
		},
		"no record": func([]byte) []byte { return []byte{8, 2} },
	}
}

func (f *forger) Get(ctx context.Context, subject string) (stream.Message, error) {
	m, err := f.Records.Get(ctx, subject)
	return f.forge(m), err
}

func (f *forger) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	m, err := f.Records.Latest(ctx, pattern)
	return f.forge(m), err
}

func (f *forger) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	r, err := f.Records.PutOnce(ctx, subject, data)
	if forged := f.forge(r.Standing); !bytes.Equal(forged.Data, r.Standing.Data) {
		r.Standing, r.Ours = forged, false
	}
	return r, err
}

// TestForgedRecords: a broker that shows some records that nobody signed ends no stage, and costs no attempt: what it
// shows decides nothing, and as soon as it shows the stored records the stage goes on. A second life reads what the
// first one left.
func TestForgedRecords(t *testing.T) {
	for _, verb := range []string{"task", "round", "claim", "batch", "close", "end"} {
		for lie := range lies(nil) {
			for _, second := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, second life %t", verb, lie, second), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { forgedRecords(t, verb, lie, second) })
				})
			}
		}
	}
}

func forgedRecords(t *testing.T, verb, lie string, second bool) {
	w := newWorld(t, plan{rounds: 2, cohort: 3})
	f := &forger{Records: w.broker, verb: verb, lie: lies(w)[lie], times: 5}
	w.run(t.Context(), func(ctx context.Context) {
		change := func(c *Config) { f.Records = c.Records; c.Records = f }
		if second {
			w.life(ctx, "get round.2 #1", true, new(wires), nil)
		}
		if _, lived := w.life(ctx, "", false, new(wires), change); !lived {
			t.Error("the stage has ended")
		}
	})
	if real, void := w.audit(); real != 2 || void != 0 {
		t.Errorf("%d real, %d void batches", real, void)
	}
	for r := stream.Round(1); r <= 2; r++ {
		if b, _ := w.batch(r); b == nil || b.Attempt != 1 {
			t.Errorf("round %d: %v, want its first attempt", r, b)
		}
	}
	if f.shown != 5 {
		t.Errorf("%d records were forged, want 5", f.shown)
	}
}

// TestForgedOpens: a broker that shows what nobody signed under the number of every attempt costs waiting, longer each
// time: it keeps no stage busy, ends none, and when it shows the stored records the round is decided.
func TestForgedOpens(t *testing.T) {
	for lie := range lies(nil) {
		t.Run(lie, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 1, cohort: 3, spares: 16})
				f := &forger{Records: w.broker, verb: "open", lie: lies(w)[lie], times: 1 << 20}
				w.run(t.Context(), func(ctx context.Context) {
					time.AfterFunc(10*time.Minute, func() {
						f.mu.Lock()
						defer f.mu.Unlock()
						if f.shown > 40 || f.shown < 10 {
							t.Errorf("%d forged Opens in ten minutes", f.shown)
						}
						f.times = 0
					})
					if _, lived := w.life(ctx, "", false, new(wires), func(c *Config) { f.Records = c.Records; c.Records = f }); !lived {
						t.Error("the stage has ended")
					}
				})
				if real, void := w.audit(); real != 1 || void != 0 {
					t.Errorf("%d real, %d void batches", real, void)
				}
			})
		})
	}
}
