package relay

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// A body of n bytes has bodyTime, and a second for every bodyRate of them, on its way here and back.
const (
	bodyTime = 5 * time.Second
	bodyRate = 16 << 10
)

// postReport forwards a report to the broker, and writes the broker's reply. It refuses a report only before it has
// forwarded it.
func (r *Relay) postReport(w http.ResponseWriter, q *http.Request) {
	r.posting(w, q, func(f *follower, length int) (status int, why string) {
		ok, most, err := f.takes(q.Context(), length-relayhttp.ReportHead)
		switch {
		case errors.Is(err, stream.ErrNotFound):
			return http.StatusNotFound, relayhttp.None + "task"
		case err != nil:
			return http.StatusServiceUnavailable, "the broker's Task cannot be read"
		case length-relayhttp.ReportHead > most:
			return http.StatusRequestEntityTooLarge, "no report of the task is as long"
		case !ok:
			return http.StatusBadRequest, "no report of the task has that length"
		}
		return 0, ""
	}, func(f *follower, body []byte) {
		report, err := relayhttp.ParseReport(body)
		if err != nil {
			r.refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(q.Context()), brokerTime)
		defer cancel()
		acks, err := r.Broker.Publish(ctx, []stream.Outgoing{{Subject: f.task.Report(report.Round, report.Attempt),
			ID: report.ID, Data: report.Data}})
		ack := stream.Ack{}
		if len(acks) == 1 {
			ack = acks[0]
		}
		observe.Tell(r.Observer.Report, ack.Status)
		if ack.Status == stream.Unknown {
			r.silent(f.task, "report", err)
			text(w, http.StatusGatewayTimeout, "the broker did not answer: the report may be stored")
			return
		}
		answer := relayhttp.Answer{ID: report.ID, Status: ack.Status, Sequence: ack.Sequence, Reason: ack.Reason}
		record(w, answer.Bytes(), "no-store")
	})
}

// postPlace forwards a request for places to the stage, and writes the stage's reply.
func (r *Relay) postPlace(w http.ResponseWriter, q *http.Request) {
	r.posting(w, q, func(_ *follower, length int) (status int, why string) {
		if length > relayhttp.PlaceHead+relayhttp.MaxPlace {
			return http.StatusRequestEntityTooLarge, "no request for places is as long"
		}
		return 0, ""
	}, func(f *follower, body []byte) {
		place, err := relayhttp.ParsePlace(body)
		if err != nil {
			r.refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(q.Context(), brokerTime)
		defer cancel()
		answer, err := r.Broker.Place(ctx, f.task.Place(place.Round, place.Attempt), place.Request)
		if err == nil && len(answer) > relayhttp.MaxPlace {
			err = errors.New("the answer is too long")
		}
		observe.Tell(r.Observer.Place, err == nil)
		if err != nil {
			r.silent(f.task, "request for places", err)
			text(w, http.StatusGatewayTimeout, "the stage did not answer: nobody joins")
			return
		}
		record(w, answer, "no-store")
	})
}

// posting reads a body of an accepted length, and passes it on. If it does not, it has written the response.
func (r *Relay) posting(w http.ResponseWriter, q *http.Request,
	takes func(f *follower, length int) (status int, why string), forward func(f *follower, body []byte)) {
	task, err := stream.ParseTask(q.PathValue("task"))
	if err != nil {
		r.refuse(w, http.StatusNotFound, err.Error())
		return
	}
	if kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type")); err != nil || kind != relayhttp.ContentType {
		r.refuse(w, http.StatusUnsupportedMediaType, "want the header Content-Type: "+relayhttp.ContentType)
		return
	}
	length := q.ContentLength
	switch {
	case length < 0:
		r.refuse(w, http.StatusLengthRequired, "want the header Content-Length")
		return
	case length > 1<<30:
		r.refuse(w, http.StatusRequestEntityTooLarge, "no body here is as long")
		return
	}
	leave, ok := r.enter(&r.posts, w, q)
	if !ok {
		return
	}
	defer leave()
	f, err := r.followers.follow(q.Context(), task)
	if err != nil {
		r.unreadable(w, "task", err)
		return
	}
	if status, why := takes(f, int(length)); status != 0 {
		r.refuse(w, status, why)
		return
	}
	control := http.NewResponseController(w)
	// A writer that cannot set it is a test's.
	_ = control.SetReadDeadline(time.Now().Add(r.bodyTime + time.Duration(length)*time.Second/bodyRate))
	body := make([]byte, length)
	if _, err := io.ReadFull(q.Body, body); err != nil {
		r.refuse(w, http.StatusRequestTimeout, "the body broke off")
		return
	}
	forward(f, body)
}

// silent logs, at most once every stream.TellEvery, that a forwarded request got no answer.
func (r *Relay) silent(task stream.Task, what string, err error) {
	r.mu.Lock()
	level := r.silence.Level(time.Now(), err)
	r.mu.Unlock()
	r.Logger.Log(r.followers.ctx, level, "no answer to what was forwarded", "task", task, "what", what, "err", err)
}
