package devca

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// Longest is the longest lifetime of the certificates.
const Longest = 825 * 24 * time.Hour

// DefaultRoutePort is the port of a server's links to the others.
const DefaultRoutePort = "6222"

// Config selects what Write writes.
type Config struct {
	Dir   string   // created; must be empty or missing
	Hosts []string // names and addresses of the server beside localhost, 127.0.0.1 and ::1
	// HOST or HOST:PORT of each server's links, of a cluster; none: one server. Port: DefaultRoutePort
	Servers    []string
	Publishers int           // users of the devices' account, at least 1
	Lifetime   time.Duration // of the certificates, at most Longest
	Now        time.Time
	LeafListen string // host:port on which the servers of a site take leaf nodes; empty: none
}

func (c Config) validate() error {
	if c.Dir == "" {
		return errors.New("folder: missing")
	}
	if c.Publishers < 1 || c.Publishers > 10_000 {
		return fmt.Errorf("publishers %d: want 1 to 10000", c.Publishers)
	}
	if c.Lifetime <= 0 || c.Lifetime > Longest {
		return fmt.Errorf("lifetime %v: want more than none and at most %v", c.Lifetime, Longest)
	}
	for _, host := range c.Hosts {
		if !named(host) {
			return fmt.Errorf("host %q: want a name or an address, without a port", host)
		}
	}
	if n := len(c.Servers); n == 1 || n > 9 {
		return fmt.Errorf("servers %q: want none, or 2 to 9 (three, to lose one and go on)", c.Servers)
	}
	return nil
}

func named(host string) bool {
	return net.ParseIP(host) != nil || host != "" && !strings.ContainsAny(host, " \t\r\n/:@\"\\")
}

// routes returns HOST:PORT of each server.
func (c Config) routes() ([]string, error) {
	var all []string
	for _, server := range c.Servers {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = server, DefaultRoutePort
		}
		n, err := strconv.ParseUint(port, 10, 16)
		at := net.JoinHostPort(host, port)
		if !named(host) || err != nil || n == 0 || slices.Contains(all, at) {
			return nil, fmt.Errorf("server %q: want HOST or HOST:PORT, each once", server)
		}
		all = append(all, at)
	}
	return all, nil
}

// relay is the name of the user that a relay has: a publisher of its own.
const relay = "relay"

// scorer is the name of `learner serve` in files.
const scorer = "scorer"

// issuer is the name of `ingest issuer` in files.
const issuer = "issuer"

// Roles are the users that a site has: administrator, learner, stage, helper, relay, and its publishers.
func (c Config) roles() []string {
	roles := []string{"admin", "learner", "stage", "helper", relay}
	for i := range c.Publishers {
		roles = append(roles, fmt.Sprintf("publisher-%d", i+1))
	}
	return roles
}

// Write fills the folder:
//
//	panlearn.conf                           the shipped configuration of the server
//	site.conf                               what it includes: public keys of the users, where the files are
//	ca.pem                                  the authority's certificate, which every side trusts
//	server.pem server-key.pem               of the server
//	ROLE.pem ROLE-key.pem ROLE.nk ROLE.env  of each role: certificate, its key, NKey seed, and the flags as environment
//	relay-http.pem relay-http-key.pem       of the relay's interface over HTTP, for localhost and Hosts
//	scorer-http.pem scorer-http-key.pem     of the scorer's (learner serve), which is no user of the broker
//	issuer-http.pem issuer-http-key.pem     of the issuer's (ingest issuer), which is none either
//
// With Servers, each server's files are in a folder of its own, server-1 and so on, with cluster.conf,
// links.conf that it includes, and the certificate of its links (route.pem, route-key.pem), which an
// authority of their own (route-ca.pem) has signed.
//
// Files are readable by their owner only, and nothing is overwritten.
func Write(c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	if _, err := c.routes(); err != nil {
		return err
	}
	dir, err := c.fresh()
	if err != nil {
		return err
	}
	w := &writer{dir: dir}
	ca, err := newAuthority("panlearn development authority", c.Now, c.Lifetime)
	if err != nil {
		return err
	}
	w.file("ca.pem", encode("CERTIFICATE", ca.cert.Raw))
	for _, who := range []string{relay, scorer, issuer} {
		w.pair(ca, who+"-http", append(slices.Clone(localhost), c.Hosts...))
	}
	site := new(site)
	for _, role := range c.roles() {
		w.pair(ca, role, nil)
		seed, public, err := natsjs.NewUser()
		if err != nil {
			return err
		}
		w.file(role+".nk", append(seed, '\n'))
		w.file(role+".env", environment(dir, role))
		site.add(role, public)
	}
	if len(c.Servers) > 0 {
		return errors.Join(w.err, c.cluster(dir, ca, site))
	}
	w.pair(ca, "server", append(slices.Clone(localhost), c.Hosts...))
	w.file("site.conf", site.bytes(dir))
	w.shipped("panlearn.conf")
	return w.err
}

// fresh makes the folder and returns its absolute path; one that is not empty is an error.
func (c Config) fresh() (string, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(dir, "\"\\\r\n'$") {
		return "", fmt.Errorf("folder %q: want a path without quotes, backslashes, dollar signs and line ends", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(there) > 0 {
		return "", fmt.Errorf("folder %s: %w and is not empty (%s): nothing is overwritten", dir, fs.ErrExist, there[0].Name())
	}
	return dir, nil
}

var localhost = []string{"localhost", "127.0.0.1", "::1"}

// cluster writes the folder of each server.
func (c Config) cluster(dir string, ca *authority, site *site) error {
	if err := c.links(dir); err != nil {
		return err
	}
	for i, at := range c.Servers {
		w := &writer{dir: filepath.Join(dir, fmt.Sprintf("server-%d", i+1))}
		w.file("ca.pem", encode("CERTIFICATE", ca.cert.Raw))
		w.pair(ca, "server", append(append(slices.Clone(localhost), hostOf(at)), c.Hosts...))
		w.file("site.conf", site.bytes(w.dir))
		w.shipped("panlearn.conf")
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// hostOf returns the host of HOST or HOST:PORT.
func hostOf(server string) string {
	if host, _, err := net.SplitHostPort(server); err == nil {
		return host
	}
	return server
}

// links makes the folder of each server, with its links to the others. The authority of the links has signed nothing
// else: the servers take any holder of its certificates for a server, which may do anything.
func (c Config) links(dir string) error {
	routes, err := c.routes()
	if err != nil {
		return err
	}
	routeCA, err := newAuthority("panlearn development authority of servers", c.Now, c.Lifetime)
	if err != nil {
		return err
	}
	for i, at := range routes {
		name := fmt.Sprintf("server-%d", i+1)
		w := &writer{dir: filepath.Join(dir, name)}
		if err := os.Mkdir(w.dir, 0o700); err != nil {
			return err
		}
		w.file("route-ca.pem", encode("CERTIFICATE", routeCA.cert.Raw))
		w.pair(routeCA, "route", []string{hostOf(at)})
		w.file("links.conf", links(w.dir, name, routes, i))
		w.shipped("cluster.conf")
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// writer writes files until the first error.
type writer struct {
	dir string
	err error
}

func (w *writer) file(name string, data []byte) {
	if w.err != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		w.err = err
		return
	}
	_, err = f.Write(data)
	w.err = errors.Join(err, f.Close())
}

// shipped writes a copy of a file of deploy/nats.
func (w *writer) shipped(name string) {
	text, err := fs.ReadFile(deploy.NATS, "nats/"+name)
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.file(name, text)
}

func (w *writer) pair(ca *authority, name string, hosts []string) {
	cert, key, err := ca.issue(name, hosts)
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.file(name+".pem", cert)
	w.file(name+"-key.pem", key)
}

// environment returns the flags of a role's commands.
func environment(dir, role string) []byte {
	at := func(name string) string { return filepath.Join(dir, name) }
	return fmt.Appendf(nil, "PANLEARN_NKEY='%s'\nPANLEARN_TLS_CA='%s'\nPANLEARN_TLS_CERT='%s'\nPANLEARN_TLS_KEY='%s'\n",
		at(role+".nk"), at("ca.pem"), at(role+".pem"), at(role+"-key.pem"))
}
