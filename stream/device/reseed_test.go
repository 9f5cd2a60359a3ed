package device_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream/device/participation"
)

// Two machines that were cloned from one snapshot, in which a device waits for events, draw noise of their own: the
// generator is seeded again from the system before each chunk of reports. With one seed between them, the difference
// of two reports would be without noise.
func TestClonedDevicesDrawTheirOwnNoise(t *testing.T) {
	drawn := func(after uint64) (counts []byte) {
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 1, cohort: 40, deadline: time.Hour})
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			store := participation.NewMemoryStore()
			device := w.client(w.config(store))
			for i := range 31 {
				go func() { _, _ = device.Publish(ctx, participation.EventKey(fmt.Sprint(i)), example(1)) }()
				time.Sleep(known)
				synctest.Wait() // the device rests, so that its generator may change
				if i == 0 {     // the device knows the round, and has drawn in it; here the machine is cloned
					cryptotest.SetGlobalRandom(t, after)
					continue
				}
				records, err := store.Read([]participation.Key{participation.EventKey(fmt.Sprint(i))})
				must(t, err)
				if len(records[0].Draw.Counts) == 0 {
					t.Fatalf("event %d is %v", i, records[0].State)
				}
				counts = append(counts, records[0].Draw.Counts...)
			}
			must(t, device.Close())
		})
		return counts
	}
	one, other := drawn(2), drawn(3)
	if slices.Equal(one, other) {
		t.Errorf("two clones draw the same %d bytes", len(one))
	}
}
