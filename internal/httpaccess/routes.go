package httpaccess

import "net/http"

// A Route is a method, a path, and what serves it.
type Route struct {
	Method, Path string
	Open         bool // needs no token
	Serve        http.HandlerFunc
}

// Mux returns a mux of routes. It passes a request that the rule refuses to refuse, unless the route is open. whose is
// as in Refuse.
func (a Access) Mux(routes []Route, whose string, refuse func(w http.ResponseWriter, status int, why string)) *http.ServeMux {
	mux := http.NewServeMux()
	for _, at := range routes {
		mux.HandleFunc(at.Method+" "+at.Path, func(w http.ResponseWriter, r *http.Request) {
			if !at.Open {
				if status, why := a.Refuse(w, r, whose); status != 0 {
					refuse(w, status, why)
					return
				}
			}
			at.Serve(w, r)
		})
	}
	return mux
}
