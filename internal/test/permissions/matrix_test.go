package permissions

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// writers and readers are the table of docs/reference/protocol.md: one writer for every stream, and who needs to
// read it.
var (
	writers = map[stream.Stream][]string{
		stream.Rounds: {learner}, stream.Attempts: {stage}, stream.Leases: {stage}, stream.Batches: {stage},
		stream.Reports: {publisher, publisher2, relay}, stream.Joins: {helper}, stream.Spends: {stage},
	}
	readers = map[stream.Stream][]string{
		stream.Rounds:   {learner, stage, helper, publisher, publisher2, relay},
		stream.Attempts: {learner, stage, publisher, publisher2, relay},
		stream.Leases:   {stage, publisher, publisher2, relay}, stream.Batches: {learner, stage}, stream.Reports: {}, stream.Spends: {stage},
	}
	// subjectReaders holds the readers of subjects in streams that also have subjects with other readers.
	subjectReaders = map[string][]string{
		"stage": {learner, stage, helper, publisher, publisher2, relay}, "open": {learner, stage, helper, publisher, publisher2, relay},
		"helper": {learner, stage, helper, publisher, publisher2, relay}, "join": {stage, helper, publisher, publisher2, relay},
		"share": {stage, helper},
	}
)

// TestMatrix: under the shipped configuration, and on a site in operator mode, each role may write and read exactly what
// the protocol gives it, for every subject that the streams hold.
func TestMatrix(t *testing.T) {
	site, _ := operated(t)
	for name, b := range map[string]*broker{"the shipped configuration": shipped(t), "a site": site} {
		t.Run(name, func(t *testing.T) { matrix(t, b.scene(t)) })
	}
}

func matrix(t *testing.T, s *scene) {
	t.Helper()
	for _, role := range []string{admin, learner, stage, helper, publisher, publisher2, relay} {
		c := s.raw(t, role)
		for of, may := range writers {
			for _, pattern := range s.task.Subjects(of) {
				subject := strings.ReplaceAll(strings.ReplaceAll(pattern, ">", "1.1"), "*", "1")
				if got, want := writable(t, c, subject), slices.Contains(may, role); got != want {
					t.Errorf("%s may write %s: %t, want %t", role, subject, got, want)
				}
				if role == admin || of == stream.Reports {
					continue // the administrator may read all; reports have no direct gets
				}
				who := readers[of]
				if some, ok := subjectReaders[strings.Split(subject, ".")[2]]; ok {
					who = some
				}
				if got, want := readable(t, c, s.task.Name(of), subject), slices.Contains(who, role); got != want {
					t.Errorf("%s may read %s: %t, want %t", role, subject, got, want)
				}
			}
		}
	}
	for _, subject := range []string{"report.1", "report.1.1.63"} { // nobody would take them from the stream again
		if subject = stream.Prefix + "." + string(s.task) + "." + subject; writable(t, s.raw(t, publisher), subject) {
			t.Errorf("a publisher may write %s", subject)
		}
	}
}

// writable publishes what no stream takes, because it expects another one, and sees whether the stream says so.
func writable(t *testing.T, c *client, subject string) bool {
	t.Helper()
	m, err := c.requestMsg(t, &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Expected-Stream": {"ANOTHER"}}})
	if err != nil {
		return false
	}
	if !strings.Contains(string(m.Data), strconv.Itoa(10060)) {
		t.Fatalf("%s: %s", subject, m.Data)
	}
	return true
}

func readable(t *testing.T, c *client, name, subject string) bool {
	t.Helper()
	m, err := c.request(t, "$JS.API.DIRECT.GET."+name+"."+subject, "")
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, errViolation) {
		return false
	}
	status := m.Header.Get("Status")
	if status != "" && status != "404" {
		t.Fatalf("%s: status %s", subject, status)
	}
	return true
}
