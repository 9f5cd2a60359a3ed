package method_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// momentsFirst puts a round of moments of dim features before a plan.
func momentsFirst(p *wire.Plan, dim int) *wire.Plan {
	p.Preconditioner = &wire.Preconditioner{Dim: uint32(dim), Norm: 2, Damping: 0.25, Bound: 1}
	p.Phases = slices.Insert(p.Phases, 0, &wire.Phase{Statistic: wire.Statistic_STATISTIC_SECOND_MOMENTS, Users: 7, Rounds: 1, Cohort: 7, RoundsPerUser: 1,
		Mechanism: &wire.Mechanism{Dim: uint32(dim)}})
	return p
}

// alone is PSGD on two parameters.
func alone() *wire.Plan { return series(2, convex.SetDeclaration{Radius: 2}, 0, descent(3, 0.3)) }

// small is the same after moments of three features.
func small() *wire.Plan { return momentsFirst(alone(), 3) }

// The moments come first and once, and what follows is the method as it would have been alone.
func TestMomentsComeFirst(t *testing.T) {
	plan := small()
	a, b := begin(t, plan), begin(t, alone())
	if q := a.Query(); q.Step != 1 || !q.Moments || q.Point != nil || q.Scales != nil || a.Done() {
		t.Errorf("first query %+v", q)
	}
	if learner.ScalesOf(a) != nil || learner.ScalesOf(b) != nil || !slices.Equal(a.Model(), []float64{0, 0}) {
		t.Errorf("before the moments: scales %v, model %v", learner.ScalesOf(a), a.Model())
	}
	before := bytesOf(t, a)
	if err := a.Skip(); err == nil || !bytes.Equal(before, bytesOf(t, a)) {
		t.Errorf("moments were passed over: %v", err)
	}
	for _, g := range [][]float64{{1, 2}, {1, 2, math.NaN()}, {1, 2, math.Inf(1)}} {
		if err := a.Step(method.Estimate{Gradient: g, Users: 5}); err == nil || !bytes.Equal(before, bytesOf(t, a)) {
			t.Errorf("moments %v: %v", g, err)
		}
	}
	// sqrt(0.1^2 + ...) = 0.5: 1/sqrt(3.25 + 0.25 + 0.5), and twice 1/sqrt(0.25 + 0.5).
	if err := a.Step(method.Estimate{Gradient: []float64{3.25, -1, 0}, Users: 5, PrivacyVariance: 0.2, RoundingVariance: 0.05}); err != nil {
		t.Fatal(err)
	}
	rare := 1 / math.Sqrt(0.75)
	want := []float64{0.5, rare, rare}
	learner.ScalesOf(a)[0], a.Query().Scales[1] = 9, 9
	for k := range 3 {
		q, r := a.Query(), b.Query()
		if q.Step != r.Step+1 || q.Moments || !slices.Equal(q.Point, r.Point) || !slices.Equal(q.Scales, want) || r.Scales != nil {
			t.Errorf("query %+v, want %+v with scales %v", q, r, want)
		}
		if at, _ := manifest.PhaseOf(plan, q.Step); at.Index != 1 {
			t.Errorf("step %d is of phase %d", q.Step, at.Index)
		}
		if k == 1 {
			if err := errors.Join(a.Skip(), b.Skip()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, one := range []learner.Algorithm{a, b} {
			if err := one.Step(method.Estimate{Gradient: []float64{1, -0.5}, Users: 5}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(a.Model(), b.Model()) {
			t.Errorf("model %v, alone %v", a.Model(), b.Model())
		}
	}
	if !a.Done() || a.Step(method.Estimate{Gradient: []float64{1, 1}, Users: 1}) == nil {
		t.Error("it goes on after the last step")
	}
}

func TestUnscaled(t *testing.T) {
	model := []float64{1, 2, 3, 4, 5, 6}
	if got := method.Unscaled(model, []float64{0.5, 2}, 3); !slices.Equal(got, []float64{0.5, 4, 3, 2, 10, 6}) || model[0] != 1 {
		t.Errorf("%v of %v", got, model)
	}
	if got := method.Unscaled(model, nil, 3); !slices.Equal(got, model) {
		t.Errorf("without scales: %v", got)
	}
}

// Stop anywhere, before and after the moments, and go on from the bytes: nobody can tell.
func TestResumeAroundMoments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner, _ := anyPlan(t)
		const features = 3
		plan := momentsFirst(inner, features)
		whole, resumed := begin(t, plan), begin(t, plan)
		for step := uint64(1); step <= manifest.Planned(plan); step++ {
			if rapid.Bool().Draw(t, "restart") {
				saved := bytesOf(t, resumed)
				resumed = begin(t, plan)
				if err := resumed.UnmarshalBinary(saved); err != nil {
					t.Fatalf("before step %d: %v", step, err)
				}
			}
			dim := manifest.Dim(plan)
			if step == 1 {
				dim = features
			}
			e := estimate(t, dim)
			for _, a := range []learner.Algorithm{whole, resumed} {
				if q := a.Query(); q.Step != step || q.Moments != (step == 1) || len(q.Scales) != map[bool]int{false: features}[step == 1] {
					t.Fatalf("step %d: query %+v", step, q)
				}
				if err := a.Step(e); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(bytesOf(t, whole), bytesOf(t, resumed)) || !reflect.DeepEqual(whole.Query(), resumed.Query()) {
				t.Fatalf("after %d steps: the states differ", step)
			}
		}
		if whole.Done() == manifest.Endless(plan) {
			t.Fatalf("done: %v, continuous %v", whole.Done(), plan.Continuous)
		}
	})
}

func TestImpossibleMomentsAreRefused(t *testing.T) {
	fresh := begin(t, small())
	start := bytesOf(t, fresh)
	a := begin(t, small())
	for _, g := range [][]float64{{0.5, 0, 1}, {1, -1}} {
		if err := a.Step(method.Estimate{Gradient: g, Users: 1}); err != nil {
			t.Fatal(err)
		}
	}
	late := bytesOf(t, a)
	const header = 54
	scale := func(x float64) []byte {
		b := bytes.Clone(late)
		binary.LittleEndian.PutUint64(b[header:], math.Float64bits(x))
		return b
	}
	with := func(b []byte, at int, v byte) []byte {
		b = bytes.Clone(b)
		b[at] = v
		return b
	}
	other := small()
	other.Preconditioner.Damping = 0.26
	wider := small()
	wider.Preconditioner.Norm = 3
	looser := small()
	looser.Preconditioner.Bound = 2
	slower := small()
	slower.Phases[1] = alone().Phases[0]
	slower.Phases[1].GetDescent().StepSize = 0.2
	for name, b := range map[string][]byte{
		"empty": nil, "cut off": late[:header+8], "no method": late[:header+24], "trailing": append(bytes.Clone(late), 0),
		"scale 0": scale(0), "scale too large": scale(2.1), "negative": scale(-1), "nan": scale(math.NaN()), "inf": scale(math.Inf(1)),
		"two rounds": with(late, 6, 2), "passed over": with(late, 14, 1), "moved before": slices.Concat(start[:header], late[header+24:]),
		"other damping": bytesOf(t, begin(t, other)), "other norm": bytesOf(t, begin(t, wider)), "other bound": bytesOf(t, begin(t, looser)),
		"other method": bytesOf(t, begin(t, slower)), "no moments": bytesOf(t, begin(t, alone())),
	} {
		for _, to := range []learner.Algorithm{fresh, a} {
			before := bytesOf(t, to)
			if err := to.UnmarshalBinary(b); !errors.Is(err, method.ErrState) {
				t.Errorf("%s: error %v, want ErrState", name, err)
			}
			if !bytes.Equal(before, bytesOf(t, to)) {
				t.Errorf("%s: a refused state changed the receiver", name)
			}
		}
	}
	if err := fresh.UnmarshalBinary(scale(1.5)); err != nil {
		t.Errorf("a possible state: %v", err)
	}
}

// The layout around moments, as TestGoldenStates has the others.
func TestGoldenMoments(t *testing.T) {
	a := begin(t, small())
	for _, g := range [][]float64{{0.5, -1, 3.75}, {0.1, -0.25}} {
		if err := a.Step(method.Estimate{Gradient: g, Users: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := hex.EncodeToString(bytesOf(t, a)); got != goldenMoments {
		t.Errorf("got  %s\nwant %s", got, goldenMoments)
	}
}

const goldenMoments = "02050300000001000000000000000000000000000000c32572bf675437e10f400f63ad5b9587dc743fbb6e40bc0e7a0ee263f9547de1" +
	"1d339045a779f23f0000000000000040000000000000e03f020102000000010000000000000000000000000000002f0d86ae48f6" +
	"fb5890c53b42078cc2c9b036d9dfb666fce04d89e7ec5711828ab81e85eb51b89ebf333333333333b33f00000000000000000000000000000000"

func TestMomentsThatBuildNothing(t *testing.T) {
	for want, change := range map[string]func(*wire.Plan){
		"first phase of second moments": func(p *wire.Plan) { p.Phases[0].Statistic = 0 },
		"2 rounds of 3":                 func(p *wire.Plan) { p.Phases[0].Rounds = 2 },
		"1 rounds of 3 second moments":  func(p *wire.Plan) { p.Phases[0].RoundsPerUser = 2 },
		"phases after it":               func(p *wire.Plan) { p.Phases = p.Phases[:1] },
		"want one with a first phase":   func(p *wire.Plan) { p.Preconditioner, p.Phases = nil, p.Phases[:1] },
		"constants: none":               func(p *wire.Plan) { p.Phases[1] = p.Phases[0] },
		"of 4 second":                   func(p *wire.Plan) { p.Phases[0].Mechanism.Dim = 4 },
		"damping":                       func(p *wire.Plan) { p.Preconditioner.Damping = 0 },
		"norm":                          func(p *wire.Plan) { p.Preconditioner.Norm = math.NaN() },
		"dim 268435456":                 func(p *wire.Plan) { p.Preconditioner.Dim, p.Phases[0].Mechanism.Dim = 1<<28, 1<<28 },
	} {
		p := small()
		change(p)
		if _, err := learner.New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %q", err, want)
		}
	}
}
