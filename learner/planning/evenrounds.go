package planning

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/stream/wire"
)

// evenLayout returns the layout of even rounds. everybody is the source of noise for a single round of gradients in
// which everybody answers.
func (d *practicalDraft) evenLayout(everybody source, reports uint64) practical.Layout {
	p := d.p
	d.how.Even = true
	out := d.how.Layout(float64(p.Users) * math.Sqrt(everybody.model(reports, 1).total()) * p.encodedNorm() / p.share())
	if p.MaxRounds > 0 {
		out.Rounds = min(out.Rounds, p.MaxRounds)
	}
	d.layOut(out)
	return out
}

// silos makes the plan of silos in one pass. All rounds, looks too, use blocks of one size, so that a block is a fixed
// range of a silo's rows whichever round it joins.
func (d *practicalDraft) silos() error {
	s := d.p.Silos
	// As if the silos of one round had the units of all.
	layout := d.evenLayout(d.gradients.about(max(1, d.p.Users/s.Reports)), s.Reports)
	looks := d.looks(layout)
	units := s.Blocks(uint64(len(looks)) + layout.Rounds)
	for units == 0 && layout.Rounds > 1 {
		layout.Rounds--
		units = s.Blocks(uint64(len(looks)) + layout.Rounds)
	}
	if units == 0 {
		return fmt.Errorf(
			"silos of %d units, %d of %d in a round: too few for a look and a round of gradients in one pass: give larger silos, or let them answer all rounds (interactive)", s.Units, s.Reports, s.Count)
	}
	for _, look := range looks {
		if err := d.blocks(look, &wire.Phase{Users: s.Reports, Rounds: 1}, units); err != nil {
			return err
		}
	}
	return d.blocks(d.gradient(), &wire.Phase{Users: layout.Rounds * s.Reports, Rounds: layout.Rounds}, units)
}

// blocks adds a phase of reports about blocks of units units, with the silos of a round as its cohort.
func (d *practicalDraft) blocks(of report, f *wire.Phase, units uint64) error {
	from, err := d.of(of.dim)
	if err != nil {
		return err
	}
	reports := d.p.Silos.Reports
	_, privacy, err := from.about(units).exact(reports, 1)
	if err != nil {
		return fmt.Errorf("rounds of %d silos: %w", reports, err)
	}
	f.Cohort, f.Minimum, f.RoundsPerUser = reports, d.p.minimum(reports), 1
	return d.add(of, f, privacy, units)
}

// siloStream makes the plan of silos with endless rows: a first look, then endless rounds of gradients, all with blocks
// of one size, so that a block is a fixed range of a silo's rows whichever round it joins. The cohort is the silos of a
// round, and the size of blocks, which is part of the mechanism, cannot follow the stream.
func (d *practicalDraft) siloStream() error {
	p, s := d.p, d.p.Silos
	d.how.Even = true
	unit := func(units uint64) float64 {
		return float64(s.Reports*units) * math.Sqrt(d.gradients.about(units).model(s.Reports,
			1).total()) * p.encodedNorm() / p.share()
	}
	layout, err := d.how.SiloLayout(unit, s.Reports, s.Blocks)
	if err != nil {
		return err
	}
	d.layOut(layout)
	for _, look := range d.looks(layout) {
		if err := d.blocks(look, &wire.Phase{Users: s.Reports, Rounds: 1}, layout.Units); err != nil {
			return err
		}
	}
	f := &wire.Phase{Users: layout.Rounds * s.Reports, Rounds: 1, Top: s.Reports}
	return d.blocks(d.gradient(), f, layout.Units)
}

// stint makes the plan of silos (with all their units) or people who answer all rounds, looks too. All rounds have the
// mechanism of the longest reports, for which one report of that length in each round meets the target.
func (d *practicalDraft) stint() error {
	p := d.p
	spare := min(spareOf(p.Users), p.Users-1)
	users, cohort, units := p.Users-spare, p.Users-spare, uint64(1)
	if s := p.Silos; s.Count > 0 {
		users, cohort, units = s.Count, s.Reports, s.Units
	} else if p.Cohort > 0 {
		return fmt.Errorf("cohort: %d, want 0: all %d people answer all rounds", p.Cohort, p.Users)
	}
	layout := d.evenLayout(d.gradients.about(units), cohort)
	looks, longest := d.looks(layout), p.encodedDim()
	for _, look := range looks {
		longest = max(longest, look.dim)
	}
	from, err := d.of(longest)
	if err != nil {
		return err
	}
	if layout.Rounds == 1 && cohort < users { // one round of a phase takes all of its remaining users
		return fmt.Errorf("rounds: 1 of gradients of %d of %d silos, want at least 2", cohort, users)
	}
	rounds := uint64(len(looks)) + layout.Rounds
	_, privacy, err := from.about(units).exact(cohort, rounds)
	if err != nil {
		return fmt.Errorf("%d rounds of %d reports: %w", rounds, cohort, err)
	}
	phase := func(of report, rounds uint64) error {
		return d.add(of, &wire.Phase{Users: users, Rounds: rounds, Cohort: cohort, Minimum: p.minimum(cohort),
			RoundsPerUser: uint32(rounds), Again: len(d.out.Forecasts) > 0}, privacy, units)
	}
	for _, look := range looks {
		if err := phase(look, 1); err != nil {
			return err
		}
	}
	return phase(d.gradient(), layout.Rounds)
}
