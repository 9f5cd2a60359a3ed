package relay

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// getLatest writes the names of the newest records, if necessary after waiting until they differ from those that the
// client has seen.
func (r *Relay) getLatest(w http.ResponseWriter, q *http.Request) {
	task, err := stream.ParseTask(q.PathValue("task"))
	if err != nil {
		r.refuse(w, http.StatusNotFound, err.Error())
		return
	}
	var round stream.Round
	if text := q.PathValue("round"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n == 0 {
			r.refuse(w, http.StatusBadRequest, "the round: want a positive number")
			return
		}
		round = stream.Round(n)
	}
	wait, err := patience(q)
	if err != nil {
		r.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	f, err := r.followers.follow(q.Context(), task)
	if err != nil {
		r.unreadable(w, "task", err)
		return
	}
	s, ok := f.first(q.Context(), round)
	if seen := q.URL.Query().Get("seen"); ok && wait > 0 && s.Tag() == seen {
		leave, entered := r.enter(&r.polls, w, q)
		if !entered {
			return
		}
		s, ok = f.news(q.Context(), round, seen, wait)
		leave()
	}
	if !ok {
		r.refuse(w, http.StatusServiceUnavailable, "the broker does not answer")
		return
	}
	record(w, s.Bytes(), "no-store")
}

// patience reads for how long a request waits.
func patience(q *http.Request) (time.Duration, error) {
	text := q.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if wait := time.Duration(n) * time.Second; err == nil && wait <= MaxWait {
		return wait, nil
	}
	return 0, errors.New("wait: want a whole number of seconds from 0 to 55")
}

// first returns the state, and waits for a broker that has not answered yet.
func (f *follower) first(ctx context.Context, round stream.Round) (relayhttp.State, bool) {
	ctx, cancel := context.WithTimeout(ctx, brokerTime)
	defer cancel()
	for {
		_, known, changed := f.now()
		if known {
			return f.at(ctx, round)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return relayhttp.State{}, false
		case <-f.all.ctx.Done():
			return relayhttp.State{}, false
		}
	}
}

// news waits until the state is another than the one that was seen, and returns it, or the same at the end of the time.
func (f *follower) news(ctx context.Context, round stream.Round, seen string, wait time.Duration) (s relayhttp.State,
	ok bool) {
	over := time.After(wait)
	for {
		_, _, changed := f.now()
		if s, ok = f.at(ctx, round); !ok || s.Tag() != seen {
			return s, ok
		}
		select {
		case <-changed:
		case <-over:
			f.all.followed(f.task)
			return f.at(ctx, round)
		case <-ctx.Done():
			return s, true
		case <-f.all.ctx.Done():
			return s, true
		}
	}
}

// at returns the state with the attempts at a round, 0 for the newest. Those of another round than the newest are read.
func (f *follower) at(ctx context.Context, round stream.Round) (relayhttp.State, bool) {
	s, known, _ := f.now()
	if round == 0 || round == s.Open.Round {
		return s, known
	}
	s.Open, s.Join, s.Claim, s.Close = relayhttp.Mark{}, relayhttp.Mark{}, relayhttp.Mark{}, relayhttp.Mark{}
	return s, f.attempts(ctx, &s, round) == nil
}
