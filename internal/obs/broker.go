package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Broker provides the state of a role's connection, which is read when the metrics are scraped.
type Broker struct {
	Connected func() bool
	// Clock returns by how much our clock is ahead of the broker's at least, and false while nothing is known.
	Clock func() (ahead time.Duration, known bool)
	// Certificates returns when they end: our own, zero where there is none, and each server's, by host:port.
	Certificates func() (own time.Time, servers map[string]time.Time)
}

// NewBroker registers the metrics of a role's connection to the broker, all of them or, on error, none.
func NewBroker(r prometheus.Registerer, task string, b Broker) error {
	f := factory{labels: prometheus.Labels{"task": task}}
	f.gaugeFunc("panlearn_broker_connected", "1 while this process has a connection to the broker, else 0.",
		func() float64 { return oneIf(b.Connected()) })
	// A certificate may be renewed on disk while we run, and a clock be set.
	f.keep(scraped{prometheus.NewDesc("panlearn_certificate_expiry_timestamp_seconds",
		"Unix time at which a certificate ends: own, the one on this process's disk; server, the chain that each server of --nats shows, asked every ten minutes. Absent without TLS.",
		[]string{"which", "server"}, f.labels), func(set func(value float64, labels ...string)) {
		own, servers := b.Certificates()
		if !own.IsZero() {
			set(float64(own.Unix()), "own", "")
		}
		for server, end := range servers {
			set(float64(end.Unix()), "server", server)
		}
	}})
	f.keep(scraped{prometheus.NewDesc("panlearn_clock_ahead_seconds",
		"Seconds by which this machine's clock is ahead of the broker's at least; negative: behind. "+
			"0 where they may agree. Absent until a record was seen that the broker stamped meanwhile.", nil, f.labels), func(set func(value float64, labels ...string)) {
		if ahead, known := b.Clock(); known {
			set(ahead.Seconds())
		}
	}})
	return f.register(r)
}
