package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
)

// once returns an injector that returns fault for the first operation of a kind.
func once(op memory.Op, fault memory.Fault) memory.Injector {
	done := false
	return func(o memory.Op, _ string) memory.Fault {
		if done || o != op {
			return memory.None
		}
		done = true
		return fault
	}
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		inject memory.Injector
		run    func(b *memory.Broker, r *memory.Reader) error
	}{
		"put, acknowledgement lost": {once(memory.Put, memory.LostAck), func(b *memory.Broker, _ *memory.Reader) error {
			if _, err := b.PutOnce(ctx, task.Round(1), []byte("x")); !errors.Is(err, memory.ErrDisconnected) {
				return fmt.Errorf("put: %v", err)
			}
			m, err := b.Get(ctx, task.Round(1))
			if err != nil || string(m.Data) != "x" {
				return fmt.Errorf("get: %v, %v", m, err)
			}
			return nil
		}},
		"put, read back": {once(memory.Put, memory.LostAckRead), func(b *memory.Broker, _ *memory.Reader) error {
			r, err := b.PutOnce(ctx, task.Round(1), []byte("x"))
			if err != nil || !r.Ours {
				return fmt.Errorf("put: %v, %v", r, err)
			}
			return nil
		}},
		"put lost": {once(memory.Put, memory.Lost), func(b *memory.Broker, _ *memory.Reader) error {
			if _, err := b.PutOnce(ctx, task.Round(1), []byte("x")); !errors.Is(err, memory.ErrDisconnected) {
				return fmt.Errorf("put: %v", err)
			}
			if _, err := b.Get(ctx, task.Round(1)); !errors.Is(err, stream.ErrNotFound) {
				return fmt.Errorf("get: %v", err)
			}
			return nil
		}},
		"swap, acknowledgement lost": {once(memory.Swap, memory.LostAck), func(b *memory.Broker, _ *memory.Reader) error {
			if _, err := b.Swap(ctx, task.Lease(), 0, []byte("x")); !errors.Is(err, memory.ErrDisconnected) {
				return fmt.Errorf("swap: %v", err)
			}
			if _, err := b.Swap(ctx, task.Lease(), 0, []byte("x")); !errors.Is(err, stream.ErrConflict) {
				return fmt.Errorf("swap again: %v", err)
			}
			return nil
		}},
		"read lags": {once(memory.Get, memory.Lag), func(b *memory.Broker, _ *memory.Reader) error {
			if _, err := b.PutOnce(ctx, task.Round(1), []byte("x")); err != nil {
				return err
			}
			if _, err := b.Get(ctx, task.Round(1)); !errors.Is(err, stream.ErrNotFound) {
				return fmt.Errorf("get: %v", err)
			}
			_, err := b.Get(ctx, task.Round(1))
			return err
		}},
		"latest lags by one": {once(memory.Latest, memory.Lag), func(b *memory.Broker, _ *memory.Reader) error {
			for r := range uint64(3) {
				if _, err := b.PutOnce(ctx, task.Round(stream.Round(r+1)), []byte("x")); err != nil {
					return err
				}
			}
			for _, want := range []string{task.Round(2), task.Round(3)} {
				if m, err := b.Latest(ctx, task.Rounds()); err != nil || m.Subject != want {
					return fmt.Errorf("latest: %v, %v, want %s", m, err, want)
				}
			}
			return nil
		}},
		"wake lost": {once(memory.Wake, memory.Lost), func(b *memory.Broker, _ *memory.Reader) error {
			ch, err := b.Watch(t.Context(), task)
			if err != nil {
				return err
			}
			<-ch
			for _, want := range []int{0, 1} {
				if _, err := b.PutOnce(ctx, task.Round(stream.Round(uint64(want)+1)), []byte("x")); err != nil {
					return err
				}
				if len(ch) != want {
					return fmt.Errorf("%d wakes, want %d", len(ch), want)
				}
			}
			return nil
		}},
		"publish lost": {once(memory.Publish, memory.Lost), func(b *memory.Broker, _ *memory.Reader) error {
			acks, err := b.Publish(ctx, outgoing(2))
			if err != nil || acks[0] != (stream.Ack{}) || acks[1].Sequence != 1 {
				return fmt.Errorf("publish: %v, %v", acks, err)
			}
			return nil
		}},
		"publish stored twice": {once(memory.Publish, memory.Twice), func(b *memory.Broker, r *memory.Reader) error {
			acks, err := b.Publish(ctx, outgoing(1))
			if err != nil || acks[0].Sequence != 1 {
				return fmt.Errorf("publish: %v, %v", acks, err)
			}
			got, err := r.Fetch(ctx, 9, 0)
			if err != nil || len(got) != 2 || got[1].Sequence != 2 || !bytes.Equal(got[0].Data, got[1].Data) {
				return fmt.Errorf("fetch: %v, %v", got, err)
			}
			return nil
		}},
		"delivered twice": {once(memory.Deliver, memory.Twice), func(b *memory.Broker, r *memory.Reader) error {
			if _, err := b.Publish(ctx, outgoing(1)); err != nil {
				return err
			}
			got, err := r.Fetch(ctx, 9, 0)
			if err != nil || len(got) != 2 || got[1].Sequence != 1 || !got[1].Redelivered {
				return fmt.Errorf("fetch: %v, %v", got, err)
			}
			return errors.Join(got[0].Ack(), got[1].Ack())
		}},
		"delivery lost": {once(memory.Deliver, memory.Lost), func(b *memory.Broker, r *memory.Reader) error {
			if _, err := b.Publish(ctx, outgoing(1)); err != nil {
				return err
			}
			if got, err := r.Fetch(ctx, 9, 0); err != nil || len(got) != 0 {
				return fmt.Errorf("fetch: %v, %v", got, err)
			}
			b.Redeliver(task)
			if got, err := r.Fetch(ctx, 9, 0); err != nil || len(got) != 1 || !got[0].Redelivered {
				return fmt.Errorf("fetch: %v, %v", got, err)
			}
			return nil
		}},
		"ack lost": {once(memory.Ack, memory.Lost), func(b *memory.Broker, r *memory.Reader) error {
			if _, err := b.Publish(ctx, outgoing(1)); err != nil {
				return err
			}
			got, err := r.Fetch(ctx, 9, 0)
			if err != nil || len(got) != 1 {
				return fmt.Errorf("fetch: %v, %v", got, err)
			}
			if err := got[0].Ack(); err != nil {
				return err
			}
			b.Redeliver(task)
			if got, err = r.Fetch(ctx, 9, 0); err != nil || len(got) != 1 {
				return fmt.Errorf("fetch again: %v, %v", got, err)
			}
			return nil
		}},
		"window forgotten": {nil, func(b *memory.Broker, _ *memory.Reader) error {
			var all []stream.Ack
			for i := range 3 {
				if i == 2 {
					b.Forget(task)
				}
				acks, err := b.Publish(ctx, outgoing(1))
				if err != nil {
					return err
				}
				all = append(all, acks...)
			}
			if want := []stream.Ack{{Status: stream.Stored, Sequence: 1}, {Status: stream.Duplicate, Sequence: 1},
				{Status: stream.Stored, Sequence: 2}}; !slices.Equal(all, want) {
				return fmt.Errorf("acks %v", all)
			}
			return nil
		}},
	} {
		b, r := open(t, memory.Config{Inject: test.inject})
		if err := test.run(b, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDisconnect(t *testing.T) {
	b, r := open(t, memory.Config{})
	ctx := t.Context()
	ch, err := b.Watch(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	<-ch
	b.Disconnect()
	_, put := b.PutOnce(ctx, task.Round(1), nil)
	_, get := b.Get(ctx, task.Round(1))
	_, swap := b.Swap(ctx, task.Lease(), 0, nil)
	acks, publish := b.Publish(ctx, outgoing(2))
	_, fetch := r.Fetch(ctx, 1, time.Hour)
	for i, err := range []error{put, get, swap, publish, fetch, r.Purge(ctx, 1)} {
		if !errors.Is(err, memory.ErrDisconnected) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if len(acks) != 2 || acks[0].Status != stream.Unknown {
		t.Errorf("acks %v", acks)
	}
	b.Connect()
	<-ch
	if _, err := b.PutOnce(ctx, task.Round(1), nil); err != nil {
		t.Error(err)
	}
}

// run plays one history of a broker under random faults; the replies are a function of the seed.
func run(t *testing.T, seed uint64) []string {
	b, r := open(t, memory.Config{Seed: seed, Shuffle: true, Window: 16, MaxAckPending: 20,
		Inject: memory.Random(seed, memory.Rates{LostAck: 0.2, Lost: 0.1, Duplicate: 0.2, Lag: 0.3})})
	ctx := context.Background()
	var log []string
	say := func(v ...any) { log = append(log, fmt.Sprint(v...)) }
	for i := range uint64(30) {
		p, err := b.PutOnce(ctx, task.Round(stream.Round(i/3+1)), []byte{byte(i)})
		say(p.Ours, p.Standing, err)
		m, err := b.Latest(ctx, task.Rounds())
		m.Time = time.Time{} // when is no part of it
		say(m, err)
		acks, err := b.Publish(ctx, outgoing(int(i)))
		say(acks, err)
		got, err := r.Fetch(ctx, 7, 0)
		for _, d := range got {
			say(d.Message, d.Redelivered, d.Ack())
		}
		say(err)
		b.Redeliver(task)
	}
	return log
}

func TestFaultsAreAFunctionOfTheSeed(t *testing.T) {
	for seed := range uint64(5) {
		if one, two := run(t, seed), run(t, seed); !reflect.DeepEqual(one, two) {
			t.Errorf("seed %d: two histories", seed)
		}
	}
	if reflect.DeepEqual(run(t, 1), run(t, 2)) {
		t.Error("seeds 1 and 2: one history")
	}
}

// TestNothingIsLost: under any faults every report that was ever acknowledged, or may have been stored, is delivered
// until it is acknowledged, and never as something else.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		rates := memory.Rates{LostAck: 0.2, Lost: 0.2, Duplicate: 0.2}
		b, r := open(t, memory.Config{Seed: seed, Shuffle: rapid.Bool().Draw(rt, "shuffle"), MaxAckPending: rapid.IntRange(1,
			50).Draw(rt, "pending"),
			Inject: memory.Random(seed, rates), Keep: true})
		ctx := context.Background()
		sent := outgoing(rapid.IntRange(1, 60).Draw(rt, "reports"))
		acks, err := b.Publish(ctx, sent)
		if err != nil {
			rt.Fatal(err)
		}
		stored := map[uint64]bool{}
		for _, s := range b.Dump() {
			stored[s.Sequence] = true
		}
		for i, a := range acks {
			if a.Status == stream.Stored && !stored[a.Sequence] {
				rt.Fatalf("report %d: acknowledged at %d, not stored", i, a.Sequence)
			}
		}
		seen := map[uint64]byte{}
		for range 2000 {
			got, err := r.Fetch(ctx, 8, 0)
			if err != nil {
				rt.Fatal(err)
			}
			for _, d := range got {
				if old, ok := seen[d.Sequence]; ok && old != d.Data[0] {
					rt.Fatalf("sequence %d is two reports", d.Sequence)
				}
				seen[d.Sequence] = d.Data[0]
				clear(d.Data) // the reader's to overwrite
				if err := d.Ack(); err != nil {
					rt.Fatal(err)
				}
			}
			b.Redeliver(task)
		}
		if len(seen) != len(stored) {
			rt.Fatalf("%d of %d stored reports were delivered", len(seen), len(stored))
		}
		for _, s := range b.Dump() {
			if !s.Deleted || s.Stream != stream.Reports || len(s.Data) != 1 {
				rt.Fatalf("left: %+v", s)
			}
		}
	})
}

func TestDump(t *testing.T) {
	b, r := open(t, memory.Config{})
	ctx := context.Background()
	if _, err := b.PutOnce(ctx, task.Round(1), []byte("round")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Publish(ctx, outgoing(2)); err != nil {
		t.Fatal(err)
	}
	got, err := r.Fetch(ctx, 1, 0)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if err := got[0].Ack(); err != nil {
		t.Fatal(err)
	}
	all := b.Dump()
	if len(all) != 2 || all[0].Stream != stream.Rounds || string(all[0].Data) != "round" || all[1].Sequence != 2 ||
		all[1].ID != outgoing(2)[1].ID {
		t.Errorf("%+v", all)
	}
}

func TestConfigRefused(t *testing.T) {
	for _, c := range []memory.Config{{MaxPayload: -1}, {MaxReportBytes: -1}, {MaxAckPending: -1}, {AckWait: -1},
		{Window: -1}} {
		if _, err := memory.New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	b, _ := open(t, memory.Config{})
	if _, err := b.Reader("a.b"); err == nil {
		t.Error("a reader of a task that cannot be")
	}
}

func BenchmarkPublishFetch(b *testing.B) {
	broker, err := memory.New(memory.Config{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := broker.Reader(task)
	if err != nil {
		b.Fatal(err)
	}
	const n = 256
	all := outgoing(n)
	b.SetBytes(1024 * n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range all {
			all[j].Data = make([]byte, 1024)
			all[j].ID[8], all[j].ID[9], all[j].ID[10], all[j].ID[11] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		}
		if _, err := broker.Publish(b.Context(), all); err != nil {
			b.Fatal(err)
		}
		got, err := r.Fetch(b.Context(), n, 0)
		if err != nil || len(got) != n {
			b.Fatal(len(got), err)
		}
		for _, d := range got {
			if err := d.Ack(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "reports/s")
}
