package client_test

import (
	"fmt"
	"log"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// An app sends its user's one event, and knows afterwards whether it was counted. Records and Reports are natsjs.Connect's
// in an app, and the store is filestore.Open's; here a task runs in memory, with nine more users.
func Example() {
	ctx, broker, store, stop := churnInMemory(9)
	defer stop()

	device, err := client.New(client.Config{Task: "churn", Records: broker, Reports: broker, Store: store})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	event := convex.Example{Value: []float64{0.5, -0.25, 1}, Label: 1}
	outcome, err := device.Publish(ctx, participation.EventKey("this user"), event)
	if err != nil {
		log.Fatal(err) // a *consent.RefusedError where the policy forbids it
	}
	fmt.Println(outcome)
	// Output: counted in round 1
}

// What the policy forbids is not sent: here a task that costs more than the device gives.
func ExamplePolicy() {
	ctx, broker, store, stop := churnInMemory(0)
	defer stop()

	device, err := client.New(client.Config{
		Task: "churn", Records: broker, Reports: broker, Store: store, Policy: consent.Policy{MaxEpsilon: 0.5},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	outcome, _ := device.Publish(ctx, participation.EventKey("this user"), convex.Example{Value: []float64{0.5, -0.25, 1}, Label: 1})
	fmt.Println(outcome.State, "for", outcome.Refused.Field)
	// Output: refused for plan.phases[0]: epsilon
}
