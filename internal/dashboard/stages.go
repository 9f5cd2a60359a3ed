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
	// statusPatience bounds the wait for a process's answer.
	statusPatience = 2 * time.Second
	// statusSize bounds its answer, in bytes. One stage's answer is about 1.5 kB.
	statusSize = 4 << 20
	// statusFresh is the age up to which an answer about one task serves the next page too.
	statusFresh = 500 * time.Millisecond
	// statusFreshMany bounds the age of an answer about many tasks, because each task has a page that needs it.
	statusFreshMany = 4 * time.Second
)

// Stages polls stage processes at their `ingest shuffle --http`. Each has the stage of one task or, with --tasks, the
// stages of many. Their answers are only shown. Any number of pages may use it.
type Stages struct {
	urls   []string // of their /status
	names  []string // host, port and path
	client *http.Client

	mu      sync.Mutex // held while the processes are asked
	asked   time.Time
	answers []answers // of each process
}

// answers holds the stages of one process, by task, or the reason why there is none.
type answers struct {
	of   map[string]obs.StageStatus
	none Silence
}

// NewStages returns the stages at the addresses of one or more stage processes, such as http://stage:9091.
func NewStages(addresses []string) (*Stages, error) {
	s := &Stages{client: &http.Client{Timeout: statusPatience,
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

// Tell passes the answers of a task's stages to its board. It polls the stages, unless the last answers are fresh.
func (s *Stages) Tell(ctx context.Context, b *Board) {
	all := make([]Answer, len(s.urls))
	for i, a := range s.ask(ctx) {
		all[i] = Answer{Name: s.names[i], Silence: a.none}
		if status, has := a.of[b.config.Task.Name]; has {
			all[i].Status = status
		} else if a.none == "" {
			all[i].Silence = anotherTask
		}
	}
	if ctx.Err() == nil {
		b.stages(all...)
	}
}

// fresh returns the age up to which answers are not requested again.
func (s *Stages) fresh() time.Duration {
	for _, a := range s.answers {
		if len(a.of) > 1 {
			return statusFreshMany
		}
	}
	return statusFresh
}

// ask returns the answers of all processes, not older than statusFresh, or statusFreshMany if they are about many
// tasks.
func (s *Stages) ask(ctx context.Context) []answers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers != nil && time.Since(s.asked) < s.fresh() {
		return s.answers
	}
	out := make([]answers, len(s.urls))
	var wait sync.WaitGroup
	for i, u := range s.urls {
		wait.Go(func() { out[i].of, out[i].none = s.one(ctx, u) })
	}
	wait.Wait()
	if ctx.Err() == nil { // otherwise another page asks again
		s.answers, s.asked = out, time.Now()
	}
	return out
}

// one polls a process.
func (s *Stages) one(ctx context.Context, address string) (out map[string]obs.StageStatus, why Silence) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, noAnswer
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, noAnswer
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, statusSize+1))
	if err != nil {
		return nil, noAnswer
	}
	var answer struct {
		obs.StageStatus
		Tasks []obs.StageStatus `json:"tasks"` // of a process of many tasks, which has nothing else
	}
	if resp.StatusCode != http.StatusOK || len(body) > statusSize || json.Unmarshal(body, &answer) != nil ||
		(answer.Task == "") == (answer.Tasks == nil) {
		return nil, notAStage
	}
	out = map[string]obs.StageStatus{}
	for _, one := range answer.Tasks {
		out[one.Task] = one
	}
	if answer.Tasks == nil {
		out[answer.Task] = answer.StageStatus
	}
	return out, ""
}
