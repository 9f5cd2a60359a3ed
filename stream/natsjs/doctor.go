package natsjs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// A Status says how bad a finding is.
type Status string

// OK: as it should be. Warning: works, with a guarantee that is weaker or that cannot be seen from here. Failure: a guarantee
// does not hold, or the task cannot run.
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

// Expect is what an operator says about a broker.
type Expect struct {
	Replicas int  // of every stream, at least; 0: 1
	Role     Role // of the credentials; empty: to be found out
	Now      time.Time
	Clock    func() time.Time // nil: time.Now
}

// testedVersion is the oldest server that the permissions and the put-once rules are tested with.
var testedVersion = [2]int{2, 15}

// expirySoon is how long before a certificate ends it is time to renew it.
const expirySoon = 14 * 24 * time.Hour

// examination collects findings.
type examination struct {
	*Conn
	expect Expect
	task   stream.Task
	list   []Finding
}

func (e *examination) find(check string, status Status, format string, args ...any) {
	e.list = append(e.list, Finding{Check: check, Status: status, Text: fmt.Sprintf(format, args...)})
}

// Examine looks at the connection, the server, the task's streams and what these credentials may do. It changes nothing.
// An empty task leaves out what is the task's.
func Examine(ctx context.Context, c *Conn, task stream.Task, expect Expect) ([]Finding, error) {
	if _, err := stream.ParseTask(string(task)); task != "" && err != nil {
		return nil, fmt.Errorf("examine: %w", err)
	}
	if err := expect.Role.validate(); err != nil {
		return nil, err
	}
	e := &examination{Conn: c, expect: expect, task: task}
	e.transport()
	e.version(c.nc.ConnectedServerVersion())
	e.account(ctx)
	if task != "" {
		e.clock(ctx)
		e.streams(ctx)
		e.rights(ctx)
	}
	return e.list, ctx.Err()
}

func (e *examination) transport() {
	secure, err := e.nc.TLSConnectionState()
	switch {
	case err == nil && len(secure.PeerCertificates) > 0 && secure.PeerCertificates[0].NotAfter.Sub(e.expect.Now) < expirySoon:
		e.find("tls", Warning, "the server's certificate ends on %s: renew it", secure.PeerCertificates[0].NotAfter.Format(time.DateOnly))
	case err == nil:
		e.find("tls", OK, "the connection is encrypted")
	case loopback(e.nc.ConnectedAddr()):
		e.find("tls", OK, "not encrypted, on this machine only")
	default:
		e.find("tls", Warning, "not encrypted: whoever sees the network sees who sends, and credentials without a key: use tls:// and --tls-ca")
	}
	if !e.nc.AuthRequired() {
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
		e.find("version", Warning, "nats-server %s: permissions and writes are tested with %d.%d and newer", version, testedVersion[0], testedVersion[1])
		return
	}
	e.find("version", OK, "nats-server %s, messages of at most %d bytes", version, e.nc.MaxPayload())
}

// account looks at what JetStream lets the account keep.
func (e *examination) account(ctx context.Context) {
	var info *jetstream.AccountInfo
	err := e.call(ctx, apiAccountInfo, func(ctx context.Context) (err error) {
		info, err = e.js.AccountInfo(ctx)
		return err
	})
	switch {
	case errors.Is(err, ErrDenied):
		e.find("jetstream", OK, "these credentials may not see the account's limits")
		return
	case err != nil:
		e.find("jetstream", Failure, "%v", err)
		return
	}
	limits := info.Limits
	switch free := limits.MaxStore - int64(info.ReservedStore); {
	case limits.MaxStreams >= 0 && limits.MaxStreams-info.Streams < len(all()):
		e.find("jetstream", Warning, "the account has %d of at most %d streams; a new task needs %d", info.Streams, limits.MaxStreams, len(all()))
	case limits.MaxStore >= 0 && free < DefaultReportBytes:
		e.find("jetstream", Warning, "%d bytes of files are not reserved yet; the reports of a new task reserve %d", max(free, 0), DefaultReportBytes)
	default:
		e.find("jetstream", OK, "%d streams, %d bytes of files", info.Streams, info.Store)
	}
}

// streams looks at each stream's settings, and at its copies.
func (e *examination) streams(ctx context.Context) {
	var o Options
	if err := o.validate(); err != nil {
		e.find("streams", Failure, "%v", err)
		return
	}
	lowest := 0
	var missing []string
	for _, s := range all() {
		want := streamConfig(e.task, s, o)
		have, err := e.streamInfo(ctx, want.Name)
		if errors.Is(err, ErrDenied) {
			e.unseen(ctx)
			return
		}
		if code(err) == codeStreamNotFound {
			missing = append(missing, want.Name)
			continue
		}
		if err != nil {
			e.find("stream "+want.Name, Failure, "%v", err)
			continue
		}
		if lowest == 0 || have.Config.Replicas < lowest {
			lowest = have.Config.Replicas
		}
		differ := compare(critical(s, want), critical(s, have.Config))
		for _, d := range differ {
			e.find("stream "+want.Name, Failure, "%s", d)
		}
		if len(differ) == 0 {
			e.find("stream "+want.Name, OK, "%d messages, %s", have.State.Msgs, Copies(have.Config.Replicas))
		}
		e.copies(want.Name, have.Cluster)
	}
	switch len(missing) {
	case 0:
	case len(all()):
		e.find("streams", Failure, "none of the streams of %q is there: is that the task's name? If so, make them with learner provision", e.task)
		return
	default:
		e.find("streams", Failure, "missing: %s: make them with learner provision; what was in them is lost if the task has begun",
			strings.Join(missing, ", "))
	}
	if !slices.Contains(missing, e.task.Name(stream.Reports)) {
		e.consumer(ctx, o)
	}
	if lowest > 0 {
		e.durability(lowest)
	}
}

// unseen is for roles that may not ask for settings: that the streams answer has to do.
func (e *examination) unseen(ctx context.Context) {
	if err := Present(ctx, e.Conn, e.task); err != nil {
		e.find("streams", Failure, "%v", err)
		return
	}
	e.find("streams", OK, "they answer; only an administrator's credentials see their settings and replicas")
}

func (e *examination) consumer(ctx context.Context, o Options) {
	check := "consumer " + Durable
	have, err := e.consumerInfo(ctx, e.task.Name(stream.Reports), Durable)
	if err != nil {
		e.find(check, Failure, "%v", err)
		return
	}
	differ := compare(criticalConsumer(consumerConfig(e.task, o)), criticalConsumer(have.Config))
	for _, d := range differ {
		e.find(check, Failure, "%s", d)
	}
	if len(differ) == 0 {
		e.find(check, OK, "%d reports wait, %d are out", have.NumPending, have.NumAckPending)
	}
}

func (e *examination) copies(name string, cluster *jetstream.ClusterInfo) {
	if cluster == nil {
		return
	}
	if cluster.Leader == "" {
		e.find("stream "+name, Failure, "no leader: a majority of its servers is not there")
	}
	for _, peer := range cluster.Replicas {
		if peer.Offline {
			e.find("stream "+name, Warning, "the copy on %s is offline", peer.Name)
		} else if !peer.Current {
			e.find("stream "+name, Warning, "the copy on %s is behind", peer.Name)
		}
	}
}

// Copies says how many replicas there are.
func Copies(replicas int) string {
	if replicas == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", replicas)
}

func (e *examination) durability(replicas int) {
	if want := max(e.expect.Replicas, 1); replicas < want {
		e.find("durability", Failure, "%s, want %d: raise them with the nats command", Copies(replicas), want)
		return
	}
	if replicas < 3 {
		e.find("durability", Warning, "one copy, and a client cannot see how often the server syncs its files: set sync_interval: always, "+
			"or have 3 replicas; else a power loss takes rounds and batches that were acknowledged")
		return
	}
	e.find("durability", OK, "%d copies; see that their servers do not lose power together", replicas)
}
