package cli

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"github.com/vbauerster/mpb/v8"

	"github.com/panlearn/panlearn/learner/service"
)

// TestWritable: what cannot be written is refused, and looking leaves nothing behind.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("what is there"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"": exitDone, old: exitDone, filepath.Join(dir, "new"): exitDone,
		os.DevNull: exitDone,
		dir:        ExitUsage, filepath.Join(dir, "missing", "new"): ExitUsage, filepath.Join(old, "new"): ExitUsage} {
		err, coded := Writable("-o", path), (*codedError)(nil)
		if (err == nil) != (want == exitDone) || err != nil && (!errors.As(err, &coded) || coded.code != want ||
			!strings.HasPrefix(err.Error(), "-o: ")) {
			t.Errorf("%q: %v, want exit code %d", path, err, want)
		}
	}
	if is, err := os.ReadFile(old); err != nil || string(is) != "what is there" {
		t.Errorf("a file that was there: %q, %v", is, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v is there, %v", all, err)
	}
}

// TestJSONPrints: one JSON document and nothing else, or what a person reads.
func TestJSONPrints(t *testing.T) {
	var out bytes.Buffer
	v := map[string]any{"label": "<=50K & more", "x": 0.5}
	human := func(w io.Writer) error { _, err := io.WriteString(w, "for people\n"); return err }
	if err := JSON(true).Print(&out, v, human); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&out)
	var back map[string]any
	if err := d.Decode(&back); err != nil || back["label"] != v["label"] {
		t.Errorf("%v: %v", back, err)
	}
	if err := d.Decode(&back); !errors.Is(err, io.EOF) {
		t.Errorf("after the document: %v", err)
	}
	out.Reset()
	if err := JSON(false).Print(&out, v, human); err != nil || out.String() != "for people\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := PrintJSON(&out, math.Inf(1)); err == nil || out.Len() != 0 {
		t.Errorf("an infinity is printed as %q", out.String())
	}
	out.Reset()
	if err := PrintJSON(&out, v); err != nil || !strings.Contains(out.String(), "<=50K & more") {
		t.Errorf("%q escapes what JSON need not", out.String())
	}
}

func TestLogLevel(t *testing.T) {
	for _, level := range []string{"", "loud", "infos", "1"} {
		_, err := (&Log{Level: level}).Logger(io.Discard)
		var c *codedError
		if !errors.As(err, &c) || c.code != ExitUsage || !strings.Contains(err.Error(), "want debug, info, warn or error") {
			t.Errorf("--log-level %q: %v", level, err)
		}
	}
	for level, lines := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1} {
		var out bytes.Buffer
		log, err := (&Log{Level: level}).Logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			log.Log(t.Context(), l, "x")
		}
		if got := strings.Count(out.String(), "\n"); got != lines {
			t.Errorf("--log-level %s: %d lines, want %d", level, got, lines)
		}
	}
}

func TestLogFormat(t *testing.T) {
	_, err := (&Log{Level: "info", Format: "xml"}).Logger(io.Discard)
	var c *codedError
	if !errors.As(err, &c) || c.code != ExitUsage || !strings.Contains(err.Error(), "want text or json") {
		t.Errorf("--log-format xml: %v", err)
	}
	for format, want := range map[string]string{"": "level=INFO msg=x round=3", "text": "level=INFO msg=x round=3",
		"json": `"level":"INFO","msg":"x","round":3}`} {
		var out bytes.Buffer
		log, err := (&Log{Level: "info", Format: format}).Logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("x", "round", 3)
		if line := out.String(); !strings.Contains(line, want) || strings.Count(line, "\n") != 1 {
			t.Errorf("--log-format %s: %q", format, line)
		}
	}
}

func TestBroker(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "",
		"--replicas 3":                          "",
		"--replicas 2":                          "--replicas 2: want 1, 3 or 5",
		"--replicas 0":                          "want 1, 3 or 5",
		"--tls-cert a":                          "go together",
		"--tls-key a":                           "go together",
		"--tls-cert a --tls-key b --tls-ca c":   "",
		"--creds a --nkey b":                    "exclude each other",
		"--nats nats://a:1,nats://b:1 --nkey b": "",
	} {
		var b Broker
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		b.Flags(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		err := b.Validate()
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestPublicKey: a key is pinned if its flag is given, and a flag that is given empty pins nothing and is refused.
func TestPublicKey(t *testing.T) {
	key := strings.Repeat("ab", 32)
	parse := func(args ...string) (ed25519.PublicKey, error) {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("stage-key", "", "")
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return PublicKey(flags, "stage-key")
	}
	if got, err := parse("--stage-key", key); err != nil || len(got) != 32 {
		t.Errorf("%x, %v", got, err)
	}
	if got, err := parse(); err != nil || got != nil {
		t.Errorf("none: %x, %v", got, err)
	}
	for _, bad := range []string{"", "ab", key[:63], key + "00", "zz" + key[2:]} {
		if _, err := parse("--stage-key", bad); err == nil || !strings.HasPrefix(err.Error(), "--stage-key") ||
			!strings.Contains(err.Error(), "want 64 hexadecimal digits") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestIdentity: made once, in the user's configuration folder unless a file is named.
func TestIdentity(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	first, err := Identity("", "learner", logger)
	if err != nil {
		t.Fatal(err)
	}
	path, err := IdentityPath("learner")
	if err != nil || !strings.HasPrefix(path, home) || !strings.Contains(log.String(), path) {
		t.Errorf("it lies in %s, %v; the log says %q", path, err, log.String())
	}
	again, err := Identity(path, "learner", logger)
	if err != nil || !again.Public().Equal(first.Public()) || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the second time: %v, log %q", err, log.String())
	}
	other, err := Identity(filepath.Join(home, "a", "b.key"), "stage", logger)
	if err != nil || other.Public().Equal(first.Public()) {
		t.Errorf("a named file: %v", err)
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Identity("", "learner", logger); err == nil || !strings.Contains(err.Error(), "--identity") {
		t.Errorf("a damaged file: %v", err)
	}
}

// tell calls every method of a progress, from several goroutines.
func tell(r *Rounds, rounds int) {
	r.resumed(service.Progress{Rounds: uint64(rounds), EpsilonBudget: 1})
	var all sync.WaitGroup
	all.Go(func() {
		for i := range rounds {
			r.Fill(0, 40)
			r.applied(service.Applied{Progress: service.Progress{Round: uint64(i + 1), Steps: uint64(i),
				Rounds: uint64(rounds)}})
		}
	})
	all.Go(func() {
		for i := range rounds {
			r.Fill(uint64(i), 40)
		}
	})
	all.Go(func() {
		for range 10 {
			_, _ = io.WriteString(r, "a line of the log\n")
		}
	})
	all.Wait()
}

// TestNoProgressOffTerminals: a file or pipe gets the log and nothing else.
func TestNoProgressOffTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Terminal(file) {
		t.Fatal("a file is taken for a terminal")
	}
	r := NewRounds(file)
	tell(r, 100)
	r.Close()
	r.Close()
	p := NewPublishing(file, func() ([]any, string, string) { return []any{"round", 3}, "rows", "rows" })
	_, _ = io.WriteString(p, "a line of the log\n")
	p.Close()
	got, err := os.ReadFile(file.Name())
	if err != nil || string(got) != strings.Repeat("a line of the log\n", 11) {
		t.Errorf("%d bytes, %v: %q", len(got), err, got[:min(200, len(got))])
	}
}

// TestProgressDoesNotBlock: a bar that is drawn all the time reads the line while the learner sets the bar.
func TestProgressDoesNotBlock(t *testing.T) {
	refresh, done := make(chan any), make(chan struct{})
	r := &Rounds{out: io.Discard}
	r.show(mpb.WithOutput(io.Discard), mpb.WithManualRefresh(refresh))
	var drawing sync.WaitGroup
	drawing.Go(func() {
		for {
			select {
			case refresh <- struct{}{}:
			case <-done:
				return
			}
		}
	})
	tell(r, 50000)
	r.Close()
	close(done)
	drawing.Wait()
	if !strings.HasPrefix(r.line(), " cohort ") {
		t.Errorf("line %q, want the cohort first", r.line())
	}
}

// TestProgressWithoutEnd: a task without an end has a bar that counts on and is never complete.
func TestProgressWithoutEnd(t *testing.T) {
	var drawn strings.Builder
	refresh := make(chan any)
	r := &Rounds{out: io.Discard}
	r.show(mpb.WithOutput(&drawn), mpb.WithManualRefresh(refresh))
	r.resumed(service.Progress{Steps: 41})
	r.applied(service.Applied{Progress: service.Progress{Round: 43, Steps: 42}})
	if r.bar.Completed() {
		t.Error("complete")
	}
	refresh <- struct{}{}
	r.Close()
	if got := drawn.String(); !strings.Contains(got, "rounds 42 ") || strings.Contains(got, "/0") {
		t.Errorf("drawn %q", got)
	}
}

// TestPublishingLine on a terminal, and in the log: once where nothing changes, within a minute.
func TestPublishingLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		round := 3
		p := NewPublishing(io.Discard, func() ([]any, string, string) {
			return []any{"round", round, "sent", 5},
				"rows, for 7 s", "rows"
		})
		if got := p.numbers() + p.waits(); got != "  round 3  sent 5 waits for rows, for 7 s" {
			t.Errorf("%q", got)
		}
		p.Log(slog.New(slog.NewTextHandler(&out, nil)))
		lines := func(after time.Duration) int {
			time.Sleep(after)
			synctest.Wait()
			return strings.Count(out.String(), "msg=publishing")
		}
		for _, step := range []struct {
			after time.Duration
			round int
			want  int
		}{{5 * time.Second, 4, 1}, {4 * time.Second, 5, 1}, {6 * time.Second, 5, 2}, {40 * time.Second, 5,
			2}, {25 * time.Second, 6, 3}, {11 * time.Second, 6, 4}} {
			if got := lines(step.after); got != step.want {
				t.Errorf("%v later: %d lines, want %d:\n%s", step.after, got, step.want, out.String())
			}
			round = step.round
		}
		p.Close()
		p.Close()
		if got := lines(time.Hour); got != 4 || !strings.Contains(out.String(), `round=3 sent=5 waits_for="rows, for 7 s"`) {
			t.Errorf("%d lines at the end:\n%s", got, out.String())
		}
	})
}

func TestCommonCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id.key")
	var first, second, version bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		c := NewKeygen("stage")
		c.SetOut(out)
		if code := Main(c, []string{path}, io.Discard); code != exitDone {
			t.Fatalf("keygen: exit code %d", code)
		}
		if !strings.Contains(c.Example, "ingest keygen") {
			t.Errorf("example %q", c.Example)
		}
	}
	if first.String() != second.String() || len(strings.TrimSpace(first.String())) != 64 {
		t.Errorf("keygen prints %q, then %q", first.String(), second.String())
	}
	c := NewVersion()
	c.SetOut(&version)
	if code := Main(c, []string{}, io.Discard); code != exitDone || !strings.HasPrefix(version.String(), "panlearn ") {
		t.Errorf("version: exit code %d, %q", code, version.String())
	}
}
