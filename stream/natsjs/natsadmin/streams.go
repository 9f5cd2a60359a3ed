package natsadmin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// Defaults of Options.
const (
	DefaultReportBytes   = 256 << 20
	MostReportBytes      = 1 << 30 // of a stream in files, sized by its reports
	defaultMaxAge        = 24 * time.Hour
	defaultAckWait       = 5 * time.Second
	defaultMaxAckPending = 4096
)

// minPerSubject is the least limit of one attempt's reports, storedRoom about what the server stores with each:
// subject, message id, framing.
const (
	minPerSubject = 16
	storedRoom    = 160
)

// duplicateWindow is the time for which the broker knows a message id. Nothing relies on it.
const duplicateWindow = 2 * time.Minute

// Options holds an operator's choices about a task's streams. The zero value is one server and the defaults.
type Options struct {
	Replicas       int   // of every stream, 1, 3 or 5; 0: 1
	MaxReportBytes int64 // stored reports, beyond which publishes are refused; 0: see reportBytes
	MaxMsgSize     int   // bytes of one report as the planner computed it; 0: what the server takes
	LeastMsgSize   int   // bytes of a report of one user; 0: MaxMsgSize
	// stored reports of one attempt, beyond which publishes are refused; 0, and at most: half of the smallest that fit in
	// MaxReportBytes
	MaxPerSubject int64
	MaxAge        time.Duration // of a report that nobody takes; 0: 24 h; at least 2 minutes
	MemoryReports bool          // keep reports in the server's memory: wanted under the pan trusts
	AckWait       time.Duration // after which an un-acknowledged report comes back; 0: 5 s
	MaxAckPending int           // reports that may be out un-acknowledged; 0: 4096
	Helper        bool          // the task has trust split: make the stream of its helper too
	Grants        bool          // its reports have tokens: make the stream of those that were counted too
}

func (o *Options) validate() error {
	switch o.Replicas {
	case 0, 1, 3, 5:
	default:
		return fmt.Errorf("replicas %d: want 1, 3 or 5", o.Replicas)
	}
	if o.MaxReportBytes < 0 || o.MaxMsgSize < 0 || o.LeastMsgSize < 0 || o.LeastMsgSize > max(o.MaxMsgSize, 0) ||
		o.MaxPerSubject < 0 || o.MaxMsgSize > math.MaxInt32-natsjs.HeaderRoom {
		return fmt.Errorf(
			"max report bytes %d, max message size %d, max per subject %d: want no negative limits and messages below 2 GiB",
			o.MaxReportBytes, o.MaxMsgSize, o.MaxPerSubject)
	}
	if o.MaxAge != 0 && o.MaxAge < duplicateWindow {
		return fmt.Errorf("max age %v: want at least %v", o.MaxAge, duplicateWindow)
	}
	if o.AckWait < 0 || o.MaxAckPending < 0 {
		return fmt.Errorf("ack wait %v, max ack pending %d: want no negative limits", o.AckWait, o.MaxAckPending)
	}
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.MaxReportBytes = cmp.Or(o.MaxReportBytes, o.reportBytes())
	o.MaxAge = cmp.Or(o.MaxAge, defaultMaxAge)
	o.AckWait = cmp.Or(o.AckWait, defaultAckWait)
	o.MaxAckPending = cmp.Or(o.MaxAckPending, defaultMaxAckPending)
	// Reports of one attempt, of one user each, leave half of the stream to the next one's; a few have to fit in any
	// case. Bundles are fewer and, a user, smaller, so that a limit by their size would refuse single reports while
	// the stream is nearly empty.
	half := max(minPerSubject, o.MaxReportBytes/2/o.stored())
	o.MaxPerSubject = min(cmp.Or(o.MaxPerSubject, half), half)
	return nil
}

// stored returns about how many bytes the server stores for the smallest report.
func (o *Options) stored() int64 { return int64(cmp.Or(o.LeastMsgSize, o.MaxMsgSize) + storedRoom) }

// reportBytes returns the size of a stream that holds MaxPerSubject single reports of an attempt in one half: at least
// DefaultReportBytes, which is also the most in memory, and at most MostReportBytes.
func (o *Options) reportBytes() int64 {
	if o.LeastMsgSize == 0 || o.MemoryReports {
		return DefaultReportBytes
	}
	return min(max(DefaultReportBytes, 2*o.MaxPerSubject*o.stored()), MostReportBytes)
}

// all returns the streams that every task has, in the order of creation: devices wait for Reports, so it comes last.
func all() []stream.Stream {
	return []stream.Stream{stream.Rounds, stream.Attempts, stream.Leases, stream.Batches, stream.Reports}
}

// possible returns the streams that some task has, in the order of creation.
func possible() []stream.Stream { return slices.Insert(all(), len(all())-1, optional...) }

// optional are the streams that only some tasks have: of two operators, and of tokens.
var optional = []stream.Stream{stream.Joins, stream.Spends}

// streams returns the streams of the task that the options are for, in the order of creation.
func (o *Options) streams() []stream.Stream {
	return slices.DeleteFunc(possible(), func(s stream.Stream) bool {
		return s == stream.Joins && !o.Helper || s == stream.Spends && !o.Grants
	})
}

// streamConfig returns the configuration of a stream that the protocol requires.
func streamConfig(task stream.Task, s stream.Stream, o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name: task.Name(s), Subjects: task.Subjects(s), Description: "panlearn " + string(task) + ": " + s.String(),
		Replicas: o.Replicas, Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy,
		MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxMsgsPerSubject: 1, AllowDirect: true,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, DenyPurge: true,
		Duplicates: duplicateWindow,
	}
	switch s {
	case stream.Rounds, stream.Attempts, stream.Joins:
		// Whole records: a device that has a wake reads nothing.
		c.RePublish = &jetstream.RePublish{Source: stream.Prefix + "." + string(task) + ".>",
			Destination: natsjs.WakePrefix(task) + ">"}
	case stream.Leases:
		c.Discard, c.DiscardNewPerSubject = jetstream.DiscardOld, false
		c.DenyPurge = false
	case stream.Reports:
		c.Retention, c.MaxMsgsPerSubject = jetstream.WorkQueuePolicy, o.MaxPerSubject
		c.DenyPurge, c.AllowDirect = false, false
		c.MaxBytes, c.MaxAge = o.MaxReportBytes, o.MaxAge
		if o.MaxMsgSize > 0 {
			c.MaxMsgSize = int32(o.MaxMsgSize + natsjs.HeaderRoom)
		}
		if o.MemoryReports {
			c.Storage = jetstream.MemoryStorage
		}
	}
	return c
}

// consumerConfig returns the work queue's consumer.
func consumerConfig(task stream.Task, o Options) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: natsjs.Durable, FilterSubject: task.Reports(), DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.AckWait, MaxDeliver: -1, MaxAckPending: o.MaxAckPending,
		ReplayPolicy: jetstream.ReplayInstantPolicy, Replicas: 0, MemoryStorage: o.MemoryReports,
	}
}
