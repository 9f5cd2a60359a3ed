package obs

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/stream/grant/issuer"
)

// NewIssuer registers the metrics of an issuer of grants and returns what feeds them. It registers all of them or, on
// error, none. people returns for how many people it signed. No metric says for whom.
func NewIssuer(r prometheus.Registerer, task string, people func() int) (func(issuer.Outcome), error) {
	f := factory{}
	requests := f.counterVec("panlearn_issuer_requests_total",
		"Requests for a token, by outcome: issued, again (the same message of the same person), another (a second message of a person, refused), nobody (no login), bad (no request for a token), often (a person asked too often), or failed (the list cannot be written).",
		"outcome")
	f.gaugeFunc("panlearn_issuer_people", "People who have their token.", func() float64 { return float64(people()) })
	for _, o := range issuer.Outcomes() {
		requests.WithLabelValues(string(o))
	}
	if err := f.register(prometheus.WrapRegistererWith(prometheus.Labels{"task": task}, r)); err != nil {
		return nil, err
	}
	return func(o issuer.Outcome) { requests.WithLabelValues(string(o)).Inc() }, nil
}
