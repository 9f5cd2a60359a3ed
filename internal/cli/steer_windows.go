package cli

import "os"

func notifySteer(chan<- os.Signal) {}
