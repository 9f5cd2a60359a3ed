package relay

import (
	"context"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/stream"
)

// AnySize lets reports of every length pass.
func (r *Relay) AnySize(most int) {
	sizes := make([]int, most)
	for i := range sizes {
		sizes[i] = i + 1
	}
	r.sizes = func(context.Context, stream.Task) ([]int, error) { return sizes, nil }
}

// MustToken returns the rule of a token.
func MustToken(token string) httpaccess.Access {
	a, err := httpaccess.Token(token)
	if err != nil {
		panic(err)
	}
	return a
}
