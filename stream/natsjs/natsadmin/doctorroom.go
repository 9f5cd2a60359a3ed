package natsadmin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// A reservation holds what the server sets aside for a task when its streams are made.
type reservation struct {
	streams      int
	file, memory int64 // bytes of an account without tiers, summed over all copies
	largest      map[jetstream.StorageType]int64
	unbounded    int // streams without a limit of bytes
	ackPending   int
}

func reserve(o Options) (r reservation) {
	r = reservation{streams: len(o.streams()), ackPending: o.MaxAckPending, largest: map[jetstream.StorageType]int64{}}
	for _, s := range o.streams() {
		c := streamConfig("any", s, o)
		if c.MaxBytes <= 0 {
			r.unbounded++
			continue
		}
		r.largest[c.Storage] = max(r.largest[c.Storage], c.MaxBytes)
		if c.Storage == jetstream.MemoryStorage {
			r.memory += c.MaxBytes * int64(c.Replicas)
		} else {
			r.file += c.MaxBytes * int64(c.Replicas)
		}
	}
	return r
}

// lacks returns the limits of an account that a task's streams would exceed, each in words.
func (r reservation) lacks(info *jetstream.AccountInfo, replicas int) (lacks []string) {
	tier, copies := info.Tier, int64(1)
	if len(info.Tiers) > 0 { // limits for each number of copies, which do not count the copies
		tier, copies = info.Tiers[fmt.Sprintf("R%d", replicas)], int64(replicas)
	}
	say := func(format string, args ...any) { lacks = append(lacks, fmt.Sprintf(format, args...)) }
	limits := tier.Limits
	if limits.MaxStreams >= 0 && tier.Streams+r.streams > limits.MaxStreams {
		say("it has %d of at most %d streams, and a task needs %d", tier.Streams, limits.MaxStreams, r.streams)
	}
	for _, kind := range []struct {
		name               string
		need, limit, taken int64
		largest, oneStream int64
	}{
		{"files", r.file / copies, limits.MaxStore, int64(tier.ReservedStore), r.largest[jetstream.FileStorage],
			limits.StoreMaxStreamBytes},
		{"memory", r.memory / copies, limits.MaxMemory, int64(tier.ReservedMemory), r.largest[jetstream.MemoryStorage],
			limits.MemoryMaxStreamBytes},
	} {
		if kind.limit >= 0 && kind.need > max(kind.limit-kind.taken, 0) {
			say("%d bytes of %s are not reserved yet, and a task reserves %d", max(kind.limit-kind.taken, 0), kind.name,
				kind.need)
		}
		if kind.oneStream > 0 && kind.largest > kind.oneStream {
			say("a stream may reserve %d bytes of %s, and the reports want %d", kind.oneStream, kind.name, kind.largest)
		}
	}
	if limits.MaxBytesRequired && r.unbounded > 0 {
		say("it wants a limit of bytes for each stream (max_bytes_required), and %d of a task have none", r.unbounded)
	}
	if limits.MaxAckPending > 0 && r.ackPending > limits.MaxAckPending {
		say("a consumer may have %d messages out, and the reports' needs %d", limits.MaxAckPending, r.ackPending)
	}
	return lacks
}

// account checks how much JetStream lets the account store, and whether one more task fits: by the account's limits,
// and by a stream that is made as the reports' would be, written to and deleted, because no role may request the
// server's free space.
func (e *examination) account(ctx context.Context) {
	var info *jetstream.AccountInfo
	err := e.Admin().Call(ctx, apiAccountInfo, func(ctx context.Context) (err error) {
		info, err = e.Admin().JetStream().AccountInfo(ctx)
		return err
	})
	switch {
	case errors.Is(err, natsjs.ErrDenied):
		e.find("jetstream", OK, "these credentials may not see the account's limits")
		return
	case err != nil:
		e.find("jetstream", Failure, "%v", err)
		return
	}
	o := e.expect.Options
	if err := o.validate(); err != nil {
		e.find("jetstream", Failure, "%v", err)
		return
	}
	e.find("jetstream", OK, "%d streams, %d bytes of files, %d of memory", info.Streams, info.Store, info.Memory)
	if lacks := reserve(o).lacks(info, o.Replicas); len(lacks) > 0 {
		e.find("room", Warning,
			"one more task like this does not fit the account: %s: raise its limits, or remove a task that has ended",
			strings.Join(lacks, "; "))
		return
	}
	e.scratch(ctx, o)
}

// scratchName begins the name of a stream that a doctor makes for a moment, and its one subject.
const scratchName = "panlearn_doctor_"

// scratchBytes bounds the bytes of a scratch stream: its description, which every administrator may write, and one
// message.
const scratchBytes = 64 << 10

// codes of a server that has not enough left.
var fullCodes = []jetstream.ErrorCode{10023, 10002, 10047, 10028}

// scratch makes a stream of the kind of the reports', writes, and takes it away.
func (e *examination) scratch(ctx context.Context, o Options) {
	reports := streamConfig("any", all()[len(all())-1], o)
	name := scratchName + rand.Text()
	config := jetstream.StreamConfig{Name: name, Subjects: []string{name}, Storage: reports.Storage,
		Replicas: reports.Replicas, MaxBytes: reports.MaxBytes,
		Discard: jetstream.DiscardNew, MaxAge: time.Hour, Description: "learner doctor: may be deleted",
		Metadata: map[string]string{"panlearn.scratch": strings.Repeat("0", scratchBytes)}}
	err := e.Admin().Call(ctx, apiStreamCreate+name, func(ctx context.Context) error {
		_, err := e.Admin().JetStream().CreateStream(ctx, config)
		return err
	})
	if errors.Is(err, natsjs.ErrDenied) {
		return // limits may be seen, streams not made: nothing to say
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
		defer cancel()
		if err := deleteStream(clean, e.Conn, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			e.find("room", Warning, "the stream %s, which doctor made, is left: delete it (%v)", name, err)
		}
	}()
	size := fmt.Sprintf("%d bytes in %s, %s", reports.MaxBytes, strings.ToLower(reports.Storage.String()),
		Copies(reports.Replicas))
	switch {
	case slices.Contains(fullCodes, natsjs.Code(err)):
		e.find("room", Warning,
			"one more task like this does not fit: the server does not set aside %s: %v: raise max_file_store or max_memory_store, or remove a task that has ended", size, err)
		return
	case err != nil:
		e.find("room", Failure, "a stream of %s cannot be made: %v: is the server's disk full? (%s)", size, err, fullDisk)
		return
	}
	err = e.Admin().Call(ctx, name, func(ctx context.Context) error {
		_, err := e.Admin().JetStream().Publish(ctx, name, make([]byte, min(scratchBytes, int(e.NATS().MaxPayload())/2)),
			jetstream.WithRetryAttempts(0))
		return err
	})
	if err != nil && !errors.Is(err, natsjs.ErrDenied) {
		e.find("room", Failure, "a new stream takes no message: %v: is the server's disk full? (%s)", err, fullDisk)
		return
	}
	e.find("room", OK, "one more task like this fits: a stream of %s was made, written and deleted", size)
}

// fullDisk names the section of the runbook about a full disk.
const fullDisk = `docs/how-to/runbook.md, "a disk is full"`
