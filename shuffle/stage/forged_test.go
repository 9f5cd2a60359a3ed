package stage

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/stream"
)

// A forger is a connection that shows other bytes than those that stand, at the first reads of one kind of record.
type forger struct {
	stream.Records
	verb  string
	times int // that are left
	shown int
}

func (f *forger) forge(m stream.Message) stream.Message {
	if a, _ := stream.ParseSubject(m.Subject); a.Verb != f.verb || f.times == 0 || len(m.Data) == 0 {
		return m
	}
	f.times--
	f.shown++
	m.Data = bytes.Clone(m.Data)
	m.Data[len(m.Data)-1] ^= 1 // of the signature
	return m
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

// TestForgedRecords: a broker that shows some records with a signature that does not verify ends no stage, and costs no
// attempt: what it shows decides nothing, and as soon as it shows what stands the stage goes on. A second life reads what
// the first one left.
func TestForgedRecords(t *testing.T) {
	for _, verb := range []string{"task", "round", "claim", "batch", "close", "end"} {
		for _, second := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 2, cohort: 3})
				f := &forger{Records: w.broker, verb: verb, times: 5}
				w.run(t.Context(), func(ctx context.Context) {
					change := func(c *Config) { f.Records = c.Records; c.Records = f }
					if second {
						w.life(ctx, "get round.2 #1", true, new(wires), nil)
					}
					if _, lived := w.life(ctx, "", false, new(wires), change); !lived {
						t.Errorf("%s, second life %t: the stage has ended", verb, second)
					}
				})
				if real, void := w.audit(); real != 2 || void != 0 {
					t.Errorf("%s, second life %t: %d real, %d void batches", verb, second, real, void)
				}
				for r := stream.Round(1); r <= 2; r++ {
					if b, _ := w.batch(r); b.Attempt != 1 {
						t.Errorf("%s, second life %t: round %d has attempt %d", verb, second, r, b.Attempt)
					}
				}
				if f.shown != 5 {
					t.Errorf("%s, second life %t: %d records were forged, want 5", verb, second, f.shown)
				}
			})
		}
	}
}
