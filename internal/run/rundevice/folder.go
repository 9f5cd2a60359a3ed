package rundevice

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream/device/consent"
)

// explained adds to the refusal of a state folder that belongs to another input what can be done about it. It returns
// other errors unchanged.
func (c Config) explained(err error) error {
	var refused *consent.RefusedError
	if !errors.As(err, &refused) || refused.Field != "source" || c.StateDir == "" {
		return err
	}
	return &consent.RefusedError{Field: refused.Field, Value: refused.Value, Accepted: refused.Accepted + fmt.Sprintf(
		". --state %s knows rows by their place in that input, or by their key there, and the same people's rows would be new to it under other names. "+
			"Give the same input as before; or another --state folder, if these are other users; and, in a new task, from the first run on a quoted pattern such as 'day-*.csv' "+
			"that covers files to come, or a column that names each event (events.key of the task file)", c.StateDir)}
}
