package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// A line is one line of output, and when it came.
type line struct {
	at   time.Duration // since the start
	text string
}

// capture runs a program and notes what it prints on either stream, line by line.
func capture(ctx context.Context, args []string) ([]line, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = w, w // one file, so that the order is that of the terminal
	start := time.Now()
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		return nil, fmt.Errorf("start %v: %w", args, err)
	}
	var lines []line
	in := bufio.NewScanner(r)
	for in.Scan() {
		lines = append(lines, line{time.Since(start), in.Text()})
	}
	if err := errors.Join(in.Err(), cmd.Wait()); err != nil {
		return nil, fmt.Errorf("%v printed %q: %w", args, plain(lines), err)
	}
	return lines, nil
}
