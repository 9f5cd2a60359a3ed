// Package natsjs runs the ports of package stream on NATS JetStream. It and its subpackages are the only
// packages that import NATS, and embedded alone links a server.
//
// A task has five streams (stream.Stream), one for each writer. Rounds, Attempts and Batches hold one message a
// subject that nobody can overwrite or delete; Leases holds one that is written by compare and set; Reports is a work
// queue with one durable consumer. Subpackage natsadmin makes them, compares what is there with what the protocol
// needs, and refuses a stream on which the guarantees would not hold.
//
// What each port does on the wire:
//
//   - PutOnce publishes with "expected last sequence of the subject: 0". After a conflict or a timeout it reads back
//     and, where nothing is found, puts again: a read that finds nothing never decides.
//   - Get and Latest are direct gets with the subject in the request's subject, so that permissions can be given by
//     subject. Any replica may answer, so they may lag, but what they find on a put-once subject is final.
//   - Watch subscribes to panlearn.<task>.wake.>, where Rounds and Attempts republish the headers of what they store.
//     Devices need no consumer.
//   - Publish pipelines: the message id is the only header. Acknowledgements that do not come in time are unknown.
//   - Fetch pulls from the durable consumer what is there, and waits for one message where nothing is.
//
// Steps:
//
//  1. [Connect] to a broker, or embedded.Start one and use its Connect.
//  2. admin.Provision with an administrator's credentials, or admin.WaitStreams for somebody else to do it.
//  3. Use the [Conn] as stream.Records and stream.ReportWriter, [Conn.Reader] as stream.ReportReader.
//  4. [Conn.Close], then the Shutdown of an embedded server.
//
// A write is durable only as far as the server makes it: without "sync_interval: always" or three replicas, a power
// loss takes what was acknowledged in the last two minutes.
package natsjs
