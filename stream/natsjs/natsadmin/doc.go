// Package natsadmin is what a broker's operator does with a task's streams, and what every role asks about them at its start:
// make them ([Provision]), compare them with what the protocol needs ([CheckStreams]), wait for them ([WaitStreams]), look
// for what is wrong with a broker, its streams and somebody's credentials ([Examine]), and take them away ([Remove]).
//
// Only the administrator's credentials may make and remove streams and see their settings; each function says what it does
// with lesser ones. A stream on which a guarantee would not hold is refused with the names of the settings.
package natsadmin
