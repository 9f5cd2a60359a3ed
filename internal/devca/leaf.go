package devca

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/disk"
)

// Leaf writes what a leaf node of a publisher has into leaves/NAME: a configuration for nats-server, the publisher's
// credentials, and ca.pem. hub is the address at which leaf nodes reach a server, such as tls://broker.example:7422.
func (s *Site) Leaf(name, hub string) (dir string, err error) {
	if _, err := s.publisher(name); err != nil {
		return "", err
	}
	at, err := url.Parse(hub)
	if err != nil || at.Scheme != "tls" || at.Port() == "" || at.User != nil || at.Path != "" {
		return "", fmt.Errorf("%q: want tls://HOST:PORT, where a server listens for leaf nodes", hub)
	}
	dir = s.path("leaves", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for from, to := range map[string]string{name + ".creds": "leaf.creds", "ca.pem": "ca.pem"} {
		data, err := os.ReadFile(s.path("users", from))
		if err == nil {
			err = disk.Durable.Replace(filepath.Join(dir, to), data)
		}
		if err != nil {
			return "", err
		}
	}
	return dir, disk.Durable.Replace(filepath.Join(dir, "leaf.conf"), fmt.Appendf(nil, `# Written by learner site: a NATS server near devices. It has no streams and no users: who reaches it publishes as %[2]s, so it
# listens on this machine alone, and processes name %[1]s/leaf.creds too, whose inbox is theirs.
#
#   nats-server -c %[1]s/leaf.conf
listen: "127.0.0.1:4222"
max_payload: 1MB

leafnodes {
  remotes: [ { url: "%[3]s", credentials: "%[1]s/leaf.creds", tls { ca_file: "%[1]s/ca.pem" } } ]
}
default_js_domain: { "$G": "" } # so that requests for records go to the servers that have them
`, dir, name, at))
}
