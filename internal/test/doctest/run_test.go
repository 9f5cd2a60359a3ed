package doctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
)

// pageTime bounds one page, on a machine that does much else.
const pageTime = 8 * time.Minute

// named are the ports that pages name.
var named = []string{"4222", "6222", "8090", "8095", "8097", "8222", "9090", "9091", "9464"}

var ports = regexp.MustCompile(`\b(` + strings.Join(named, "|") + `)\b`)

// A run is one page as its reader works through it.
type run struct {
	dir    string // its folder
	blocks []block
	script strings.Builder
	shown  map[int]string    // what the page shows, by the index of the block that prints it
	about  map[int]tolerance // of the numbers in it
	ports  map[string]string // the page's ports, and the ports here
}

var (
	events     = regexp.MustCompile(`--events [0-9]+`)
	quickstart = regexp.MustCompile(`-f deploy/tasks/quickstart\.yaml`)
)

// shortened returns the text of a block as the short form runs it.
func shortened(b block) string {
	if !b.has("users") || longtest.On() {
		return b.text
	}
	fewer := events.ReplaceAllString(b.text, "--events "+b.words["users"])
	return quickstart.ReplaceAllString(fewer, "$0 --set schedule.users="+b.words["users"])
}

// missing returns the first of a block's needs that is not met here; "" if all are.
func missing(b block) string {
	for _, need := range b.needs() {
		there := true
		switch need {
		case "data":
			_, there = dataDir()
		case "demo":
		case "numpy":
			there = exec.Command("python3", "-c", "import numpy").Run() == nil
		default:
			_, err := exec.LookPath(need)
			there = err == nil
		}
		if !there {
			return need
		}
	}
	if b.lang == "python" {
		if _, err := exec.LookPath("python3"); err != nil {
			return "python3"
		}
	}
	return ""
}

// dataDir returns the folder of the public data sets, and whether they are there.
func dataDir() (string, bool) {
	dir := os.Getenv("PANLEARN_DATA")
	if dir == "" {
		dir = filepath.Join(root, "..", "shared", "data")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	_, err = os.Stat(filepath.Join(dir, "a9a", "a9a.gz"))
	return dir, err == nil
}

// write makes the script of the page: each block prints to a file of its own.
func (r *run) write() error {
	free, err := procs.FreePorts(len(named))
	if err != nil {
		return err
	}
	r.ports = map[string]string{}
	for i, p := range named {
		r.ports[p] = strconv.Itoa(free[i])
	}
	r.script.WriteString("set -e\n")
	last, fewer := -1, false // users than the page shows, from some block on
	for i, b := range r.blocks {
		fewer = fewer || !longtest.On() && (b.has("users") || slices.Contains(b.needs(), "demo"))
		text := ports.ReplaceAllStringFunc(shortened(b), func(p string) string { return r.ports[p] })
		need := missing(b)
		switch {
		case b.has("file"):
			fmt.Fprintf(&r.script, "cat >%s <<'END OF FILE'\n%sEND OF FILE\n", b.words["file"], text)
		case b.has("output") && last >= 0:
			r.shown[last] = text
			if r.about[last], err = toleranceOf(b.words["output"]); err != nil {
				return fmt.Errorf("%s: %w", b.at(), err)
			}
			if fewer {
				r.about[last] = anyNumber
			}
		case !b.has("test"):
		case b.has("long") && !longtest.On():
			last = -1
			fmt.Printf("NOT RUN: %s: it takes long; set PANLEARN_DEEP=1\n", b.at())
		case need != "":
			last = -1
			fmt.Printf("NOT RUN: %s: it needs %s\n", b.at(), need)
		case b.lang == "python":
			last = i
			fmt.Fprintf(&r.script, "echo %d >at\npython3 - >out.%d 2>&1 <<'END OF FILE'\n%sEND OF FILE\n", i, i, text)
		case b.has("background"):
			last = -1
			fmt.Fprintf(&r.script, "echo %d >at\n{\n%s} >out.%d 2>&1 &\nwaitport %s\n", i, text, i,
				r.ports[b.words["background"]])
		default:
			last = i
			fmt.Fprintf(&r.script, "echo %d >at\n{\n%s} >out.%d 2>&1\n", i, text, i)
		}
	}
	return nil
}

// play runs the script, and says what went wrong with which block.
func (r *run) play(ctx context.Context, bin string) error {
	shell := exec.CommandContext(ctx, "sh", "-c", r.script.String())
	shell.Dir = r.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PANLEARN_") {
			shell.Env = append(shell.Env, v)
		}
	}
	data, _ := dataDir()
	shell.Env = append(shell.Env, "D="+data, "HOME="+filepath.Join(r.dir, ".."),
		"PATH="+strings.Join([]string{bin, filepath.Dir(programs.Learner), os.Getenv("PATH")},
			string(filepath.ListSeparator)))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what a page leaves running ends with it
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	if err := shell.Start(); err != nil {
		return err
	}
	failed := shell.Wait()
	if err := syscall.Kill(-shell.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	if failed == nil {
		return nil
	}
	at, err := os.ReadFile(filepath.Join(r.dir, "at"))
	i, _ := strconv.Atoi(strings.TrimSpace(string(at)))
	if err != nil {
		return errors.Join(failed, err)
	}
	text := []string{fmt.Sprintf("%s: %v", r.blocks[i].at(), failed)}
	for k := range i + 1 {
		if out, err := os.ReadFile(r.out(k)); err == nil && (k == i || r.blocks[k].has("background")) {
			text = append(text, fmt.Sprintf("%s printed:\n%s", r.blocks[k].at(), out))
		}
	}
	return errors.New(strings.Join(text, "\n"))
}

func (r *run) out(i int) string { return filepath.Join(r.dir, fmt.Sprintf("out.%d", i)) }

// walk does what the blocks of a page say, in a folder of its own below dir, and compares what it shows. from is
// the folder of the page that it goes on from, where it does.
func walk(ctx context.Context, all []block, dir, from string) error {
	gobin, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	dir, bin, err := folder(dir, gobin)
	if err != nil {
		return err
	}
	if from != "" {
		// cp keeps the modes, which os.CopyFS does not, and which the commands look at.
		if out, err := exec.Command("cp", "-Rp", filepath.Join(from, "demo"), dir).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	r := &run{dir: dir, blocks: all, shown: map[int]string{}, about: map[int]tolerance{}}
	if err := r.write(); err != nil {
		return err
	}
	if err := r.play(ctx, bin); err != nil {
		return err
	}
	var errs []error
	for i, shown := range r.shown {
		out, err := os.ReadFile(r.out(i))
		if err != nil {
			errs = append(errs, err)
		} else if d := differs(shown, string(out), r.about[i]); d != "" {
			errs = append(errs, fmt.Errorf("%s: %s", all[i].at(), d))
		}
	}
	return errors.Join(errs...)
}

// Every page does what it says. Those that go on from README.md need its subtest beside them.
func TestPages(t *testing.T) {
	var readme string
	for _, page := range pages(t) {
		all, _ := parsed(t, page)
		wants := func(word, need string) bool {
			return slices.ContainsFunc(all, func(b block) bool {
				return b.has(word) &&
					(need == "" || slices.Contains(b.needs(), need))
			})
		}
		if !wants("test", "") {
			continue
		}
		demo, dir := wants("test", "demo"), t.TempDir()
		t.Run(page, func(t *testing.T) {
			if demo && readme == "" {
				t.Fatal("the commands of README.md did not succeed, and this page goes on from there")
			}
			if err := walk(procs.Within(t, pageTime), all, dir, map[bool]string{true: readme}[demo]); err != nil {
				t.Error(err)
			}
		})
		if done := filepath.Join(dir, "panlearn"); page == "README.md" && !t.Failed() {
			readme = done
		}
	}
}

// TestWalk checks that a page that promises too much is refused, and that one block sees what those before it
// left.
func TestWalk(t *testing.T) {
	const later = "```yaml file=a.yaml\nport: 4222\n```\n```sh test\nX=1\n. /dev/null; mkdir d; cat a.yaml\n```\n```text output=any\nport: 1\n```\n" +
		"```sh test\ntest $X = 1 && test -d d && learner version > v && go run ./cmd/ingest version\n```\n```text output\n...\n```\n"
	for text, want := range map[string]string{
		later:                          "",
		"```sh test\ntrue\nfalse\n```": "page:1: exit status 1",
		"```sh test\ntrue\n```\n```sh test\necho why; learner fly\n```":      "page:4 printed:\nwhy",
		"```sh test\necho one\n```\n```text output\ntwo\n```":                `page:1: line 1 of the page is "two"`,
		"```sh test\necho 1\n```\n```text output\n2\n```":                    `page:1: line 1 of the page is "2"`,
		"```sh test\necho 1\n```\n```text output=0.4\n2\n```":                `page:1: line 1 of the page is "2"`,
		"```sh test\necho 1\n```\n```text output=roughly\n2\n```":            `page:4: output=roughly`,
		"```sh test needs=no-such-program\nfalse\n```":                       "",
		"```sh norun=\"it would fail\"\nfalse\n```\n```sh test\ntrue\n```\n": "",
	} {
		all, _, err := parse("page", text)
		if err != nil {
			t.Fatal(err)
		}
		err = walk(procs.Within(t, pageTime), all, t.TempDir(), "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
