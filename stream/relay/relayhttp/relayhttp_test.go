package relayhttp

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

// TestLayouts: what was written is read again, and nothing that is longer, shorter or of another version.
func TestLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "data")
		n := rapid.Uint64Min(1)
		id := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		r := Report{Round: stream.Round(n.Draw(t, "round")), Attempt: stream.Attempt(n.Draw(t, "attempt")), ID: id, Data: data}
		got, err := ParseReport(r.Bytes())
		if err != nil || got.Round != r.Round || got.Attempt != r.Attempt || got.ID != r.ID || !bytes.Equal(got.Data, r.Data) {
			t.Fatalf("%+v: %+v, %v", r, got, err)
		}
		p := Place{Round: r.Round, Attempt: r.Attempt, Request: data}
		if got, err := ParsePlace(p.Bytes()); err != nil || got.Round != p.Round || !bytes.Equal(got.Request, data) {
			t.Fatalf("%+v: %+v, %v", p, got, err)
		}
		a := Answer{ID: id, Status: stream.AckStatus(rapid.IntRange(1, 3).Draw(t, "status"))}
		if a.Status == stream.Refused {
			a.Reason = stream.Reason(rapid.Byte().Draw(t, "reason"))
		} else {
			a.Sequence = n.Draw(t, "sequence")
		}
		if got, err := ParseAnswer(a.Bytes()); err != nil || got != a {
			t.Fatalf("%+v: %+v, %v", a, got, err)
		}
		s := State{LeaseTime: time.Unix(0, int64(rapid.Uint32Min(1).Draw(t, "time"))), Lease: data}
		for _, m := range s.Marks() {
			if rapid.Bool().Draw(t, "there") {
				*m = Mark{r.Round, r.Attempt, n.Draw(t, "sequence"), HashOf(data)}
			}
		}
		back, err := ParseState(s.Bytes())
		if err != nil || !bytes.Equal(back.Bytes(), s.Bytes()) || back.Tag() != s.Tag() || !back.LeaseTime.Equal(s.LeaseTime) {
			t.Fatalf("%+v: %+v, %v", s, back, err)
		}
		for _, b := range [][]byte{r.Bytes(), p.Bytes(), a.Bytes(), s.Bytes()} {
			b[0] += 2
			_, err1 := ParseReport(b)
			_, err2 := ParsePlace(b)
			_, err3 := ParseAnswer(b)
			_, err4 := ParseState(b)
			if err1 == nil || err2 == nil || err3 == nil || err4 == nil {
				t.Fatal("another version is read")
			}
		}
		if _, err := ParseAnswer(append(a.Bytes(), 0)); err == nil {
			t.Fatal("a longer answer is read")
		}
	})
	for _, a := range []Answer{{}, {Status: stream.Stored}, {Status: stream.Refused, Sequence: 1}, {Status: 4, Sequence: 1},
		{Status: stream.Duplicate, Sequence: 1, Reason: 1}} {
		if got, err := ParseAnswer(a.Bytes()); err == nil {
			t.Errorf("an answer that says nothing is read: %+v", got)
		}
	}
}

// TestTagIsOfTheMarks: a lease that is renewed wakes nobody.
func TestTagIsOfTheMarks(t *testing.T) {
	one, two := State{Lease: []byte("a"), LeaseTime: time.Unix(1, 0)}, State{Lease: []byte("b")}
	if one.Tag() != two.Tag() {
		t.Error("the lease is in the tag")
	}
	for i, m := range two.Marks() {
		m.Sequence = uint64(i) + 1
		if one.Tag() == two.Tag() {
			t.Errorf("mark %d is not in the tag", i)
		}
		*m = Mark{}
	}
}

// TestStatesOfTwoOperators: a state has a Join or is as it was before there were any, each in one encoding.
func TestStatesOfTwoOperators(t *testing.T) {
	s := State{Open: Mark{Round: 3, Attempt: 1, Sequence: 5}, Lease: bytes.Repeat([]byte{7}, 100)}
	if b := s.Bytes(); b[0] != 1 || len(b) != 345+100 {
		t.Errorf("without a Join: version %d, %d bytes", b[0], len(b))
	}
	s.Join = Mark{Round: 3, Attempt: 1, Sequence: 6}
	b := s.Bytes()
	if b[0] != 2 || len(b) != 401+100 {
		t.Errorf("with a Join: version %d, %d bytes", b[0], len(b))
	}
	if got, err := ParseState(b); err != nil || got.Join != s.Join || !bytes.Equal(got.Lease, s.Lease) {
		t.Errorf("%+v, %v", got, err)
	}
	none := bytes.Clone(b)
	clear(none[1+6*markSize : 1+7*markSize])
	if _, err := ParseState(none); err == nil {
		t.Error("version 2 without a Join is read")
	}
	if _, err := ParseState(b[:400]); err == nil {
		t.Error("version 2 that is cut off is read")
	}
}

// TestNames: names and subjects of what devices read are each other's inverse, and there are no others.
func TestNames(t *testing.T) {
	const task = stream.Task("churn")
	for subject, name := range map[string]string{task.Task(): "task", task.End(): "end", task.Lease(): "lease",
		task.Round(7): "rounds/7", task.Claim(7): "claims/7", task.Open(7, 2): "opens/7/2", task.Close(7, 2): "closes/7/2",
		task.Join(7, 2): "joins/7/2"} {
		if of, got, ok := Name(subject); !ok || got != name || of != task {
			t.Errorf("%s: %s %q %t, want %q", subject, of, got, ok, name)
		}
		if got, err := Subject(task, name); err != nil || got != subject {
			t.Errorf("%s: %q, %v, want %q", name, got, err, subject)
		}
	}
	for _, subject := range []string{task.Batch(1), task.Stage(), task.Report(1, 1), task.Place(1, 1), task.Rounds(), task.Helper(),
		task.Share(1), task.Prepare([16]byte{1}), "x"} {
		if _, name, ok := Name(subject); ok {
			t.Errorf("%s is served as %q", subject, name)
		}
	}
	for _, name := range []string{"", "stage", "batch/1", "rounds", "rounds/0", "rounds/01", "rounds/1/1", "rounds/*", "opens/1",
		"task/", "rounds/1.open", "records/1", "lease/1",
		"shares/1", "helper", "joins/1", "joins/1/0"} {
		if got, err := Subject(task, name); err == nil {
			t.Errorf("%q is %s", name, got)
		}
	}
}
