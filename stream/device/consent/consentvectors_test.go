package consent_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// asRefused reports whether an error is the refusal of a policy, and sets it.
func asRefused(err error, refused **consent.RefusedError) bool { return errors.As(err, refused) }

// consentFile is docs/vectors/consent.json.
type consentFile struct {
	Tasks  []taskVector  `json:"tasks"`
	Rounds []roundVector `json:"rounds"`
}

// TestConsentVectors runs the vectors through the checks of a device, and compares them with the file.
func TestConsentVectors(t *testing.T) {
	file := consentFile{Tasks: taskVectors(t)}
	file.Rounds = roundVectors(t, file.Tasks)
	golden.JSON(t, filepath.Join(vectorFolder, "consent.json"), file, 1e-9)
}
