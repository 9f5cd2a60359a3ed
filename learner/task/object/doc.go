// Package object reads JSON objects as the events of a task: what one holds ([Reader], [Event]), its members one after
// the other ([Members]), and one member of a text that need not be in order ([Member]). Reading never fails but by an
// error that shows nothing of the text.
package object
