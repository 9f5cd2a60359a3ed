package relay

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// getNamed writes the record of a name, as the broker has it now.
func (r *Relay) getNamed(w http.ResponseWriter, q *http.Request) {
	leave, ok := r.enter(&r.reads, w, q)
	if !ok {
		return
	}
	defer leave()
	name := strings.TrimPrefix(q.URL.Path, relayhttp.Path+q.PathValue("task")+"/")
	m, ok := r.read(w, q, name)
	if !ok {
		return
	}
	hash := relayhttp.HashOf(m.Data)
	etag := `"` + hex.EncodeToString(hash[:]) + `"`
	h := w.Header()
	h.Set("ETag", etag)
	h.Set(relayhttp.Sequence, strconv.FormatUint(m.Sequence, 10))
	if !m.Time.IsZero() {
		h.Set(relayhttp.Time, strconv.FormatInt(m.Time.UnixNano(), 10))
	}
	keep := "no-cache"
	if name == "lease" { // the same bytes again have another time
		keep = "no-store"
	} else if matches(q.Header.Get("If-None-Match"), etag) {
		h.Set("Cache-Control", keep)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	record(w, m.Data, keep)
}

// getHashed writes the record of a name if it has the hash of the path.
func (r *Relay) getHashed(w http.ResponseWriter, q *http.Request) {
	name := q.URL.Query().Get("name")
	hash, err := hex.DecodeString(q.PathValue("hash"))
	if err != nil || len(hash) != len(relayhttp.Hash{}) || name == "lease" ||
		q.PathValue("hash") != hex.EncodeToString(hash) {
		r.refuse(w, http.StatusBadRequest, "want the SHA-256 of a record as 64 lower-case hexadecimal digits, and its name")
		return
	}
	leave, ok := r.enter(&r.reads, w, q)
	if !ok {
		return
	}
	defer leave()
	m, ok := r.read(w, q, name)
	if !ok {
		return
	}
	if relayhttp.HashOf(m.Data) != relayhttp.Hash(hash) {
		r.refuse(w, http.StatusNotFound, "the broker has another record under that name")
		return
	}
	record(w, m.Data, "public, max-age=31536000, immutable")
}

// read reads the record of a name from the broker. If ok is false, it has written the response.
func (r *Relay) read(w http.ResponseWriter, q *http.Request, name string) (m stream.Message, ok bool) {
	task, err := stream.ParseTask(q.PathValue("task"))
	if err == nil && !r.followers.serves(task) {
		err = errNotServed
	}
	if err != nil {
		r.refuse(w, http.StatusNotFound, err.Error())
		return m, false
	}
	subject, err := relayhttp.Subject(task, name)
	if err != nil {
		r.refuse(w, http.StatusNotFound, err.Error())
		return m, false
	}
	ctx, cancel := context.WithTimeout(q.Context(), brokerTime)
	defer cancel()
	if m, err = r.Broker.Get(ctx, subject); err != nil {
		r.unreadable(w, name, err)
		return m, false
	}
	return m, true
}

// unreadable writes the response if a record could not be read.
func (r *Relay) unreadable(w http.ResponseWriter, name string, err error) {
	switch {
	case errors.Is(err, stream.ErrNotFound), errors.Is(err, errNoTask):
		r.refuse(w, http.StatusNotFound, relayhttp.None+name)
	case errors.Is(err, errNotServed):
		r.refuse(w, http.StatusNotFound, err.Error())
	case errors.Is(err, errBusy), errors.Is(err, errClosed):
		r.refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		r.refuse(w, http.StatusServiceUnavailable, "the broker does not answer")
	}
}

// matches reports whether an If-None-Match header names a tag.
func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == etag || part == "*" {
			return true
		}
	}
	return false
}
