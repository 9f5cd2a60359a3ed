package httpgateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// A batch is bounded by lines, and a question by keys.
const (
	maxLines = 1000
	maxKeys  = 10_000
	// maxQuestion bounds the body of a question: keys in quotes, of which each byte may be six
	maxQuestion = maxKeys * (6*256 + 4)
)

// A batchAnswer is the answer for one line of a batch. It has an outcome or an error.
type batchAnswer struct {
	Key     string `json:"key"` // empty: none can be read
	*answer        // nil where there is an error
	// why the event was not taken; empty: it was. Post it again under the same key.
	Error string `json:"error,omitempty"`
}

// A batchAnswers is the body of the answer to a batch, in the order of its lines.
type batchAnswers struct {
	Answers []batchAnswer `json:"answers"`
}

// postBatch publishes the events of a body, one a line, as posting each of them would. A line is what a request's body
// would be: a text that is no JSON ends with its line, so that whatever one event holds the others take part.
func (g *Gateway) postBatch(w http.ResponseWriter, r *http.Request) {
	asked, ok := g.begin(w, r, "application/x-ndjson")
	if !ok {
		return
	}
	lines, err := readLines(r.Body, g.held())
	if err != nil {
		fail(w, http.StatusBadRequest, "the body broke off, and nothing of it was taken")
		return
	}
	if len(lines) > maxLines {
		fail(w, http.StatusRequestEntityTooLarge, errLines)
		return
	}
	// All of them are offered together, at the end of a span that follows from their number alone.
	postings, out := make([]posting, len(lines)), batchAnswers{Answers: make([]batchAnswer, len(lines))}
	for i, line := range lines {
		of := &out.Answers[i]
		if of.Key = line.name(); of.Key == "" {
			of.Error = errNoKey.Error()
		} else if postings[i], err = g.posting(line, asked.begun); err != nil {
			of.fail(g.failed(err))
		}
	}
	shape := g.shape()
	due := spanAfter(asked.begun, time.Now(), span(int64(len(lines))*max(shape.Bytes, shape.Room)))
	ctx, cancel := g.within(r.Context(), asked.wait)
	defer cancel()
	var group sync.WaitGroup
	for i, p := range postings {
		of := &out.Answers[i]
		if of.Error != "" || of.answer != nil {
			continue
		}
		if err := g.limiter.Wait(r.Context()); err != nil { // the rate holds a batch up, and refuses none of it
			of.Error = "the request has ended"
			continue
		}
		p.due = due
		taken, first, err := g.take(p)
		if err != nil {
			of.fail(g.failed(err))
			continue
		}
		group.Go(func() {
			s, err := g.await(ctx, taken, asked.outcome)
			if err != nil {
				of.fail(g.failed(err))
				return
			}
			a := p.answer(s, first)
			of.answer = &a
		})
	}
	group.Wait()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	reply(w, http.StatusOK, out)
}

const errLines = "more than 1000 lines: post them in several batches"

// fail takes what failed returns.
func (a *batchAnswer) fail(s *standing, why string) {
	if a.Error = why; s != nil {
		a.answer = &answer{standing: *s}
	}
}

// failed returns how far an event is that has no outcome, or why nothing is known.
func (g *Gateway) failed(err error) (*standing, string) {
	var refused *consent.RefusedError
	switch {
	case errors.As(err, &refused):
		s := refusedBy(refused)
		return &s, ""
	case errors.Is(err, errFull):
		return nil, errFull.Error()
	}
	g.stopped(err)
	return nil, errStopping
}

// readLines reads the lines of a batch that hold something, of each no more than most bytes, or of a longer one its key.
func readLines(in io.Reader, most int64) (lines []*body, err error) {
	r := bufio.NewReaderSize(in, 64<<10)
	for len(lines) <= maxLines {
		line, some := newBody(most), false
		for {
			part, err := r.ReadSlice('\n')
			some = some || len(trimmed(part)) > 0
			_, _ = line.Write(trimmed(part))
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if some {
				lines = append(lines, line)
			}
			if err == io.EOF {
				return lines, nil
			}
			if err != nil {
				return nil, err
			}
			break
		}
	}
	return lines, nil
}

// trimmed returns a line, or the part of one, without its end.
func trimmed(part []byte) []byte {
	for len(part) > 0 && (part[len(part)-1] == '\n' || part[len(part)-1] == '\r') {
		part = part[:len(part)-1]
	}
	return part
}

// A question requests the outcomes of keys. Keys are in no URL, because logs keep URLs.
type question struct {
	Keys []string `json:"keys"`
}

// An outcomeAnswer is the answer for one key of a question. It has an outcome or an error.
type outcomeAnswer struct {
	Key       string `json:"key"`
	*standing        // nil where there is an error
	Error     string `json:"error,omitempty"` // why nothing is known; empty: something is
}

// An outcomeAnswers is the body of the answer to a question, in the order of its keys.
type outcomeAnswers struct {
	Answers []outcomeAnswer `json:"answers"`
}

// postOutcomes returns how far the events of keys are, or waits for their outcomes.
func (g *Gateway) postOutcomes(w http.ResponseWriter, r *http.Request) {
	asked, ok := g.begin(w, r, "application/json")
	if !ok {
		return
	}
	var q question
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err == nil {
		err = decode(text, &q)
	}
	if err != nil || q.Keys == nil || len(q.Keys) > maxKeys || halved(text) {
		fail(w, http.StatusBadRequest, "want one JSON object with the member keys alone, a list of at most 10000 strings "+
			"without half a surrogate pair")
		return
	}
	ctx, cancel := g.within(r.Context(), asked.wait)
	defer cancel()
	out := outcomeAnswers{Answers: make([]outcomeAnswer, len(q.Keys))}
	for i, key := range q.Keys { // one after the other: all wait for the same time
		of := &out.Answers[i]
		of.Key = key
		switch s, err := g.told(ctx, key); {
		case err == nil:
			of.standing = &s
		case errors.Is(err, device.ErrNoEvent):
			of.Error = err.Error()
		default:
			of.standing, of.Error = g.failed(err)
		}
	}
	reply(w, http.StatusOK, out)
}

// told returns what is known about a key when it is settled, or the context ends.
func (g *Gateway) told(ctx context.Context, key string) (standing, error) {
	g.mu.Lock()
	taken := g.pending[key]
	g.mu.Unlock()
	if taken != nil {
		return g.await(ctx, taken, true)
	}
	o, err := g.Device.Outcome(ctx, key)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && g.ctx.Err() == nil {
		return answerOf(o, false), nil
	}
	return answerOf(o, true), err
}
