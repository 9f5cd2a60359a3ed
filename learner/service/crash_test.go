package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
)

var errCrash = errors.New("the process is gone")

// A mortal is a learner's connection and disk. The life that owns it ends at its n-th effect, done or not, and no later
// effect happens. It also checks, at each put, that nothing is visible that is not committed and reserved.
type mortal struct {
	stream.Records
	w     *world
	die   func()
	at    int // 1 for the first effect; 0: never
	after bool

	mu   sync.Mutex
	n    int
	what []string
}

// effect counts an effect. It reports whether the effect is done, and whether the life ends with it.
func (m *mortal) effect(what string) (do, dies bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	m.what = append(m.what, what)
	dead := m.at > 0 && m.n > m.at
	dies = m.n == m.at
	if dies {
		m.die()
	}
	return !dead && (!dies || m.after), dies || dead
}

func (m *mortal) PutOnce(ctx context.Context, subject string, data []byte) (r stream.PutResult, err error) {
	m.w.committed(subject, data)
	do, dies := m.effect("put " + subject)
	if do {
		r, err = m.Records.PutOnce(context.WithoutCancel(ctx), subject, data)
	}
	if dies {
		return stream.PutResult{}, errCrash
	}
	return r, err
}

func (m *mortal) Get(ctx context.Context, subject string) (r stream.Message, err error) {
	do, dies := m.effect("get " + subject)
	if do {
		r, err = m.Records.Get(ctx, subject)
	}
	if dies {
		return stream.Message{}, errCrash
	}
	return r, err
}

func (m *mortal) fault(next state.Checkpoint) storetest.Fault {
	do, dies := m.effect(fmt.Sprintf("commit %d", next.Cursor.Round))
	switch {
	case !dies:
		return storetest.NoFault
	case do:
		return storetest.FailAfter
	}
	return storetest.FailBefore
}

// committed insists that bytes on their way to the broker are on the disk, a round together with its reservation.
func (w *world) committed(subject string, data []byte) {
	at, err := w.store.Load(context.Background())
	if errors.Is(err, state.ErrFailed) {
		return // a dead process's last call; mortal does not do it
	}
	if err != nil {
		w.t.Errorf("put %s: nothing is committed: %v", subject, err)
		return
	}
	address, err := stream.ParseSubject(subject)
	if err != nil {
		w.t.Error(err)
		return
	}
	want := map[string][]byte{"task": at.Task, "round": at.NextRound, "end": at.End}[address.Verb]
	if !bytes.Equal(data, want) {
		w.t.Errorf("put %s: not the committed bytes", subject)
	}
	if address.Verb != "round" {
		return
	}
	reserved := at.Ledger.Open
	if reserved.Round != uint64(address.Round) || reserved.Round != at.Cursor.Round+1 {
		w.t.Errorf("put %s: no reservation of it is open after committed round %d", subject, at.Cursor.Round)
	}
	if want := w.budget; reserved.Round < w.rounds && reserved.Epsilon != want {
		w.t.Errorf("round %d: reserved epsilon %v, the accountant says %v", address.Round, reserved.Epsilon, want)
	}
}

// life runs one learner process that dies at its n-th effect. It returns the effects, and whether it lived to
// the end.
func (w *world) life(ctx context.Context, at int, after bool) (what []string, lived bool) {
	ctx, die := context.WithCancel(ctx)
	defer die()
	m := &mortal{Records: w.broker, w: w, die: die, at: at, after: after}
	w.store.Fault = m.fault
	c := w.config()
	c.Records = m
	err := w.new(c).Run(ctx)
	w.store.Fault = nil
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, state.ErrFailed) {
		w.t.Errorf("Run: %v", err)
	}
	return m.what, err == nil
}

// TestCrashAtEveryEffect kills the learner at each put, get and commit in turn, done or not done, and starts
// another: every byte that anybody can see, and every byte on the disk, is as in a run that nobody disturbed.
func TestCrashAtEveryEffect(t *testing.T) {
	people := newCast(t)
	crashes := crashEverywhere(t, undisturbedWorld(t, people, 3, 2), func(t *testing.T) *world {
		return newWorld(t, people,
			3)
	})
	t.Logf("%d crashes", crashes)
	if want := 2 * (1 + 1 + 4*3 + 1); crashes < want { // at least: commit, task, put, get and commit of 4 rounds, end
		t.Errorf("only %d crashes, want at least %d", crashes, want)
	}
}

// crashEverywhere holds every run with one crash against the undisturbed one, and returns how many there were.
func crashEverywhere(t *testing.T, undisturbed *world, anew func(*testing.T) *world) (crashes int) {
	for k := 1; ; k++ {
		var lived bool
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := anew(t)
				w.voids = undisturbed.voids
				var what []string
				w.play(func(ctx context.Context) {
					if what, lived = w.life(ctx, k, after); lived {
						return
					}
					w.reopen()
					if _, again := w.life(ctx, 0, false); !again {
						t.Error("the second life did not end the task")
					}
				})
				if !lived {
					crashes++
				}
				same(t, w, undisturbed)
				if t.Failed() {
					t.Logf("after a crash at effect %d, %q, done %t", k, what[min(k, len(what))-1], after)
				}
			})
		}
		if lived {
			return crashes
		}
	}
}

// TestCrashesOnABadBroker draws many lives that die at random effects, on a broker that loses acknowledgements and
// wakes and reads from lagging replicas.
func TestCrashesOnABadBroker(t *testing.T) {
	people := newCast(t)
	undisturbed := undisturbedWorld(t, people, 4)
	for seed := range longtest.Seeds(t, uint64(12)) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t, people, 4)
			w.broker.Inject(memory.Random(seed, memory.Rates{LostAck: 0.3, Lost: 0.2, Lag: 0.4}))
			lives := 1
			w.play(func(ctx context.Context) {
				for lived := false; !lived; lives++ {
					if _, lived = w.life(ctx, 1+rng.IntN(12), rng.IntN(2) == 0); !lived {
						w.reopen()
					}
				}
			})
			same(t, w, undisturbed)
			if t.Failed() {
				t.Logf("seed %d, %d lives", seed, lives)
			}
		})
	}
}

// TestFirstCommitComesFirst: a fresh learner commits before it writes anything, and before it reads anything unless it
// needs the stage's key.
func TestFirstCommitComesFirst(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newCast(t), 1)
			w.play(func(ctx context.Context) {
				ctx, die := context.WithCancel(ctx)
				defer die()
				m := &mortal{Records: w.broker, w: w, die: die}
				w.store.Fault = m.fault
				c := w.config()
				c.Records = m
				if !pinned {
					c.StageKey = nil
				}
				if err := w.new(c).Run(ctx); err != nil {
					t.Error(err)
				}
				first := slices.IndexFunc(m.what, func(s string) bool { return !strings.HasPrefix(s, "get ") })
				if first < 0 || m.what[first] != "commit 0" || (first == 0) != pinned {
					t.Errorf("the stage's key pinned: %t: first effects %q", pinned, m.what[:min(4, len(m.what))])
				}
			})
		})
	}
}
