package campaign

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// silos is a task of three organisations with 60 rows each. Its reports are not sealed, so that an adversary
// who holds them can read them.
const silos = `
version: 1
name: campaign
events: {format: libsvm}
features: {vector: {dimension: 3, min: 0, max: 1, max_nonzeros: 3, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 1}
privacy: {epsilon: 4, delta: 1e-3, trust: %s, seal: none}
silo: {count: 3, units: 60}
schedule: {plan: %s, deadline: 1m, rounds: {max: 4}%s}
validation: {off: true}
`

// An adversary is broker, learner and stage in one hand, and keeps all that it is sent.
type adversary struct {
	t              *testing.T
	broker         *memory.Broker
	learner, stage *seal.Identity
	task           *wire.Task
	hash           stream.Hash
}

// sign puts a signed record, after removing the one on its subject.
func (a *adversary) sign(subject string, by *seal.Identity, m proto.Message) {
	data, err := by.Sign(m)
	must(err)
	a.broker.Lose(subject)
	_, err = a.broker.PutOnce(a.t.Context(), subject, data)
	must(err)
}

// announce puts the task, or another one if it is there already.
func (a *adversary) announce(edit func(*wire.Task)) {
	a.task = proto.CloneOf(a.task)
	edit(a.task)
	data, err := stream.Marshal(a.task)
	must(err)
	a.hash = stream.HashOf(data)
	a.sign(name.Task(), a.learner, a.task)
}

// ask announces a round and opens an attempt at it, waits two minutes, in which all answers come, and returns
// the hash of the round.
func (a *adversary) ask(r stream.Round, step uint64, x float64, attempt stream.Attempt) stream.Hash {
	var point []float64
	if at, found := manifest.PhaseOf(a.task.Plan, step); !found || at.Phase.Statistic != wire.Statistic_STATISTIC_MOMENTS {
		point = []float64{x, 0, 0}
	}
	m := manifest.RoundOf(a.hash, uint64(r), step, point, nil)
	hash, err := manifest.RoundHash(m)
	must(err)
	a.sign(name.Round(r), a.learner, m)
	a.sign(name.Open(r, attempt), a.stage, &wire.Open{Version: stream.Version, TaskHash: a.hash[:], Round: uint64(r),
		Attempt:      uint64(attempt),
		ManifestHash: hash[:], Suite: a.task.Suite, Instance: make([]byte, stream.InstanceSize),
		StartedUnixMs: time.Now().UnixMilli()})
	time.Sleep(2 * time.Minute)
	return hash
}

// close announces that an attempt is over: void, or with the reports up to a cutoff.
func (a *adversary) close(r stream.Round, attempt stream.Attempt, of stream.Hash, cutoff uint64, void bool) {
	a.sign(name.Close(r, attempt), a.stage, &wire.Close{Version: stream.Version, TaskHash: a.hash[:], Round: uint64(r),
		Attempt:      uint64(attempt),
		ManifestHash: of[:], BatchHash: make([]byte, stream.HashSize), Cutoff: cutoff, Void: void})
	time.Sleep(2 * time.Minute)
}

// A deaf writer passes all reports on, and answers as its lie requires.
type deaf struct {
	stream.Transport
	lie lie
}

func (d deaf) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := d.Transport.Publish(ctx, reports)
	for i := range acks {
		switch d.lie {
		case beyond:
			acks[i] = stream.Ack{Status: stream.Stored, Sequence: 1<<60 + acks[i].Sequence}
		case below:
			acks[i] = stream.Ack{Status: stream.Stored, Sequence: 1}
		case refusal:
			acks[i] = stream.Ack{Status: stream.Refused}
		case silence:
			err = errTimeout
		}
	}
	return acks, err
}

// silence is a lie of its own here: nothing is ever acknowledged.
const silence = lieKinds + 1

// A holding is the store of a silo, which knows what each report is about.
type holding struct {
	participation.Store
	mu     sync.Mutex
	blocks map[[16]byte]participation.Key // by report id
	pin    participation.Pin
}

// Write implements participation.Store.
func (h *holding) Write(c participation.Change) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Pin != nil {
		h.pin = *c.Pin
	}
	for _, e := range c.Events {
		if e.State == participation.Charged {
			h.blocks[e.Draw.Report] = e.Key
		}
	}
	return h.Store.Write(c)
}

// holds returns the different counts that were sent about each block.
func (a *adversary) holds(h *holding) map[participation.Key]map[string]bool {
	all := map[participation.Key]map[string]bool{}
	for _, m := range a.broker.Dump() {
		var r wire.Report
		if m.Stream != stream.Reports {
			continue
		}
		must(stream.Unmarshal(m.Data, &r))
		key, known := h.blocks[[16]byte(r.Ids[0])]
		if !known || len(r.Ids) > 1 {
			a.t.Error("a report that no store was charged with")
		}
		if all[key] == nil {
			all[key] = map[string]bool{}
		}
		all[key][string(r.Ciphertext)] = true
	}
	return all
}

// live runs one of the three silos, of so many rows, in one life after the other, until ctx ends.
func (a *adversary) live(ctx context.Context, many int, lie lie) *holding {
	h, book := &holding{Store: participation.NewMemoryStore(), blocks: map[[16]byte]participation.Key{}},
		memory.NewLedger()
	rows := func(yield func(task.Row, error) bool) {
		for i := range many {
			if !yield(task.Row{File: "rows", Line: int64(i) + 1, Number: int64(i), Index: []int32{int32(i % 3)},
				Value: []float64{1}, Label: "1"}, nil) {
				return
			}
		}
	}
	for ctx.Err() == nil {
		c, err := device.New(device.Settings{Task: name, Transport: deaf{a.broker, lie}, Store: h,
			Ledger: book, Rows: true,
			Source: "rows", CloseWait: time.Minute, Policy: consent.Policy{AllowPlaintext: true, MaxEpsilon: 60}})
		must(err)
		short, stop := context.WithTimeout(ctx, 13*time.Minute)
		_, err = c.Run(short, rows)
		stop()
		if err != nil && short.Err() == nil && !errors.As(err, new(*consent.RefusedError)) &&
			!strings.Contains(err.Error(), "announced the same round") {
			a.t.Error(err)
		}
		time.Sleep(5 * time.Minute) // its operator starts it again
	}
	return h
}

// attacks lists ways in which broker, learner and stage together try to have a block drawn more than once.
var attacks = map[string]func(*adversary){
	"every round is void, and its step asked for again": func(a *adversary) {
		for r := range stream.Round(8) {
			a.close(r+1, 1, a.ask(r+1, 1, 0.1*float64(r), 1), 0, true)
		}
	},
	"every round closes before its first report": func(a *adversary) {
		for r := range stream.Round(8) {
			a.close(r+1, 1, a.ask(r+1, min(4, uint64(r)+1), 0.1*float64(r), 1), 0, false)
		}
	},
	"a round is opened again and again": func(a *adversary) {
		for i := range stream.Attempt(12) {
			of := a.ask(1+stream.Round(i/4), 1, 0.1, 1+i%4)
			a.close(1+stream.Round(i/4), 1+i%4, of, 0, true)
		}
	},
	"a round is announced with other points": func(a *adversary) {
		for i := range stream.Attempt(8) {
			of := a.ask(1+stream.Round(i/4), 1, 0.1*float64(i), 1+i%4)
			if i%2 == 1 {
				a.close(1+stream.Round(i/4), 1+i%4, of, 0, true)
			}
		}
	},
	"rounds of no step, or of the same one": func(a *adversary) {
		for r, step := range []uint64{9, 1, 4, 1, 1 << 40, 2, 1} {
			a.close(stream.Round(r)+1, 1, a.ask(stream.Round(r)+1, step, 0.1*float64(r), 1), 0, r%2 == 0)
		}
	},
	"rounds go back": func(a *adversary) {
		for i, r := range []stream.Round{3, 1, 2, 1, 3, 2, 1} {
			a.close(r, stream.Attempt(i)+1, a.ask(r, uint64(r), 0.1*float64(i), stream.Attempt(i)+1), 0, i%2 == 0)
		}
	},
	"steps come in any order, and again": func(a *adversary) {
		for r := range stream.Round(12) {
			a.close(r+5, 1, a.ask(r+5, uint64(r)*3%4+1, 0.1*float64(r%10), 1), 0, r%3 == 0)
		}
	},
	"the task becomes another": func(a *adversary) {
		for i, edit := range []func(*wire.Mechanism){
			func(m *wire.Mechanism) { m.Units = 10 }, func(m *wire.Mechanism) { m.Units = 30 },
			func(m *wire.Mechanism) { m.Trials /= 2 },
			func(m *wire.Mechanism) { m.Window *= 2 }, func(m *wire.Mechanism) { m.Levels *= 2 },
		} {
			a.close(1, 1, a.ask(1, 1, 0.1*float64(i), 1), 0, i%2 == 0)
			a.announce(func(t *wire.Task) { edit(t.Plan.Phases[0].Mechanism) })
		}
		a.close(1, 1, a.ask(1, 1, 0.9, 1), 0, true)
	},
}

// planned returns the task that panlearn itself plans for a declaration.
func planned(declaration string) *wire.Task {
	spec, err := task.Parse([]byte(declaration), nil)
	must(err)
	job, err := run.NewJob(spec)
	must(err)
	body, err := job.Wire()
	must(err)
	return body
}

// attacked returns what an adversary holds in the end of a silo of many rows, and the most different reports
// about one block.
func attacked(t *testing.T, body *wire.Task, many int, lie lie, attack func(*adversary)) (of *holding, most int) {
	synctest.Test(t, func(t *testing.T) {
		a := &adversary{t: t, task: proto.CloneOf(body)}
		var err error
		a.broker, err = memory.New(memory.Config{Keep: true, AckWait: 5 * time.Second})
		must(err)
		a.learner, err = seal.NewIdentity()
		must(err)
		a.stage, err = seal.NewIdentity()
		must(err)
		a.announce(func(t *wire.Task) {
			t.Version, t.Name, t.LearnerKey, t.StageKey, t.Life = stream.Version, string(name), a.learner.Public(),
				a.stage.Public(), make([]byte, stream.LifeSize)
		})
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			attack(a)
			stop()
		}()
		of = a.live(ctx, many, lie)
		for _, reports := range a.holds(of) {
			most = max(most, len(reports))
		}
	})
	return of, most
}

// TestLiarsTogether: under trust local nobody is believed. Whatever broker, learner and stage do together, and
// whatever a silo's policy would pay for, they get one report about a block, or one for each round of a stint, and
// all of them cost no more than the plan says: of a silo that is smaller than planned for, too. Under trust shuffle
// they get several.
func TestLiarsTogether(t *testing.T) {
	drawn := 0
	for _, c := range []struct {
		plan, schedule string
		rows           int
		lies           []lie
	}{
		{"proved", "", 60, []lie{truth, beyond, below, refusal, silence}},
		{"practical", "", 60, []lie{truth}},
		{"proved", ", interactive: true, algorithm: pgd", 60, []lie{beyond, silence}},
		{"proved", ", interactive: true, algorithm: pgd", 45, []lie{beyond}},
		{"practical", ", interactive: true", 60, []lie{truth}},
	} {
		body := planned(fmt.Sprintf(silos, "local", c.plan, c.schedule))
		at := manifest.Costliest(body.Plan, 0)
		for what, attack := range attacks {
			for _, lie := range c.lies {
				of, most := attacked(t, body, c.rows, lie, attack)
				if most == 0 {
					t.Errorf("%+v, %s, lie %d: nothing was sent", c, what, lie)
					continue
				}
				var views []accounting.Mechanism // by the silo's own noise
				for i := range most {
					k := min(i, len(of.pin.Trials)-1) // moments are of one round each
					m := body.Plan.Phases[k].Mechanism
					views = append(views, accounting.Mechanism{Trials: of.pin.Trials[k], P: 0.5, Levels: int(m.Levels),
						Dim: int(m.Dim), Rounds: 1, Units: of.pin.Units})
				}
				cost, err := accounting.Epsilon(body.Plan.Delta, views...)
				must(err)
				if most > int(at.Stint.Rounds) || cost > body.Plan.Epsilon*(1+1e-9) {
					t.Errorf("%+v, %s, lie %d: %d different reports about a block, in a stint of %d rounds, which cost %v, of %v", c,
						what, lie, most, at.Stint.Rounds,
						cost, body.Plan.Epsilon)
				}
				drawn = max(drawn, most)
			}
		}
	}
	if drawn < 2 {
		t.Errorf("%d reports about a block of a stint: the attacks show nothing", drawn)
	}
	if _, most := attacked(t, planned(fmt.Sprintf(silos, "shuffle", "proved", "")), 60, beyond,
		attacks["every round closes before its first report"]); most < 2 {
		t.Errorf("under trust shuffle %d reports about a block: the attacks show nothing", most)
	}
}

// TestSiloKnowsItsNoise: what is printed under trust shuffle holds against a silo of the round, that takes its own
// noise off the total, and not against two who know each other's.
func TestSiloKnowsItsNoise(t *testing.T) {
	plan := planned(fmt.Sprintf(silos, "shuffle", "proved", "")).Plan
	m := plan.Phases[0].Mechanism
	cost := func(honest uint64) float64 {
		e, err := accounting.Epsilon(plan.Delta, accounting.Mechanism{Trials: honest * uint64(m.Trials), P: 0.5,
			Levels: int(m.Levels), Dim: int(m.Dim), Rounds: 1, Units: m.Units})
		must(err)
		return e
	}
	if most := plan.Epsilon * (1 + 1e-9); cost(plan.Silos-1) > most || cost(plan.Silos-2) <= most {
		t.Errorf("without the noise of one silo of %d a round costs %v, without that of two %v: the plan says %v", plan.Silos,
			cost(plan.Silos-1), cost(plan.Silos-2), plan.Epsilon)
	}
}
