package intrusion

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// mix runs the stage, watched. Its observer is called on its own goroutine, so that the stage pauses between two
// reports while the disk is copied and the heap is dumped.
func (w *world) mix(ctx context.Context, conn *natsjs.Conn) error {
	reader, err := conn.Reader(ctx, name)
	if err != nil {
		return err
	}
	queue := &recorder{ReportReader: reader}
	observer := w.metrics.stage
	examined, opened, released := observer.Report, observer.Opened, observer.Released
	observer.Report = func(r stage.Reason) {
		examined(r)
		a := w.attempts[len(w.attempts)-1]
		a.taken = append(a.taken, queue.next())
		a.accepted = append(a.accepted, r == stage.Accepted)
		if w.broken.examined != nil {
			w.broken.examined(w, a)
		}
		if w.rng.IntN(w.users) < w.plan.copies {
			w.steal(fmt.Sprint("in round ", a.round, " after report ", len(a.taken)))
		}
	}
	observer.Opened = func(round stream.Round, number stream.Attempt) {
		opened(round, number)
		w.open(conn, uint64(round), uint64(number))
	}
	observer.Released = func(round stream.Round, users uint64, took time.Duration) {
		released(round, users, took)
		w.released(uint64(round))
	}
	s, err := stage.New(stage.Config{Task: name, Records: conn, Reports: queue, Identity: w.stage,
		LearnerKey: w.learner.Public(),
		Limits:     conn.Limits(), Poll: 50 * time.Millisecond, LeaseTTL: 2 * time.Minute, Observer: observer, Logger: w.log()})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// open finds the key of the attempt that the stage opens now, as somebody would who looks into its memory.
func (w *world) open(records stream.Records, round, number uint64) {
	m, err := records.Get(context.Background(), name.Open(stream.Round(round), stream.Attempt(number)))
	must(err)
	var o wire.Open
	_, err = seal.Verify(m.Data, w.stage.Public(), &o)
	must(err)
	a := &attempt{round: round, number: number, public: slices.Clone(o.PublicKey), manifest: stream.Hash(o.ManifestHash)}
	a.key = w.search.inHeap(heapDump(), a.public)
	if w.broken.opened != nil {
		w.broken.opened(w, a)
	}
	w.mu.Lock()
	w.attempts = append(w.attempts, a)
	w.mu.Unlock()
	w.steal(fmt.Sprint("when attempt ", number, " of round ", round, " is open"))
}

// released copies the disk and searches the heap for keys, just after a batch is on the broker. The key of
// the attempt went before its claim.
func (w *world) released(round uint64) {
	w.steal(fmt.Sprint("when the batch of round ", round, " stands"))
	heap := heapDump()
	for _, a := range w.attempts {
		if a.key != nil {
			for _, part := range a.key.parts(w.suite) {
				a.kept = a.kept || part.in(heap)
			}
		}
		a.kept = a.kept || w.search.inHeap(heap, a.public) != nil
	}
}

// A recorder keeps the report that the stage looks at. The stage fetches the next ones meanwhile, and looks at all in
// the order in which they came: one user a message, so that none is left when a cohort is full.
type recorder struct {
	stream.ReportReader
	mu     sync.Mutex
	coming []stream.Message // fetched, not looked at
}

// Fetch implements stream.ReportReader.
func (r *recorder) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	got, err := r.ReportReader.Fetch(ctx, max, wait)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range got {
		r.coming = append(r.coming, stream.Message{Subject: d.Subject, Sequence: d.Sequence, Data: slices.Clone(d.Data)})
	}
	return got, err
}

func (r *recorder) next() stream.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.coming[0]
	r.coming = r.coming[1:]
	return m
}
