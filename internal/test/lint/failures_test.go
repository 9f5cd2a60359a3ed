package lint

import (
	"os/exec"
	"strings"
	"testing"
)

// failedRun is an excerpt of `go test -v`: a script that failed at its line 21 and a test that failed, with much said
// between.
var failedRun = strings.Join([]string{
	"=== RUN   TestScripts", "=== RUN   TestScripts/finish", "    testscript.go:630: ",
	"        > exec learner finish --state demo",
	"        FAIL: testdata/scripts/finish.txtar:21: unexpected command failure",
	strings.Repeat("        said by a process that was killed afterwards\n", 900) + "--- FAIL: TestScripts (1.00s)",
	"    --- FAIL: TestScripts/finish (1.00s)",
	"=== RUN   TestSum", "    sum_test.go:7: drew 20 numbers", "    sum_test.go:12: the sum is 3, want 4",
	"--- FAIL: TestSum (0.00s)",
	"=== RUN   TestFine", "    fine_test.go:9: said by a test that passed", "--- PASS: TestFine (0.00s)",
	"FAIL", "FAIL\tgithub.com/panlearn/panlearn/some\t1.1s", "",
}, "\n")

// TestGateShowsWhatFailed runs the gate's excerpt on a failed run: the lines that failed come before everything else.
func TestGateShowsWhatFailed(t *testing.T) {
	command := exec.Command("awk", "-f", root+"/.ci/failures")
	command.Stdin = strings.NewReader(failedRun)
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	first := strings.Join(lines[:min(6, len(lines))], "\n")
	for _, want := range []string{"finish.txtar:21: unexpected command failure", "sum_test.go:12: the sum is 3, want 4"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first lines lack %q:\n%s", want, first)
		}
	}
	if strings.Contains(string(out), "said by a test that passed") {
		t.Error("the excerpt shows a test that passed")
	}
}
