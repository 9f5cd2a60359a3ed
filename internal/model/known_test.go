package model

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A model whose noise is known promises nothing, in any format, and is read as one that states no epsilon.
func TestKnownNoisePromisesNothing(t *testing.T) {
	secret := Statement{Trust: "shuffle", Unit: "one event of one user in one round, replaced by any other", Epsilon: 0.99,
		Delta: 1e-6, HonestFraction: accounting.One, Users: 600}
	known := secret.Known()
	if got := known.String(); !strings.HasPrefix(got, "Not private") || strings.Contains(got, "psilon") {
		t.Errorf("the statement is %q", got)
	}
	doc, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(doc, []byte(`"epsilon":null,"delta":null`)) || !bytes.Contains(doc, []byte(`"noise_known":true`)) ||
		bytes.Contains(doc, []byte("0.99")) {
		t.Errorf("the statement in JSON is %s", doc)
	}
	var back Statement
	if err := json.Unmarshal(doc, &back); err != nil || back != known {
		t.Errorf("read back: %+v, %v", back, err)
	}
	if doc, err = json.Marshal(secret); err != nil || !bytes.Contains(doc, []byte(`"epsilon":0.99`)) ||
		bytes.Contains(doc, []byte("noise_known")) {
		t.Errorf("with secret noise: %s, %v", doc, err)
	}
	if got := secret.String(); !strings.Contains(got,
		"epsilon 0.99, delta 1e-06 under trust shuffle, if in every cohort all of the users planned for are honest") {
		t.Errorf("with secret noise: %q", got)
	}
}
