package manifest_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// What a practical plan is made of travels whole.
func TestPracticalAndItsMessageAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "features")
		number := rapid.Float64Range(-1e6, 1e6)
		want := practical.Problem{Loss: convex.Declaration{Name: "huber", Width: number.Draw(t, "width"),
			ClassWeights: rapid.SliceOfN(number, 1, 3).Draw(t, "weights")},
			Features: n, Bound: number.Draw(t, "bound"), Intercept: number.Draw(t, "intercept"), LabelLow: number.Draw(t, "low"),
			LabelHigh: number.Draw(t, "high"),
			Clip:      number.Draw(t, "clip"), Ridge: number.Draw(t, "ridge"), Set: convex.SetDeclaration{Kind: "box", Min: -1,
				Max: number.Draw(t, "max")},
			Users: rapid.Uint64().Draw(t, "users")}
		if rapid.Bool().Draw(t, "indicators") {
			want.Indicators = rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "which")
			want.Indicators[n-1] = true
		}
		plan := &wire.Plan{Practical: manifest.WirePractical(&want), Ridge: want.Ridge, Set: manifest.WireSet(want.Set)}
		if got := manifest.Practical(plan); !reflect.DeepEqual(*got, want) {
			t.Fatalf("%+v, want %+v", *got, want)
		}
		f := convex.Frame{Center: rapid.SliceOfN(number, n, n).Draw(t, "center"), Scale: rapid.SliceOfN(number, n, n).Draw(t,
			"scale"), Intercept: 1, Bound: 2, Clip: 3,
			Smoothing: 4, Whitener: []float64{5}, LabelCenter: 6, LabelScale: 7, LabelWeight: 8}
		if got := manifest.Frame(manifest.WireFrame(&f)); !reflect.DeepEqual(*got, f) {
			t.Fatalf("%+v, want %+v", *got, f)
		}
	})
}

// TestSizesAreOfTheLargestPhase: a message of any phase fits into what was computed.
func TestSizesAreOfTheLargestPhase(t *testing.T) {
	small, err := manifest.SizesOf(goodTask(), nil)
	if err != nil {
		t.Fatal(err)
	}
	task := phasedTask()
	task.Plan.Phases[1].Mechanism.Levels, task.Plan.Phases[1].Mechanism.MaxBundle = 1<<20, 8
	large, err := manifest.SizesOf(task, nil)
	if err != nil {
		t.Fatal(err)
	}
	if large.Report <= small.Report || large.Batch <= small.Batch || large.Round < small.Round ||
		large.Task <= small.Task {
		t.Errorf("%+v with a larger mechanism in phase 2, %+v without", large, small)
	}
	task.Plan.Phases[2].Mechanism.CoinBits = 1
	if _, err := manifest.SizesOf(task, nil); err == nil {
		t.Error("a mechanism of another grid has sizes")
	}
}

func TestMixerAndRelease(t *testing.T) {
	task := goodTask()
	at, _ := manifest.PhaseOf(task.Plan, 10)
	cfg, err := at.Mixer()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Cohort != 103 || cfg.Minimum != 80 || cfg.MaxBundle != 4 || cfg.Params.FloorTrials != 0 || cfg.Entropy != nil ||
		cfg.Params.Dim != 3 {
		t.Errorf("%+v", cfg)
	}
	if got := manifest.Deadline(task.Plan); got != time.Minute {
		t.Errorf("deadline %v", got)
	}
	honest, err := manifest.HonestFraction(task.Plan)
	if err != nil {
		t.Fatal(err)
	}
	want := accounting.Release{Trust: accounting.Shuffle, Users: 103, Dim: 3, Levels: 19, Trials: 26, P: 0.5,
		HonestFraction: honest, Rounds: 1}
	if rel, err := at.Releases(honest); err != nil || !slices.Equal(rel, []accounting.Release{want}) {
		t.Errorf("%+v, %v: want %+v", rel, err, want)
	}
	want.Users = 100
	if rel, err := manifest.Costliest(task.Plan, 0).Releases(honest); err != nil ||
		!slices.Equal(rel, []accounting.Release{want}) {
		t.Errorf("the costliest: %+v, %v: want %+v", rel, err, want)
	}
	if _, err := at.Releases(accounting.Fraction{}); err == nil {
		t.Error("an honest fraction of nothing passed")
	}
	task.Plan.Phases[0].RoundsPerUser = 0
	if _, err := at.Releases(honest); err == nil {
		t.Error("no rounds passed")
	}
	task.Plan.Phases[0].Mechanism = nil
	if _, err := at.Mixer(); err == nil {
		t.Error("no mechanism passed")
	}
}
