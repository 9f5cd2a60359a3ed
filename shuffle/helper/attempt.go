package helper

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// An attempt is the only holder of the secrets of an attempt: its key, the verify key, the aggregate share.
type attempt struct {
	x       split.Attempt
	suite   wire.Suite
	leader  []byte // the leader's key of the attempt
	key     *seal.RoundKey
	helper  *split.Helper
	workers []*split.Worker
	join    []byte // signed
	cohort  uint64
	joined  time.Time

	busy  bool                    // a goroutine decides
	done  uint64                  // requests up to it are decided
	waits map[uint64]func([]byte) // by number of requests, where the reply goes
	sent  map[uint64][]byte       // signed replies that the leader may request again
}

// newAttempt draws the keys of an attempt with a verified Open, and signs its Join. x has no hash of a Join.
func (h *Helper) newAttempt(open *wire.Open, x split.Attempt, r round, now time.Time) (*attempt, error) {
	suite := h.task.Suite
	key, err := seal.NewRoundKey(suite)
	if err != nil {
		return nil, err
	}
	if err := (seal.SharedKeys{Leader: open.PublicKey, Helper: key.Public()}).Check(suite); err != nil {
		return nil, err
	}
	var verify split.VerifyKey
	_, _ = rand.Read(verify[:]) // never fails
	defer clear(verify[:])
	encapsulated, ciphertext, err := seal.SealVerifyKey(suite, open.PublicKey, r.manifest, h.hash, x.Open, verify[:])
	if err != nil {
		return nil, err
	}
	hash := verify.Hash()
	join, err := h.Identity.Sign(&wire.Join{Version: stream.Version, TaskHash: h.hash[:], Round: x.Round, Attempt: x.Number,
		ManifestHash: r.manifest[:], OpenHash: x.Open[:], Suite: suite, PublicKey: key.Public(), Instance: h.Instance[:],
		VerifyKeyHash: hash[:], KeyEncapsulated: encapsulated, KeyCiphertext: ciphertext, StartedUnixMs: now.UnixMilli()})
	if err != nil {
		return nil, err
	}
	x.Join = stream.HashOf(join)
	cfg := splitwire.ConfigOf(r.mixer, x, r.manifest, verify, h.Limits.MaxPayload)
	a := &attempt{x: x, suite: suite, leader: open.PublicKey, key: key, join: join, cohort: cfg.Cohort, joined: now,
		waits: map[uint64]func([]byte){}, sent: map[uint64][]byte{}}
	if a.helper, err = split.NewHelper(cfg); err != nil {
		return nil, err
	}
	for range h.Workers {
		w, err := a.helper.Worker(splitwire.OpenerOf(key, splitwire.ContextOf(x, r.manifest), seal.Helper))
		if err != nil {
			return nil, err
		}
		a.workers = append(a.workers, w)
	}
	return a, nil
}

// hold begins an attempt, and erases the one before. It returns false while a release waits for the folder, and where
// the attempt before was released since the desk was asked: then the desk is asked again.
func (h *Helper) hold(a *attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, _, ok := h.desk.Join(a.x); !ok || h.closing != nil {
		return false
	}
	h.drop()
	h.desk.Hold(a.helper)
	h.held = a
	return true
}

// drop erases the attempt that is held, of which nothing was released. h.mu is held.
func (h *Helper) drop() {
	if a := h.held; a != nil {
		h.held = nil
		a.erase()
		observe.Tell2(h.Observer.Dropped, stream.Round(a.x.Round), stream.Attempt(a.x.Number))
	}
}

// erase drops keys and shares. Reports that are being decided come to nothing.
func (a *attempt) erase() {
	a.helper.Erase()
	a.key.Erase()
	a.waits, a.sent = nil, nil
}

// run runs the jobs of a request on all workers.
func (a *attempt) run(jobs []*split.Job) {
	var next atomic.Int64
	var group sync.WaitGroup
	var caught panics.First
	for _, w := range a.workers[:min(len(a.workers), len(jobs))] {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				caught.Do(func() { jobs[i].Run(w) })
			}
		})
	}
	group.Wait()
	caught.Again()
}

// expects notes where the reply to a request goes: to where it was asked for last.
func (a *attempt) expects(r *split.Request, reply func([]byte)) {
	if r.N > a.done && r.N <= a.done+split.Window {
		a.waits[r.N] = reply
	}
	for n := range a.sent {
		if n <= min(r.Base, a.done) {
			delete(a.sent, n)
		}
	}
}

// decide begins to decide the next request in order, if it is there and no other is being decided. h.mu is held.
func (h *Helper) decide(a *attempt) {
	if a.busy || h.over {
		return
	}
	if jobs, ok := a.helper.Work(); ok {
		a.busy = true
		h.deciding.Go(func() {
			h.caught.Do(func() {
				for jobs := jobs; jobs != nil; {
					a.run(jobs)
					jobs = h.decided(a)
				}
			})
			if h.caught.Any() {
				h.look()
			}
		})
	}
}

// decided counts the users of a request after its jobs have run, sends the reply, and returns the jobs of the next
// request, or nil if there is none.
func (h *Helper) decided(a *attempt) []*split.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	reply, err := a.helper.Decide()
	var data []byte
	if err == nil {
		data, err = splitwire.Seal(h.Identity, a.suite, a.leader, &reply)
	}
	if err != nil {
		a.busy = false
		if h.held == a {
			h.perform(h.desk.Ended(a.x), a.waits[a.done+1])
		}
		return nil
	}
	var counts split.Rejects
	for _, o := range reply.Outcomes {
		counts[o]++
	}
	for o, n := range counts {
		if n > 0 {
			observe.Tell2(h.Observer.Decided, split.Outcome(o), n)
		}
	}
	a.done = reply.N
	a.sent[a.done] = data
	if to := a.waits[a.done]; to != nil {
		delete(a.waits, a.done)
		to(data)
	}
	jobs, ok := a.helper.Work()
	if a.busy = ok && !h.over; !a.busy {
		return nil
	}
	return jobs
}
