package cli

import (
	"net"
	"strconv"
	"strings"
)

// Listen listens for HTTP at the address that a flag names. A bare port, 9090 or :9090, is one of this machine's loopback
// address: what the endpoints say is for the operator, so all interfaces have to be asked for by name, as 0.0.0.0:9090.
func Listen(flag, address string) (net.Listener, error) {
	host, port := "", address
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return nil, Usagef("%s %q: want host:port, or a port of this machine", flag, address)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, Usagef("%s %q: want host:port with a port from 0 to 65535", flag, address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, Usagef("%s: %w", flag, err)
	}
	return listener, nil
}
