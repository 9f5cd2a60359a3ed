package statedir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// A Question is what a running learner, or its state folder, can be asked.
type Question string

// The questions, each answered by one JSON document.
const (
	AskSnapshot Question = "snapshot"
	AskStatus   Question = "status"
	AskLedger   Question = "ledger"
)

// answer reads the committed state.
func answer(ctx context.Context, store state.Store, q Question) (any, error) {
	view, err := Look(ctx, store)
	if err != nil {
		return nil, err
	}
	switch q {
	case AskSnapshot:
		return view.Snapshot()
	case AskStatus:
		return view.Status()
	case AskLedger:
		return view.LedgerReport()
	case AskBackup:
		return view.Image()
	}
	return nil, fmt.Errorf("question %q: want snapshot, status or ledger", q)
}

// Handler serves the questions as GET /v1/<question>. Everything it serves is released and public.
func Handler(store state.Store) http.Handler {
	mux := http.NewServeMux()
	serve(mux, store, AskSnapshot, AskStatus, AskLedger)
	return mux
}

// ControlHandler serves the control socket of a running learner: the questions of Handler, backup, and POST /v1/finish,
// with ?now to give up an open round. Whoever may open the socket may end the task, so no HTTP port serves it.
func ControlHandler(store state.Store, finish *service.Finisher) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", Handler(store))
	serve(mux, store, AskBackup)
	mux.HandleFunc("POST /v1/finish", func(w http.ResponseWriter, r *http.Request) {
		_, err := store.Load(r.Context())
		switch {
		case errors.Is(err, state.ErrEmpty):
			http.Error(w, "nothing is committed yet", http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			finish.Finish(r.URL.Query().Has("now"))
			w.WriteHeader(http.StatusAccepted)
		}
	})
	return mux
}

func serve(mux *http.ServeMux, store state.Store, questions ...Question) {
	for _, q := range questions {
		mux.HandleFunc("GET /v1/"+string(q), func(w http.ResponseWriter, r *http.Request) {
			v, err := answer(r.Context(), store, q)
			switch {
			case errors.Is(err, state.ErrEmpty):
				http.Error(w, "nothing is committed yet", http.StatusServiceUnavailable)
				return
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			_ = enc.Encode(v) // the peer has gone: nobody to tell
		})
	}
}

// A Where says which learner is asked: a state folder or a URL of `learner run --http`.
type Where struct {
	StateDir string
	URL      string
}

// patience is how long a folder that somebody holds is tried again: a command that reads it, or a learner that starts or
// stops. A learner that runs answers readers over its control socket at once.
const patience = 5 * time.Second

// untilFree opens a state folder, and tries again while it is held.
func untilFree[T any](ctx context.Context, open func() (T, error)) (T, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		v, err := open()
		if !errors.Is(err, state.ErrLocked) || time.Now().After(deadline) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, err
		case <-tick.C:
		}
	}
}

// Open opens a learner's state folder for writing. It waits a little while another process holds it.
func Open(ctx context.Context, dir string, log *slog.Logger) (*pebblestore.Store, error) {
	store, err := untilFree(ctx, func() (*pebblestore.Store, error) { return pebblestore.Open(dir, pebblestore.Options{Logger: log}) })
	if err != nil {
		return nil, fmt.Errorf("--state %s: %w", dir, err)
	}
	return store, nil
}

// Ask returns the answer to a question, a JSON document. A state folder that another process holds is asked over its control
// socket; otherwise it is opened read-only. It creates nothing. Nothing committed yet is an error that wraps
// state.ErrEmpty; a folder that is held and does not answer is one that wraps state.ErrLocked.
func Ask(ctx context.Context, where Where, q Question) ([]byte, error) {
	if where.URL != "" {
		return askHTTP(ctx, http.DefaultClient, strings.TrimSuffix(where.URL, "/"), q)
	}
	return untilFree(ctx, func() ([]byte, error) { return askFolder(ctx, where.StateDir, q) })
}

func askFolder(ctx context.Context, dir string, q Question) ([]byte, error) {
	store, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	switch {
	case errors.Is(err, state.ErrLocked):
		conn, dialErr := Dial(ctx, dir)
		if dialErr != nil {
			return nil, fmt.Errorf("%w, which answers no control socket (%v)", err, dialErr)
		}
		defer conn.Close()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
		return askHTTP(ctx, client, "http://control", q)
	case errors.Is(err, state.ErrEmpty):
		return nil, fmt.Errorf("%s: %w; has `learner run` begun the task there?", dir, err)
	case err != nil:
		return nil, err
	}
	defer store.Close()
	v, err := answer(ctx, store, q)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(v, "", "  ")
}

func askHTTP(ctx context.Context, client *http.Client, base string, q Question) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/"+string(q), nil)
	if err != nil {
		return nil, fmt.Errorf("ask the learner: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the learner: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<30))
	if err != nil {
		return nil, fmt.Errorf("ask the learner: %w", err)
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("ask the learner: %w: it has begun no task yet", state.ErrEmpty)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the learner answers %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// StatusOf asks a state folder for its status.
func StatusOf(ctx context.Context, dir string) (Status, error) {
	var s Status
	doc, err := Ask(ctx, Where{StateDir: dir}, AskStatus)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(doc, &s); err != nil {
		return s, fmt.Errorf("the learner's answer: %w", err)
	}
	return s, nil
}
