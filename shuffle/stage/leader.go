package stage

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A Leader holds what a stage needs beside the rest of Config under trust split, where it is the leader of two
// operators.
type Leader struct {
	// HelperKey is the pinned key of the other operator. Nobody is trusted at first use: the learner who names both
	// operators in its Task is an adversary.
	HelperKey ed25519.PublicKey
	Exchange  stream.ExchangeAsker
	Folder    Folder
}

// A Folder keeps what a leader must not lose or do twice, on a disk that outlives the process. Processes of one stage
// share it: each method is one step that no other process divides, and when it returns without an error no crash undoes
// it. Errors wrap ErrFolder where the folder is not the one of the stage's identity, or not as it left it: Run returns
// them. An adapter is package shuffle/stage/leaderfile.
type Folder interface {
	// Find returns what the folder knows of a task.
	Find(task stream.Hash) (Found, error)
	// Begin notes that the stage works on a task. Find returns that from then on.
	Begin(task stream.Hash) error
	// Prepare stores p, encrypted under a fresh key, by split.LeaderMarks.Prepare.
	Prepare(task stream.Hash, p split.Prepared) (ok bool, err error)
	// Release stores the helper's signed Share of x, by split.LeaderMarks.Release.
	Release(task stream.Hash, x split.Attempt, signed []byte) (ok bool, err error)
	// Drop overwrites the key of the Prepared of x, by split.LeaderMarks.Drop.
	Drop(task stream.Hash, x split.Attempt) (ok bool, err error)
}

// Found holds what a Folder knows of one task.
type Found struct {
	Begun    bool // the stage worked on it before
	Marks    split.LeaderMarks
	Prepared *split.Prepared // of Marks.Prepared; nil where there is none
	Signed   []byte          // the helper's Share of Marks.Released
}

// operators reports whether the task has two operators, of whom this stage is the leader.
func (e *environment) operators() bool { return e.task != nil && manifest.HasOperators(e.task.Plan) }

// leads refuses a task of two operators unless both are pinned and the folder is there.
func (e *environment) leads(helper, learner []byte) error {
	switch l := e.Leader; {
	case len(l.HelperKey) != ed25519.PublicKeySize:
		return errors.New("has trust split: pin the other operator by --helper-key; nobody is trusted at first use")
	case len(e.LearnerKey) == 0:
		return fmt.Errorf("has trust split: pin its learner by --learner-key, as its people told the key; nobody is trusted at "+
			"first use. This Task was signed by %x, which the one who put it here may have chosen", learner)
	case l.Folder == nil:
		return errors.New("has trust split: the stage needs a folder for it; start it with --state")
	case l.Exchange == nil:
		return errors.New("has trust split: the stage has no way to its helper")
	case !l.HelperKey.Equal(ed25519.PublicKey(helper)):
		return fmt.Errorf("names the helper %x, pinned is %x: the learner may not choose the operators", helper,
			[]byte(l.HelperKey))
	}
	return nil
}
