package many

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
)

// An Entry is one task on a list.
type Entry struct {
	Name stream.Task
	File string // its path
	Spec *task.Spec
	sum  [sha256.Size]byte // of the file
}

// A Fault is a task file that cannot be used, or not with its newest text.
type Fault struct {
	File string
	Err  error
}

// A List returns the tasks that should run now, in the order of their names, and the files that name none.
type List interface {
	Tasks() ([]Entry, []Fault, error)
}

// Only returns the list of those tasks of another one that are wanted. Its faults stay.
func Only(list List, wanted func(Entry) bool) List { return only{list, wanted} }

type only struct {
	List
	wanted func(Entry) bool
}

// Tasks implements List.
func (o only) Tasks() (entries []Entry, faults []Fault, err error) {
	entries, faults, err = o.List.Tasks()
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !o.wanted(e) }), faults, err
}

// extensions are the names' ends of task files. Snapshots and public models, which a task may name, end in .json.
var extensions = []string{".yaml", ".yml"}

// A Folder is a List of the task files in a folder: files directly in it with names that end in .yaml or .yml and do
// not begin with a dot. Files are read again when they change. If a new text is no task, the file's entry stays
// unchanged, and the file is a fault. Of two files of one task the first in the order of names counts. An empty folder
// that is not the one in which there were files is an error, because a folder that is no longer mounted looks like
// that. So is a folder that becomes another one while it is read. It is for one goroutine.
type Folder struct {
	dir  string
	read map[string]*reading
	last os.FileInfo // of the folder that had the files of read
}

// A reading holds the newest look at a file, and the task that it was last.
type reading struct {
	size  int64
	mtime time.Time
	entry *Entry // nil: it never was a task
	err   error  // of the newest text
}

// NewFolder returns the list of a folder, which must be there.
func NewFolder(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of task files: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("folder of task files: %s is a file: want the folder of the task files", dir)
	}
	return &Folder{dir: dir, read: map[string]*reading{}, last: info}, nil
}

// Tasks implements List.
func (f *Folder) Tasks() (entries []Entry, faults []Fault, err error) {
	info, err := os.Stat(f.dir)
	if err != nil {
		return nil, nil, err
	}
	files, err := os.ReadDir(f.dir) // in the order of names
	if err != nil {
		return nil, nil, err
	}
	seen, of := map[string]bool{}, map[stream.Task]string{}
	for _, file := range files {
		name := file.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains(extensions, filepath.Ext(name)) {
			continue
		}
		path := filepath.Join(f.dir, name)
		now, err := f.look(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		seen[path] = true
		if err != nil {
			faults = append(faults, Fault{File: path, Err: errors.New(strings.TrimPrefix(err.Error(),
				path+": "))}) // File names it
		}
		if now == nil {
			continue
		}
		if other, twice := of[now.Name]; twice {
			faults = append(faults, Fault{File: path, Err: fmt.Errorf("task %q is declared in %s too, which counts", now.Name,
				other)})
			continue
		}
		of[now.Name] = path
		entries = append(entries, *now)
	}
	after, err := os.Stat(f.dir)
	if err == nil && !os.SameFile(info, after) {
		err = fmt.Errorf("%s became another folder while it was read", f.dir)
	}
	if err != nil {
		return nil, nil, err
	}
	if len(seen) == 0 && len(f.read) > 0 && !os.SameFile(f.last, info) {
		return nil, nil, fmt.Errorf("%s is empty and another folder than before: is it mounted?", f.dir)
	}
	f.last = info
	for path := range f.read {
		if !seen[path] {
			delete(f.read, path)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return entries, faults, nil
}

// look returns the task of a file, nil for none, and what is wrong with its newest text, or why that cannot be read. A
// folder of that name is no file.
func (f *Folder) look(path string) (*Entry, error) {
	info, err := os.Stat(path) // of what a link names
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil, fs.ErrNotExist
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	r := f.read[path]
	switch {
	case r == nil && err != nil:
		return nil, err
	case r == nil:
		r = new(reading)
		f.read[path] = r
	case err != nil:
		return r.entry, err
	case r.err == nil && r.size == info.Size() && r.mtime.Equal(info.ModTime()):
		return r.entry, nil // the fault may be in a file that it names
	}
	r.size, r.mtime = info.Size(), info.ModTime()
	entry, err := load(path)
	if r.err = err; err == nil {
		r.entry = &entry
	}
	return r.entry, r.err
}

func load(path string) (Entry, error) {
	spec, err := task.Load(path, nil) // which refuses a file that is too large
	if err != nil {
		return Entry{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Entry{}, err
	}
	name, err := stream.ParseTask(spec.Name)
	return Entry{Name: name, File: path, Spec: spec, sum: sha256.Sum256(data)}, err
}
