package relayhttp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/stream"
)

// Headers of an answer that holds a record by its name, beside ETag, which is the hash of its bytes.
const (
	Sequence = "Panlearn-Sequence" // of the record in its stream, decimal
	Time     = "Panlearn-Time"     // when the broker stored it, Unix time in nanoseconds; absent: not known
)

// ContentType is the type of the bodies of requests.
const ContentType = "text/plain"

// Path is in front of the name of a task.
const Path = "/v1/tasks/"

// Reports, Places, Latest and Records are the parts of paths that are no names of records.
const (
	Reports = "reports"
	Places  = "places"
	Latest  = "latest"
	Records = "records"
)

// None is the body of the 404 that says that the broker has no such record, in front of its name. A 404 with any other
// body is no answer.
const None = "no record "

// kinds holds the verb of a subject for each first part of a name, and how many numbers follow.
var kinds = map[string]struct {
	verb    string
	numbers int
}{
	"task": {"task", 0}, "end": {"end", 0}, "lease": {"lease", 0}, "rounds": {"round", 1}, "claims": {"claim", 1},
	"opens": {"open", 2}, "closes": {"close", 2}, "joins": {"join", 2},
}

// Name returns the task and the name of a record by its subject: task, end, lease, rounds/7, claims/7, opens/7/1,
// joins/7/1 or closes/7/1. It returns false for subjects that devices do not read.
func Name(subject string) (task stream.Task, name string, ok bool) {
	a, err := stream.ParseSubject(subject)
	if err != nil {
		return "", "", false
	}
	for first, kind := range kinds {
		if kind.verb != a.Verb {
			continue
		}
		for _, n := range []uint64{uint64(a.Round), uint64(a.Attempt)}[:kind.numbers] {
			first += "/" + strconv.FormatUint(n, 10)
		}
		return a.Task, first, true
	}
	return "", "", false
}

// Subject is the inverse of Name.
func Subject(task stream.Task, name string) (string, error) {
	parts := strings.Split(name, "/")
	kind, ok := kinds[parts[0]]
	if !ok || len(parts) != 1+kind.numbers {
		return "", fmt.Errorf("name %.64q: want task, end, lease, rounds/R, claims/R, opens/R/A, joins/R/A or closes/R/A", name)
	}
	parts[0] = kind.verb
	subject := stream.Prefix + "." + string(task) + "." + strings.Join(parts, ".")
	if _, err := stream.ParseSubject(subject); err != nil {
		return "", fmt.Errorf("name %.64q: %w", name, err)
	}
	return subject, nil
}
