// Package relayclient reaches a broker through a relay, over HTTP: a stream.Transport for devices that hold no
// credentials of a broker. Package relayhttp says what goes over the wire.
//
//	client, err := relayclient.New(relayclient.Config{URL: "https://reports.example", Token: token})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	dev, err := device.New(device.Config{Transport: client, ...})
//
// A device may rely on what stream documents for the ports. The relay and everything between is trusted no more than a
// broker. An acknowledgement is a 200 with the message id that was sent, and nothing else is one: a proxy's 502, 413 or
// 429, a redirection, a page of a captive portal leave a report Unknown. Records are verified by the device, and this
// package checks the hash of records requested by hash.
//
// A request has no header that tells clients apart: Host, User-Agent, Content-Length, Content-Type, Cache-Control and,
// where there is a token, Authorization. No cookies are kept, and no redirection is followed.
package relayclient
