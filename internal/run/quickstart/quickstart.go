// Package quickstart runs all roles of a synthetic task in one process, over a real broker and a real store, for
// `learner quickstart`.
package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"time"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/pipeline"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// panLease is the time for which the quickstart's stage may fall silent under a trust with floors: the users of an
// attempt that dies drop out there, and no others come.
const panLease = 5 * time.Minute

// testEvents is the number of fresh events that the quickstart's model is tested on, after every round and at the
// end.
const testEvents = 20000

// Config configures `learner quickstart`: all roles in one process, over a real broker and a real store.
type Config struct {
	Job    run.Job
	Dir    string // for broker, state and devices
	Seed   uint64 // of the synthetic population and, if Seeded, of the devices' and the stage's noise
	Seeded bool
	Relay  bool // the devices have no connection to the broker, and go through a relay over HTTP
	// Guests is the number of places that the made-up users leave to people in browsers, who take part at devicepage.Path
	// of HTTP. It needs HTTP on loopback, noise that is not Seeded, and a plan in which nobody takes part twice: see
	// Invites. A round that lacks them waits for its deadline. 0: no page.
	Guests uint64
	Watch  service.Observer
	Fill   func(users, cohort uint64)
	Model  func(Learned) // called after every committed round
	Logger *slog.Logger

	// HTTP serves the page and the endpoints of learner and stage; Run closes it. Nil: none. With it, Done is called with
	// the report, and Run returns when ctx is done.
	HTTP net.Listener
	Done func(Report) error
}

// Learned holds the quality of the model after a round, on fresh events.
type Learned struct {
	service.Progress
	Accuracy   float64
	ExcessRisk float64
}

// A Report holds what the quickstart learned and its cost.
type Report struct {
	Events   uint64 `json:"events"`
	Accepted uint64 `json:"accepted"`
	Spare    uint64 `json:"spare"` // users of the plan whom no round needed, as nobody was lost
	// Guests counts the users of the batches whom no device of a made-up user says to be counted.
	Guests   uint64            `json:"guests,omitempty"`
	Rejected map[string]uint64 `json:"rejected"`
	Rounds   uint64            `json:"rounds"`
	// Epsilon and Delta are the cost of such a run to a user with secret noise, and HonestFraction is the share of every
	// cohort on whose noise that cost relies. Noise that follows from Config.Seed is known, and protects nothing.
	Epsilon         float64             `json:"epsilon"`
	Delta           float64             `json:"delta"`
	HonestFraction  accounting.Fraction `json:"honest_fraction"`
	NoiseKnown      bool                `json:"noise_known"`
	TestAccuracy    float64             `json:"test_accuracy"`
	ExcessRisk      float64             `json:"excess_risk"`
	EventsPerSecond float64             `json:"events_per_second"`
	ModelVersion    uint64              `json:"model_version"`
	Relay           bool                `json:"relay,omitempty"` // the devices went through a relay over HTTP

	// The same method without noise on the same users, and the optimum itself, on the same test events.
	NonPrivateAccuracy   float64 `json:"non_private_accuracy"`
	NonPrivateExcessRisk float64 `json:"non_private_excess_risk"`
	OptimumAccuracy      float64 `json:"optimum_accuracy"`

	// Standard deviation of the noise in one coordinate of the mean gradient of the first such round, in units of the clip
	// norm: as run, and with the paper's closed-form constants.
	NoiseStd      float64 `json:"noise_std"`
	PaperNoiseStd float64 `json:"paper_noise_std"`

	// Validation holds the scores that users computed themselves, see method.Validation; null if the task has none.
	Validation *method.Validation `json:"validation"`

	Snapshot model.Snapshot `json:"-"`
}

// Invites reports whether a person in a browser may take part beside the made-up users of a job: in an interactive one
// they would have to stay for all rounds.
func Invites(job run.Job) bool {
	for _, f := range job.Plan.Phases {
		if f.RoundsPerUser > 1 {
			return false
		}
	}
	return true
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
	rejected, all := rejections{}, pipeline.Config{Spec: c.Job.Spec, Dir: c.Dir, Store: store, Shown: store,
		MemoryReports: true, Relay: c.Relay, Guests: c.Guests, Fill: c.Fill, HTTP: c.HTTP,
		Expected: runlearner.Expected(c.Job), Logger: c.Logger, Client: device.Settings{Source: "quickstart"}}
	if all.Learner, err = seal.NewIdentity(); err != nil {
		return report, err
	}
	if all.Stage, err = seal.NewIdentity(); err != nil {
		return report, err
	}
	if c.Job.Problem.Trust.HasOperators() {
		if c.Job.Spec.Privacy.Operators, err = pipeline.Operators(c.Dir, all.Stage); err != nil {
			return report, err
		}
	}
	if c.Job.Spec.Grants.Needed() {
		name, err := stream.ParseTask(c.Job.Spec.Name)
		if err != nil {
			return report, err
		}
		key, err := pipeline.Issuer(c.Dir, name)
		if err != nil {
			return report, err
		}
		c.Job.Spec.IssuerKey = task.IssuerKey(task.IssuerKeyText(key))
	}
	if all.Body, err = c.Job.Wire(); err != nil {
		return report, err
	}
	if c.Job.Problem.Trust.HasIntruder() {
		all.Lease = panLease
	}
	if c.Seeded {
		var generators uint64
		all.Mixer = func() rand.Source {
			generators++
			return sim.Entropy(c.Seed, "mixer", generators)
		}
		all.Client.Entropy, all.Shown = sim.Entropy(c.Seed, "reports"), statedir.Seeded{Store: store}
	}
	all.Watch = observe.All(c.Watch, service.Observer{Applied: rejected.add}, c.scorer(ctx, store, population))
	all.Offer = func(ctx context.Context, devices *device.Device) (device.Summary, error) {
		return c.publish(ctx, devices, population, all.Body.Plan)
	}
	all.Done = func(sent device.Summary, took time.Duration) error {
		view, err := statedir.Look(ctx, all.Shown)
		if err != nil {
			return err
		}
		if report, err = c.report(ctx, view, population); err != nil {
			return err
		}
		report.Rejected, report.Relay = rejected, c.Relay
		report.Events, report.EventsPerSecond = c.Job.Problem.Users, float64(sent.Counted)/took.Seconds()
		if c.Guests > 0 && report.Accepted > sent.Counted {
			report.Guests = report.Accepted - sent.Counted
		}
		if c.HTTP == nil {
			return nil
		}
		return c.Done(report)
	}
	err = pipeline.Run(ctx, all)
	return report, err
}

// rejections counts the reports that the stage refused, by reason.
type rejections map[string]uint64

func (r rejections) add(a service.Applied) {
	for reason, n := range a.Rejects {
		r[reason] += n
	}
}

// publish offers an event of every user that the plan is for, those to spare among them, so that the users of every
// round follow from the seed. Where places are kept for guests none is to spare, and fewer come than the plan is for.
func (c Config) publish(ctx context.Context, devices *device.Device, population *sim.Synthetic,
	plan *wire.Plan) (device.Summary, error) {
	n := manifest.Users(plan) + manifest.Spare(plan)
	if c.Guests > 0 {
		n = manifest.Users(plan) - c.Guests
	}
	reader, writer := io.Pipe()
	defer reader.Close()
	go func() { writer.CloseWithError(sim.WriteEvents(writer, population.First(int(n)))) }()
	rows, err := source.New(reader, c.Job.Features)
	if err != nil {
		return device.Summary{}, err
	}
	defer rows.Close()
	devices.Expect(n)
	summary, err := devices.Run(ctx, rows.All())
	if want := manifest.Users(plan); c.Guests == 0 && err == nil && summary.Counted < want {
		err = fmt.Errorf("only %d of %d events were counted", summary.Counted, want)
	}
	return summary, err
}

func (c Config) report(ctx context.Context, v statedir.View, population *sim.Synthetic) (Report, error) {
	snapshot, err := v.Snapshot()
	if err != nil {
		return Report{}, err
	}
	spent, spare := v.Checkpoint.Ledger.Spent(), manifest.Spare(v.Task.Plan)
	if c.Guests > 0 {
		spare = 0
	}
	out := Report{Accepted: snapshot.Privacy.Users, Spare: spare, Rounds: snapshot.Round,
		Epsilon: spent.Epsilon, Delta: spent.Delta, NoiseKnown: c.Seeded, HonestFraction: snapshot.Privacy.HonestFraction,
		ModelVersion: snapshot.ModelVersion, NoiseStd: c.Job.Inflation() * c.Job.First().Privacy.NoiseStd,
		Snapshot: snapshot, Validation: learner.ValidationOf(v.Algorithm)}
	users := int(manifest.Users(v.Task.Plan))
	examples := population.Take(users + testEvents)
	test := examples[users:]
	accuracy := func(theta []float64) float64 { return sim.Accuracy(theta, test) }
	model := v.Algorithm.Model()
	out.TestAccuracy, out.ExcessRisk = accuracy(model), population.ExcessRisk(model)
	out.OptimumAccuracy = accuracy(population.Truth())
	plain, err := sim.Run(ctx, sim.Config{Plan: c.Job.Plan, Loss: c.Job.Loss, Score: c.Job.Score(),
		Examples: examples[:users], Seed: c.Seed, Exact: true})
	if err != nil {
		return out, err
	}
	exact := plain.Model
	out.NonPrivateAccuracy, out.NonPrivateExcessRisk = accuracy(exact), population.ExcessRisk(exact)
	out.PaperNoiseStd, err = run.PaperNoiseStd(c.Job)
	return out, err
}

// scorer returns an observer that tests the committed model after every round.
func (c Config) scorer(ctx context.Context, store *pebblestore.Store, population *sim.Synthetic) service.Observer {
	if c.Model == nil {
		return service.Observer{}
	}
	users := int(manifest.Users(c.Job.Plan))
	test := population.Take(users + testEvents)[users:] // the report's events: the last round's line and the report agree
	return service.Observer{Applied: func(a service.Applied) {
		view, err := statedir.Look(ctx, store)
		if err != nil {
			return // the run itself will say what is wrong
		}
		theta := view.Algorithm.Model()
		c.Model(Learned{Progress: a.Progress, Accuracy: sim.Accuracy(theta, test), ExcessRisk: population.ExcessRisk(theta)})
	}}
}
