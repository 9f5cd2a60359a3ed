package main

import "time"

// The film is a loop: the command is typed, its output appears, and what was learned can be read until it begins again.
const (
	loop   = 30 * time.Second
	typing = 2 * time.Second
	shown  = 20 * time.Second // by then everything has appeared
)

// pace moves the lines to their times in the film. Output that took longer than there is time for is shown faster, all of it by
// the same factor; output that did not keeps its own time.
func pace(lines []line) []line {
	room, last := shown-typing, time.Duration(0)
	for _, l := range lines {
		last = max(last, l.at)
	}
	out := make([]line, len(lines))
	for i, l := range lines {
		at := l.at
		if last > room {
			at = time.Duration(float64(at) * float64(room) / float64(last))
		}
		out[i] = line{typing + at, l.text}
	}
	return out
}
