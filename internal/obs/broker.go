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
	f.keep(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "panlearn_broker_connected", ConstLabels: f.labels,
		Help: "1 while this process has a connection to the broker, else 0."}, func() float64 {
		if b.Connected() {
			return 1
		}
		return 0
	}))
	f.keep(expiries{prometheus.NewDesc("panlearn_certificate_expiry_timestamp_seconds",
		"Unix time at which a certificate ends: own, the one on this process's disk; server, the chain that each server of --nats shows, asked every ten minutes. Absent without TLS.",
		[]string{"which", "server"}, f.labels), b.Certificates})
	f.keep(clock{prometheus.NewDesc("panlearn_clock_ahead_seconds",
		"Seconds by which this machine's clock is ahead of the broker's at least; negative: behind. "+
			"0 where they may agree. Absent until a record was seen that the broker stamped meanwhile.", nil, f.labels), b.Clock})
	return f.register(r)
}

// A clock is read when it is scraped: it may have been set meanwhile.
type clock struct {
	desc *prometheus.Desc
	read func() (ahead time.Duration, known bool)
}

func (c clock) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

func (c clock) Collect(to chan<- prometheus.Metric) {
	if ahead, known := c.read(); known {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, ahead.Seconds())
	}
}

// expiries are read when they are scraped: a certificate may be renewed on disk while we run.
type expiries struct {
	desc *prometheus.Desc
	read func() (own time.Time, servers map[string]time.Time)
}

func (e expiries) Describe(to chan<- *prometheus.Desc) { to <- e.desc }

func (e expiries) Collect(to chan<- prometheus.Metric) {
	own, servers := e.read()
	if !own.IsZero() {
		to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(own.Unix()), "own", "")
	}
	for server, end := range servers {
		to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(end.Unix()), "server", server)
	}
}
