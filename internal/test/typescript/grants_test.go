package typescript

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// TestGrants: devices in TypeScript get their tokens of `ingest issuer` and are counted by a stage that verifies them; of
// two devices of one person one alone gets a token, and the other draws, charges and sends nothing.
func TestGrants(t *testing.T) {
	const persons, twins = 40, 8
	dir := t.TempDir()
	key := filepath.Join(dir, "issuer.key")
	public, err := exec.CommandContext(t.Context(), programs.Ingest, "keygen", "issuer", "--task", string(name), key).Output()
	if err != nil {
		t.Fatal(err)
	}
	declared := fmt.Sprintf(declaration, ", radius: 1, clip_norm: 0.25", persons, persons/2, persons/2, 2, "60s", "proved", "") +
		"grants: pass\nissuer_key: " + strings.TrimSpace(string(public)) + "\n"
	d := deployDeclared(t, declared)
	ports, err := procs.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprint("127.0.0.1:", ports[0])
	issuer := programs.Process(t, "issuer", programs.Ingest, "issuer", "-f", filepath.Join(d.dir, "task.yaml"), "--issuer-key", key,
		"--state", filepath.Join(dir, "issued"), "--http", at, "--person-header", "X-Person")
	d.start(issuer)
	d.issuer, d.persons = "http://"+at+"/v1/tasks/"+string(name)+"/grant", persons
	fleet := d.fleetOf(persons+twins, 20, 0, func(i int) any {
		return map[string]any{"x0": 0.1, "x1": float64(i%9) / 9, "y": 1}
	})
	d.start(fleet)
	if lost := d.audit(); lost != 0 {
		t.Errorf("%d were charged and not counted", lost)
	}
	_, outcomes := d.said(fleet)
	counted := map[int]int{}
	for i := range persons + twins {
		if outcomes[i].State == "counted" {
			counted[i%persons]++
		} else if bodies := d.sent(i); len(bodies) != 0 || outcomes[i].Stored != "fresh" {
			t.Errorf("device %d was charged, or sent %d reports, without a token: %+v", i, len(bodies), outcomes[i])
		}
	}
	for person := range persons {
		if counted[person] != 1 {
			t.Errorf("person %d was counted %d times", person, counted[person])
		}
	}
}
