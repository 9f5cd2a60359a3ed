// Package devicepage is the page on which a person takes part in a task from a browser, for `learner quickstart`.
//
// The page is for people: it shows what leaves it, what that costs, who could see what, and the outcome of a report.
// The device in it is clients/typescript, bundled into the files of assets that Bundle names: as generated Go code is,
// they are committed, and a test of internal/test/typescript compares them with a fresh build. The page sends requests
// to a relay of its own origin, and nowhere else. It has no cookies, and keeps only a device's records in IndexedDB,
// and whether the person has declined to take part.
package devicepage

import (
	"bytes"
	"context"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"

	"github.com/panlearn/panlearn/stream"
)

//go:embed assets
var assets embed.FS

// Path names the address at which Handler serves the page.
const Path = "/device"

// Bundle names the files of the device: device.js, and the chunks that it loads if a task, or a browser, needs one.
var Bundle = []string{"device.js", "rare.js", "hybrid.js", "ed25519.js", "grants.js", "whole.js"}

// policy lets the page run and show its own files, and send requests to its own origin: no inline script or style, no
// image, no frame, no form that is sent.
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// A page holds what the template prints.
type page struct {
	Task stream.Task
	Pin  string // hash of the task, in hexadecimal; empty: it is not announced
}

// Handler serves the page at Path, and what it loads below. pin returns the hash of the task, the only one that the
// device in the page accepts, or false as long as the task is not announced. Serve the relay for the page on the same
// origin, at relayhttp.Path.
func Handler(task stream.Task, pin func(context.Context) (stream.Hash, bool)) http.Handler {
	html := template.Must(template.ParseFS(assets, "assets/page.html"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		p := page{Task: task}
		if hash, ok := pin(r.Context()); ok {
			p.Pin = hex.EncodeToString(hash[:])
		}
		var out bytes.Buffer
		if err := html.Execute(&out, p); err != nil {
			http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
			return
		}
		write(w, "text/html", out.Bytes())
	})
	for name, kind := range map[string]string{"page.css": "text/css", "page.js": "text/javascript"} {
		serve(mux, name, kind)
	}
	for _, name := range Bundle {
		serve(mux, name, "text/javascript")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			w.Header().Set(name, value)
		}
		mux.ServeHTTP(w, r)
	})
}

func serve(mux *http.ServeMux, name, kind string) {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // embedded
	}
	mux.HandleFunc("GET "+Path+"/"+name, func(w http.ResponseWriter, _ *http.Request) { write(w, kind, text) })
}

func write(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	_, _ = w.Write(text) // on an error the client has gone
}
