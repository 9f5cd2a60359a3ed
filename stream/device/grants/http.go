package grants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/panlearn/panlearn/stream/grant"
)

// client bounds what an issuer may take of a device's time.
func client(c *http.Client) *http.Client {
	if c != nil {
		return c
	}
	return &http.Client{Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// A Login is the Personal of one person's device. It asks the issuer with the application's login.
type Login struct {
	URL string // of the issuer's grant
	// Authorize adds the person's login to a request: a cookie, or a token. Nil: nothing is added.
	Authorize func(*http.Request)
	Client    *http.Client // nil: one with a timeout of 30 s, which follows no redirection
}

// OnePerson implements Personal.
func (Login) OnePerson() {}

// Sign implements Source.
func (l Login) Sign(ctx context.Context, asks []Ask) ([]Answer, error) {
	out := make([]Answer, len(asks))
	var failed error
	for i, ask := range asks {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL, bytes.NewReader(ask.Message))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/private-token-request")
		if l.Authorize != nil {
			l.Authorize(r)
		}
		status, body, err := post(client(l.Client), r, grant.SignatureSize)
		switch {
		case err != nil:
			failed = err
		case status == http.StatusOK:
			out[i].Signature = body
		case status == http.StatusConflict:
			out[i].Refused = true
		default:
			failed = fmt.Errorf("the issuer answers with status %d", status)
		}
	}
	return out, failed
}

// A Gateway is the Source of a gateway. It requests tokens for the people whom it names, and has an access token of its
// own. A name that is not UTF-8 gets no token, because JSON cannot carry it.
type Gateway struct {
	URL    string // of the issuer's grants
	Token  string
	Client *http.Client // nil: one with a timeout of 30 s, which follows no redirection
}

// maxBatch is the most requests in one body.
const maxBatch = 256

// Sign implements Source.
func (g Gateway) Sign(ctx context.Context, asks []Ask) ([]Answer, error) {
	type request struct {
		Person  string `json:"person"`
		Request []byte `json:"request"`
	}
	out, at := make([]Answer, len(asks)), make([]int, 0, len(asks))
	for i, a := range asks {
		if out[i].Nobody = !utf8.ValidString(a.Person); !out[i].Nobody {
			at = append(at, i)
		}
	}
	for len(at) > 0 {
		some := at[:min(len(at), maxBatch)]
		at = at[len(some):]
		var body struct {
			Requests []request `json:"requests"`
		}
		for _, i := range some {
			a := asks[i]
			body.Requests = append(body.Requests, request{a.Person, a.Message})
		}
		text, err := json.Marshal(body)
		if err != nil {
			return out, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL, bytes.NewReader(text))
		if err != nil {
			return out, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+g.Token)
		status, answer, err := post(client(g.Client), r, 1<<20)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the issuer answers with status %d", status)
		}
		if err != nil {
			return out, err
		}
		var got struct {
			Answers []struct {
				Response []byte `json:"response"`
				Status   int    `json:"status"`
			} `json:"answers"`
		}
		if err := json.Unmarshal(answer, &got); err != nil || len(got.Answers) != len(some) {
			return out, errors.New("the issuer's answer is not one to these requests")
		}
		for j, a := range got.Answers {
			out[some[j]] = Answer{Signature: a.Response, Refused: a.Status == http.StatusConflict,
				Nobody: a.Status == http.StatusBadRequest}
		}
	}
	return out, nil
}

// post makes a request and reads at most so many bytes of its answer.
func post(c *http.Client, r *http.Request, most int64) (status int, body []byte, err error) {
	a, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	body, err = io.ReadAll(io.LimitReader(a.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = errors.New("the issuer's answer is too long")
	}
	return a.StatusCode, body, err
}
