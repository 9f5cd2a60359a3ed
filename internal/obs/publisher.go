package obs

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// NewPublisher registers the metrics of a publisher or gateway of one task and returns what feeds them, to be
// called from one goroutine. It registers all of them or, on error, none.
//
// How many events were invalid is not among them: it depends on what they say.
func NewPublisher(r prometheus.Registerer, task string) (func(device.Progress), error) {
	f := factory{labels: prometheus.Labels{"task": task}}
	var (
		events = f.counterVec("panlearn_publisher_events_total",
			"Events (of a silo: blocks of records) whose outcome was told, by outcome; one that is asked for again counts again.", "outcome")
		inFlight = f.gauge("panlearn_publisher_in_flight_events",
			"Events (of a silo: blocks of records) whose publish the broker has not answered.")
		joined = f.gauge("panlearn_publisher_joined_events",
			"Events (of a silo: blocks of records) from here in the newest round.")
		round   = f.gauge("panlearn_publisher_round", "Newest round that is known here; 0 before the first.")
		ended   = f.gauge("panlearn_publisher_task_ended", "1 once the task has ended.")
		refused = f.counter("panlearn_publisher_refused_publishes_total",
			"Publishes that the broker refused, in its answer; each try of a report counts.")
		lost = f.counter("panlearn_publisher_charged_uncounted_events_total",
			"Events (of a silo: blocks of records) that were sent, and so have paid, and are in no batch; among the uncounted ones.")
		older = f.gauge("panlearn_publisher_broker_older_round",
			"Newest round that is known here, where the broker does not show it or shows another: it is older; else 0.")
		last   device.Summary
		before uint64 // refused publishes
	)
	outcomes := map[participation.State]func(device.Summary) uint64{
		participation.Counted:   func(s device.Summary) uint64 { return s.Counted },
		participation.Uncounted: func(s device.Summary) uint64 { return s.Uncounted },
		participation.Unknown:   func(s device.Summary) uint64 { return s.Unknown },
		participation.Refused:   func(s device.Summary) uint64 { return s.Refused },
	}
	for state := range outcomes {
		events.WithLabelValues(state.String())
	}
	if err := f.register(r); err != nil {
		return nil, err
	}
	return func(p device.Progress) {
		for state, of := range outcomes {
			events.WithLabelValues(state.String()).Add(float64(of(p.Summary) - of(last)))
		}
		lost.Add(float64(p.Summary.ChargedUncounted - last.ChargedUncounted))
		refused.Add(float64(p.RefusedPublishes - before))
		last, before = p.Summary, p.RefusedPublishes
		inFlight.Set(float64(p.InFlight))
		joined.Set(float64(p.Joined))
		round.Set(float64(p.Round))
		older.Set(float64(p.Older))
		if p.Over {
			ended.Set(1)
		}
	}, nil
}
