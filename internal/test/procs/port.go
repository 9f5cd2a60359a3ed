package procs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
)

// Ports are drawn below the range from which the kernel takes the ports of outgoing connections: in it, a port that a
// killed server gave up could be somebody's when the server comes back, and who dials a dead server there can be
// connected to itself.
const (
	lowestPort      = 12000
	usualEphemerals = 32768 // first port of outgoing connections, where the kernel does not say
	tries           = 200
)

// FreePorts finds n distinct ports on 127.0.0.1 on which nobody listens. Nothing is reserved: of two callers in
// different processes both may get one that lies free, with probability about n/20000.
func FreePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	first := ephemerals()
	for range tries + n {
		if len(ports) == n {
			return ports, nil
		}
		port := int64(0) // the kernel's choice
		if first > lowestPort {
			draw, err := rand.Int(rand.Reader, big.NewInt(int64(first-lowestPort)))
			if err != nil {
				return nil, err
			}
			port = lowestPort + draw.Int64()
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // taken
		}
		held = append(held, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return nil, errors.New("no free ports on 127.0.0.1")
}

// ephemerals returns the first port of outgoing connections.
func ephemerals() int {
	first := usualEphemerals
	if data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(data), &first)
	}
	return first
}
