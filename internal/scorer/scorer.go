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
	"strings"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/task"
)

// Bounds of what is read.
const (
	maxBody   = 8 << 20   // bytes of a body
	maxEvents = 10_000    // of a body
	maxAnswer = 64 << 20  // bytes of an answer
	maxRoom   = 256 << 20 // bytes of all bodies and responses at one time
)

// A Source reads a snapshot, in any format that model.Parse reads. An error that wraps ErrNotYet at the first reading
// means that it is worth reading again.
type Source struct {
	Name string // for messages: a file, a folder, a URL
	Read func(context.Context) ([]byte, error)
}

// ErrNotYet means that a source has no model so far, such as a learner that has not been started.
var ErrNotYet = errors.New("no model yet")

// An Observer has a function for each kind of event. Each may be nil, and may be called by several goroutines.
type Observer struct {
	Request func(status int, took time.Duration)   // a request was answered
	Events  func(task string, scored, invalid int) // of one body
	Model   func(s model.Snapshot, read time.Time) // a model is served from now on
	Failed  func(task string)                      // a model could not be read, or not be taken; empty: its first
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
	room  room
	mux   *http.ServeMux
}

// A slot has the newest model of a source.
type slot struct {
	Source
	now     atomic.Pointer[loaded] // nil: none so far
	failure atomic.Pointer[string] // why the last reading failed; nil: it did not
}

// task names the task of the slot's model; empty where there is none so far.
func (at *slot) task() string {
	if m := at.now.Load(); m != nil {
		return m.Task
	}
	return ""
}

// A loaded is a model made ready. It does not change.
type loaded struct {
	model.Snapshot
	doc     []byte // the snapshot as JSON
	of      []byte // the declaration, in its canonical form
	tag     string // its ETag, without quotes
	digest  [sha256.Size]byte
	asIs    model.Predictor // for events in the format of the task
	objects model.Predictor // for events that are JSON objects; as asIs where events are vectors
	tables  model.Predictor // for csv with a header; not valid where events are vectors
	vectors bool
}

// New reads every source once, and refuses two models of one task. A source that has no model yet is asked again by
// Follow.
func New(ctx context.Context, c Config) (*Scorer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Scorer{Config: c, room: newRoom()}
	for _, source := range c.Sources {
		s.slots = append(s.slots, &slot{Source: source})
	}
	for _, at := range s.slots {
		switch err := s.refresh(ctx, at); {
		case err != nil && !errors.Is(err, ErrNotYet):
			return nil, fmt.Errorf("%s: %w", at.Name, err)
		case err != nil:
			s.failed(at, err)
		}
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
			if err := s.refresh(ctx, at); err != nil && ctx.Err() == nil {
				s.failed(at, err)
			}
		}
	}
}

// refresh reads a source once more.
func (s *Scorer) refresh(ctx context.Context, at *slot) error {
	before := at.now.Load()
	next, err := at.read(ctx, before)
	if err == nil && next != nil {
		err = s.fits(at, before, next)
	}
	if err != nil {
		return err
	}
	if at.failure.Swap(nil) != nil {
		s.Logger.Info("the source can be read again", "source", at.Name, "task", at.task())
	}
	if next != nil {
		s.take(at, before, next)
	}
	return nil
}

// fits refuses a model of another task than the one before it, or of a task that another source has.
func (s *Scorer) fits(at *slot, before, next *loaded) error {
	if before != nil && next.Task != before.Task {
		return fmt.Errorf("the model is of task %q, and this source of task %q", next.Task, before.Task)
	}
	for _, other := range s.slots {
		if other != at && other.task() == next.Task {
			return fmt.Errorf("%s and %s: both are models of task %q: want one of each", other.Name, at.Name, next.Task)
		}
	}
	return nil
}

// failed logs why a source could not be read, unless the last reading failed for the same reason.
func (s *Scorer) failed(at *slot, err error) {
	why := err.Error()
	if old := at.failure.Swap(&why); old == nil || *old != why {
		what := "no newer model could be read: the one before is served"
		if at.now.Load() == nil {
			what = "no model could be read so far: it is tried again"
		}
		s.Logger.Warn(what, "source", at.Name, "task", at.task(), "every", s.Every, "error", err)
	}
	if s.Observer.Failed != nil {
		s.Observer.Failed(at.task())
	}
}

// take serves a model from now on.
func (s *Scorer) take(at *slot, before, m *loaded) {
	at.now.Store(m)
	s.Logger.Info("serving a model", "task", m.Task, "round", m.Round, "model_version", m.ModelVersion, "source", at.Name)
	if before != nil && !bytes.Equal(before.of, m.of) {
		s.Logger.Warn("the declaration of the task has changed under its name: events are read by the new one",
			"task", m.Task, "before", before.TaskHash, "now", m.TaskHash, "source", at.Name)
	}
	if s.Observer.Model != nil {
		s.Observer.Model(m.Snapshot, time.Now())
	}
}

// Ready returns an error while a source cannot be read.
func (s *Scorer) Ready() error {
	for _, at := range s.slots {
		switch failed := at.failure.Load() != nil; {
		case failed && at.now.Load() == nil:
			return fmt.Errorf("%s: no model so far; the log says why", at.Name)
		case failed:
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
	if m.of, err = m.asIs.Spec().Canonical(); err != nil {
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

// find returns the newest model of a task, or nil; more reports whether a source has no model yet.
func (s *Scorer) find(name string) (m *loaded, more bool) {
	for _, at := range s.slots {
		switch now := at.now.Load(); {
		case now == nil:
			more = true
		case now.Task == name:
			return now, false
		}
	}
	return nil, more
}

// tasks names the tasks, for refusals.
func (s *Scorer) tasks() string {
	var names []string
	for _, at := range s.slots {
		if name := at.task(); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
