package fit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/state"
)

// pinFile is the file of a state folder that identifies the data it is of.
const pinFile = "fit.json"

// Data names the rows to learn from. The folder keeps what is public of it, see public.
type Data struct {
	Path    string `json:"data"`             // absolute, of a file or a pattern
	Format  string `json:"format"`           // if not the task's
	Holdout uint   `json:"holdout"`          // see block.Holdout
	Rows    int    `json:"rows,omitempty"`   // to learn from, without those held out
	People  int    `json:"people,omitempty"` // people with rows; 0 if single rows are protected
}

// public returns the data without what the task protects. Nothing of it depends on the content of a row; of people it
// holds their number, because how many rows they have is protected with them.
func (d Data) public() Data {
	if d.People > 0 {
		d.Rows = 0
	}
	return d
}

// A pin holds what a folder remembers of its fit beside the pipeline's own state.
type pin struct {
	Version int `json:"version"`
	Data
	Told bool `json:"told"` // the model was handed over: the fit is over
	// Writing is set before the one release of a method of one process is written: from then on parts of it may be on
	// the disk.
	Writing bool `json:"writing,omitempty"`
}

const pinVersion = 1

// A FolderError refuses a state folder that is of something else.
type FolderError struct{ Reason string }

// Error names the data that the folder belongs to, and what to do.
func (e *FolderError) Error() string { return "--state: " + e.Reason }

// A SpentError refuses a second fit.
type SpentError struct{ Epsilon, Delta float64 }

// Error names the cost of a second fit, and the place of the model.
func (e *SpentError) Error() string {
	return fmt.Sprintf(
		"--state: this folder's fit is over and its budget is spent (epsilon %v, delta %v): learner snapshot has its model, learner ledger what it cost. "+
			"Another fit of the same rows wants a folder of its own, and each row pays for both: the epsilons add up, and so do the deltas", e.Epsilon, e.Delta)
}

// A LostError means that the process died while it wrote the one release of a fit, so that the release is not whole.
type LostError struct{ Epsilon, Delta float64 }

// Error names the cost of the lost fit, and the cost of another one.
func (e *LostError) Error() string {
	return fmt.Sprintf(
		"--state: this fit was killed while its model was being written: parts of that may be on the disk, so it is charged (epsilon %v, delta %v) and not run again. "+
			"Another fit of the same rows wants a folder of its own, and each row pays for both: the epsilons add up, and so do the deltas", e.Epsilon, e.Delta)
}

func lost(at state.Checkpoint) error {
	spent := at.Ledger.Spent()
	return &LostError{spent.Epsilon, spent.Delta}
}

// readPin returns the folder's pin; found is false where it has none.
func readPin(dir string) (p pin, found bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, pinFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	// The version is read before the rest, which another version may write otherwise.
	var written struct{ Version uint16 }
	if err == nil {
		err = json.Unmarshal(data, &written)
	}
	if err == nil && written.Version != pinVersion {
		err = &state.VersionError{What: "--state: " + pinFile, Got: written.Version, Want: pinVersion}
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	var other *state.VersionError
	if err != nil && !errors.As(err, &other) {
		err = fmt.Errorf("--state: %s: %w", pinFile, err)
	}
	return p, err == nil, err
}

// Vacant makes a folder for a model of public data, and refuses one that a learner has.
func Vacant(dir string) error {
	for _, file := range []string{pinFile, "FORMAT"} {
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			return &FolderError{"this folder is of a private fit or of learner run: take another one for what is public"}
		}
	}
	return os.MkdirAll(dir, 0o700)
}

// write writes the pin to the folder, durably and whole.
func (p pin) write(dir string) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return disk.Durable.Replace(filepath.Join(dir, pinFile), append(data, '\n'))
}

// differs returns an error if the folder was made for data other than d.
func (p pin) differs(d Data) error {
	switch d = d.public(); {
	case p.Path != d.Path || p.Format != d.Format:
		return &FolderError{fmt.Sprintf("this folder is of the rows of %s%s: go on with those, or take an empty folder",
			p.Path, inFormat(p.Format))}
	case p.Holdout != d.Holdout:
		return &FolderError{
			fmt.Sprintf(
				"this folder's fit began with --holdout %d: rows that were held out would be learned from, and others not any more",
				p.Holdout)}
	case p.People == 0 && d.People > 0:
		return &FolderError{
			"this folder's fit was begun by an earlier version, which counted rows where people are protected: " +
				"take an empty one; who was in both pays for both"}
	case p.People != d.People:
		return &FolderError{fmt.Sprintf("this folder's fit began with %d people to learn from, now there are %d: "+
			"its noise and its ledger are of those; take an empty folder for other data", p.People, d.People)}
	case p.Rows != d.Rows:
		return &FolderError{
			fmt.Sprintf(
				"this folder's fit began with %d rows to learn from, now there are %d: its noise and its ledger are of those; take an empty folder for other data", p.Rows, d.Rows)}
	}
	return nil
}

func inFormat(format string) string {
	if format == "" {
		return ""
	}
	return " as " + format
}
