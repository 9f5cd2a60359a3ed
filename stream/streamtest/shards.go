package streamtest

import (
	"testing"

	"github.com/panlearn/panlearn/stream"
)

// queueShards says that the reader of a shard gets that shard's reports of every attempt, the reader without one those
// that are not sharded, nobody anybody else's, and that a purge of an attempt takes its shards along.
func queueShards(t *testing.T, b Broker) {
	task, ctx := b.Task(t), within(t)
	readers := []stream.ReportReader{b.Reader(t, task), b.ShardReader(t, task, 1), b.ShardReader(t, task, 2)}
	send := func(attempt uint64, shard uint32, first int) {
		all := reports(task, 1, attempt, first, 10)
		for i := range all {
			all[i].Subject = task.ReportTo(1, stream.Attempt(attempt), shard)
		}
		publish(t, b, all)
	}
	for shard := range uint32(3) {
		send(1, shard, 100*int(shard))
		send(2, shard, 100*int(shard)+10)
	}
	for shard, r := range readers {
		for _, d := range take(t, r, 20, true) {
			a, err := stream.ParseSubject(d.Subject)
			if err != nil || a.Shard != uint32(shard) {
				t.Errorf("the reader of shard %d got %s: %v", shard, d.Subject, err)
			}
		}
	}
	send(3, 2, 300)
	send(3, 0, 310)
	send(33, 2, 320)
	if err := readers[1].Purge(ctx, task.ReportShard(1, 3, 2)); err == nil {
		t.Error("the purge of one shard: no error")
	}
	if err := readers[1].Purge(ctx, task.Report(1, 3)); err != nil {
		t.Fatal(err)
	}
	for _, d := range take(t, readers[2], 10, true) {
		if d.Subject != task.ReportShard(1, 33, 2) {
			t.Errorf("%s came after its purge", d.Subject)
		}
	}
	for _, r := range readers {
		nothing(t, b, task, r)
	}
}
