package relayclient

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// Get implements stream.Reader. The record is the one that the broker has now: nothing on the way may answer with one
// that it kept.
func (c *Client) Get(ctx context.Context, subject string) (stream.Message, error) {
	if _, _, err := stream.CheckGet(subject); err != nil {
		return stream.Message{}, err
	}
	task, name, ok := relayhttp.Name(subject)
	if !ok {
		return stream.Message{}, fmt.Errorf("get %s: %w: a relay has what devices read", subject, stream.ErrRefused)
	}
	m, err := c.named(ctx, task, name)
	if err != nil {
		return stream.Message{}, fmt.Errorf("get %s: %w", subject, err)
	}
	m.Subject = subject
	return m, nil
}

func (c *Client) named(ctx context.Context, task stream.Task, name string) (m stream.Message, err error) {
	if err := ctx.Err(); err != nil {
		return m, err
	}
	a, err := c.do(ctx, c.config.Timeout, maxRecord, http.MethodGet, task, name, nil)
	switch {
	case err != nil:
		return m, err
	case a.none(name):
		return m, stream.ErrNotFound
	case a.status != http.StatusOK:
		return m, c.wrong(a)
	}
	hash := relayhttp.HashOf(a.body)
	sequence, err := strconv.ParseUint(a.header.Get(relayhttp.Sequence), 10, 64)
	tag := strings.TrimPrefix(a.header.Get("ETag"), "W/") // as proxies write it that pack bodies
	if err != nil || sequence == 0 || tag != `"`+hex.EncodeToString(hash[:])+`"` {
		return m, errors.New("the answer of the relay is no record: its sequence or hash is missing or another")
	}
	m.Sequence, m.Data = sequence, a.body
	if stored, err := strconv.ParseInt(a.header.Get(relayhttp.Time), 10, 64); err == nil {
		m.Time = time.Unix(0, stored)
	}
	return m, nil
}

// none reports whether the relay answered that there is no record of that name.
func (a answer) none(name string) bool {
	return a.status == http.StatusNotFound && string(a.body) == relayhttp.None+name
}

// Latest implements stream.Reader.
func (c *Client) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	task, _, err := stream.CheckLatest(pattern)
	if err != nil {
		return stream.Message{}, err
	}
	m, err := c.latest(ctx, task, pattern)
	if err != nil {
		return stream.Message{}, fmt.Errorf("latest %s: %w", pattern, err)
	}
	return m, nil
}

func (c *Client) latest(ctx context.Context, task stream.Task, pattern string) (stream.Message, error) {
	path, round := "rounds/"+relayhttp.Latest, stream.Round(0)
	if pattern != task.Rounds() {
		// The pattern was checked: with a number for its star it is the subject of an Open.
		a, err := stream.ParseSubject(pattern[:len(pattern)-1] + "1")
		if err != nil {
			return stream.Message{}, err
		}
		path, round = fmt.Sprintf("opens/%d/%s", a.Round, relayhttp.Latest), a.Round
	}
	s, err := c.state(ctx, task, path, "")
	if err != nil {
		return stream.Message{}, err
	}
	mark, subject := s.Round, task.Round(s.Round.Round)
	if round > 0 {
		mark, subject = s.Open, task.Open(s.Open.Round, s.Open.Attempt)
	}
	if mark.Sequence == 0 {
		return stream.Message{}, stream.ErrNotFound
	}
	data, err := c.hashed(ctx, subject, mark.Hash)
	return stream.Message{Subject: subject, Sequence: mark.Sequence, Data: data}, err
}

// state requests the names of the newest records; with a tag, it waits until they change.
func (c *Client) state(ctx context.Context, task stream.Task, path, seen string) (s relayhttp.State, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	within := c.config.Timeout
	if seen != "" {
		within += c.config.Wait
		path += fmt.Sprintf("?wait=%d&seen=%s", int(c.config.Wait.Seconds()), seen)
	}
	a, err := c.do(ctx, within, maxOther, http.MethodGet, task, path, nil)
	switch {
	case err != nil:
		return s, err
	case a.none("task"):
		return s, stream.ErrNotFound
	case a.status != http.StatusOK:
		return s, c.wrong(a)
	}
	return relayhttp.ParseState(a.body)
}

// hashed reads a record by its hash, which anything on the way may have kept. A record that is not there any more is
// one that cannot be read now.
func (c *Client) hashed(ctx context.Context, subject string, hash relayhttp.Hash) ([]byte, error) {
	if data, ok := c.records.get(subject, hash); ok {
		return data, nil
	}
	task, name, ok := relayhttp.Name(subject)
	if !ok {
		return nil, fmt.Errorf("%w: no record of a task", stream.ErrRefused)
	}
	path := relayhttp.Records + "/" + hex.EncodeToString(hash[:]) + "?name=" + url.QueryEscape(name)
	a, err := c.do(ctx, c.config.Timeout, maxRecord, http.MethodGet, task, path, nil)
	switch {
	case err != nil:
		return nil, err
	case a.status != http.StatusOK:
		return nil, c.wrong(a)
	case relayhttp.HashOf(a.body) != hash:
		return nil, errors.New("the record has another hash than the one that was asked for")
	}
	c.records.put(subject, hash, a.body)
	return bytes.Clone(a.body), nil
}

// kept is the number of records that a client caches, the last that it requested.
const kept = 8

// recent keeps the records that were read last by their hash: a device requests the same ones again and again.
type recent struct {
	mu   sync.Mutex
	next int
	of   [kept]struct {
		subject string
		hash    relayhttp.Hash
		data    []byte
	}
}

func (r *recent) get(subject string, hash relayhttp.Hash) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.of {
		if one.subject == subject && one.hash == hash {
			return append([]byte{}, one.data...), true
		}
	}
	return nil, false
}

func (r *recent) put(subject string, hash relayhttp.Hash, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := &r.of[r.next]
	one.subject, one.hash, one.data = subject, hash, data
	r.next = (r.next + 1) % kept
}
