package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// units returns the names and texts of deploy/systemd, with the instance filled in.
func units(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("systemd/*@.service")
	if err != nil || len(files) != 11 {
		t.Fatalf("units %v, %v", files, err)
	}
	all := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(f)] = strings.ReplaceAll(string(text), "%i", "quickstart")
	}
	return all
}

// unitLines returns the command lines of the units.
func unitLines(t *testing.T) (all []line) {
	t.Helper()
	for name, text := range units(t) {
		_, start, found := strings.Cut(text, "\nExecStart=/usr/local/bin/")
		start, _, _ = strings.Cut(strings.ReplaceAll(start, "\\\n", " "), "\n")
		if !found || strings.Count(text, "\nExecStart=") != 1 {
			t.Errorf("%s: want one ExecStart, of /usr/local/bin", name)
		}
		env := map[string]string{}
		for _, l := range strings.Split(text, "\n") { // the variables that the comment speaks of
			if strings.HasPrefix(l, "#") {
				for _, m := range variable.FindAllString(l, -1) {
					env[m] = ""
				}
			}
		}
		all = append(all, line{"systemd/" + name, strings.Fields(start), env})
	}
	return all
}

// TestUnits: no unit runs as root, and each is restarted as docs/how-to/runbook.md says: never after the exit codes
// 2 and 3.
func TestUnits(t *testing.T) {
	users, err := os.ReadFile("systemd/panlearn.sysusers")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range units(t) {
		role, _, _ := strings.Cut(name, "@")
		user := strings.TrimSuffix(role, "s") // one of many tasks has the user of its role
		for _, want := range []string{"User=" + user, "NoNewPrivileges=yes", "ProtectSystem=strict", "LimitCORE=0",
			"CapabilityBoundingSet="} {
			if !strings.Contains(text, "\n"+want+"\n") {
				t.Errorf("%s: no line %s", name, want)
			}
		}
		if !strings.Contains(string(users), "\nu "+user+" ") {
			t.Errorf("%s: its user is not in panlearn.sysusers", name)
		}
		if strings.Contains(text, "\nType=oneshot\n") { // which its timer starts again, and which keeps nothing
			if strings.Contains(text, "\nRestart") {
				t.Errorf("%s restarts what its timer starts", name)
			}
			continue
		}
		// A relay keeps nothing, and neither does a scorer.
		if want := "StateDirectory=" + role + "/quickstart"; role != "panlearn-relay" && role != "panlearn-serve" && !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("%s: no line %s", name, want)
		}
		if !strings.Contains(text, "2 3\n") || !strings.Contains(text, "\nRestartPreventExitStatus=") {
			t.Errorf("%s is restarted after the exit codes 2 and 3", name)
		}
		// What two tasks on one machine cannot share is in the environment, where the instance's file is read last
		// and so beats the unit.
		_, start, _ := strings.Cut(text, "\nExecStart=")
		start, _, _ = strings.Cut(strings.ReplaceAll(start, "\\\n", " "), "\n")
		if strings.Contains(start, "127.0.0.1") {
			t.Errorf("%s: the command line fixes an address, which no instance can change: %s", name, start)
		}
		if address := strings.Index(text, "\nEnvironment=PANLEARN_HTTP="); role != "panlearn-publish" && (address < 0 || address > strings.Index(text, "\nEnvironmentFile=")) {
			t.Errorf("%s: want a default of --http in the environment, before the instance's file", name)
		}
	}
	for _, operator := range []string{"stage", "helper"} {
		if !strings.Contains(units(t)["panlearn-"+operator+"@.service"], "\nMemorySwapMax=0\n") {
			t.Errorf("the %s may be swapped out", operator)
		}
	}
}

// TestUnitsVerify, by systemd-analyze, with the commands where they were built.
func TestUnitsVerify(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("NOT RUN: systemd-analyze verify: not installed")
		return
	}
	dir, bin := t.TempDir(), filepath.Dir(programs(t).Learner)
	verify := func(name, text string) (string, error) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
		return string(out), err
	}
	for name, text := range units(t) {
		name = strings.Replace(name, "@", "@quickstart", 1)
		text = strings.ReplaceAll(text, "/usr/local/bin", bin)
		if timer, err := os.ReadFile(filepath.Join("systemd", strings.Replace(strings.Replace(name, "@quickstart", "@", 1),
			".service", ".timer", 1))); err == nil {
			beside := strings.Replace(name, ".service", ".timer", 1)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil { // which the timer starts
				t.Fatal(err)
			}
			if out, err := verify(beside, strings.ReplaceAll(string(timer), "%i", "quickstart")); err != nil ||
				strings.Contains(out, beside) {
				t.Errorf("%s: %v\n%s", beside, err, out)
			}
			if out, err := verify(beside, strings.Replace(string(timer), "hourly", "hurly", 1)); err == nil &&
				!strings.Contains(out, "hurly") {
				t.Errorf("%s: a time that is none passes: %s", beside, out)
			}
		}
		if out, err := verify(name, text); err != nil || strings.Contains(out, name) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		// It sees what is wrong.
		if out, err := verify("broken-"+name, strings.Replace(text, "LimitCORE=", "LimitKORE=", 1)); err == nil &&
			!strings.Contains(out, "LimitKORE") {
			t.Errorf("%s: an unknown setting passes: %s", name, out)
		}
	}
}
