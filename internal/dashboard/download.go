package dashboard

import (
	"net/http"
	"strings"

	"github.com/panlearn/panlearn/internal/model"
)

// download serves the released model in one format.
func (p *page) download(file, kind string, format func(model.Snapshot) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := p.released(r.Context())
		if s == nil {
			http.Error(w, "no model is released yet", http.StatusServiceUnavailable)
			return
		}
		out, err := format(s.Snapshot)
		if err != nil { // of a feature that the format cannot express
			http.Error(w, err.Error(), http.StatusNotImplemented)
			return
		}
		attach(w, p.board.config.Task.Name+"-"+file, kind)
		_, _ = w.Write(out) // on an error the client has gone
	}
}

// chart serves the points of a chart as CSV. Points that the history has merged are one row.
func (p *page) chart(w http.ResponseWriter, r *http.Request) {
	id, ok := strings.CutSuffix(r.PathValue("name"), ".csv")
	st, _ := p.board.look()
	for _, f := range (drawing{&st, byRounds}).figures() {
		if ok && f.ID == id {
			attach(w, p.board.config.Task.Name+"-"+id+".csv", "text/csv; charset=utf-8")
			_ = f.plot.csv(w, f.lead) // on an error the client has gone
			return
		}
	}
	http.NotFound(w, r)
}

// attach makes an answer a file. A task's name is a word of letters, digits, - and _.
func attach(w http.ResponseWriter, file, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+clean(file)+`"`)
}

// clean replaces the characters of a name that a header may not hold by underscores.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, name)
}
