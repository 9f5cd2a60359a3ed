package obs

import (
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
)

// Profiles serves profiles of this process for `go tool pprof` below /debug/pprof/: profile (of the processor), heap, allocs,
// goroutine, block, mutex and threadcreate. They have stacks, numbers and sizes, and no content of memory. What would have it
// is refused: text of stacks with their arguments, among which counts of one user may be. So are requests by another name than this
// machine's, which a web page makes whose name was pointed here. It has no authentication: for loopback alone.
func Profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	for _, name := range []string{"heap", "allocs", "goroutine", "block", "mutex", "threadcreate"} {
		mux.Handle("GET /debug/pprof/"+name, pprof.Handler(name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := r.FormValue("debug"); text != "" {
			if level, err := strconv.Atoi(text); err != nil || level < 0 || level > 1 {
				http.Error(w, "debug: want 0 or 1: stacks with their arguments are not shown", http.StatusBadRequest)
				return
			}
		}
		if !thisMachine(r.Host) {
			http.Error(w, "want a request to a loopback address or localhost", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func thisMachine(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
