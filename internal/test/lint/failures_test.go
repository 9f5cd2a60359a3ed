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

// TestOnlyACrashOfTheRaceDetectorRunsAgain gives the gate's filter runs of two packages: it names those in which the
// detector crashed, unless anything failed by itself.
func TestOnlyACrashOfTheRaceDetectorRunsAgain(t *testing.T) {
	const (
		fine  = "=== RUN   TestFine\n--- PASS: TestFine (0.00s)\nPASS\nok  \tsome/fine\t1.0s\n"
		crash = "=== RUN   TestX\nSIGSEGV: segmentation violation\nPC=0x41c729 m=3 sigcode=1\n\nrip    0x41c729\n" +
			"FAIL\tsome/crashed\t8.2s\n"
		test = "=== RUN   TestSum\n--- FAIL: TestSum (0.00s)\nFAIL\nFAIL\tsome/wrong\t1.0s\n"
		race = "=== RUN   TestSum\nWARNING: DATA RACE\nFAIL\nFAIL\tsome/raced\t1.0s\n"
		inGo = "=== RUN   TestSum\npanic: runtime error: invalid memory address or nil pointer dereference\n" +
			"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\nFAIL\tsome/panicked\t1.0s\n"
		leak  = "PASS\ngoleak: Errors on successful test run\nFAIL\tsome/leaks\t1.0s\n"
		build = "FAIL\tsome/broken [build failed]\n"
		fatal = "=== RUN   TestX\nfatal error: concurrent map writes\nSIGSEGV: segmentation violation\nPC=0x41c729 m=3\n" +
			"FAIL\tsome/fatal\t8.2s\n"
	)
	for output, want := range map[string]string{
		fine + crash + "FAIL\n":         "some/crashed",
		crash + fine + crash + "FAIL\n": "some/crashed some/crashed",
		fine + "FAIL\n":                 "",
		crash + test:                    "", crash + race: "", crash + inGo: "", crash + leak: "", build + crash: "", fatal: "", inGo: "",
	} {
		command := exec.Command("awk", "-f", root+"/.ci/crashed")
		command.Stdin = strings.NewReader(output)
		out, err := command.Output()
		if got := strings.TrimSpace(string(out)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q (%v), want %q, of\n%s", got, err, want, output)
		}
	}
}
