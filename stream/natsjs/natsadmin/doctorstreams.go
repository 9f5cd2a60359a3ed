package natsadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// streams looks at each stream's settings, and at its copies.
func (e *examination) streams(ctx context.Context) {
	var o Options
	if err := o.validate(); err != nil {
		e.find("streams", Failure, "%v", err)
		return
	}
	lowest := 0
	var missing []string
	seen := map[stream.Stream]*jetstream.StreamInfo{}
	for _, s := range e.expect.Options.streams() {
		want := streamConfig(e.task, s, o)
		have, err := streamInfo(ctx, e.Conn, want.Name)
		if errors.Is(err, natsjs.ErrDenied) {
			e.unseen(ctx, o)
			return
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			missing = append(missing, want.Name)
			continue
		}
		if err != nil {
			e.find("stream "+want.Name, Failure, "%v", err)
			continue
		}
		seen[s] = have
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
	case len(e.expect.Options.streams()):
		e.find("streams", Failure,
			"none of the streams of %q is there: is that the task's name? If so, make them with learner provision. "+
				"If the task had begun, the broker lost it, and provisioning helps nobody: docs/how-to/runbook.md, the broker lost records", e.task)
		return
	default:
		if _, err := lostOf(ctx, e.Conn, e.task); errors.Is(err, errLost) {
			e.find("streams", Failure, "%v", err)
			break
		}
		e.find("streams", Failure,
			"missing: %s: make them with learner provision; of a task that has begun it makes reports and leases again, and what was in them is lost",
			strings.Join(missing, ", "))
	}
	if !slices.Contains(missing, e.task.Name(stream.Reports)) {
		e.consumer(ctx, o)
	}
	if lowest > 0 {
		e.durability(lowest)
	}
	e.trouble(ctx, seen)
}

// unseen serves roles that may not read settings: it only checks that the streams reply.
func (e *examination) unseen(ctx context.Context, o Options) {
	if err := Present(ctx, e.Conn, e.task); err != nil {
		e.find("streams", Failure, "%v", err)
		return
	}
	e.find("streams", OK, "they answer; only an administrator's credentials see their settings and replicas")
	e.consumer(ctx, o)
	e.trouble(ctx, nil)
}

func (e *examination) consumer(ctx context.Context, o Options) {
	check := "consumer " + natsjs.Durable
	have, err := consumerInfo(ctx, e.Conn, e.task.Name(stream.Reports))
	if errors.Is(err, natsjs.ErrDenied) {
		return // a stage's and an administrator's
	}
	if err != nil {
		e.find(check, Failure, "%v", err)
		return
	}
	if have.NumRedelivered > 0 {
		e.find("redeliveries", Warning,
			"%d reports that are out came before: a stage died with them, or its acknowledgements do not arrive within %v: "+
				"they hold the round up for as long (%s)", have.NumRedelivered, have.Config.AckWait, redeliveries)
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

// Copies returns the number of replicas in words.
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
		e.find("durability", Warning,
			"one copy, and a client cannot see how often the server syncs its files: set sync_interval: always, "+
				"or have 3 replicas; else a power loss takes rounds and batches that were acknowledged")
		return
	}
	e.find("durability", OK, "%d copies; see that their servers do not lose power together", replicas)
}
