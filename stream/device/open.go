package device

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/device/statefolder"
)

// A Config configures the device of an application. Task, Transport, one of Folder
// and Store, and one of Pin and TrustFirstUse are required.
type Config struct {
	Task      stream.Task
	Transport stream.Transport // of package natsjs or relayclient; the caller closes it after the device

	// Folder is the path of a folder for participations and ledger, made where it is not there. It belongs to this
	// device: it is in no backup, and is kept as long as the tasks of its users live. Losing it forgets who took part.
	Folder string
	// Store and Ledger keep both elsewhere; Open and Close leave them open. A store is of this task alone, a ledger of
	// all tasks of the same users. Without one a policy that bounds totals is refused.
	Store  participation.Store
	Ledger ledger.Ledger

	// Grants asks the issuer of a task whose reports have tokens, such as grants.Login; Folder keeps them, or GrantStore where
	// Store is given. Nil: such tasks are refused.
	Grants     grants.Source
	GrantStore grants.Store

	// Policy decides what the device agrees to; see consent.Policy for its zero value. Set its fields, such as
	// MaxEpsilon, or read them from a file with consent.ParsePolicy.
	Policy consent.Policy
	// Pin is the task hash in hexadecimal, from somebody who vouches for the task: `learner doctor` and GET /v1/task tell
	// it. TrustFirstUse takes the task that the broker shows first instead, and pins that in the store: a party that
	// controls the broker at that moment chooses it. A task of two operators is not taken so, unless the policy pins both.
	Pin           string
	TrustFirstUse bool
	// UserKeys declares that a key names the same user in every task of the ledger, so that each has an account there.
	UserKeys bool

	Progress func(Progress) // called on every change, from one goroutine; must not block
	Logger   *slog.Logger   // nil: none
}

// waitTold are the times after which Open says that it still waits: the first, and each later one.
const waitTold, waitAgain = 5 * time.Second, time.Minute

// Open starts the device of an application, and returns when the task is announced and agreed to. Until a broker and a
// task are there it waits, and says so in the log, until ctx ends; ctx bounds nothing after that. The error then wraps
// ctx's error. It is a *consent.RefusedError where the policy or the pin forbids the task, or the task is about
// organisations. Close the device before its transport.
func Open(ctx context.Context, c Config) (*Device, error) {
	s, closeFolder, err := c.settings()
	if err != nil {
		return nil, err
	}
	d, err := New(s)
	if err != nil {
		return nil, errors.Join(err, closeFolder())
	}
	d.release = closeFolder
	agreement, err := d.announced(ctx)
	if err == nil {
		_, err = d.desk.use(agreement)
	}
	if err != nil {
		if failed := d.Close(); !errors.Is(err, failed) { // else it is why the device ended
			err = errors.Join(err, failed)
		}
		return nil, err
	}
	return d, nil
}

// announced waits for the agreement, and says so in the log, and in the error where ctx ends first.
func (c *Device) announced(ctx context.Context) (*consent.Agreement, error) {
	told := waitTold
	for {
		wait, cancel := context.WithTimeout(ctx, told)
		agreement, err := c.Agreement(wait)
		cancel()
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil, fmt.Errorf("device: waiting for task %s through %s: no broker answers, or nobody has announced "+
				"it there: %w", c.loop.Task, through(c.loop.Transport), err)
		case err == nil || !errors.Is(err, context.DeadlineExceeded):
			return agreement, err
		}
		told = waitAgain
		c.loop.Logger.Warn("waiting for the task: no broker answers, or nobody has announced it there", "task", c.loop.Task)
	}
}

// through names a transport: as it calls itself, or by its type.
func through(t stream.Transport) string {
	if named, ok := t.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", t)
}

// settings returns the settings of the device, and what closes the folder that was opened for it.
func (c Config) settings() (s Settings, closeFolder func() error, err error) {
	s = Settings{Task: c.Task, Transport: c.Transport, Store: c.Store, Ledger: c.Ledger, UserKeys: c.UserKeys,
		Grants: c.Grants, GrantStore: c.GrantStore, Policy: c.Policy, Submits: true, Progress: c.Progress, Logger: c.Logger, Poll: time.Second}
	nothing := func() error { return nil }
	switch {
	case c.Pin == "" && !c.TrustFirstUse:
		return s, nothing, errors.New("device: Pin: want the task hash, or TrustFirstUse to take the task that the broker shows")
	case c.Pin != "" && c.TrustFirstUse:
		return s, nothing, errors.New("device: Pin and TrustFirstUse: want one of them")
	case (c.Folder == "") == (c.Store == nil):
		return s, nothing, errors.New("device: Folder and Store: want one of them, which keeps who took part")
	case c.Folder != "" && c.GrantStore != nil:
		return s, nothing, errors.New("device: GrantStore: Folder has one of its own")
	case c.Folder != "" && c.Ledger != nil:
		return s, nothing, errors.New("device: Ledger: Folder has one of its own")
	}
	if c.Pin != "" {
		hash, err := hex.DecodeString(c.Pin)
		if err != nil || len(hash) != stream.HashSize {
			return s, nothing, fmt.Errorf("device: Pin: want the %d hexadecimal digits of the task hash", 2*stream.HashSize)
		}
		if of := c.Policy.TaskHash; len(of) > 0 && string(of) != string(hash) {
			return s, nothing, errors.New("device: Pin: the policy's task_hash is another")
		}
		s.Policy.TaskHash = hash
	}
	if c.Folder == "" {
		return s, nothing, nil
	}
	if _, err := stream.ParseTask(string(c.Task)); err != nil {
		return s, nothing, err
	}
	f, err := statefolder.Open(statefolder.Config{Dir: c.Folder, Task: c.Task, Policy: c.Policy,
		Marks: statefolder.MarksFolder()})
	if err != nil {
		return s, nothing, fmt.Errorf("device: Folder: %w", err)
	}
	s.Store, s.Ledger = f.Store, f.Ledger
	if c.Grants == nil {
		return s, f.Close, nil
	}
	kept, err := grants.Open(grants.Path(c.Folder, c.Task))
	if err != nil {
		return s, nothing, errors.Join(fmt.Errorf("device: Folder: %w", err), f.Close())
	}
	s.GrantStore = kept
	return s, func() error { return errors.Join(kept.Close(), f.Close()) }, nil
}
