package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/shuffle/stage/leaderfile"
)

// leaderKey returns the file of the key of a leader of two operators, which is in its --state. A key that outlives the
// folder could release a round again that the folder knows of.
func leaderKey(file, state string) (string, error) {
	if state == "" {
		return "", cli.Usagef("--helper-key goes with --state: a folder on a disk that outlives the process, with the key in it")
	}
	own := filepath.Join(state, leaderfile.KeyFile)
	if file == "" || filepath.Clean(file) == own {
		return own, nil
	}
	named, err := os.Stat(file)
	standing, missing := os.Stat(own)
	if err != nil || missing != nil || !os.SameFile(named, standing) {
		return "", cli.Usagef("--identity %s: with --helper-key the key is in --state %s, as %s, so that both are lost together: "+
			"make both by ingest keygen leader --state %[2]s", file, state, leaderfile.KeyFile)
	}
	return own, nil
}

// makeLeader makes the folder of a leader, or finds the one that was made before.
func makeLeader(state string, log *slog.Logger) error {
	key, made, err := leaderfile.Create(state)
	if err != nil {
		return leaderRefused(err)
	}
	if made {
		log.Info("made a new identity", "role", roleLeader, "folder", state, "public_key", fmt.Sprintf("%x", []byte(key)))
	}
	return nil
}

// leaderRefused gives an error of a leader's folder its exit code.
func leaderRefused(err error) error {
	err = fmt.Errorf("--state: %w", err)
	if errors.Is(err, stage.ErrFolder) {
		return cli.Classify(err, cli.Is(cli.ExitRefused, stage.ErrFolder))
	}
	return cli.Usage(err)
}

func newKeygenLeader() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use:   "leader --state DIR",
		Short: "make the folder of a leader of two operators with its key, or print the public key of one that is there",
		Long: `leader makes the folder of the first operator of privacy.trust: split: its signing key,
and beside it the record of what it released. It prints the public key. The task file
names it as privacy.operators.leader, and the helper, the learner and the policies of
devices pin it.

Key and folder belong together: a key in another folder is refused, because the record of
what it released is in the folder that it was made with. Do not copy the folder, back it
up or restore it. After a loss make a new folder: a new identity, and a new task.`,
		Example: "  ingest keygen leader --state /var/lib/panlearn/leader",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if state == "" {
				return cli.Usagef("--state: name the folder to make")
			}
			key, _, err := leaderfile.Create(state)
			if err != nil {
				return leaderRefused(err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%x\n", []byte(key))
			return err
		},
	}
	c.Flags().StringVar(&state, "state", "", "`DIR` of the leader")
	return c
}
