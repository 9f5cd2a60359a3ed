package natsadmin

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// routePort is the usual port on which the servers of a cluster listen for each other.
const routePort = "6222"

// links tries whether these credentials' certificate joins the cluster as a server. A server that joins may store and
// delete any message, whatever the accounts say.
func (e *examination) links(ctx context.Context) {
	routes := e.expect.Routes
	if len(routes) == 0 && e.NATS().ConnectedClusterName() == "" {
		return // a server that is alone
	}
	if len(routes) == 0 {
		routes = usualRoutes(append(e.NATS().Servers(), e.NATS().DiscoveredServers()...))
	}
	var open, shut, unseen []string
	for _, address := range routes {
		switch joins, err := e.Certificates().JoinsAsServer(ctx, address); {
		case errors.Is(err, natsjs.ErrNoRoute):
			unseen = append(unseen, address)
		case err != nil:
			e.find("links", Failure, "%v", err)
		case joins:
			open = append(open, address)
		default:
			shut = append(shut, address)
		}
	}
	if len(open) > 0 {
		e.find("links", Failure,
			"who has these credentials joins as a server at %s, and may then store and delete anything: give the links an authority of their own "+
				"(deploy/nats/cluster.conf)", strings.Join(open, ", "))
	}
	if len(unseen) > 0 {
		e.find("links", Warning,
			"not seen: no server answers at %s: name where servers listen for each other with --route HOST:PORT, on a machine that reaches it, or see "+
				"that their links have an authority of their own (deploy/nats/cluster.conf)", strings.Join(unseen, ", "))
	}
	if len(shut) > 0 {
		e.find("links", OK, "servers refuse these credentials as a server's at %s", strings.Join(shut, ", "))
	}
}

// usualRoutes returns the usual port on the host of each URL.
func usualRoutes(urls []string) (all []string) {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			continue
		}
		if at := net.JoinHostPort(u.Hostname(), routePort); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}
