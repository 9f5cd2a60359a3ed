package httpgateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"golang.org/x/time/rate"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// Defaults of Config.
const (
	DefaultRate       = 200
	defaultMaxBody    = 1 << 20
	DefaultMaxWaiting = 1 << 16
)

// A Config configures a Gateway. Device is required, and one of Token and NoToken.
type Config struct {
	// Device is one to which events are submitted, see device.Open and device.Settings.Submits.
	Device *device.Device
	// Token must be in every request, as "Authorization: Bearer TOKEN"; it has at least httpaccess.MinToken bytes.
	Token string
	// NoToken takes requests of every process on this machine. The listener must be on loopback.
	NoToken bool

	// Base is the path below which the interface is served, without a slash at its end. Default "/v1".
	Base string

	Rate float64 // events a second that are taken on average, and at once; default DefaultRate
	// bytes of a request that are held, or as many as the declared events of a person may have; the event of a larger one
	// is invalid, as is one larger than its declared shape. Default defaultMaxBody
	MaxBody int64
	// MaxWaiting bounds the events without an outcome, which wait for a round or are in a round that is not closed. A
	// round that needs more events than that from this gateway does not fill. Default DefaultMaxWaiting.
	MaxWaiting int

	Logger *slog.Logger // default: none
}

func (c Config) withDefaults() (Config, error) {
	if c.Device == nil {
		return c, errors.New("gateway: Device: want one to which events are submitted")
	}
	if c.NoToken && c.Token != "" {
		return c, errors.New("gateway: Token and NoToken exclude each other")
	}
	c.Base = cmp.Or(c.Base, "/v1")
	c.Rate = cmp.Or(c.Rate, DefaultRate)
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, DefaultMaxWaiting)
	switch {
	case !(c.Rate > 0 && c.Rate <= 1e6):
		return c, fmt.Errorf("gateway: Rate %v: want a number in (0, 1e6]", c.Rate)
	case c.MaxBody < 1 || c.MaxBody > 1<<30:
		return c, fmt.Errorf("gateway: MaxBody %d: want 1 to 2^30", c.MaxBody)
	case c.MaxWaiting < 1 || c.MaxWaiting > 1<<20:
		return c, fmt.Errorf("gateway: MaxWaiting %d: want 1 to 2^20", c.MaxWaiting)
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}

// A Gateway publishes the events that are posted to it. Its methods may be called from any goroutine.
type Gateway struct {
	Config
	access  httpaccess.Access
	limiter *rate.Limiter

	ctx     context.Context // of all publishes: they outlive their requests
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	pending map[string]*pending // by key, guarded by mu
	closed  bool                // guarded by mu
	known   device.Shape        // guarded by mu: zero until the task is agreed to
}

// pending is an event that this gateway has taken and the device has not answered.
type pending struct {
	ticket  device.Ticket
	looked  chan struct{} // closed after known is written
	known   bool          // an event of the key took part before, or the device has one of somebody else
	offered chan struct{} // closed after err is written
	err     error
}

// New makes a gateway.
func New(c Config) (*Gateway, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	var access httpaccess.Access
	if !c.NoToken {
		if access, err = httpaccess.Token(c.Token); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
	}
	g := &Gateway{Config: c, access: access, pending: make(map[string]*pending),
		limiter: rate.NewLimiter(rate.Limit(c.Rate), int(math.Ceil(c.Rate)))}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g, nil
}

// Close gives up the events that wait, of which charged ones stay charged, and waits until the client has none of this
// gateway. Requests after it are answered with an error.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.working.Wait()
}

var (
	errClosed = errors.New("the gateway is stopping")
	errFull   = errors.New("as many events wait as may")
)

// use takes the shape of the agreed task.
func (g *Gateway) use(a *consent.Agreement) error {
	if g.shape() != (device.Shape{}) {
		return nil
	}
	shape, err := device.ShapeOf(a)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = shape
	return nil
}

// shape returns the shape of the task's events, after ready.
func (g *Gateway) shape() device.Shape {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known
}

// take hands an event to the device when it is due, unless an event of the same key is under way; then both get one
// answer. If the device has no room for it yet, it waits here, and counts. first reports whether no event of the key
// was known before.
func (g *Gateway) take(p posting) (taken *pending, first bool, err error) {
	taken, first, err = g.enter(p)
	if first {
		<-taken.looked
		first = !taken.known
	}
	return taken, first, err
}

// enter is take as far as this gateway knows keys: those that are under way.
func (g *Gateway) enter(p posting) (taken *pending, first bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false, errClosed
	}
	if known := g.pending[p.key]; known != nil {
		return known, false, nil
	}
	if len(g.pending) >= g.MaxWaiting {
		return nil, false, errFull
	}
	taken = &pending{ticket: p.ticket, looked: make(chan struct{}), offered: make(chan struct{})}
	g.pending[p.key] = taken
	g.working.Go(func() {
		taken.known, taken.err = p.ticket.Known()
		close(taken.looked)
		if taken.err == nil {
			taken.err = device.Until(g.ctx, p.due)
		}
		if taken.err == nil {
			taken.err = p.ticket.Submit(g.ctx)
		}
		close(taken.offered)
		if taken.err == nil {
			_, _ = taken.ticket.Outcome(g.ctx) // until then it takes a place
		}
		g.mu.Lock()
		delete(g.pending, p.key)
		g.mu.Unlock()
	})
	return taken, true, nil
}
