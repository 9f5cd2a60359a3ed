package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// introducing puts the stage's self-signed key, which the learner copies into the Task.
type introducing struct {
	stateless
	*environment
	data []byte
}

func introduce(e *environment) (phase, error) {
	key := e.Identity.Public()
	data, err := e.Identity.Sign(&wire.StageIdentity{Version: stream.Version, Task: string(e.Task), Key: key})
	if err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	return &introducing{environment: e, data: data}, nil
}

func (*introducing) String() string { return "introducing" }

func (p *introducing) next(time.Time) effects {
	return effects{call: put, subject: p.Task.Stage(), data: p.data}
}

func (p *introducing) handle(_ time.Time, _ effects, r result) (phase, error) {
	if r.put.Ours {
		return &enlisting{environment: p.environment, stage: p}, nil
	}
	key, err := seal.VerifyStage(r.put.Standing.Data, new(wire.StageIdentity))
	if err != nil {
		return nil, fmt.Errorf("%s holds something that is not a stage's identity (%w): use another task name",
			p.Task.Stage(), err)
	}
	return nil,
		fmt.Errorf(
			"task %s has the stage %x already, this one is %x: start with that stage's identity file, or use another task name",
			p.Task, []byte(key), []byte(p.Identity.Public()))
}

// enlisting waits for the Task. Now and then it puts the stage's key again, because the broker may have lost the key
// before the learner read it.
type enlisting struct {
	stateless
	*environment
	pause
	stage   *introducing
	expires time.Time
}

func (*enlisting) String() string { return "waiting for the task" }

func (p *enlisting) next(time.Time) effects {
	if p.pending() {
		return effects{call: wait, until: p.until}
	}
	return effects{call: get, subject: p.Task.Task()}
}

func (p *enlisting) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case did.call == wait:
		p.over()
	case r.message == nil && p.expires.IsZero():
		p.expires = now.Add(p.lease.patience())
		p.until = now.Add(p.jittered())
	case r.message == nil && !now.Before(p.expires):
		return p.stage, nil
	case r.message == nil:
		p.until = now.Add(p.jittered())
	default:
		if err := p.enlist(r.message); err != nil {
			return nil, err
		}
		return &seeking{environment: p.environment}, nil
	}
	return p, nil
}
