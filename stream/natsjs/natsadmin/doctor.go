package natsadmin

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// A Status grades a finding of the doctor.
type Status string

// OK: as it should be. Warning: works, with a guarantee that is weaker or that cannot be seen from here. Failure: a
// guarantee does not hold, or the task cannot run.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failure Status = "failure"
)

// A Finding is one thing that was looked at.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Text   string `json:"text"`
}

// Expect holds what an operator states about a broker.
type Expect struct {
	Replicas int     // of every stream, at least; 0: 1
	Role     Role    // of the credentials; empty: to be found out
	Options  Options // of which a new task's streams would be made
	Now      time.Time
	Clock    func() time.Time // nil: time.Now
	// host:port of the links between the servers of a cluster; none: the usual port of each server that we know
	Routes []string
}

// testedVersion is the oldest server that the permissions and the put-once rules are tested with.
var testedVersion = [2]int{2, 15}

// examination collects findings.
type examination struct {
	*natsjs.Conn
	expect Expect
	task   stream.Task
	list   []Finding
}

func (e *examination) find(check string, status Status, format string, args ...any) {
	e.list = append(e.list, Finding{Check: check, Status: status, Text: fmt.Sprintf(format, args...)})
}

// Examine looks at the connection, the server, the task's streams and the rights of these credentials. It leaves
// nothing behind: scratch data, written where the credentials may write and nothing of a task is, it removes. With an
// empty task it leaves out all that concerns a task.
func Examine(ctx context.Context, c *natsjs.Conn, task stream.Task, expect Expect) ([]Finding, error) {
	if _, err := stream.ParseTask(string(task)); task != "" && err != nil {
		return nil, fmt.Errorf("examine: %w", err)
	}
	if err := expect.Role.validate(); err != nil {
		return nil, err
	}
	e := &examination{Conn: c, expect: expect, task: task}
	e.transport(ctx)
	e.links(ctx)
	e.version(c.NATS().ConnectedServerVersion())
	e.account(ctx)
	if task != "" {
		e.clock(ctx)
		e.streams(ctx)
		e.rights(ctx)
	}
	return e.list, ctx.Err()
}

func (e *examination) transport(ctx context.Context) {
	switch _, err := e.NATS().TLSConnectionState(); {
	case err == nil:
		e.find("tls", OK, "the connection is encrypted")
	case loopback(e.NATS().ConnectedAddr()):
		e.find("tls", OK, "not encrypted, on this machine only")
	default:
		e.find("tls", Warning,
			"not encrypted: anybody on the network sees who sends, and credentials without a key: use tls:// and --tls-ca")
	}
	e.certificates(ctx)
	if !e.NATS().AuthRequired() {
		e.find("authentication", Warning, "the server takes anybody: give it users and accounts (deploy/nats)")
		return
	}
	e.find("authentication", OK, "the server asks who connects")
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

func (e *examination) version(version string) {
	var have [2]int
	for i, part := range strings.SplitN(version, ".", 3)[:min(2, strings.Count(version, ".")+1)] {
		have[i], _ = strconv.Atoi(part)
	}
	if slices.Compare(have[:], testedVersion[:]) < 0 {
		e.find("version", Warning, "nats-server %s: permissions and writes are tested with %d.%d and newer", version,
			testedVersion[0], testedVersion[1])
		return
	}
	e.find("version", OK, "nats-server %s, messages of at most %d bytes", version, e.NATS().MaxPayload())
}

// skewed is the difference between clocks from which on the doctor warns: certificates begin and end, an Open holds
// the start of its deadline, and a device's ledger has windows of time.
const skewed = 2 * time.Second

const clockMatters = "set the clocks of both with NTP: deadlines, certificates and the windows of devices' ledgers go by them"

// clock compares our clock with the server's. If the reply has the server's time, it was made between request and
// arrival, so that the difference is known to half of that span. If these credentials may not request it, the time of
// the newest record, which is at most the server's, shows whether our clock is behind, but not whether it is ahead.
func (e *examination) clock(ctx context.Context) {
	now := e.expect.Clock
	if now == nil {
		now = time.Now
	}
	sent := now()
	info, err := streamInfo(ctx, e.Conn, e.task.Name(stream.Rounds))
	took := now().Sub(sent)
	if err == nil && !info.TimeStamp.IsZero() {
		uncertain := (took + 1) / 2
		ahead := sent.Add(took / 2).Sub(info.TimeStamp)
		// In a cluster the request goes through the client's server, and the stream's leader replies.
		if ahead.Abs()-uncertain > skewed {
			e.find("clock", Warning, "ours is %v ahead of the server's, give or take %v: %s", ahead.Round(time.Millisecond),
				uncertain.Round(time.Millisecond), clockMatters)
			return
		}
		e.find("clock", OK, "ours is within %v of the server's", (ahead.Abs() + uncertain).Round(time.Millisecond))
		return
	}
	stored, ok := e.storedAt(ctx)
	if !ok {
		return
	}
	if behind := stored.Sub(now()); behind > skewed {
		e.find("clock", Warning, "the newest record was stored %v from now: our clock is behind: %s",
			behind.Round(time.Millisecond), clockMatters)
		return
	}
	e.find("clock", OK, "not behind the newest record's; only an administrator's credentials see the server's time")
}

// storedAt returns the time, by the server's clock, when the newest of the records that every role may read was
// stored.
func (e *examination) storedAt(ctx context.Context) (time.Time, bool) {
	request := directGet + e.task.Name(stream.Rounds) + "." + e.task.Rounds()
	var answer *nats.Msg
	err := e.Admin().Call(ctx, request, func(ctx context.Context) (err error) {
		answer, err = e.NATS().RequestWithContext(ctx, request, nil)
		return err
	})
	if err != nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, answer.Header.Get(jetstream.TimeStampHeaer))
	return at, err == nil
}
