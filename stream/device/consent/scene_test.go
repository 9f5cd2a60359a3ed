package consent_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// vectorFolder names the folder of the vectors that these tests make and check, moduleFolder the root of the module.
const (
	vectorFolder = "../../../docs/vectors"
	moduleFolder = "../../.."
)

// hexed is bytes as hexadecimal text.
type hexed []byte

func (h hexed) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexed) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// key returns an identity that every run of the tests has alike.
func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

var learnerKey, stageKey, helperKey = key(1), key(2), key(3)

func public(k ed25519.PrivateKey) []byte { return k.Public().(ed25519.PublicKey) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	body, err := stream.Marshal(m)
	must(t, err)
	return body
}

// declarations of the tasks that the vectors are about.
const (
	proved = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 3, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 4, delta: 1e-3}
schedule: {users: 150, plan: proved}
validation: {off: true}
`
	practical = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 2, min: -1, max: 1}}
intercept: 1
label: {min: 0, max: 10}
model: {loss: squared}
privacy: {epsilon: 4, delta: 1e-3}
schedule: {users: 240}
validation: {weight: 0.5}
`
	silos = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 40, min: -1, max: 1}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 4, delta: 1e-3, trust: local}
silo: {count: 2, units: 12}
schedule: {plan: proved}
validation: {off: true}
`
)

func declared(t testing.TB, text string, set ...string) *task.Spec {
	t.Helper()
	spec, err := task.Parse([]byte(text), set)
	must(t, err)
	return spec
}

// mechanism returns the least noise that keeps a phase within epsilon 4 at delta 1e-3.
func mechanism(t testing.TB, r accounting.Request, norm float64) *wire.Mechanism {
	t.Helper()
	r.Epsilon, r.Delta, r.HonestFraction = 4, 1e-3, accounting.One
	c, err := accounting.Calibrate(r)
	must(t, err)
	coin, err := randomizer.CoinFromFloat(c.P)
	must(t, err)
	p := randomizer.Params{Dim: r.Dim, ClipNorm: norm, Levels: uint32(c.Levels), Trials: uint32(c.Trials),
		FloorTrials: c.FloorTrials, Coin: coin, Units: r.Units, Minimizer: r.Minimizer}
	if r.Trust == accounting.Local {
		p.Window = uint32(randomizer.WindowOf(c.Trials, 1.5))
	}
	return manifest.Mechanism(p, 1)
}

func message(t testing.TB, spec *task.Spec, trust wire.Trust, phases ...*wire.Phase) *wire.Task {
	t.Helper()
	declaration, err := spec.Canonical()
	must(t, err)
	return &wire.Task{
		Version: stream.Version, Name: "churn", Declaration: declaration, LearnerKey: public(learnerKey),
		StageKey: public(stageKey), Suite: wire.Suite_SUITE_X25519, Life: make([]byte, stream.LifeSize),
		Plan: &wire.Plan{Algorithm: "psgd", Trust: trust, HonestFraction: "1", Phases: phases, Epsilon: 4, Delta: 1e-3,
			EpsilonBudget: 4, DeadlineMs: 60000},
	}
}

// provedTask is three rounds of 50 users.
func provedTask(t testing.TB, trust accounting.Trust) *wire.Task {
	word, err := manifest.WireTrust(trust)
	must(t, err)
	m := mechanism(t, accounting.Request{Users: 50, Dim: 3, Trust: trust, Rounds: 1}, 1)
	return message(t, declared(t, proved, "privacy.trust="+trust.String()), word,
		&wire.Phase{Users: 150, Rounds: 3, Cohort: 50, Minimum: 50, RoundsPerUser: 1, Mechanism: m})
}

// vectorIssuer is the public key of docs/vectors/grants.json.
var vectorIssuer = sync.OnceValue(func() []byte {
	var file struct {
		Key hexed `json:"issuer_key"`
	}
	data, err := os.ReadFile(filepath.Join(vectorFolder, "grants.json"))
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		panic(err)
	}
	return file.Key
})

// grantsTask is three rounds of 50 users, each of whom has a token.
func grantsTask(t testing.TB) *wire.Task {
	out := provedTask(t, accounting.Shuffle)
	out.IssuerKey = bytes.Clone(vectorIssuer())
	declaration, err := declared(t, proved, "grants=pass", "issuer_key="+task.IssuerKeyText(out.IssuerKey)).Canonical()
	must(t, err)
	out.Declaration = declaration
	return out
}

// splitTask is three rounds of 50 users, whose reports two operators share. more is declared of them besides.
func splitTask(t testing.TB, more ...string) *wire.Task {
	m := mechanism(t, accounting.Request{Users: 50, Dim: 3, Trust: accounting.Split, Rounds: 1}, 1)
	out := message(t, declared(t, proved, "privacy.trust=split", fmt.Sprintf("privacy.operators={leader: \"%x\", helper: \"%x\"%s}",
		public(stageKey), public(helperKey), strings.Join(more, ""))), wire.Trust_TRUST_SPLIT,
		&wire.Phase{Users: 150, Rounds: 3, Cohort: 50, Minimum: 50, RoundsPerUser: 1, Mechanism: m})
	out.Suite, out.HelperKey, out.Plan.Prio3 = wire.Suite_SUITE_MLKEM768_X25519, public(helperKey), manifest.Prio3
	return out
}

// practicalTask is moments of 40 users, the matrix of 60, and gradients of 60 and 80.
func practicalTask(t testing.TB, set ...string) *wire.Task {
	spec := declared(t, practical, set...)
	features, err := spec.Compile()
	must(t, err)
	card, err := spec.Scorecard(features)
	must(t, err)
	how := spec.Practical(features)
	out := message(t, spec, wire.Trust_TRUST_SHUFFLE)
	p := out.Plan
	p.Algorithm, p.Practical = "practical", manifest.WirePractical(how)
	p.Set, p.Scorecard = manifest.WireSet(spec.SetDeclaration()), manifest.WireScorecard(card)
	gradients := how.Parameters() + card.Dim()
	for _, f := range []struct {
		statistic wire.Statistic
		users     uint64
		dim       int
		norm      float64
	}{{wire.Statistic_STATISTIC_MOMENTS, 40, how.MomentsDim(), how.MomentsNorm()},
		{wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX, 60, how.MatrixDim(), 1},
		{0, 60, gradients, card.Joined(1)}, {0, 80, gradients, card.Joined(1)}} {
		m := mechanism(t, accounting.Request{Users: f.users, Dim: f.dim, Trust: accounting.Shuffle, Rounds: 1}, f.norm)
		if f.statistic == 0 {
			m.Scores = uint32(card.Dim())
		}
		p.Phases = append(p.Phases, &wire.Phase{Statistic: f.statistic, Users: f.users, Rounds: 1, Cohort: f.users,
			Minimum: f.users, RoundsPerUser: 1, Mechanism: m})
	}
	return out
}

// adaptiveTask is a practical task that goes on, with cohorts of 40 to 60 whose noise is planned for 80.
func adaptiveTask(t testing.TB) *wire.Task {
	out := practicalTask(t)
	out.Plan.Continuous = wire.Continuous_CONTINUOUS_ADAPTIVE
	last := out.Plan.Phases[3]
	last.Minimum, last.Top = 40, 60
	return out
}

// siloTask has two organisations of twelve rows, which answer three rounds each: one, and two of another phase.
func siloTask(t testing.TB) *wire.Task {
	m := mechanism(t, accounting.Request{Users: 2, Dim: 40, Trust: accounting.Local, Rounds: 3, Units: 12}, 1)
	out := message(t, declared(t, silos), wire.Trust_TRUST_LOCAL,
		&wire.Phase{Users: 2, Cohort: 2, Minimum: 1, Rounds: 1, RoundsPerUser: 1, Mechanism: m},
		&wire.Phase{Users: 2, Cohort: 2, Minimum: 1, Rounds: 2, RoundsPerUser: 2, Again: true,
			Mechanism: proto.CloneOf(m)})
	out.Plan.Silos, out.Plan.ClipNorm = 2, 1
	return out
}

// proxTask has two organisations that report minimisers.
func proxTask(t testing.TB) *wire.Task {
	const weight = 0.25
	spec := declared(t, silos)
	features, err := spec.Compile()
	must(t, err)
	loss, err := spec.Loss()
	must(t, err)
	m := mechanism(t, accounting.Request{Users: 2, Dim: 40, Trust: accounting.Local, Rounds: 3, Units: 12,
		Minimizer: true}, 1/weight)
	f := &wire.Phase{Users: 2, Cohort: 2, Minimum: 1, Rounds: 3, RoundsPerUser: 3, Mechanism: m,
		Constants: &wire.Phase_Prox{Prox: &wire.Prox{Weight: weight, Steps: 20,
			StepSize: 1 / (loss.Smoothness(features.Bound()) + weight)}}}
	out := message(t, spec, wire.Trust_TRUST_LOCAL, f)
	out.Plan.Silos, out.Plan.ClipNorm, out.Plan.Algorithm = 2, 1, "prox"
	return out
}

// interactiveTask has 50 users, who answer three rounds each.
func interactiveTask(t testing.TB) *wire.Task {
	out := provedTask(t, accounting.Shuffle)
	f := out.Plan.Phases[0]
	f.RoundsPerUser, f.Users = 3, 50
	f.Mechanism = mechanism(t, accounting.Request{Users: 50, Dim: 3, Trust: accounting.Shuffle, Rounds: 3}, 1)
	return out
}

// secondPhase gives a task another phase like its first.
func secondPhase(m *wire.Task) *wire.Phase {
	f := proto.CloneOf(m.Plan.Phases[0])
	m.Plan.Phases = append(m.Plan.Phases, f)
	return f
}

// terms hold what a device comes to with a task that it agrees to.
type terms struct {
	TaskHash       hexed       `json:"task_hash"`
	Epsilon        float64     `json:"epsilon"`
	Delta          float64     `json:"delta"`
	HonestFraction string      `json:"honest_fraction"`
	Participations uint32      `json:"participations"`
	Phases         []phaseTerm `json:"phases"`
}

type phaseTerm struct {
	Dim      int     `json:"dim"`
	ClipNorm float64 `json:"clip_norm"`
	Scores   int     `json:"scores"`
	Rounds   uint32  `json:"rounds"`
	Epsilon  float64 `json:"epsilon"`
}

func termsOf(a *consent.Agreement) *terms {
	out := &terms{TaskHash: a.Hash[:], Epsilon: a.Guarantee.Epsilon, Delta: a.Delta,
		HonestFraction: a.HonestFraction.String(), Participations: a.Most()}
	for _, f := range a.Phases {
		epsilon := f.Guarantee.Epsilon
		if math.IsInf(epsilon, 0) {
			epsilon = -1
		}
		out.Phases = append(out.Phases, phaseTerm{f.Params.Dim, f.Params.ClipNorm, f.Reports.Scores, f.Rounds, epsilon})
	}
	return out
}
