package httpgateway

import (
	"encoding/hex"
	"net/http"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/grant"
)

// A taskAnswer holds the parts of the task that an application needs.
type taskAnswer struct {
	Task     string `json:"task"`
	TaskHash string `json:"task_hash"`
	// Columns are the members that an event has beside its label; null where Dimension says how many values it has.
	Columns   []string `json:"columns"`
	Dimension int      `json:"dimension"` // 0 where Columns are named
	Label     string   `json:"label"`     // member of the label
	Unit      string   `json:"unit"`      // what is protected: event, or user, with events posted together
	Items     int      `json:"items"`     // events of a user that enter a report; 1 where it is about an event
	Epsilon   float64  `json:"epsilon"`   // what the task costs one user, as the client computed it
	Delta     float64  `json:"delta"`
	// Issuer is the key id in hexadecimal of who gives a token to each person, without which a report does not count;
	// absent where reports have none.
	Issuer string  `json:"issuer_key_id,omitempty"`
	Honest float64 `json:"honest_fraction"` // share of every cohort on whose noise epsilon relies
}

// getTask writes the shape of events and their cost.
func (g *Gateway) getTask(w http.ResponseWriter, r *http.Request) {
	agreement := g.ready(r.Context(), w, readyWait)
	if agreement == nil {
		return
	}
	schema := agreement.Spec.Schema()
	a := taskAnswer{Task: agreement.Spec.Name, TaskHash: hex.EncodeToString(agreement.Hash[:]), Columns: schema.Columns,
		Dimension: schema.Dimension,
		Label:     schema.Label, Epsilon: float64(agreement.Guarantee.Epsilon), Delta: agreement.Delta,
		Honest: agreement.HonestFraction.Float()}
	if a.Unit, a.Items = task.UnitEvent, 1; g.shape().Items > 0 {
		a.Unit, a.Items = task.UnitUser, g.shape().Items
	}
	if agreement.HasGrants() {
		id := grant.KeyID(agreement.Task.IssuerKey)
		a.Issuer = hex.EncodeToString(id[:])
	}
	if schema.Columns == nil {
		a.Label = "label"
	}
	reply(w, http.StatusOK, a)
}
