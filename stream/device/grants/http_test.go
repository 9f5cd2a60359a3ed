package grants

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGatewayIsToldOfNobody: a gateway learns about each person from the status of the person's entry, in whichever
// request it is, and never requests a token for a name that JSON cannot carry: two such names would be one.
func TestGatewayIsToldOfNobody(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Requests []struct{ Person string }
		}
		must(t, json.NewDecoder(r.Body).Decode(&body))
		requests++
		var answers []map[string]any
		for _, one := range body.Requests {
			status, _, _ := strings.Cut(one.Person, " ")
			switch status {
			case "400", "409", "503":
				answers = append(answers, map[string]any{"status": json.Number(status)})
			default:
				answers = append(answers, map[string]any{"response": []byte(one.Person)})
			}
		}
		must(t, json.NewEncoder(w).Encode(map[string]any{"answers": answers}))
	}))
	t.Cleanup(server.Close)
	var asks []Ask
	for i := range maxBatch {
		for _, status := range []string{"200", "400", "409", "503", "\xff"} {
			asks = append(asks, Ask{Person: fmt.Sprintf("%s %d", status, i)})
		}
	}
	answers, err := Gateway{URL: server.URL}.Sign(context.Background(), asks)
	if err != nil || len(answers) != len(asks) || requests != 4 {
		t.Fatalf("%d answers of %d in %d requests: %v", len(answers), len(asks), requests, err)
	}
	for i, a := range answers {
		who := asks[i].Person
		want := map[byte]string{'2': who, '4': "", '5': "", 0xff: ""}[who[0]]
		if string(a.Signature) != want || a.Refused != strings.HasPrefix(who, "409") ||
			a.Nobody != (strings.HasPrefix(who, "400") || who[0] == 0xff) {
			t.Errorf("%q: %+v", who, a)
		}
	}
}
