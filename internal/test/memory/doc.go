// Package memory is a broker inside the process: the ports of package stream without a network, for simulations
// and tests.
//
// A [Broker] behaves as a JetStream server with the streams of every task already there: sequences count from 1 in each
// stream of each task, a subject holds one message, reports are a work queue that delivers unacknowledged messages
// again, a message id is stored once within a window.
//
// It also misbehaves on demand, as a network does: an [Injector] decides for every call whether its acknowledgement
// is lost, its message stored twice, its read answered by a replica that lags. Faults are a function of the calls
// and a seed, so that a failing run can be run again. Nothing is ever written to disk.
//
// A [Ledger] is a device's ledger without a disk.
//
// Steps:
//
//  1. [New] with a [Config]; the zero Config is a broker without faults.
//  2. Hand the Broker out as stream.Records and stream.ReportWriter, [Broker.Reader] as stream.ReportReader.
//  3. Test what happens: [Broker.Inject], [Broker.Redeliver], [Broker.Forget], [Broker.Disconnect], [Broker.Dump].
package memory
