package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/panlearn/panlearn/stream/device"
)

// mostEvent bounds the bytes of an event.
const mostEvent = 1 << 16

// service returns the handler: POST /event hands over the event of the user, and GET /outcome says what became of it.
// The user's id comes from the login in front of the service, here a header that it sets.
func service(dev *device.Device) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /event", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-User") == "" { // not a fault that goes away: 503 would have clients try again
			http.Error(w, "no user: sign in", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostEvent))
		if err != nil {
			body = nil // the user takes part all the same: what an event says must not decide who does
		}
		ticket, err := dev.Submit(r.Context(), r.Header.Get("X-User"), device.EventOf(body))
		if err != nil { // the user is longer than 256 bytes, or the device has ended
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		text, _ := ticket.MarshalText()
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s\n", text)
	})
	mux.HandleFunc("GET /outcome", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
		defer cancel()
		outcome, err := dev.Outcome(ctx, r.Header.Get("X-User"))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) { // with that, it is how far the event is
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, outcome)
	})
	return mux
}
