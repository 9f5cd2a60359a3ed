package stage

import (
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/shuffle"
)

func TestConfigRefusals(t *testing.T) {
	w := newWorld(t, plan{cohort: 4})
	for want, change := range map[string]func(*Config){
		"task name":  func(c *Config) { c.Task = "No" },
		"Records":    func(c *Config) { c.Records = nil },
		"Reports":    func(c *Config) { c.Reports = nil },
		"Identity":   func(c *Config) { c.Identity = nil },
		"LearnerKey": func(c *Config) { c.LearnerKey = make([]byte, 31) },
		"LeaseTTL":   func(c *Config) { c.LeaseTTL = time.Hour },
		"Poll":       func(c *Config) { c.Poll = -1 },
		"Prefetch":   func(c *Config) { c.Prefetch = 1 << 20 },
		"MaxPayload": func(c *Config) { c.Limits.MaxPayload = -1 },
	} {
		c := w.config()
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if seen[r.String()] || r.String() == "" || r.String() == "invalid" {
			t.Errorf("reason %d is named %q", r, r)
		}
		seen[r.String()] = true
	}
	if got := Reason(200).String(); got != "invalid" {
		t.Error(got)
	}
	for _, o := range shuffle.Outcomes() {
		if (reasonOf(o) == Accepted) != (o == shuffle.Accepted) {
			t.Errorf("outcome %v is reason %v", o, reasonOf(o))
		}
	}
}
