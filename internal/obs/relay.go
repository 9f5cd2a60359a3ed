package obs

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay"
)

// NewRelay registers the metrics of a relay and returns what feeds them. It registers all of them or, on error, none.
// waiting returns the number of requests that wait. No metric says who asked, nor for which task.
func NewRelay(r prometheus.Registerer, waiting func() int) (relay.Observer, error) {
	f := factory{}
	var (
		reports = f.counterVec("panlearn_relay_reports_total",
			"Reports that were forwarded, by what the broker said: stored, duplicate, refused, or unknown where no answer came.",
			"outcome")
		places = f.counterVec("panlearn_relay_places_total",
			"Requests for places that were forwarded, by whether the stage answered: answered or unanswered.", "outcome")
		refused = f.counterVec("panlearn_relay_refused_requests_total",
			"Requests of which nothing was forwarded, by reason, an HTTP status: 404 is a record that is not there, 429 and 503 one request too many, or a broker that does not answer.",
			"reason")
	)
	f.gaugeFunc("panlearn_relay_waiting_requests", "Requests that wait for something new.",
		func() float64 { return float64(waiting()) })
	for s := stream.Unknown; s <= stream.Refused; s++ {
		reports.WithLabelValues(s.String())
	}
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		refused.WithLabelValues(strconv.Itoa(status))
	}
	answered := map[bool]prometheus.Counter{true: places.WithLabelValues("answered"),
		false: places.WithLabelValues("unanswered")}
	if err := f.register(r); err != nil {
		return relay.Observer{}, err
	}
	return relay.Observer{
		Report:  func(s stream.AckStatus) { reports.WithLabelValues(s.String()).Inc() },
		Place:   func(ok bool) { answered[ok].Inc() },
		Refused: func(status int) { refused.WithLabelValues(strconv.Itoa(status)).Inc() },
	}, nil
}
