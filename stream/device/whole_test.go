package device_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

const silos = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 40, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 4, delta: 1e-3, trust: %s, seal: %s}
silo: {count: %d, units: 12, reports: %d}
schedule: {plan: proved}
validation: {off: true}
`

// newSilos returns a world of two silos of 12 rows, one of which is enough for a round; what they answer is calibrated
// to the budget. Of one round, blocks of four rows are in one each; of several, all rows are in all of them.
func newSilos(t *testing.T, trust accounting.Trust, rounds int) *world {
	return newSomeSilos(t, trust, rounds, 2, 2)
}

// newSomeSilos returns a world of so many silos, some of which are asked in a round.
func newSomeSilos(t *testing.T, trust accounting.Trust, rounds int, count, some uint64) *world {
	return newBudgetSilos(t, trust, rounds, count, some, 4)
}

// newBudgetSilos returns such a world whose noise is calibrated to an epsilon of at most 4, the declared one.
func newBudgetSilos(t *testing.T, trust accounting.Trust, rounds int, count, some uint64, epsilon float64) *world {
	w := newWorld(t, plan{rounds: 1, cohort: some, minimum: 1, deadline: time.Minute})
	var err error
	sealed := "none"
	if trust.HasOperators() {
		sealed = "hpke"
	}
	w.spec, err = task.Parse(fmt.Appendf(nil, silos, trust, sealed, count, some), nil)
	must(t, err)
	if trust.HasOperators() {
		w.twoOperators()
		w.task.Suite, w.task.HelperKey, w.task.Plan.Prio3 = wire.Suite_SUITE_MLKEM768_X25519, w.helper.Public(), manifest.Prio3
	}
	w.task.Declaration, err = w.spec.Canonical()
	must(t, err)
	units, phases := uint64(12), []*wire.Phase{{Users: count, Cohort: some, Minimum: 1, Rounds: 1, RoundsPerUser: 1},
		{Users: count, Cohort: some, Minimum: 1, Rounds: uint64(rounds - 1), RoundsPerUser: uint32(rounds - 1), Again: true}}
	if some < count { // a phase of one round would take all
		phases = phases[1:]
		phases[0].Rounds, phases[0].RoundsPerUser, phases[0].Again = uint64(rounds), uint32(rounds), false
	}
	if rounds == 1 {
		units, phases = blockUnits, []*wire.Phase{{Users: 3 * some, Cohort: some, Minimum: 1, Rounds: 3, RoundsPerUser: 1}}
	}
	honest := w.spec.Privacy.HonestFraction.Fraction
	c, err := accounting.Calibrate(accounting.Request{Users: some, Dim: blockDim, Epsilon: epsilon, Delta: 1e-3, Trust: trust,
		HonestFraction: honest, Rounds: rounds, Units: units})
	must(t, err)
	w.params = randomizer.Params{Dim: blockDim, ClipNorm: 1, Levels: uint32(c.Levels), Trials: uint32(c.Trials),
		FloorTrials: c.FloorTrials, Coin: randomizer.Fair, Units: units}
	p := w.task.Plan
	if p.Silos, p.HonestFraction = count, honest.String(); trust == accounting.Local {
		w.params.Window = 2 * uint32(math.Ceil(8*math.Sqrt(float64(c.Trials))/2*float64(w.spec.Silo.Units)/float64(
			w.spec.Silo.Least)))
	}
	p.Trust, err = manifest.WireTrust(trust)
	must(t, err)
	p.Phases[0].Mechanism = manifest.Mechanism(w.params, 1)
	w.replan(phases...)
	return w
}

// A drawn holds what a silo drew in one round.
type drawn struct {
	rows   []int // the coordinates of its rows, -1 of one that is none
	params randomizer.Params
}

// An organisation is a silo's state folder and ledger, and what it drew, in all of its lives.
type organisation struct {
	*spy
	w      *world
	book   ledger.Ledger
	policy float64       // max_epsilon
	whole  float64       // max_silo_epsilon
	reads  time.Duration // each row takes so long to be read
	log    logbook
	mu     sync.Mutex
	drew   map[stream.Round][]drawn
}

func (w *world) organisation(store participation.Store) *organisation {
	return &organisation{spy: newSpy(w.t, store), w: w, book: memory.NewLedger(), drew: make(map[stream.Round][]drawn)}
}

// run is one life: it publishes the rows of files.
func (o *organisation) run(ctx context.Context, source string, parts ...part) (device.Summary, error) {
	cfg := o.w.config(o.spy)
	cfg.Rows, cfg.Source, cfg.Ledger, cfg.Policy.MaxEpsilon, cfg.Logger = true, source, o.book, o.policy, o.log.logger()
	cfg.Policy.MaxSiloEpsilon = o.whole
	dev := o.w.client(cfg)
	device.OnReport(dev, func(r stream.Round, b block.Block, p randomizer.Params) {
		d := drawn{params: p}
		for _, x := range b.Rows {
			if len(x.Index) == 0 {
				d.rows = append(d.rows, -1)
				continue
			}
			d.rows = append(d.rows, int(x.Index[0]))
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.drew[r] = append(o.drew[r], d)
	})
	return dev.Run(ctx, func(yield func(task.Row, error) bool) {
		for row, err := range files(parts...) {
			if time.Sleep(o.reads); !yield(row, err) {
				return
			}
		}
	})
}

// of returns the rows that a block of files' first rows has.
func of(n int, parts ...part) (rows []int) {
	for _, p := range parts {
		for i := range p.rows {
			if i == 1 || i == 2 {
				rows = append(rows, -1)
			} else {
				rows = append(rows, p.first+i)
			}
		}
	}
	return rows[:n]
}

// A silo reports to every round of the plan's stint about all of its rows, in their order, each with a draw of its own,
// and with the noise for its number of rows. What it is charged follows from both.
func TestAllRowsInEveryRound(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Local, accounting.Shuffle, accounting.Split} {
		synctest.Test(t, func(t *testing.T) {
			w := newSilos(t, trust, 4)
			parts := [][]part{{{"a", 0, 7}, {"b", 7, 5}}, {{"a", 0, 15}, {"b", 15, 16}}}
			if trust == accounting.Local {
				parts[0][1].rows = 3 // fewer than planned for
			}
			var all [2]*organisation
			w.play(t.Context(), func(ctx context.Context) {
				var group sync.WaitGroup
				for i := range all {
					all[i] = w.organisation(participation.NewMemoryStore())
					group.Go(func() {
						sum, err := all[i].run(ctx, "x", parts[i]...)
						must(t, err)
						rows := uint64(parts[i][0].rows + parts[i][1].rows)
						want := device.Summary{Events: 1, Units: rows, Counted: 1, Invalid: 4, Rounds: 1}
						if sum != want {
							t.Errorf("%v: %+v, want %+v", trust, sum, want)
						}
					})
				}
				group.Wait()
			})
			var trials [2]uint32
			for i, o := range all {
				o.audit(w, all[1-i].spy)
				rows := parts[i][0].rows + parts[i][1].rows
				if len(o.drew) != 4 || len(o.draws) != 1 || len(o.draws[device.AllRows]) != 4 {
					t.Errorf("%v: silo %d drew in rounds %v", trust, i, o.drew)
				}
				for r, d := range o.drew {
					if len(d) != 1 || !slices.Equal(d[0].rows, of(rows, parts[i]...)) || d[0].params.Units != uint64(rows) {
						t.Errorf("%v: silo %d drew %+v in round %d", trust, i, d, r)
					}
					trials[i] = d[0].params.Trials
				}
				pin, _, err := o.Pin()
				must(t, err)
				if pin.Units != uint64(rows) || !slices.Equal(pin.Trials, []uint64{uint64(trials[i]), uint64(trials[i])}) {
					t.Errorf("stored %d rows and trials %v", pin.Units, pin.Trials)
				}
				at := manifest.Costliest(w.task.Plan, 0)
				honest, err := manifest.HonestFraction(w.task.Plan)
				must(t, err)
				releases, err := at.Releases(honest)
				must(t, err)
				for k := range releases {
					releases[k].Units, releases[k].Trials = uint64(rows), uint64(trials[i])
				}
				g, err := accounting.RepeatedWithin(1, [][]accounting.Release{releases},
					accounting.Budget{Epsilon: 4, Delta: 1e-3})
				must(t, err)
				book, err := ledger.ReadStatement(o.book, time.Now(), 0)
				must(t, err)
				if len(book.Tasks) != 1 || book.Tasks[0].Epsilon != g.Epsilon || g.Epsilon > 4 || book.Tasks[0].Standing != 1 {
					t.Errorf("%v: the ledger of %d rows has %+v, want epsilon %v", trust, rows, book.Tasks, g.Epsilon)
				}
			}
			if own := trust == accounting.Local; own != (trials[0] > w.params.Trials) || own != (trials[1] < w.params.Trials) {
				t.Errorf("%v: %v trials, planned %d", trust, trials, w.params.Trials)
			}
		})
	}
}

// Wherever a silo dies, it goes on in the rounds that are left with the rows and the noise of before, whatever was
// added to them and wherever they lie now; each round has one draw.
func TestAllRowsOverDeaths(t *testing.T) {
	for _, lost := range []bool{true, false} {
		died := true
		for i := 1; died; i++ {
			if i > 60 {
				t.Fatal("the run never gets by without the death")
			}
			synctest.Test(t, func(t *testing.T) {
				w := newSilos(t, accounting.Local, 4)
				o := w.organisation(participation.NewMemoryStore())
				o.failAt, o.lost = i, lost
				first := []part{{"a", 0, 8}, {"b", 8, 6}}
				more := []part{{"a", 0, 8}, {"b", 8, 6}, {"c", 14, 9}}
				w.play(t.Context(), func(ctx context.Context) {
					_, err := o.run(ctx, "/here/rows", first...)
					if died = errors.Is(err, errDied); !died {
						must(t, err)
					}
					o.failAt = 0
					before, pinned, err := o.Pin()
					must(t, err)
					sum, err := o.run(ctx, "/copy/of/rows", more...)
					must(t, err)
					checkSum(t, sum)
					after, _, err := o.Pin()
					must(t, err)
					want := uint64(14)
					if !pinned {
						want = 23
					} else if fmt.Sprint(before) != fmt.Sprint(after) {
						t.Errorf("%v was stored, and %v is", before, after)
					}
					if sum.Units != want || sum.LeftOver != 23-want {
						t.Errorf("died at %d: %+v, want %d rows of 23", i, sum, want)
					}
					for r, all := range o.drew {
						for _, d := range all {
							if !slices.Equal(d.rows, of(int(want), more...)) || d.params.Units != after.Units ||
								d.params.Trials != uint32(after.Trials[0]) {
								t.Errorf("died at %d: drew %+v in round %d, stored are %d rows and trials %v", i, d, r, after.Units,
									after.Trials)
							}
						}
					}
				})
				o.audit(w)
			})
		}
	}
}

// A silo with an empty state folder gets a warning if the task has gone on: its rows may have been drawn before. A silo
// that begins with the task, or returns with its folder, gets none.
func TestLostFoldersAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilos(t, accounting.Local, 4)
		first, lost := w.organisation(participation.NewMemoryStore()), w.organisation(participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			short, stop := context.WithCancel(ctx)
			go func() {
				w.batch(ctx, 2)
				stop()
			}()
			if _, err := first.run(short, "x", part{"a", 0, 14}); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for _, o := range []*organisation{first, lost} {
				group.Go(func() {
					_, err := o.run(ctx, "x", part{"a", 0, 14})
					must(t, err)
				})
			}
			group.Wait()
		})
		const told = "this state folder took part in no round of the task"
		if n := [2]int{first.log.count(told), lost.log.count(told)}; n != [2]int{0, 1} {
			t.Errorf("told so %v times, want 0 and 1", n)
		}
	})
}

// A silo that comes back with fewer rows is refused, and told how many there were; of none is anything sent.
func TestFewerRowsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilos(t, accounting.Local, 4)
		o := w.organisation(participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			short, stop := context.WithCancel(ctx)
			go func() {
				w.batch(ctx, 1)
				stop()
			}()
			_, err := o.run(short, "x", part{"a", 0, 14})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			before := len(o.drew)
			_, err = o.run(ctx, "x", part{"a", 0, 13})
			refusal(t, "fewer rows", err, "rows of this silo")
			if !strings.Contains(fmt.Sprint(err), "is 13: want at least 14") || len(o.drew) != before {
				t.Errorf("%v; %d draws more", err, len(o.drew)-before)
			}
		})
		o.audit(w)
	})
}

// A silo that its task cannot take, or whose policy needs more noise than reports have room for, is refused by public
// numbers alone. The error names what would be accepted, which then is; nothing is sent.
func TestSizesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name         string
		trust        accounting.Trust
		rounds, rows int
		policy       float64
		field, want  string
		otherRows    int // that would do
	}{
		{name: "too small for the task", trust: accounting.Local, rounds: 4, rows: 7, field: "rows of this silo",
			want: "at least 8, silo.least", otherRows: 8},
		{name: "no rows", trust: accounting.Local, rounds: 4, field: "rows of this silo", want: "at least 8, silo.least"},
		{name: "too small beside others' noise", trust: accounting.Shuffle, rounds: 4, rows: 11, field: "rows of this silo",
			want: "at least 12, silo.units", otherRows: 12},
		{name: "too small for a strict policy", trust: accounting.Local, rounds: 4, rows: 12, policy: 2,
			field: "rows of this silo", want: "at least 14 for epsilon 2", otherRows: 14},
		{name: "too strict", trust: accounting.Local, rounds: 1, rows: 12, policy: 1, field: "max_epsilon",
			want: "at least 2."},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newSilos(t, c.trust, c.rounds)
			o := w.organisation(participation.NewMemoryStore())
			o.policy = c.policy
			w.play(t.Context(), func(ctx context.Context) {
				_, err := o.run(ctx, "x", part{"a", 0, c.rows})
				refusal(t, c.name, err, c.field)
				if !strings.Contains(fmt.Sprint(err), c.want) || len(o.drew) > 0 {
					t.Errorf("%s: %v, %d draws; want %q", c.name, err, len(o.drew), c.want)
				}
				if c.otherRows > 0 {
					_, err := o.run(ctx, "x", part{"a", 0, c.otherRows - 1})
					refusal(t, c.name, err, c.field)
					sum, err := o.run(ctx, "x", part{"a", 0, c.otherRows})
					if err != nil || sum.Counted != 1 {
						t.Errorf("%s: %d rows: %+v, %v", c.name, c.otherRows, sum, err)
					}
				}
			})
		})
	}
}

// A silo whose policy bounds what all its rows cost together draws as much noise as hides them, however many they are: of
// more rows than planned for it would draw less otherwise. What it draws is held against a release of which a report is
// about one unit, whose place may be anywhere in the ball.
func TestSilosThatHideThemselves(t *testing.T) {
	const most = 1.7
	drew := map[float64]uint32{}
	for _, whole := range []float64{0, most} {
		synctest.Test(t, func(t *testing.T) {
			w := newBudgetSilos(t, accounting.Local, 4, 2, 2, 0.1)
			o := w.organisation(participation.NewMemoryStore())
			o.whole = whole
			w.play(t.Context(), func(ctx context.Context) {
				if sum, err := o.run(ctx, "x", part{"a", 0, 48}); err != nil || sum.Counted != 1 {
					t.Errorf("%+v, %v", sum, err)
				}
			})
			for _, d := range o.drew {
				drew[whole] = d[0].params.Trials
			}
			g, err := accounting.Release{Trust: accounting.Local, Users: 2, Dim: blockDim, Levels: int(w.params.Levels),
				Trials: uint64(drew[whole]), P: 0.5, HonestFraction: accounting.One, Rounds: 4, Units: 1}.Epsilon(1e-3)
			if err != nil || len(o.drew) != 4 || (g.Epsilon <= most) != (whole > 0) {
				t.Errorf("bound %v: %d trials in %d rounds, in which all rows cost epsilon %v, %v", whole, drew[whole], len(o.drew),
					g.Epsilon, err)
			}
		})
	}
	if drew[most] < 4*drew[0] {
		t.Errorf("%d trials for all rows, %d for one", drew[most], drew[0])
	}
	for _, c := range []struct {
		trust       accounting.Trust
		rounds      int
		whole       float64
		field, want string
	}{{accounting.Local, 4, 0.5, "max_silo_epsilon", "at least 1."}, {accounting.Local, 1, 50, "max_silo_epsilon", "every round"},
		{accounting.Shuffle, 4, 50, "max_silo_epsilon", "trust local"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newBudgetSilos(t, c.trust, c.rounds, 2, 2, 0.1)
			o := w.organisation(participation.NewMemoryStore())
			o.whole = c.whole
			w.play(t.Context(), func(ctx context.Context) {
				_, err := o.run(ctx, "x", part{"a", 0, 12})
				refusal(t, "too strict for the task", err, c.field)
				if !strings.Contains(fmt.Sprint(err), c.want) || len(o.drew) > 0 {
					t.Errorf("%v, %d draws; want %q", err, len(o.drew), c.want)
				}
			})
		})
	}
}

// In one pass, too, a strict policy has a silo draw more noise than planned, in every block, and its ledger says what
// that costs.
func TestStrictSilosDrawMoreNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilos(t, accounting.Local, 1)
		o := w.organisation(participation.NewMemoryStore())
		o.policy = 3
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := o.run(ctx, "x", part{"a", 0, 12})
			if want := (device.Summary{Events: 3, Units: 12, Counted: 3, Invalid: 2, Rounds: 3}); err != nil || sum != want {
				t.Errorf("%+v, %v; want %+v", sum, err, want)
			}
		})
		o.audit(w)
		for r, d := range o.drew {
			if d[0].params.Trials <= w.params.Trials || d[0].params.Units != blockUnits {
				t.Errorf("round %d: %+v, planned are %d trials", r, d[0].params, w.params.Trials)
			}
		}
		book, err := ledger.ReadStatement(o.book, time.Now(), 0)
		must(t, err)
		if got := book.Tasks[0].Epsilon; got > 3 || got < 2.98 || len(o.drew) != 3 {
			t.Errorf("the ledger has epsilon %v of 3, in %d rounds", got, len(o.drew))
		}
	})
}
