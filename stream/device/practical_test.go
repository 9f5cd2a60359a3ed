package device_test

import (
	"fmt"
	"math"
	"slices"
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

const practicalDeclaration = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: 2, min: -1, max: 1}}
intercept: 1
label: {min: 0, max: 10}
model: {loss: squared}
privacy: {epsilon: 4, delta: 1e-3, trust: %s, seal: none, honest_fraction: %s}
schedule: {users: 240}
validation: {weight: 0.5}
`

// inPractice returns a task with a practical plan: moments of 40 users, the matrix of 60, and gradients of 60 and 80,
// each with the least noise for the budget.
func inPractice(t testing.TB, trust accounting.Trust, honest string) *wire.Task {
	t.Helper()
	w := newWorld(t, plan{rounds: 4, cohort: 60, trust: trust, honest: honest})
	spec, err := task.Parse(fmt.Appendf(nil, practicalDeclaration, trust, honest), nil)
	must(t, err)
	features, err := spec.Compile()
	must(t, err)
	card, err := spec.Scorecard(features)
	must(t, err)
	w.task.Declaration, err = spec.Canonical()
	must(t, err)
	how, p := spec.Practical(features), w.task.Plan
	p.Algorithm, p.Practical, p.Phases = "practical", manifest.WirePractical(how), nil
	p.Set, p.Scorecard = manifest.WireSet(spec.SetDeclaration()), manifest.WireScorecard(card)
	for _, f := range []struct {
		statistic wire.Statistic
		users     uint64
		dim       int
		norm      float64
		scores    uint32
	}{{wire.Statistic_STATISTIC_MOMENTS, 40, how.MomentsDim(), how.MomentsNorm(),
		0}, {wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX, 60, how.MatrixDim(), 1, 0},
		{0, 60, how.Parameters() + card.Dim(), card.Joined(1), uint32(card.Dim())}, {0, 80, how.Parameters() + card.Dim(),
			card.Joined(1), uint32(card.Dim())}} {
		c, err := accounting.Calibrate(accounting.Request{Users: f.users, Dim: f.dim, Epsilon: 4, Delta: 1e-3, Trust: trust,
			HonestFraction: fraction(t, honest), Rounds: 1})
		must(t, err)
		coin, err := randomizer.CoinFromFloat(c.P)
		must(t, err)
		m := manifest.Mechanism(randomizer.Params{Dim: f.dim, ClipNorm: f.norm, Levels: uint32(c.Levels),
			Trials: uint32(c.Trials), FloorTrials: c.FloorTrials, Coin: coin}, 1)
		m.Scores = f.scores
		p.Phases = append(p.Phases, &wire.Phase{Statistic: f.statistic, Users: f.users, Rounds: 1, Cohort: f.users,
			Minimum: f.users, RoundsPerUser: 1, Mechanism: m})
	}
	return w.task
}

// A device computes the cost of every phase of a practical plan itself, whatever it reports there, and what it agrees
// to is the largest.
func TestPracticalPlansAreChargedInEveryPhase(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan} {
		for _, honest := range []string{"1", "0.5"} {
			good := inPractice(t, trust, honest)
			agreed, err := consent.Policy{AllowPlaintext: true}.CheckTask(good, taskHash(t, good))
			if err != nil {
				t.Fatalf("%v, %s honest: %v", trust, honest, err)
			}
			var most float64
			for _, f := range agreed.Phases {
				most = max(most, f.Guarantee.Epsilon)
			}
			if len(agreed.Phases) != 4 || !(most > 3) || agreed.Guarantee.Epsilon != most {
				t.Errorf("%v, %s honest: agreed to epsilon %v of %d phases that cost up to %v", trust, honest,
					agreed.Guarantee.Epsilon, len(agreed.Phases), most)
			}
			for i := range good.Plan.Phases {
				for field, change := range map[string]func(f *wire.Phase){
					"epsilon": func(f *wire.Phase) {
						f.Mechanism.Trials, f.Mechanism.FloorTrials = f.Mechanism.Trials/2, f.Mechanism.FloorTrials/2
					},
					"": func(f *wire.Phase) { f.Mechanism.ClipNorm *= 0.5 }, // less noise in the units of what is reported
				} {
					m := proto.CloneOf(good)
					change(m.Plan.Phases[i])
					_, err := consent.Policy{AllowPlaintext: true}.CheckTask(m, taskHash(t, m))
					if field != "" {
						field = fmt.Sprintf("plan.phases[%d]: %s", i, field)
					}
					refusal(t, fmt.Sprintf("%v, %s honest, phase %d", trust, honest, i), err, field)
				}
			}
		}
	}
}

// A plan that reports other things than the declaration says is refused.
func TestPracticalPlansAreAsDeclared(t *testing.T) {
	good := inPractice(t, accounting.Shuffle, "1")
	for name, c := range map[string]struct {
		change func(p *wire.Plan)
		field  string
	}{
		"a larger norm of moments": {func(p *wire.Plan) { p.Phases[0].Mechanism.ClipNorm *= 1.01 },
			"plan.phases[0].mechanism.clip_norm"},
		"a larger norm of the matrix": {func(p *wire.Plan) { p.Phases[1].Mechanism.ClipNorm = 2 },
			"plan.phases[1].mechanism.clip_norm"},
		"gradients without scores' norm": {func(p *wire.Plan) {
			p.Phases[2].Mechanism.ClipNorm, p.Phases[3].Mechanism.ClipNorm = 1, 1
		}, "plan.phases[2].mechanism.clip_norm"},
		"two rounds of moments":  {func(p *wire.Plan) { p.Phases[1].Statistic = p.Phases[0].Statistic }, "plan"},
		"the matrix before":      {func(p *wire.Plan) { p.Phases[0], p.Phases[1] = p.Phases[1], p.Phases[0] }, "plan"},
		"gradients before":       {func(p *wire.Plan) { p.Phases[0], p.Phases[3] = p.Phases[3], p.Phases[0] }, "plan"},
		"no word of practice":    {func(p *wire.Plan) { p.Practical = nil }, "plan"},
		"proved, though not so":  {func(p *wire.Plan) { p.Practical, p.Phases = nil, p.Phases[2:] }, "plan"},
		"features that it lacks": {func(p *wire.Plan) { p.Practical.Features++ }, "plan"},
		"a smoothed loss":        {func(p *wire.Plan) { p.Phases[0].Smoothing = 1 }, "task"},
	} {
		m := proto.CloneOf(good)
		c.change(m.Plan)
		_, err := consent.Policy{AllowPlaintext: true}.CheckTask(m, taskHash(t, m))
		refusal(t, name, err, c.field)
	}
}

// What a learner announces in a round of a practical plan: a frame of sane numbers from the second phase on, which
// stays as it is where gradients are asked for.
func TestPracticalRounds(t *testing.T) {
	m := inPractice(t, accounting.Shuffle, "1")
	hash := taskHash(t, m)
	agreed, err := consent.Policy{AllowPlaintext: true}.CheckTask(m, hash)
	must(t, err)
	frame := &wire.Frame{Center: []float64{0.1, -0.1}, Scale: []float64{2, 3}, Intercept: 0.5, Bound: 4, Clip: 1}
	matrix := proto.CloneOf(frame)
	matrix.LabelCenter, matrix.LabelScale, matrix.LabelWeight = 5, 2, 1
	whitened := proto.CloneOf(frame)
	whitened.Whitener = []float64{1, 0, 1, 0, 0, 1}
	point := []float64{0.5, 0, 5}
	rounds := []*wire.Round{manifest.RoundOf(hash, 1, 1, nil, nil), manifest.RoundOf(hash, 2, 2, nil, matrix),
		manifest.RoundOf(hash, 3, 3, point, whitened), manifest.RoundOf(hash, 4, 4, point, whitened)}
	check := func(r *wire.Round) error {
		hash, err := manifest.RoundHash(r)
		must(t, err)
		return agreed.CheckRound(r, hash, nil)
	}
	for i, r := range rounds {
		must(t, check(r))
		if i > 0 {
			must(t, agreed.CheckOrder(rounds[i-1], r))
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		round  int
		change func(r *wire.Round)
	}{
		"a frame of moments":          {0, func(r *wire.Round) { r.Frame = frame }},
		"a point of moments":          {0, func(r *wire.Round) { r.Point = point }},
		"no frame of the matrix":      {1, func(r *wire.Round) { r.Frame = nil }},
		"a matrix without a label":    {1, func(r *wire.Round) { r.Frame = frame }},
		"a whitened matrix":           {1, func(r *wire.Round) { r.Frame.Whitener = whitened.Whitener }},
		"a matrix at a point":         {1, func(r *wire.Round) { r.Point = point }},
		"no frame of gradients":       {2, func(r *wire.Round) { r.Frame = nil }},
		"a label of gradients":        {2, func(r *wire.Round) { r.Frame = matrix }},
		"a short center":              {2, func(r *wire.Round) { r.Frame.Center = r.Frame.Center[:1] }},
		"a scale too many":            {2, func(r *wire.Round) { r.Frame.Scale = append(r.Frame.Scale, 1) }},
		"a center that is no number":  {2, func(r *wire.Round) { r.Frame.Center[0] = nan }},
		"a scale of zero":             {2, func(r *wire.Round) { r.Frame.Scale[1] = 0 }},
		"no intercept":                {2, func(r *wire.Round) { r.Frame.Intercept = 0 }},
		"an endless bound":            {2, func(r *wire.Round) { r.Frame.Bound = inf }},
		"no clip":                     {2, func(r *wire.Round) { r.Frame.Clip = 0 }},
		"a negative clip":             {2, func(r *wire.Round) { r.Frame.Clip = -1 }},
		"a clip that is no number":    {2, func(r *wire.Round) { r.Frame.Clip = nan }},
		"a short whitener":            {2, func(r *wire.Round) { r.Frame.Whitener = r.Frame.Whitener[:5] }},
		"a whitener without numbers":  {2, func(r *wire.Round) { r.Frame.Whitener[3] = inf }},
		"a smoothing below 0":         {2, func(r *wire.Round) { r.Frame.Smoothing = -1 }},
		"smoothing of a smooth loss":  {2, func(r *wire.Round) { r.Frame.Smoothing = 1e12 }},
		"a point that is no number":   {2, func(r *wire.Round) { r.Point = []float64{0, nan, 0} }},
		"a point that is far too far": {2, func(r *wire.Round) { r.Point = []float64{0, 1e13, 0} }},
	} {
		r := proto.CloneOf(rounds[c.round])
		c.change(r)
		refusal(t, name, check(r), "")
	}
	known, other := stream.Hash{1}, stream.Hash{2}
	refusal(t, "another frame in the same round", agreed.CheckRound(rounds[2], other, &known), "manifest hash")
	changed := proto.CloneOf(rounds[3])
	changed.Frame.Scale[0] = 5
	refusal(t, "another frame of gradients", agreed.CheckOrder(rounds[2], changed), "frame")
	back := proto.CloneOf(rounds[0])
	back.Round = 4
	refusal(t, "moments after gradients", agreed.CheckOrder(rounds[2], back), "step")
	if !slices.Equal(rounds[2].Frame.Scale, frame.Scale) {
		t.Error("a case changed the rounds of the others")
	}
}

// inAdaptive returns a task without an end: moments of 40 users, then rounds of 60 to 200, whose noise is planned for
// 400.
func inAdaptive(t testing.TB, trust accounting.Trust) *wire.Task {
	t.Helper()
	m := inPractice(t, trust, "1")
	spec, err := task.Parse(fmt.Appendf(nil, practicalDeclaration, trust, "1"), []string{"schedule.continuous=adaptive"})
	must(t, err)
	m.Declaration, err = spec.Canonical()
	must(t, err)
	p := m.Plan
	p.Continuous = wire.Continuous_CONTINUOUS_ADAPTIVE
	last := p.Phases[2]
	p.Phases = []*wire.Phase{p.Phases[0], last}
	last.Users, last.Minimum, last.Top, last.Cohort = 1000, 60, 200, 400
	c, err := accounting.Calibrate(accounting.Request{Users: 400, Dim: int(last.Mechanism.Dim), Epsilon: 4, Delta: 1e-3,
		Trust: trust, HonestFraction: fraction(t, "1"), Rounds: 1})
	must(t, err)
	coin, err := randomizer.CoinFromFloat(c.P)
	must(t, err)
	scores := last.Mechanism.Scores
	last.Mechanism = manifest.Mechanism(randomizer.Params{Dim: int(last.Mechanism.Dim), ClipNorm: last.Mechanism.ClipNorm,
		Levels: uint32(c.Levels),
		Trials: uint32(c.Trials), FloorTrials: c.FloorTrials, Coin: coin}, 1)
	last.Mechanism.Scores = scores
	return m
}

// TestAdaptiveRounds: a device agrees to one epsilon for all cohorts of an adaptive plan, takes part in rounds of 60
// to 200 whose clip may change, and in no other; a policy's own_share refuses a plan whose rounds rest on the stage's
// noise for more.
func TestAdaptiveRounds(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan} {
		m := inAdaptive(t, trust)
		hash := taskHash(t, m)
		agreed, err := consent.Policy{AllowPlaintext: true}.CheckTask(m, hash)
		if err != nil {
			t.Fatalf("%v: %v", trust, err)
		}
		frame := &wire.Frame{Center: make([]float64, 2), Scale: []float64{1, 1}, Intercept: 1, Bound: 2, Clip: 1}
		at, _ := manifest.PhaseOf(m.Plan, 2)
		round := func(r, cohort uint64, clip float64) *wire.Round {
			f := proto.CloneOf(frame)
			f.Clip = clip
			out := manifest.RoundOf(hash, r, r, make([]float64, at.Point()), f)
			out.Cohort = cohort
			return out
		}
		check := func(r *wire.Round) error {
			h, err := manifest.RoundHash(r)
			must(t, err)
			return agreed.CheckRound(r, h, nil)
		}
		for cohort, taken := range map[uint64]bool{0: false, 1: false, 59: false, 60: true, 199: true, 200: true, 201: false,
			400: false, 1 << 40: false} {
			if err := check(round(2, cohort, 1)); (err == nil) != taken {
				t.Errorf("%v: a round of %d users: %v", trust, cohort, err)
			}
		}
		if err := agreed.CheckOrder(round(2, 60, 1), round(3, 120, 0.7)); err != nil {
			t.Errorf("%v: another clip: %v", trust, err)
		}
		if err := check(round(3, 60, math.Inf(1))); err == nil {
			t.Errorf("%v: an infinite clip is accepted", trust)
		}
		_, err = consent.Policy{AllowPlaintext: true, OwnShare: 0.2}.CheckTask(m, hash)
		if refused := err != nil; refused != trust.HasReportNoise() {
			t.Errorf("%v: 60 of 400 users at an own_share of .2: %v", trust, err)
		}
	}
}

// TestFakesOfAnAdaptiveRound checks that beside 59 fakes in a round of 60, whose noise is planned for 400, the
// honest trials are as many as of 341 users, so that epsilon is at most the one printed for an honest fraction of
// 1 - 59/400.
func TestFakesOfAnAdaptiveRound(t *testing.T) {
	p := inAdaptive(t, accounting.Shuffle).Plan
	honest := fraction(t, "341/400")
	said, err := manifest.Costliest(p, 1).Releases(honest)
	must(t, err)
	b := uint64(p.Phases[1].Mechanism.Trials)
	params, err := manifest.Params(p.Phases[1].Mechanism)
	must(t, err)
	real := params.NoiseTrials(60, 400) - 59*b // what the fakes leave: the stage's and the target's own
	if want := honest.Floor(400) * b; real < want {
		t.Fatalf("%d honest trials, the claim rests on %d", real, want)
	}
	budget := accounting.Budget{Epsilon: 8, Delta: 1e-3}
	claim, err := accounting.RepeatedWithin(1, [][]accounting.Release{said}, budget)
	must(t, err)
	all, err := manifest.Costliest(p, 1).Releases(fraction(t, "1"))
	must(t, err)
	whole, err := accounting.RepeatedWithin(1, [][]accounting.Release{all}, budget)
	must(t, err)
	if !(claim.Epsilon > whole.Epsilon && claim.Epsilon < 8) {
		t.Errorf("epsilon %v at %v honest, %v at 1", claim.Epsilon, honest, whole.Epsilon)
	}
}
