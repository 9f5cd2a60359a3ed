package stage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestPanicErases: a stage that panics while it collects, in Run, in a worker or beside Run, leaves neither key nor
// totals to a process that catches it and goes on, and its lease runs out: the next life counts another attempt.
func TestPanicErases(t *testing.T) {
	var none []int
	fault := func() { none[len(none)+2]++ }
	for name, set := range map[string]func(c *Config, s *Stage){
		"in Run":     func(c *Config, s *Stage) { s.Observer.Report = func(Reason) { fault() } },
		"in a fetch": func(c *Config, s *Stage) { s.fetcher.queue = faulty{s.Reports, fault} },
		"beside Run": func(c *Config, s *Stage) { s.desk.caught.Do(fault) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 8, minimum: 1, suite: wire.Suite_SUITE_X25519, deadline: time.Hour})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			c := w.config()
			s := w.new(c)
			var open *attempt
			armed := false
			s.do = func(ctx context.Context, e effects) (result, error) {
				if e.attempt != nil {
					if open = e.attempt; !armed {
						armed = true
						set(&c, s)
					}
				}
				return s.perform(ctx, e)
			}
			over := make(chan error, 1)
			go func() { over <- panics.Caught(func() error { return s.Run(ctx) }) }()
			w.get(ctx, w.name.Stage())
			w.announce(ctx)
			time.Sleep(3 * time.Second)
			if _, err := w.broker.Publish(ctx, []stream.Outgoing{{Subject: w.name.Report(1, 1), ID: randomID(),
				Data: []byte("x")}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			var err error
			select {
			case err = <-over:
			default:
				stop()
				t.Fatalf("%s: it goes on", name)
			}
			if err == nil || !strings.Contains(err.Error(), "index out of range") {
				t.Errorf("%s: %v", name, err)
			}
			if open == nil {
				t.Fatalf("%s: nothing was open", name)
			}
			r := &wire.Report{Version: stream.Version, TaskHash: w.hash[:], Ids: [][]byte{make([]byte, 16)},
				Encapsulated: make([]byte, 32), Ciphertext: make([]byte, 64)}
			if _, err := open.opener.key.Open(open.opener.context, r); !errors.Is(err, seal.ErrErased) || open.mixer.CanClose() {
				t.Errorf("%s: the key opens (%v), or totals are left", name, err)
			}
		})
	}
}

// A faulty queue panics.
type faulty struct {
	stream.ReportReader
	fault func()
}

func (f faulty) Fetch(context.Context, int, time.Duration) ([]stream.Delivery, error) {
	f.fault()
	return nil, nil
}
