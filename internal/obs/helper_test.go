package obs

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/split"
)

// TestHelper: a helper's actions are counted, and its status has its current state; neither reveals anything about a
// user.
func TestHelper(t *testing.T) {
	at := time.Unix(1893553445, 0)
	get := func() helper.Status {
		return helper.Status{Task: "churn", Phase: "deciding reports", Round: 3, Attempt: 2, Users: 5, Cohort: 9, Released: 2,
			Leader: at, Trouble: "no room"}
	}
	r := NewRegistry()
	o, err := NewHelper(r, "churn", get)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewHelper(r, "churn", get); err == nil {
		t.Error("registered twice")
	}
	o.Message(helper.Sealed)
	o.Decided(split.BadProof, 4)
	o.Joined(3, 2)
	o.Dropped(3, 1)
	o.Released(2, 9, time.Second)
	o.Refused(1)
	o.Failed("mark")
	const want = `
# HELP panlearn_helper_attempts_total Attempts, by what became of them: joined, and of those released or dropped; refused, of a round that is over here.
# TYPE panlearn_helper_attempts_total counter
panlearn_helper_attempts_total{outcome="dropped",task="churn"} 1
panlearn_helper_attempts_total{outcome="joined",task="churn"} 1
panlearn_helper_attempts_total{outcome="refused",task="churn"} 1
panlearn_helper_attempts_total{outcome="released",task="churn"} 1
# HELP panlearn_helper_failures_total Calls of the broker or of the helper's own folder that failed and are repeated, by call.
# TYPE panlearn_helper_failures_total counter
panlearn_helper_failures_total{call="mark",task="churn"} 1
# HELP panlearn_helper_leader_timestamp_seconds Unix time of the leader's last message; 0: none came yet.
# TYPE panlearn_helper_leader_timestamp_seconds gauge
panlearn_helper_leader_timestamp_seconds{task="churn"} 1.893553445e+09
# HELP panlearn_helper_released_round Highest round whose release is marked in the helper's folder; 0: none.
# TYPE panlearn_helper_released_round gauge
panlearn_helper_released_round{task="churn"} 2
# HELP panlearn_helper_round Round of the newest attempt that was joined.
# TYPE panlearn_helper_round gauge
panlearn_helper_round{task="churn"} 3
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "panlearn_helper_attempts_total",
		"panlearn_helper_failures_total", "panlearn_helper_leader_timestamp_seconds", "panlearn_helper_released_round",
		"panlearn_helper_round"); err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	HelperStatus(get, func() (time.Duration, bool) { return 2 * time.Second, true }).ServeHTTP(w,
		httptest.NewRequest("GET", "/status", nil))
	var got helperAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Leader.Equal(at) || got.Leader == nil {
		t.Errorf("leader %v", got.Leader)
	}
	got.Leader = nil
	if got != (helperAnswer{Task: "churn", Doing: "deciding reports", Round: 3, Attempt: 2, Users: 5, Cohort: 9,
		Released: 2, Trouble: "no room", ClockAhead: 2}) {
		t.Errorf("%+v", got)
	}
}
