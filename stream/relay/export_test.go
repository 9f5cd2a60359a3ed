package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/stream"
)

// AnySize lets reports of every length pass.
func (r *Relay) AnySize(most int) {
	sizes := make([]int, most)
	for i := range sizes {
		sizes[i] = i + 1
	}
	r.followers.sizes = func(context.Context, stream.Task) ([]int, error) { return sizes, nil }
}

// OneSize lets reports of one length pass.
func (r *Relay) OneSize(size int) {
	r.followers.sizes = func(context.Context, stream.Task) ([]int, error) { return []int{size}, nil }
}

// MustToken returns the rule of a token.
func MustToken(token string) httpaccess.Access {
	a, err := httpaccess.Token(token)
	if err != nil {
		panic(err)
	}
	return a
}

// BodyTime gives bodies another time.
func (r *Relay) BodyTime(d time.Duration) { r.bodyTime = d }

// Followed returns the number of tasks that are followed.
func (r *Relay) Followed() int {
	r.followers.mu.Lock()
	defer r.followers.mu.Unlock()
	return len(r.followers.of)
}

// OpenAPI is the description that is served.
var OpenAPI = openAPI

// Routes returns method, path and whether it needs no token, of each route.
func (r *Relay) Routes() (all []string) {
	for _, at := range r.table() {
		all = append(all, fmt.Sprintf("%s %s %t", at.Method, at.Path, at.Open))
	}
	return all
}
