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
	*facts
	data []byte
}

func introduce(f *facts) (phase, error) {
	key := f.Identity.Public()
	data, err := f.Identity.Sign(&wire.StageIdentity{Version: stream.Version, Task: string(f.Task), Key: key})
	if err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	return &introducing{facts: f, data: data}, nil
}

func (*introducing) String() string   { return "introducing" }
func (*introducing) footing() footing { return free }

func (p *introducing) next(time.Time) step {
	return step{verb: put, subject: p.Task.Stage(), data: p.data}
}

func (p *introducing) took(_ time.Time, _ step, r result) (phase, error) {
	if r.put.Ours {
		return &enlisting{facts: p.facts}, nil
	}
	key, err := seal.VerifyStage(r.put.Standing.Data, new(wire.StageIdentity))
	if err != nil {
		return nil, fmt.Errorf("%s holds something that is not a stage's identity (%w): use another task name", p.Task.Stage(), err)
	}
	return nil, fmt.Errorf("task %s has the stage %x already, this one is %x: start with that stage's identity file, or use another task name",
		p.Task, []byte(key), []byte(p.Identity.Public()))
}

// enlisting waits for the Task.
type enlisting struct {
	stateless
	*facts
	pausing
}

func (*enlisting) String() string   { return "waiting for the task" }
func (*enlisting) footing() footing { return free }

func (p *enlisting) next(time.Time) step {
	if p.pending() {
		return p.wait()
	}
	return step{verb: get, subject: p.Task.Task()}
}

func (p *enlisting) took(now time.Time, s step, r result) (phase, error) {
	if s.verb == wait {
		p.until = time.Time{}
		return p, nil
	}
	if r.message == nil {
		p.until = now.Add(p.pause())
		return p, nil
	}
	if err := p.enlist(r.message); err != nil {
		return nil, err
	}
	return &seeking{facts: p.facts}, nil
}
