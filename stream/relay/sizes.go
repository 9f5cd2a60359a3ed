package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// resize is the shortest time between two readings of a Task for the lengths of its reports.
const resize = time.Second

// sizesOf returns the lengths that a message of reports may have, by the bytes of a Task. Its signature is not looked at,
// for the broker has it: a wrong one refuses reports before they are published, and no more.
func sizesOf(record []byte) ([]int, error) {
	var envelope wire.Signed
	var task wire.Task
	if err := stream.Unmarshal(record, &envelope); err != nil {
		return nil, err
	}
	if err := stream.Unmarshal(envelope.Body, &task); err != nil {
		return nil, err
	}
	return manifest.ReportSizes(&task)
}

// takes reports whether the reports of the task may have that length, and returns the largest length. Where they may
// not by what is known, the Task is read again, at most once in a while: the broker may have another one now.
func (f *follower) takes(ctx context.Context, length int) (ok bool, most int, err error) {
	f.sizing.Lock()
	defer f.sizing.Unlock()
	if !f.fits(length) && time.Since(f.sized) >= resize {
		sizes, err := f.all.sizes(ctx, f.task)
		if f.sizes, f.unsized, f.sized = sizes, err, time.Now(); err != nil && ctx.Err() != nil {
			f.sized = time.Time{} // only this request has ended
		}
	}
	if f.unsized != nil {
		return false, 0, f.unsized
	}
	return f.fits(length), f.sizes[len(f.sizes)-1], nil
}

func (s *followers) readSizes(ctx context.Context, task stream.Task) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerTime)
	defer cancel()
	m, err := s.broker.Get(ctx, task.Task())
	if err != nil {
		return nil, err
	}
	sizes, err := sizesOf(m.Data)
	if err == nil && len(sizes) == 0 {
		err = errors.New("it has no phases")
	}
	if err != nil {
		return nil, fmt.Errorf("the broker's Task: %w", err)
	}
	return sizes, nil
}

func (f *follower) fits(length int) bool {
	_, found := slices.BinarySearch(f.sizes, length)
	return found
}
