package natsadmin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/retention"
)

// Records implements retention.Broker with an administrator's credentials; with others it returns natsjs.ErrDenied.
//
// Messages are deleted one by one, by sequence, and not purged: a role that may purge a task's reports may purge every
// stream, because the broker's permissions do not distinguish streams of one name pattern; so the streams of records
// refuse to be purged.
type Records struct{ Conn *natsjs.Conn }

var _ retention.Broker = Records{}

const (
	listed     = 512 // records asked for at a time
	removing   = 64  // deletions under way at a time
	apiMsgGet  = "$JS.API.STREAM.MSG.GET."
	apiMsgDel  = "$JS.API.STREAM.MSG.DELETE."
	listingAge = time.Minute // after which the broker forgets a listing that nobody ended
)

// Retain runs retention.Sweep on a broker; it tries again if a cluster has no leader, until ctx ends.
func Retain(ctx context.Context, c *natsjs.Conn, task stream.Task, age time.Duration) (out retention.Removed,
	err error) {
	var removed uint64
	err = c.Admin().Retry(ctx, "retain "+string(task), natsjs.Leaderless, func() (err error) {
		out, err = retention.Sweep(ctx, Records{c}, task, age)
		removed += out.Records
		return err
	})
	out.Records = removed
	return out, err
}

// Newest implements retention.Broker.
func (r Records) Newest(ctx context.Context, task stream.Task) (retention.Record, error) {
	var answer struct {
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	err := r.Conn.Admin().Request(ctx, apiMsgGet+task.Name(stream.Rounds),
		map[string]string{"last_by_subj": task.Rounds()}, &answer)
	if e := (*jetstream.APIError)(nil); errors.As(err, &e) && e.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		err = fmt.Errorf("newest round of %s: %w", task, stream.ErrNotFound)
	}
	return retention.Record{Subject: answer.Message.Subject, Sequence: answer.Message.Sequence,
		Time: answer.Message.Time.UTC()}, err
}

// Records implements retention.Broker, by a consumer of headers that goes with the listing.
func (r Records) Records(ctx context.Context, task stream.Task, s stream.Stream) iter.Seq2[retention.Record, error] {
	return func(yield func(retention.Record, error) bool) {
		list, forget, err := r.list(ctx, task.Name(s))
		if s == stream.Joins && errors.Is(err, jetstream.ErrStreamNotFound) {
			return // of a task of one operator
		}
		if err != nil {
			yield(retention.Record{}, err)
			return
		}
		defer forget()
		for all := uint64(0); ; {
			batch, err := list.FetchNoWait(listed)
			if err != nil {
				yield(retention.Record{}, fmt.Errorf("list records of %s: %w", task.Name(s), err))
				return
			}
			n := 0
			for m := range batch.Messages() {
				n++
				meta, err := m.Metadata()
				if err != nil {
					yield(retention.Record{}, fmt.Errorf("list records of %s: %w", task.Name(s), err))
					return
				}
				if !yield(retention.Record{Subject: m.Subject(), Sequence: meta.Sequence.Stream, Time: meta.Timestamp.UTC()}, nil) {
					return
				}
			}
			if err := batch.Error(); err != nil && !errors.Is(err, jetstream.ErrNoMessages) {
				yield(retention.Record{}, fmt.Errorf("list records of %s: %w", task.Name(s), err))
				return
			}
			if all += uint64(n); n == 0 {
				if err := r.whole(ctx, task.Name(s), list, all); err != nil {
					yield(retention.Record{}, fmt.Errorf("list records of %s: %w", task.Name(s), err))
				}
				return
			}
		}
	}
}

// whole returns an error unless so many messages are all that a listing has: the client library takes a broker that
// does not answer for the end of the listing.
func (r Records) whole(ctx context.Context, name string, list jetstream.Consumer, got uint64) error {
	var info *jetstream.ConsumerInfo
	ask := apiConsumerInfo + name + "." + list.CachedInfo().Name
	err := r.Conn.Admin().Call(ctx, ask, func(ctx context.Context) (err error) {
		info, err = list.Info(ctx)
		return err
	})
	if err == nil && (info.NumPending > 0 || info.Delivered.Consumer != got) {
		err = fmt.Errorf("%d came of %d", got, info.Delivered.Consumer+info.NumPending)
	}
	return err
}

func (r Records) list(ctx context.Context, name string) (list jetstream.Consumer, forget func(), err error) {
	err = r.Conn.Admin().Call(ctx, apiConsumerCreate+name, func(ctx context.Context) (err error) {
		list, err = r.Conn.Admin().JetStream().CreateConsumer(ctx, name, jetstream.ConsumerConfig{
			DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MaxDeliver: 1,
			InactiveThreshold: listingAge, MemoryStorage: true, Replicas: 1})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list records of %s: %w", name, err)
	}
	return list, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = r.Conn.Admin().JetStream().DeleteConsumer(ctx, name, list.CachedInfo().Name) // or it goes by itself
	}, nil
}

// Remove implements retention.Broker.
func (r Records) Remove(ctx context.Context, task stream.Task, s stream.Stream, sequences []uint64) error {
	if s != stream.Rounds && s != stream.Attempts && s != stream.Joins && s != stream.Batches {
		return fmt.Errorf("remove records of %v: %w", s, stream.ErrRefused)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(removing)
	for _, n := range sequences {
		group.Go(func() error { return r.remove(ctx, task.Name(s), n) }) // after the first error it fails at once
	}
	return group.Wait()
}

// Codes of the server that say that a message is not there any more.
const (
	noSequence   = 10043
	deleteFailed = 10057 // also of what an earlier deletion took
)

func (r Records) remove(ctx context.Context, name string, sequence uint64) error {
	request := struct {
		Sequence uint64 `json:"seq"`
		NoErase  bool   `json:"no_erase"` // the records are public
	}{sequence, true}
	err := r.Conn.Admin().Request(ctx, apiMsgDel+name, request, new(struct{}))
	if e := (*jetstream.APIError)(nil); errors.As(err, &e) &&
		(e.ErrorCode == noSequence || e.ErrorCode == jetstream.JSErrCodeMessageNotFound || e.ErrorCode == deleteFailed &&
			e.Description == "no message found") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete message %d of %s: %w", sequence, name, err)
	}
	return nil
}
