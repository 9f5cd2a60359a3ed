package natsjs

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// ShardDurable is the name of the consumer of one shard number, from 1.
func ShardDurable(shard uint32) string { return fmt.Sprintf("shard-%d", shard) }

// errOldQueue is for streams that were provisioned when one consumer took all reports: a work queue hands a report to one
// consumer only.
var errOldQueue = errors.New("the consumer " + Durable + " takes the reports of all shards: delete it and provision the task again")

// ShardReader answers the work queue of the reports of one shard number, of all attempts of a task. Its consumer is made
// where it is missing and these credentials may; else an administrator makes it: see ProvisionShards.
func (c *Conn) ShardReader(ctx context.Context, task stream.Task, shard uint32) (*Reader, error) {
	if _, err := stream.ParseTask(string(task)); err != nil || shard < 1 || shard > stream.MaxShards {
		return nil, fmt.Errorf("reader of task %q, shard %d: %w", task, shard, stream.ErrRefused)
	}
	name := task.Name(stream.Reports)
	consumer, err := c.shardConsumer(ctx, name, shard)
	if code(err) == codeConsumerNotFound {
		if err = c.provisionShard(ctx, task, shard); err == nil {
			consumer, err = c.shardConsumer(ctx, name, shard)
		}
	}
	if errors.Is(err, ErrDenied) {
		err = fmt.Errorf("%w: an administrator makes it: learner provision --workers", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reader of %s, shard %d: %w", task, shard, err)
	}
	return &Reader{conn: c, task: task, consumer: consumer}, nil
}

func (c *Conn) shardConsumer(ctx context.Context, name string, shard uint32) (consumer jetstream.Consumer, err error) {
	err = c.call(ctx, apiConsumerInfo+name+"."+ShardDurable(shard), func(ctx context.Context) error {
		consumer, err = c.js.Consumer(ctx, name, ShardDurable(shard))
		return err
	})
	return consumer, err
}

// ProvisionShards makes the consumers of the first shard numbers, as many as a stage has workers, where they are missing:
// for roles that may not make their own. The task's streams must be there.
func ProvisionShards(ctx context.Context, c *Conn, task stream.Task, workers int) error {
	if workers < 0 || workers > stream.MaxShards {
		return fmt.Errorf("provision %s: %d workers, want at most %d", task, workers, stream.MaxShards)
	}
	for shard := uint32(1); workers > 1 && int(shard) <= workers; shard++ {
		if err := c.provisionShard(ctx, task, shard); err != nil {
			return fmt.Errorf("provision shard %d of %s: %w", shard, task, err)
		}
	}
	return nil
}

// provisionShard makes a shard's consumer with the settings of the one that takes reports without a shard.
func (c *Conn) provisionShard(ctx context.Context, task stream.Task, shard uint32) error {
	name := task.Name(stream.Reports)
	have, err := c.consumerInfo(ctx, name, Durable)
	if err != nil {
		return err
	}
	if have.Config.FilterSubject == task.Reports() {
		return errOldQueue
	}
	config := have.Config
	config.Durable, config.Name, config.FilterSubject = ShardDurable(shard), "", task.ReportsOf(shard)
	err = c.call(ctx, apiConsumerCreate+name+"."+ShardDurable(shard)+"."+config.FilterSubject, func(ctx context.Context) error {
		_, err := c.js.CreateConsumer(ctx, name, config)
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerExists) {
		return nil
	}
	return err
}
