package procs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// askEvery is the time between two checks of a condition.
const askEvery = 50 * time.Millisecond

// A fatalError ends waiting.
type fatalError struct{ error }

// until tries until there is no error, or a fatal one, or ctx ends.
func until(ctx context.Context, what string, try func() error) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		err := try()
		var fatal fatalError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &fatal):
			return fmt.Errorf("wait for %s: %w", what, fatal.error)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// ask asks the server's monitoring, and decodes its answer into doc unless that is nil.
func (s *Server) ask(ctx context.Context, path string, doc any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.monitor+path, nil)
	if err != nil {
		return err
	}
	request.Close = true // the server is killed; nothing is worth keeping open
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s: %s", path, s.Name, answer.Status)
	}
	if doc == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(doc)
}
