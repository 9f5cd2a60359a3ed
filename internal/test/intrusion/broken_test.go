package intrusion

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/wire"
)

// Broken holds faults that a test puts into the system.
type broken struct {
	opened   func(*world, *attempt) // after an attempt is opened, on the stage's goroutine
	examined func(*world, *attempt) // between two reports, on the stage's goroutine
	store    func(*world, state.Store) state.Store
}

func (b broken) wrap(w *world, s state.Store) state.Store {
	if b.store == nil {
		return s
	}
	return b.store(w, s)
}

// TestLeaksAreFound: a system that leaks in a dozen ways, each in another round or file, is found out in every one.
func TestLeaksAreFound(t *testing.T) {
	var spill *pebble.DB
	b := broken{
		opened: func(w *world, a *attempt) {
			a.key.use(func(key []byte) {
				switch a.round {
				case 1: // the key kept in memory
					w.kept = append(w.kept, slices.Clone(key))
				case 2: // in a file
					w.write("key.hex", []byte("sk="+hex.EncodeToString(key)))
				default: // in a log
					w.log().Debug("opened", "key", base64.StdEncoding.EncodeToString(append([]byte("x"), key...)))
				}
			})
			if a.round == 1 {
				w.log().Debug("begun", "identity", fmt.Sprintf("%X", w.identitySeed("stage.key")))
			}
		},
		examined: func(w *world, a *attempt) {
			if a.round != 1 {
				return
			}
			v := w.view(a)
			report, totals := v.users[len(v.users)-1].counts, v.running[len(v.running)-1]
			switch len(v.users) {
			case 1: // what one user said, as it is packed, and as text
				w.write("report", append([]byte("prefix"), report...))
				w.log().Debug("report", "counts", w.unpack(report))
			case 2: // the running totals
				w.write("totals", fmt.Append(nil, "totals: ", totals))
			default: // a mid-batch checkpoint, always under one key and in the end deleted: the log keeps every version
				if spill == nil {
					var err error
					spill, err = pebble.Open(filepath.Join(w.dir, "partial"), &pebble.Options{Logger: quiet{}})
					must(err)
				}
				must(spill.Set([]byte("checkpoint"), words(totals), pebble.Sync))
				must(spill.Delete([]byte("checkpoint"), pebble.Sync))
			}
		},
		store: func(w *world, s state.Store) state.Store { return &careless{s, w} },
	}
	w := wholeLife(t, small(wire.Suite_SUITE_X25519, 3), b)
	if spill != nil {
		must(spill.Close())
	}
	// The sum without noise: nobody in the system can know it, so it is left here.
	w.steal("in the end")
	last := w.copies[len(w.copies)-1]
	for _, s := range w.secrets() {
		if strings.HasPrefix(s.name, "the sum of gradients of round 1") ||
			strings.HasPrefix(s.name, "the gradient of user 7 ") ||
			strings.HasPrefix(s.name, "the levels of round 2") {
			last.files["leak "+s.name] = append([]byte("xyz"), s.forms[len(s.forms)-1]...)
		}
	}
	found := strings.Join(w.audit(t).violations, "\n") + "\n"
	for _, want := range []string{
		"the key of round 1, attempt 1 is in memory after the batch",
		"key.hex holds part 0 of the key of round 2",
		"logs holds part 0 of the key of round 3",
		"logs and the identity stage.key",
		"report holds the report of user",
		"logs holds the report of user",
		"totals holds the totals of round 1 after 2 users",
		`of key "checkpoint" is nothing that the batches make`,
		"holds the totals of round 1 after 5 users",
		"holds the sum of gradients of round 1",
		"holds the gradient of user 7",
		"holds the levels of round 2 without noise",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("not found: %s", want)
		}
	}
	if t.Failed() {
		t.Log(found)
	}
}

// write leaves a file in the learner's state folder.
func (w *world) write(file string, data []byte) {
	must(os.WriteFile(filepath.Join(w.dir, "state", file), data, 0o600))
}

func words(v []uint64) (b []byte) {
	for _, x := range v {
		b = binary.AppendUvarint(b, x)
	}
	return b
}

// careless puts something into every checkpoint that no batch makes.
type careless struct {
	state.Store
	w *world
}

// Commit implements state.Store.
func (c *careless) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	next.LastBatch = append(slices.Clone(next.LastBatch), ' ')
	return c.Store.Commit(ctx, next, entries, kept...)
}

// quiet is a logger of Pebble that logs nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(f string, a ...any) {
	panic(fmt.Sprintf(f, a...))
}
