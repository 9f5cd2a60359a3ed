package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
)

func TestValidationCountsRounds(t *testing.T) {
	for rounds, want := range map[uint64]string{1: "over the only round\n", 12: "over all 12 rounds\n"} {
		var out strings.Builder
		want += "              an event's loss counts as at most 3.3\n"
		if err := printValidation(&out, wording.Kind{}, &method.Validation{Rounds: rounds, LossBound: 3.3},
			nil); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%q, %v, want its end %q", out.String(), err, want)
		}
	}
}

// TestStatusSaysTheErrorOfNumbers: in the units of the label, before the loss and beside the baseline.
func TestStatusSaysTheErrorOfNumbers(t *testing.T) {
	at := func(v, low, high float64) method.Band { return method.Band{Value: v, Low: low, High: high} }
	loss := method.Scores{Recent: at(0.02, 0, 0.08), Overall: at(0.08, 0.02, 0.32)}
	rmse, value, deviation := loss.RootMeanSquare(500), 40., 210.
	status := statedir.Status{Task: "t", Rounds: 8, Validation: &method.Validation{Rounds: 3, Loss: loss}, RMSE: &rmse,
		Baseline: &statedir.Baseline{Value: &value, Error: &deviation}}
	var out strings.Builder
	if err := printStatus(&out, status); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"progressive rms error 100 (0 to 200) recently, 200 (100 to 400) over all 3 rounds\nprogressive loss      0.02",
		"baseline      root mean squared error about 210 (always 40)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\ndoes not say %q", out.String(), want)
		}
	}
	out.Reset()
	status.RMSE = nil
	if err := printStatus(&out, status); err != nil || strings.Contains(out.String(), "rms error") {
		t.Errorf("an error where there is none: %v\n%s", err, out.String())
	}
}

// TestBaselineInWords: a class, a number, and what is not known.
func TestBaselineInWords(t *testing.T) {
	value, share, loss := 12.5, 0.75, 0.5623
	for want, b := range map[string]*statedir.Baseline{
		"unknown: nothing of the labels is released, or not yet": nil,
		"accuracy about 75 % (always no), loss about 0.562":      {Class: "no", Accuracy: &share, Loss: &loss},
		"root mean squared error about 0.75 (always 12.5)":       {Value: &value, Error: &share},
	} {
		var out strings.Builder
		if err := printBaseline(&out, b, false); err != nil || out.String() != "baseline      "+want+"\n" {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
		out.Reset()
		if err := printBaseline(&out, b, true); err != nil || b != nil && out.String() != "baseline      "+want+
			", of the events of the first look\n" {
			t.Errorf("of a task without an end %q, %v", out.String(), err)
		}
	}
}

// TestStatusAfterARollback: what the baseline is of does not depend on whether the stream is tracked yet.
func TestStatusAfterARollback(t *testing.T) {
	share := 0.5
	var out strings.Builder
	err := printStatus(&out, statedir.Status{Task: "t", Round: 31, Rollback: &service.Rollback{To: 17, After: 31},
		Baseline: &statedir.Baseline{Class: "1", Accuracy: &share}})
	if want := "(always 1), of the events of the first look\n"; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v\n%s\ndoes not say %q", err, out.String(), want)
	}
}

// TestAnEmptyTimeIsNone: --at "", as an unset variable of a shell leaves it, is refused, and is not the newest model.
func TestAnEmptyTimeIsNone(t *testing.T) {
	var f whichFlags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.flags(flags)
	if err := flags.Parse([]string{"--at", ""}); err != nil {
		t.Fatal(err)
	}
	if q, err := f.question(flags); err == nil || !strings.Contains(err.Error(), `--at ""`) {
		t.Errorf("%q, %v", q, err)
	}
}

// TestNoRowIsFollowed: rows of before the models that are kept are not said to end with the first look.
func TestNoRowIsFollowed(t *testing.T) {
	var out strings.Builder
	err := printFollowed(&out, prequential.Followed{Rows: 500, Unscored: 500, Score: &prequential.Score{}})
	if want := "no row was scored: no model is kept of before their rounds\n0 rows of 500"; err != nil || !strings.HasPrefix(out.String(), want) {
		t.Errorf("%v\n%s\ndoes not begin with %q", err, out.String(), want)
	}
}
