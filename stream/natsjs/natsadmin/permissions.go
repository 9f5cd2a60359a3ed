package natsadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// A Role names the purpose of credentials.
type Role string

// The roles that have permissions of their own at the broker.
const (
	Admin     Role = "admin"
	Learner   Role = "learner"
	Stage     Role = "stage"
	Helper    Role = "helper" // of tasks of trust split
	Publisher Role = "publisher"
)

// roles are all of them.
var roles = []Role{Admin, Learner, Stage, Helper, Publisher}

func (r Role) validate() error {
	if r != "" && !slices.Contains(roles, r) {
		return &natsjs.ConfigError{Err: fmt.Errorf("role %q: want admin, learner, stage, helper or publisher", r)}
	}
	return nil
}

// A right is something that a permission can give, and a probe that finds out without doing it.
type right struct {
	name  string
	roles []Role // who needs it
	tasks tasks  // that need it
	probe func(context.Context, *natsjs.Conn, stream.Task) error
}

// tasks names the tasks that need a right.
type tasks int

const (
	always tasks = iota
	splitOnly
	grantsOnly
)

// of reports whether a task that the options are for is among them.
func (t tasks) of(o Options) bool {
	return t == always || t == splitOnly && o.Helper || t == grantsOnly && o.Grants
}

func rights() []right {
	write := func(subject func(stream.Task) string) func(context.Context, *natsjs.Conn, stream.Task) error {
		return func(ctx context.Context, c *natsjs.Conn, t stream.Task) error { return probe(ctx, c, subject(t)) }
	}
	read := func(subject func(stream.Task) string) func(context.Context, *natsjs.Conn, stream.Task) error {
		return func(ctx context.Context, c *natsjs.Conn, t stream.Task) error {
			_, err := c.Get(ctx, subject(t))
			if errors.Is(err, stream.ErrNotFound) {
				return nil
			}
			return err
		}
	}
	api := func(subject string) func(context.Context, *natsjs.Conn, stream.Task) error {
		return func(ctx context.Context, c *natsjs.Conn, _ stream.Task) error {
			return probeAPI(ctx, c, subject, struct{}{})
		}
	}
	hear := func(subject func(stream.Task) string) func(context.Context, *natsjs.Conn, stream.Task) error {
		return func(ctx context.Context, c *natsjs.Conn, t stream.Task) error {
			return c.Permissions().MaySubscribe(ctx, subject(t))
		}
	}
	return []right{
		{"write rounds", []Role{Learner}, always, write(func(t stream.Task) string { return t.Round(1) })},
		{"write attempts", []Role{Stage}, always, write(func(t stream.Task) string { return t.Open(1, 1) })},
		{"write leases", []Role{Stage}, always, write(stream.Task.Lease)},
		{"write batches", []Role{Stage}, always, write(func(t stream.Task) string { return t.Batch(1) })},
		{"write reports", []Role{Publisher}, always, write(func(t stream.Task) string { return t.Report(1, 1) })},
		{"ask for places", []Role{Publisher}, always, func(ctx context.Context, c *natsjs.Conn, t stream.Task) error {
			if err := forbidden(ctx, c, t.Place(1, 1)); err != nil {
				return err
			}
			return c.Permissions().MayPublish(ctx, t.Place(1, 1)) // nothing that a stage reads
		}},
		{"give places", []Role{Stage}, always, hear(stream.Task.Places)},
		{"write joins and shares", []Role{Helper}, splitOnly, write(func(t stream.Task) string { return t.Share(1) })},
		{"read shares", []Role{Stage, Helper, Admin}, splitOnly, read(func(t stream.Task) string { return t.Share(1) })},
		{"write lists of tokens", []Role{Stage}, grantsOnly, write(func(t stream.Task) string { return t.Spent(1, 1) })},
		{"read lists of tokens", []Role{Stage, Admin}, grantsOnly, read(func(t stream.Task) string { return t.Spent(1, 1) })},
		{"ask the helper", []Role{Stage}, splitOnly, func(ctx context.Context, c *natsjs.Conn, t stream.Task) error {
			nobody := t.Prepare([stream.InstanceSize]byte{})
			if err := forbidden(ctx, c, nobody); err != nil {
				return err
			}
			return c.Permissions().MayPublish(ctx, nobody) // nothing that a helper takes
		}},
		{"hear the leader", []Role{Helper}, splitOnly, hear(stream.Task.Prepares)},
		{"read rounds", []Role{Learner, Stage, Helper, Publisher, Admin}, always, read(stream.Task.Task)},
		{"read batches", []Role{Learner, Stage, Admin}, always, read(func(t stream.Task) string { return t.Batch(1) })},
		{"read leases", []Role{Stage, Publisher, Admin}, always, read(stream.Task.Lease)},
		{"purge reports", []Role{Stage, Admin}, always, api(apiStreamPurge + probeStream)},
		{"see how full the reports are", []Role{Stage, Admin}, always, func(ctx context.Context, c *natsjs.Conn,
			t stream.Task) error {
			return probeAPI(ctx, c, apiStreamInfo+t.Name(stream.Reports), struct{}{})
		}},
		{"create streams", []Role{Admin}, always, api(apiStreamCreate + probeStream)},
		{"delete streams", []Role{Admin}, always, api(apiStreamDelete + probeStream)},
		{"remove records", []Role{Admin}, always, api(apiMsgDel + probeStream)},
		{"read any message", []Role{Admin}, always, api("$JS.API.STREAM.MSG.GET." + probeStream)},
		{"create consumers", []Role{Admin}, always, api(apiConsumerCreate + probeStream)},
		{"overhear reports", nil, always, hear(stream.Task.Reports)},
		{"overhear answers to others", nil, always, hear(func(stream.Task) string { return natsjs.PlainInbox + ".>" })},
	}
}

// rights examines the credentials' permissions: with a named role, those beyond the role and those that they lack;
// without one, whether they exceed every single role.
func (e *examination) rights(ctx context.Context) {
	var have, unclear []string
	fits := slices.Clone(roles) // roles that have all of what the credentials have
	needed := map[Role][]string{}
	for _, r := range rights() {
		err := r.probe(ctx, e.Conn, e.task)
		switch {
		case err == nil:
			have = append(have, r.name)
			fits = slices.DeleteFunc(fits, func(role Role) bool { return !slices.Contains(r.roles, role) })
		case errors.Is(err, natsjs.ErrDenied) && !r.tasks.of(e.expect.Options):
			// nobody needs it
		case errors.Is(err, natsjs.ErrDenied):
			for _, role := range r.roles {
				needed[role] = append(needed[role], r.name)
			}
		case errors.Is(err, natsjs.ErrNoStream):
			// nobody listens: not imported, or the stream is missing, which is found elsewhere
		default:
			unclear = append(unclear, fmt.Sprintf("%s (%v)", r.name, err))
		}
	}
	if len(unclear) > 0 {
		e.find("permissions", Warning, "cannot tell whether these credentials may %s", strings.Join(unclear, ", "))
	}
	role := e.expect.Role
	all := strings.Join(have, ", ")
	switch {
	case role == "" && len(fits) == 0:
		e.find("permissions", Warning,
			"these credentials are more than one role's: they may %s: give each role its own (deploy/nats)", all)
	case role == "":
		e.find("permissions", OK, "these credentials may %s", all)
	case !slices.Contains(fits, role):
		e.find("permissions", Failure, "these credentials may do more than the role %s should: %s", role,
			strings.Join(beyond(role, have), ", "))
	case len(needed[role]) > 0:
		e.find("permissions", Failure, "these credentials lack what the role %s needs: %s", role, strings.Join(needed[role],
			", "))
	default:
		e.find("permissions", OK, "what the role %s needs: %s", role, all)
	}
}

// beyond returns the rights that the role does not need.
func beyond(role Role, have []string) (extra []string) {
	for _, r := range rights() {
		if slices.Contains(have, r.name) && !slices.Contains(r.roles, role) {
			extra = append(extra, r.name)
		}
	}
	return extra
}

// probeAPI tries a call of JetStream's API on a stream that does not exist. It returns nil if we may make the call.
func probeAPI(ctx context.Context, c *natsjs.Conn, subject string, body any) error {
	var answer struct{}
	err := c.Admin().Request(ctx, subject, body, &answer)
	if natsjs.Code(err) != 0 && !errors.Is(err, natsjs.ErrDenied) {
		return nil // the broker considered it
	}
	return err
}

// probeStream is a stream that nobody has: a message that expects it is stored nowhere, and a request that names it
// finds nothing.
const probeStream = "PANLEARN_probe"

// streamMismatch is the server's code for a message that expects another stream than the one that listens.
const streamMismatch = 10060

// probe tries to publish on a stream's subject, and stores nothing: the message expects another stream, so the stream
// refuses it. It returns nil if we may publish.
func probe(ctx context.Context, c *natsjs.Conn, subject string) error {
	if err := forbidden(ctx, c, subject); err != nil {
		return err
	}
	err := c.Admin().Call(ctx, subject, func(ctx context.Context) error {
		m := nats.NewMsg(subject)
		m.Header.Set(jetstream.ExpectedStreamHeader, probeStream)
		_, err := c.Admin().JetStream().PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		return err
	})
	switch {
	case natsjs.Code(err) == streamMismatch:
		return nil
	case err == nil:
		return fmt.Errorf("probe of %s: a stream stored what expects another stream", subject)
	}
	return err
}
