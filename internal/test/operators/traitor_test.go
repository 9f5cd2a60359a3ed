package operators

import (
	"bytes"
	"crypto/rand"
	"path/filepath"
	"sync"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A traitor is a helper that does as it likes. It has the helper's key, keeps no mark, and forgets nothing.
type traitor struct {
	*siege
	id       *seal.Identity
	instance split.Instance

	mu     sync.Mutex
	joins  func(*wire.Join)                                // changes a Join before it is signed
	pledge func(*wire.Open) []byte                         // another HPKE key for its Join
	reply  func(*split.Reply)                              // changes a reply before it is sealed
	finish func(a *betrayed, honest []byte) (say [][]byte) // what a finish is answered with; nil: the Share
	ping   func(a *betrayed) []byte                        // what a ping is answered with; nil: a pong
	all    []*betrayed
}

// A betrayed is an attempt that a traitor joined.
type betrayed struct {
	opening
	leader []byte
	key    *seal.RoundKey
	core   *split.Helper
	desk   *split.Desk
	worker *split.Worker
	share  []byte // signed, once the leader has asked
	asked  int    // for it
}

// betrays starts a traitor.
func (s *siege) betrays() *traitor {
	s.t.Helper()
	h := &traitor{siege: s, instance: split.Instance{1}}
	var err error
	h.id, err = seal.LoadIdentity(filepath.Join(s.helperDir, "identity.pem"))
	s.must(err)
	s.must(s.broker.ServeExchange(s.ctx, s.name, h.take))
	return h
}

// joinsAt waits for the Open of an attempt, and joins it.
func (h *traitor) joinsAt(r stream.Round, a stream.Attempt) *betrayed {
	h.t.Helper()
	var m *stream.Message
	for range 2000 {
		if m = h.find(h.name.Open(r, a)); m != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if m == nil {
		h.t.Fatalf("round %d has no attempt %d", r, a)
	}
	return h.answers(r, a, m.Data)
}

// answers joins an attempt by its Open.
func (h *traitor) answers(r stream.Round, a stream.Attempt, signed []byte) *betrayed {
	h.t.Helper()
	var open wire.Open
	_, err := seal.Verify(signed, h.stage.Public(), &open)
	h.must(err)
	b := &betrayed{leader: open.PublicKey}
	b.manifest = stream.Hash(open.ManifestHash)
	b.key, err = seal.NewRoundKey(h.task.Suite)
	h.must(err)
	b.x = split.Attempt{Task: h.hash, Round: uint64(r), Number: uint64(a), Open: stream.HashOf(signed)}
	b.keys = seal.SharedKeys{Leader: open.PublicKey, Helper: b.key.Public()}
	var verify split.VerifyKey
	_, _ = rand.Read(verify[:])
	hash := verify.Hash()
	j := &wire.Join{Version: stream.Version, TaskHash: h.hash[:], Round: uint64(r), Attempt: uint64(a),
		ManifestHash: open.ManifestHash, OpenHash: b.x.Open[:], Suite: h.task.Suite, PublicKey: b.keys.Helper,
		Instance: h.instance[:], VerifyKeyHash: hash[:], StartedUnixMs: time.Now().UnixMilli()}
	if h.pledge != nil {
		j.PublicKey = h.pledge(&open)
	}
	j.KeyEncapsulated, j.KeyCiphertext, err = seal.SealVerifyKey(h.task.Suite, open.PublicKey, b.manifest, h.hash, b.x.Open, verify[:])
	h.must(err)
	if h.joins != nil {
		h.joins(j)
	}
	join := h.sign(h.id, j)
	b.x.Join = stream.HashOf(join)
	at, _ := manifest.PhaseOf(h.task.Plan, 1)
	mixer, err := at.Mixer()
	h.must(err)
	b.core, err = split.NewHelper(splitwire.ConfigOf(mixer, b.x, b.manifest, verify, 0))
	h.must(err)
	b.worker, err = b.core.Worker(splitwire.OpenerOf(b.key, splitwire.ContextOf(b.x, b.manifest), seal.Helper))
	h.must(err)
	b.desk = split.NewDesk(h.instance, split.HelperMark{})
	b.desk.Hold(b.core)
	h.share(&b.opening)
	h.mu.Lock()
	h.all = append(h.all, b)
	h.mu.Unlock()
	h.put(h.ctx, h.name.Join(r, a), join)
	return b
}

// serves joins an attempt, and sends honest users to it.
func (h *traitor) serves(r stream.Round, a stream.Attempt, users int) *betrayed {
	h.t.Helper()
	b := h.joinsAt(r, a)
	all := h.users(users)
	for i := range all {
		h.world.send(h.ctx, b.x, h.report(&b.opening, all[i:i+1], nil))
	}
	return b
}

// take handles a message of the leader.
func (h *traitor) take(_ string, message []byte, say func([]byte)) {
	m, x, err := splitwire.Verify(message, h.stage.Public())
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var b *betrayed
	for _, one := range h.all {
		if one.x == x {
			b = one
		}
	}
	if b == nil {
		return
	}
	opened, err := splitwire.Open(m, b.key)
	if err != nil {
		return
	}
	switch v := opened.(type) {
	case *split.Request:
		answer := b.desk.Request(*v)
		reply := answer.Reply
		if jobs, ok := b.core.Work(); ok {
			for _, j := range jobs {
				j.Run(b.worker)
			}
			if decided, err := b.core.Decide(); err == nil {
				reply = &decided
			}
		}
		if reply == nil {
			return
		}
		out := *reply
		if h.reply != nil {
			h.reply(&out)
		}
		data, err := splitwire.Seal(h.id, h.task.Suite, b.leader, &out)
		h.must(err)
		say(data)
	case *split.Ping:
		if h.ping != nil {
			say(h.ping(b))
			return
		}
		say(h.word(&split.Pong{X: x, Instance: h.instance}))
	case *split.Finish:
		b.asked++
		if b.share == nil {
			answer := b.desk.Finish(*v, split.Entropy{Fresh: fresh(), Secret: fresh()})
			if answer.Commit == nil {
				return
			}
			b.share, err = splitwire.SignShare(h.id, *answer.Commit)
			h.must(err)
		}
		if h.finish == nil {
			say(b.share)
			return
		}
		for _, one := range h.finish(b, b.share) {
			say(one)
		}
	}
}

// lies changes a traitor while it serves.
func (h *traitor) lies(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// word signs a message of the helper.
func (h *traitor) word(message any) []byte {
	data, err := splitwire.Sign(h.id, message)
	h.must(err)
	return data
}

func (h *traitor) gone(b *betrayed, marked uint64) []byte {
	return h.word(&split.Gone{X: b.x, Instance: h.instance, Marked: marked})
}

// other signs another Share of an attempt than the one that is released: a number is added to its first total.
func (h *traitor) other(b *betrayed, change func(*split.Share)) []byte {
	h.t.Helper()
	s, err := splitwire.VerifyShare(b.share, h.id.Public())
	h.must(err)
	s.Aggregate = bytes.Clone(s.Aggregate)
	change(&s)
	data, err := splitwire.SignShare(h.id, s)
	h.must(err)
	return data
}

// finished waits until the leader has sent a finish for an attempt.
func (h *traitor) finished(b *betrayed) {
	h.t.Helper()
	for range 600 {
		h.mu.Lock()
		asked := b.asked
		h.mu.Unlock()
		if asked > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.t.Fatalf("attempt %d is not finished", b.x.Number)
}

// batch returns the outcome of a round, within a while; nil: none.
func (s *siege) batch(r stream.Round) *wire.Batch {
	s.t.Helper()
	for range 600 {
		if m := s.find(s.name.Batch(r)); m != nil {
			var b wire.Batch
			_, err := seal.Verify(m.Data, s.stage.Public(), &b)
			s.must(err)
			return &b
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}
