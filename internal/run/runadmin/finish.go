package runadmin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// FinishConfig configures `learner finish`. An empty Broker.URL refuses a folder that no learner holds, unless the
// task has ended.
type FinishConfig struct {
	AtRest
	Now bool // give up a round that has no batch, instead of waiting for it
}

// ErrNoLearner means that nobody runs the task of a state folder, and that there is no broker to end it at.
var ErrNoLearner = errors.New("no learner holds the state folder")

// Finish ends the task of a state folder and returns its last status: through the learner that runs it, or else in its
// place. A task that has ended stays as it is. Until ctx is done it waits for an open round, unless c.Now is set.
func Finish(ctx context.Context, c FinishConfig) (statedir.Status, error) {
	s, err := statedir.StatusOf(ctx, c.StateDir)
	if err != nil || s.Ended && c.Broker.URL == "" {
		return s, err
	}
	running, err := requestFinish(ctx, c.StateDir, c.Now)
	if statedir.Ended(err) { // the learner, while it was asked: perhaps with the task
		if s, err = statedir.StatusOf(ctx, c.StateDir); err != nil || s.Ended {
			return s, err
		}
		running = false
	}
	switch {
	case err != nil:
		return s, err
	case running:
		defer c.say(s)()
		return untilEnded(ctx, c.StateDir)
	case c.Broker.URL == "":
		return s, ErrNoLearner
	}
	defer c.say(s)()
	if err := c.alone(ctx); err != nil {
		return s, err
	}
	return statedir.StatusOf(ctx, c.StateDir)
}

// When a wait for the end is logged, first and then again.
const (
	sayFirst = 2 * time.Second
	sayAgain = time.Minute
)

// say reports, until stop is called, what Finish waits for. The number of users in a round is known to its stage
// alone.
func (c FinishConfig) say(s statedir.Status) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(sayFirst)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
			}
			text := fmt.Sprintf(
				"waiting for the outcome of round %d, which is announced: its stage releases it when its users are there, or with the minimum at its deadline. "+
					"How many are missing, the stage's /status and its log say; more rows (ingest publish) fill it", s.Round+1)
			if c.Now {
				text = fmt.Sprintf("giving up round %d, unless its batch is there", s.Round+1)
			} else {
				text += "; learner finish --now gives the round up, which stays charged"
			}
			c.Logger.Warn(text, "task", s.Task)
			timer.Reset(sayAgain)
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// alone runs the learner of a folder that nobody holds, until the task has ended.
func (c FinishConfig) alone(ctx context.Context) error {
	finish := service.NewFinisher()
	finish.Finish(c.Now)
	open := func() (*pebblestore.Store, error) { return statedir.Open(ctx, c.StateDir, c.Logger) }
	return c.service(ctx, open, finish, func(s *service.Service) error {
		var refused *state.BudgetError
		if err := s.Run(ctx); err != nil && !errors.As(err, &refused) { // refused, End is there
			return err
		}
		return nil
	})
}

// untilEnded waits for the commit of the end.
func untilEnded(ctx context.Context, dir string) (statedir.Status, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := statedir.StatusOf(ctx, dir)
		if err != nil || s.Ended {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// requestFinish asks the learner that holds a folder to finish; running is false if no process replies.
func requestFinish(ctx context.Context, dir string, now bool) (running bool, err error) {
	conn, err := statedir.Dial(ctx, dir)
	if err != nil {
		return false, ctx.Err()
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	target := "http://control/v1/finish"
	if now {
		target += "?now"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, http.NoBody)
	if err != nil {
		return true, fmt.Errorf("ask the learner: %w", err)
	}
	resp, err := statedir.ClientOn(conn).Do(req)
	if err != nil {
		return true, fmt.Errorf("ask the learner: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16)) // the status says enough
		return true, fmt.Errorf("the learner answers %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return true, nil
}
