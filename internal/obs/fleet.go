package obs

import "github.com/prometheus/client_golang/prometheus"

// NewFleet registers the metrics of a process that serves many tasks. counts returns how many of them are in each
// state, by its name.
func NewFleet(r prometheus.Registerer, counts func() map[string]int) error {
	var f factory
	f.keep(tasks{prometheus.NewDesc("panlearn_fleet_tasks",
		"Tasks of this process, by state: running, ended, waiting (failed, and started again), refused (failed, and not started before its file changes), faulty (a file that is no task).",
		[]string{"state"}, nil), counts})
	return f.register(r)
}

// tasks is read when it is scraped.
type tasks struct {
	desc   *prometheus.Desc
	counts func() map[string]int
}

func (t tasks) Describe(to chan<- *prometheus.Desc) { to <- t.desc }

func (t tasks) Collect(to chan<- prometheus.Metric) {
	for state, n := range t.counts() {
		to <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(n), state)
	}
}
