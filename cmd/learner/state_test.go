package main

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/method"
)

func TestValidationCountsRounds(t *testing.T) {
	for rounds, want := range map[uint64]string{1: "over the only round\n", 12: "over all 12 rounds\n"} {
		var out strings.Builder
		want += "              an event's loss counts as at most 3.3\n"
		if err := printValidation(&out, wording.Kind{}, &method.Validation{Rounds: rounds, LossBound: 3.3}); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%q, %v, want its end %q", out.String(), err, want)
		}
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
		if err := printBaseline(&out, b); err != nil || out.String() != "baseline      "+want+"\n" {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
}
