// Package deploy carries the shipped task files and the broker's configuration, so that the commands find them wherever
// they are installed.
package deploy

import "embed"

// Tasks are the files of deploy/tasks.
//
//go:embed tasks/*.yaml
var Tasks embed.FS

// NATS holds the configurations in deploy/nats: of one server, and of one of several.
//
//go:embed nats/panlearn.conf nats/cluster.conf
var NATS embed.FS
