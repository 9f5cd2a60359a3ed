package dashboard

import (
	"bytes"
	"html/template"
	"net/http"
	"time"
)

// A TaskLine describes one task on the page of many, or a file that declares none.
type TaskLine struct {
	Task  string // empty: a file that declares none
	File  string
	State string // one word
	Line  string // what it does, in a sentence
	Wrong bool   // somebody has to look
	Shown bool   // it has a page below tasks/
	Since time.Time
}

// TasksHandler serves the page of the tasks of one process at /: tasks that need attention first, each with a link to
// its own page at tasks/NAME/. It calls lines at each request, and the page reloads every five seconds.
func TasksHandler(title string, lines func() []TaskLine) http.Handler {
	templates := template.Must(template.ParseFS(assets, "assets/*.html"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		view := tasksView{Title: title}
		now := time.Now()
		for _, l := range lines() {
			to := &view.Well
			if l.Wrong {
				to = &view.Wrong
			}
			*to = append(*to, taskRow{TaskLine: l, At: clock(l.Since, now)})
		}
		var out bytes.Buffer
		if err := templates.ExecuteTemplate(&out, "tasks", view); err != nil {
			http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(out.Bytes()) // on an error the client has gone
	})
	serveAssets(mux, "page.css", "icon.svg")
	return strict(mux)
}

// A tasksView is the data of the page of many tasks.
type tasksView struct {
	Title       string
	Wrong, Well []taskRow
}

type taskRow struct {
	TaskLine
	At string // since when
}

// Line returns the verdict on the task, in a sentence, and whether somebody has to look.
func (b *Board) Line() (line string, wrong bool) {
	st, now := b.look()
	v := st.verdict(now)
	return v.Title, v.Level == warn || v.Level == Wrong
}
