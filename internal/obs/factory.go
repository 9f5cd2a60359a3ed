package obs

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A factory makes metrics with the same constant labels and registers them together.
type factory struct {
	labels prometheus.Labels
	made   []prometheus.Collector
}

func (f *factory) keep(c prometheus.Collector) { f.made = append(f.made, c) }

func (f *factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: f.labels})
	f.keep(c)
	return c
}

func (f *factory) counterVec(name, help, label string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: f.labels}, []string{label})
	f.keep(c)
	return c
}

func (f *factory) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.labels})
	f.keep(g)
	return g
}

func (f *factory) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.labels}, labels)
	f.keep(g)
	return g
}

func (f *factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: f.labels, Buckets: buckets})
	f.keep(h)
	return h
}

// gaugeFunc makes a gauge that is read when the metrics are scraped.
func (f *factory) gaugeFunc(name, help string, read func() float64) {
	f.keep(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.labels}, read))
}

// A scraped holds gauges that are read when the metrics are scraped: each calls set for every gauge that there is then.
type scraped struct {
	desc *prometheus.Desc
	each func(set func(value float64, labels ...string))
}

func (s scraped) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

func (s scraped) Collect(to chan<- prometheus.Metric) {
	s.each(func(value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, value, labels...)
	})
}

// oneIf returns 1 for true, and 0 for false.
func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// unixSeconds returns a time as Prometheus has it, and 0 for the zero time.
func unixSeconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}

// register registers all metrics, or none.
func (f *factory) register(r prometheus.Registerer) error {
	for i, c := range f.made {
		if err := r.Register(c); err != nil {
			for _, done := range f.made[:i] {
				r.Unregister(done)
			}
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// observeRound observes how long a round took, with its number as the exemplar: the log has lines of that number.
func observeRound(h prometheus.Histogram, took time.Duration, round uint64) {
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(),
		prometheus.Labels{"round": strconv.FormatUint(round, 10)})
}
