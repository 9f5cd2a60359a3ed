package natsjs

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// Defaults of ConnectConfig.
const (
	defaultAckTimeout = 5 * time.Second
	DefaultMaxPending = 1024
	defaultPing       = 10 * time.Second
	defaultReconnect  = 500 * time.Millisecond
)

// DefaultMaxPayload is the most bytes of one message that a broker takes where its configuration says nothing.
const DefaultMaxPayload = 1 << 20

// HeaderRoom bounds the bytes that our headers add to a message: the broker counts them into its limit.
const HeaderRoom = 512

// ConnectConfig describes a broker and how to connect to it.
type ConnectConfig struct {
	// nats://[user:password@]host:port, tls://host:port; several separated by commas. Errors and logs hide passwords and
	// tokens
	URL     string
	Name    string // of this client, in the broker's monitoring
	Creds   string // file with a user JWT and its seed; empty: none
	NKey    string // file with an NKey seed; empty: none
	TLSCA   string // file of PEM certificates that sign the broker's; empty: the system's
	TLSCert string // file of this client's certificate; with TLSKey
	TLSKey  string
	// InboxPrefix is in front of reply subjects, so that users of one account cannot read each other's. Empty: _INBOX_
	// and the user's public key where Creds or NKey name one, else _INBOX.
	InboxPrefix string

	AckTimeout time.Duration // wait for one acknowledgement or answer; 0: 5 s
	MaxPending int           // publishes that wait for an acknowledgement at one time; 0: 1024
	// Ping is the interval at which the server is asked for a sign of life: a connection that no longer carries
	// anything is given up after two to three of them, and so is one that takes longer for a single message. 0: 10 s.
	Ping time.Duration
	// Reconnect is the pause between tries to connect again, to which up to four times as much is added by chance, or
	// what Spread says, so that many clients do not come back together. 0: 500 ms.
	Reconnect time.Duration
	Log       *slog.Logger // nil: discard
}

func (c *ConnectConfig) validate() error {
	if c.AckTimeout < 0 || c.MaxPending < 0 || c.Ping < 0 || c.Reconnect < 0 {
		return fmt.Errorf("ack timeout %v, max pending %d, ping %v, reconnect %v: want no negative limits", c.AckTimeout,
			c.MaxPending, c.Ping, c.Reconnect)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("tls certificate and key: want both or none")
	}
	if c.Creds != "" && c.NKey != "" {
		return errors.New("credentials and nkey: want one or none")
	}
	c.AckTimeout = cmp.Or(c.AckTimeout, defaultAckTimeout)
	c.MaxPending = cmp.Or(c.MaxPending, DefaultMaxPending)
	c.Ping = cmp.Or(c.Ping, defaultPing)
	c.Reconnect = cmp.Or(c.Reconnect, defaultReconnect)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return nil
}

// A Conn is a connection to a broker. It implements stream.Records, stream.Transport and stream.PlaceServer for all
// tasks and is safe for concurrent use. It reconnects for ever; calls made meanwhile fail.
type Conn struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	config ConnectConfig
	slots  chan struct{} // one taken for each publish that waits for its acknowledgement

	requests     *requests
	watchers     *watchers
	reconnects   *reconnects
	permissions  *Permissions
	certificates *Certificates
	admin        *Admin
}

var (
	_ stream.Records      = (*Conn)(nil)
	_ stream.Transport    = (*Conn)(nil)
	_ stream.PlaceServer  = (*Conn)(nil)
	_ stream.Spreader     = (*Conn)(nil)
	_ stream.ReportReader = (*Reader)(nil)
)

// Connect connects to a broker. The first connection must succeed; later ones are tried for ever, with jitter.
func Connect(c ConnectConfig) (*Conn, error) {
	if c.URL == "" {
		return nil, errors.New("connect: url missing: want nats://host:port")
	}
	return connect(c)
}

// ConnectInProcess connects to a server in this process, such as package embedded starts. The URL and credentials of
// the config are not used.
func ConnectInProcess(c ConnectConfig, server nats.InProcessConnProvider) (*Conn, error) {
	c.URL, c.Creds, c.NKey, c.TLSCA, c.TLSCert, c.TLSKey = "", "", "", "", "", ""
	return connect(c, nats.InProcessServer(server))
}

func connect(c ConnectConfig, more ...nats.Option) (*Conn, error) {
	if err := c.validate(); err != nil {
		return nil, &ConfigError{fmt.Errorf("connect: %w", err)}
	}
	at, err := shown(c.URL)
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("connect: %w", err)}
	}
	login, err := c.login()
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("connect: %w", err)}
	}
	inbox := cmp.Or(c.InboxPrefix, defaultInbox(login))
	conn := &Conn{config: c, slots: make(chan struct{}, c.MaxPending), requests: newRequests(c.AckTimeout, inbox),
		watchers: &watchers{all: map[*stream.Wakes]bool{}}, reconnects: &reconnects{least: c.Reconnect},
		certificates: &Certificates{config: c}}
	options := slices.Concat(conn.options(), login, []nats.Option{nats.CustomInboxPrefix(inbox)})
	if conn.nc, err = nats.Connect(c.URL, append(options, more...)...); err != nil {
		if errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || brokenOff(err) {
			err = fmt.Errorf("%w (%w)", ErrUnreachable, err)
		}
		if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
			err = fmt.Errorf("%w: %s", err, authorityFix(c.TLSCA))
		}
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthRevoked) ||
			errors.Is(err, nats.ErrAuthExpired) {
			err = fmt.Errorf("%w: %s", err, credentialsFix(c))
		}
		return nil, fmt.Errorf("connect to %s: %w", cmp.Or(at, "the embedded server"), err)
	}
	conn.js, err = jetstream.New(conn.nc, jetstream.WithDefaultTimeout(c.AckTimeout),
		jetstream.WithPublishAsyncTimeout(c.AckTimeout), jetstream.WithPublishAsyncMaxPending(c.MaxPending))
	if err != nil {
		conn.nc.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	conn.permissions = &Permissions{nc: conn.nc, requests: conn.requests}
	conn.admin = &Admin{nc: conn.nc, js: conn.js, requests: conn.requests, log: c.Log}
	conn.certificates.nc = conn.nc
	conn.certificates.warn(time.Now())
	return conn, nil
}

// String names the broker by its addresses, without what logs in.
func (c *Conn) String() string {
	at, _ := shown(c.config.URL) // connecting has refused what has an error
	if at == "" {
		return "the embedded broker"
	}
	return "the broker at " + at
}

// authorityFix returns the advice for a broker whose certificate no known authority signed.
func authorityFix(ca string) string {
	if ca == "" {
		return "name the authority that signed the broker's certificate with --tls-ca or PANLEARN_TLS_CA"
	}
	return ca + " (--tls-ca) is not the authority that signed the broker's certificate"
}

// credentialsFix returns the advice for a broker that takes a user in no account.
func credentialsFix(c ConnectConfig) string {
	if file := cmp.Or(c.Creds, c.NKey); file != "" {
		return "the broker takes no user with the key of " + file + ": it was revoked or replaced, or is of another broker"
	}
	return "the broker requires another user: name the file of its credentials with --creds or --nkey"
}

// brokenOff reports whether the network ended a connection attempt, and not an answer of the broker: a dying broker
// takes connections and drops them. A host name that does not resolve is a mistake and not brokenOff.
func brokenOff(err error) bool {
	if name := (*net.DNSError)(nil); errors.As(err, &name) {
		return false
	}
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		return network.Op == "dial" || network.Op == "read" || network.Op == "write"
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// options returns the options of every connection: how it reconnects, and which handlers are called.
func (c *Conn) options() []nats.Option {
	log := c.config.Log
	away := &absence{log: log}
	return []nats.Option{
		nats.Name(cmp.Or(c.config.Name, "panlearn")),
		nats.MaxReconnects(-1), nats.ReconnectToServer(c.reconnects.server),
		nats.CustomReconnectDelay(func(int) time.Duration { return comeBack(c.config.Reconnect, 4*c.config.Reconnect) }),
		// A server that restarts may not know its users at once, and a client that was refused twice would never try again.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // no writes that leave long after their caller gave up
		nats.PingInterval(c.config.Ping), nats.MaxPingsOutstanding(2), nats.FlusherTimeout(2 * c.config.Ping),
		nats.Timeout(c.config.AckTimeout),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			away.gone(time.Now(), err)
			c.requests.end()
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { away.lasts(time.Now(), err) }),
		nats.ReconnectHandler(func(*nats.Conn) {
			c.certificates.warn(time.Now())
			away.back(time.Now())
			if c.config.usurped(c.requests.inbox) {
				log.Warn(
					"the credentials are another user's now, and answers still come on the inbox of the first: restart to change it",
					"inbox", c.requests.inbox)
			}
			c.requests.begin()
			c.watchers.wakeAll()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) {
				c.watchers.wakeAll()
			}
			level := slog.LevelWarn
			if c.requests.denial(err) || away.lasts(time.Now(), err) {
				level = slog.LevelDebug // the caller has the answer, and reports its meaning
			}
			log.Log(context.Background(), level, "broker error", "error", err)
		}),
	}
}

// login returns the options by which a client and a broker know each other.
func (c *ConnectConfig) login() (options []nats.Option, err error) {
	if c.Creds != "" {
		options = append(options, nats.UserCredentials(c.Creds))
	}
	if c.NKey != "" {
		o, err := nats.NkeyOptionFromSeed(c.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey file %s: %w", c.NKey, err)
		}
		options = append(options, o)
	}
	if c.TLSCA != "" {
		options = append(options, nats.RootCAs(c.TLSCA))
	}
	if c.TLSCert != "" {
		options = append(options, nats.ClientCert(c.TLSCert, c.TLSKey))
	}
	return options, nil
}

// Limits returns the limits of the broker, less the room for our headers.
func (c *Conn) Limits() stream.Limits {
	return stream.Limits{MaxPayload: max(0, int(c.nc.MaxPayload())-HeaderRoom)}
}

// Admin returns the administrator's calls over this connection.
func (c *Conn) Admin() *Admin { return c.admin }

// Permissions returns what the broker permits to the credentials of this connection.
func (c *Conn) Permissions() *Permissions { return c.permissions }

// Certificates returns the certificates of this connection.
func (c *Conn) Certificates() *Certificates { return c.certificates }

// NATS returns the connection beneath.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Connected reports whether there is a connection now: for health checks.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// Close closes the connection; publishes that wait become unknown. It may be called again.
func (c *Conn) Close() {
	c.nc.Close()
	c.requests.end()
}
