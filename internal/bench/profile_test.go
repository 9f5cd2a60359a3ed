package main

import (
	"testing"

	"github.com/google/pprof/profile"
)

func TestShares(t *testing.T) {
	at := func(names ...string) (locations []*profile.Location) {
		for _, n := range names {
			locations = append(locations, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: n}}}})
		}
		return locations
	}
	device := map[string][]string{roleLabel: {"device"}}
	p := &profile.Profile{Sample: []*profile.Sample{
		{Value: []int64{1, 30}, Location: at("crypto/sha256.block", "crypto/hpke.NewSender", "main.main"), Label: device},
		{Value: []int64{1, 10}, Location: at("main.crypto/hpke.like", "main.main"), Label: device},
		{Value: []int64{1, 20}, Location: at("runtime.gcDrain")},
		{Value: []int64{1, 40}, Location: at("crypto/hpke.Open"), Label: map[string][]string{roleLabel: {"stage"}}},
	}}
	got := sharesOf(p, hpke)
	if len(got) != 3 || got["device"] != 0.75 || got["stage"] != 1 || got[everybody] != 0.7 {
		t.Errorf("shares %v", got)
	}
}
