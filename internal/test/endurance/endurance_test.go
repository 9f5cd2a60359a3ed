package endurance

import (
	"context"
	"flag"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

var most = flag.Uint64("rounds", 100_000, "rounds of the long run")

// A pace observes the learner's rounds, and measures stretches of them.
type pace struct {
	stretch, most uint64
	conn          *natsjs.Conn
	roles         map[string]*counter
	tell          func(thousand)
	failed        func(error)
	over          context.CancelFunc

	begun       time.Time
	used        time.Duration
	reads, seen map[string]uint64
}

func (p *pace) observer() service.Observer {
	return service.Observer{Announced: p.announced, Applied: p.applied}
}

func (p *pace) announced(r, _ uint64) {
	if p.begun.IsZero() {
		p.mark()
	}
}

func (p *pace) applied(a service.Applied) {
	if a.Round%p.stretch != 0 {
		return
	}
	out := thousand{last: a.Round, wall: time.Since(p.begun), cpu: cpu() - p.used, reads: map[string]uint64{},
		looks: map[string]uint64{}}
	for role, c := range p.roles {
		out.reads[role], out.looks[role] = c.reads.Load()-p.reads[role], c.looks.Load()-p.seen[role]
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	out.heap = m.HeapAlloc
	for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Batches} {
		info, err := p.conn.Admin().JetStream().Stream(context.Background(), name.Name(s))
		if err != nil {
			p.failed(err)
			continue
		}
		out.stored += info.CachedInfo().State.Msgs
	}
	p.tell(out)
	if a.Round >= p.most {
		p.over()
	}
	p.mark()
}

func (p *pace) mark() {
	p.begun, p.used, p.reads, p.seen = time.Now(), cpu(), map[string]uint64{}, map[string]uint64{}
	for role, c := range p.roles {
		p.reads[role], p.seen[role] = c.reads.Load(), c.looks.Load()
	}
}

// TestReadsOfARound: once it is under way nobody looks over all rounds, and a round takes as many reads as the
// rounds before.
func TestReadsOfARound(t *testing.T) {
	var all []thousand
	endure(t, 300, 100, time.Hour, func(s thousand) { all = append(all, s) })
	if len(all) != 3 {
		t.Fatalf("%d stretches, want 3", len(all))
	}
	for role, n := range all[2].reads {
		if early := all[1].reads[role]; n > early+early/5+20 {
			t.Errorf("%s: %d reads in 100 rounds, and %d in those before", role, n, early)
		}
		if all[1].looks[role]+all[2].looks[role] > 0 {
			t.Errorf("%s looks over all rounds: %d times in 200", role, all[1].looks[role]+all[2].looks[role])
		}
		t.Logf("%s: %.1f reads a round", role, float64(n)/100)
	}
}

// TestEnduranceDeep: over very many rounds memory and streams do not grow. What a round takes is printed, by thousands.
func TestEnduranceDeep(t *testing.T) {
	if !longtest.Run(t, "10^5 rounds of two users, some half an hour") {
		return
	}
	const stretch = 1000
	var all []thousand
	endure(t, *most, stretch, 5*time.Second, func(s thousand) {
		all = append(all, s)
		t.Logf("round %6d: %6.2f ms, %6.2f ms CPU, heap %6.1f MB, %5d records, reads a round: %v", s.last,
			float64(s.wall.Microseconds())/1000/stretch, float64(s.cpu.Microseconds())/1000/stretch, float64(s.heap)/1e6,
			s.stored, perRound(s.reads, stretch))
	})
	first, last := all[0], all[len(all)-1]
	t.Logf("MEASURED: processor time of the last thousand rounds over the first %.2f",
		last.cpu.Seconds()/first.cpu.Seconds())
	if young := all[min(len(all)-1, 4)]; last.heap > young.heap+young.heap/5 {
		t.Errorf("%d bytes live after %d rounds, %d after %d", last.heap, last.last, young.heap, young.last)
	}
	if records := slices.MaxFunc(all,
		func(a, b thousand) int { return int(a.stored) - int(b.stored) }); records.stored > 20_000 {
		t.Errorf("the streams hold %d records", records.stored)
	}
}

func perRound(reads map[string]uint64, n float64) map[string]float64 {
	out := map[string]float64{}
	for _, role := range slices.Sorted(maps.Keys(reads)) {
		out[role] = float64(int(10*float64(reads[role])/n)) / 10
	}
	return out
}
