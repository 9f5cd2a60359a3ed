package split

// A Desk is the helper's process as the leader sees it: it holds at most one attempt, knows what the folder has marked,
// and answers every message. The caller holds the folder's lock for as long as the Desk lives, has verified the
// signature of every message, and performs each Answer.
type Desk struct {
	instance Instance
	mark     HelperMark
	held     deciding // nil if no attempt is held
	closing  Share    // of the held attempt; its X is the zero Attempt until the attempt is being released
}

// deciding has the methods of a Helper that a Desk calls.
type deciding interface {
	attempt() Attempt
	receive(Request) (*Reply, error)
	finish(Finish, Entropy) (Share, error)
	Erase()
}

// An Answer holds the action that a message requires of the caller. At most one field is set, and none if the message
// is to be ignored.
type Answer struct {
	// Reply is to be sealed and sent.
	Reply *Reply
	// Pong, Gone and Differs are to be signed and sent.
	Pong    *Pong
	Gone    *Gone
	Differs *Differs
	// Commit is to be signed and stored by HelperMark.Release, in one synced step; then call Committed.
	Commit *Share
	// Signed is the stored Share of the attempt: send it, and put it as the round's Share if the broker has none.
	Signed []byte
}

// NewDesk returns the desk of a process under a mark that it has read from its folder.
func NewDesk(instance Instance, mark HelperMark) *Desk { return &Desk{instance: instance, mark: mark} }

// Join returns whether the helper may take part in an attempt of a round. Where it may not, signed is the stored Share
// to put again, or else refusal is to be signed and put, so that the leader knows before anybody sends. x has no hash
// of a Join.
func (d *Desk) Join(x Attempt) (signed []byte, refusal *Share, ok bool) {
	switch {
	case x.Round > d.mark.X.Round:
		return nil, nil, true
	case x.Round == d.mark.X.Round:
		return d.mark.Signed, nil, false
	}
	return nil, &Share{X: x, Refusal: Marked}, false
}

// Hold begins an attempt that Join admitted, before its Join is put. The attempt that was held is erased: it is gone.
// While an answer to Commit is awaited nothing may be held.
func (d *Desk) Hold(h *Helper) { d.hold(h) }

func (d *Desk) hold(h deciding) {
	if h.attempt().Round <= d.mark.X.Round || d.committing() {
		panic("split: an attempt is held of a round that is marked, or while another is being released")
	}
	d.drop()
	d.held = h
}

// holds reports whether x is held and goes on.
func (d *Desk) holds(x Attempt) bool {
	return d.held != nil && d.held.attempt() == x && !d.committing()
}

// committing reports whether the held attempt waits for the folder.
func (d *Desk) committing() bool { return d.closing.X != Attempt{} }

func (d *Desk) drop() {
	if d.held != nil {
		d.held.Erase()
	}
	d.held, d.closing = nil, Share{}
}

// gone answers that x is neither held nor released.
func (d *Desk) gone(x Attempt) Answer {
	return Answer{Gone: &Gone{X: x, Instance: d.instance, Marked: d.mark.X.Round}}
}

// differs ends the held attempt.
func (d *Desk) differs(x Attempt) Answer {
	d.drop()
	return Answer{Differs: &Differs{X: x, Instance: d.instance}}
}

// Request takes a request. After it the caller looks whether the Helper has Work.
func (d *Desk) Request(r Request) Answer {
	switch {
	case d.holds(r.X):
		kept, err := d.held.receive(r)
		if err != nil {
			return d.differs(r.X)
		}
		return Answer{Reply: kept}
	case r.X == d.closing.X || r.X == d.mark.X:
		return Answer{} // a copy: the leader had all replies
	}
	return d.gone(r.X)
}

// Ended takes the end of an attempt that Decide returned as an error.
func (d *Desk) Ended(x Attempt) Answer {
	if d.holds(x) {
		return d.differs(x)
	}
	return d.gone(x)
}

// Ping takes a ping.
func (d *Desk) Ping(p Ping) Answer {
	if !d.holds(p.X) && p.X != d.closing.X && p.X != d.mark.X {
		return d.gone(p.X)
	}
	pong := Pong{X: p.X, Instance: d.instance}
	if p.Highest > d.mark.X.Round {
		pong.Show = p.Highest
	}
	return Answer{Pong: &pong}
}

// Finish takes a finish. If the helper has decided the same requests as the leader, the attempt is being released from
// here on: it takes no request, its floor is laid, and Commit requires the mark, which is the one point at which the
// round is released. e is entropy of this floor alone.
func (d *Desk) Finish(f Finish, e Entropy) Answer {
	switch {
	case d.holds(f.X):
		share, err := d.held.finish(f, e)
		if err != nil {
			return d.differs(f.X)
		}
		d.closing = share
		return Answer{Commit: &share}
	case f.X == d.closing.X:
		return Answer{} // the folder has not said
	case f.X == d.mark.X:
		return Answer{Signed: d.mark.Signed}
	}
	return d.gone(f.X)
}

// Committed takes the mark that is in the folder after Commit was performed. If it is the attempt's, the attempt's
// Share is released, and sent; otherwise nothing of the attempt is. If the folder fails, perform Commit again; nothing
// is sent until it succeeds.
func (d *Desk) Committed(mark HelperMark) Answer {
	x := d.closing.X
	d.drop()
	d.mark = mark
	if mark.X == x {
		return Answer{Signed: mark.Signed}
	}
	return d.gone(x)
}

// Shown takes a Share that bears the helper's own valid signature, from the broker or the leader. It returns true where
// the folder does not know it: the folder is a copy or was put back, and the process stops for good.
func (d *Desk) Shown(s Share) (stop bool) {
	return s.X.Round > d.mark.X.Round || s.X.Round == d.mark.X.Round && s.X != d.mark.X
}
