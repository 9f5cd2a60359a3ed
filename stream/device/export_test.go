package device

import (
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// MessageID is the message id of the message with that first report id, for an attempt.
var MessageID = messageID

// OnMap has the client do something before it maps a row: such as to take its time.
func OnMap(c *Device, f func(task.Row)) { c.loop.reports.hooks.onMap = f }

// OnAgree has the client make something of its agreement before it acts on it.
func OnAgree(c *Device, f func(*consent.Agreement)) { c.loop.contract.adapt = f }

// OnReport shows what each draw is about, and with which parameters.
func OnReport(c *Device, f func(stream.Round, block.Block, randomizer.Params)) {
	c.loop.reports.hooks.onReport = f
}

// AllRows is the key of all rows of a silo.
var AllRows = allRows

// WorkOf returns the client's bound on the work of an event of so many rows.
var WorkOf = workOf

// Measure returns the time that one run of some work takes, as the client measures it.
var Measure = measure

// SetClock gives the client another clock than the machine's.
func SetClock(c *Device, read func() time.Time) { c.loop.clock.read = read }

// Within bounds the time from when an event may join until its report leaves.
func Within(c *Device) time.Duration { return c.loop.core.beats.within() }
