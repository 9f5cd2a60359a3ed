// Package natsadmin administers a task's streams on a broker, and checks them for every role at its start: it makes
// them ([Provision]), compares them with the protocol's requirements ([CheckStreams]), waits for them ([WaitStreams]),
// looks for faults of a broker, its streams and somebody's credentials ([Examine]), and removes streams ([Remove]).
//
// Only the administrator's credentials may make and remove streams and see their settings; each function documents
// what it does with lesser ones. A stream on which a guarantee would not hold is refused with the names of the
// settings.
package natsadmin
