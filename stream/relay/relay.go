package relay

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/stream"
)

// Defaults of Config.
const (
	DefaultPerAddress = 64
	DefaultWaiting    = 20_000
)

// MaxWait is the longest time for which a request may ask to wait.
const MaxWait = 55 * time.Second

// brokerTime is the time that a broker has to answer.
const brokerTime = 10 * time.Second

// A Broker has the ports of a broker that a relay needs.
type Broker interface {
	stream.Reader
	stream.ReportWriter
	stream.PlaceAsker
}

// An Observer has functions that a relay calls on events. Any of them may be nil, and they may be called from any
// goroutine.
type Observer struct {
	Report  func(stream.AckStatus) // what the broker said of a report that was forwarded; Unknown: nothing
	Place   func(answered bool)    // whether the stage answered a request for places that was forwarded
	Refused func(status int)       // a request that was refused before anything was forwarded
}

// A Config configures a Relay. Broker is required.
type Config struct {
	Broker Broker
	Access httpaccess.Access // who may use it; it says nothing about people
	// Origins lists the origins of pages that may use the relay in a browser, such as https://app.example; none: no page.
	Origins []string
	// Tasks lists the tasks that are served; none: every task that the broker has.
	Tasks []stream.Task
	// AddressHeader names a header, set by a trusted proxy, that has the client's address as its last element; empty: the
	// address is the connection's.
	AddressHeader string
	PerAddress    int // requests of one address that wait, and posts, and reads by name, that are under way; default DefaultPerAddress
	Waiting       int // requests that wait in all; default DefaultWaiting
	Observer      Observer
	Logger        *slog.Logger // default: none
}

// A ConfigError means that a Config is invalid, whatever the broker does.
type ConfigError struct{ why string }

func (e *ConfigError) Error() string { return "relay: " + e.why }

func wrong(format string, args ...any) error { return &ConfigError{fmt.Sprintf(format, args...)} }

// Validate returns a ConfigError if c is invalid.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

func (c Config) withDefaults() (Config, error) {
	for _, origin := range c.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return c, wrong("origin %q: want scheme and host of a page, such as https://app.example", origin)
		}
	}
	for _, task := range c.Tasks {
		if _, err := stream.ParseTask(string(task)); err != nil {
			return c, wrong("%v", err)
		}
	}
	if c.PerAddress < 0 || c.Waiting < 0 {
		return c, wrong("PerAddress %d, Waiting %d: want no negative bounds", c.PerAddress, c.Waiting)
	}
	c.PerAddress = cmp.Or(c.PerAddress, DefaultPerAddress)
	c.Waiting = cmp.Or(c.Waiting, DefaultWaiting)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}

// A Relay serves the interface. Its methods may be called from any goroutine.
type Relay struct {
	Config
	mux       *http.ServeMux
	polls     bounds
	posts     bounds
	reads     bounds        // by name
	bodyTime  time.Duration // see post.go; a test may have less
	followers *followers

	mu      sync.Mutex
	silence stream.Trouble // of what was forwarded; guarded by mu

	crowded atomic.Bool // it was logged that one address has too many requests
}

// New makes a relay.
func New(c Config) (*Relay, error) {
	c, err := c.withDefaults()
	if err == nil && c.Broker == nil {
		err = wrong("Broker: want one")
	}
	if err != nil {
		return nil, err
	}
	r := &Relay{Config: c, bodyTime: bodyTime, followers: newFollowers(c),
		polls: newBounds(c.PerAddress, c.Waiting), posts: newBounds(c.PerAddress, maxMessages),
		reads: newBounds(c.PerAddress, maxMessages)}
	r.mux = r.Access.Mux(r.table(), "relay", r.refuse)
	return r, nil
}

// Close ends the requests that wait and whatever the relay does by itself, and waits for that.
func (r *Relay) Close() { r.followers.close() }

// Waiting returns the number of requests that wait for something new.
func (r *Relay) Waiting() int { return r.polls.count() }
