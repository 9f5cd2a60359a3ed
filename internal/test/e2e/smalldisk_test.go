package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// mount makes a file system of its own in a folder, of so much room, that ends with the cleanup.
func mount(dir, size string, cleanup func(func())) error {
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=0700,size="+size, "panlearn-test", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return nil
}

// TestSmallDisk runs the scripts in which a folder is a small disk: smalldisk DIR SIZE, and gets room: enlarge DIR
// SIZE.
func TestSmallDisk(t *testing.T) {
	if err := mount(t.TempDir(), "64k", t.Cleanup); err != nil {
		t.Logf("NOT RUN: a full disk under a real process: may not mount one (%v)", err)
		fmt.Println("NOT RUN: a full disk under a real process: may not mount one")
		return
	}
	p := params(t, "disk", scriptTime)
	p.Cmds["smalldisk"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) != 2 || neg {
			ts.Fatalf("usage: smalldisk DIR SIZE")
		}
		dir := ts.MkAbs(args[0])
		ts.Check(os.MkdirAll(dir, 0o700))
		ts.Check(mount(dir, args[1], ts.Defer))
	}
	p.Cmds["enlarge"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) != 2 || neg {
			ts.Fatalf("usage: enlarge DIR SIZE")
		}
		ts.Check(exec.Command("mount", "-o", "remount,size="+args[1], ts.MkAbs(args[0])).Run())
	}
	testscript.Run(t, p)
}
