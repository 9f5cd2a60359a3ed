package issuer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream/grant"
)

// Media types of RFC 9578, section 6. A page of another origin cannot send the first without being asked.
const (
	requestType  = "application/private-token-request"
	responseType = "application/private-token-response"
)

// maxBatch is the most requests of a gateway in one body.
const maxBatch = 256

// An Outcome names what became of a request, for metrics.
type Outcome string

// Outcomes of requests: all that is counted.
const (
	Issued  Outcome = "issued"
	Again   Outcome = "again"   // the same message of the same person
	Another Outcome = "another" // another message of a person who has a signature
	Nobody  Outcome = "nobody"  // nobody is logged in
	Bad     Outcome = "bad"     // not a request
	Often   Outcome = "often"   // a person asked too often
	Failed  Outcome = "failed"  // the list cannot be written
)

// Outcomes returns all of them.
func Outcomes() []Outcome { return []Outcome{Issued, Again, Another, Nobody, Bad, Often, Failed} }

// Config configures a Handler. Key, List and Login are required.
type Config struct {
	Key   *Key
	List  *List
	Login Login
	// Proxy decides who may send requests with a header of a login: proxies with its token, or this machine. Nil:
	// everybody, because a JWT proves who made it.
	Proxy *httpaccess.Access
	// Gateways may have tokens signed for people whom they name. Nil: nobody may.
	Gateways *httpaccess.Access
	Origins  []string // of pages that may send requests, beside the service's own
	Observe  func(Outcome)
	Logger   *slog.Logger // nil: none
}

// A Handler is the issuer's interface over HTTP.
type Handler struct {
	Config
	mux   http.ServeMux
	busy  chan struct{} // of those who sign
	turns *turns
}

// NewHandler returns the interface of an issuer.
func NewHandler(c Config) (*Handler, error) {
	if c.Key == nil || c.List == nil || c.Login == nil {
		return nil, errors.New("issuer: Key, List and Login: want all")
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	h := &Handler{Config: c, busy: make(chan struct{}, runtime.GOMAXPROCS(0)), turns: &turns{now: time.Now}}
	base := "/v1/tasks/" + string(c.Key.Task)
	h.mux.HandleFunc("POST "+base+"/grant", h.grant)
	h.mux.HandleFunc("OPTIONS "+base+"/grant", h.preflight)
	h.mux.HandleFunc("POST "+base+"/grants", h.batch)
	h.mux.HandleFunc("GET "+base+"/key", h.key)
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.mux.ServeHTTP(w, r)
}

// origin allows a page to read the answer, and refuses pages that are not listed.
func (h *Handler) origin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	w.Header().Add("Vary", "Origin")
	switch {
	case origin == "":
		return true
	case !slices.Contains(h.Origins, origin):
		http.Error(w, "pages of this origin may not ask", http.StatusForbidden)
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	return true
}

func (h *Handler) preflight(w http.ResponseWriter, r *http.Request) {
	if h.origin(w, r) {
		w.Header().Set("Access-Control-Allow-Methods", "POST")
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Authorization")
		w.WriteHeader(http.StatusNoContent)
	}
}

// refuse writes the reason why a caller gets no token.
func (h *Handler) refuse(w http.ResponseWriter, o Outcome, status int, why string) {
	observe.Tell(h.Observe, o)
	http.Error(w, why, status)
}

var errOften = fmt.Errorf("this person asked more than %d times in %v", mostAsked, window)

func (h *Handler) grant(w http.ResponseWriter, r *http.Request) {
	if !h.origin(w, r) {
		return
	}
	if h.Proxy != nil {
		if status, why := h.Proxy.Refuse(w, r, "issuer"); status != 0 {
			h.refuse(w, Nobody, status, why)
			return
		}
	}
	if r.Header.Get("Content-Type") != requestType {
		h.refuse(w, Bad, http.StatusUnsupportedMediaType, "want the Content-Type "+requestType)
		return
	}
	person, err := h.Login(r)
	if err != nil {
		h.refuse(w, Nobody, http.StatusUnauthorized, err.Error())
		return
	}
	if wait := h.turns.take(h.Key.who(person)); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		h.refuse(w, Often, http.StatusTooManyRequests, errOften.Error())
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, grant.RequestSize))
	if err != nil {
		h.refuse(w, Bad, http.StatusBadRequest, "the body is no request for a token")
		return
	}
	answer, status, why := h.sign(person, body)
	if status != 0 {
		http.Error(w, why, status)
		return
	}
	w.Header().Set("Content-Type", responseType)
	_, _ = w.Write(answer)
}

// sign notes the person's message, and signs it. A status other than 0 says why it does not.
func (h *Handler) sign(person string, request []byte) (answer []byte, status int, why string) {
	refuse := func(o Outcome, status int, why string) ([]byte, int, string) {
		observe.Tell(h.Observe, o)
		return nil, status, why
	}
	blinded, err := grant.ParseRequest(request, grant.KeyID(h.Key.Signer.Public()))
	if err != nil {
		return refuse(Bad, http.StatusUnprocessableEntity, err.Error())
	}
	if !h.Key.Signer.Signs(blinded) {
		return refuse(Bad, http.StatusUnprocessableEntity, "a blinded message that is not below the modulus")
	}
	again, err := h.List.take(person, blinded)
	switch {
	case errors.Is(err, errOther):
		return refuse(Another, http.StatusConflict, "this person's token was given for another message")
	case err != nil:
		h.Logger.Error("nothing is signed any more: the list cannot be written", "error", err)
		return refuse(Failed, http.StatusServiceUnavailable, "not now")
	}
	h.busy <- struct{}{}
	answer, err = h.Key.Signer.Sign(blinded)
	<-h.busy
	if err != nil {
		return refuse(Failed, http.StatusServiceUnavailable, "not now")
	}
	if again {
		observe.Tell(h.Observe, Again)
	} else {
		observe.Tell(h.Observe, Issued)
	}
	return answer, 0, ""
}

// batchBody is the body of a gateway's request.
type batchBody struct {
	Requests []batchRequest `json:"requests"`
}

// A batchRequest is a request for the token of a person whom the gateway names.
type batchRequest struct {
	Person  string `json:"person"`
	Request []byte `json:"request"`
}

// batchAnswers holds what a gateway is answered, in the order of its requests.
type batchAnswers struct {
	Answers []batchAnswer `json:"answers"`
}

// A batchAnswer has the response, or a status.
type batchAnswer struct {
	Response []byte `json:"response,omitempty"`
	Status   int    `json:"status,omitempty"`
}

func (h *Handler) batch(w http.ResponseWriter, r *http.Request) {
	if h.Gateways == nil {
		h.refuse(w, Nobody, http.StatusForbidden, "no gateway may ask: the issuer was started without --gateway-token")
		return
	}
	if status, why := h.Gateways.Refuse(w, r, "issuer"); status != 0 {
		h.refuse(w, Nobody, status, why)
		return
	}
	var b batchBody
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBatch*(2*grant.RequestSize+2*maxPerson)))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil || len(b.Requests) == 0 || len(b.Requests) > maxBatch {
		h.refuse(w, Bad, http.StatusBadRequest, "want JSON with 1 to 256 requests")
		return
	}
	out := batchAnswers{Answers: make([]batchAnswer, len(b.Requests))}
	done := make(chan struct{})
	for i, one := range b.Requests {
		go func() {
			defer func() { done <- struct{}{} }()
			if !isPerson(one.Person) {
				out.Answers[i].Status = http.StatusBadRequest
				return
			}
			out.Answers[i].Response, out.Answers[i].Status, _ = h.sign(one.Person, one.Request)
		}()
	}
	for range b.Requests {
		<-done
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (h *Handler) key(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(h.Key.Signer.Public())
}
