package scorer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/task"
)

// Bounds of what is read.
const (
	MaxBody   = 8 << 20 // bytes of a body
	MaxEvents = 10_000  // of a body
	MaxAtOnce = 32      // bodies that are read at one time
)

// A Source reads a snapshot, in any format that model.Parse reads.
type Source struct {
	Name string // for messages: a file, a folder, a URL
	Read func(context.Context) ([]byte, error)
}

// An Observer is told what happens. Each function may be nil, and may be called by several goroutines.
type Observer struct {
	Request func(status int, took time.Duration)   // a request was answered
	Events  func(task string, scored, invalid int) // of one body
	Model   func(s model.Snapshot, read time.Time) // a model is served from now on
	Failed  func(task string)                      // the model of a task could not be read, or not be taken
}

// A Config configures a Scorer.
type Config struct {
	Sources []Source
	// Every separates the readings of a source; at least MinEvery.
	Every    time.Duration
	Access   httpaccess.Access
	Logger   *slog.Logger
	Observer Observer
}

// MinEvery is the shortest time between two readings.
const MinEvery = 100 * time.Millisecond

// Validate refuses a configuration without a source, or that reads all the time.
func (c Config) Validate() error {
	switch {
	case len(c.Sources) == 0:
		return errors.New("want a model to serve")
	case c.Every < MinEvery:
		return fmt.Errorf("models are read every %v: want at least %v", c.Every, MinEvery)
	}
	return nil
}

// A Scorer serves models. It is an http.Handler, safe for concurrent use.
type Scorer struct {
	Config
	slots []*slot
	busy  chan struct{}
	mux   *http.ServeMux
}

// A slot has the newest model of a source.
type slot struct {
	Source
	task   string
	now    atomic.Pointer[loaded]
	failed atomic.Bool // the last reading failed
}

// A loaded is a model made ready. It does not change.
type loaded struct {
	model.Snapshot
	doc     []byte // the snapshot as JSON
	tag     string // its ETag, without quotes
	digest  [sha256.Size]byte
	asIs    model.Predictor // for events in the format of the task
	objects model.Predictor // for events that are JSON objects; as asIs where events are vectors
	tables  model.Predictor // for csv with a header; not valid where events are vectors
	vectors bool
}

// New reads every source once, and refuses two models of one task.
func New(ctx context.Context, c Config) (*Scorer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Scorer{Config: c, busy: make(chan struct{}, MaxAtOnce)}
	for _, source := range c.Sources {
		at := &slot{Source: source}
		m, err := at.read(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source.Name, err)
		}
		at.task = m.Task
		if i := slices.IndexFunc(s.slots, func(o *slot) bool { return o.task == at.task }); i >= 0 {
			return nil, fmt.Errorf("%s and %s: both are models of task %q: want one of each", s.slots[i].Name, source.Name, at.task)
		}
		s.take(at, m)
		s.slots = append(s.slots, at)
	}
	s.mux = s.routes()
	return s, nil
}

// Follow reads the sources again and again until ctx is done.
func (s *Scorer) Follow(ctx context.Context) error {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, at := range s.slots {
			s.refresh(ctx, at)
		}
	}
}

// refresh reads a source once more.
func (s *Scorer) refresh(ctx context.Context, at *slot) {
	now := at.now.Load()
	next, err := at.read(ctx, now)
	if err == nil && next != nil && next.Task != at.task {
		err = fmt.Errorf("the model is of task %q, and this source of task %q", next.Task, at.task)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if !at.failed.Swap(true) {
			s.Logger.Warn("no newer model could be read: the one before is served", "source", at.Name, "task", at.task, "error", err)
		}
		if s.Observer.Failed != nil {
			s.Observer.Failed(at.task)
		}
	default:
		if at.failed.Swap(false) {
			s.Logger.Info("the source can be read again", "source", at.Name, "task", at.task)
		}
		if next != nil {
			s.take(at, next)
		}
	}
}

// take serves a model from now on.
func (s *Scorer) take(at *slot, m *loaded) {
	at.now.Store(m)
	s.Logger.Info("serving a model", "task", m.Task, "round", m.Round, "model_version", m.ModelVersion, "source", at.Name)
	if s.Observer.Model != nil {
		s.Observer.Model(m.Snapshot, time.Now())
	}
}

// Ready returns an error while a source cannot be read.
func (s *Scorer) Ready() error {
	for _, at := range s.slots {
		if at.failed.Load() {
			return fmt.Errorf("%s: no newer model can be read; the log says why", at.Name)
		}
	}
	return nil
}

// read returns the model of the source; nil where it is the same as before.
func (at *slot) read(ctx context.Context, before *loaded) (*loaded, error) {
	doc, err := at.Read(ctx)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(doc)
	if before != nil && before.digest == digest {
		return nil, nil
	}
	return load(doc, digest)
}

func load(doc []byte, digest [sha256.Size]byte) (*loaded, error) {
	s, err := model.Parse(doc)
	if err != nil {
		return nil, err
	}
	m := &loaded{Snapshot: s, digest: digest}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return nil, err
	}
	m.doc = text.Bytes()
	tag := sha256.Sum256(m.doc)
	m.tag = hex.EncodeToString(tag[:16])
	if m.asIs, err = unlabelled(s, ""); err != nil {
		return nil, err
	}
	if m.vectors = m.asIs.Spec().Events.Format.Vectors(); m.vectors {
		m.objects = m.asIs
		return m, nil
	}
	if m.objects, err = unlabelled(s, task.JSONL); err != nil {
		return nil, err
	}
	// by way of objects, because csv that is not the task's own format has a header and commas
	if s.Declaration, err = m.objects.Spec().Canonical(); err != nil {
		return nil, err
	}
	m.tables, err = unlabelled(s, task.CSV)
	return m, err
}

// unlabelled returns a model for events of a format without labels.
func unlabelled(s model.Snapshot, format task.Format) (model.Predictor, error) {
	p, err := model.NewPredictor(s, format)
	if err == nil {
		p.Features = p.Features.Unlabelled()
	}
	return p, err
}

// find returns the newest model of a task, or nil.
func (s *Scorer) find(name string) *loaded {
	for _, at := range s.slots {
		if at.task == name {
			return at.now.Load()
		}
	}
	return nil
}

// tasks names the tasks, for refusals.
func (s *Scorer) tasks() string {
	var names []string
	for _, at := range s.slots {
		names = append(names, at.task)
	}
	return strings.Join(names, ", ")
}
