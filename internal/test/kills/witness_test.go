package kills

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// lookEvery is the time between two looks of the witness when nothing wakes it.
const lookEvery = 100 * time.Millisecond

// A witness reads along while the campaign runs, and remembers the first bytes that it saw of every record.
type witness struct {
	wakes chan struct{} // holds a token after a record was announced
	conn  *natsjs.Conn
	stop  context.CancelFunc
	done  chan struct{}

	mu         sync.Mutex
	book       map[string][]byte
	newest     uint64
	violations []string
}

// watch starts a witness. It ends with close.
func watch(t testing.TB, url string) *witness {
	t.Helper()
	conn, err := natsjs.Connect(natsjs.ConnectConfig{URL: url, AckTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &witness{wakes: make(chan struct{}, 1), conn: conn, stop: stop, done: make(chan struct{}),
		book: map[string][]byte{}}
	wakes, err := conn.Watch(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	go w.run(ctx, wakes)
	t.Cleanup(w.close)
	return w
}

func (w *witness) close() {
	w.stop()
	<-w.done
	w.conn.Close()
}

func (w *witness) run(ctx context.Context, wakes <-chan stream.Wake) {
	defer close(w.done)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wakes:
			select {
			case w.wakes <- struct{}{}:
			default:
			}
		case <-tick.C:
		}
		w.look(ctx)
	}
}

// look reads what may be new. What cannot be read now is read later, or in the end.
func (w *witness) look(ctx context.Context) {
	m, err := w.conn.Latest(ctx, name.Rounds())
	if err != nil {
		return
	}
	at, err := stream.ParseSubject(m.Subject)
	if err != nil {
		w.violate("%v", err)
		return
	}
	w.saw(m)
	w.mu.Lock()
	w.newest = max(w.newest, uint64(at.Round))
	w.mu.Unlock()
	subjects := []string{name.Task(), name.Stage(), name.End()}
	for r := max(1, at.Round-1); r <= at.Round; r++ {
		subjects = append(subjects, name.Round(r), name.Claim(r), name.Batch(r))
		if open, err := w.conn.Latest(ctx, name.Opens(r)); err == nil {
			w.saw(open)
			if at, err := stream.ParseSubject(open.Subject); err == nil {
				subjects = append(subjects, name.Close(r, at.Attempt))
			}
		}
	}
	for _, s := range subjects {
		if m, err := w.conn.Get(ctx, s); err == nil {
			w.saw(m)
		}
	}
}

func (w *witness) saw(m stream.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, known := w.book[m.Subject]
	if !known {
		w.book[m.Subject] = m.Data
	} else if !bytes.Equal(was, m.Data) {
		w.violations = append(w.violations, m.Subject+": two different messages stood there")
	}
}

func (w *witness) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func (w *witness) newestRound() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest
}

// checkDisk looks at the folder of a learner that was just killed: what anybody saw of it is there. It returns what
// is there.
func (w *witness) checkDisk(f *fleet) state.Checkpoint {
	c, err := load(f.t, f.path("state"))
	f.keep(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, notOnDisk(w.book, c, err)...)
	return c
}

// notOnDisk lists the records of the learner that were seen and differ from those on its disk.
func notOnDisk(book map[string][]byte, c state.Checkpoint, err error) (all []string) {
	if err != nil && !errors.Is(err, state.ErrEmpty) {
		return []string{err.Error()}
	}
	for subject, seen := range book {
		at, bad := stream.ParseSubject(subject)
		if bad != nil {
			return []string{bad.Error()}
		}
		var want []byte
		switch at.Verb {
		case "task":
			want = c.Task
		case "end":
			want = c.End
		case "round":
			if uint64(at.Round) <= c.Cursor.Round {
				continue // its batch was applied since; the next round replaced it on the disk
			}
			if uint64(at.Round) == c.Cursor.Round+1 {
				want = c.NextRound
			}
		default:
			continue
		}
		if !bytes.Equal(want, seen) {
			all = append(all, fmt.Sprintf("%s was seen, and the learner's disk, at round %d, does not have it", subject,
				c.Cursor.Round))
		}
	}
	return all
}

// load reads the checkpoint of a folder that no process has open.
func load(t testing.TB, dir string) (state.Checkpoint, error) {
	t.Helper()
	store, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	if err != nil {
		return state.Checkpoint{}, err
	}
	defer store.Close()
	return store.Load(context.Background())
}
