package stage

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A witness keeps the slices that the stage was given.
type witness struct {
	stream.ReportReader
	given [][]byte
}

func (r *witness) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	ds, err := r.ReportReader.Fetch(ctx, max, wait)
	for _, d := range ds {
		r.given = append(r.given, d.Data)
	}
	return ds, err
}

// TestCountedReportsAreOverwritten: while the key of an attempt lives, no sealed report that was looked at lies beside it.
func TestCountedReportsAreOverwritten(t *testing.T) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_X25519, wire.Suite_SUITE_NONE} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 10, suite: suite, trust: wire.Trust_TRUST_PAN})
			w.announce(t.Context())
			c := w.config()
			read := &witness{ReportReader: c.Reports}
			c.Reports = read
			s, stop := w.start(c)
			in := w.invited(t.Context(), 1, 0)
			w.answer(t.Context(), in, w.users(1)[:7])
			time.Sleep(10 * time.Second)
			if n := s.Status().Users; n != 7 || len(read.given) < 7 {
				t.Fatalf("%d users in the totals, %d reports read: want 7", n, len(read.given))
			}
			for i, data := range read.given {
				if len(data) == 0 || !bytes.Equal(data, make([]byte, len(data))) {
					t.Errorf("%v: report %d lies in memory as it came", suite, i)
				}
			}
			_ = stop()
		})
	}
}
