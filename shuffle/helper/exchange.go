package helper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// floorLabel separates the secret of the floors from each other secret of the identity.
const floorLabel = "split floor"

// A closing is a release that waits for the folder's word. Nothing of it has left.
type closing struct {
	x      split.Attempt
	users  uint64
	joined time.Time
	signed []byte
	reply  func([]byte) // to the last finish
}

// take handles one message on a prepare subject.
func (h *Helper) take(_ string, message []byte, reply func(answer []byte)) {
	observe.Tell(h.Observer.Message, h.handle(message, reply))
}

func (h *Helper) handle(signed []byte, reply func([]byte)) Reason {
	if splitwire.IsShare(signed) {
		return h.told(signed)
	}
	m, x, err := splitwire.Verify(signed, h.LeaderKey)
	switch {
	case err != nil:
		return Unsigned
	case x.Task != h.hash:
		return Strange
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return Elsewhere
	}
	h.heard = time.Now()
	if m.Verb == wire.Verb_VERB_REQUEST {
		return h.request(m, x, reply)
	}
	opened, err := splitwire.Open(m, nil)
	if err != nil {
		return Strange
	}
	switch v := opened.(type) {
	case *split.Ping:
		h.hears(v.Highest)
		return h.perform(h.desk.Ping(*v), reply)
	case *split.Finish:
		if c := h.closing; c != nil && c.x == v.X {
			c.reply = reply
			h.commit()
			return Taken
		}
		entropy := split.Entropy{Secret: h.Identity.Secret(floorLabel)}
		_, _ = rand.Read(entropy.Fresh[:]) // never fails
		return h.perform(h.desk.Finish(*v, entropy), reply)
	}
	return Strange
}

// told takes a Share of an earlier round, which the leader sends where a pong asked for it. The helper's own signature
// alone makes it true, and anybody may have sent it.
func (h *Helper) told(signed []byte) Reason {
	s, err := splitwire.VerifyShare(signed, h.Identity.Public())
	switch {
	case err != nil:
		return Unsigned
	case s.X.Task != h.hash:
		return Strange
	}
	_ = h.shows(s) // it stops where the folder does not know it
	return Taken
}

// request takes a request, which is opened without the lock. h.mu is held, and given away meanwhile.
func (h *Helper) request(m *wire.Exchange, x split.Attempt, reply func([]byte)) Reason {
	a := h.held
	if a == nil || a.x != x {
		return h.perform(h.desk.Request(split.Request{X: x}), reply) // of an attempt that is not held: only its name counts
	}
	h.mu.Unlock()
	opened, err := splitwire.Open(m, a.key)
	h.mu.Lock()
	r, ok := opened.(*split.Request)
	switch {
	case h.over:
		return Elsewhere
	case h.held != a:
		return h.perform(h.desk.Request(split.Request{X: x}), reply)
	case errors.Is(err, seal.ErrOpen):
		return Sealed
	case err != nil || !ok:
		return Strange
	}
	a.expects(r, reply)
	reason := h.perform(h.desk.Request(*r), reply)
	if h.held == a {
		h.decide(a)
	}
	return reason
}

// hears notes that the leader has stored the Share of a round. If that round is above the mark, the Share is read. h.mu
// is held.
func (h *Helper) hears(highest uint64) {
	if highest > h.mark.X.Round && h.shown != stream.Round(highest) {
		h.shown = stream.Round(highest)
		h.look()
	}
}

// perform does what the desk's answer requires, and erases the attempt if it has ended. h.mu is held.
func (h *Helper) perform(answer split.Answer, reply func([]byte)) Reason {
	reason := Taken
	var data []byte
	var err error
	switch a := h.held; {
	case answer.Commit != nil:
		h.release(*answer.Commit, reply)
		return Taken
	case answer.Reply != nil:
		data = a.sent[answer.Reply.N]
	case answer.Signed != nil:
		data, h.share = answer.Signed, answer.Signed
		h.look()
	case answer.Pong != nil:
		data, err = splitwire.Sign(h.Identity, answer.Pong)
	case answer.Gone != nil:
		data, err = splitwire.Sign(h.Identity, answer.Gone)
		reason = Elsewhere
	case answer.Differs != nil:
		data, err = splitwire.Sign(h.Identity, answer.Differs)
	}
	if err != nil {
		panic(fmt.Sprintf("helper: an answer of its own cannot be signed: %v", err))
	}
	if h.held != nil && h.held.helper.Over() != nil {
		h.drop()
	}
	if data != nil && reply != nil {
		reply(data)
	}
	return reason
}

// release signs a share that has its floor, and marks it. The attempt's keys are erased before. h.mu is held.
func (h *Helper) release(share split.Share, reply func([]byte)) {
	a := h.held
	h.held = nil
	a.erase()
	signed, err := splitwire.SignShare(h.Identity, share)
	if err != nil {
		panic(fmt.Sprintf("helper: a share of its own cannot be signed: %v", err))
	}
	h.closing = &closing{x: share.X, users: share.Users, joined: a.joined, signed: signed, reply: reply}
	h.commit()
}

// commit asks the folder to mark the release that waits, if there is one. Until the folder has marked it nothing is
// sent, and commit is tried again at each turn of Run and at each finish. h.mu is held.
func (h *Helper) commit() {
	c := h.closing
	if c == nil || h.stopped != nil {
		return
	}
	mark, err := h.Folder.Release(c.x, c.signed)
	if errors.Is(err, folder.ErrOlder) {
		h.stop(fmt.Errorf("helper: %w", err))
		return
	}
	if err != nil {
		h.failed(context.Background(), callMark, err)
		return
	}
	h.worked(callMark)
	h.closing, h.mark = nil, mark
	answer := h.desk.Committed(mark)
	if answer.Signed != nil {
		observe.Tell3(h.Observer.Released, stream.Round(c.x.Round), c.users, time.Since(c.joined))
	}
	h.perform(answer, c.reply)
}
