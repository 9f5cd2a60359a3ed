package run

import (
	"testing"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestLargeReportsMakeSmallBundles instead of being refused.
func TestLargeReportsMakeSmallBundles(t *testing.T) {
	params := randomizer.Params{Dim: 8, ClipNorm: 1, Levels: 20, Trials: 40, Coin: randomizer.Fair}
	if got := bundleOf(wire.Suite_SUITE_X25519, uint64(params.ReportBytes()), 600); got != maxBundle {
		t.Errorf("small reports: %d a bundle, want %d", got, maxBundle)
	}
	if got := bundleOf(wire.Suite_SUITE_X25519, uint64(params.ReportBytes()), 5); got != 5 {
		t.Errorf("small cohort: %d a bundle, want 5", got)
	}
	params.Dim = 100000
	large := bundleOf(wire.Suite_SUITE_X25519, uint64(params.ReportBytes()), 600)
	if size := int(large) * params.ReportBytes(); large < 1 || large >= maxBundle || size > natsjs.DefaultMaxPayload ||
		2*size < natsjs.DefaultMaxPayload {
		t.Errorf("large reports: %d a bundle, %d bytes", large, size)
	}
	params.Dim = 10_000_000
	if got := bundleOf(wire.Suite_SUITE_X25519, uint64(params.ReportBytes()), 600); got != 1 {
		t.Errorf("huge reports: %d a bundle, want 1", got)
	}
}
