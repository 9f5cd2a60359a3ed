package run

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// maxBundle is the most users that a gateway may put into one report; a small cohort or large reports allow fewer.
const maxBundle = 64

// mostPayload is the largest max_payload that a NATS server can be configured with, in bytes.
const mostPayload = 64 << 20

// headerRoom is the number of bytes that an adapter needs beside a message's data.
const headerRoom = 4 << 10

// carried refuses a plan with a message that no broker takes, however it is configured.
func (j Job) carried() error {
	body, err := j.body()
	if err != nil {
		return nil // a plan that is only printed sends no messages
	}
	sizes, err := manifest.SizesOf(body, stage.ReasonNames())
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return sizes.Fit(stream.Limits{MaxPayload: mostPayload - headerRoom})
}

// WithParts returns a plan of the accountant with the lengths of one user's messages: the lengths of a report's shares
// where two operators share it, and with grants the token's length too.
func WithParts(p accounting.Plan, grants bool) accounting.Plan {
	if p.Trust.HasOperators() {
		part := manifest.SharedPart(p.Dim, uint32(p.Levels))
		p.ReportBytes, p.HelperBytes, p.PublicBytes = uint64(part.Leader), uint64(part.Helper), uint64(part.Public)
	}
	if grants {
		p.ReportBytes += grant.Size
	}
	return p
}

// bundleOf returns the largest number of users in one report message of a plan: as many as fit through a broker with
// the usual limit, so that large reports are not refused for the sake of gateways.
func bundleOf(suite wire.Suite, one manifest.Part, cohort uint64) uint32 {
	n := int(min(maxBundle, cohort))
	for n > 1 && one.ReportSize(suite, n) > natsjs.DefaultMaxPayload-headerRoom {
		n--
	}
	return uint32(n)
}
