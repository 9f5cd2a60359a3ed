// Package deploy carries the shipped task files and the broker's configuration, so that the commands find them wherever
// they are installed.
package deploy

import "embed"

// Tasks are the files of deploy/tasks.
//
//go:embed tasks/*.yaml
var Tasks embed.FS

// NATS is the configuration in deploy/nats.
//
//go:embed nats/panlearn.conf
var NATS embed.FS
