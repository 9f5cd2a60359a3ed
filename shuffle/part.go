package shuffle

import (
	"errors"
	"fmt"
)

// A Part is what one mixer of several counted, on its way to the mixer that releases: running totals without the noise
// of top-up. It is never released and travels sealed.
type Part struct {
	// Users is the number of users in the totals; none is possible.
	Users uint64
	// Totals has one sum for each coordinate.
	Totals []uint64
}

// String tells progress and no total.
func (p Part) String() string { return fmt.Sprintf("part of %d users", p.Users) }

// GoString is String.
func (p Part) GoString() string { return p.String() }

// Part takes the totals out of the mixer and erases it, whatever the minimum. Totals with a floor are refused: the
// accountant counts the floors of one mixer.
func (m *Mixer) Part() (Part, error) {
	switch {
	case m.totals == nil:
		return Part{}, fmt.Errorf("part: %w", ErrClosed)
	case m.floor != nil:
		return Part{}, errors.New("part: a mixer with floors is not one of several")
	}
	p := Part{Users: m.users, Totals: append([]uint64(nil), m.totals...)}
	m.Erase()
	return p, nil
}

// Merge adds what another mixer of the same round counted, from ids that this one never takes. It is refused, and then
// changes nothing, where it has another dimension, a total that its users cannot have, or more users than the cohort
// and its largest bundle leave room for.
func (m *Mixer) Merge(p Part) error {
	room := m.cfg.Cohort + m.cfg.MaxBundle - 1 // within head-room, as Config.Validate saw to
	switch {
	case m.totals == nil:
		return fmt.Errorf("merge: %w", ErrClosed)
	case m.floor != nil:
		return errors.New("merge: a mixer with floors is not one of several")
	case len(p.Totals) != len(m.totals):
		return fmt.Errorf("merge: %d totals, want %d", len(p.Totals), len(m.totals))
	case m.users > room || p.Users > room-m.users:
		return fmt.Errorf("merge: %d users to %d, the cohort of %d in bundles of %d has room for %d",
			p.Users, m.users, m.cfg.Cohort, m.cfg.MaxBundle, room)
	}
	most := p.Users * uint64(m.cfg.Params.MaxCount())
	for j, t := range p.Totals {
		if t > most {
			return fmt.Errorf("merge: coordinate %d is above what %d users can have", j, p.Users)
		}
	}
	for j, t := range p.Totals {
		m.totals[j] += t
	}
	m.users += p.Users
	return nil
}
