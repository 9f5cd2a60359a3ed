package statedir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// A Question names a document that a running learner, or its state folder, can be asked for.
type Question string

// The questions, each answered by one JSON document. Parameters may follow as in a URL, see SnapshotOf, SnapshotAt and
// HistoryOf.
const (
	AskSnapshot Question = "snapshot"
	AskStatus   Question = "status"
	AskLedger   Question = "ledger"
	askHistory  Question = "history"
)

// answer writes the answer to a question from the committed state.
func answer(ctx context.Context, store state.Store, q Question, w io.Writer) error {
	name, rest, _ := strings.Cut(string(q), "?")
	with, err := url.ParseQuery(rest)
	if err != nil {
		return &refusal{http.StatusBadRequest, fmt.Sprintf("question %q: %v", q, err)}
	}
	switch Question(name) {
	case AskLedger:
		return writeLedger(ctx, store, w)
	case AskBackup:
		return writeImage(ctx, store, w)
	case AskSnapshot, AskStatus, askHistory:
	default:
		return fmt.Errorf("question %q: want snapshot, status, ledger or history", q)
	}
	view, err := Look(ctx, store)
	if err != nil {
		return err
	}
	var v any
	switch Question(name) {
	case AskSnapshot:
		v, err = view.earlier(ctx, store, with)
	case askHistory:
		v, err = view.history(ctx, store, with)
	default:
		v, err = view.Status()
	}
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Handler serves the questions as GET /v1/<question>. Everything it serves is released and public.
func Handler(store state.Store) http.Handler {
	mux := http.NewServeMux()
	serve(mux, store, slowest, AskSnapshot, AskStatus, AskLedger, askHistory)
	return mux
}

// ControlHandler serves the control socket of a running learner: the questions of Handler, backup, POST /v1/finish,
// with ?now to give up an open round, and the changes of a history, each as POST with ?round=R. A process that may open
// the socket may end the task and choose its model, so no HTTP port serves it.
func ControlHandler(store state.Store, finish *service.Finisher, history *service.History) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", Handler(store))
	serve(mux, store, slowest, AskBackup)
	for _, c := range []Change{RollBack, Pin, Unpin} {
		mux.HandleFunc("POST /v1/"+string(c), func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, history) })
	}
	mux.HandleFunc("POST /v1/finish", func(w http.ResponseWriter, r *http.Request) {
		_, err := store.Load(r.Context())
		switch {
		case errors.Is(err, state.ErrEmpty):
			http.Error(w, nothingYet, http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			finish.Finish(r.URL.Query().Has("now"))
			w.WriteHeader(http.StatusAccepted)
		}
	})
	return mux
}

// slowest bounds the time a reader takes for what is written at once, a few kilobytes of a ledger. The whole answer
// may take as long as the task is.
const slowest = time.Minute

func serve(mux *http.ServeMux, store state.Store, slowest time.Duration, questions ...Question) {
	for _, q := range questions {
		mux.HandleFunc("GET /v1/"+string(q), func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			_ = control.SetWriteDeadline(time.Time{}) // a long ledger is verified first
			w.Header().Set("Content-Type", "application/json")
			if q == AskBackup {
				w.Header().Set("Content-Type", "application/octet-stream")
			}
			body := &begun{w: w, extend: func() { _ = control.SetWriteDeadline(time.Now().Add(slowest)) }}
			err := answer(r.Context(), store, q+Question("?"+r.URL.RawQuery), body)
			body.extend() // for the rest, or for the error
			refused := (*refusal)(nil)
			switch {
			case err == nil:
			case body.bytes > 0:
				panic(http.ErrAbortHandler) // or it would look whole
			case errors.As(err, &refused):
				http.Error(w, refused.text, refused.code)
			case errors.Is(err, state.ErrEmpty):
				http.Error(w, nothingYet, http.StatusServiceUnavailable)
			default:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
}

// begun counts what was written, and extends the time for it.
type begun struct {
	w      io.Writer
	extend func()
	bytes  int
}

func (b *begun) Write(p []byte) (int, error) {
	b.extend()
	n, err := b.w.Write(p)
	b.bytes += n
	return n, err
}

// A Where selects the learner to ask: by a state folder or by the URL of `learner run --http`.
type Where struct {
	StateDir string
	URL      string
	Silence  time.Duration // how long an answer may take to begin; 0: 30 s. A long ledger is verified first
}

func (w Where) silence() time.Duration { return cmp.Or(w.Silence, silence) }

// patience is the time for which a held folder is tried again; the holder is a command that reads it, or a learner that
// starts or stops. A running learner replies to readers over its control socket at once.
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
	store, err := untilFree(ctx, func() (*pebblestore.Store, error) {
		return pebblestore.Open(dir, pebblestore.Options{Logger: log})
	})
	if err != nil {
		return nil, fmt.Errorf("--state %s: %w", dir, err)
	}
	return store, nil
}

// Ask returns the answer to a question, a JSON document. A state folder that another process holds is asked over its
// control socket; otherwise it is opened read-only. It creates nothing. Nothing committed yet is an error that wraps
// state.ErrEmpty; a folder that is held and does not answer is one that wraps state.ErrLocked.
func Ask(ctx context.Context, where Where, q Question) ([]byte, error) {
	var doc bytes.Buffer
	err := AskTo(ctx, where, q, func(r io.Reader) error {
		doc.Reset()
		_, err := io.Copy(&doc, r)
		return err
	})
	return bytes.TrimSuffix(doc.Bytes(), []byte("\n")), err
}

// AskTo is Ask for an answer of any length, which is read as it comes. Reading may begin, and fail, and then begin
// again with another answer.
func AskTo(ctx context.Context, where Where, q Question, read func(io.Reader) error) error {
	return consult(ctx, where, q, read, func(store state.Store) error {
		r, w := io.Pipe()
		go func() { w.CloseWithError(answer(ctx, store, q, w)) }()
		err := read(r)
		r.CloseWithError(errors.New("the reader has gone")) // ends the writer, if it has not ended
		return err
	})
}

// consult asks a learner over its socket or URL, or reads its folder if no process holds it.
func consult(ctx context.Context, where Where, q Question, answered func(io.Reader) error,
	look func(state.Store) error) error {
	if where.URL != "" {
		return askHTTP(ctx, http.DefaultClient, strings.TrimSuffix(where.URL, "/"), where.silence(), q, answered)
	}
	_, err := untilFree(ctx, func() (struct{}, error) { return struct{}{}, askFolder(ctx, where, q, answered, look) })
	return err
}

func askFolder(ctx context.Context, where Where, q Question, answered func(io.Reader) error,
	look func(state.Store) error) error {
	dir := where.StateDir
	store, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	switch {
	case errors.Is(err, state.ErrLocked):
		conn, dialErr := Dial(ctx, dir)
		if dialErr != nil {
			return fmt.Errorf("%w, which answers no control socket (%v)", err, dialErr)
		}
		defer conn.Close()
		return held(ctx, askHTTP(ctx, ClientOn(conn), "http://control", where.silence(), q, answered))
	case errors.Is(err, state.ErrEmpty):
		return fmt.Errorf("%s: %w; has `learner run` begun the task there?", dir, err)
	case err != nil:
		return err
	}
	defer store.Close()
	return look(store)
}

// ClientOn returns a client for one request to the learner at the other end of a control socket.
func ClientOn(conn net.Conn) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
}

// held adds ErrLocked to a failure to ask the process that holds a folder, since that process is to blame and not its
// state. If the process ended in between, its folder is free for the next attempt.
func held(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, errSilent):
		return fmt.Errorf("%w: %w", state.ErrLocked, err)
	case Ended(err):
		return fmt.Errorf("%w, who ended while it was asked: %w", state.ErrLocked, err)
	}
	return err
}

// Ended reports whether a request to a control socket failed because the process that served it ended, and not by its
// answer.
func Ended(err error) bool {
	for _, one := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// errSilent means that a process takes connections and never replies: it is stopped, or swapped out.
var errSilent = errors.New(
	"it takes connections and answers nothing: it is stopped (SIGSTOP, a debugger), or its machine is overloaded; its state is not to blame")

// errBehind means that a proxy answered instead of a learner.
var errBehind = errors.New("a proxy reaches no learner")

// Away reports whether a learner could not be asked, for a reason that may pass by itself: it, or its machine, does not
// run, or does not answer.
func Away(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, errSilent) || errors.Is(err, errBehind) || Ended(err)
}

// ParseURL reads the URL of a learner's --http. Its error does not show it, which may have a password.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("want http://HOST:PORT, of learner run --http")
	}
	return u, nil
}

// silence is the default of Where.Silence.
const silence = 30 * time.Second

// askHTTP gives an answer so long to begin.
func askHTTP(ctx context.Context, client *http.Client, base string, silence time.Duration, q Question,
	answered func(io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer late.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/"+string(q), nil)
	if err != nil || req.URL.Host == "" {
		return errors.New("ask the learner: want http://HOST:PORT, of learner run --http") // it may have a password
	}
	resp, err := client.Do(req)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSilent) {
		err = cause
	}
	if err != nil {
		if of := (*url.Error)(nil); errors.As(err, &of) {
			err = of.Err // without the address, which may have a token
		}
		return fmt.Errorf("ask the learner at %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		if q == AskLedger || q == AskBackup {
			late.Stop()
		}
		return answered(resp.Body)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return fmt.Errorf("ask the learner: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusServiceUnavailable:
		return notYet(body)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return fmt.Errorf("ask the learner at %s: %w: %s", req.URL.Host, errBehind, resp.Status)
	}
	return answered4xx(resp.StatusCode, resp.Status, body)
}

// nothingYet is the answer of a learner that has begun no task.
const nothingYet = "nothing is committed yet"

// notYet returns the error of an answer with status 503. A learner of many tasks adds what the task does meanwhile.
func notYet(body []byte) error {
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if text == "" || text == nothingYet || len(text) > 1000 || strings.HasPrefix(text, "<") {
		return fmt.Errorf("ask the learner: %w: it has begun no task yet", state.ErrEmpty)
	}
	return fmt.Errorf("ask the learner: %w: it has begun no task yet: %s", state.ErrEmpty, text)
}

// StatusOf returns the status of a state folder.
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
