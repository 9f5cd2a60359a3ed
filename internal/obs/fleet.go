package obs

import "github.com/prometheus/client_golang/prometheus"

// NewFleet registers the metrics of a process that serves many tasks. failing returns for each task, and for each file
// that is none by its name, whether it fails.
func NewFleet(r prometheus.Registerer, failing func() map[string]bool) error {
	var f factory
	f.keep(tasks{prometheus.NewDesc("panlearn_fleet_task_failing",
		"1 while a task of a process of many has failed, whether it is tried again or refused, and for each file that is no task, by its name; else 0.",
		[]string{"task"}, nil), failing})
	return f.register(r)
}

// tasks is read when it is scraped.
type tasks struct {
	desc    *prometheus.Desc
	failing func() map[string]bool
}

func (t tasks) Describe(to chan<- *prometheus.Desc) { to <- t.desc }

func (t tasks) Collect(to chan<- prometheus.Metric) {
	for task, failing := range t.failing() {
		value := 0.0
		if failing {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, value, task)
	}
}
