package httpgateway

import (
	"encoding/hex"
	"net/http"
	"testing"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/grant"
)

// TestTaskNamesItsIssuer: an application gets the issuer of a task's tokens, and of a task without tokens none.
func TestTaskNamesItsIssuer(t *testing.T) {
	public := granttest.Signer(t).Public()
	id := grant.KeyID(public)
	for want, sets := range map[string][]string{"": nil,
		hex.EncodeToString(id[:]): {"grants=pass", "issuer_key=" + task.IssuerKeyText(public)}} {
		w := newWorldOf(t, columns, options{sets: sets})
		status, said := w.do(w.request(http.MethodGet, "/v1/task", nil))
		if got, there := said["issuer_key_id"]; status != http.StatusOK || there != (want != "") || there && got != want {
			t.Errorf("%d %v: want the issuer %q", status, said, want)
		}
		w.end()
	}
}
