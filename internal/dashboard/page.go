package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/build"
	"github.com/panlearn/panlearn/internal/model"
)

//go:embed assets
var assets embed.FS

// A part is a piece of the page that changes: its template, of the data, fills the element of the id.
type part struct {
	id, template string
	data         any
}

// parts returns the parts of the page.
func (v View) parts() (out []part) {
	for _, name := range []string{"verdict", "detail", "tiles", "cohort", "privacy", "validation", "weights", "peers",
		"outcomes", "axes", "asof"} {
		out = append(out, part{name, name, v})
	}
	for _, c := range v.Charts {
		out = append(out, part{c.ID, "chart", c})
	}
	return out
}

// policy lets the page use what it comes with, and nothing else: no inline script or style, no other origin, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pageBuild names the page of this program, so that an open page of another one loads itself again.
var pageBuild = sync.OnceValue(func() string {
	h := sha256.New()
	_ = fs.WalkDir(assets, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := assets.ReadFile(file) // embedded
			fmt.Fprintf(h, "%s %d\n%s", file, len(text), text)
		}
		return err
	})
	fmt.Fprint(h, build.This())
	return hex.EncodeToString(h.Sum(nil)[:8])
})

// Options configures how a page is served. The zero value is right for programs.
type Options struct {
	Streams  int           // of events at a time; default 16
	Every    time.Duration // between looks at what has changed; default 1 s
	Patience time.Duration // for a reader who does not take what is written; default 5 s
}

type page struct {
	board     *Board
	options   Options
	done      <-chan struct{}
	templates *template.Template
	streams   chan struct{} // one for each open stream

	mu    sync.Mutex // guards model
	model released
}

// Handler serves the page at / and its events at /events until done is closed; then every stream ends after one last
// look.
func Handler(b *Board, done <-chan struct{}, o Options) http.Handler {
	if o.Streams <= 0 {
		o.Streams = 16
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	p := &page{board: b, options: o, done: done, streams: make(chan struct{}, o.Streams),
		templates: template.Must(template.ParseFS(assets, "assets/*.html"))}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.whole)
	mux.HandleFunc("GET /events", p.events)
	mux.HandleFunc("GET /charts/{name}", p.chart)
	mux.HandleFunc("GET /model.json", p.download("model.json", "application/json", model.Snapshot.JSON))
	mux.HandleFunc("GET /model.onnx", p.download("model.onnx", "application/octet-stream", model.Snapshot.ONNX))
	mux.HandleFunc("GET /model.npz", p.download("model.npz", "application/zip", model.Snapshot.NumPy))
	serveAssets(mux, "page.css", "page.js", "cursor.js", "icon.svg")
	return strict(mux)
}

// kinds are the content types of assets, by the end of their names.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// serveAssets serves embedded files below /.
func serveAssets(mux *http.ServeMux, names ...string) {
	for _, name := range names {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // embedded
		}
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kinds[path.Ext(name)])
			_, _ = w.Write(text) // on an error the client has gone
		})
	}
}

// strict sets the headers of every answer.
func strict(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	})
}

// released returns the model. It reads a newer one if ctx allows and the last was read long enough ago.
func (p *page) released(ctx context.Context) *Model {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil || p.stopping() {
		return p.model.snapshot
	}
	return p.model.get(ctx, p.board)
}

// view returns the view of the page now.
func (p *page) view(ctx context.Context, by By) View { return p.board.view(p.released(ctx), by) }

func (p *page) stopping() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *page) whole(w http.ResponseWriter, r *http.Request) {
	out, err := p.render("page", p.view(r.Context(), byOf(r.FormValue("by"))))
	if err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out) // on an error the client has gone
}

func (p *page) render(template string, data any) ([]byte, error) {
	var out bytes.Buffer
	err := p.templates.ExecuteTemplate(&out, template, data)
	return out.Bytes(), err
}
