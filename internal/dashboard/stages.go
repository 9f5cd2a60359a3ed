package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
)

const (
	// statusPatience bounds the wait for a stage's answer.
	statusPatience = 2 * time.Second
	// statusSize bounds its answer, in bytes.
	statusSize = 64 << 10
)

// stages polls the stage processes of a task at their `ingest shuffle --http`. Their answers are only shown.
type Stages struct {
	task   string
	urls   []string // of their /status
	names  []string // host, port and path
	client *http.Client
}

// NewStages returns the stages at the addresses of one or more stage processes, such as http://stage:9091.
func NewStages(task string, addresses []string) (*Stages, error) {
	s := &Stages{task: task, client: &http.Client{Timeout: statusPatience,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	for i, a := range addresses {
		u, err := url.Parse(a)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			// It may have a password, and is not quoted.
			return nil, fmt.Errorf("stage address %d: want http://HOST:PORT of an ingest shuffle --http", i+1)
		}
		s.urls, s.names = append(s.urls, strings.TrimSuffix(u.String(), "/")+"/status"),
			append(s.names, u.Host+strings.TrimSuffix(u.Path, "/"))
	}
	if len(s.urls) == 0 {
		return nil, errors.New("stage address: none is given")
	}
	return s, nil
}

// Tell asks all stages for their status and reports the answers to the board.
func (s *Stages) Tell(ctx context.Context, b *Board) {
	answers := make([]Answer, len(s.urls))
	var wait sync.WaitGroup
	for i, u := range s.urls {
		wait.Go(func() {
			answers[i].Name = s.names[i]
			answers[i].Status, answers[i].Silence = s.ask(ctx, u)
		})
	}
	wait.Wait()
	if ctx.Err() == nil {
		b.stages(answers...)
	}
}

func (s *Stages) ask(ctx context.Context, address string) (out obs.StageStatus, why Silence) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return out, noAnswer
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return out, noAnswer
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, statusSize+1))
	if err != nil {
		return out, noAnswer
	}
	switch {
	case resp.StatusCode != http.StatusOK || len(body) > statusSize || json.Unmarshal(body, &out) != nil || out.Task == "":
		return obs.StageStatus{}, notAStage
	case out.Task != s.task:
		return obs.StageStatus{}, anotherTask
	}
	return out, ""
}
