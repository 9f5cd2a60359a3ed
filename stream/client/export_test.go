package client

import (
	"time"

	"github.com/panlearn/panlearn/learner/task"
)

// MessageID is the message id of the message with that first report id, for an attempt.
var MessageID = messageID

// OnMap has the client do something before it maps a row: such as to take its time.
func (c *Client) OnMap(f func(task.Row)) { c.loop.onMap = f }

// SetClock gives the client another clock than the machine's.
func (c *Client) SetClock(read func() time.Time) { c.loop.clock.read = read }
