package relayclient_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoNATS: neither end of the interface over HTTP links NATS, so that an application with a relay's client is small.
func TestNoNATS(t *testing.T) {
	for _, one := range []string{".", "../relay"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", one).Output()
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Fields(string(out))
		for _, p := range all {
			if strings.Contains(p, "nats") {
				t.Errorf("%s depends on %s", one, p)
			}
		}
		if len(all) < 50 {
			t.Errorf("%s has %d dependencies: the list is broken", one, len(all))
		}
	}
}
