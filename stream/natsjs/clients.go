package natsjs

// Clients counts the connections of the server, ours inside the process included.
func (e *Embedded) Clients() int { return e.server.NumClients() }
