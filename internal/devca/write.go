package devca

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// Longest is the longest lifetime of the certificates.
const Longest = 825 * 24 * time.Hour

// Config says what to write.
type Config struct {
	Dir        string        // created; must be empty or missing
	Hosts      []string      // names and addresses of the server beside localhost, 127.0.0.1 and ::1
	Publishers int           // users of the devices' account, at least 1
	Lifetime   time.Duration // of the certificates, at most Longest
	Now        time.Time
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
		if net.ParseIP(host) == nil && (host == "" || strings.ContainsAny(host, " \t\r\n/:@\"\\")) {
			return fmt.Errorf("host %q: want a name or an address, without a port", host)
		}
	}
	return nil
}

// Roles are the users that a site has: administrator, learner, stage, and its publishers.
func (c Config) roles() []string {
	roles := []string{"admin", "learner", "stage"}
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
//
// Files are readable by their owner only, and nothing is overwritten.
func Write(c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	if strings.ContainsAny(dir, "\"\\\r\n'$") {
		return fmt.Errorf("folder %q: want a path without quotes, backslashes, dollar signs and line ends", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	w := &writer{dir: dir}
	if there, err := os.ReadDir(dir); err != nil {
		return err
	} else if len(there) > 0 {
		return fmt.Errorf("folder %s: %w and is not empty (%s): nothing is overwritten", dir, fs.ErrExist, there[0].Name())
	}
	ca, err := newAuthority(c.Now, c.Lifetime)
	if err != nil {
		return err
	}
	w.file("ca.pem", encode("CERTIFICATE", ca.cert.Raw))
	w.pair(ca, "server", append([]string{"localhost", "127.0.0.1", "::1"}, c.Hosts...))
	site := newSite(dir)
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
	w.file("site.conf", site.bytes())
	shipped, err := fs.ReadFile(deploy.NATS, "nats/panlearn.conf")
	if err != nil {
		return err
	}
	w.file("panlearn.conf", shipped)
	return w.err
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

func (w *writer) pair(ca *authority, name string, hosts []string) {
	cert, key, err := ca.issue(name, hosts)
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.file(name+".pem", cert)
	w.file(name+"-key.pem", key)
}

// environment are the flags of a role's commands.
func environment(dir, role string) []byte {
	at := func(name string) string { return filepath.Join(dir, name) }
	return fmt.Appendf(nil, "PANLEARN_NKEY='%s'\nPANLEARN_TLS_CA='%s'\nPANLEARN_TLS_CERT='%s'\nPANLEARN_TLS_KEY='%s'\n",
		at(role+".nk"), at("ca.pem"), at(role+".pem"), at(role+"-key.pem"))
}
