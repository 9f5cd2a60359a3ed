package natsjs

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// ErrNoRoute means that no nats-server answered at an address, so that nothing is known of its links.
var ErrNoRoute = errors.New("no server answers there")

// probeLimit bounds a probe of a link, beside the caller's context.
const probeLimit = 5 * time.Second

// JoinsAsServer reports whether the server that listens for other servers at address (host:port) accepts this client's
// certificate as a server's. It opens a link far enough to see that, joins nothing, and closes it. Its error is an
// ErrNoRoute if no server replied.
func (c *Certificates) JoinsAsServer(ctx context.Context, address string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	// The other side is not believed in anything: its authority is one that clients do not know, and nothing secret is
	// said to it.
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
	if c.config.TLSCert != "" {
		own, err := tls.LoadX509KeyPair(c.config.TLSCert, c.config.TLSKey)
		if err != nil {
			return false, err
		}
		// Whatever authorities the server names: the question is whether it takes this certificate.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	conn, err := dialLink(ctx, address)
	if err != nil {
		return false, err
	}
	defer func() { conn.Close() }()
	encrypted := tls.Client(conn, config)
	link, plain := net.Conn(encrypted), tls.RecordHeaderError{}
	if err := encrypted.HandshakeContext(ctx); errors.As(err, &plain) { // it does not speak TLS
		conn.Close()
		if conn, err = dialLink(ctx, address); err != nil {
			return false, err
		}
		link = conn
	} else if alerted(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("%w (%w)", ErrNoRoute, err)
	}
	return takesAsServer(link)
}

func dialLink(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoRoute, err)
	}
	deadline, _ := ctx.Deadline()
	return conn, conn.SetDeadline(deadline)
}

// alerted reports whether the other side ended the TLS handshake by its word.
func alerted(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error"
}

// takesAsServer introduces itself as a server, and reports whether it is answered. A link is not made until both sides
// have announced what they hold, which this one never does.
func takesAsServer(link net.Conn) (bool, error) {
	lines := bufio.NewReaderSize(link, 1<<16)
	greeting, err := lines.ReadString('\n') // nothing is written before it, so that a refusal is not lost in a reset
	if alerted(err) {
		return false, nil
	}
	var info struct {
		Cluster string `json:"cluster"`
	}
	text, isInfo := strings.CutPrefix(greeting, "INFO ")
	if err != nil || !isInfo || json.Unmarshal([]byte(text), &info) != nil {
		return false, fmt.Errorf("%w (its greeting is not that of nats-server: %w)", ErrNoRoute, err)
	}
	name, err := json.Marshal(info.Cluster)
	if err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(link, "CONNECT {\"echo\":true,\"name\":\"panlearn-doctor\",\"cluster\":%s}\r\nPING\r\n",
		name); err != nil {
		return false, nil //nolint:nilerr // it has closed the link
	}
	for {
		line, err := lines.ReadString('\n')
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case word == "PONG":
			return true, nil
		case err != nil || word == "-ERR":
			return false, nil //nolint:nilerr // it has closed the link
		}
	}
}
