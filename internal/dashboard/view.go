package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// A View is the page at one moment: what its templates print.
type View struct {
	Build, Title, AsOf string
	Task               string
	Verdict            Verdict
	Tiles              []Tile
	Cohort             Cohort
	Privacy            Privacy
	Validation         []Chart
	Gradient, Latency  Chart
	Reports, Norm      Chart
	Weights            Weights
	Peers              []Peer
	Outcomes           []Outcome
	OutcomesOf         string // whose counts Outcomes are
	About              []Fact
	Began              string
}

// A Tile is one number with its name.
type Tile struct{ Name, Value, Note string }

// A Cohort is how full the announced round is.
type Cohort struct {
	Known          bool // a stage tells
	Round          uint64
	Users, Size    string
	Share, Minimum float64 // of the bar, 0 to 100
	Floor          string  // the minimum, as text; empty: none
	Text           string
}

// Privacy is what is spent. Figures are upper bounds.
type Privacy struct {
	Spent, Budget, Delta string
	Share                float64 // of the bar, 0 to 100
	Text                 string
}

// Weights are the largest of the released model.
type Weights struct {
	Round uint64
	Rows  []Weight
	Of    int // how many there are
}

// A Weight is one of them with the bar that stands for it, on a scale from -100 to 100.
type Weight struct {
	Name, Value string
	Left, Width float64
	Negative    bool
}

// A Peer is another process.
type Peer struct {
	Name, State string
	Level       Level
	Note        string
}

// An Outcome is how many reports ended so.
type Outcome struct{ Name, Count string }

// A Fact is a line of what the page says of task and program.
type Fact struct{ Name, Value string }

// view is the page now. snapshot is nil where no model is known.
func (b *Board) view(snapshot *model.Snapshot) View {
	st, now := b.look()
	task := b.config.Task
	v := View{Build: build(), Task: task.Name, AsOf: clock(now, now), Began: clock(st.began, now), Verdict: st.verdict(task, now),
		Tiles: st.tiles(task), Cohort: st.cohort(now), Privacy: st.privacy(task), Validation: validationCharts(&st),
		Gradient: gradientChart(st.rounds.points), Latency: latencyChart(st.rounds.points), Reports: reportsChart(&st), Norm: normChart(st.rounds.points),
		Weights: weightsOf(snapshot), Peers: st.peers(now), About: about(task)}
	v.Title = task.Name + " · panlearn"
	if st.announced.round > 0 {
		v.Title = fmt.Sprintf("Round %s · %s", st.roundOf(), v.Title)
	}
	if v.Verdict.Level == Warn || v.Verdict.Level == Wrong {
		v.Title = v.Verdict.Word + " · " + v.Title
	}
	v.OutcomesOf = "the batches that this process committed: users accepted, and messages refused"
	if st.counted {
		v.OutcomesOf = "the shuffle stage since it started: messages"
	}
	for _, r := range stage.Reasons() {
		v.Outcomes = append(v.Outcomes, Outcome{r.String(), count(st.totals[r.String()])})
	}
	if n := st.totals[other]; n > 0 {
		v.Outcomes = append(v.Outcomes, Outcome{other, count(n)})
	}
	return v
}

func (st *state) tiles(task Task) []Tile {
	p := st.progress
	steps := Tile{"Steps taken", count(p.Steps), "of a task without end"}
	switch {
	case !st.resumed:
		steps.Note = "the task has not begun"
	case p.Rounds > 0:
		steps.Note = "of " + count(p.Rounds) + " planned"
	}
	if n := st.passed(); n > 0 {
		steps.Note += fmt.Sprintf(", and %s void", count(n))
	}
	users := Tile{"Users counted", count(p.Users), "of " + count(task.Users) + " planned"}
	if p.Rounds == 0 {
		users.Note = "so far"
	}
	rate := Tile{"Reports per second", "none yet", ""}
	if n := len(st.rates.points); n > 0 {
		r := st.rates.points[n-1]
		rate.Value, rate.Note = number(r.accepted/r.seconds), "accepted"
		switch {
		case !st.counted:
			rate.Note = "users, in the last round"
		case st.stopped != nil:
			rate.Note = "accepted, when the task ended"
		case st.stage.silence != "":
			rate.Value, rate.Note = "unknown", "the stage is silent"
		}
	}
	ratio := Tile{"Signal to noise", "none yet", "gradient over noise; noise alone is about 1"}
	if st.last.NoiseStd > 0 {
		ratio.Note = fmt.Sprintf("noise alone is about 1; its level is %s in one coordinate", number(st.last.NoiseStd))
	}
	for _, point := range slices.Backward(st.rounds.points) {
		if r, ok := point.signal(); ok {
			ratio.Value = number(r)
			break
		}
	}
	took := Tile{"Last round took", "none yet", ""}
	if st.last.Took > 0 {
		took.Value, took.Note = lasted(st.last.Took), "from announcement to commit"
	}
	tiles := []Tile{steps, users}
	if s := p.Validation; s != nil && s.Accuracy != nil {
		a := s.Accuracy.Recent
		accuracy, _ := constants(p.Baseline)
		tiles = append(tiles, Tile{"Accuracy", percent(a.Value), fmt.Sprintf("recent rounds; between %s and %s; %s", percent(a.Low), percent(a.High), accuracy.text(percent))})
	} else if s != nil {
		l := s.Loss.Recent
		_, loss := constants(p.Baseline)
		tiles = append(tiles, Tile{"Loss", number(l.Value), fmt.Sprintf("recent rounds; between %s and %s; %s", number(l.Low), number(l.High), loss.text(number))})
	}
	return append(tiles, rate, took, ratio)
}

func (st *state) cohort(now time.Time) Cohort {
	s, c := st.stage.status, Cohort{Round: st.announced.round}
	switch {
	case st.stopped != nil:
		return Cohort{Text: "No round is open."}
	case c.Round == 0:
		c.Text = "No round is announced yet."
	case !st.stage.asked:
		c.Text = fmt.Sprintf("%s are asked for. How many are there only the stage knows: --stage-http URL asks it.", people(st.announced.cohort))
	case st.stage.silence != "":
		c.Text = "How full the round is only the stage knows, and it is silent."
	case !s.Works:
		c.Text = "The stage that is asked stands by: another process works, which knows how full the round is, or one died less than its --lease ago."
	case s.Round != c.Round || s.Cohort == 0:
		c.Text = fmt.Sprintf("%s are asked for. The stage has not opened the round yet.", people(st.announced.cohort))
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

func (st *state) privacy(task Task) Privacy {
	p := st.progress
	if task.NoiseKnown {
		return Privacy{Text: "None: the noise follows from a seed, which is no secret, so nothing is protected. A run without a seed is private."}
	}
	if !st.resumed {
		return Privacy{Text: "Nothing is spent: the task has not begun."}
	}
	out := Privacy{Spent: upper(p.EpsilonSpent), Budget: fmt.Sprintf("%g", p.EpsilonBudget), Delta: upper(p.Delta),
		Text: fmt.Sprintf("For the event that is charged most, under trust %s%s, for %s. A plan spends what it may from the first round on, because an event pays once.", task.Trust, task.Assuming, task.Unit)}
	if p.EpsilonBudget > 0 {
		out.Share = 100 * min(1, p.EpsilonSpent/p.EpsilonBudget)
	}
	return out
}

func (st *state) peers(now time.Time) []Peer {
	broker := Peer{Name: "Broker", State: "connected", Level: Good}
	if !st.brokerLost.IsZero() {
		broker.State, broker.Level, broker.Note = "lost", Wrong, "since "+clock(st.brokerLost, now)
	}
	mixing, s := Peer{Name: "Shuffle stage", Level: Info}, st.stage
	switch {
	case st.stopped != nil:
		mixing.State = "not watched any more"
	case s.asked && s.silence != "":
		mixing.State, mixing.Level, mixing.Note = "silent", Wrong, fmt.Sprintf("%s, since %s", s.silence, clock(s.since, now))
	case s.asked && s.status.Failures >= failing:
		mixing.State, mixing.Level, mixing.Note = "works, and the broker fails it", Warn, fmt.Sprintf("%d calls in a row", s.status.Failures)
	case s.asked && !s.status.Works:
		mixing.State, mixing.Note = "stands by", "another process works, or died a moment ago"
	case s.asked && s.status.Round == 0:
		mixing.State, mixing.Level, mixing.Note = "works", Good, "no round is open"
	case s.asked:
		mixing.State, mixing.Level, mixing.Note = "works", Good, fmt.Sprintf("on round %d, attempt %d", s.status.Round, s.status.Attempt)
	case s.opened:
		mixing.State, mixing.Note = "not asked", fmt.Sprintf("the broker has attempt %d at round %d; --stage-http URL tells more", s.attempt, st.announced.round)
	default:
		mixing.State, mixing.Note = "not asked", "--stage-http URL tells how it is"
	}
	return []Peer{broker, mixing}
}

// shown is how many weights the page shows.
const shown = 10

func weightsOf(s *model.Snapshot) Weights {
	if s == nil {
		return Weights{}
	}
	type one struct {
		name string
		w    float64
	}
	var all []one
	for i, row := range s.Weights {
		class := ""
		if len(s.Weights) > 1 && i < len(s.Classes) {
			class = s.Classes[i] + " ← "
		}
		for j, w := range row {
			if j < len(s.Features) {
				all = append(all, one{class + s.Features[j].Name, w})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(math.Abs(b.w), math.Abs(a.w)) })
	out := Weights{Round: s.Round, Of: len(all)}
	for _, k := range all[:min(shown, len(all))] {
		row := Weight{Name: k.name, Value: number(k.w), Left: 50, Negative: k.w < 0}
		if most := math.Abs(all[0].w); most > 0 {
			row.Width = round1(50 * math.Abs(k.w) / most)
		}
		if row.Negative {
			row.Left = 50 - row.Width
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func about(t Task) []Fact {
	deadline := "none: a round waits for its whole cohort"
	if t.Deadline > 0 {
		deadline = lasted(t.Deadline) + ", after which a round's minimum is enough"
	}
	return []Fact{{"Task", t.Name}, {"Loss", t.Loss}, {"Algorithm", t.Algorithm}, {"Parameters", count(uint64(t.Parameters))},
		{"Trust", t.Trust}, {"Deadline", deadline}, {"Program", cli.Version()}}
}

// A released caches the model: a reader's wish for a newer one is served at most every few seconds.
type released struct {
	snapshot *model.Snapshot
	round    uint64 // of the board when it was read
	read     time.Time
}

// again is how long a model is shown although a newer one is committed: reading it verifies the whole ledger.
const again = 2 * time.Second

// get is the newest model that was read, nil for none. It is not for two goroutines at once.
func (r *released) get(ctx context.Context, b *Board) *model.Snapshot {
	b.mu.Lock()
	resumed, over, round, now := b.resumed, b.stopped != nil && b.stopped.How != Over && b.stopped.How != Refused, b.progress.Round, b.config.Now()
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
