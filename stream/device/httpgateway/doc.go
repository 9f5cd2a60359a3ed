// Package httpgateway lets applications in any language publish their users' events: over HTTP on loopback, as JSON, to
// a process beside them that holds the client. What the client promises ([device.Device]) it promises of these events
// too: participation is durable before anything is sent, one key takes part once, the policy is the device's.
//
// # Promises
//
//   - The answer "accepted" is given after the event's participation is durable, and never before.
//   - The same key again is answered and not sent again, in this process and in later ones with the same store.
//   - A request that is authenticated and has a readable key takes part. An event that does not fit the
//     declaration, or a body of which only the key is as described, is sent as the zero vector: taking part does
//     not depend on content.
//   - Of a batch each line takes part as a request of its own would, whatever the others hold.
//   - In a task that protects people a request has all events of one, the first of whom make the one report, and
//     takes part as soon and as often whatever their number.
//   - Nothing of an event, key or token is in a log line or an error.
//   - Memory is bounded: bodies by MaxBody, events that wait by MaxWaiting, and the rate by Rate.
//
// # Refuses
//
// Tasks of organisations (device.ShapeOf). Requests without the token; without a token configured, requests that name a
// host other than this machine's loopback, which is how a web page that rebinds its name would come; requests that a
// browser makes for another site.
//
// # What a caller owes
//
//  1. Give [New] a device to which events are submitted: of device.Open, or with Settings.Submits.
//  2. Serve [Gateway.Handler] on loopback. Elsewhere events travel in clear, unless something in front ends TLS.
//  3. [Gateway.Close] before the client is closed, and the client before the store.
package httpgateway
