package model_test

import (
	"testing"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/wording"
)

// TestSampleOfASnapshot: users count once, units of every report of a silo count, rows in one place are the sample,
// and a task without end knows those that it remembers.
func TestSampleOfASnapshot(t *testing.T) {
	for what, c := range map[string]struct {
		s    model.Snapshot
		want uint64
	}{
		"users": {model.Snapshot{Privacy: model.Statement{Users: 700}}, 700},
		"blocks of silos": {model.Snapshot{Privacy: model.Statement{Kind: wording.Kind{Silos: 4, Units: 50}, Users: 8}},
			400},
		"one place": {model.Snapshot{Privacy: model.Statement{Kind: wording.Kind{Silos: 1, Units: 900}, Users: 9}},
			900},
		"public, one place": {model.Snapshot{Privacy: model.Statement{Kind: wording.Kind{Silos: 1, Units: 900}, Users: 950,
			Public: true}}, 950},
		"of a stream":        {model.Snapshot{Memory: 300.7, Privacy: model.Statement{Users: 10_000}}, 300},
		"of a young stream":  {model.Snapshot{Memory: 1e30, Privacy: model.Statement{Users: 500}}, 500},
		"nobody says":        {model.Snapshot{}, 0},
		"nobody in a stream": {model.Snapshot{Memory: 10}, 0},
	} {
		if got := c.s.Sample(); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
