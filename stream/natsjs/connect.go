package natsjs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// Defaults of ConnectConfig.
const (
	DefaultAckTimeout = 5 * time.Second
	DefaultMaxPending = 1024
)

// headerRoom is what our headers add to a message, rounded up: the broker counts them into its limit.
const headerRoom = 512

// ConnectConfig says how to reach a broker.
type ConnectConfig struct {
	URL         string // nats://host:port, tls://host:port; several separated by commas
	Name        string // of this client, in the broker's monitoring
	Creds       string // file with a user JWT and its seed; empty: none
	NKey        string // file with an NKey seed; empty: none
	TLSCA       string // file of PEM certificates that sign the broker's; empty: the system's
	TLSCert     string // file of this client's certificate; with TLSKey
	TLSKey      string
	InboxPrefix string // of reply subjects, so that roles cannot read each other's; empty: _INBOX

	AckTimeout time.Duration // wait for one acknowledgement or answer; 0: 5 s
	MaxPending int           // publishes that wait for an acknowledgement at one time; 0: 1024
	Log        *slog.Logger  // nil: discard
}

func (c *ConnectConfig) validate() error {
	if c.AckTimeout < 0 || c.MaxPending < 0 {
		return fmt.Errorf("ack timeout %v, max pending %d: want no negative limits", c.AckTimeout, c.MaxPending)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("tls certificate and key: want both or none")
	}
	if c.Creds != "" && c.NKey != "" {
		return errors.New("credentials and nkey: want one or none")
	}
	c.AckTimeout = or(c.AckTimeout, DefaultAckTimeout)
	c.MaxPending = or(c.MaxPending, DefaultMaxPending)
	c.Log = or(c.Log, slog.New(slog.DiscardHandler))
	return nil
}

// A Conn is a connection to a broker. It implements stream.Records and stream.ReportWriter for all tasks and is safe
// for concurrent use. It reconnects for ever; calls made meanwhile fail.
type Conn struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	config ConnectConfig
	slots  chan struct{} // one taken for each publish that waits for its acknowledgement

	mu       sync.Mutex // guards all below
	watchers map[chan struct{}]bool
	session  context.Context // ends when the connection is lost
	lose     context.CancelFunc
}

var (
	_ stream.Records      = (*Conn)(nil)
	_ stream.ReportWriter = (*Conn)(nil)
	_ stream.ReportReader = (*Reader)(nil)
)

// Connect connects to a broker. The first connection must succeed; later ones are tried for ever, with jitter.
func Connect(c ConnectConfig) (*Conn, error) {
	if c.URL == "" {
		return nil, errors.New("connect: url missing: want nats://host:port")
	}
	return connect(c)
}

func connect(c ConnectConfig, more ...nats.Option) (*Conn, error) {
	if err := c.validate(); err != nil {
		return nil, &ConfigError{fmt.Errorf("connect: %w", err)}
	}
	conn := &Conn{config: c, slots: make(chan struct{}, c.MaxPending), watchers: map[chan struct{}]bool{}}
	conn.begin()
	options, err := conn.options()
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("connect: %w", err)}
	}
	if conn.nc, err = nats.Connect(c.URL, append(options, more...)...); err != nil {
		if errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) {
			err = fmt.Errorf("%w (%w)", ErrUnreachable, err)
		}
		return nil, fmt.Errorf("connect to %s: %w", or(c.URL, "the embedded server"), err)
	}
	conn.js, err = jetstream.New(conn.nc, jetstream.WithDefaultTimeout(c.AckTimeout),
		jetstream.WithPublishAsyncTimeout(c.AckTimeout), jetstream.WithPublishAsyncMaxPending(c.MaxPending))
	if err != nil {
		conn.nc.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

func (c *Conn) options() ([]nats.Option, error) {
	log := c.config.Log
	options := []nats.Option{
		nats.Name(or(c.config.Name, "panlearn")),
		nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond), nats.ReconnectJitter(time.Second, 2*time.Second),
		nats.ReconnectBufSize(-1), // no writes that leave long after their caller gave up
		nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(c.config.AckTimeout),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("disconnected from the broker", "error", err)
			}
			c.end()
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			log.Info("connected to the broker again")
			c.begin()
			c.wakeAll()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("broker error", "error", err)
		}),
	}
	if c.config.InboxPrefix != "" {
		options = append(options, nats.CustomInboxPrefix(c.config.InboxPrefix))
	}
	if c.config.Creds != "" {
		options = append(options, nats.UserCredentials(c.config.Creds))
	}
	if c.config.NKey != "" {
		o, err := nats.NkeyOptionFromSeed(c.config.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey file %s: %w", c.config.NKey, err)
		}
		options = append(options, o)
	}
	if c.config.TLSCA != "" {
		options = append(options, nats.RootCAs(c.config.TLSCA))
	}
	if c.config.TLSCert != "" {
		options = append(options, nats.ClientCert(c.config.TLSCert, c.config.TLSKey))
	}
	return options, nil
}

func (c *Conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.lose = context.WithCancel(context.Background())
}

func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose()
}

// answerable answers a context for one request: it ends with ctx, after the ack timeout, and when the connection is
// lost on which the answer would come.
func (c *Conn) answerable(ctx context.Context) (context.Context, context.CancelFunc) {
	wait, cancel := context.WithTimeout(ctx, c.config.AckTimeout)
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	stop := context.AfterFunc(session, cancel)
	return wait, func() {
		stop()
		cancel()
	}
}

// Limits are what the broker accepts: its limit less the room for our headers.
func (c *Conn) Limits() stream.Limits {
	return stream.Limits{MaxPayload: max(0, int(c.nc.MaxPayload())-headerRoom)}
}

// Connected says whether there is a connection now: for health checks.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// Close closes the connection; publishes that wait become unknown. It may be called again.
func (c *Conn) Close() {
	c.nc.Close()
	c.end()
}
