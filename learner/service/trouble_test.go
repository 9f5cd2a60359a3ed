package service

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTroubleIsToldNowAndThen: of a broker that does not answer for 65 s a learner that asks every second
// reports it three times, and once that it answers again.
func TestTroubleIsToldNowAndThen(t *testing.T) {
	people := newCast(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, people, 1)
		var log bytes.Buffer
		c := w.config()
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.new(c).Run(ctx) }()
		time.Sleep(10 * time.Second)
		w.broker.Disconnect()
		time.Sleep(65 * time.Second)
		w.broker.Connect()
		time.Sleep(10 * time.Second)
		stop()
		<-done
		for want, n := range map[string]int{"cannot read yet": 3, "level=WARN": 3, "the broker answers again": 1} {
			if got := strings.Count(log.String(), want); got != n {
				t.Errorf("%d times %q, want %d:\n%s", got, want, n, log.String())
			}
		}
	})
}
