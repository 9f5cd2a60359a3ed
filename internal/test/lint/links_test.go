package lint

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestADeviceLinksNoServer: a program that holds a device links its transport's client, and neither nats-server nor
// what serves a learner's or a stage's part.
func TestADeviceLinksNoServer(t *testing.T) {
	const own = "github.com/panlearn/panlearn/"
	forbidden := []string{"github.com/nats-io/nats-server", "github.com/cockroachdb/pebble", "github.com/parquet-go",
		"github.com/spf13/cobra", own + "stream/natsjs/embedded", own + "shuffle/stage", own + "learner/service"}
	for _, program := range devices(t) {
		list := exec.Command("go", "list", "-deps", "./"+program)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list -deps ./%s: %v", program, err)
		}
		packages := strings.Fields(string(out))
		if len(packages) < 100 || !slices.Contains(packages, own+program) {
			t.Errorf("%s: go list names %d packages, which are not all of them", program, len(packages))
		}
		for _, p := range packages {
			for _, f := range forbidden {
				if p == f || strings.HasPrefix(p, f+"/") || strings.HasPrefix(p, f+"@") {
					t.Errorf("%s links %s: a device needs none of it", program, p)
				}
			}
		}
		t.Logf("%s: %d packages", program, len(packages))
	}
}

// devices returns the packages that applications of a device link: the API, its transports, and the examples.
func devices(t *testing.T) (list []string) {
	t.Helper()
	list = []string{"stream/device", "stream/device/httpgateway", "stream/natsjs"}
	for _, f := range sources(t) {
		if dir := path.Clean(f.dir()); !f.test && strings.HasPrefix(dir, "examples/") && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}
