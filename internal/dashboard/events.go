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

// pace is how many bytes of curves a stream sends in a second: those of a task with a long history, whose rounds are short, come every few
// seconds.
const pace = 32 << 10

// curves are the parts that grow with the history.
var curves = map[string]bool{"validation": true, "gradient": true, "reports": true, "latency": true, "norm": true}

// beat is how long a stream may be silent: a comment then shows both sides that the other is there.
const beat = 15 * time.Second

// events is a stream of updates. Each stream looks at the board by itself and remembers what it has sent, so that a slow
// reader misses moments and holds up nobody.
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
	s := stream{page: p, by: byOf(r.FormValue("by")), w: w, flush: control.Flush, sent: map[string]string{}, extend: func() error {
		return control.SetWriteDeadline(time.Now().Add(p.options.Patience))
	}}
	if s.write([]byte("retry: 2000\n\n")) != nil || s.update(r.Context(), false) != nil {
		return
	}
	tick := time.NewTicker(p.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-p.done:
			_ = s.update(r.Context(), true) // how it ended
			return
		case <-tick.C:
			if s.update(r.Context(), false) != nil {
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
	rests  time.Time // no curves until then
}

// update writes what has changed, if anything has; the last one also curves that would have to wait.
func (s *stream) update(ctx context.Context, last bool) error {
	v := s.page.view(ctx, s.by)
	u := update{Build: v.Build, Title: v.Title, Parts: map[string]string{}}
	changed := false // beyond the time of day
	rests, drawn := !last && time.Now().Before(s.rests), 0
	for _, name := range parts {
		if curves[name] && rests {
			continue
		}
		html, err := s.page.render(name, v)
		if err != nil {
			return err
		}
		if was, ok := s.sent[name]; ok && was == string(html) {
			continue
		}
		u.Parts[name], s.sent[name] = string(html), string(html)
		changed = changed || name != "asof"
		if curves[name] {
			drawn += len(html)
		}
	}
	if drawn > 0 {
		s.rests = time.Now().Add(time.Duration(drawn) * time.Second / pace)
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
