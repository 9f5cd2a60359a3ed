// Package quickstart runs all roles of a synthetic task in one process, over a real broker and a real store, for `learner quickstart`.
package quickstart

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	runlearner "github.com/panlearn/panlearn/internal/run/learner"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/filestore"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// panLease is how long the quickstart's stage may fall silent under a trust with floors: the users of an attempt that dies drop
// out there, and no others come.
const panLease = 5 * time.Minute

// testEvents is how many fresh events the quickstart's model is tested on, after every round and at the end.
const testEvents = 20000

// Config is `learner quickstart`: all roles in one process, over a real broker and a real store.
type Config struct {
	Job    run.Job
	Dir    string // for broker, state and devices
	Seed   uint64 // of the synthetic population and, if Seeded, of the devices' and the stage's noise
	Seeded bool
	Watch  service.Observer
	Fill   func(users, cohort uint64)
	Model  func(Learned) // called after every committed round
	Logger *slog.Logger

	// HTTP serves the page and the endpoints of learner and stage; Run closes it. Nil: none. With it, Done is told the
	// report, and Run returns when ctx is done.
	HTTP net.Listener
	Done func(Report) error
}

// Learned is how good the model is after a round, on fresh events.
type Learned struct {
	service.Progress
	Accuracy   float64
	ExcessRisk float64
}

// A Report is what the quickstart learned and what it cost.
type Report struct {
	Events   uint64            `json:"events"`
	Accepted uint64            `json:"accepted"`
	Rejected map[string]uint64 `json:"rejected"`
	Rounds   uint64            `json:"rounds"`
	// Epsilon and Delta are what such a run costs a user whose noise is secret, and HonestFraction the share of every cohort whose noise that
	// relies upon. Where the noise followed from Config.Seed it is known, and nothing is protected.
	Epsilon         float64             `json:"epsilon"`
	Delta           float64             `json:"delta"`
	HonestFraction  accounting.Fraction `json:"honest_fraction"`
	NoiseKnown      bool                `json:"noise_known"`
	TestAccuracy    float64             `json:"test_accuracy"`
	ExcessRisk      float64             `json:"excess_risk"`
	EventsPerSecond float64             `json:"events_per_second"`
	ModelVersion    uint64              `json:"model_version"`

	// The same method without noise on the same users, and the optimum itself, on the same test events.
	NonPrivateAccuracy   float64 `json:"non_private_accuracy"`
	NonPrivateExcessRisk float64 `json:"non_private_excess_risk"`
	OptimumAccuracy      float64 `json:"optimum_accuracy"`

	// Standard deviation of the noise in one coordinate of the mean gradient of the first such round, in units of the clip norm: as run,
	// and with the paper's closed-form constants.
	NoiseStd      float64 `json:"noise_std"`
	PaperNoiseStd float64 `json:"paper_noise_std"`

	// Validation is what the users' own scores said, see method.Validation; null where the task has none.
	Validation *method.Validation `json:"validation"`

	Snapshot model.Snapshot `json:"-"`
}

// Run runs everything and reports.
func Run(ctx context.Context, c Config) (report Report, err error) {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	population, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: c.Job.Features.Dim(), Loss: c.Job.Spec.Model.Loss,
		TruthNorm: sim.TruthNorm, Seed: c.Seed})
	if err != nil {
		return report, err
	}
	store, err := pebblestore.Open(filepath.Join(c.Dir, "state"), pebblestore.Options{Logger: c.Logger})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	server, err := natsjs.StartEmbedded(natsjs.EmbeddedConfig{StoreDir: filepath.Join(c.Dir, "nats"), SyncAlways: true, Log: c.Logger})
	if err != nil {
		return report, err
	}
	defer server.Shutdown()
	conns := make([]*natsjs.Conn, 3) // one a role, as in separate processes
	for i := range conns {
		if conns[i], err = server.Connect(natsjs.ConnectConfig{Log: c.Logger}); err != nil {
			return report, err
		}
		defer conns[i].Close()
	}
	name, err := stream.ParseTask(c.Job.Spec.Name)
	if err != nil {
		return report, err
	}
	body, err := c.Job.Wire()
	if err != nil {
		return report, err
	}
	if _, err := run.Provision(ctx, conns[0], name, body, 1, true); err != nil {
		return report, err
	}
	learnerIdentity, err := seal.NewIdentity()
	if err != nil {
		return report, err
	}
	stageIdentity, err := seal.NewIdentity()
	if err != nil {
		return report, err
	}
	pins := consent.Policy{LearnerKey: consent.Fingerprint(learnerIdentity.Public()), StageKey: consent.Fingerprint(stageIdentity.Public())}
	show, err := c.open(ctx, body, store, conns[0])
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, show.close(ctx, err)) }()
	begun := time.Now()
	rejected := rejections{}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		watch := runlearner.Observers{c.Watch, rejected, c.scorer(running, store, population), show.learner}
		err := c.learn(running, name, body, conns[0], store, learnerIdentity, stageIdentity.Public(), watch)
		show.site.Ended(ctx, err)
		return err
	})
	group.Go(func() error { return c.mix(running, name, conns[1], stageIdentity, show) })
	var sent client.Summary
	group.Go(func() error {
		var err error
		sent, err = c.publish(running, name, conns[2], population, manifest.Users(body.Plan), pins)
		return err
	})
	if err := group.Wait(); err != nil {
		return report, err
	}
	took := time.Since(begun)
	var seen state.Store = store
	if c.Seeded {
		seen = statedir.Seeded{Store: store}
	}
	view, err := statedir.Look(ctx, seen)
	if err != nil {
		return report, err
	}
	if report, err = c.report(ctx, view, population); err != nil {
		return report, err
	}
	report.Rejected = rejected
	report.Events, report.EventsPerSecond = sent.Events, float64(sent.Counted)/took.Seconds()
	if c.HTTP != nil { // how it ended is shown until ctx is done
		if err := c.Done(report); err != nil {
			return report, err
		}
		<-ctx.Done()
	}
	return report, nil
}

func (c Config) learn(ctx context.Context, name stream.Task, body *wire.Task, conn *natsjs.Conn, store *pebblestore.Store,
	identity *seal.Identity, stageKey ed25519.PublicKey, watch service.Observer) error {
	s, err := service.New(service.Config{Task: name, Records: conn, Store: store, Identity: identity, StageKey: stageKey,
		Prepare:  func() (*wire.Task, error) { return body, nil },
		Observer: watch, Logger: c.Logger})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func (c Config) mix(ctx context.Context, name stream.Task, conn *natsjs.Conn, identity *seal.Identity, show *exhibit) error {
	reader, err := conn.Reader(ctx, name)
	if err != nil {
		return err
	}
	config := stage.Config{Task: name, Records: conn, Reports: reader, Identity: identity, Limits: conn.Limits(),
		Observer: show.stage, Logger: c.Logger}
	if c.Job.Problem.Trust.HasFloors() {
		config.LeaseTTL = panLease
	}
	if c.Seeded {
		var generators uint64
		config.Entropy = func() rand.Source {
			generators++
			return sim.Entropy(c.Seed, "mixer", generators)
		}
	}
	s, err := stage.New(config)
	if err != nil {
		return err
	}
	status := s.Status
	show.status.Store(&status)
	return s.Run(ctx)
}

// rejections counts the reports that the stage refused, by reason.
type rejections map[string]uint64

func (r rejections) Resumed(service.Progress) {}

func (r rejections) Announced(uint64, uint64) {}

func (r rejections) Trouble(string) {}
func (r rejections) Lost(string)    {}

func (r rejections) Applied(a service.Applied) {
	for reason, n := range a.Rejects {
		r[reason] += n
	}
}

// publish sends exactly the planned number of events, so that the users of every round follow from the seed.
func (c Config) publish(ctx context.Context, name stream.Task, conn *natsjs.Conn, population *sim.Synthetic, n uint64,
	pins consent.Policy) (client.Summary, error) {
	store, err := filestore.Open(filestore.Path(filepath.Join(c.Dir, "devices"), name))
	if err != nil {
		return client.Summary{}, err
	}
	defer store.Close()
	var entropy rand.Source
	if c.Seeded {
		entropy = sim.Entropy(c.Seed, "reports")
	}
	devices, err := client.New(client.Config{Task: name, Records: conn, Reports: conn, Store: store, Spec: c.Job.Spec, Policy: pins,
		Source: "quickstart", Limits: conn.Limits(), Logger: c.Logger, Entropy: entropy})
	if err != nil {
		return client.Summary{}, err
	}
	reader, writer := io.Pipe()
	defer reader.Close()
	var written atomic.Bool
	go func() {
		err := sim.WriteEvents(writer, population, int(n))
		written.Store(err == nil)
		writer.CloseWithError(err)
	}()
	rows, err := source.New(reader, c.Job.Features)
	if err != nil {
		return client.Summary{}, errors.Join(err, devices.Close())
	}
	defer rows.Close()
	devices.Expect(n)
	summary, err := devices.Run(ctx, rows.All())
	if err == nil && !written.Load() {
		err = fmt.Errorf("only %d of %d events were taken", summary.Events, n)
	}
	return summary, err
}

func (c Config) report(ctx context.Context, v statedir.View, population *sim.Synthetic) (Report, error) {
	snapshot, err := v.Snapshot()
	if err != nil {
		return Report{}, err
	}
	spent := v.Checkpoint.Ledger.Spent()
	out := Report{Accepted: snapshot.Privacy.Users, Rounds: snapshot.Round,
		Epsilon: spent.Epsilon, Delta: spent.Delta, NoiseKnown: c.Seeded, HonestFraction: snapshot.Privacy.HonestFraction, ModelVersion: snapshot.ModelVersion,
		NoiseStd: c.Job.Inflation() * c.Job.First().Privacy.NoiseStd, Snapshot: snapshot,
		Validation: learner.ValidationOf(v.Algorithm)}
	users := int(manifest.Users(v.Task.Plan))
	examples := population.Take(users + testEvents)
	test := examples[users:]
	accuracy := func(theta []float64) float64 { return sim.Accuracy(theta, test) }
	model := v.Algorithm.Model()
	out.TestAccuracy, out.ExcessRisk = accuracy(model), population.ExcessRisk(model)
	out.OptimumAccuracy = accuracy(population.Truth())
	plain, err := sim.Run(ctx, sim.Config{Plan: c.Job.Plan, Loss: c.Job.Loss, Score: c.Job.Score(), Examples: examples[:users], Seed: c.Seed, Exact: true})
	if err != nil {
		return out, err
	}
	exact := plain.Model
	out.NonPrivateAccuracy, out.NonPrivateExcessRisk = accuracy(exact), population.ExcessRisk(exact)
	out.PaperNoiseStd, err = run.PaperNoiseStd(c.Job)
	return out, err
}

// A scorer tests the committed model after every round.
type scorer struct {
	runlearner.Observers // none: only Applied is of interest
	applied              func(service.Applied)
}

func (s scorer) Trouble(string) {}
func (s scorer) Lost(string)    {}

func (s scorer) Applied(a service.Applied) { s.applied(a) }

func (c Config) scorer(ctx context.Context, store *pebblestore.Store, population *sim.Synthetic) service.Observer {
	if c.Model == nil {
		return nil
	}
	users := int(c.Job.Problem.Users)
	test := population.Take(users + testEvents)[users:] // those of the report: the last round's line and the report agree
	return scorer{applied: func(a service.Applied) {
		view, err := statedir.Look(ctx, store)
		if err != nil {
			return // the run itself will say what is wrong
		}
		theta := view.Algorithm.Model()
		c.Model(Learned{Progress: a.Progress, Accuracy: sim.Accuracy(theta, test), ExcessRisk: population.ExcessRisk(theta)})
	}}
}
