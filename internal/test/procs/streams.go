package procs

import "context"

// A StreamState describes a stream as one server holds it.
type StreamState struct {
	Replicas int    // as configured
	Leader   string // name of the server that leads it, as this one knows; empty: none, or no cluster
	Messages uint64
	LastSeq  uint64 // sequence of the last message that was ever stored
	Subjects uint64
}

// Streams returns what the server holds of each stream, by name, of all accounts.
func (s *Server) Streams(ctx context.Context) (map[string]StreamState, error) {
	var doc struct {
		Accounts []struct {
			Streams []struct {
				Name   string `json:"name"`
				Config struct {
					Replicas int `json:"num_replicas"`
				} `json:"config"`
				Cluster struct {
					Leader string `json:"leader"`
				} `json:"cluster"`
				State struct {
					Messages uint64 `json:"messages"`
					LastSeq  uint64 `json:"last_seq"`
					Subjects uint64 `json:"num_subjects"`
				} `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := s.ask(ctx, "/jsz?accounts=true&streams=true&config=true", &doc); err != nil {
		return nil, err
	}
	all := map[string]StreamState{}
	for _, a := range doc.Accounts {
		for _, d := range a.Streams {
			all[d.Name] = StreamState{d.Config.Replicas, d.Cluster.Leader, d.State.Messages, d.State.LastSeq, d.State.Subjects}
		}
	}
	return all, nil
}
