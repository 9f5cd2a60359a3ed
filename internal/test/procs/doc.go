// Package procs runs a deployment as operating-system processes for tests: the commands learner and ingest and real
// NATS servers, which a test starts, kills with SIGKILL, freezes and starts again. It is test support; no command
// imports it.
//
// # What a test writes
//
//	var programs *procs.Programs
//
//	func TestMain(m *testing.M) { os.Exit(procs.Main(m, &programs)) }
//
//	func TestLeaderLost(t *testing.T) {
//		c := procs.StartCluster(t, programs, procs.ServerOptions{})  // three nodes, JetStream, healthy
//		l := programs.Process(t, "learner", programs.Learner, "run", "--nats", c.URL(), "--replicas", "3", ...)
//		if err := l.Start(); err != nil { ... }
//		leader, err := c.Leader(ctx, "PANLEARN_x_BATCHES")           // index of the node that leads the stream
//		c.Kill(leader)                                               // kill -9, returns when it is gone
//		err = c.Restart(leader)                                      // same folder, same ports
//		err = c.WaitHealthy(ctx)                                     // every running node has caught up
//		exit, err := l.Wait(ctx)
//	}
//
// A single server is [StartServer], with Kill, Restart and WaitHealthy of its own. A [Process] has Start, Kill,
// Interrupt, Terminate, Freeze, Thaw, Wait, Ended, Stdout and Log; after its end it can be started again, with the
// same arguments and files. Whatever still runs when the test ends is killed, and on Linux whatever still runs when
// the test's process dies.
//
// # What it promises
//
//   - The servers are nats-server as its module builds it. JetStream keeps files and syncs each write, unless
//     [ServerOptions] says otherwise.
//   - Ports are on 127.0.0.1, and below those that the kernel gives to outgoing connections: a server that is started
//     again finds its port free, and no client that dials a dead server meets itself.
//   - Nothing is inherited: the programs see no PANLEARN_ variable and have a home folder of their own.
//   - Logs are files in the test's artifact folder (go test -artifacts keeps them); their ends are shown when the test
//     fails.
//
// Kill ends processes, not the machine: what was written but not synced survives it. Power loss is tested where files
// can be crashed, in state/pebblestore.
package procs
