package manifest_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// FuzzPlan: whatever plan a well-formed task has, it is refused, or all that is derived from it makes sense.
func FuzzPlan(f *testing.F) {
	good, err := stream.Marshal(goodTask())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(1))
	pan := goodTask()
	pan.Plan.Trust, pan.Plan.Phases[0].Mechanism.FloorTrials = wire.Trust_TRUST_SHUFFLE_PAN, 1000
	if good, err = stream.Marshal(pan); err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(2))
	phased := phasedTask()
	if good, err = stream.Marshal(phased); err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(12))
	phased.Plan.Continuous = wire.Continuous_CONTINUOUS_EPOCHS
	if good, err = stream.Marshal(phased); err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(1000))
	if good, err = stream.Marshal(proxTask()); err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint64(3))
	moments, err := stream.Marshal(practicalTask())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(moments, uint64(1))
	f.Add(moments, uint64(5))
	f.Fuzz(func(t *testing.T, data []byte, step uint64) {
		var task wire.Task
		if stream.Unmarshal(data, &task) != nil || manifest.CheckTask(&task) != nil {
			return
		}
		p := task.Plan
		if p.Phases[0].Mechanism.Dim > 1<<12 {
			return // sizes are measured on messages of the whole dimension
		}
		if last := manifest.Steps(p); last < math.MaxUint64 {
			step = 1 + step%last
		}
		cohort := manifest.Cohort(p, step)
		at, found := manifest.PhaseOf(p, step)
		if step == 0 {
			if found || cohort != 0 {
				t.Errorf("step 0 is in %+v", at)
			}
			return
		}
		if !found || cohort < at.Phase.Minimum || cohort < at.Phase.Cohort || cohort > at.Phase.Users {
			t.Errorf("step %d of %d: a cohort of %d in %+v", step, manifest.Steps(p), cohort, at.Phase)
		}
		if !manifest.Endless(p) && (step < at.First || step > at.Last()) {
			t.Errorf("step %d is in a phase of %d to %d", step, at.First, at.Last())
		}
		sizes, err := manifest.SizesOf(&task, []string{"duplicate", "range"})
		if err == nil && (sizes.Task <= 0 || sizes.Round <= 0 || sizes.Batch <= 0 || sizes.Report <= 0) {
			t.Errorf("sizes %+v", sizes)
		}
		hash := stream.HashOf(data)
		if at.Point() == 0 && (step > 2 || p.Practical == nil) {
			t.Errorf("moments at step %d", step)
		}
		round := manifest.RoundOf(hash, step, step, make([]float64, at.Point()), nil)
		if at.Framed() {
			round.Frame = new(wire.Frame)
		}
		if got, err := manifest.Follows(&task, hash, round); err != nil || got != at {
			t.Errorf("the round that follows from the plan does not follow: %+v, %v", got, err)
		}
		config, err := at.Mixer()
		if err != nil {
			t.Errorf("a plan that passed has no mixer: %v", err)
		} else if mixer, err := shuffle.NewMixer(config); err != nil {
			t.Errorf("a plan that passed does not mix: %v", err)
		} else {
			mixer.Erase()
		}
		if _, err := at.Releases(accounting.One); err != nil {
			t.Errorf("a plan that passed cannot be accounted for: %v", err)
		}
		if manifest.Deadline(p) < 0 {
			t.Errorf("a deadline of %v", manifest.Deadline(p))
		}
	})
}
