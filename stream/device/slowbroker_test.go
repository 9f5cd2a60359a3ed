package device_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A narrow broker stores one report after the other, ten milliseconds each, for all senders together.
type narrow struct {
	stream.Transport
	turn chan bool // holds a token while one is stored: in a bubble a lock would stop its clock
}

func (n narrow) Publish(ctx context.Context, reports []stream.Outgoing) (acks []stream.Ack, err error) {
	for _, r := range reports {
		n.turn <- true
		time.Sleep(10 * time.Millisecond)
		var got []stream.Ack
		if err = ctx.Err(); err == nil {
			got, err = n.Transport.Publish(ctx, []stream.Outgoing{r})
		}
		<-n.turn
		if err != nil {
			return acks, err
		}
		acks = append(acks, got...)
	}
	return acks, nil
}

// TestABrokerThatIsBehind: where a broker takes reports more slowly than gateways send them, those whose reports are
// on their way when the round closes have paid for nothing, or are in doubt for ever. So no more are on their way than
// it takes in seconds.
func TestABrokerThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cohort = 2000
		w := newWorld(t, plan{rounds: 1, cohort: cohort, deadline: 10 * time.Minute})
		sums := make([]device.Summary, 2)
		turn := make(chan bool, 1)
		w.play(t.Context(), func(ctx context.Context) {
			var group sync.WaitGroup
			for i := range sums {
				c := w.config(participation.NewMemoryStore())
				c.Source, c.Transport = fmt.Sprint(i), narrow{c.Transport, turn}
				group.Go(func() {
					var err error
					sums[i], err = w.client(c).Run(ctx, rows(cohort, false))
					must(t, err)
				})
			}
			group.Wait()
		})
		a, b := sums[0], sums[1]
		t.Logf("%+v, %+v", a, b)
		if a.Counted+b.Counted != cohort {
			t.Errorf("%d counted, want %d", a.Counted+b.Counted, cohort)
		}
		if lost := a.ChargedUncounted + b.ChargedUncounted + a.Unknown + b.Unknown; lost > 2*256 {
			t.Errorf("%d paid in vain or are in doubt, want at most the messages that two gateways have under way", lost)
		}
	})
}
