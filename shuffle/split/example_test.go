package split_test

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle/split"
)

// Three devices, a leader and a helper count one attempt. What goes between them is handed over here; a stage seals and
// signs it, and stores what the comments say.
func Example() {
	cfg := split.Config{
		X:      split.Attempt{Round: 1, Number: 1, Open: sha256.Sum256([]byte("open")), Join: sha256.Sum256([]byte("join"))},
		Params: randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 31, FloorTrials: 10_000, Coin: randomizer.Fair},
		Cohort: 3, Minimum: 2,
	}
	rand.Read(cfg.Key[:]) // the helper draws it, and Join has its hash

	// At the helper, before it puts its Join.
	helper, err := split.NewHelper(cfg)
	check(err)
	desk := split.NewDesk(split.Instance{1}, split.HelperMark{})
	desk.Hold(helper)
	helpersWorker, err := helper.Worker(open)
	check(err)

	// At the leader, when it has read the Join.
	leader, err := split.NewLeader(cfg)
	check(err)
	leadersWorker, err := leader.Worker(open)
	check(err)

	// Reports go in.
	device, err := split.NewSharing(split.Params{Dim: 2, Bits: 5}, cfg.X.Open, cfg.X.Join)
	check(err)
	for _, counts := range [][]uint32{{31, 0}, {16, 15}, {3, 4}} {
		var draw, fresh [32]byte
		rand.Read(draw[:])
		rand.Read(fresh[:])
		id := split.ID(draw, cfg.X.Open, cfg.X.Join)
		shares, err := device.Shard(counts, id, fresh)
		check(err)
		if !leader.Room() {
			break
		}
		job, _ := leader.Take([]split.User{{ID: id, Public: shares.Public}}, shares.Leader, shares.Helper)
		job.Run(leadersWorker)
		leader.Add(job)
	}

	// Requests come out, and replies go in.
	for {
		request, ok := leader.Cut()
		if !ok {
			break
		}
		desk.Request(request)
		jobs, _ := helper.Work()
		for _, job := range jobs {
			job.Run(helpersWorker)
		}
		reply, err := helper.Decide()
		check(err)
		_, err = leader.Handle(reply)
		check(err)
	}

	// The end. Each step is stored before the next.
	prepared, err := leader.Prepare(entropy(), split.Note{Cutoff: 3})
	check(err)
	ending := split.NewEnding(prepared)
	ending.Stored(true)
	answer := desk.Finish(ending.Finish(), entropy())
	share := *answer.Commit
	answer = desk.Committed(split.HelperMark{X: cfg.X, Signed: []byte("the share, encoded and signed")})
	ending.Share(share, answer.Signed)
	ending.Released(true)
	release, err := ending.Release(cfg.Params)
	check(err)

	sum, err := cfg.Params.Decode(nil, release.Totals, release.Users, release.NoiseTrials)
	check(err)
	fmt.Println(release.Users, "users,", release.NoiseTrials, "trials,", len(sum), "coordinates")
	// Output: 3 users, 20000 trials, 2 coordinates
}

// open replaces HPKE, which also authenticates split.AssociatedData(users).
func open(sealed []byte, users []split.User) ([][]byte, error) {
	if len(users) != 1 {
		return nil, errors.New("one user a bundle here")
	}
	return [][]byte{append([]byte{}, sealed...)}, nil
}

// entropy draws what one floor needs; the secret follows from the operator's key file.
func entropy() (e split.Entropy) {
	rand.Read(e.Fresh[:])
	rand.Read(e.Secret[:])
	return e
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
