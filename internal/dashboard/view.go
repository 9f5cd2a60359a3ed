package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/build"
	"github.com/panlearn/panlearn/internal/wording"
)

// A View is the page at one moment: what its templates print.
type View struct {
	Build, Title, AsOf string
	Task               string
	Verdict            Verdict
	Tiles              []tile
	Cohort             Cohort
	Privacy            Privacy
	By                 By
	Quality, Charts    []Chart
	Weights            Weights
	Peers              []Peer
	Outcomes           []outcome
	OutcomesOf         string // where Outcomes were counted
	About              []fact
	Curves             string // since when they run
	Counted            string // what adds up over rounds: users, silos or reports
	Invitation         string // path of a page on which a person takes part; empty: none
}

// A Tile is one number with its name.
type tile struct{ Name, Value, Note string }

// A Cohort shows how full the announced round is.
type Cohort struct {
	Known          bool // a stage reports it
	Round          uint64
	Users, Size    string
	Share, Minimum float64 // of the bar, 0 to 100
	Floor          string  // the minimum, as text; empty: none
	Text           string
}

// Privacy shows what the plan may spend on a user, and what is spent. Figures are upper bounds.
type Privacy struct {
	Facts []fact
	Text  string
}

// Weights lists the weights of the released model with the largest effects.
type Weights struct {
	Round  uint64
	Rows   []weight
	Of     int    // how many there are
	Effect string // what they are ranked by
	Others bool   // a name has the mark of words that are not declared
}

// A Weight is one weight of the model, with the bar that shows its effect, on a scale from -100 to 100.
type weight struct {
	Name, Value string
	Left, Width float64
	Negative    bool
}

// A Fact is a line of the page about task and program.
type fact struct{ Name, Value string }

// view returns the view of the page now, with curves along an axis. snapshot is nil if no model is known.
func (b *Board) view(snapshot *Model, by By) View {
	st, now := b.look()
	task, d := st.task, drawing{&st, by}
	v := View{Build: pageBuild(), Task: task.Name, Counted: task.Counted().Many, AsOf: clock(now, now),
		Curves: st.curvesOf(now), By: by, Verdict: st.verdict(now),
		Cohort: st.cohort(now), Privacy: st.privacy(), Weights: weightsOf(snapshot), Peers: st.peers(now),
		About: about(task), Invitation: task.Invitation}
	v.Tiles = st.tiles(v.Verdict.Level, now)
	for _, f := range d.quality() {
		v.Quality = append(v.Quality, f.chart())
	}
	for _, of := range charts {
		v.Charts = append(v.Charts, of(d).chart())
	}
	v.Title = task.Name + " · panlearn"
	if st.announced.round > 0 {
		v.Title = fmt.Sprintf("Round %s · %s", st.roundOf(), v.Title)
	}
	if v.Verdict.Level == warn || v.Verdict.Level == Wrong {
		v.Title = v.Verdict.Word + " · " + v.Title
	}
	v.Outcomes, v.OutcomesOf = st.outcomes()
	return v
}

// curvesOf describes when the curves begin.
func (st *state) curvesOf(now time.Time) string {
	if p := st.rounds.points; len(p) > 0 && p[0].At.Before(st.began) {
		return fmt.Sprintf("They go on over restarts, from round %s, %s; reports begin with this process, %s.",
			count(p[0].Round), clock(p[0].At, now), clock(st.began, now))
	}
	return fmt.Sprintf("They begin with this process, %s.", clock(st.began, now))
}

// tiles returns the tiles of the page: first those that show how good the model is, how far the task is, when it is
// done, and how many users that needs.
func (st *state) tiles(level Level, now time.Time) (tiles []tile) {
	p := st.progress
	accuracy, loss := constants(p.Baseline, st.task)
	switch s := p.Validation; {
	case s != nil && s.Accuracy != nil:
		a := s.Accuracy.Recent
		tiles = append(tiles, tile{"Accuracy", percent(a.Value), fmt.Sprintf("recent rounds; between %s and %s; %s",
			percent(a.Low), percent(a.High), accuracy.text(percent))})
	case s != nil && st.task.LabelUnit > 0:
		e, mean := s.Loss.RootMeanSquare(st.task.LabelUnit).Recent, loss.rootMeanSquare(st.task.LabelUnit)
		tiles = append(tiles, tile{"Root mean squared error", number(e.Value),
			fmt.Sprintf("in the units of the label; recent rounds; between %s and %s; %s",
				number(e.Low), number(e.High), mean.text(number))})
	case s == nil && st.task.Unscored:
		tiles = append(tiles, tile{"Quality", "not measured", "reports have no scores: validation.off is true"})
	case s != nil:
		l := s.Loss.Recent
		tiles = append(tiles, tile{"Loss", number(l.Value), fmt.Sprintf("recent rounds; between %s and %s; %s", number(l.Low),
			number(l.High), loss.text(number))})
	}
	steps := tile{"Steps taken", count(p.Steps), "of a task without end"}
	switch {
	case !st.resumed:
		steps.Note = "the task has not begun"
	case p.Rounds > 0:
		steps.Note = "of " + count(p.Rounds) + " planned"
	case p.Kept != nil:
		steps.Note += fmt.Sprintf("; the model of round %d is kept", p.Kept.Round)
	}
	if b := p.Rollback; b != nil {
		steps.Note += fmt.Sprintf("; rolled back after round %d to the model of round %d", b.After, b.To)
	}
	if n := st.passed(); n > 0 {
		steps.Note += fmt.Sprintf(", and %s void", count(n))
	}
	tiles = append(tiles, steps)
	if t, ok := st.timeLeft(level, now); ok {
		tiles = append(tiles, t)
	}
	users := tile{capital(st.task.Counted().Many) + " counted", count(p.Users), "of " + count(st.task.Users) + " planned"}
	if p.Rounds == 0 {
		users.Note = "so far"
	}
	if t, ok := st.needed(); ok {
		users = t
	}
	rate := tile{"Reports per second", "none yet", ""}
	if n := len(st.rates.points); n > 0 {
		r := st.rates.points[n-1]
		rate.Value, rate.Note = number(r.accepted/r.seconds), "accepted"
		switch {
		case st.counts == nil:
			rate.Note = "accepted, in the last round"
		case st.stopped != nil:
			rate.Note = "accepted, when the task ended"
		case st.stage.silence != "":
			rate.Value, rate.Note = "unknown", "the stage is silent"
		}
	}
	ratio := tile{"Signal to noise", "none yet", "gradient over noise; noise alone is about 1"}
	if st.last.NoiseStd > 0 {
		ratio.Note = fmt.Sprintf("noise alone is about 1; its level is %s in one coordinate", number(st.last.NoiseStd))
	}
	for _, point := range slices.Backward(st.rounds.points) {
		if r, ok := point.signal(); ok {
			ratio.Value = number(r)
			break
		}
	}
	took := tile{"Last round took", "none yet", ""}
	if n := len(st.laps); n > 0 {
		took.Value, took.Note = lasted(st.laps[n-1].Took), "from announcement to commit"
	}
	return append(tiles, users, rate, took, ratio)
}

func (st *state) cohort(now time.Time) Cohort {
	s, c := st.stage.status, Cohort{Round: st.announced.round}
	switch {
	case st.stopped != nil:
		return Cohort{Text: "No round is open."}
	case c.Round == 0:
		c.Text = "No round is announced yet."
	case !st.stage.asked:
		c.Text = fmt.Sprintf("%s are asked for. How many are there only the stage knows: --stage-http URL asks it.",
			counted(st.announced.cohort, wording.Report))
	case st.stage.silence != "":
		c.Text = "How full the round is only the stage knows, and it is silent."
	case !s.Works:
		c.Text = "The stage that is asked stands by: another process works, which knows how full the round is, or one died less than its --lease ago."
	case s.Round != c.Round || s.Cohort == 0:
		c.Text = fmt.Sprintf("%s are asked for. The stage has not opened the round yet.", counted(st.announced.cohort,
			wording.Report))
	default:
		c.Known, c.Users, c.Size = true, count(s.Users), count(s.Cohort)
		c.Share = 100 * min(1, float64(s.Users)/float64(s.Cohort))
		c.Text = fmt.Sprintf("Attempt %d. %s", s.Attempt, enough(s.Users, s.Minimum, s.Deadline, now))
		if s.Minimum > 0 {
			c.Minimum, c.Floor = 100*min(1, float64(s.Minimum)/float64(s.Cohort)), count(s.Minimum)
		}
	}
	return c
}

// privacy shows the planned cost beside the spent one. A round is charged before it is announced, so before anybody
// took part the ledger holds only what the plan may spend.
func (st *state) privacy() Privacy {
	p := st.progress
	switch {
	case st.task.NoiseKnown:
		return Privacy{
			Text: "None: the noise follows from a seed, which is no secret, so nothing is protected. A run without a seed is private."}
	case !st.resumed:
		return Privacy{Text: "Nothing is spent: the task has not begun."}
	}
	charged := fmt.Sprintf("epsilon at most %s, delta %s", upper(p.EpsilonSpent), upper(p.Delta))
	planned := fact{"Planned", fmt.Sprintf("within the budget, epsilon %g", p.EpsilonBudget)}
	spent := fact{"Spent", charged}
	switch {
	case p.Round == 0 && p.Users == 0 && p.EpsilonSpent > 0:
		planned.Value, spent.Value = fmt.Sprintf("%s, of a budget of %g", charged, p.EpsilonBudget),
			"nothing: nobody has been counted yet"
	case p.EpsilonSpent > 0:
		spent.Value = charged + ", by " + st.task.Charged()
	}
	text := fmt.Sprintf(
		"Under trust %s%s, for %s. A plan uses what it may from its first round on: each %s pays once, for a round or a phase, "+
			"and later rounds cost nothing more.", st.task.Trust, st.task.Assuming, st.task.Protected(),
		st.task.Kind.Unit().One)
	if st.task.Start != "" {
		text += " " + st.task.Start
	}
	return Privacy{Facts: []fact{spent, planned}, Text: text}
}

// shown is the number of weights that the page shows.
const shown = 10

// weightsOf ranks weights by their effects: a weight itself is as large as the unit of its feature is coarse.
func weightsOf(s *Model) Weights {
	if s == nil {
		return Weights{}
	}
	type one struct {
		name      string
		w, effect float64
	}
	var all []one
	for i, row := range s.Weights {
		class := ""
		if len(s.Weights) > 1 && i < len(s.Classes) {
			class = s.Classes[i] + " ← "
		}
		for j, w := range row {
			if j < len(s.Features) {
				all = append(all, one{class + s.Features[j].Name, w, math.Abs(w) * s.spread(j)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(b.effect, a.effect) })
	out := Weights{Round: s.Round, Of: len(all), Effect: "the declared scale of its feature"}
	if s.Spread != nil {
		out.Effect = "the spread of its feature, which is about what the first reports released"
	}
	for _, k := range all[:min(shown, len(all))] {
		row := weight{Name: k.name, Value: number(k.w), Left: 50, Negative: k.w < 0}
		if most := all[0].effect; most > 0 {
			row.Width = round1(50 * k.effect / most)
		}
		if row.Negative {
			row.Left = 50 - row.Width
		}
		out.Rows = append(out.Rows, row)
		out.Others = out.Others || strings.Contains(k.name, "=*")
	}
	return out
}

// spread returns Spread[j] where it is known, and otherwise the length of one step of the scaled feature j; both in
// the units of the data, and 1 where neither is known.
func (s *Model) spread(j int) float64 {
	switch factor := math.Abs(s.Features[j].Factor); {
	case s.Spread != nil:
		return s.Spread[j]
	case factor > 0:
		return 1 / factor
	}
	return 1
}

func about(t Task) []fact {
	deadline := "none: a round waits for its whole cohort"
	if t.Deadline > 0 {
		deadline = lasted(t.Deadline) + ", after which a round's minimum is enough"
	}
	facts := []fact{{"Task", t.Name}, {"Loss", t.Loss}, {"Algorithm", t.Algorithm},
		{"Parameters", count(uint64(t.Parameters))},
		{"Trust", t.Trust}, {"Deadline", deadline}}
	if t.Devices != "" {
		facts = append(facts, fact{"Devices", t.Devices})
	}
	return append(facts, fact{"Program", build.This().String()})
}

// A released caches the model: a reader's wish for a newer one is served at most every few seconds.
type released struct {
	snapshot *Model
	round    uint64 // of the board when it was read
	read     time.Time
}

// again is the least time between two reads of the model, even if a newer one is committed: reading it copies and
// decodes the whole checkpoint.
const again = 2 * time.Second

// get returns the newest model that was read, nil for none. It must not be called by two goroutines at once.
func (r *released) get(ctx context.Context, b *Board) *Model {
	b.mu.Lock()
	resumed, over, round, now := b.resumed, b.stopped != nil && b.stopped.How != Over && b.stopped.How != Refused,
		b.progress.Round, b.config.Now()
	b.mu.Unlock()
	if b.config.Model == nil || !resumed || over || r.snapshot != nil && (r.round == round || now.Sub(r.read) < again) {
		return r.snapshot
	}
	if s, err := b.config.Model(ctx); err == nil { // an error shows in the learner itself
		r.snapshot, r.round = &s, round
	}
	r.read = now
	return r.snapshot
}
