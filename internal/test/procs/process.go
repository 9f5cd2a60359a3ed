package procs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// A Process is one role of a deployment, through all its lives. Its methods may be called from any goroutine.
type Process struct {
	Name string
	path string
	args []string
	dir  string // of logs, output and home

	mu    sync.Mutex
	life  *life // the newest, nil before the first
	lives int
}

// A life is one run of a program.
type life struct {
	cmd    *exec.Cmd
	stdout string        // file
	ended  chan struct{} // closed after exit is set
	exit   Exit
}

// Exit holds the exit status of a life.
type Exit struct {
	Code   int            // exit code; -1 after a signal
	Signal syscall.Signal // that ended it; 0 for none
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Process prepares a process that is not started yet. Names are distinct within a test: files are named after them. At
// the end of the test it is killed if it runs.
func (p *Programs) Process(t testing.TB, name, path string, args ...string) *Process {
	t.Helper()
	q := &Process{Name: name, path: path, args: args, dir: t.ArtifactDir()}
	t.Cleanup(func() {
		q.Kill()
		if t.Failed() && q.Lives() > 0 {
			t.Logf("%s, %d lives, the end of its log:\n%s", name, q.Lives(), tail(q.Log(), 4096))
		}
	})
	return q
}

// Use makes the lives that begin from now on those of the program at another path: another version of it.
func (p *Process) Use(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = path
}

// Start begins a life. It is an error if the last one has not ended.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil && p.life.alive() {
		return fmt.Errorf("start %s: it runs already", p.Name)
	}
	if err := p.start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	return nil
}

func (p *Process) start() error {
	home := filepath.Join(p.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	l := &life{cmd: exec.Command(p.path, p.args...), ended: make(chan struct{}),
		stdout: filepath.Join(p.dir, fmt.Sprintf("%s.%d.out", p.Name, p.lives+1))}
	out, err := os.Create(l.stdout)
	if err != nil {
		return err
	}
	defer out.Close()
	l.cmd.Stdout, l.cmd.Stderr, l.cmd.Env, l.cmd.SysProcAttr = out, log, environment(home), attributes()
	if _, err := fmt.Fprintf(log, "== life %d\n", p.lives+1); err != nil {
		return err
	}
	if err := l.cmd.Start(); err != nil {
		return err
	}
	p.life = l
	p.lives++
	go l.wait()
	return nil
}

// wait ends with the process, which Kill ends at the latest.
func (l *life) wait() {
	defer close(l.ended)
	err := l.cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		l.exit = Exit{Code: -1}
		return
	}
	l.exit.Code = l.cmd.ProcessState.ExitCode()
	if s, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		l.exit.Signal = s.Signal()
	}
}

func (l *life) alive() bool {
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

func (p *Process) newest() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// Running reports whether there is a life that has not ended.
func (p *Process) Running() bool {
	l := p.newest()
	return l != nil && l.alive()
}

// Lives counts the starts.
func (p *Process) Lives() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lives
}

// Kill ends the process with SIGKILL, frozen or not, and returns when it is gone. It reports whether that is what
// ended it.
func (p *Process) Kill() bool {
	l := p.newest()
	if l == nil || !l.alive() {
		return false
	}
	_ = l.cmd.Process.Kill() // it may have ended just now
	<-l.ended
	return l.exit.Signal == syscall.SIGKILL
}

// Interrupt asks the process to end, and does not wait.
func (p *Process) Interrupt() error { return p.signal(os.Interrupt) }

// Terminate asks the process to end as supervisors do, and does not wait.
func (p *Process) Terminate() error { return p.signal(syscall.SIGTERM) }

// Freeze stops the process where it is, with its connections open and its memory kept; Thaw lets it go on.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s os.Signal) error {
	l := p.newest()
	if l == nil {
		return fmt.Errorf("%v to %s: it was never started", s, p.Name)
	}
	if err := l.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%v to %s: %w", s, p.Name, err)
	}
	return nil
}

// Wait waits for the end of the newest life.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	l := p.newest()
	if l == nil {
		return Exit{}, fmt.Errorf("wait for %s: it was never started", p.Name)
	}
	select {
	case <-l.ended:
		return l.exit, nil
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("wait for %s: %w", p.Name, context.Cause(ctx))
	}
}

// Stdout returns the standard output of the newest life so far.
func (p *Process) Stdout() ([]byte, error) {
	l := p.newest()
	if l == nil {
		return nil, fmt.Errorf("standard output of %s: it was never started", p.Name)
	}
	return os.ReadFile(l.stdout)
}

// Log returns the file to which all lives write standard error.
func (p *Process) Log() string { return filepath.Join(p.dir, p.Name+".log") }

// tail returns the end of a file, at most n bytes.
func tail(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, err = f.Seek(max(0, size-n), io.SeekStart)
		if err != nil {
			return err.Error()
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
