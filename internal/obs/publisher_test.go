package obs

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/panlearn/panlearn/stream/device"
)

func TestPublisherCountsWhatWasTold(t *testing.T) {
	r := NewRegistry()
	show, err := NewPublisher(r, "churn")
	if err != nil {
		t.Fatal(err)
	}
	show(device.Progress{Round: 1, Joined: 7, RefusedPublishes: 2, InFlight: 5, Summary: device.Summary{Events: 4,
		Counted: 3, Unknown: 1, Invalid: 2}})
	show(device.Progress{Round: 2, Joined: 6, RefusedPublishes: 5, Summary: device.Summary{Events: 9, Counted: 5,
		Uncounted: 1, Unknown: 1, Refused: 2, Invalid: 3}})
	show(device.Progress{Round: 2, Joined: 6, RefusedPublishes: 5, Over: true, Summary: device.Summary{Events: 9,
		Counted: 5, Uncounted: 1, Unknown: 1, Refused: 2, Invalid: 3}})
	want := `
# HELP panlearn_publisher_events_total Events (of a silo: blocks of records) whose outcome was told, by outcome; one that is asked for again counts again.
# TYPE panlearn_publisher_events_total counter
panlearn_publisher_events_total{outcome="counted",task="churn"} 5
panlearn_publisher_events_total{outcome="refused",task="churn"} 2
panlearn_publisher_events_total{outcome="uncounted",task="churn"} 1
panlearn_publisher_events_total{outcome="unknown",task="churn"} 1
# HELP panlearn_publisher_in_flight_events Events (of a silo: blocks of records) whose publish the broker has not answered.
# TYPE panlearn_publisher_in_flight_events gauge
panlearn_publisher_in_flight_events{task="churn"} 0
# HELP panlearn_publisher_joined_events Events (of a silo: blocks of records) from here in the newest round.
# TYPE panlearn_publisher_joined_events gauge
panlearn_publisher_joined_events{task="churn"} 6
# HELP panlearn_publisher_refused_publishes_total Publishes that the broker refused, in its answer; each try of a report counts.
# TYPE panlearn_publisher_refused_publishes_total counter
panlearn_publisher_refused_publishes_total{task="churn"} 5
# HELP panlearn_publisher_round Newest round that is known here; 0 before the first.
# TYPE panlearn_publisher_round gauge
panlearn_publisher_round{task="churn"} 2
# HELP panlearn_publisher_task_ended 1 once the task has ended.
# TYPE panlearn_publisher_task_ended gauge
panlearn_publisher_task_ended{task="churn"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "panlearn_publisher_events_total",
		"panlearn_publisher_in_flight_events",
		"panlearn_publisher_joined_events", "panlearn_publisher_refused_publishes_total", "panlearn_publisher_round",
		"panlearn_publisher_task_ended"); err != nil {
		t.Error(err)
	}
	if _, err := NewPublisher(r, "churn"); err == nil {
		t.Error("registered twice")
	}
}
