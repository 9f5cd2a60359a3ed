package stage

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A wrongdoer makes reports that must not count, each with the reason under which it is refused.
type wrongdoer struct {
	w     *world
	in    *invitation
	rng   *rand.Rand
	kinds []wrong
}

type wrong struct {
	want    Reason
	subject string
	data    []byte // the same each time, under a fresh message id; nil: noise of random length
}

// newWrongdoer makes one report of each kind. counted is a report that is in the totals already.
func (w *world) newWrongdoer(in *invitation, counted []byte) *wrongdoer {
	d := &wrongdoer{w: w, in: in, rng: rand.New(rand.NewPCG(1, 2))}
	here := w.name.Report(in.round, in.attempt)
	under := func(change func(*seal.Context)) []byte {
		other := *in
		change(&other.context)
		return w.seal(&other, [][16]byte{randomID()}, w.plaintext(0))
	}
	changed := func(change func(*wire.Report)) []byte {
		var r wire.Report
		if err := stream.Unmarshal(counted, &r); err != nil {
			w.t.Fatal(err)
		}
		change(&r)
		return w.encode(&r)
	}
	high := w.plaintext(0)
	high[0] |= 3 // two bits a count, whose highest is 2
	d.kinds = []wrong{
		{WrongRound, w.name.Report(stream.Round(in.round+7), 1), counted},
		{WrongAttempt, w.name.Report(in.round, stream.Attempt(in.attempt+1)), counted},
		{WrongTask, here, changed(func(r *wire.Report) { r.TaskHash = make([]byte, stream.HashSize) })},
		{Malformed, here, []byte("not a report")},
		{Malformed, here, append(bytes.Clone(counted), 0xf8, 0x7f, 1)},
		{Version, here, changed(func(r *wire.Report) { r.Version++ })},
		{Bundle, here, changed(func(r *wire.Report) {
			r.Ids = [][]byte{r.Ids[0], bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 16)}
			r.Ciphertext = r.Ciphertext[:1] // small enough to be looked at
		})},
		{Length, here, bytes.Repeat([]byte{7}, 60_000)},
		{Length, here, changed(func(r *wire.Report) { r.Ciphertext = r.Ciphertext[1:] })},
		{Undecryptable, here, changed(func(r *wire.Report) { r.Ciphertext[0] ^= 1 })},
		{Undecryptable, here, under(func(c *seal.Context) { c.ManifestHash[0] ^= 1 })},
		{Undecryptable, here, under(func(c *seal.Context) { c.Attempt++ })},
		{Undecryptable, here, changed(func(r *wire.Report) { r.Ids[0][0] ^= 1 })}, // somebody's, under another id
		{Range, here, w.seal(in, [][16]byte{randomID()}, high)},
		{Duplicate, here, counted}, // replayed as it was
	}
	return d
}

// next returns the i-th report.
func (d *wrongdoer) next(i int) (Reason, stream.Outgoing) {
	k := d.kinds[i%len(d.kinds)]
	if opened := k.want >= Undecryptable; opened && i/len(d.kinds)%4 != 0 {
		k = d.kinds[1] // opening takes most of the time
	}
	return k.want, stream.Outgoing{Subject: k.subject, ID: randomID(), Data: k.data}
}

// TestFlood: reports of every wrong kind, many times more than there are users, are each counted by their reason; the
// good ones among them are all counted once; and what a flood leaves in memory does not grow with it.
func TestFlood(t *testing.T) {
	n := 20_000
	if longtest.Run(t, "a flood of a million wrong reports; 20,000 are sent") {
		n = 1_000_000
	}
	const users = 64
	begun := time.Now() // outside of the bubble: the real clock
	var grown int64
	synctest.Test(t, func(t *testing.T) {
		// A queue that holds little, so that what is measured is the stage.
		w := newWorld(t, plan{cohort: users, suite: wire.Suite_SUITE_X25519, bundle: 2,
			broker: memory.Config{MaxReportBytes: 1 << 20, Window: 256}})
		w.bundle = 1
		w.announce(t.Context())
		c := w.config()
		got := map[Reason]uint64{}
		c.Observer.Report = func(r Reason) { got[r]++ }
		running := make(chan error, 1)
		s := w.new(c)
		go func() { running <- s.Run(t.Context()) }()
		in := w.invited(t.Context(), 1, 0)
		first := w.seal(in, [][16]byte{randomID()}, w.plaintext(0))
		w.send(t.Context(), in, first)
		d := w.newWrongdoer(in, first)
		sent := map[Reason]uint64{}
		var before memorySize
		for i := 0; i < n; {
			var batch []stream.Outgoing
			for range min(512, n-i) {
				reason, r := d.next(i)
				sent[reason]++
				batch = append(batch, r)
				i++
				if good := i * (users - 2) / n; good > (i-1)*(users-2)/n { // users 1 to 62, spread over the flood
					w.deliver(t.Context(), batch)
					w.answer(t.Context(), in, []uint64{uint64(good)})
					batch = nil
				}
			}
			w.deliver(t.Context(), batch)
			switch synctest.Wait(); {
			case i == 1024:
				before = measure()
			case i%(n/8/512*512) == 0:
				grown = max(grown, measure().over(before))
			}
		}
		grown = max(grown, measure().over(before))
		w.answer(t.Context(), in, []uint64{users - 1})
		b, _ := w.await(t.Context(), 1)
		w.end(t.Context(), 1)
		if err := <-running; err != nil {
			t.Error(err)
		}
		sent[Accepted] = users
		for _, r := range Reasons() {
			if got[r] != sent[r] {
				t.Errorf("%v: %d reports were examined, %d were sent", r, got[r], sent[r])
			}
		}
		delete(sent, Accepted)
		if want := (&wire.Batch{Rejects: rejectsOf(sent)}); !proto.Equal(&wire.Batch{Rejects: b.Rejects}, want) {
			t.Errorf("the batch counts %v, want %v", b.Rejects, want.Rejects)
		}
		if real, void := w.audit(); real != 1 || void != 0 || b.Users != users {
			t.Errorf("%d real, %d void batches, %d users", real, void, b.Users)
		}
	})
	// What one flood may leave, whatever its length: pools of buffers, the broker's queue of 1 MiB, the prefetch.
	if grown > 8<<20 {
		t.Errorf("memory grew by %d bytes over a flood of %d wrong reports", grown, n)
	}
	took := time.Since(begun)
	fmt.Printf(
		"flood: %d wrong reports of %d kinds absorbed in %v, %.0f a second (published, queued, examined; a tenth of them opened); memory grew by at most %d KiB\n",
		n, 15, took.Round(time.Millisecond), float64(n)/took.Seconds(), grown>>10)
}

// rejectsOf returns the rejects that a batch with these counts must hold.
func rejectsOf(n map[Reason]uint64) []*wire.Reject {
	var counts [reasons]uint64
	for r, c := range n {
		counts[r] = c
	}
	return rejects(counts)
}

// await waits for the batch of a round, far longer than any deadline of these tests.
func (w *world) await(ctx context.Context, r stream.Round) (*wire.Batch, stream.Message) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if w.get(ctx, w.name.Batch(r)) == nil {
		w.t.Fatal("no batch")
	}
	return w.batch(r)
}

// A memorySize holds the bytes of the heap after a collection: of live objects, and of the spans that hold them.
type memorySize struct{ alloc, inuse uint64 }

func measure() memorySize {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return memorySize{m.HeapAlloc, m.HeapInuse}
}

// over returns the bytes by which one of the two sizes has grown most.
func (m memorySize) over(before memorySize) int64 {
	return max(int64(m.alloc)-int64(before.alloc), int64(m.inuse)-int64(before.inuse))
}
