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
// What a device may rely on is what stream says of the ports: the relay and everything between is as trusted as a
// broker, and less is believed of it. An acknowledgement is a 200 with the message id that was sent, and nothing else
// is one: a proxy's 502, 413 or 429, a redirection, a page of a captive portal leave a report Unknown. Records are
// verified by the device, and those that were asked for by hash have that hash here.
//
// A request has no header that tells clients apart: Host, User-Agent, Content-Length, Content-Type, Cache-Control and,
// where there is a token, Authorization. No cookies are kept, and no redirection is followed.
package relayclient
