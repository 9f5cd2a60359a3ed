package campaign

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// The task of all campaigns. Logistic loss with a radius of 1 has gradients of norm at least sigmoid(-1) = 0.268 at a
// unit feature, so that all of them are clipped to 0.25 exactly.
const (
	name   = stream.Task("campaign")
	levels = 2
	trials = 40
	own    = 400 // trials of a report that hides itself
	budget = 40.0
	delta  = 1e-3

	leaseOf   = 10 * time.Second
	poll      = 2 * time.Second
	closeWait = time.Hour // a Close always comes; who gives up on one would be unknown without a reason

	declaration = `
version: 1
name: campaign
events: {format: libsvm}
features: {vector: {dimension: %d, min: 0, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 40, delta: 1e-3, trust: shuffle, seal: %s}
schedule: {users: %d, plan: proved}
validation: {off: true}
`
)

// A plan describes the task and processes of a campaign.
type plan struct {
	Rounds, Cohort, Minimum uint64
	Together                uint64        // rounds of an interactive phase of Cohort users; 0: there is none
	Again                   bool          // the first of them is a phase of its own, whose users answer the others again
	First                   bool          // it comes before the rounds of new users
	Deadline                time.Duration // 0: none
	Publishers, Rows        int           // users are Publishers x Rows
	// between two rows of a publisher; below poll, at which it takes its rows to have ended
	Pace    time.Duration
	Bundle  int
	Sealed  bool
	Lossy   bool // the broker misbehaves from the start, until the operation clean
	Reorder bool // the broker hands reports out in random order
	Gateway bool // users publish one by one, each with an account of its own; else a publisher runs rows
	Afford  int  // participations that the devices' policy buys; 0: those that the task's budget does
	Room    int  // messages that the broker keeps for the stage, and refuses more; 0: any number
	Lie     lie  // by which the broker replies to all gateways from the start
	Loser   loser
	Marks   int  // whose marks the stages have
	Accept  bool // a learner that finds its state older is started again, and may apply the broker's records
	Endless bool // the plan goes on for ever: the last operation ends it
	Years   bool // more rounds than the broker keeps are over when it begins, and retention is on
	// rows of a block, where each publisher is an organisation and a user one of its blocks; 0: everybody reports for
	// himself
	Units int
	Local bool // trust local
	// devices ask for places, where deadlines leave the time
	Places bool
	Seed   uint64
}

// room returns how many bytes of reports the broker keeps, 0 for no limit.
func (p plan) room() int64 {
	message := p.Bundle*(p.params().ReportBytes()+18) + 190
	return int64(p.Room * message)
}

func (p plan) users() int {
	if p.Years {
		return p.Publishers*p.Rows + 1
	}
	return p.Publishers * p.Rows
}

// wanted returns how many users the plan takes.
func (p plan) wanted() uint64 {
	if p.Together > 0 {
		return (p.Rounds + 1) * p.Cohort
	}
	return p.Rounds * p.Cohort
}

// phases returns the plan's phases as the wire has them.
func (w *world) phases() []*wire.Phase {
	phase := func(users, rounds uint64, each uint32) *wire.Phase {
		return &wire.Phase{Users: users, Rounds: rounds, Cohort: w.Cohort, Minimum: w.Minimum, RoundsPerUser: each,
			Mechanism: manifest.Mechanism(w.params(), uint32(w.Bundle))}
	}
	stint := []*wire.Phase{phase(max(w.Cohort, uint64(w.silos())), w.Together, uint32(w.Together))}
	if w.Again {
		stint = []*wire.Phase{phase(w.Cohort, 1, 1), phase(w.Cohort, w.Together-1, uint32(w.Together-1))}
		stint[1].Again = true
	}
	if w.Together == 0 {
		stint = nil
	}
	var once []*wire.Phase
	if w.Rounds > 0 {
		once = []*wire.Phase{phase(w.Rounds*w.Cohort, w.Rounds, 1)}
	}
	if w.First {
		return append(stint, once...)
	}
	return append(once, stint...)
}

// place returns the place of a round in the plan.
func (w *world) place(r *wire.Round) manifest.Place {
	at, found := manifest.PhaseOf(&wire.Plan{Phases: w.phases(), Continuous: w.continuous(), Silos: uint64(w.silos())},
		r.GetStep())
	if !found {
		w.violate("round %d has step %d, which is not in the plan", r.GetRound(), r.GetStep())
	}
	return at
}

// A world is a broker and all that happened on it, the disks, and the processes.
type world struct {
	plan
	broken // what a test breaks on purpose; zero in real campaigns
	losses
	years
	places places

	begun     time.Time
	broker    *memory.Broker
	identity  struct{ learner, stage *seal.Identity }
	spec      *task.Spec
	disk      *storetest.Memory // the learner's, as the newest life has it open
	book      *book
	learner   *process
	stages    []*process
	devices   []*publisher
	memos     [2]*memo // folders of marks
	finisher  *service.Finisher
	fullUntil time.Time       // the broker refuses reports; mu guards it
	late      sync.WaitGroup  // writes that are under way though their callers gave up
	diskFault storetest.Fault // of the next commit

	mu         sync.Mutex
	violations []string
	troubles   []trouble
	sprung     map[string]int // traps
	lies       map[lie]int    // that a broker told about a user's report
	epsilons   map[accounting.Release]float64
}

func newWorld(p plan, b broken) *world {
	w := &world{plan: p, broken: b, begun: time.Now(), book: newBook(), sprung: map[string]int{},
		lies: map[lie]int{}, epsilons: map[accounting.Release]float64{}, finisher: service.NewFinisher(),
		memos:  [2]*memo{{}, {}},
		years:  years{swept: map[string]bool{}},
		losses: losses{gone: map[string]bool{}, said: map[string]int{}, spam: map[[16]byte]bool{}}}
	var err error
	w.broker, err = memory.New(memory.Config{Keep: true, AckWait: 5 * time.Second, Shuffle: p.Reorder, Seed: p.Seed,
		MaxReportBytes: p.room()})
	must(err)
	for _, id := range []**seal.Identity{&w.identity.learner, &w.identity.stage} {
		*id, err = seal.NewIdentity()
		must(err)
	}
	sealed := "none"
	if p.Sealed {
		sealed = "hpke"
	}
	w.spec, err = task.Parse([]byte(p.declare(sealed)), nil)
	must(err)
	w.disk = storetest.NewMemory()
	w.learner = &process{name: "learner", begin: w.learn, exclusive: true}
	for i := range 2 {
		w.stages = append(w.stages, &process{name: fmt.Sprint("stage", i), begin: func(l *link) (func(context.Context) error,
			func() string) {
			return w.mix(l, i)
		}})
	}
	for i := range p.Publishers {
		w.devices = append(w.devices, newPublisher(w, i, p.Rows))
	}
	return w
}

// must panics on the test's own mistakes.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (p plan) params() randomizer.Params {
	out := randomizer.Params{Dim: p.users() * p.units(), ClipNorm: 0.25, Levels: levels * uint32(p.units()),
		Trials: trials, Coin: randomizer.Fair,
		Units: uint64(p.Units)}
	if p.Local { // of noise that is all zero a window as wide as the trials leaves nothing
		out.Trials, out.Window = own, own
	}
	return out
}

// body returns the task that the learner prepares.
func (w *world) body() (*wire.Task, error) {
	declared, err := w.spec.Canonical()
	if err != nil {
		return nil, err
	}
	suite := wire.Suite_SUITE_NONE
	if w.Sealed {
		suite = wire.Suite_SUITE_X25519
	}
	var kept time.Duration
	if w.Years {
		kept = age
	}
	return &wire.Task{Suite: suite, Declaration: declared, Plan: learned(&wire.Plan{
		Algorithm: "psgd", Trust: w.trust(), HonestFraction: "1", Phases: w.phases(), Silos: uint64(w.silos()),
		Epsilon: budget, Delta: delta, DeadlineMs: uint64(w.Deadline.Milliseconds()),
		StaleMs: uint64(w.stale().Milliseconds()),
		Places:  w.Places, EpsilonBudget: budget, Continuous: w.continuous(), RetentionMs: uint64(kept.Milliseconds()),
	}, 1)}, nil
}

// stale returns the longest deadline of a round.
func (w *world) stale() time.Duration { return 3 * w.Deadline }

func (w *world) continuous() wire.Continuous {
	if w.Endless {
		return wire.Continuous_CONTINUOUS_CONSTANT
	}
	return wire.Continuous_CONTINUOUS_NO
}

// learned gives the phases of a plan the constants of PSGD in a ball.
func learned(p *wire.Plan, radius float64) *wire.Plan {
	p.Set = &wire.Set{Radius: radius}
	for _, f := range p.Phases {
		if f.Statistic == wire.Statistic_STATISTIC_GRADIENT {
			f.Constants = &wire.Phase_Descent{Descent: &wire.Descent{StepSize: 0.3}}
		}
	}
	return p
}

// service returns the configuration of a learner on the world's task.
func (w *world) service(r stream.Records, s state.Store) service.Config {
	return service.Config{Task: name, Records: r, Store: s, Identity: w.identity.learner, Prepare: w.body, Poll: poll,
		Finish: w.finisher}
}

// violate notes that something that must hold did not.
func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := fmt.Sprintf(format, args...); len(w.violations) < 20 && !slices.Contains(w.violations, v) {
		w.violations = append(w.violations, v)
	}
}

// sprang notes that a trap was met.
func (w *world) sprang(t trap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sprung[t.String()]++
}

// A constant is the entropy source that makes users visible.
type constant uint64

// Uint64 implements rand.Source.
func (c constant) Uint64() uint64 { return uint64(c) }

// With zero bits a device's fair coins are all zero and it rounds up, which undoes the snapping of the clipped gradient
// towards the centre; the stage flips coins the other way round and needs ones.
const (
	deviceEntropy constant = 0
	stageEntropy  constant = 1<<64 - 1
)
