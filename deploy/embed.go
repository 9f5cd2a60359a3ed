// Package deploy carries the shipped task files, so that the commands find them wherever they are installed.
package deploy

import "embed"

// Tasks are the files of deploy/tasks.
//
//go:embed tasks/*.yaml
var Tasks embed.FS
