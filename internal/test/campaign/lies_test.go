package campaign

import (
	"context"

	"github.com/panlearn/panlearn/stream"
)

// A lie is a false answer of a broker.
type lie int

const (
	truth   lie = iota
	beyond      // a sequence that no cutoff reaches
	below       // a sequence below all
	another     // that it is a duplicate of another's
	refusal     // that it was not stored; it was
	nothing     // that it was stored; it was not
	nowhere     // the same, at a sequence that no cutoff reaches
	lieKinds
)

var lieNames = [...]string{"none", "beyond", "below", "another's", "refused and kept", "acknowledged and lost",
	"beyond and lost"}

func (l lie) String() string { return lieNames[l] }

// far is beyond every cutoff.
const far = 1 << 20

// A liar is the broker as it replies to one device: it stores as always, and its replies are false.
type liar struct {
	*link
	p *publisher
}

// Publish implements stream.ReportWriter.
func (l *liar) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	l.p.mu.Lock()
	how := l.p.lie
	if how != truth {
		for _, r := range reports {
			for _, t := range l.p.inside(r) {
				l.p.fooled[t.user] = true
				l.p.w.lied(how)
			}
		}
	}
	l.p.mu.Unlock()
	if how == nothing || how == nowhere {
		acks := make([]stream.Ack, len(reports))
		for i := range acks {
			acks[i] = stream.Ack{Status: stream.Stored, Sequence: 1}
			if how == nowhere {
				acks[i].Sequence = far
			}
		}
		return acks, l.enter()
	}
	acks, err := l.link.Publish(ctx, reports)
	for i := range acks {
		a := &acks[i]
		if a.Sequence == 0 {
			continue
		}
		switch how {
		case beyond:
			a.Sequence += far
		case below:
			a.Sequence = 1
		case another:
			*a = stream.Ack{Status: stream.Duplicate, Sequence: (a.Sequence + 1) / 2}
		case refusal:
			*a = stream.Ack{Status: stream.Refused}
		}
	}
	return acks, err
}

func (w *world) lied(how lie) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lies[how]++
}

// hears makes the broker begin to lie to a device, or stop.
func (p *publisher) hears(how lie) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lie = how
}
