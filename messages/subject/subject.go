// Package subject owns every subject of the bus: what is sent where is written here and nowhere else. It sends nothing.
package subject

import "strings"

// Space is the subjects of one cluster. Spaces of different clusters share none, whatever the names in them are.
type Space struct {
	Cluster string // chosen by whoever starts the cluster, the same on all its nodes
}

// Kind is what a node tells the coordinator.
type Kind string

// The kinds, one for each message of package messagesv1 that is sent to the coordinator unasked.
const (
	Votes    Kind = "votes"
	Wake     Kind = "wake"
	Done     Kind = "done"
	Progress Kind = "progress"
	Ready    Kind = "ready"
)

// Coordinator is where nodes send messages of a kind, of all groups, to the coordinator.
func (s Space) Coordinator(k Kind) string { return s.join("coordinator", string(k)) }

// Register is where nodes ask the coordinator to be placed, by a request.
func (s Space) Register() string { return s.join("register") }

// Plans is where the coordinator publishes the plans of a group.
func (s Space) Plans(group string) string { return s.join("plans", group) }

// Calls is where the coordinator publishes the calls of a group, verdicts among them.
func (s Space) Calls(group string) string { return s.join("calls", group) }

// Node is where the coordinator sends what only the agent of a group on one node should get, such as a plan it has missed.
func (s Space) Node(group, node string) string { return s.join("node", group, node) }

// Endpoints is where the nodes of a group tell one another how their ranks can be reached.
func (s Space) Endpoints(group string) string { return s.join("endpoints", group) }

// root is the first token: other users of the same server have another one.
const root = "moerack"

// join makes a subject. The token after the cluster says which method made it, so no two methods share one.
func (s Space) join(method string, names ...string) string {
	var b strings.Builder
	b.WriteString(root + "." + encode(s.Cluster) + "." + method)
	for _, n := range names {
		b.WriteString("." + encode(n))
	}
	return b.String()
}
