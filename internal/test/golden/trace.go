package golden

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Trace is the text of a situation that a test plays on the clock of a synctest bubble: what was done, decided and
// logged, and when. The zero value begins at its first line. It is safe for concurrent use.
type Trace struct {
	mu    sync.Mutex
	begun time.Time
	lines []*line
	again map[said]*line // of this part
}

type line struct {
	at time.Duration
	said
	times int
}

type said struct{ who, text string }

// Say appends a line of somebody: of several who act at one time the first name comes first.
func (tr *Trace) Say(who, text string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.say(said{who, text})
}

// Count appends a line, or counts that it came again since the last Part.
func (tr *Trace) Count(who, text string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	one := said{who, text}
	if l := tr.again[one]; l != nil {
		l.times++
		return
	}
	if tr.again == nil {
		tr.again = map[said]*line{}
	}
	tr.again[one] = tr.say(one)
}

func (tr *Trace) say(one said) *line {
	if tr.begun.IsZero() {
		tr.begun = time.Now()
	}
	l := &line{at: time.Since(tr.begun), said: one, times: 1}
	tr.lines = append(tr.lines, l)
	return l
}

// Part appends a line with which another part begins, in which lines are counted from one on: for somebody, or for
// everybody where who is empty.
func (tr *Trace) Part(who, text string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	maps.DeleteFunc(tr.again, func(one said, _ *line) bool { return who == "" || one.who == who })
	tr.say(said{who, text})
}

// Compare compares the trace with dir/name.txt, and logs the first line that differs.
func (tr *Trace) Compare(t *testing.T, dir, name string) {
	t.Helper()
	slices.SortStableFunc(tr.lines, func(a, b *line) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.who, b.who)
	})
	var out strings.Builder
	for _, l := range tr.lines {
		fmt.Fprintf(&out, "%9v  %s%s", l.at.Round(10*time.Millisecond), l.who, l.text)
		if l.times > 1 {
			fmt.Fprintf(&out, " (%d times)", l.times)
		}
		out.WriteByte('\n')
	}
	path := filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".txt")
	if want, err := os.ReadFile(path); err == nil && !Updating() {
		compareLines(t, strings.Split(out.String(), "\n"), strings.Split(string(want), "\n"))
	}
	File(t, path, out.String())
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("line %d:\n got: %s\nwant: %s", i+1, g, w)
			return
		}
	}
}

// Count fails the test where a folder does not hold as many traces as there are situations.
func Count(t *testing.T, dir string, scenes int) {
	t.Helper()
	traces, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(traces) != scenes && !Updating() {
		t.Errorf("%d traces in %s of %d situations, %v", len(traces), dir, scenes, err)
	}
}

// LogLines returns a logger whose lines go to say: each message with the numbers and truths beside it. Texts are left
// out, because errors and keys in them differ between runs.
func LogLines(say func(string)) *slog.Logger {
	return slog.New(lineLog{Handler: slog.DiscardHandler, say: say})
}

type lineLog struct {
	slog.Handler
	say func(string)
}

func (lineLog) Enabled(context.Context, slog.Level) bool { return true }

func (l lineLog) Handle(_ context.Context, r slog.Record) error {
	text := strings.ToLower(r.Level.String()) + ": " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch v := reflect.ValueOf(a.Value.Any()); {
		case a.Value.Kind() == slog.KindDuration:
		case v.CanInt(), v.CanUint(), v.Kind() == reflect.Bool:
			text += fmt.Sprintf(" %s=%v", a.Key, v)
		}
		return true
	})
	l.say(text)
	return nil
}
