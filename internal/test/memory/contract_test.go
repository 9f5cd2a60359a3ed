package memory_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/streamtest"
	"github.com/panlearn/panlearn/stream"
)

func TestContract(t *testing.T) {
	for name, config := range map[string]memory.Config{
		"Plain": {}, "Shuffled": {Shuffle: true, Seed: 7}, "Kept": {Keep: true},
	} {
		t.Run(name, func(t *testing.T) {
			streamtest.Run(t, func(t *testing.T) streamtest.Broker { return contract(t, config) })
		})
	}
}

// perSubject is the limit on the reports of one attempt.
const perSubject = 2200

func contract(t *testing.T, config memory.Config) streamtest.Broker {
	config.MaxReportBytes, config.MaxPerSubject = 4<<20, perSubject
	b, err := memory.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var tasks atomic.Int64
	return streamtest.Broker{
		Records: b, ReportWriter: b, Places: b, Exchange: b, Retention: b, Limits: b.Limits(), Settle: time.Millisecond,
		MaxReportBytes: int(config.MaxReportBytes), MaxPerSubject: perSubject,
		Task: func(*testing.T) stream.Task { return stream.Task(fmt.Sprintf("task-%d", tasks.Add(1))) },
		Reader: func(t *testing.T, task stream.Task) stream.ReportReader {
			r, err := b.Reader(task)
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		Redeliver: func(_ *testing.T, task stream.Task) { b.Redeliver(task) },
		LoseAck: func(*testing.T) {
			lost := false
			b.Inject(func(op memory.Op, _ string) memory.Fault {
				if lost || (op != memory.Put && op != memory.Publish) {
					return memory.None
				}
				lost = true
				return memory.LostAck
			})
		},
	}
}
