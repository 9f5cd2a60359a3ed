//go:build unix

package many

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/panlearn/panlearn/stream"
)

// TestOddFiles: what a folder may hold beside task files stops no task: pipes, which are not opened, links to nothing,
// to themselves, to folders and out of the folder, files that nobody may read, names with odd bytes, and large ones.
func TestOddFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	list, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, elsewhere, "real.txt", declaration("linked"))
	write(t, dir, "a\nb \xff<&>.yaml", declaration("odd"))
	write(t, dir, "large.yaml", declaration("large")+strings.Repeat("# much\n", 1<<20))
	write(t, dir, "secret.yaml", declaration("secret"))
	write(t, dir, "UPPER.YAML", declaration("upper"))
	write(t, dir, ".yaml", declaration("nameless"))
	write(t, dir, "above.yaml", declaration("../above"))
	write(t, dir, "server.yaml", declaration("nats.server")) // the folder of an embedded server
	write(t, dir, "empty.yaml", "")
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{syscall.Mkfifo(at("pipe.yaml"), 0o600), os.Symlink(filepath.Join(elsewhere, "real.txt"),
		at("link.yaml")),
		os.Symlink("nothing", at("dangling.yaml")), os.Symlink("loop.yaml", at("loop.yaml")),
		os.Symlink(elsewhere, at("folder.yaml")),
		os.Chmod(at("secret.yaml"), 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wanted, faulty := []string{"linked", "odd"}, 6 // above, empty, large, loop, pipe, server
	if os.Getuid() == 0 {
		wanted = append(wanted, "secret") // root reads it
	} else {
		faulty++
	}
	for range 2 {
		names, faults := listed(t, list)
		if !slices.Equal(names, wanted) || len(faults) != faulty {
			t.Errorf("tasks %v, want %v; faults %v", names, wanted, faults)
		}
	}
}

// TestManyFiles: of a thousand files one look finds all, and the next one the changed one alone.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 1000 {
		write(t, dir, fmt.Sprintf("%d.yaml", i), declaration(fmt.Sprintf("t%d", i)))
	}
	list, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, faults, err := list.Tasks()
	if len(before) != 1000 || faults != nil || err != nil {
		t.Fatalf("%d tasks, %v, %v", len(before), faults, err)
	}
	write(t, dir, "7.yaml", declaration("t7")+"# changed\n")
	after, _, err := list.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for i := range after {
		if after[i].Spec != before[i].Spec {
			read++
		}
	}
	if read != 1 {
		t.Errorf("%d files were read again, want 1", read)
	}
}

// TestFolderAway: the tasks of a folder that is removed, or replaced by a file, go on; when it is back they were never
// stopped, and what it holds more is started. The same holds where another folder, an empty one, is in its place.
func TestFolderAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tasks")
	put := func(names ...string) {
		t.Helper()
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			write(t, dir, name+".yaml", declaration(name))
		}
	}
	put("ads")
	folder, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &role{starts: map[stream.Task]int{}, live: map[stream.Task]int{}}
	f := New(Config{List: folder, Run: r.run, Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	var members sync.WaitGroup
	look := func() { f.follow(ctx, &members) }
	look()
	if err := errors.Join(os.Rename(dir, dir+".mounted"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	look() // as if the folder were no longer mounted
	if s, _ := f.state("ads"); s != Running || f.trouble == nil {
		t.Errorf("with an empty folder: ads is %s, and the trouble is %v", s, f.trouble)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	look()
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look()
	if s, _ := f.state("ads"); s != Running || f.trouble == nil {
		t.Errorf("without the folder: ads is %s, and the trouble is %v", s, f.trouble)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	put("ads", "churn")
	look()
	for _, task := range []string{"ads", "churn"} {
		if s, _ := f.state(task); s != Running || f.trouble != nil {
			t.Errorf("%s, with the folder: %s, %v", task, s, f.trouble)
		}
	}
	stop()
	for range 2 {
		<-f.ended
	}
	members.Wait()
	for _, task := range []stream.Task{"ads", "churn"} {
		if starts, _ := r.count(task); starts != 1 {
			t.Errorf("%s: %d starts", task, starts)
		}
	}
}

// TestFileBecomesOdd: a task goes on when its file becomes one that cannot be read, and the file is a fault.
func TestFileBecomesOdd(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a link to itself": func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"a pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		dir := t.TempDir()
		list, err := NewFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "ads.yaml", declaration("ads"))
		listed(t, list)
		path := filepath.Join(dir, "ads.yaml")
		if err := errors.Join(os.Remove(path), put(path)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if names, faults := listed(t, list); !slices.Equal(names, []string{"ads"}) || len(faults) != 1 {
				t.Errorf("%s: tasks %v, faults %v, want the task and one fault", name, names, faults)
			}
		}
		write(t, dir, "other.yaml", declaration("ads"))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if names, faults := listed(t, list); !slices.Equal(names, []string{"ads"}) || len(faults) != 0 {
			t.Errorf("%s is removed: tasks %v, faults %v", name, names, faults)
		}
	}
}

// TestFolderAwayMeanwhile: a folder that is no longer mounted while it is read is an error then and later, although some
// of its files were seen.
func TestFolderAwayMeanwhile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tasks")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "ads.yaml", declaration("ads"))
	list, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	listed(t, list)
	// The next look waits in the middle for what the pipe has.
	pipe := filepath.Join(dir, "start.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "later.yaml",
		strings.Replace(declaration("later"), "model: {loss: logistic}", "model: {loss: logistic, start: start.json}", 1))
	looked := make(chan error, 1)
	go func() {
		_, _, err := list.Tasks()
		looked <- err
	}()
	start, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the look is there
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+".mounted"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := start.WriteString("{}"); err != nil {
		t.Fatal(err)
	}
	if err := start.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-looked; err == nil {
		t.Error("no error of the look during which another folder came")
	}
	if entries, _, err := list.Tasks(); err == nil {
		t.Errorf("no error of the empty folder, which lists %v", entries)
	}
}
