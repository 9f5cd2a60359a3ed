package obs

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/panlearn/panlearn/shuffle/stage"
)

func TestStatus(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	now := stage.Status{Task: "churn", Phase: "collecting round 3, attempt 1", Lease: true, Round: 3, Attempt: 1,
		Users:  812,
		Cohort: 1000, Minimum: 900, Deadline: at, Redelivered: 7, Strange: 11, Lost: 2, HelperAway: at,
		Places: stage.Places{Lease: 3 * time.Second, Live: 4, Flooded: true,
			PlaceCounts: stage.PlaceCounts{Granted: 20, Unused: 5, Without: 1}},
		Queue: stage.Queue{Messages: 3,
			Bytes: 500, MaxBytes: 1000}}
	r := prometheus.NewRegistry()
	if err := StatusMetrics(r, "churn", func() stage.Status { return now }); err != nil {
		t.Fatal(err)
	}
	if err := StatusMetrics(r, "churn", nil); err == nil {
		t.Error("registered twice")
	}
	var reports Reports
	reports.Add(stage.Accepted)
	reports.Add(stage.Range)
	reports.Add(stage.Range)
	h := Endpoints(r, nil, nil, Status(func() stage.Status { return now }, &reports, func() (time.Duration,
		bool) {
		return -90 * time.Second, true
	}))
	ask := func() (got StageStatus) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/status", nil))
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := ask()
	if !strings.HasPrefix(got.Waiting,
		"waiting: 812 of 1000; nothing is released below 900; from 2030-01-02T03:04:05Z on") ||
		got.Redelivered != 7 || got.Ahead() != -90*time.Second || got.Strange != 11 || got.Queue != (Queue{3, 500, 1000}) ||
		got.Users != 812 || got.Cohort != 1000 || got.Minimum != 900 || !got.Deadline.Equal(at) ||
		!got.HelperAway.Equal(at) || !got.Works ||
		got.Round != 3 || got.Places != (Places{3, 4, 20, 5, 1, "most places were not used"}) {
		t.Errorf("%+v", got)
	}
	if got.Reports["accepted"] != 1 || got.Reports["range"] != 2 || len(got.Reports) != len(stage.Reasons()) {
		t.Errorf("reports %v", got.Reports)
	}
	want := `
# HELP panlearn_stage_cohort_minimum Reports below which the open round is not released; 0: no round is open.
# TYPE panlearn_stage_cohort_minimum gauge
panlearn_stage_cohort_minimum{task="churn"} 900
# HELP panlearn_stage_deadline_timestamp_seconds Unix time at which the minimum becomes enough for the open round; 0: never, or no round is open.
# TYPE panlearn_stage_deadline_timestamp_seconds gauge
panlearn_stage_deadline_timestamp_seconds{task="churn"} 1.893553445e+09
# HELP panlearn_stage_place_lease_seconds Time for which places of the open attempt are kept; 0: it has none.
# TYPE panlearn_stage_place_lease_seconds gauge
panlearn_stage_place_lease_seconds{task="churn"} 3
# HELP panlearn_stage_places_off 1 while attempts open without places though the plan has them: requests do not come, or are a flood.
# TYPE panlearn_stage_places_off gauge
panlearn_stage_places_off{task="churn"} 1
# HELP panlearn_stage_places_total Places, in users: granted, ended unused, and missing for a report that was accepted.
# TYPE panlearn_stage_places_total counter
panlearn_stage_places_total{outcome="granted",task="churn"} 20
panlearn_stage_places_total{outcome="missing",task="churn"} 1
panlearn_stage_places_total{outcome="unused",task="churn"} 5
# HELP panlearn_stage_queue_bytes Bytes of the report messages in the broker's stream; 0 on standby.
# TYPE panlearn_stage_queue_bytes gauge
panlearn_stage_queue_bytes{task="churn"} 500
# HELP panlearn_stage_helper_away_timestamp_seconds Unix time since which the helper of trust split does not answer, nor join what this stage opened; 0: it does, or there is none.
# TYPE panlearn_stage_helper_away_timestamp_seconds gauge
panlearn_stage_helper_away_timestamp_seconds{task="churn"} 1.893553445e+09
# HELP panlearn_stage_lost_rounds Rounds that the broker is behind what this process and its marks know: it was restored, or lost records.
# TYPE panlearn_stage_lost_rounds gauge
panlearn_stage_lost_rounds{task="churn"} 2
# HELP panlearn_stage_queue_limit_bytes Bytes that the stream may hold, beyond which publishes are refused; 0: not known, or no limit.
# TYPE panlearn_stage_queue_limit_bytes gauge
panlearn_stage_queue_limit_bytes{task="churn"} 1000
# HELP panlearn_stage_queue_messages Report messages in the broker's stream; 0 on standby.
# TYPE panlearn_stage_queue_messages gauge
panlearn_stage_queue_messages{task="churn"} 3
# HELP panlearn_stage_redeliveries_total Reports that this process was sent again, because nobody had acknowledged them within the broker's AckWait.
# TYPE panlearn_stage_redeliveries_total counter
panlearn_stage_redeliveries_total{task="churn"} 7
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	now.Users = 950
	if got := ask().Waiting; got != "waiting: 950 of 1000; enough for 2030-01-02T03:04:05Z" {
		t.Errorf("above the minimum: %q", got)
	}
	now.Deadline = time.Time{}
	if got := ask(); got.Waiting != "waiting: 950 of 1000" || got.Deadline != nil {
		t.Errorf("without a deadline: %+v", got)
	}
	now.Users, now.Unjoined = 0, true
	if got := ask().Waiting; got != "waiting for the helper to join: nobody of 1000 is asked before" {
		t.Errorf("without the helper: %q", got)
	}
	now = stage.Status{Task: "churn", Phase: "waiting for round 4"}
	if got := ask(); got.Waiting != "" || got.Doing != "waiting for round 4" || got.Works {
		t.Errorf("between rounds: %+v", got)
	}
}
