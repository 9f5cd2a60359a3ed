package main

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/method"
)

func TestValidationCountsRounds(t *testing.T) {
	for rounds, want := range map[uint64]string{1: "over the only round\n", 12: "over all 12 rounds\n"} {
		var out strings.Builder
		if err := printValidation(&out, &method.Validation{Rounds: rounds}); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%q, %v, want its end %q", out.String(), err, want)
		}
	}
}
