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
	// statusPatience is how long a stage may take to answer.
	statusPatience = 2 * time.Second
	// statusSize bounds its answer, in bytes.
	statusSize = 64 << 10
)

// Stages are the stage processes of a task as `ingest shuffle --http` shows them. What they say is only shown.
type Stages struct {
	task   string
	urls   []string
	client *http.Client
}

// NewStages takes the addresses of one or more stage processes, such as http://stage:9091.
func NewStages(task string, addresses []string) (*Stages, error) {
	s := &Stages{task: task, client: &http.Client{Timeout: statusPatience, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	for _, a := range addresses {
		u, err := url.Parse(a)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("stage address %q: want http://HOST:PORT of an ingest shuffle --http", a)
		}
		s.urls = append(s.urls, strings.TrimSuffix(u.String(), "/")+"/status")
	}
	if len(s.urls) == 0 {
		return nil, errors.New("stage address: none is given")
	}
	return s, nil
}

// Tell asks all of them and tells the board: of the one that works, or one that stands by, with the reports of all that
// answered. If none did, the stage is silent.
func (s *Stages) Tell(ctx context.Context, b *Board) {
	answers := make([]obs.StageStatus, len(s.urls))
	silences := make([]Silence, len(s.urls))
	var wait sync.WaitGroup
	for i, u := range s.urls {
		wait.Go(func() { answers[i], silences[i] = s.ask(ctx, u) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return
	}
	var best *obs.StageStatus
	reports := map[string]uint64{}
	counted := false
	for i := range answers {
		if silences[i] != "" {
			continue
		}
		if a := &answers[i]; best == nil || a.Works && !best.Works || a.Works && a.Cohort > best.Cohort {
			best = a
		}
		counted = counted || answers[i].Reports != nil
		for reason, n := range answers[i].Reports {
			reports[known(reason)] += n
		}
	}
	if best == nil {
		b.StageSilent(silences[0])
		return
	}
	if best.Reports = nil; counted {
		best.Reports = reports
	}
	b.Stage(*best)
}

func (s *Stages) ask(ctx context.Context, address string) (out obs.StageStatus, why Silence) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return out, NoAnswer
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return out, NoAnswer
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, statusSize+1))
	if err != nil {
		return out, NoAnswer
	}
	switch {
	case resp.StatusCode != http.StatusOK || len(body) > statusSize || json.Unmarshal(body, &out) != nil || out.Task == "":
		return obs.StageStatus{}, NotAStage
	case out.Task != s.task:
		return obs.StageStatus{}, AnotherTask
	}
	return out, ""
}
