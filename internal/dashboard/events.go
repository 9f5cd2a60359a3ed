package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// An update is the data of one event: what of the page has changed since the last one on the same stream.
type update struct {
	Build string            `json:"build"`
	Title string            `json:"title"`
	Parts map[string]string `json:"parts"` // HTML by the id of the element that it fills
}

// beat bounds the silence of a stream of events: after it, a comment shows each side that the other is there.
const beat = 15 * time.Second

// events serves a stream of updates. Each stream looks at the board by itself and remembers what it has sent, so that
// a slow reader misses moments and holds up nobody.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many pages are open: close one", http.StatusServiceUnavailable)
		return
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{page: p, by: byOf(r.FormValue("by")), w: w, flush: control.Flush, sent: map[string]string{},
		extend: func() error {
			return control.SetWriteDeadline(time.Now().Add(p.options.Patience))
		}}
	if s.write([]byte("retry: 2000\n\n")) != nil || s.update(r.Context()) != nil {
		return
	}
	tick := time.NewTicker(p.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-p.done:
			_ = s.update(r.Context()) // how it ended
			return
		case <-tick.C:
			if s.update(r.Context()) != nil {
				return
			}
		}
	}
}

// A stream is one reader of events.
type stream struct {
	page   *page
	by     By
	w      http.ResponseWriter
	flush  func() error
	extend func() error // the deadline of the next write
	sent   map[string]string
	title  string
	last   time.Time // of a write
}

// update writes what has changed, if anything has.
func (s *stream) update(ctx context.Context) error {
	v := s.page.view(ctx, s.by)
	u := update{Build: v.Build, Title: v.Title, Parts: map[string]string{}}
	changed := false // beyond the time of day
	for _, part := range v.parts() {
		html, err := s.page.render(part.template, part.data)
		if err != nil {
			return err
		}
		if was, ok := s.sent[part.id]; ok && was == string(html) {
			continue
		}
		u.Parts[part.id], s.sent[part.id] = string(html), string(html)
		changed = changed || part.id != "asof"
	}
	if !changed && s.title == v.Title && time.Since(s.last) < beat {
		return nil
	}
	s.title = v.Title
	data, err := json.Marshal(u) // of one line
	if err != nil {
		return err
	}
	return s.write(bytes.Join([][]byte{[]byte("data: "), data, []byte("\n\n")}, nil))
}

func (s *stream) write(b []byte) error {
	if err := s.extend(); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	s.last = time.Now()
	return s.flush()
}
