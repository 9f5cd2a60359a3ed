package consent_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPythonChecks runs the second reader of docs/vectors, which shares no code with this module: it finds what the
// vectors say, and of a vector that is changed it finds that it is not so.
func TestPythonChecks(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		fmt.Println("NOT RUN: vectors as Python reads them: no python3")
		t.Log("NOT RUN: vectors as Python reads them: no python3")
		return
	}
	folder := t.TempDir()
	changes := map[string][2]string{ // one number in each file
		"signed.json":     {`"ttl_ms": 10000`, `"ttl_ms": 10001`},
		"relay.json":      {`"granted": 1,`, `"granted": 2,`},
		"decisions.json":  {`"state": "uncounted"`, `"state": "counted"`},
		"accounting.json": {`"trials": 26,`, `"trials": 27,`},
		"statistic.json":  {`"clip_norm": 0.125`, `"clip_norm": 0.25`},
		"split.json":      {`"open": "04`, `"open": "05`},
		"shares.json":     {`"join_hash": "06`, `"join_hash": "07`},
	}
	run := func(changed string) ([]byte, error) {
		for file, change := range changes {
			data, err := os.ReadFile(filepath.Join(vectorFolder, file))
			must(t, err)
			if file == changed {
				if !bytes.Contains(data, []byte(change[0])) {
					t.Fatalf("%s has no %s to change", file, change[0])
				}
				data = bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
			}
			must(t, os.WriteFile(filepath.Join(folder, file), data, 0o600))
		}
		args := []string{"-I", "-B", filepath.Join(folder, "check_vectors.py")}
		if changed != "" {
			args = append(args, changed)
		}
		return exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	}
	script, err := os.ReadFile(filepath.Join(vectorFolder, "check_vectors.py"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "check_vectors.py"), script, 0o600))
	if out, err := run(""); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for file := range changes {
		if out, err := run(file); err == nil || !bytes.Contains(out, []byte(file)) {
			t.Errorf("%s was changed, and Python says %s", file, out)
		}
	}
}
