package natsadmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// The runbook's sections that findings name.
const (
	fullStream   = `docs/how-to/runbook.md, "a stream is full"`
	leaseLost    = `docs/how-to/runbook.md, "nobody holds the lease"`
	olderBroker  = `docs/how-to/runbook.md, "state folder and broker of different times"`
	redeliveries = `docs/how-to/runbook.md, "reports are delivered again"`
)

// trouble looks for conditions that stop a task while its streams exist: writes that the server refuses, a full queue,
// a lease that nobody holds, reports that come again. have holds the streams' settings, as far as these credentials
// may see them.
func (e *examination) trouble(ctx context.Context, have map[stream.Stream]*jetstream.StreamInfo) {
	e.writes(ctx, have)
	if reports := have[stream.Reports]; reports != nil {
		e.queue(ctx, reports)
		e.limits(reports.Config)
	}
	e.lease(ctx, have[stream.Leases])
}

// nothing is a sequence that no stream reaches.
const nothing = 1 << 62

// Codes of what a server says of a deletion or a purge that its store refused, and of a message that is not there.
const (
	codeDeleteFailed = 10057
	codePurgeFailed  = 10110
	codeNoMessage    = 10037
)

// writes finds a stream whose store keeps a write error: nats-server then refuses every write to it until it is
// restarted, room or not. A write without effect shows it: the deletion of a message that no stream has, or a purge of
// a subject that nobody uses.
func (e *examination) writes(ctx context.Context, have map[stream.Stream]*jetstream.StreamInfo) {
	tried := 0
	refused := func(name string, err error) {
		code := natsjs.Code(err)
		if err == nil || code == codeNoMessage || code == codeDeleteFailed && strings.Contains(err.Error(), "EOF") {
			// behind the end of the stream
			tried++
			return
		}
		if code != codeDeleteFailed && code != codePurgeFailed { // denied, no stream: found elsewhere
			return
		}
		e.find("writes", Failure,
			"%s refuses every write (%v): the server met an error of its disk and remembers it until it is restarted: make room, then restart nats-server (%s)",
			name, err, fullDisk)
	}
	for _, s := range all() {
		name := e.task.Name(s)
		if have[s] == nil && s != stream.Reports {
			continue
		}
		var answer struct{}
		err := e.Admin().Request(ctx, apiMsgDel+name, map[string]any{"seq": uint64(nothing), "no_erase": true}, &answer)
		if errors.Is(err, natsjs.ErrDenied) && s == stream.Reports { // which a stage may purge
			err = e.Admin().Request(ctx, apiStreamPurge+name, map[string]string{"filter": probeStream}, &answer)
		}
		refused(name, err)
	}
	switch failed := slices.ContainsFunc(e.list, func(f Finding) bool { return f.Check == "writes" }); {
	case failed:
	case tried == 0:
		e.find("writes", OK, "these credentials write what stays for good, so no write was tried: an administrator's can")
	default:
		e.find("writes", OK, "%d of the streams keep no write error", tried)
	}
}

// fillWarns is the share of a full queue from which it is worth a warning.
const fillWarns = 0.8

// queue finds how full the stream of reports is, and with which subjects.
func (e *examination) queue(ctx context.Context, reports *jetstream.StreamInfo) {
	state, limit := reports.State, reports.Config.MaxBytes
	share := 0.0
	if limit > 0 {
		share = float64(state.Bytes) / float64(limit)
	}
	of, most := e.fills(ctx, reports.Config.Name)
	if share >= fillWarns {
		e.find("reports", Warning, "%d messages, %d of %d bytes (%.0f %%): publishes are refused when it is full: %s (%s)",
			state.Msgs, state.Bytes, limit, 100*share,
			cmp.Or(of, "of which subjects these credentials may not see"), fullStream)
		return
	}
	if each := reports.Config.MaxMsgsPerSubject; each > 0 && most >= uint64(each) {
		e.find("reports", Warning,
			"%d messages, and an attempt may have %d: more of it are refused until a stage takes some: %s (%s)", state.Msgs,
			each, of, fullStream)
		return
	}
	e.find("reports", OK, "%d messages, %d of %d bytes (%.0f %%)%s", state.Msgs, state.Bytes, limit, 100*share,
		prefixed("; ", of))
}

// limits finds a stream of reports that takes fewer than the plan's cohorts may have waiting, such as one that an
// older release made. The limit of such a stream went by the size of the largest bundle, and single reports were
// refused while it was nearly empty.
func (e *examination) limits(have jetstream.StreamConfig) {
	want := e.expect.Options
	if err := want.validate(); err != nil || want.LeastMsgSize == 0 { // found with the account's, or the plan is not known
		return
	}
	if have.MaxMsgsPerSubject <= 0 || have.MaxMsgsPerSubject >= want.MaxPerSubject {
		return
	}
	e.find("limits", Warning,
		"%s takes %d reports of an attempt and %d bytes; a new stream for this plan takes %d and %d, and more are refused until a stage takes some: "+
			"nats stream edit %[1]s --max-msgs-per-subject %[4]d --max-bytes %[5]d (%[6]s)", have.Name, have.MaxMsgsPerSubject,
		have.MaxBytes, want.MaxPerSubject,
		max(want.MaxReportBytes, have.MaxBytes), fullStream)
}

func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// fills names the subjects with most of a stream's messages, one for each round or attempt, and returns the
// number of messages of the first.
func (e *examination) fills(ctx context.Context, name string) (text string, most uint64) {
	var answer struct {
		Total int `json:"total"`
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := e.Admin().Request(ctx, apiStreamInfo+name, map[string]string{"subjects_filter": ">"}, &answer); err != nil ||
		len(answer.State.Subjects) == 0 {
		return "", 0
	}
	type subject struct {
		name     string
		messages uint64
	}
	var list []subject
	for name, messages := range answer.State.Subjects {
		list = append(list, subject{name, messages})
	}
	slices.SortFunc(list, func(a, b subject) int {
		return cmp.Or(cmp.Compare(b.messages, a.messages), strings.Compare(a.name, b.name))
	})
	for _, s := range list[:min(3, len(list))] {
		text += fmt.Sprintf("%s%d of %s", map[bool]string{true: ", "}[text != ""], s.messages, s.name)
	}
	if more := max(answer.Total, len(list)) - 3; more > 0 {
		text += fmt.Sprintf(", and %d subjects more", more)
	}
	return "most of it: " + text, list[0].messages
}

// lease finds who holds the task's lease, and since when nobody does. leases has the stream's settings; nil: not seen.
func (e *examination) lease(ctx context.Context, leases *jetstream.StreamInfo) {
	lease, stored, err := e.leaseRecord(ctx)
	now := time.Now
	if e.expect.Clock != nil {
		now = e.expect.Clock
	}
	at := now()
	if leases != nil && !leases.TimeStamp.IsZero() {
		at = leases.TimeStamp // the server's clock, as the record's
	}
	_, ended := e.Get(ctx, e.task.End())
	_, begun := e.Get(ctx, e.task.Task())
	goesOn := begun == nil && errors.Is(ended, stream.ErrNotFound)
	bad := OK
	if goesOn {
		bad = Failure
	}
	const start = "start ingest shuffle with the identity of this task, or read the log of those that stand by"
	switch age := at.Sub(stored); {
	case errors.Is(err, natsjs.ErrDenied) || errors.Is(err, natsjs.ErrNoStream): // another role's, or found above
	case errors.Is(err, stream.ErrNotFound) && goesOn:
		e.find("lease", Warning, "no stage has ever held it: %s (%s)", start, leaseLost)
	case errors.Is(err, stream.ErrNotFound):
		e.find("lease", OK, "nobody holds it; the task does not go on")
	case err != nil:
		e.find("lease", Failure, "%v (%s)", err, leaseLost)
	case lease.TTL == 0:
		e.find("lease", bad, "nobody holds it: its last holder gave it up %v ago: %s (%s)", age.Round(time.Second), start,
			leaseLost)
	case age > lease.TTL+skewed:
		e.find("lease", bad, "nobody holds it: process %x renewed it last %v ago, for %v: %s (%s)", lease.Instance[:4],
			age.Round(time.Second), lease.TTL, start, leaseLost)
	default:
		e.find("lease", OK, "process %x renewed it %v ago, for %v", lease.Instance[:4], max(age, 0).Round(time.Second),
			lease.TTL)
	}
	if err == nil && goesOn {
		e.behind(ctx, lease.Newest)
	}
}

// behind finds a broker that is older than the newest round known to the holder of the lease.
func (e *examination) behind(ctx context.Context, known stream.Round) {
	m, err := e.Latest(ctx, e.task.Rounds())
	newest := stream.Address{}
	if err == nil {
		newest, err = stream.ParseSubject(m.Subject)
	}
	if (err == nil || errors.Is(err, stream.ErrNotFound)) && newest.Round < known {
		e.find("rounds", Failure,
			"the stage knows round %d, and round %d is the newest here: the broker was restored or lost records: each round between becomes void when the "+
				"learner announces it again, which takes minutes (%s)", known, newest.Round, olderBroker)
	}
}

// leaseRecord returns the record on the lease's subject, and when it was stored by the server's clock.
func (e *examination) leaseRecord(ctx context.Context) (lease stream.Lease, stored time.Time, err error) {
	m, err := e.Get(ctx, e.task.Lease())
	if err != nil {
		return lease, stored, err
	}
	if m.Time.IsZero() {
		return lease, stored, errors.New("the lease has no time")
	}
	lease, err = stream.ParseLease(m.Data)
	return lease, m.Time, err
}
