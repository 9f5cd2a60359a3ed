package device_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// content returns all that a store and a ledger hold of ten rows.
func content(t *testing.T, s participation.Store, l ledger.Ledger) string {
	t.Helper()
	keys := make([]participation.Key, 10)
	for i := range keys {
		keys[i] = participation.RowKey("users.libsvm", int64(i))
	}
	parts, err := s.Read(keys)
	must(t, err)
	out := fmt.Sprint(everyone(t, l))
	for _, p := range parts {
		out += " " + p.State.String()
	}
	for r := stream.Round(1); r < 5; r++ {
		hash, found, err := s.Manifest(r)
		must(t, err)
		out += fmt.Sprint(r, found, hash)
	}
	pin, pinned, err := s.Pin()
	must(t, err)
	return fmt.Sprint(out, pin, pinned)
}

// A learner that announces, under its own good signature, anything but what its task fixes gets nothing: no report is
// published, and nothing changes in the store or the ledger.
func TestAGreedyLearnerGetsNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*wire.Round)
	}{
		{"NaN in the point", func(r *wire.Round) { r.Point[1] = math.NaN() }},
		{"infinity in the point", func(r *wire.Round) { r.Point[1] = math.Inf(-1) }},
		{"a point outside the domain", func(r *wire.Round) { r.Point[1] = 1e6 }},
		{"a point whose norm overflows", func(r *wire.Round) { r.Point[0], r.Point[1] = math.MaxFloat64, math.MaxFloat64 }},
		{"a longer point", func(r *wire.Round) { r.Point = append(r.Point, 0) }},
		{"another task hash", func(r *wire.Round) { r.TaskHash = make([]byte, stream.HashSize) }},
		{"a step beyond the plan", func(r *wire.Round) { r.Step = 99 }},
		{"a round of another number", func(r *wire.Round) { r.Round, r.Step = 3, 3 }},
		{"another version", func(r *wire.Round) { r.Version = 2 }},
		{"a deadline of its own below the plan's",
			func(r *wire.Round) { r.DeadlineMs = uint64(time.Minute/time.Millisecond) - 1 }},
		{"a deadline of its own beyond the plan's longest",
			func(r *wire.Round) { r.DeadlineMs = uint64(time.Hour/time.Millisecond) + 1 }},
		{"a field that nobody knows", func(r *wire.Round) {
			r.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
		}},
		{"the first round again at another point", func(r *wire.Round) { r.Round, r.Step, r.Point[0] = 1, 1, 2 }},
	} {
		for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.ShufflePan} {
			synctest.Test(t, func(t *testing.T) { greedy(t, c.name, trust, c.change) })
		}
	}
	synctest.Test(t, func(t *testing.T) { greedy(t, honest, accounting.Shuffle, func(*wire.Round) {}) })
}

// honest is the case in which nothing is changed and the rest of the rows is sent: without it the others show nothing.
const honest = "nothing"

// forceSigned signs what Identity.Sign refuses to.
func forceSigned(t *testing.T, path string, m proto.Message) []byte {
	file, err := os.ReadFile(path)
	must(t, err)
	block, _ := pem.Decode(file)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	must(t, err)
	private := key.(ed25519.PrivateKey)
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	must(t, err)
	data, err := stream.Marshal(&wire.Signed{Version: stream.Version, Kind: wire.Kind_KIND_ROUND, Body: body,
		Key: private.Public().(ed25519.PublicKey), Signature: ed25519.Sign(private, append([]byte("panlearn/v1/round\x00"),
			body...))})
	must(t, err)
	return data
}

// The bytes of forceSigned are those that an honest learner would have signed, where it would sign at all.
func TestForceSigned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "learner.key")
	id, _, err := seal.LoadOrCreateIdentity(path)
	must(t, err)
	m := newWorld(t, plan{rounds: 4, cohort: 10}).round(1, 1)
	want, err := id.Sign(m)
	must(t, err)
	if got := forceSigned(t, path, m); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// greedy lets five rows take part in round 1 and announces the changed round 2 for the rest.
func greedy(t *testing.T, name string, trust accounting.Trust, change func(*wire.Round)) {
	ctx := t.Context()
	w := newWorld(t, plan{rounds: 4, cohort: 10, minimum: 8, deadline: time.Minute, trust: trust, bundle: 2})
	path := filepath.Join(t.TempDir(), "learner.key")
	var err error
	w.learner, _, err = seal.LoadOrCreateIdentity(path)
	must(t, err)
	w.task.LearnerKey, w.task.Plan.StaleMs = w.learner.Public(), uint64(time.Hour.Milliseconds())
	w.hash = taskHash(t, w.task)
	store, book := participation.NewMemoryStore(), memory.NewLedger()
	run := func(w *world) error {
		c := w.config(store)
		c.Ledger = book
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		_, err := w.client(c).Run(short, rows(10, false))
		return err
	}
	first := w.announce(ctx, 1)
	w.open(ctx, 1, 1, first)
	c := w.config(store)
	c.Ledger = book
	short, stop := context.WithTimeout(ctx, 20*time.Second)
	_, _ = w.client(c).Run(short, rows(5, false)) // charged, and the outcome is not known
	stop()
	if n := w.reports(1, 1); n != 5 {
		t.Fatalf("%s: %d reports in the first round, want 5", name, n)
	}
	before := content(t, store, book)

	again := newWorld(t, plan{rounds: 4, cohort: 10, minimum: 8, deadline: time.Minute, trust: trust, bundle: 2})
	again.learner, again.stage, again.task, again.hash = w.learner, w.stage, w.task, w.hash
	m := proto.CloneOf(again.round(2, 2))
	change(m)
	number := m.Round
	again.put(ctx, w.name.Task(), w.learner, w.task)
	data := forceSigned(t, path, m)
	if number > 2 {
		number = 2 // said on another subject than its own
	}
	_, err = again.broker.PutOnce(ctx, w.name.Round(stream.Round(number)), data)
	must(t, err)
	hash, err := manifest.RoundHash(m)
	if err != nil {
		hash = stream.Hash{1}
	}
	again.open(ctx, stream.Round(number), 1, hash)
	if err := run(again); err == nil { // a refusal, or ignored until the time was over
		t.Errorf("%s, %v: no error", name, trust)
	}
	if name == honest {
		if n := again.reports(2, 1); n != 5 {
			t.Errorf("%d reports in an honest round, want 5", n)
		}
		return
	}
	for r := stream.Round(1); r <= 3; r++ {
		if n := again.reports(r, 1); n != 0 {
			t.Errorf("%s, %v: %d reports in round %d", name, trust, n, r)
		}
	}
	if after := content(t, store, book); after != before {
		t.Errorf("%s, %v: store and ledger went from %s to %s", name, trust, before, after)
	}
}
