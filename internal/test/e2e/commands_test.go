package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Waiting polls this often, this long.
const (
	pollEvery = 100 * time.Millisecond
	pollLimit = time.Minute
)

type command = func(ts *testscript.TestScript, neg bool, args []string)

func commands() map[string]command {
	return map[string]command{"port": port, "json": jsonHolds, "waitfor": waitFor, "waitport": waitPort,
		"waitmetric": waitMetric,
		"parquet":    toParquet, "refuses": refuses, "refusesall": refusesAll, "report": report, "head": head, "tail": tail,
		"participations": participations}
}

func port(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		_, number, err := net.SplitHostPort(l.Addr().String())
		ts.Check(errors.Join(err, l.Close()))
		ts.Setenv(name, number)
	}
}

func jsonHolds(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: json DOC CONDITION...")
	}
	doc, err := parseDocument(ts.ReadFile(args[0]))
	ts.Check(err)
	for _, condition := range args[1:] {
		ok, err := holds(ts, condition, doc)
		ts.Check(err)
		if ok == neg {
			ts.Fatalf("%s: %s is %v", args[0], condition, ok)
		}
	}
}

// participations prints what a publisher's state folder says of the rows of a file: how many are fresh, counted and
// so on, and the least and the most rounds that one of those that took part joined.
func participations(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 || neg {
		ts.Fatalf("usage: participations DIR TASK DATA ROWS")
	}
	n, err := strconv.Atoi(args[3])
	ts.Check(err)
	task, err := stream.ParseTask(args[1])
	ts.Check(err)
	store, err := filestore.Open(filestore.Path(ts.MkAbs(args[0]), task))
	ts.Check(err)
	defer store.Close()
	keys := make([]participation.Key, n)
	for i := range keys {
		keys[i] = participation.RowKey(ts.MkAbs(args[2]), int64(i))
	}
	parts, err := store.Read(keys)
	ts.Check(err)
	out := map[string]uint32{}
	for _, p := range parts {
		out[p.State.String()]++
		if p.State == participation.Fresh {
			continue
		}
		if least, some := out["least_rounds"]; !some || p.Rounds < least {
			out["least_rounds"] = p.Rounds
		}
		out["most_rounds"] = max(out["most_rounds"], p.Rounds)
	}
	ts.Check(json.NewEncoder(ts.Stdout()).Encode(out))
}

// report shows a figure where a reader of the test's output sees it.
func report(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: report DOC EXPRESSION")
	}
	doc, err := parseDocument(ts.ReadFile(args[0]))
	ts.Check(err)
	v, err := evaluate(ts, args[1], doc)
	ts.Check(err)
	fmt.Fprintf(os.Stdout, "MEASURED %s: %s = %v\n", ts.Name(), args[1], v)
}

// poll tries until try is true or the limit is over.
func poll(ts *testscript.TestScript, what string, try func() (bool, error)) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for end := time.Now().Add(pollLimit); ; <-tick.C {
		ok, err := try()
		if ok {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("waited %v for %s: %v", pollLimit, what, err)
		}
	}
}

func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: waitfor CONDITION PROGRAM ARGS...")
	}
	poll(ts, args[0], func() (bool, error) {
		out, err := output(ts, args[1:])
		if err != nil {
			return false, fmt.Errorf("%w: %s", err, out)
		}
		doc, err := parseDocument(out)
		if err != nil {
			return false, err
		}
		ok, err := holds(ts, args[0], doc)
		if !ok && err == nil {
			err = errors.New(out)
		}
		return ok, err
	})
}

func waitPort(ts *testscript.TestScript, neg bool, args []string) {
	for _, number := range args {
		poll(ts, "port "+number, func() (bool, error) {
			conn, err := net.Dial("tcp", "127.0.0.1:"+number)
			if err != nil {
				return false, err
			}
			return true, conn.Close()
		})
	}
}

// output runs a program quietly: what a poll prints would drown the log.
func output(ts *testscript.TestScript, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pollLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return stderr.String(), err
	}
	return string(out), nil
}

func waitMetric(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: waitmetric CONDITION URL")
	}
	poll(ts, args[0], func() (bool, error) {
		body, err := fetch(args[1])
		if err != nil {
			return false, err
		}
		doc := map[string]any{}
		for line := range strings.Lines(body) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			name, _, _ = strings.Cut(name, "{")
			if v, err := strconv.ParseFloat(value[strings.LastIndex(value, " ")+1:], 64); err == nil {
				before, _ := doc[name].(float64)
				doc[name] = before + v
			}
		}
		return holds(ts, args[0], doc)
	})
}

func fetch(url string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

// logLine matches the beginning of a line of the log; a line of the broker's client is not a refusal.
var logLine = regexp.MustCompile(`^time=\S+ level=`)

func refuses(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || neg {
		ts.Fatalf("usage: refuses CODE PATTERN PROGRAM ARGS...")
	}
	refused(ts, args, false)
}

// refusesAll is like refuses, for a publisher whose events were all refused: it prints its summary.
func refusesAll(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || neg {
		ts.Fatalf("usage: refusesall CODE PATTERN PROGRAM ARGS...")
	}
	refused(ts, args, true)
	if ts.ReadFile("stdout") == "" {
		return // refused before a row was looked at
	}
	doc, err := parseDocument(ts.ReadFile("stdout"))
	ts.Check(err)
	if ok, err := holds(ts, "events == refused && counted == 0 && uncounted == 0 && unknown == 0 && rounds == 0",
		doc); !ok || err != nil {
		ts.Fatalf("something was sent, or counted wrongly: %v", err)
	}
}

func refused(ts *testscript.TestScript, args []string, summary bool) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[2], args[3:]...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		ts.Fatalf("exit code 0, want %d", want)
	case !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case exit.ExitCode() != want:
		ts.Fatalf("exit code %d, want %d", exit.ExitCode(), want)
	}
	if out := ts.ReadFile("stdout"); out != "" && !summary {
		ts.Fatalf("a refusal printed %q on stdout", out)
	}
	var said []string
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		if !logLine.MatchString(line) {
			said = append(said, line)
		}
	}
	if len(said) != 1 {
		ts.Fatalf("a refusal of %d lines, want 1", len(said))
	}
	if pattern := regexp.MustCompile(args[1]); !pattern.MatchString(said[0]) {
		ts.Fatalf("%q does not match %q", said[0], args[1])
	}
}

func head(ts *testscript.TestScript, neg bool, args []string) { split(ts, args, true) }

func tail(ts *testscript.TestScript, neg bool, args []string) { split(ts, args, false) }

func split(ts *testscript.TestScript, args []string, first bool) {
	if len(args) != 3 {
		ts.Fatalf("usage: head|tail N FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[1])))
	for i := 0; lines.Scan(); i++ {
		if (i < n) == first {
			out.WriteString(lines.Text() + "\n")
		}
	}
	ts.Check(lines.Err())
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(out.String()), 0o600))
}
