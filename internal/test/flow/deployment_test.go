package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A setup describes a task, and where its reports are kept.
type setup struct {
	dim    int
	sealed bool
	bundle int  // users in one message
	memory bool // reports in the broker's memory
}

const taskName stream.Task = "flow"

const declaration = `
version: 1
name: flow
events: {format: libsvm}
features: {vector: {dimension: %d, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6, seal: %s}
schedule: {users: %d, cohort: %d, minimum_cohort: %d, rounds: {max: %d}, algorithm: psgd, deadline: 24h}
`

// A deployment is one task: a learner, a stage, and a broker elsewhere.
type deployment struct {
	url            string
	body           *wire.Task
	params         randomizer.Params
	dim            int // of the features
	learner, stage *seal.Identity

	opened, released *latest // rounds

	ctx   context.Context // ends with a role
	fail  context.CancelCauseFunc
	roles sync.WaitGroup
}

// deploy starts learner and stage of a task of so many rounds; they end with the benchmark.
func deploy(b *testing.B, url string, s setup, cohort, rounds int) *deployment {
	b.Helper()
	sealing := "none"
	if s.sealed {
		sealing = "hpke"
	}
	spec, err := task.Parse(fmt.Appendf(nil, declaration, s.dim, sealing, cohort*rounds, cohort, cohort, rounds), nil)
	if err != nil {
		b.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		b.Fatal(err)
	}
	d := &deployment{url: url, dim: s.dim, learner: identity(b), stage: identity(b), opened: newLatest(),
		released: newLatest()}
	if d.body, err = job.Wire(); err != nil {
		b.Fatal(err)
	}
	if got := d.body.Plan.Phases[0]; got.Rounds != uint64(rounds) || got.Cohort != uint64(cohort) {
		b.Fatalf("planned %d rounds of %d users, want %d of %d", got.Rounds, got.Cohort, rounds, cohort)
	}
	if d.params, err = manifest.Params(d.body.Plan.Phases[0].Mechanism); err != nil {
		b.Fatal(err)
	}
	over := errors.New("the benchmark is over")
	d.ctx, d.fail = context.WithCancelCause(context.WithoutCancel(b.Context())) // until the cleanup
	b.Cleanup(func() {
		d.fail(over)
		d.roles.Wait()
		if cause := context.Cause(d.ctx); !errors.Is(cause, over) {
			b.Error(cause)
		}
	})
	log := slog.New(slog.DiscardHandler)
	broker := run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: url}}
	dir := b.TempDir()
	d.role("learner", func(ctx context.Context) error {
		return runlearner.Run(ctx, runlearner.Config{Config: service.Config{Identity: d.learner, StageKey: d.stage.Public(),
			Logger: log},
			Spec: spec, StateDir: dir, Broker: broker, MemoryReports: s.memory, ExitWhenDone: true})
	})
	d.role("stage", func(ctx context.Context) error {
		return runstage.Run(ctx, runstage.Config{Broker: broker, Config: stage.Config{Task: taskName, Identity: d.stage,
			Logger: log,
			Observer: stage.Observer{
				Opened:   func(round stream.Round, _ stream.Attempt) { d.opened.reach(uint64(round)) },
				Released: func(round stream.Round, _ uint64, _ time.Duration) { d.released.reach(uint64(round)) },
			}}})
	})
	return d
}

// role runs a part of the deployment until its end. Its failure is the deployment's.
func (d *deployment) role(name string, run func(context.Context) error) {
	d.roles.Go(func() {
		if err := run(d.ctx); err != nil && d.ctx.Err() == nil {
			d.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// connect makes a connection of the benchmark's own.
func (d *deployment) connect(b *testing.B) *natsjs.Conn {
	b.Helper()
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: d.url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// messageBytes returns the length of a message of so many users.
func (d *deployment) messageBytes(bundle int) int {
	return seal.ReportSize(d.body.Suite, bundle, bundle*d.params.ReportBytes())
}

func identity(b *testing.B) *seal.Identity {
	b.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		b.Fatal(err)
	}
	return id
}
