package statedir

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/manifest"
)

// ended returns a store of a task that has ended, and its view.
func ended(t testing.TB, spec *task.Spec) (*storetest.Memory, View) {
	t.Helper()
	store := storetest.NewMemory()
	t.Cleanup(func() { store.Close() })
	runtest.Learned(t, runtest.Job(t, spec), store)
	view, err := Look(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return store, view
}

func fields(t testing.TB, doc any) (map[string]any, []string) {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all, slices.Sorted(maps.Keys(all))
}

// TestContractFields pins the names that scripts of users rely on. Others may be added here; none may go.
func TestContractFields(t *testing.T) {
	store, view := ended(t, runtest.Parsed(t, runtest.Words))
	answers := map[Question]map[string]any{}
	for q, want := range map[Question]string{
		AskSnapshot: "classes declaration ended features format_version intercept loss model_version privacy probabilities round task task_hash weights",
		AskStatus:   "baseline delta_spent end_reason ended epsilon_budget epsilon_intruder epsilon_learner epsilon_spent honest_fraction interactive kept last_batch learned protects round rounds silos steps task trust unit units_per_report users validation void_rounds_in_a_row",
		AskLedger:   "chain delta end_reason ended entries epsilon epsilon_intruder epsilon_learner honest_fraction intact interactive protects rounds_per_user silos trust unit units_per_report",
	} {
		var doc bytes.Buffer
		if err := answer(t.Context(), store, q, &doc); err != nil {
			t.Fatal(err)
		}
		all, names := fields(t, json.RawMessage(doc.Bytes()))
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s has the fields\n%s, want\n%s", q, got, want)
		}
		answers[q] = all
	}
	_, privacy := fields(t, answers[AskSnapshot]["privacy"])
	if got := strings.Join(privacy,
		" "); got != "delta epsilon honest_fraction interactive protects silos trust unit units_per_report users" {
		t.Errorf("privacy has the fields %s", got)
	}
	_, last := fields(t, answers[AskStatus]["last_batch"])
	if got := strings.Join(last, " "); got != "attempt cohort noise_trials rejects round users void" {
		t.Errorf("last_batch has the fields %s", got)
	}
	validation, parts := fields(t, answers[AskStatus]["validation"]) // one round is of moments
	if got := strings.Join(parts, " "); got != "accuracy confidence loss loss_bound rounds" ||
		validation["rounds"] != answers[AskStatus]["steps"].(float64)-1 {
		t.Errorf("validation has the fields %s: %v", got, validation)
	}
	_, entry := fields(t, answers[AskLedger]["entries"].([]any)[0])
	if got := strings.Join(entry,
		" "); got != "attempt delta epsilon hash kind noise_trials previous round sequence users" {
		t.Errorf("a ledger entry has the fields %s", got)
	}
	if err := answer(t.Context(), store, "weather", io.Discard); err == nil {
		t.Error("an unknown question is answered")
	}
	plan := view.Task.Plan
	status := answers[AskStatus]
	if status["epsilon_spent"] != plan.Epsilon || status["rounds"] != float64(manifest.Steps(plan)) ||
		status["users"] != float64(manifest.Users(plan)) ||
		status["ended"] != true || answers[AskLedger]["intact"] != true {
		t.Errorf("status %v of plan %v", status, plan)
	}
}

// TestBeforeTheFirstBatch there is a model (the start) and a status with null for the batch.
func TestBeforeTheFirstBatch(t *testing.T) {
	store := storetest.NewMemory()
	if _, err := Look(t.Context(), store); !errors.Is(err, state.ErrEmpty) {
		t.Errorf("an empty store: %v, want ErrEmpty", err)
	}
	job := runtest.Job(t, runtest.Small(t))
	runtest.Learned(t, job, runtest.UpTo{Store: store})
	view, err := Look(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	status, err := view.Status()
	if err != nil || string(status.LastBatch) != "null" || status.Round != 0 || status.Ended || status.EpsilonSpent <= 0 {
		t.Errorf("%+v, %v", status, err)
	}
	snapshot, err := view.Snapshot()
	if err != nil || snapshot.ModelVersion != 0 || snapshot.Privacy.Users != 0 {
		t.Errorf("%+v, %v", snapshot.Privacy, err)
	}
}

// TestSnapshotScoresTheSame: a model that was printed and read back scores raw events as the learner's own parameters
// do.
func TestSnapshotScoresTheSame(t *testing.T) {
	for _, file := range []string{runtest.Words, runtest.Classes, runtest.Numbers} {
		_, view := ended(t, runtest.Parsed(t, file))
		snapshot, err := view.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		printed, err := json.MarshalIndent(snapshot, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		back, err := model.Parse(printed)
		if err != nil {
			t.Fatal(err)
		}
		p, err := model.NewPredictor(back, "")
		if err != nil {
			t.Fatal(err)
		}
		if want := len(view.Spec.Label.Classes); want > 0 && (len(snapshot.Weights) != want ||
			len(snapshot.Intercept) != want) {
			t.Errorf("%d rows of weights and %d intercepts of %d classes", len(snapshot.Weights), len(snapshot.Intercept), want)
		}
		theta := view.Algorithm.Model()
		if convex.Norm(theta) == 0 {
			t.Fatal("the model is zero: the test would see nothing")
		}
		for i := range theta {
			if math.Abs(theta[i]-p.Theta[i]) > 1e-12*(1+math.Abs(theta[i])) {
				t.Errorf("parameter %d: %v, read back %v", i, theta[i], p.Theta[i])
			}
		}
		features, err := view.Spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		events := "30,a<b,<=50K\n90,c&d,>50K\n50,x,>50K\n1,2,3,4\n"
		if view.Spec.Model.Loss == "squared" {
			events = "30,a<b,100\n90,c&d,900\n50,x,5000\n1,2,3,4\n"
		}
		var both []model.Evaluation
		for _, of := range []model.Predictor{p, {Features: features, Loss: p.Loss, Theta: theta}} {
			rows, err := source.New(strings.NewReader(events), of.Features)
			if err != nil {
				t.Fatal(err)
			}
			e, err := of.Evaluate(rows.All(), model.Options{Absent: true})
			rows.Close()
			if err != nil {
				t.Fatal(err)
			}
			both = append(both, e)
		}
		a, b := both[0], both[1]
		if a.Examples != 3 || a.Invalid != 1 || math.Abs(a.Loss-b.Loss) > 1e-12 {
			t.Errorf("%+v and %+v", a, b)
		}
		classes := view.Spec.Model.Loss != "squared"
		_, names := fields(t, a)
		want := map[bool]string{
			true:  "accuracy auc baseline calibration_error classes confusion examples invalid log_loss loss precision recall reliability",
			false: "baseline error examples invalid loss mae r2 rmse"}[classes]
		if len(view.Spec.Label.Classes) > 0 { // one of three does not occur
			want = strings.Replace(want, "auc ", "", 1)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("fields %s, want %s", got, want)
		}
	}
}

// TestDamagedTask: a checkpoint whose task is not the one of its cursor is no view.
func TestDamagedTask(t *testing.T) {
	_, view := ended(t, runtest.Small(t))
	at := view.Checkpoint.Clone()
	at.Cursor.TaskHash[0] ^= 1
	if _, err := Of(at); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("another task hash: %v", err)
	}
	at = view.Checkpoint.Clone()
	at.Task = at.Task[:10]
	if _, err := Of(at); err == nil {
		t.Error("half a task is a view")
	}
}

// TestWhatProbabilitiesAreWorth checks that the snapshot states whether its probabilities can be used, which they
// cannot where gradients are clipped.
func TestWhatProbabilitiesAreWorth(t *testing.T) {
	for file, want := range map[string]model.Probabilities{
		runtest.Words: model.Uncalibrated, // a practical plan clips
		strings.NewReplacer("radius: 5", "radius: 5, clip_norm: 2", "users: 600",
			"users: 600, plan: proved").Replace(runtest.Words): model.OfModel,
		runtest.Numbers: "",
	} {
		_, view := ended(t, runtest.Parsed(t, file))
		snapshot, err := view.Snapshot()
		if err != nil || snapshot.Probabilities != want {
			t.Errorf("probabilities %q, want %q: %v", snapshot.Probabilities, want, err)
		}
		if snapshot.Privacy.Unit != "one event of one user in one round, replaced by any other" {
			t.Errorf("the unit is %q", snapshot.Privacy.Unit)
		}
	}
}
