package operators

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// far is an exchange whose messages take a while each way.
type far struct {
	stream.ExchangeAsker
	way time.Duration
}

func (f far) Exchange(ctx context.Context, subject string, receive func([]byte)) (func([]byte) error, error) {
	send, err := f.ExchangeAsker.Exchange(ctx, subject, func(answer []byte) {
		time.AfterFunc(f.way, func() {
			if ctx.Err() == nil {
				receive(answer)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return func(m []byte) error {
		time.AfterFunc(f.way, func() { _ = send(m) })
		return nil
	}, nil
}

// TestThroughput measures one round of two operators in this process, whose reports wait: with no time between the
// operators, and with a distance and one in a hundred messages of the exchange lost. It asserts that all are counted,
// and no time.
func TestThroughput(t *testing.T) {
	if !longtest.Run(t, "reports a second through leader and helper") {
		return
	}
	const users, dim = 4000, 100
	for _, bits := range []int{2, 5} {
		for _, apart := range []time.Duration{0, 30 * time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprint(bits, " bits, ", apart), func(t *testing.T) { throughput(t, apart, users, dim, bits) })
		}
	}
}

func throughput(t *testing.T, apart time.Duration, users, dim, bits int) {
	w := newWorld(t, plan{rounds: 1, cohort: users, dim: dim, levels: 1<<bits - 1, broker: memory.Config{MaxAckPending: 1 << 16, AckWait: time.Minute}})
	n := 0
	w.broker.Inject(func(op memory.Op, _ string) memory.Fault {
		if op == memory.Exchange || op == memory.Answer {
			if n++; apart > 0 && n%100 == 0 {
				return memory.Lost
			}
		}
		return memory.None
	})
	leader := w.lead(t.Context(), func(c *stage.Config) {
		c.Workers, c.LeaseTTL = runtime.GOMAXPROCS(0), 15*time.Second
		c.Leader.Exchange = far{c.Leader.Exchange, apart / 2}
	})
	second := w.help(t.Context(), func(c *helper.Config) { c.Workers, c.Lease = runtime.GOMAXPROCS(0), 15*time.Second })
	defer func() { _, _ = leader.stop(), second.stop() }()
	var batches []*wire.Batch
	var all sync.WaitGroup
	all.Go(func() { batches = w.learn(t.Context()) })
	var o *opening
	for o == nil {
		time.Sleep(20 * time.Millisecond)
		if w.newest(t.Context(), 1) == 1 {
			o = w.opening(1, 1, 1)
		}
	}
	reports := make([]stream.Outgoing, users)
	for i, u := range w.users(users) {
		id := fresh()
		reports[i] = stream.Outgoing{Subject: w.name.Report(1, 1), ID: [16]byte(id[:16]), Data: w.report(o, []user{u}, nil)}
	}
	begun, before := time.Now(), used(t)
	if _, err := w.broker.Publish(t.Context(), reports); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	took, cpu := time.Since(begun), used(t)-before
	if len(batches) != 1 || batches[0].Users != uint64(users) {
		t.Fatalf("%d batches, want one of %d users", len(batches), users)
	}
	fmt.Printf("MEASURED two operators, d %d, %d bits, %v apart: %d reports in %v, %.0f a second on %d processors, %.2f ms of CPU a report at both and the "+
		"broker in memory\n", dim, bits, apart, users,
		took.Round(time.Millisecond), float64(users)/took.Seconds(), runtime.GOMAXPROCS(0), 1000*cpu.Seconds()/float64(users))
}

// used returns the CPU time of this process so far.
func used(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
