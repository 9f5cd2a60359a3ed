package obs

import "github.com/prometheus/client_golang/prometheus"

// NewFleet registers the metrics of a process that serves many tasks. failing returns for each task, and for each file
// that is none by its name, whether it fails.
func NewFleet(r prometheus.Registerer, failing func() map[string]bool) error {
	var f factory
	f.keep(scraped{prometheus.NewDesc("panlearn_fleet_task_failing",
		"1 while a task of a process of many has failed, whether it is tried again or refused, and for each file that is no task, by its name; else 0.",
		[]string{"task"}, nil), func(set func(value float64, labels ...string)) {
		for task, failing := range failing() {
			set(oneIf(failing), task)
		}
	}})
	return f.register(r)
}
