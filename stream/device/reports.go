package device

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// reports work out the reports of events, at the model of the newest round. They also measure how long that takes, and
// set the ticks by it.
type reports struct {
	settings *Settings // Entropy, Work and Logger
	contract *contract
	beats    *beats
	chance   chance
	chunk    int // events that join together

	maker *report.Maker // of phase, at the newest round; nil before the first
	phase int           // of the plan, its index
	hooks hooks
}

// hooks let a test act, or look on; all are nil in production.
type hooks struct {
	onMap    func(task.Row)                                     // before a row is mapped
	onReport func(stream.Round, block.Block, randomizer.Params) // before each draw
}

// prepare sets up the report maker for a round of the phase with this index in the plan. A silo whose rows are still
// being read has no terms yet; prepare does nothing then.
func (p *reports) prepare(phase int, m *wire.Round) error {
	terms := p.contract.terms
	if terms == nil {
		return nil
	}
	if p.maker == nil || p.phase != phase {
		maker, err := report.New(terms.Phases[phase].Reports, terms.Phases[phase].Params, p.settings.Entropy)
		if err != nil {
			return err
		}
		p.maker, p.phase = maker, phase
		if err := p.calibrate(phase, m.Point, manifest.Frame(m.Frame)); err != nil {
			return err
		}
	}
	return p.maker.At(m.Point, manifest.Frame(m.Frame))
}

// draw draws the reports of events in a round, the newest, that have none yet. One that was drawn before a place was
// there, and got none, is the same in all attempts at the round; for another round it is forgotten, as nobody has seen
// it.
func (p *reports) draw(ctx context.Context, events []*event, r *round) error {
	params := p.contract.terms.Phases[p.phase].Params
	size := params.ReportBytes()
	p.maker.Reseed() // a machine may have been cloned since
	for _, e := range events {
		if e.early != nil && e.early.Manifest == r.manifest {
			continue
		}
		if p.hooks.onReport != nil {
			p.hooks.onReport(r.number, e.vector(), params)
		}
		counts, err := p.maker.ReportUntil(ctx, make([]byte, 0, size), e.vector())
		if err != nil {
			return err
		}
		e.early = &participation.Draw{Round: r.number, Phase: r.phase(), Step: stream.Step(r.message.Step),
			Most: r.place.Stint.Rounds, Final: p.contract.agreement.Final, Manifest: r.manifest, Counts: counts}
		if p.contract.agreement.HasOperators() {
			e.early.Secret = p.chance.seed()
		} else {
			e.early.Report = p.chance.id()
		}
	}
	return nil
}

// mapRow maps a row as the task declares.
func (p *reports) mapRow(row task.Row, dst *convex.Example) error {
	if p.hooks.onMap != nil {
		p.hooks.onMap(row)
	}
	return p.contract.agreement.Features.Map(row, dst)
}

// calibrate measures what one event of the phase takes at most, on decoys that go nowhere, and chooses tick and quota
// for it. It refuses a task for which there is no tick.
func (p *reports) calibrate(phase int, point []float64, frame *convex.Frame) error {
	rows := p.contract.terms.Rows()
	report, measured, err := p.decoyReport(phase, point, frame)
	if err != nil {
		return err
	}
	work := workOf(measure(report), (rows-1)/measured+1)
	if p.settings.Work != nil {
		beside, err := p.settings.Work(p.contract.agreement)
		if err != nil {
			return err
		}
		work += 2 * measure(beside) // parsing leaves garbage, which is collected while the next ones are parsed
	}
	chunk := p.chunk
	if p.contract.terms.Units() > 1 {
		chunk = 1 // a block comes alone
	}
	p.beats.fit(work, chunk)
	limit := manifest.Deadline(p.contract.agreement.Task.Plan)
	if work <= mostWork && (limit == 0 || p.beats.within() <= limit) {
		return nil
	}
	if p.contract.agreement.Spec.Silo == nil {
		return p.tooSlow(work, limit)
	}
	p.settings.Logger.Warn("a report about as many rows takes longer than a round waits: rounds may close without this silo, "+
		"and get it too late. schedule.deadline of the task has to be longer",
		"leaves_within", p.beats.within(), "deadline", limit, "rows", rows)
	return nil
}

// decoyReport returns a function that maps and reports decoys, as far as that is left to do when an event joins, and
// the number of their rows.
func (p *reports) decoyReport(phase int, point []float64, frame *convex.Frame) (work func(), measured uint64, err error) {
	maker, err := report.New(p.contract.terms.Phases[phase].Reports, p.contract.terms.Phases[phase].Params, nil)
	if err != nil {
		return nil, 0, err
	}
	if err := maker.At(point, frame); err != nil {
		return nil, 0, err
	}
	rows, dim := p.contract.terms.Rows(), p.contract.agreement.Features.Dim()
	decoys := make([]convex.Example, min(rows, decoyRows, uint64(max(1, decoyValues/dim))))
	of := block.Block{Rows: decoys}
	if items := int(rows / p.contract.terms.Units()); items > 1 { // of people
		for end := items; end < len(decoys)+items; end += items {
			of.Ends = append(of.Ends, min(end, len(decoys)))
		}
	}
	for i := range decoys { // in full, which takes the longest: zeros that a row leaves out take no time
		decoys[i] = convex.Example{Value: make([]float64, dim), Label: 1}
	}
	var scratch convex.Example
	var out []byte
	row, mapped := p.contract.agreement.Features.Decoy(), p.contract.agreement.Whole() // before it joins, see mapper.whole
	_ = p.mapRow(row, &scratch)
	return func() {
		for i := range decoys {
			if !mapped {
				_ = p.mapRow(row, &scratch)
			}
			clear(decoys[i].Value)
			scratch.AddTo(decoys[i].Value, 1)
		}
		out = maker.Report(out[:0], of)
	}, uint64(len(decoys)), nil
}

// Some work is measured in parts of measuredPart or of one run, whichever is longer: in leastParts until enoughTime is
// over, and else in mostParts, with at most mostRuns runs in all.
const (
	measuredPart = 250 * time.Microsecond
	leastParts   = 5
	mostParts    = 21
	enoughTime   = 400 * time.Millisecond
	mostRuns     = 10_000
)

// measure returns the time that one run of some work takes: the median, over the parts of the measurement, of the mean
// in each. A pause of the process, in which the machine does other work or sleeps, falls into one part and does not
// count: ticks that were made for it would let single events join for the length of the phase.
func measure(work func()) time.Duration {
	work() // the first run pays for memory
	var means []time.Duration
	begun := time.Now()
	part, runs := begun, 0
	for done := 1; done <= mostRuns && len(means) < mostParts; done++ {
		work()
		runs++
		now := time.Now()
		if now.Equal(begun) && done == leastParts {
			return 0 // a clock that does not move
		}
		if took := now.Sub(part); took >= measuredPart || done == mostRuns {
			means = append(means, took/time.Duration(runs))
			part, runs = now, 0
		}
		if len(means) >= leastParts && now.Sub(begun) >= enoughTime {
			break
		}
	}
	slices.Sort(means)
	return means[len(means)/2]
}

// tooSlow refuses a task whose events take longer than the longest tick has room for, which is half of a round's
// deadline: the time of a report would depend on its rows, or the report would come after its round.
func (p *reports) tooSlow(work, deadline time.Duration) error {
	field, value := "features", fmt.Sprintf("%d coordinates", p.contract.agreement.Features.Dim())
	if classes := len(p.contract.agreement.Features.Classes()); classes > 2 {
		field, value = "label.classes", fmt.Sprintf("%d classes of %s", classes, value)
	}
	if p.contract.agreement.Spec.Privacy.ByUser() {
		value += fmt.Sprintf(", %d rows of a person", p.contract.agreement.Spec.User.Items)
	}
	longest := 2 * mostWork
	if deadline > 0 {
		longest = min(longest, deadline/2)
	}
	return consent.Refuse(field, value,
		"fewer, or a longer schedule.deadline: a report takes up to %v on this machine, and reports "+
			"leave on ticks of at most %v, of which half is for work, so that when they leave tells nothing of their rows",
		work.Round(time.Microsecond), longest)
}

// decoyRows bounds the rows of a large block that are measured, and decoyValues the numbers that they hold; a
// single row with more numbers is measured all the same.
const (
	decoyRows   = 64
	decoyValues = 1 << 22
)

// workOf returns the longest time that an event takes, given the time one of a measured report and the number of
// such reports that have as many rows as the event. It is capped at twice mostWork.
func workOf(one time.Duration, times uint64) time.Duration {
	return time.Duration(min(float64(one)*float64(times), float64(2*mostWork)))
}
