// Package relay serves a broker's records to devices over HTTP, and takes their sealed reports and their requests for
// places: for devices in browsers and on phones, which connect, report and leave. Package relayhttp says what is in a
// path and in a body.
//
// # What it does not do
//
// It opens, parses and keeps nothing of a report or a place: it forwards bytes. It keeps in memory the newest public
// records of each task that is requested, and how many requests of an address wait. It logs no address.
//
// # Promises
//
//   - A 200 to a POST of a report has the message id that was sent and the broker's reply. Any other response, of the
//     relay or of a party between, means that the report may be stored or not.
//   - It refuses a report (400, 403, 411, 413, 415, 429, 503) only before it has published it. It gives the broker ten
//     seconds, and returns 504 if no reply came.
//   - What is served by hash has that hash, and may be kept for ever. What is served by a name carries its hash as ETag
//     and has to be revalidated: a broker may lose a record and take another under its name. All that is not a 200 or
//     304 of a record may not be kept.
//   - A request with a Cookie header, or with an Authorization header where no token is required, is refused: no login
//     travels with a report. An Origin that is not in the list is refused.
//   - Bodies have a length that the task allows and arrive by a deadline; requests that wait, and those of one address,
//     are bounded.
package relay
