package archtest

// table is the import policy of this module. Imports go down it only. A package that is missing from it fails the test.
var table = Policy{
	Rows: []Row{
		// Foundations: nothing of ours below them.
		{Package: "topology", Why: "layout is pure maths and stands alone"},
		{Package: "kernels", Why: "shapes and the table of operations; implementations come to it"},
		{Package: "kernels/...", May: []string{"kernels/..."}, Why: "maths on slices; knows no device, model or actor"},
		{Package: "hal", Why: "the contract everyone writes against; it can depend on nobody"},

		// Device side: backends meet the rest only through the contract.
		{Package: "hal/cpu/...", May: []string{"hal", "hal/cpu/...", "hal/decompose", "kernels/..."}, Why: "the only door to kernels"},
		{Package: "hal/haltest", May: []string{"hal"}, Why: "the suite tests any backend, so it knows none"},

		// The network: what is computed, not where or when.
		{Package: "model/...", May: []string{"model/...", "hal", "topology"}, Why: "a model holds a device somebody handed it and never names a backend"},
		{Package: "model/config", May: []string{"internal/readfile"}, Why: "reads a file; what the numbers mean to a layer is the layer's matter"},
		{Package: "model/weights/...", May: []string{"model/weights/...", "internal/readfile"}, Why: "reads tensors by name; which ones are wanted is the caller's matter"},
		{Package: "model/token", May: []string{"internal/readfile"}, Why: "text to ids and back needs nothing else"},
		{Package: "model/chat", May: []string{"internal/readfile"}, Why: "messages to text needs nothing else; only its fixtures are in tokens", Test: []string{"model/token"}},

		// Actors: siblings meet in the vocabulary, one package puts them together.
		{Package: "actors", May: []string{"messages/...", "model/...", "hal", "topology"}, Why: "the vocabulary shared by all actors"},
		{Package: "actors/...", May: []string{"actors", "messages/...", "model/...", "hal", "topology"}, Why: "siblings under actors never import one another; they meet in actors and messages"},
		{Package: "actors/coordinator", May: []string{"actors", "messages/...", "model/...", "hal", "topology"}, Why: "as above; a test drives its core and the agent's through one network that loses messages", Test: []string{"actors/agent"}},
		{Package: "actors/node", May: []string{"actors/...", "messages/...", "model/...", "hal", "topology"}, Why: "the composition root; a backend is handed in by its caller"},

		// Plumbing: leaves that are no concept of the field.
		{Package: "internal/archtest", Why: "judges all packages and needs none"},
		{Package: "internal/config", Why: "settings are copied from it into each package's own Options"},
		{Package: "internal/logging", Why: "makes a logger that is then passed in"},
		{Package: "internal/readfile", Why: "reads small foreign files and knows nothing of what is in them"},
		{Package: "internal/version", Why: "reads what the linker left"},

		// Tops: they put everything together and nobody imports them.
		{Package: "cmd/...", May: []string{"..."}, Why: "the binary names its backends"},
		{Package: "test/...", May: []string{"..."}, Why: "tests across packages put together what they need"},

		{Package: "hal/faulty", May: []string{"hal"}, Why: "wraps any device"},
		{Package: "messages/...", May: []string{"messages/...", "topology"}, Why: "what crosses nodes; knows no actor and no model"},
		{Package: "examples/...", May: []string{"..."}, Why: "an example shows what an embedding service would write"},

		// Decided, not on main yet.
		{Package: "hal/decompose", May: []string{"hal"}, Why: "builds what a backend lacks from smaller ops, once for all"},
		{Package: "hal/ascend/...", May: []string{"hal", "hal/ascend/...", "hal/decompose"}, Why: "binds the vendor's runtime and nothing of ours"},
		{Package: "hal/hccl/...", May: []string{"hal", "hal/hccl/..."}, Why: "binds the vendor's collectives and nothing of ours"},
	},

	Owners: []Owner{
		{Import: "C", Owners: []string{"kernels/...", "hal/ascend/...", "hal/hccl/..."}, Why: "everything else builds with CGO_ENABLED=0"},
		{Import: "unsafe", Owners: []string{"messages/v1", "kernels/...", "hal/cpu/...", "hal/ascend/...", "hal/hccl/...", "model/weights"}, Why: "memory is reinterpreted where it is owned, nowhere else"},
		{Import: "testing", Owners: []string{"test/..."}, Tests: true, Why: "shipped packages do not link the test framework"},
		{Import: "math/rand", Why: "version 1 has a global seed; use math/rand/v2 with a source of your own"},
		{Import: "math/rand/v2", Owners: []string{"..."}, Why: "open to all"},
		{Import: "log", Why: "loggers are passed in as *slog.Logger"},
		{Import: "log/slog", Owners: []string{"..."}, Why: "open to all"},

		{Import: "github.com/asynkron/protoactor-go", Why: "remote and cluster stay off the network path; see docs/adr/0001-actors-and-nats.md"},
		{Import: "github.com/asynkron/protoactor-go/actor", Owners: []string{"actors/..."}, Why: "the actor library stays behind our vocabulary"},
		{Import: "google.golang.org/protobuf", Owners: []string{"messages/...", "actors/agent", "actors/coordinator", "actors/expertgroup", "actors/node"}, Why: "what crosses nodes is encoded where it leaves and enters the actors"},
		{Import: "github.com/nats-io", Owners: []string{"messages/bus/natsbus/..."}, Why: "everything else sees the bus contract"},
		{Import: "github.com/knadh/koanf", Owners: []string{"internal/config"}, Why: "configuration is read in one place"},
		{Import: "github.com/lmittmann/tint", Owners: []string{"internal/logging"}, Why: "how a log looks is decided in one place"},
		{Import: "github.com/spf13/cobra", Owners: []string{"cmd/..."}, Why: "the command line ends where the packages begin"},
		{Import: "github.com/spf13/pflag", Owners: []string{"cmd/..."}, Why: "the command line ends where the packages begin"},
		{Import: "github.com/ardanlabs/jinja", Owners: []string{"model/chat"}, Why: "templates hide behind model/chat"},
		{Import: "github.com/dlclark/regexp2", Owners: []string{"model/token"}, Why: "pre-tokenizer patterns only; backtracking has no place elsewhere"},
		{Import: "golang.org/x/text", Owners: []string{"model/token"}, Why: "Unicode normal forms of a tokenizer"},
		{Import: "golang.org/x/sys", Owners: []string{"model/weights", "hal/cpu/...", "kernels/...", "cmd/...", "test/..."}, Why: "mapping files, CPU features, threads and terminals are their owners' matter"},
		{Import: "golang.org/x/term", Owners: []string{"cmd/...", "internal/logging"}, Why: "only what prints asks for a terminal"},
		{Import: "go.uber.org/goleak", Tests: true, Why: "a test aid"},
		{Import: "github.com/rogpeppe/go-internal", Owners: []string{"test/script"}, Why: "runs the command-line scripts"},
	},

	Tops:    []string{"cmd", "examples", "test"},
	TestMay: []string{"hal/cpu", "hal/faulty", "messages/bus/membus"},
}
