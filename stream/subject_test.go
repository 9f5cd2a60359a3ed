package stream_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

func TestSubjectsParseBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := stream.Task(rapid.StringMatching(`[a-z0-9_-]{1,32}`).Draw(t, "task"))
		r := stream.Round(rapid.Uint64Range(1, math.MaxUint64).Draw(t, "round"))
		a := stream.Attempt(rapid.Uint64Range(1, math.MaxUint64).Draw(t, "attempt"))
		for _, c := range []struct {
			subject string
			want    stream.Address
			in      stream.Stream
		}{
			{task.Task(), stream.Address{Verb: "task"}, stream.Rounds},
			{task.Round(r), stream.Address{Verb: "round", Round: r}, stream.Rounds},
			{task.End(), stream.Address{Verb: "end"}, stream.Rounds},
			{task.Stage(), stream.Address{Verb: "stage"}, stream.Attempts},
			{task.Open(r, a), stream.Address{Verb: "open", Round: r, Attempt: a}, stream.Attempts},
			{task.Claim(r), stream.Address{Verb: "claim", Round: r}, stream.Attempts},
			{task.Close(r, a), stream.Address{Verb: "close", Round: r, Attempt: a}, stream.Attempts},
			{task.Lease(), stream.Address{Verb: "lease"}, stream.Leases},
			{task.Report(r, a), stream.Address{Verb: "report", Round: r, Attempt: a}, stream.Reports},
			{task.Batch(r), stream.Address{Verb: "batch", Round: r}, stream.Batches},
			{task.Helper(), stream.Address{Verb: "helper"}, stream.Joins},
			{task.Join(r, a), stream.Address{Verb: "join", Round: r, Attempt: a}, stream.Joins},
			{task.Share(r), stream.Address{Verb: "share", Round: r}, stream.Joins},
		} {
			c.want.Task = task
			got, err := stream.ParseSubject(c.subject)
			if err != nil || got != c.want {
				t.Fatalf("%s: %+v, %v", c.subject, got, err)
			}
			if of, in, err := stream.StreamOf(c.subject); err != nil || of != task || in != c.in {
				t.Fatalf("%s: %v, %v, %v", c.subject, of, in, err)
			}
			holds := 0
			for _, s := range []stream.Stream{stream.Rounds, stream.Attempts, stream.Leases, stream.Reports, stream.Batches,
				stream.Joins} {
				for _, pattern := range task.Subjects(s) {
					if matches(pattern, c.subject) {
						holds++
						if s != c.in {
							t.Fatalf("%s is held by %v", c.subject, s)
						}
					}
				}
			}
			if holds != 1 {
				t.Fatalf("%s matches %d patterns of the streams", c.subject, holds)
			}
		}
	})
}

// TestPrepareNamesAnInstance: what two operators exchange has a subject of its own for each helper, which no stream holds.
func TestPrepareNamesAnInstance(t *testing.T) {
	task := stream.Task("churn")
	in := [stream.InstanceSize]byte{1, 0xab}
	subject := task.Prepare(in)
	if subject != "panlearn.churn.prepare.01ab0000000000000000000000000000" || !matches(task.Prepares(), subject) {
		t.Errorf("subject %s", subject)
	}
	a, err := stream.ParseSubject(subject)
	if err != nil || a != (stream.Address{Task: task, Verb: "prepare", Helper: in}) {
		t.Errorf("%+v, %v", a, err)
	}
	if _, _, err := stream.StreamOf(subject); err == nil {
		t.Error("a stream holds it")
	}
	for _, bad := range []string{"01", "01AB0000000000000000000000000000", subject[len(subject)-32:] + "00", "", "1"} {
		if a, err := stream.ParseSubject("panlearn.churn.prepare." + bad); err == nil {
			t.Errorf("%q: %+v", bad, a)
		}
	}
}

// matches applies the broker's rule: * is one token, > at the end is one or more.
func matches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		if token == ">" {
			return i < len(s)
		}
		if i >= len(s) || (token != "*" && token != s[i]) {
			return false
		}
	}
	return len(p) == len(s)
}

func FuzzParseSubject(f *testing.F) {
	task := stream.Task("churn")
	for _, s := range []string{task.Join(3, 4), task.Prepare([16]byte{1}), "panlearn.churn.prepare.00", task.Task(), task.Open(3, 4), task.Rounds(), task.Reports(), "panlearn.churn.round.01",
		"panlearn.churn.round.+1", "panlearn.churn.round.18446744073709551616",
		"panlearn.churn.report.1.2", "panlearn.churn.report.1", "panlearn.churn.report.1.2.3", "panlearn.churn.report.1.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		a, err := stream.ParseSubject(subject)
		if err != nil {
			if len(err.Error()) > 2048 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		again := map[string]string{
			"task": a.Task.Task(), "round": a.Task.Round(a.Round), "end": a.Task.End(), "stage": a.Task.Stage(),
			"open": a.Task.Open(a.Round, a.Attempt), "claim": a.Task.Claim(a.Round), "close": a.Task.Close(a.Round, a.Attempt),
			"helper": a.Task.Helper(), "join": a.Task.Join(a.Round, a.Attempt), "share": a.Task.Share(a.Round),
			"prepare": a.Task.Prepare(a.Helper), "place": a.Task.Place(a.Round, a.Attempt),
			"lease": a.Task.Lease(), "report": a.Task.Report(a.Round, a.Attempt), "batch": a.Task.Batch(a.Round),
		}[a.Verb]
		if again != subject {
			t.Errorf("%q parses as %+v, which is %q", subject, a, again)
		}
	})
}

func TestPortsTakeTheirSubjects(t *testing.T) {
	task := stream.Task("churn")
	subjects := []string{task.Task(), task.Round(1), task.End(), task.Stage(), task.Open(1, 2), task.Claim(1),
		task.Close(1, 2),
		task.Lease(), task.Report(1, 2), task.Batch(1), task.Rounds(), task.Opens(1), task.Reports(),
		task.Report(1, 2) + ".3"}
	for _, port := range []struct {
		name  string
		check func(string) (stream.Task, stream.Stream, error)
		takes []int
	}{
		{"put", stream.CheckPut, []int{0, 1, 2, 3, 4, 5, 6, 9}},
		{"get", stream.CheckGet, []int{0, 1, 2, 3, 4, 5, 6, 7, 9}},
		{"swap", stream.CheckSwap, []int{7}},
		{"publish", stream.CheckPublish, []int{8}},
		{"latest", stream.CheckLatest, []int{10, 11}},
	} {
		for i, subject := range subjects {
			want := false
			for _, j := range port.takes {
				want = want || i == j
			}
			of, _, err := port.check(subject)
			if (err == nil) != want || (err == nil && of != task) || (err != nil && !errors.Is(err, stream.ErrRefused)) {
				t.Errorf("%s of %s: %v, %v", port.name, subject, of, err)
			}
		}
	}
}

func TestTaskNames(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "churn-2026_v1": true, strings.Repeat("z", 32): true,
		"": false, strings.Repeat("z", 33): false, "A": false, "a.b": false, "a b": false, "a*": false, "a>": false,
		"ä": false, "a\n": false} {
		if _, err := stream.ParseTask(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
