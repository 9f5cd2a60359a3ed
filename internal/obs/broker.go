package obs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Broker is what a role can say of its connection, when it is scraped.
type Broker struct {
	Connected func() bool
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
	return f.register(r)
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
