package natsjs

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// cluster starts three servers that replicate, and answers the URL of one.
func cluster(t *testing.T) string {
	t.Helper()
	var routes []string
	var ports []int
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, "nats://"+l.Addr().String())
		l.Close()
	}
	var servers []*server.Server
	for i, port := range ports {
		o := &server.Options{
			ServerName: fmt.Sprintf("node-%d", i), NoSigs: true, Host: "127.0.0.1", Port: server.RANDOM_PORT, DisableJetStreamBanner: true,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 1 << 40, MaxPayload: DefaultMaxPayload,
			Cluster: server.ClusterOpts{Name: "panlearn", Host: "127.0.0.1", Port: port, NoAdvertise: true},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		}
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.SetLoggerV2(&serverLog{log: slog.New(slog.DiscardHandler)}, false, false, false)
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		s.Start()
		servers = append(servers, s)
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ready := 0
		led := false
		for _, s := range servers {
			if s.ReadyForConnections(time.Millisecond) && s.JetStreamEnabled() && s.JetStreamIsCurrent() {
				ready++
			}
			led = led || s.JetStreamIsLeader()
		}
		if ready == len(servers) && led {
			return servers[0].ClientURL()
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the cluster did not form")
		}
	}
}
