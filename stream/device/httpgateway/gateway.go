package httpgateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// Defaults of Config.
const (
	DefaultRate       = 200
	defaultMaxBody    = 1 << 20
	DefaultMaxWaiting = 1 << 16
)

// Source is the required value of the client's Config.Source: it pins the store to events that come with a key of
// their own, so that no user takes part again as the row of a file.
const Source = "http"

// A Publisher has the methods of a device.Device that a gateway uses.
type publisher interface {
	Agreement(ctx context.Context) (*consent.Agreement, error)
	PublishFunc(ctx context.Context, key participation.Key, e func() convex.Example) (device.Outcome, error)
	PublishBlockFunc(ctx context.Context, key participation.Key, rows int, work func() []convex.Example) (device.Outcome,
		error)
}

// A Config configures a Gateway. Device and Store are required, and one of Token and NoToken.
type Config struct {
	Device publisher
	Store  *Store // the client's
	// Token must be in every request, as "Authorization: Bearer TOKEN"; it has at least httpaccess.MinToken bytes.
	Token string
	// NoToken takes requests of every process on this machine. The listener must be on loopback.
	NoToken bool

	Rate float64 // events a second that are taken on average, and at once; default DefaultRate
	// bytes of a request that are held, or as many as the declared events of a person may have; the event of a larger one
	// is invalid, as is one larger than its declared shape. Default defaultMaxBody
	MaxBody int64
	// MaxWaiting bounds the events without an outcome: those that wait for a round, and those of a round that is
	// not closed. If a round takes more than that from this gateway, it does not fill. Default DefaultMaxWaiting.
	MaxWaiting int

	Logger *slog.Logger // default: none
}

func (c Config) withDefaults() (Config, error) {
	if c.Device == nil || c.Store == nil {
		return c, errors.New("gateway: Device and Store: want both")
	}
	if c.NoToken && c.Token != "" {
		return c, errors.New("gateway: Token and NoToken exclude each other")
	}
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = DefaultMaxWaiting
	}
	switch {
	case !(c.Rate > 0 && c.Rate <= 1e6):
		return c, fmt.Errorf("gateway: Rate %v: want a number in (0, 1e6]", c.Rate)
	case c.MaxBody < 1 || c.MaxBody > 1<<30:
		return c, fmt.Errorf("gateway: MaxBody %d: want 1 to 2^30", c.MaxBody)
	case c.MaxWaiting < 1 || c.MaxWaiting > 1<<20:
		return c, fmt.Errorf("gateway: MaxWaiting %d: want 1 to 2^20", c.MaxWaiting)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// A Gateway publishes the events that are posted to it. Its methods may be called from any goroutine.
type Gateway struct {
	Config
	access  httpaccess.Access
	limiter *rate.Limiter
	mapper  mapper
	unfit   atomic.Uint64 // events that did not fit

	ctx     context.Context // of all publishes: they outlive their requests
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	pending map[participation.Key]*pending // guarded by mu
	closed  bool                           // guarded by mu
}

// pending is an event that the client has and has not answered.
type pending struct {
	done    chan struct{} // closed after outcome and err are written
	outcome device.Outcome
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
	g := &Gateway{Config: c, access: access, pending: make(map[participation.Key]*pending),
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

// publish hands an event to the client, unless an event with that key is under way, whose answer is then this one's
// too.
func (g *Gateway) publish(key participation.Key, send func(context.Context) (device.Outcome, error)) (*pending, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	if p := g.pending[key]; p != nil {
		return p, nil
	}
	if len(g.pending) >= g.MaxWaiting {
		return nil, errFull
	}
	p := &pending{done: make(chan struct{})}
	g.pending[key] = p
	g.working.Go(func() {
		p.outcome, p.err = send(g.ctx)
		g.mu.Lock()
		delete(g.pending, key)
		g.mu.Unlock()
		close(p.done)
	})
	return p, nil
}
