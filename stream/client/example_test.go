package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
)

// An app sends its user's one event, and knows afterwards whether it was counted.
func Example_publish() {
	var records stream.Records      // natsjs.Connect, or memory.New
	var reports stream.ReportWriter // the same
	var store client.Store          // filestore.Open(filestore.Path(dir, "churn"))
	publish := func(ctx context.Context, event convex.Example) (client.Outcome, error) {
		c, err := client.New(client.Config{Task: "churn", Records: records, Reports: reports, Store: store})
		if err != nil {
			return client.Outcome{}, err
		}
		defer func() { _ = c.Close() }()
		return c.Publish(ctx, client.EventKey("this user"), event)
	}
	if _, err := publish(context.Background(), convex.Example{}); err != nil {
		log.SetFlags(0)
		fmt.Println(err)
	}
	// Output: client: Records, Reports and Store: want all three
}
