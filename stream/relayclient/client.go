package relayclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// Defaults and limits of Config.
const (
	defaultTimeout = 15 * time.Second
	defaultWait    = 50 * time.Second
	defaultPosts   = 32
	maxWait        = 55 * time.Second
)

// Bounds of the bytes of a response that are read, so that no responder can fill a device's memory.
const (
	maxRecord = 64 << 20               // of a record: the largest that a broker may be configured for
	maxOther  = 2 * relayhttp.MaxPlace // of all else, with a refusal in words
)

// A Config names a relay and bounds what is asked of it. URL is required.
type Config struct {
	URL   string // http:// or https://, a host, and a path if a proxy has the relay below one
	Token string // of a relay that requires one; empty: none
	// TLS replaces the configuration of TLS, such as to believe an authority of one's own; nil: the system's.
	TLS *tls.Config
	// HTTP makes the requests, such as through a proxy that keeps no addresses; nil: connections of the client's own.
	HTTP    http.RoundTripper
	Timeout time.Duration // of a request that does not wait for something new; default 15 s
	// Wait bounds the wait of a request for something new, 1 s to 55 s; default 50 s. A proxy in front must not cut it.
	Wait  time.Duration
	Posts int          // requests with reports that are under way at one time; default 32
	Log   *slog.Logger // default: none
}

func (c Config) withDefaults() (Config, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return c, errors.New("relay: the address is no URL: want https://host or http://host:port")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return c, fmt.Errorf("relay %s: want https://host or http://host:port", u.Redacted())
	case u.User != nil:
		return c, errors.New("relay: the address has a user: want the token by itself")
	case c.Timeout < 0 || c.Posts < 0:
		return c, fmt.Errorf("relay: Timeout %v, Posts %d: want no negative bounds", c.Timeout, c.Posts)
	case c.Wait != 0 && (c.Wait < time.Second || c.Wait > maxWait):
		return c, fmt.Errorf("relay: Wait %v: want 1s to %v", c.Wait, maxWait)
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	c.Timeout, c.Wait = cmp.Or(c.Timeout, defaultTimeout), cmp.Or(c.Wait, defaultWait)
	c.Posts = cmp.Or(c.Posts, defaultPosts)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c, nil
}

// Validate refuses a configuration that no relay can be reached with.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

// A Client is a stream.Transport for all tasks of a relay. Its methods may be called from any goroutine.
type Client struct {
	config  Config
	http    *http.Client
	posts   chan struct{} // one taken for each post that is under way
	reached atomic.Bool   // the last request was answered
	spread  atomic.Int64  // nanoseconds, see Spread
	records recent

	ctx     context.Context // of all watches
	cancel  context.CancelFunc
	working sync.WaitGroup
	mu      sync.Mutex // guards closed, so that no watch begins after Close
	closed  bool
}

var (
	_ stream.Transport = (*Client)(nil)
	_ stream.Spreader  = (*Client)(nil)
)

// New makes a client. It sends nothing: a relay that is not there yet is found later.
func New(c Config) (*Client, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if c.HTTP == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig, t.DisableCompression, t.MaxIdleConnsPerHost = c.TLS, true, c.Posts
		c.HTTP = t
	}
	client := &Client{config: c, posts: make(chan struct{}, c.Posts)}
	client.http = &http.Client{Transport: c.HTTP,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	client.ctx, client.cancel = context.WithCancel(context.Background())
	return client, nil
}

// String names the relay by its address.
func (c *Client) String() string { return "the relay " + c.config.URL }

// Close ends all watches and connections.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.working.Wait()
	c.http.CloseIdleConnections()
}

// Connected reports whether the relay answered the last request.
func (c *Client) Connected() bool { return c.reached.Load() }

// Limits returns nothing: a relay does not tell its broker's limits, and refuses reports by the task.
func (c *Client) Limits() stream.Limits { return stream.Limits{} }

// Spread implements stream.Spreader: after a lost connection each try waits for a time drawn below it.
func (c *Client) Spread(over time.Duration) { c.spread.Store(int64(over)) }

// An answer is a response from the relay, or from a proxy in front of it.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// A statusError is an answer that does not answer the request.
type statusError struct {
	status int
	text   string
}

// Error quotes the beginning of the answer, which is public.
func (e *statusError) Error() string {
	return fmt.Sprintf("no answer from the relay: HTTP status %d: %q", e.status, e.text)
}

// do makes a request below the task's path. It fails if that takes longer than within, or if the answer has more than
// most bytes.
func (c *Client) do(ctx context.Context, within time.Duration, most int64, method string, task stream.Task, path string,
	body []byte) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	q, err := http.NewRequestWithContext(limited, method, c.config.URL+relayhttp.Path+string(task)+"/"+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	q.Header.Set("User-Agent", "panlearn")
	if method == http.MethodPost {
		q.Header.Set("Content-Type", relayhttp.ContentType)
	} else {
		q.Body, q.GetBody, q.ContentLength = nil, nil, 0
		if !strings.HasPrefix(path, relayhttp.Records+"/") {
			q.Header.Set("Cache-Control", "no-cache") // the record that has the name now
		}
	}
	if c.config.Token != "" {
		q.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	r, err := c.http.Do(q)
	var a answer
	if err == nil {
		a.status, a.header = r.StatusCode, r.Header
		a.body, err = io.ReadAll(io.LimitReader(r.Body, most+1))
		r.Body.Close()
		if err == nil && int64(len(a.body)) > most {
			err = errors.New("the answer is too large")
		}
	}
	if err != nil {
		err = c.lost(ctx, err)
	}
	c.reached.Store(err == nil && a.status < http.StatusInternalServerError)
	return a, err
}

// lost returns the error of a request that broke off: the context's if the caller ended it, otherwise a lost connection.
func (c *Client) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.ctx.Err() != nil:
		return fmt.Errorf("%w: the client is closed", stream.ErrDisconnected)
	}
	var wrapped *url.Error // which quotes the whole address
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no answer in time") // of this request, not of the caller's time
	}
	return fmt.Errorf("%w by the relay: %w", stream.ErrDisconnected, err)
}

// wrong returns the error for an answer with an unexpected status.
func (c *Client) wrong(a answer) error {
	const most = 200
	text := string(a.body)
	if c.config.Token != "" && strings.Contains(text, c.config.Token) { // a proxy that repeats what it was sent
		text = ""
	}
	return &statusError{a.status, text[:min(len(text), most)]}
}
